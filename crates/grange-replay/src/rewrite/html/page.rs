//! What is known of a page while it passes, and what becomes of its parts.

use super::Html;
use super::charset::Charset;
use super::copying::Copying;
use super::held::Holding;
use super::tag::StartTag;
use crate::rewrite::assets::has_wombat;
use crate::rewrite::head;
use crate::rewrite::modifier::Modifier;
use crate::rewrite::place::Place;
use crate::rewrite::transform::{Options, Transform, WHOLE_BYTES_MAX};

/// Pages within pages within pages (`srcdoc`); deeper ones are not looked into.
const PAGES_DEEP_MAX: u8 = 3;

pub(super) struct Page {
    pub(super) place: Place,
    pub(super) options: Options,
    pub(super) charset: Charset,
    /// Wombat is there, so that scripts can be changed to meet it.
    pub(super) scripted: bool,
    pub(super) has_base: bool,
    /// What the text that comes next is, if it has to be seen as a whole.
    pub(super) holding: Option<Holding>,
    /// Yet to be put in.
    insert: Option<String>,
    depth: u8,
}

impl Page {
    pub(super) fn new(place: Place, options: Options, charset: Charset, depth: u8) -> Self {
        let plain = place.modifier() == Modifier::UrlsOnly;
        let insert = (!plain).then(|| head::insert(&place, &options)).filter(|insert| !insert.is_empty());
        Self {
            place,
            options,
            charset,
            scripted: has_wombat() && !plain,
            has_base: false,
            holding: None,
            insert,
            depth,
        }
    }

    /// The text that comes next must be whole.
    pub(super) const fn holds(&self) -> bool {
        self.holding.is_some()
    }

    pub(super) fn start(&mut self, tag: &StartTag<'_>, copying: &mut Copying<'_>) {
        self.holding = if tag.holds_text {
            let kind = self.charset.word(tag.attributes, b"type");
            Holding::of(tag.name, &kind, self.scripted)
        } else {
            // In HTML the inside of a style is text; where it is not, this is one of SVG or MathML.
            (tag.is(b"style") && !tag.empty).then_some(Holding::SvgStyle)
        };
        let insert = self.insert.take_if(|_| !tag.is(b"html"));
        let is_head = insert.is_some() && tag.is(b"head");
        if let Some(insert) = insert.as_ref().filter(|_| !is_head) {
            self.charset.write(insert, copying.up_to(tag.start));
        }
        if !tag.attributes.is_empty() {
            self.attributes(tag, copying);
            self.charset.correct(tag.name, tag.attributes);
        }
        if let Some(insert) = insert.as_ref().filter(|_| is_head) {
            self.charset.write(insert, copying.up_to(tag.end));
        }
    }

    pub(super) fn end(&mut self) {
        self.holding = None;
    }

    /// `text` stands at `start`. Longer than any script, it passes as it is.
    pub(super) fn text(&mut self, text: &[u8], start: usize, copying: &mut Copying<'_>) {
        let Some(holding) = self.holding else { return };
        if holding == Holding::SvgStyle {
            return self.svg_style(text, start, copying);
        }
        self.holding = None;
        if text.len() > WHOLE_BYTES_MAX {
            return;
        }
        if let Some(changed) = holding.changed(&self.charset.text(text), &self.place) {
            self.charset.write(&changed, copying.replace(start, start + text.len()));
        }
    }

    /// One of the texts of a style in SVG, with its references decoded and written again.
    fn svg_style(&self, text: &[u8], start: usize, copying: &mut Copying<'_>) {
        if text.len() > WHOLE_BYTES_MAX {
            return;
        }
        let decoded = self.charset.text(text);
        let decoded = htmlize::unescape(decoded);
        if let Some(changed) = Holding::SvgStyle.changed(&decoded, &self.place) {
            let escaped = changed.replace('&', "&amp;").replace('<', "&lt;");
            self.charset.write(&escaped, copying.replace(start, start + text.len()));
        }
    }

    /// `<![CDATA[…]]>` that begins at `start`, with `text` inside: in SVG and MathML.
    pub(super) fn data(&mut self, text: &[u8], start: usize, copying: &mut Copying<'_>) {
        if self.holding != Some(Holding::SvgStyle) {
            return;
        }
        let start = start + b"<![CDATA[".len();
        if let Some(changed) = Holding::SvgStyle.changed(&self.charset.text(text), &self.place)
            && !changed.contains("]]>")
        {
            self.charset.write(&changed, copying.replace(start, start + text.len()));
        }
    }

    /// A page in an attribute of this one.
    pub(super) fn inner_page(&self, text: &str) -> Option<String> {
        if self.depth >= PAGES_DEEP_MAX {
            return None;
        }
        let charset = Charset::new(encoding_rs::UTF_8, true);
        let page = Self::new(self.place.clone(), self.options.clone(), charset, self.depth + 1);
        let mut html = Box::new(Html::of(page));
        let mut out = Vec::with_capacity(text.len() + text.len() / 4 + 4096);
        html.push(text.as_bytes(), &mut out);
        html.finish(&mut out);
        String::from_utf8(out).ok()
    }
}
