//! SVG and MathML within HTML: where a page is markup of another kind, and where that holds HTML again.
//!
//! The standard decides this by the stack of open elements. Here only those elements are kept that lead in and out:
//! enough for what a tokenizer has to know, and a number to copy.

use crate::tag::Attribute;

/// Open elements that lead in or out, three bits each, the innermost lowest. Full at [`LEVELS_MAX`]; deeper ones are
/// taken for what surrounds them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Foreign(u64);

const BITS: u32 = 3;
const LEVELS_MAX: u32 = u64::BITS / BITS;

/// What a level is, as a number. None open: HTML.
const SVG: u64 = 1;
const MATH: u64 = 2;
/// These hold HTML: elements of SVG,
const FOREIGN_OBJECT: u64 = 3;
const DESC: u64 = 4;
const TITLE: u64 = 5;
/// `mi`, `mo`, `mn`, `ms`, `mtext`,
const MATH_TEXT: u64 = 6;
/// and `annotation-xml` that says so.
const ANNOTATION: u64 = 7;

impl Foreign {
    /// The inside of what is open is SVG or MathML.
    pub(crate) const fn is_inside(self) -> bool {
        matches!(self.level(), SVG | MATH)
    }

    /// A start tag was read.
    pub(crate) fn start(&mut self, name: &[u8], empty: bool, attributes: &[Attribute<'_>]) {
        // Nearly every tag of nearly every page.
        if self.0 == 0 && !matches!(name, [b's' | b'S', _, _] | [b'm' | b'M', _, _, _]) {
            return;
        }
        let mut lower = [0; NAME_MAX];
        let name = lower_case(name, &mut lower);
        let level = match (self.level(), name) {
            (SVG | MATH, _) if leaves(name, attributes) => return self.leave(),
            (SVG, b"foreignobject") => FOREIGN_OBJECT,
            (SVG, b"desc") => DESC,
            (SVG, b"title") => TITLE,
            (MATH, b"mi" | b"mo" | b"mn" | b"ms" | b"mtext") => MATH_TEXT,
            (MATH, b"annotation-xml") if is_html(attributes) => ANNOTATION,
            // In SVG `math` is an element of SVG without a meaning.
            (SVG, b"math") => return,
            (_, b"svg") => SVG,
            (_, b"math") => MATH,
            _ => return,
        };
        if !empty && self.0 >> (BITS * (LEVELS_MAX - 1)) == 0 {
            self.0 = self.0 << BITS | level;
        }
    }

    /// An end tag was read that does not end a text.
    pub(crate) fn end(&mut self, name: &[u8]) {
        if self.0 == 0 {
            return;
        }
        let mut lower = [0; NAME_MAX];
        match (self.level(), lower_case(name, &mut lower)) {
            (SVG | MATH, b"p" | b"br") => self.leave(),
            (SVG, b"svg")
            | (MATH, b"math")
            | (FOREIGN_OBJECT, b"foreignobject")
            | (DESC, b"desc")
            | (TITLE, b"title")
            | (MATH_TEXT, b"mi" | b"mo" | b"mn" | b"ms" | b"mtext")
            | (ANNOTATION, b"annotation-xml") => self.0 >>= BITS,
            // Left open, as in `<svg><title>x</svg>`: both end.
            (DESC | TITLE, b"svg") | (MATH_TEXT, b"math") => self.0 >>= 2 * BITS,
            _ => {}
        }
    }

    const fn level(self) -> u64 {
        self.0 & ((1 << BITS) - 1)
    }

    fn leave(&mut self) {
        while self.is_inside() {
            self.0 >>= BITS;
        }
    }
}

/// HTML that cannot stand inside SVG or MathML and therefore ends it.
fn leaves(name: &[u8], attributes: &[Attribute<'_>]) -> bool {
    match name {
        b"b" | b"big" | b"blockquote" | b"body" | b"br" | b"center" | b"code" | b"dd" | b"div" | b"dl"
        | b"dt" | b"em" | b"embed" | b"h1" | b"h2" | b"h3" | b"h4" | b"h5" | b"h6" | b"head" | b"hr"
        | b"i" | b"img" | b"li" | b"listing" | b"menu" | b"meta" | b"nobr" | b"ol" | b"p" | b"pre"
        | b"ruby" | b"s" | b"small" | b"span" | b"strong" | b"strike" | b"sub" | b"sup" | b"table"
        | b"tt" | b"u" | b"ul" | b"var" => true,
        b"font" => attributes.iter().any(|attribute| {
            [&b"color"[..], b"face", b"size"].iter().any(|name| attribute.name.eq_ignore_ascii_case(name))
        }),
        _ => false,
    }
}

/// Of `annotation-xml`: its attributes say that it holds HTML.
fn is_html(attributes: &[Attribute<'_>]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.name.eq_ignore_ascii_case(b"encoding")
            && (attribute.value.eq_ignore_ascii_case(b"text/html")
                || attribute.value.eq_ignore_ascii_case(b"application/xhtml+xml"))
    })
}

/// Longer than any name that matters here.
const NAME_MAX: usize = 16;

/// Empty for names that are too long to matter.
fn lower_case<'b>(name: &[u8], buffer: &'b mut [u8; NAME_MAX]) -> &'b [u8] {
    let Some(lower) = buffer.get_mut(..name.len()) else { return &[] };
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    lower
}
