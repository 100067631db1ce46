//! Elements and their attributes: which of them hold a link, and of what kind.

use std::borrow::Cow;

use encoding_rs::UTF_8;
use htmlscan::Attribute;

use super::{Inside, Page, srcset};
use crate::extract::css::css;
use crate::extract::likely::{Need, is_likely};
use crate::extract::rel;
use crate::extract::script::handler;
use crate::extract::settings::Guess;
use crate::hops::Hop;

/// Longer names of elements and attributes hold no link that we know of. In a context they are cut.
const NAME_MAX: usize = 40;

impl Page<'_> {
    pub(super) fn element(&mut self, name: &[u8], attributes: &[Attribute<'_>]) {
        let mut lower = [0; NAME_MAX];
        let tag = lower_case(name, &mut lower);
        match tag {
            b"base" => {
                self.base(attributes);
                return;
            }
            b"meta" => return self.meta(attributes),
            b"style" => self.inside = Inside::Style,
            b"script" => self.inside = self.script_kind(attributes),
            b"form" => self.form_gets = self.gets(attributes, b"method"),
            b"object" | b"applet" => self.object(tag, attributes),
            b"param" => self.param(attributes),
            _ => {}
        }
        for attribute in attributes.iter().filter(|attribute| !attribute.repeated) {
            let mut lower = [0; NAME_MAX];
            let name = lower_case(attribute.name, &mut lower);
            if !attribute.value.is_empty() {
                self.attribute_of(tag, name, attribute.value, attributes);
            }
        }
    }

    fn attribute_of(&mut self, tag: &[u8], name: &[u8], value: &[u8], all: &[Attribute<'_>]) {
        match name {
            b"href" | b"xlink:href" => self.href(tag, name, value, all),
            b"src" => {
                let frame = matches!(tag, b"iframe" | b"frame");
                let hop = if frame && !self.settings.frames_as_embeds { Hop::Link } else { Hop::Embed };
                self.reference(value, hop, tag, name);
            }
            b"srcset" | b"imagesrcset" => self.srcset(value, tag, name),
            b"poster" | b"background" | b"lowsrc" | b"dynsrc" | b"longdesc" | b"usemap" => {
                self.reference(value, Hop::Embed, tag, name);
            }
            b"cite" => self.reference(value, Hop::Link, tag, name),
            b"profile" if tag == b"head" => self.reference(value, Hop::Embed, tag, name),
            b"manifest" if tag == b"html" => self.reference(value, Hop::Embed, tag, name),
            b"action" if tag == b"form" && self.settings.forms && self.form_gets => {
                self.reference(value, Hop::Link, tag, name);
            }
            b"formaction" => {
                let own = all.iter().any(|attribute| attribute.name.eq_ignore_ascii_case(b"formmethod"));
                let gets = if own { self.gets(all, b"formmethod") } else { self.form_gets };
                if self.settings.forms && gets {
                    self.reference(value, Hop::Link, tag, name);
                }
            }
            // Without a parenthesis there is no url().
            b"style" if self.settings.css && value.contains(&b'(') => {
                let text = self.text(value);
                css(text.as_bytes(), UTF_8, self.links);
            }
            b"srcdoc" if tag == b"iframe" => {
                let page = self.text(value);
                self.document_within(&page);
            }
            b"value" if matches!(tag, b"option" | b"input" | b"button") => {
                self.speculate(value, tag, name);
            }
            b"flashvars" => self.flash_variables(value, tag, name),
            _ if name.starts_with(b"on") => {
                let code = self.text(value);
                handler(code.as_bytes(), self.settings.javascript, UTF_8, self.links);
            }
            _ if name.starts_with(b"data-") => self.data(tag, name, value),
            _ => {}
        }
    }

    fn href(&mut self, tag: &[u8], name: &[u8], value: &[u8], all: &[Attribute<'_>]) {
        let hop = match tag {
            b"a" | b"area" => Hop::Link,
            b"link" => {
                let rel = self.attribute(all, b"rel").unwrap_or_default();
                self.said.icon |= rel.split_ascii_whitespace().any(|word| word.eq_ignore_ascii_case("icon"));
                match rel::hop(&rel) {
                    Some(hop) => hop,
                    None => return,
                }
            }
            // Parts of drawings.
            b"use" | b"image" | b"feimage" | b"script" | b"mpath" | b"pattern" | b"lineargradient"
            | b"radialgradient" | b"textpath" | b"filter" | b"animate" | b"set" | b"cursor" | b"tref"
            | b"glyphref" | b"font-face-uri" | b"color-profile" => Hop::Embed,
            _ => Hop::Link,
        };
        self.reference(value, hop, tag, name);
    }

    /// A value that is one URL, or a script in the place of one.
    fn reference(&mut self, value: &[u8], hop: Hop, tag: &[u8], name: &[u8]) {
        let text = self.text(value);
        let trimmed = text.trim_start_matches(|c: char| c <= ' ');
        if trimmed.get(..11).is_some_and(|scheme| scheme.eq_ignore_ascii_case("javascript:")) {
            handler(&trimmed.as_bytes()[11..], self.settings.javascript, UTF_8, self.links);
        } else {
            self.links.add(&text, hop, context(tag, name));
        }
    }

    fn srcset(&mut self, value: &[u8], tag: &[u8], name: &[u8]) {
        let text = self.text(value);
        for url in srcset::urls(&text) {
            self.embed(url, tag, name);
        }
    }

    /// Attributes in which scripts keep what they will show later.
    fn data(&mut self, tag: &[u8], name: &[u8], value: &[u8]) {
        let text = self.text(value);
        if is_lazy(name) {
            if srcset::is_srcset(name) || srcset::has_descriptors(&text) {
                self.srcset(value, tag, name);
            } else if let Some(inside) = text.trim().strip_prefix("url(") {
                let url = inside.trim_end_matches(')').trim_matches(|c| matches!(c, '"' | '\'' | ' '));
                self.embed(url, tag, name);
            } else if is_plausible(&text) {
                self.embed(&text, tag, name);
            }
        } else {
            self.speculate(value, tag, name);
        }
    }

    /// A value that may be a URL.
    fn speculate(&mut self, value: &[u8], tag: &[u8], name: &[u8]) {
        let need = match self.settings.javascript {
            Guess::Off => return,
            Guess::Cautious => Need::Cautious,
            Guess::Eager => Need::Eager,
        };
        let text = self.text(value);
        let text = text.trim();
        if is_likely(text.as_bytes(), need) {
            self.links.add(text, Hop::Speculative, context(tag, name));
        }
    }

    fn flash_variables(&mut self, value: &[u8], tag: &[u8], name: &[u8]) {
        if self.settings.javascript == Guess::Off {
            return;
        }
        let text = self.text(value);
        for (_, value) in url::form_urlencoded::parse(text.as_bytes()) {
            if is_likely(value.as_bytes(), Need::Page) {
                self.links.add(&value, Hop::Speculative, context(tag, name));
            }
        }
    }

    /// Plug-ins: their files lie in `codebase`, lists of them are separated by blanks (object) or commas (applet).
    fn object(&mut self, tag: &[u8], attributes: &[Attribute<'_>]) {
        let codebase = self.codebase(attributes).unwrap_or_else(|| self.links.base().clone());
        for name in [&b"data"[..], b"classid", b"archive", b"code", b"object"] {
            let Some(value) = self.attribute(attributes, name) else { continue };
            let context = context(tag, name);
            match name {
                b"archive" => {
                    for part in value.split([',', ' ']).filter(|part| !part.is_empty()) {
                        self.links.add_to(&codebase, part, Hop::Embed, context.clone());
                    }
                }
                b"code" => {
                    // The name of a class stands for its file, with or without the ending.
                    let class = value.trim().trim_end_matches(".class").replace('.', "/");
                    self.links.add_to(&codebase, &format!("{class}.class"), Hop::Embed, context);
                }
                _ => self.links.add_to(&codebase, &value, Hop::Embed, context),
            }
        }
    }

    fn param(&mut self, attributes: &[Attribute<'_>]) {
        let Some(name) = self.attribute(attributes, b"name") else { return };
        let Some(value) = self.attribute(attributes, b"value") else { return };
        match name.trim().to_ascii_lowercase().as_str() {
            "movie" | "src" | "url" | "filename" | "data" if is_plausible(&value) => {
                self.embed(&value, b"param", b"value");
            }
            "flashvars" => self.flash_variables(value.as_bytes(), b"param", b"value"),
            _ => {}
        }
    }

    /// Whether the method named by an attribute is GET, which it is when none is named.
    fn gets(&self, attributes: &[Attribute<'_>], name: &[u8]) -> bool {
        let method = self.attribute(attributes, name).unwrap_or_default();
        !method.trim().eq_ignore_ascii_case("post") && !method.trim().eq_ignore_ascii_case("dialog")
    }

    fn script_kind(&self, attributes: &[Attribute<'_>]) -> Inside {
        let kind = self.attribute(attributes, b"type").unwrap_or_default().to_ascii_lowercase();
        let has = |word| kind.contains(word);
        if kind.trim().is_empty() || has("javascript") || has("ecmascript") || has("module") || has("babel") {
            Inside::Script
        } else if has("json") || has("importmap") || has("speculationrules") {
            Inside::Json
        } else {
            // Templates: their URLs have holes.
            Inside::Markup
        }
    }
}

/// Attributes by which lazy-loading scripts are known.
fn is_lazy(name: &[u8]) -> bool {
    const KNOWN: [&str; 33] = [
        "bg",
        "bg-image",
        "bg-src",
        "bgset",
        "background",
        "background-image",
        "cfsrc",
        "desktop-src",
        "echo",
        "flickity-lazyload",
        "full-src",
        "fullsrc",
        "hi-res-src",
        "high-res-src",
        "image",
        "image-src",
        "img",
        "img-src",
        "img-url",
        "large-src",
        "ll-src",
        "mobile-src",
        "normal",
        "orig-src",
        "original",
        "poster",
        "retina",
        "src",
        "src-retina",
        "srcs",
        "thumb",
        "thumbnail",
        "zoom-image",
    ];
    let Some(rest) = name.strip_prefix(b"data-") else { return false };
    rest.starts_with(b"lazy")
        || rest.starts_with(b"original-")
        || rest.ends_with(b"srcset")
        || KNOWN.iter().any(|known| known.as_bytes() == rest)
}

/// Could be a URL: scripts keep numbers, flags and JSON in the same attributes.
fn is_plausible(value: &str) -> bool {
    let value = value.trim();
    value.contains(['/', '.'])
        && !value.contains(|c: char| c.is_ascii_whitespace() || matches!(c, '{' | '}' | '<' | '>' | '"'))
        && value.parse::<f64>().is_err()
}

/// `img/@src`.
pub(super) fn context(tag: &[u8], attribute: &[u8]) -> Cow<'static, str> {
    Cow::Borrowed(match (tag, attribute) {
        (b"a", b"href") => "a/@href",
        (b"area", b"href") => "area/@href",
        (b"link", b"href") => "link/@href",
        (b"img", b"src") => "img/@src",
        (b"img", b"srcset") => "img/@srcset",
        (b"img", b"data-src") => "img/@data-src",
        (b"source", b"srcset") => "source/@srcset",
        (b"script", b"src") => "script/@src",
        (b"iframe", b"src") => "iframe/@src",
        (b"form", b"action") => "form/@action",
        _ => {
            // Fit for a log line, whatever the page calls its elements.
            let visible = |b: &u8| if b.is_ascii_graphic() { char::from(*b) } else { '?' };
            return Cow::Owned(
                tag.iter().map(visible).chain("/@".chars()).chain(attribute.iter().map(visible)).collect(),
            );
        }
    })
}

/// A name in lower case, cut at the length of the buffer.
fn lower_case<'b>(name: &[u8], buffer: &'b mut [u8; NAME_MAX]) -> &'b [u8] {
    let len = name.len().min(NAME_MAX);
    for (to, from) in buffer.iter_mut().zip(&name[..len]) {
        *to = from.to_ascii_lowercase();
    }
    &buffer[..len]
}
