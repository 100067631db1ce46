//! HTML in a stream.
//!
//! Only tags that hold something to change are written anew; every other byte passes as it was captured. Texts of
//! scripts and styles are collected up to their end, because they can only be judged as a whole.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use encoding_rs::Encoding;
use lol_html::errors::RewritingError;
use lol_html::html_content::{ContentType, TextChunk};
use lol_html::send::{Element, ElementContentHandlers, HtmlRewriter, Settings};
use lol_html::{AsciiCompatibleEncoding, MemorySettings, OutputSink, Selector};

use super::assets::{STATIC_PREFIX, has_wombat};
use super::attributes::{Around, Change, change, may_change};
use super::modifier::Modifier;
use super::place::Place;
use super::script::{self, Mode, Source};
use super::transform::{Options, RewriteError, Transform, WHOLE_BYTES_MAX};
use super::{css, head, importmap};

/// What the parser may hold: one tag with its attributes, and the names of open elements. A page that needs more is an
/// attack or no page; from there on it passes as it is.
const PARSER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Pages within pages within pages (`srcdoc`); deeper ones are not looked into.
const PAGES_DEEP_MAX: u8 = 3;

/// Read once: reading them costs as much as a small page.
static EVERYTHING: LazyLock<Selector> = LazyLock::new(|| "*".parse().expect("a selector"));
static SCRIPTS_AND_STYLES: LazyLock<Selector> =
    LazyLock::new(|| "script, style".parse().expect("a selector"));

pub(super) struct Html {
    /// `None` after an error: the parser must not be used again.
    rewriter: Option<HtmlRewriter<'static, Sink>>,
    written: Arc<Mutex<Vec<u8>>>,
    url: String,
}

impl fmt::Debug for Html {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Html").field("url", &self.url).finish_non_exhaustive()
    }
}

/// The parser's output, until it is handed on.
struct Sink(Arc<Mutex<Vec<u8>>>);

impl OutputSink for Sink {
    fn handle_chunk(&mut self, chunk: &[u8]) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(chunk);
    }
}

impl Html {
    /// `encoding`: an ASCII-compatible one; the page's own `<meta charset>` can correct it unless it is `certain`.
    pub(super) fn new(place: &Place, encoding: &'static Encoding, certain: bool, options: &Options) -> Self {
        let written = Arc::new(Mutex::new(Vec::new()));
        let page = Page::new(place.clone(), options.clone(), 0);
        let rewriter = HtmlRewriter::new(settings(page, encoding, certain), Sink(written.clone()));
        Self { rewriter: Some(rewriter), written, url: place.url().to_owned() }
    }

    /// When its memory is used up the parser has put out all that it held; the rest passes as it is.
    fn judged(&self, result: Result<(), RewritingError>) -> Result<(), RewriteError> {
        match result {
            Ok(()) | Err(RewritingError::MemoryLimitExceeded(_)) => Ok(()),
            Err(error) => Err(RewriteError { url: self.url.clone(), source: Box::new(error) }),
        }
    }

