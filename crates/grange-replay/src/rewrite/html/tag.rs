//! The attributes of a tag, changed where they stand.

use htmlscan::Attribute;

use super::copying::Copying;
use super::held::Holding;
use super::page::Page;
use crate::rewrite::animated;
use crate::rewrite::attributes::{Around, Change, change, known, known_in_xml};

/// Where wombat looks for the address that a script had on the live page.
const ORIGINAL_SOURCE: &[u8] = b" __wb_orig_src";

#[derive(Debug)]
pub(super) struct StartTag<'a> {
    pub(super) name: &'a [u8],
    pub(super) attributes: &'a [Attribute<'a>],
    /// Where it begins in the piece at hand.
    pub(super) start: usize,
    /// Behind its `>`.
    pub(super) end: usize,
    /// What follows is text up to its end tag.
    pub(super) holds_text: bool,
    /// It ends in `/>`, which means something in SVG, MathML and XML.
    pub(super) empty: bool,
}

impl StartTag<'_> {
    pub(super) fn is(&self, name: &[u8]) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }
}

impl Page {
    pub(super) fn attributes(&mut self, tag: &StartTag<'_>, copying: &mut Copying<'_>) {
        // Most tags have none of these; nothing is asked of them that would cost more.
        let is_xml = self.charset.is_xml();
        let known = |name| if is_xml { known_in_xml(name) } else { known(name) };
        let Some(first) = tag.attributes.iter().position(|attribute| known(attribute.name).is_some()) else {
            return;
        };
        let mut lower = [0; NAME_MAX];
        let around = self.around(lower_case(self.local_name(tag.name), &mut lower), tag.attributes);
        let mut disarmed: Vec<&[u8]> = Vec::new();
        let mut base = None;
        for attribute in &tag.attributes[first..] {
            let Some(name) = known(attribute.name) else { continue };
            if attribute.repeated {
                // Without the first it would count.
                if disarmed.iter().any(|name| attribute.name.eq_ignore_ascii_case(name)) {
                    copying.up_to(attribute.start).push(b'_');
                }
                continue;
            }
            let value = self.charset.value(attribute.value);
            match change(&around, name, &value, &self.place) {
                Change::Keep => {}
                Change::Value(new) => self.set(attribute, &new, copying),
                Change::ValueKeepingSource(new) => {
                    self.set(attribute, &new, copying);
                    let out = copying.up_to(attribute.end);
                    out.extend_from_slice(ORIGINAL_SOURCE);
                    self.charset.write_value(&value, out);
                }
                Change::Disarm => {
                    copying.up_to(attribute.start).push(b'_');
                    disarmed.push(attribute.name);
                }
                Change::Base(new) => {
                    if let Some(new) = new {
                        self.set(attribute, &new, copying);
                    }
                    base = Some(value);
                }
                Change::Page => {
                    if let Some(page) = self.inner_page(&value) {
                        self.set(attribute, &page, copying);
                    }
                }
            }
        }
        // Only the first counts.
        if let Some(base) = base.filter(|_| !self.has_base) {
            self.has_base = true;
            self.place.rebase(&base);
        }
    }

    /// The name of an element without its prefix: in HTML it has none.
    pub(super) fn local_name<'n>(&self, name: &'n [u8]) -> &'n [u8] {
        let start =
            if self.charset.is_xml() { memchr::memrchr(b':', name).map_or(0, |at| at + 1) } else { 0 };
        &name[start..]
    }

    fn around<'t>(&self, tag: &'t str, attributes: &[Attribute<'_>]) -> Around<'t> {
        let word = |name: &[u8]| self.charset.word(attributes, name);
        let has = |name: &[u8]| attributes.iter().any(|attribute| attribute.name.eq_ignore_ascii_case(name));
        let is_link = tag == "link";
        Around {
            tag,
            rel: if is_link { word(b"rel") } else { String::new() },
            purpose: if is_link { word(b"as") } else { String::new() },
            meta: match tag {
                "meta" if has(b"http-equiv") => word(b"http-equiv"),
                "meta" => word(b"name"),
                _ => String::new(),
            },
            is_module: tag == "script" && self.holding == Some(Holding::Module),
            moves_link: animated::is_animation(tag) && animated::is_link(&word(b"attributename")),
            framed: self.options.framed,
            scripted: self.scripted,
        }
    }

    /// The value anew, in double quotes whatever it had.
    fn set(&self, attribute: &Attribute<'_>, value: &str, copying: &mut Copying<'_>) {
        let name_end = attribute.start + attribute.name.len();
        self.charset.write_value(value, copying.replace(name_end, attribute.end));
    }
}

/// Longer than any name that attributes are judged by.
const NAME_MAX: usize = 16;

/// Empty for names that are too long to matter, or not ASCII.
fn lower_case<'b>(name: &[u8], buffer: &'b mut [u8; NAME_MAX]) -> &'b str {
    let Some(lower) = buffer.get_mut(..name.len()) else { return "" };
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    std::str::from_utf8(lower).unwrap_or_default()
}
