//! What is known of a page while it passes, and what becomes of its parts.

use std::ops::Range;

use htmlscan::Dialect;

use super::Html;
use super::charset::Charset;
use super::copying::Copying;
use super::held::{Gathered, Holding};
use super::tag::StartTag;
use crate::rewrite::assets::has_wombat;
use crate::rewrite::head;
use crate::rewrite::modifier::Modifier;
use crate::rewrite::place::Place;
use crate::rewrite::transform::{Options, Transform, WHOLE_BYTES_MAX};
use crate::rewrite::{work, xml};

/// Pages within pages within pages (`srcdoc`); deeper ones are not looked into.
const PAGES_DEEP_MAX: u8 = 3;

pub(super) struct Page {
    pub(super) place: Place,
    pub(super) options: Options,
    pub(super) charset: Charset,
    /// Wombat is there, so that scripts can be changed to meet it.
    pub(super) scripted: bool,
    pub(super) has_base: bool,
    /// The first element of the page was seen.
    rooted: bool,
    /// What the text that comes next is, if it has to be seen as a whole.
    pub(super) holding: Option<Holding>,
    /// Of XML, as much of that text as came.
    gathered: Gathered,
    /// Yet to be put in.
    insert: Option<String>,
    depth: u8,
}

impl Page {
    pub(super) fn new(place: Place, options: Options, charset: Charset, depth: u8) -> Self {
        let plain = place.modifier() == Modifier::UrlsOnly;
        let insert = (!plain)
            .then(|| head::insert(&place, &options, charset.is_xml()))
            .filter(|insert| !insert.is_empty());
        Self {
            place,
            options,
            charset,
            scripted: has_wombat() && !plain,
            has_base: false,
            rooted: false,
            holding: None,
            gathered: Gathered::default(),
            insert,
            depth,
        }
    }

    /// The text that comes next must be whole.
    pub(super) const fn holds(&self) -> bool {
        self.holding.is_some()
    }

    /// Of the text that is held, what was taken from the input already.
    pub(super) const fn gathered_bytes(&self) -> usize {
        self.gathered.raw.len()
    }

    pub(super) fn start(&mut self, tag: &StartTag<'_>, copying: &mut Copying<'_>) {
        self.release(tag.start, copying);
        self.holding = if tag.holds_text || (self.charset.is_xml() && !tag.empty) {
            let kind = self.charset.word(tag.attributes, b"type");
            Holding::of(self.local_name(tag.name), &kind, self.scripted)
        } else {
            // In HTML the inside of a style is text; where it is not, this is one of SVG or MathML.
            (tag.is(b"style") && !tag.empty).then_some(Holding::SvgStyle)
        };
        if self.charset.is_xml() && !self.rooted {
            self.rooted = true;
            // In front of the root nothing may stand, and other roots are no pages with scripts.
            if !tag.is(b"html") {
                self.insert = None;
            }
        }
        let insert = self.insert.take_if(|_| !tag.is(b"html"));
        let is_head = insert.is_some() && tag.is(b"head") && !(self.charset.is_xml() && tag.empty);
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

    /// An end tag begins at `start`.
    pub(super) fn end(&mut self, start: usize, copying: &mut Copying<'_>) {
        if let Some(holding) = self.holding.take()
            && !self.gathered.raw.is_empty()
        {
            let Gathered { raw, text } = std::mem::take(&mut self.gathered);
            match holding.changed(&text, &self.place) {
                Some(changed) => self.charset.write_held(&changed, copying.up_to(start)),
                None => copying.up_to(start).extend_from_slice(&raw),
            }
        }
    }

    /// Nothing more is waited for: what was gathered passes as it is.
    pub(super) fn release(&mut self, start: usize, copying: &mut Copying<'_>) {
        if !self.gathered.raw.is_empty() {
            copying.up_to(start).extend_from_slice(&self.gathered.raw);
            self.gathered = Gathered::default();
        }
        self.holding = None;
    }

    /// A piece of the text of an element of XML, and what it means.
    fn gather(&mut self, raw: &[u8], text: &str, start: usize, copying: &mut Copying<'_>) {
        if self.gathered.raw.len() + raw.len() > WHOLE_BYTES_MAX {
            return self.release(start, copying);
        }
        work::spend(raw.len() + text.len());
        self.gathered.raw.extend_from_slice(raw);
        self.gathered.text.push_str(text);
        copying.replace(start, start + raw.len());
    }

    /// A section of data: in XML, and in the SVG and MathML of HTML.
    pub(super) fn data(&mut self, data: &[u8], at: Range<usize>, copying: &mut Copying<'_>) {
        let Some(holding) = self.holding else { return };
        if self.charset.is_xml() {
            let text = self.charset.text(data).into_owned();
            self.gather(copying.input(at.clone()), &text, at.start, copying);
        } else if holding == Holding::SvgStyle {
            self.svg_data(data, at.start, copying);
        }
    }

    /// Within a script of XML a comment is none of it.
    pub(super) fn comment(&mut self, at: Range<usize>, copying: &mut Copying<'_>) {
        if self.holding.is_some() && self.charset.is_xml() {
            self.gather(copying.input(at.clone()), "", at.start, copying);
        }
    }

    /// `<?xml-stylesheet href="…"?>`, as it stands at `start`.
    pub(super) fn instruction(&mut self, instruction: &[u8], start: usize, copying: &mut Copying<'_>) {
        if self.holding.is_some() {
            return self.gather(instruction, "", start, copying);
        }
        if let Some(changed) = xml::rewrite(&self.charset.text(instruction), &self.place) {
            self.charset.write(&changed, copying.replace(start, start + instruction.len()));
        }
    }

    /// `text` stands at `start`. Longer than any script, it passes as it is.
    pub(super) fn text(&mut self, text: &[u8], start: usize, copying: &mut Copying<'_>) {
        let Some(holding) = self.holding else { return };
        if self.charset.is_xml() {
            let meaning = self.charset.text(text);
            let meaning = if meaning.contains('&') {
                htmlize::unescape(meaning).into_owned()
            } else {
                meaning.into_owned()
            };
            return self.gather(text, &meaning, start, copying);
        }
        if holding == Holding::SvgStyle {
            return self.svg_style(text, start, copying);
        }
        self.holding = None;
        if text.len() > WHOLE_BYTES_MAX {
            return;
        }
        if let Some(changed) = holding.changed(&self.charset.text(text), &self.place) {
            self.charset.write_held(&changed, copying.replace(start, start + text.len()));
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

    /// The same for `<![CDATA[…]]>` that begins at `start`, with `text` inside.
    fn svg_data(&self, text: &[u8], start: usize, copying: &mut Copying<'_>) {
        let start = start + b"<![CDATA[".len();
        if let Some(changed) = Holding::SvgStyle.changed(&self.charset.text(text), &self.place)
            && !changed.contains("]]>")
        {
            self.charset.write(&changed, copying.replace(start, start + text.len()));
        }
    }

    /// A page in an attribute of this one: HTML also in XHTML.
    pub(super) fn inner_page(&self, text: &str) -> Option<String> {
        if self.depth >= PAGES_DEEP_MAX {
            return None;
        }
        let charset = Charset::new(encoding_rs::UTF_8, true, Dialect::Browser);
        let page = Self::new(self.place.clone(), self.options.clone(), charset, self.depth + 1);
        let mut html = Box::new(Html::of(page));
        let mut out = Vec::with_capacity(text.len() + text.len() / 4 + 4096);
        html.push(text.as_bytes(), &mut out);
        html.finish(&mut out);
        String::from_utf8(out).ok()
    }
}