    fn take(&self, out: &mut Vec<u8>) {
        out.append(&mut self.written.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

fn settings(page: Page, encoding: &'static Encoding, certain: bool) -> Settings<'static, 'static> {
    let page = Arc::new(Mutex::new(page));
    let (starts, texts) = (page.clone(), page.clone());
    // In this order: what a script is must be known before its attributes are looked at.
    Settings::new_send()
        .append_element_content_handler((
            Cow::Borrowed(&*SCRIPTS_AND_STYLES),
            ElementContentHandlers::default()
                .element(move |element: &mut Element<'_, '_>| {
                    starts.lock().unwrap_or_else(PoisonError::into_inner).hold(element);
                    Ok(())
                })
                .text(move |chunk: &mut TextChunk<'_>| {
                    texts.lock().unwrap_or_else(PoisonError::into_inner).text(chunk);
                    Ok(())
                }),
        ))
        .append_element_content_handler((
            Cow::Borrowed(&*EVERYTHING),
            ElementContentHandlers::default().element(move |element: &mut Element<'_, '_>| {
                page.lock().unwrap_or_else(PoisonError::into_inner).element(element);
                Ok(())
            }),
        ))
        .with_encoding(AsciiCompatibleEncoding::new(encoding).unwrap_or_else(AsciiCompatibleEncoding::utf_8))
        .with_adjust_charset_on_meta_tag(!certain)
        .with_strict(false)
        .with_memory_settings(
            MemorySettings::new()
                .with_max_allowed_memory_usage(PARSER_BYTES_MAX)
                .with_graceful_bail_out_on_memory_limit_exceeded(true),
        )
}

impl Transform for Html {
    fn push(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<(), RewriteError> {
        let Some(rewriter) = &mut self.rewriter else {
            out.extend_from_slice(input);
            return Ok(());
        };
        let pushed = rewriter.write(input);
        self.take(out);
        if pushed.is_err() {
            self.rewriter = None;
        }
        self.judged(pushed)
    }

    fn finish(mut self: Box<Self>, out: &mut Vec<u8>) -> Result<(), RewriteError> {
        let ended = self.rewriter.take().map_or(Ok(()), HtmlRewriter::end);
        self.take(out);
        self.judged(ended)
    }
}

/// What is known of a page while it passes.
struct Page {
    place: Place,
    options: Options,
    scripted: bool,
    /// Yet to be put in.
    insert: Option<String>,
    has_base: bool,
    holding: Option<Holding>,
    held: String,
    depth: u8,
}

/// What the text of the open element is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holding {
    Script,
    Module,
    ImportMap,
    /// Instructions to fetch pages ahead, with addresses of the live web.
    Speculation,
    Style,
}

impl Page {
    fn new(place: Place, options: Options, depth: u8) -> Self {
        let plain = place.modifier() == Modifier::UrlsOnly;
        let insert = (!plain).then(|| head::insert(&place, &options)).filter(|insert| !insert.is_empty());
        Self {
            place,
            options,
            scripted: has_wombat() && !plain,
            insert,
            has_base: false,
            holding: None,
            held: String::new(),
            depth,
        }
    }

    fn hold(&mut self, element: &Element<'_, '_>) {
        self.holding = self.holding_of(&element.tag_name(), element);
        self.held.clear();
    }

    fn element(&mut self, element: &mut Element<'_, '_>) {
        // Most elements of a page: nothing is asked of them that would cost memory.
        if self.insert.is_none() && element.attributes().is_empty() {
            return;
        }
        let tag = element.tag_name();
        if self.insert.is_some() && tag != "html" {
            let insert = self.insert.take().unwrap_or_default();
            if tag == "head" {
                element.prepend(&insert, ContentType::Html);
            } else {
                element.before(&insert, ContentType::Html);
            }
        }
        if !element.attributes().is_empty() {
            self.attributes(&tag, element);
        }
    }

    fn attributes(&mut self, tag: &str, element: &mut Element<'_, '_>) {
        let lower = |name: &str| element.get_attribute(name).unwrap_or_default().trim().to_ascii_lowercase();
        let around = Around {
            tag,
            rel: if tag == "link" { lower("rel") } else { String::new() },
            purpose: if tag == "link" { lower("as") } else { String::new() },
            meta: match tag {
                "meta" if element.has_attribute("http-equiv") => lower("http-equiv"),
                "meta" => lower("name"),
                _ => String::new(),
            },
            is_module: tag == "script" && self.holding == Some(Holding::Module),
            framed: self.options.framed,
            scripted: self.scripted,
        };
        let mut changes: Vec<(String, Change, String)> = Vec::new();
        // The old value, for those that go on with it.
        let needs_old = |change: &Change| !matches!(change, Change::Value(_));
        for attribute in element.attributes() {
            let name = attribute.name();
            if !may_change(&name) {
                continue;
            }
            let raw = attribute.value();
            let value = if raw.contains('&') { htmlize::unescape_attribute(&raw) } else { (&raw).into() };
            let change = change(&around, &name, &value, &self.place);
            if change != Change::Keep {
                let old = if needs_old(&change) { value.into_owned() } else { String::new() };
                changes.push((name, change, old));
            }
        }
        for (name, change, old) in changes {
            match change {
                Change::Keep => {}
                Change::Value(new) => set(element, &name, &new),
                Change::ValueKeepingSource(new) => {
                    set(element, &name, &new);
                    set(element, "__wb_orig_src", &old);
                }
                Change::Disarm => {
                    element.remove_attribute(&name);
                    set(element, &format!("_{name}"), &old);
                }
                Change::Base(new) => {
                    if let Some(new) = new {
                        set(element, &name, &new);
                    }
                    // Only the first counts.
                    if !self.has_base {
                        self.has_base = true;
                        self.place.rebase(&old);
                    }
                }
                Change::Page => {
                    if let Some(page) = self.inner_page(&old) {
                        set(element, &name, &page);
                    }
                }
            }
        }
    }

    fn inner_page(&self, text: &str) -> Option<String> {
        if self.depth >= PAGES_DEEP_MAX {
            return None;
        }
        let page = Self::new(self.place.clone(), self.options.clone(), self.depth + 1);
        let mut out = Vec::new();
        let mut rewriter = HtmlRewriter::new(settings(page, encoding_rs::UTF_8, true), |chunk: &[u8]| {
            out.extend_from_slice(chunk);
        });
        rewriter.write(text.as_bytes()).ok()?;
        rewriter.end().ok()?;
        String::from_utf8(out).ok()
    }

    fn holding_of(&self, tag: &str, element: &Element<'_, '_>) -> Option<Holding> {
        // Inside SVG both are ordinary markup, with entities and sections of their own.
        if element.namespace_uri() != "http://www.w3.org/1999/xhtml" {
            return None;
        }
        if tag == "style" {
            return Some(Holding::Style);
        }
        let kind = element.get_attribute("type").unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match kind.as_str() {
            "speculationrules" => Some(Holding::Speculation),
            _ if !self.scripted => None,
            "module" => Some(Holding::Module),
            "importmap" => Some(Holding::ImportMap),
            "" => Some(Holding::Script),
            _ if kind.contains("javascript") || kind.contains("ecmascript") || kind == "text/jscript" => {
                Some(Holding::Script)
            }
            _ => None,
        }
    }

    fn text(&mut self, chunk: &mut TextChunk<'_>) {
        let Some(holding) = self.holding else { return };
        if self.held.len() + chunk.as_str().len() > WHOLE_BYTES_MAX {
            // Longer than any script: the rest of this text passes as it is.
            self.holding = None;
            let held = std::mem::take(&mut self.held);
            chunk.before(&held, ContentType::Html);
            return;
        }
        self.held.push_str(chunk.as_str());
        if !chunk.last_in_text_node() {
            chunk.remove();
            return;
        }
        let held = std::mem::take(&mut self.held);
        let changed = self.changed_text(holding, &held).unwrap_or(held);
        chunk.replace(&changed, ContentType::Html);
    }

    fn changed_text(&self, holding: Holding, text: &str) -> Option<String> {
        let source = Source { place: &self.place, url: None };
        match holding {
            Holding::Style => css::rewrite(text, &self.place),
            Holding::Script => Some(script::classic(text, source, Mode::Classic)),
            Holding::Module => Some(script::module(text, source, STATIC_PREFIX)),
            Holding::ImportMap => importmap::rewrite(text, &self.place),
            Holding::Speculation => Some("{}".to_owned()),
        }
    }
}

/// A name that cannot be written in the page's charset cannot be changed, nor does any browser act on it.
fn set(element: &mut Element<'_, '_>, name: &str, value: &str) {
    // Quotes are the parser's concern.
    let _ = if value.contains('&') {
        element.set_attribute(name, &value.replace('&', "&amp;"))
    } else {
        element.set_attribute(name, value)
    };
}
