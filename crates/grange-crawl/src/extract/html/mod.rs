//! Links in HTML: elements and attributes, styles and scripts within, and what conditional comments hide.

mod element;
mod meta;
mod srcset;

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8};
use htmlscan::{Attribute, Dialect, Scanner, State, Token, is_space};
use memchr::memmem;
use url::Url;

pub use meta::Directives;
pub(super) use meta::refresh_target;

use super::charset::decode;
use super::css::css;
use super::links::Links;
use super::script::{json, script};
use super::settings::Settings;
use super::source::{Source, tokens_of};
use crate::hops::Hop;

/// How far down a page the one `<base>` that counts is looked for before the links are.
const BASE_WITHIN_BYTES: usize = 64 * 1024;

/// Conditional comments and `srcdoc` pages may hold others. Nobody nests them deeper in earnest.
const DEPTH_MAX: u8 = 2;

/// What a page says besides its links.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Said {
    pub(super) directives: Directives,
    /// It names an icon of its own.
    pub(super) icon: bool,
}

/// Adds the links of the page to `links`. `dialect`: [`Dialect::Html`] or [`Dialect::Xhtml`].
pub(super) fn html(
    source: Source<'_>,
    dialect: Dialect,
    encoding: &'static Encoding,
    settings: &Settings,
    links: &mut Links,
) -> Said {
    let mut page = Page {
        settings,
        dialect,
        encoding,
        links,
        based: false,
        form_gets: true,
        inside: Inside::Markup,
        depth: 0,
        said: Said::default(),
    };
    page.find_base(source.head());
    source.tokens(dialect, settings.max_document.html.0, |token, attributes| {
        page.token(token, attributes);
    });
    page.said
}

struct Page<'a> {
    settings: &'a Settings,
    dialect: Dialect,
    encoding: &'static Encoding,
    links: &'a mut Links,
    /// A `<base>` was found; others do not count.
    based: bool,
    /// The form we are in is sent with GET.
    form_gets: bool,
    inside: Inside,
    depth: u8,
    said: Said,
}

/// What text means where we are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Inside {
    Markup,
    Style,
    Script,
    Json,
}

impl Page<'_> {
    fn token(&mut self, token: Token<'_>, attributes: &[Attribute<'_>]) {
        match token {
            Token::Start { name, empty } => {
                self.inside = Inside::Markup;
                self.element(name, attributes);
                if empty && self.dialect == Dialect::Xhtml {
                    self.inside = Inside::Markup;
                }
            }
            Token::End { name } => {
                self.inside = Inside::Markup;
                if name.eq_ignore_ascii_case(b"form") {
                    self.form_gets = true;
                }
            }
            Token::Text(text) if self.is_escaped(text) => {
                let text = self.text(text).into_owned();
                self.inside(text.as_bytes(), UTF_8);
            }
            Token::Text(text) | Token::Data(text) => self.inside(text, self.encoding),
            Token::Comment(comment) => {
                if let Some(page) = conditional(comment) {
                    self.nested(page, self.encoding);
                }
            }
            Token::Instruction(_) => {}
        }
    }

    /// Entities count in the scripts and styles of XHTML, except in a section of data.
    fn is_escaped(&self, text: &[u8]) -> bool {
        self.dialect == Dialect::Xhtml
            && self.inside != Inside::Markup
            && memchr::memchr(b'&', text).is_some()
            && memmem::find(text, b"<![CDATA[").is_none()
    }

    /// The text of an element.
    fn inside(&mut self, text: &[u8], encoding: &'static Encoding) {
        match self.inside {
            Inside::Markup => {}
            Inside::Style if self.settings.css => css(text, encoding, self.links),
            Inside::Style => {}
            Inside::Script => script(text, self.settings.javascript, encoding, self.links),
            Inside::Json => json(text, self.settings.javascript, encoding, self.links),
        }
    }

    /// Markup within this page.
    fn nested(&mut self, page: &[u8], encoding: &'static Encoding) {
        if self.depth >= DEPTH_MAX {
            return;
        }
        let outside = (self.inside, self.form_gets, self.encoding, self.dialect);
        self.depth += 1;
        // Pages in comments and attributes are HTML, whatever they are in.
        (self.encoding, self.dialect) = (encoding, Dialect::Html);
        tokens_of(page, Dialect::Html, |token, attributes| self.token(token, attributes));
        self.depth -= 1;
        (self.inside, self.form_gets, self.encoding, self.dialect) = outside;
    }

    /// A base counts for the whole page, links before it included.
    fn find_base(&mut self, head: &[u8]) {
        let head = &head[..head.len().min(BASE_WITHIN_BYTES)];
        let mentioned = memchr::memchr_iter(b'<', head).any(|at| is_base(&head[at + 1..]));
        if !mentioned {
            return;
        }
        let mut scanner = Scanner::new(head, self.dialect, State::default());
        let mut attributes = Vec::new();
        while let Some(token) = scanner.next(&mut attributes) {
            if let Token::Start { name, .. } = token
                && name.eq_ignore_ascii_case(b"base")
                && self.base(&attributes)
            {
                return;
            }
        }
    }

    /// Takes the base from a `<base>` element, if it is the first to have one.
    fn base(&mut self, attributes: &[Attribute<'_>]) -> bool {
        if !self.based
            && let Some(href) = self.attribute(attributes, b"href")
            && let Some(base) = self.links.resolve(&href, None)
        {
            self.links.set_base(base);
            self.based = true;
        }
        self.based
    }

    /// The value of an attribute, decoded. The first of several counts.
    fn attribute<'v>(&self, attributes: &[Attribute<'v>], name: &[u8]) -> Option<Cow<'v, str>> {
        let found = attributes.iter().find(|attribute| attribute.name.eq_ignore_ascii_case(name))?;
        Some(self.text(found.value))
    }

    /// A value as text: charset and entities decoded.
    fn text<'v>(&self, value: &'v [u8]) -> Cow<'v, str> {
        let text = decode(self.encoding, value);
        if text.contains('&') { htmlize::unescape_attribute(text) } else { text }
    }

    fn codebase(&self, attributes: &[Attribute<'_>]) -> Option<Url> {
        let codebase = self.attribute(attributes, b"codebase")?;
        // A folder, also when the slash is missing.
        let codebase = if codebase.ends_with('/') { codebase } else { Cow::Owned(format!("{codebase}/")) };
        self.links.resolve(&codebase, None)
    }

    fn document_within(&mut self, srcdoc: &str) {
        self.nested(srcdoc.as_bytes(), UTF_8);
    }

    fn embed(&mut self, reference: &str, tag: &[u8], attribute: &[u8]) {
        self.links.add(reference, Hop::Embed, element::context(tag, attribute));
    }
}

fn is_base(tag: &[u8]) -> bool {
    tag.len() > 4 && tag[..4].eq_ignore_ascii_case(b"base") && (is_space(tag[4]) || tag[4] == b'/')
}

/// The markup of `<!--[if …]> … <![endif]-->`, given what stands between the dashes.
fn conditional(comment: &[u8]) -> Option<&[u8]> {
    if !comment.starts_with(b"[if") {
        return None;
    }
    let start = memchr::memchr(b'>', comment)? + 1;
    let inside = &comment[start..];
    Some(&inside[..memmem::rfind(inside, b"<![endif]").unwrap_or(inside.len())])
}
