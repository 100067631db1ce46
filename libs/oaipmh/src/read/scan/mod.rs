//! Walks through the text of an answer, element by element, and gives items as they end.
//!
//! One pass, forwards only. What cannot be decided before more text comes is left standing, so the cut of the body
//! into pieces changes nothing. Every position is an index into the text at hand until it leaves in a problem.

mod close;
mod marks;
mod open;
mod qualify;

use std::ops::Range;

use super::Limits;
use super::capture::Capture;
use super::decode::Input;
use super::draft::{ItemDraft, LeafAttributes, PageDraft};
use super::names;
use super::namespace::Namespaces;
use super::part::Part;
use super::tag::{self, Attribute, Tag};
use super::text;
use crate::{Item, Kind};

/// Bytes of one field of the protocol: an identifier or a token of this length is nonsense.
const LEAF_MAX: usize = 1 << 20;

/// Bytes before the XML in which notices and blanks are skipped.
const JUNK_MAX: usize = 64 << 10;

/// Between which marks the position is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Nothing of the document was seen.
    Before,
    Content,
    Section,
    /// Inside a comment that starts here.
    Comment(usize),
    /// Inside a processing instruction that starts here.
    Instruction(usize),
    /// Inside a DOCTYPE that starts here; in its internal subset or not.
    Doctype(usize, bool),
    /// The rest is of no interest.
    Done,
}

#[derive(Debug)]
struct Open {
    name: Range<usize>,
    part: Part,
    /// Namespaces declared before it.
    mark: usize,
    /// The container holds its element already.
    full: bool,
}

#[derive(Debug)]
pub(super) struct Scanner {
    limits: Limits,
    pub(super) input: Input,
    at: usize,
    /// Nothing follows the text at hand.
    ended: bool,
    mode: Mode,
    stack: Vec<Open>,
    /// Names of the open elements, end to end.
    names: String,
    /// Elements open beyond the depth that is kept.
    beyond: usize,
    namespaces: Namespaces,
    attributes: Vec<Attribute>,
    capture: Option<Capture>,
    leaf: String,
    leaf_full: bool,
    leaf_attributes: LeafAttributes,
    root_seen: bool,
    /// Text that should not be there was reported for this container or for the outside.
    stray: bool,
    pub(super) page: PageDraft,
    item: ItemDraft,
    ready: Option<Item>,
}

impl Scanner {
    pub(super) fn new(limits: Limits) -> Scanner {
        Scanner {
            limits,
            input: Input::default(),
            at: 0,
            ended: false,
            mode: Mode::Before,
            stack: Vec::new(),
            names: String::new(),
            beyond: 0,
            namespaces: Namespaces::default(),
            attributes: Vec::new(),
            capture: None,
            leaf: String::new(),
            leaf_full: false,
            leaf_attributes: LeafAttributes::default(),
            root_seen: false,
            stray: false,
            page: PageDraft::default(),
            item: ItemDraft::default(),
            ready: None,
        }
    }

    /// Forgets text that was used. To be called before more of it comes.
    pub(super) fn compact(&mut self) {
        if self.mode == Mode::Done {
            self.at = self.input.text.len();
        }
        let keep = self.capture.as_ref().map_or(self.at, |capture| capture.start);
        if keep == 0 || keep < self.input.text.len() / 2 {
            return;
        }
        self.input.text.drain(..keep);
        self.input.base += keep as u64;
        self.at -= keep;
        if let Some(capture) = &mut self.capture {
            capture.start -= keep;
        }
        // Outside of a capture nothing looks back to where a mark started.
        match &mut self.mode {
            Mode::Comment(start) | Mode::Instruction(start) | Mode::Doctype(start, _) => {
                *start = start.saturating_sub(keep);
            }
            _ => {}
        }
    }

    /// The next item that is complete.
    pub(super) fn next_item(&mut self) -> Option<Item> {
        loop {
            let going = self.step();
            if self.ready.is_some() {
                return self.ready.take();
            }
            if !going {
                return None;
            }
        }
    }

    /// Says that nothing follows.
    pub(super) fn end(&mut self) {
        self.ended = true;
    }

    /// Looks at what is left when everything was read.
    pub(super) fn conclude(&mut self) {
        let end = self.input.base + self.input.text.len() as u64;
        if !self.root_seen && self.mode != Mode::Done {
            let nothing = self.mode == Mode::Before && self.input.text.trim().is_empty();
            let kind = if nothing { Kind::Empty } else { Kind::NotOaiPmh };
            self.page.problems.add(0, kind);
        } else if !self.page.complete && self.mode != Mode::Done {
            let identifier = self.item.header.identifier.as_str();
            let detail = if self.item.start.is_some() { identifier } else { "" };
            self.page.problems.add_with(end, Kind::Truncated, || detail);
        }
        for note in std::mem::take(&mut self.input.notes) {
            self.page.problems.push(note);
        }
    }

    fn step(&mut self) -> bool {
        match self.mode {
            Mode::Before => self.before(),
            Mode::Content => self.content(),
            Mode::Section => self.section(),
            Mode::Comment(start) => self.comment(start),
            Mode::Instruction(start) => self.instruction(start),
            Mode::Doctype(start, subset) => self.doctype(start, subset),
            Mode::Done => false,
        }
    }

    fn offset(&self, at: usize) -> u64 {
        self.input.base + at as u64
    }

    fn problem(&mut self, at: usize, kind: Kind) {
        self.problem_with(at, kind, "");
    }

    fn problem_with(&mut self, at: usize, kind: Kind, detail: &str) {
        let offset = self.offset(at);
        let list = if self.item.start.is_some() { &mut self.item.problems } else { &mut self.page.problems };
        list.add_with(offset, kind, || detail);
    }

    /// Finds the start of the document behind blanks and notices.
    fn before(&mut self) -> bool {
        let text = &self.input.text;
        let start = find_document(text);
        if start.is_none() && text.len() < JUNK_MAX && !self.ended {
            return false;
        }
        let Some(start) = start.or_else(|| first_bracket(text)) else {
            if !text.trim().is_empty() {
                self.page.problems.add(0, Kind::NotOaiPmh);
                self.mode = Mode::Done;
            }
            return false;
        };
        if !text[..start].trim().is_empty() || (start > 0 && text[start..].starts_with("<?xml")) {
            self.page.problems.add(0, Kind::LeadingBytes);
        }
        self.at = start;
        self.mode = Mode::Content;
        true
    }

    fn content(&mut self) -> bool {
        let text = &self.input.text;
        let Some(first) = text.as_bytes().get(self.at) else { return false };
        if *first != b'<' {
            let rest = &text[self.at..];
            let length = match memchr::memchr(b'<', rest.as_bytes()) {
                Some(length) => length,
                None if self.ended => rest.len(),
                None => text::settled(rest),
            };
            if length == 0 {
                return false;
            }
            self.characters(self.at..self.at + length);
            self.at += length;
            self.check_size();
            return true;
        }
        let rest = &text.as_bytes()[self.at..];
        match rest.get(1) {
            None => {
                if self.ended {
                    self.less_than();
                }
                self.ended
            }
            Some(b'!') => self.declaration(),
            Some(b'?') => {
                // `<?xml` and one more byte tell an inner prolog.
                if rest.len() < 6 && !self.ended {
                    return false;
                }
                let prolog = rest.starts_with(b"<?xml") && rest.get(5).is_some_and(u8::is_ascii_whitespace);
                if prolog && (!self.stack.is_empty() || self.root_seen) {
                    self.problem(self.at, Kind::InnerProlog);
                }
                self.mode = Mode::Instruction(self.at);
                self.at += 2;
                true
            }
            Some(b'/' | b'A'..=b'Z' | b'a'..=b'z' | b'_' | 0x80..) => {
                match tag::find(text, self.at, self.ended) {
                    Tag::Start { name, end, empty } => self.start_tag(name, end, empty),
                    Tag::End { name, end } => {
                        self.end_tag(name, end);
                        self.at = end;
                        true
                    }
                    Tag::None => {
                        self.less_than();
                        true
                    }
                    Tag::Incomplete => false,
                }
            }
            Some(_) => {
                self.less_than();
                true
            }
        }
    }

    /// A `<` that starts nothing.
    fn less_than(&mut self) {
        if self.capture.is_some() {
            self.problem(self.at, Kind::UnescapedLess);
            self.repair(self.at, 1, "&lt;");
        } else if let Some(Part::Leaf(_)) = self.top() {
            self.problem(self.at, Kind::UnescapedLess);
            self.fill_leaf(|leaf| leaf.push('<'));
        } else {
            self.outside(self.at..self.at + 1);
        }
        self.at += 1;
    }

    fn top(&self) -> Option<Part> {
        self.stack.last().map(|open| open.part)
    }

    fn repair(&mut self, at: usize, cut: usize, put: impl Into<std::borrow::Cow<'static, str>>) {
        if let Some(capture) = &mut self.capture
            && !capture.repair(at, cut, put)
        {
            self.lose(Kind::TooDamaged);
        }
    }

    /// Gives up the content of the item, but not the item.
    fn lose(&mut self, kind: Kind) {
        self.item.lost.get_or_insert(kind);
        self.capture = None;
    }

    fn check_size(&mut self) {
        if let Some(start) = self.item.start
            && self.offset(self.at) - start > self.limits.record_bytes_max as u64
            && self.item.lost.is_none()
        {
            self.lose(Kind::TooLarge);
        }
    }

    /// Text between tags.
    fn characters(&mut self, range: Range<usize>) {
        if let Some(capture) = &mut self.capture {
            let mut sound = true;
            let base = self.input.base;
            let problems = &mut self.item.problems;
            text::flaws(&self.input.text[range.clone()], |flaw| {
                problems.add(base + (range.start + flaw.at) as u64, flaw.kind);
                sound &= capture.repair(range.start + flaw.at, flaw.length, flaw.instead);
            });
            if !sound {
                self.lose(Kind::TooDamaged);
            }
        } else if let Some(Part::Leaf(_)) = self.top() {
            let mut wrong = Vec::new();
            let piece = &self.input.text[range.clone()];
            if !self.leaf_full {
                text::unescape(piece, &mut self.leaf, |at, kind| wrong.push((at, kind)));
                self.trim_leaf();
            }
            for (at, kind) in wrong {
                self.problem(range.start + at, kind);
            }
        } else {
            self.outside(range);
        }
    }

    fn fill_leaf(&mut self, add: impl FnOnce(&mut String)) {
        if !self.leaf_full {
            add(&mut self.leaf);
            self.trim_leaf();
        }
    }

    fn trim_leaf(&mut self) {
        if self.leaf.len() > LEAF_MAX {
            self.leaf.truncate(self.leaf.floor_char_boundary(LEAF_MAX));
            self.leaf_full = true;
            self.problem(self.at, Kind::TooLarge);
        }
    }

    /// Text that belongs to nothing.
    fn outside(&mut self, range: Range<usize>) {
        let kind = match self.top() {
            None if !self.root_seen => Kind::LeadingBytes,
            None => Kind::TrailingBytes,
            Some(Part::Container(_)) if self.item.lost.is_none() => Kind::StrayText,
            Some(_) => return,
        };
        let text = &self.input.text[range.clone()];
        let blanks = text.len() - text.trim_start().len();
        if blanks < text.len() && !self.stray {
            self.stray = true;
            self.problem(range.start + blanks, kind);
        }
    }
}

fn is_declaration(name: &str) -> bool {
    name == "xmlns" || name.starts_with("xmlns:")
}

/// Where a document starts: at its declaration or at its root element.
fn find_document(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let prolog = memchr::memmem::find(bytes, b"<?xml");
    let until = prolog.unwrap_or(bytes.len());
    let root = memchr::memmem::find_iter(&bytes[..until], b"OAI-PMH").find_map(|at| {
        let bracket = memchr::memrchr(b'<', &bytes[..at])?;
        let prefix = &text[bracket + 1..at];
        (prefix.is_empty() || prefix.strip_suffix(':').is_some_and(|prefix| names::split(prefix).is_some()))
            .then_some(bracket)
    });
    root.or(prolog)
}

fn first_bracket(text: &str) -> Option<usize> {
    let at = text.len() - text.trim_start().len();
    text[at..].starts_with('<').then_some(at)
}
