//! Walks through the text of an answer, element by element, and gives items as they end.
//!
//! One pass, forwards only. What cannot be decided before more text comes is left standing, so the cut of the body
//! into pieces changes nothing. Every position is an index into the text at hand until it leaves in a problem.

use std::ops::Range;

use super::Limits;
use super::capture::Capture;
use super::decode::Input;
use super::draft::{ItemDraft, LeafAttributes, PageDraft, fill};
use super::names;
use super::namespace::{self, Namespaces};
use super::part::{Part, child};
use super::tag::{self, Attribute, Tag};
use super::text;
use crate::{Item, Kind, NAMESPACE, Problem};

/// Bytes of one field of the protocol: an identifier or a token of this length is nonsense.
const LEAF_MAX: usize = 1 << 20;

/// Bytes before the XML in which notices and blanks are skipped.
const JUNK_MAX: usize = 64 << 10;

/// Blanks between the tags of a record and its header that are looked through when a record was not closed.
const GAP_MAX: usize = 1024;

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

    /// `<!…`: a comment, a section, a DOCTYPE, or text.
    fn declaration(&mut self) -> bool {
        let rest = &self.input.text.as_bytes()[self.at..];
        let is = |mark: &[u8]| rest.len() >= mark.len() && rest[..mark.len()].eq_ignore_ascii_case(mark);
        let may_be = |mark: &[u8]| rest.len() < mark.len() && rest.eq_ignore_ascii_case(&mark[..rest.len()]);
        let marks: [&[u8]; 3] = [b"<!--", b"<![CDATA[", b"<!DOCTYPE"];
        if is(marks[0]) {
            self.mode = Mode::Comment(self.at);
            self.at += marks[0].len();
        } else if rest.starts_with(marks[1]) {
            self.mode = Mode::Section;
            self.at += marks[1].len();
        } else if is(marks[2]) {
            if !self.stack.is_empty() {
                self.problem(self.at, Kind::InnerProlog);
            }
            self.mode = Mode::Doctype(self.at, false);
            self.at += marks[2].len();
        } else if !self.ended && marks.iter().any(|mark| may_be(mark)) {
            return false;
        } else {
            self.less_than();
        }
        true
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

    /// The end mark of a section, comment or instruction, or how far it certainly does not stand.
    fn find_end(&self, mark: &str) -> Result<usize, usize> {
        let rest = &self.input.text[self.at..];
        if let Some(length) = memchr::memmem::find(rest.as_bytes(), mark.as_bytes()) {
            return Ok(self.at + length);
        }
        let kept = if self.ended { 0 } else { mark.len() - 1 };
        Err(self.at + rest.floor_char_boundary(rest.len().saturating_sub(kept)))
    }

    fn section(&mut self) -> bool {
        let (end, next, found) = match self.find_end("]]>") {
            Ok(end) => (end, end + 3, true),
            Err(end) => (end, end, false),
        };
        let range = self.at..end;
        if self.capture.is_none() {
            if let Some(Part::Leaf(_)) = self.top() {
                if !self.leaf_full {
                    self.leaf.push_str(&self.input.text[range]);
                    self.trim_leaf();
                }
            } else {
                self.outside(range);
            }
        }
        self.at = next;
        if found {
            self.mode = Mode::Content;
        }
        self.check_size();
        found
    }

    fn comment(&mut self, start: usize) -> bool {
        match self.find_end("-->") {
            Ok(end) => {
                if self.capture.is_some() {
                    let inside = &self.input.text[start + "<!--".len()..end];
                    if inside.contains("--") || inside.ends_with('-') {
                        self.problem(start, Kind::BadComment);
                        self.repair(start, end + 3 - start, "");
                    }
                }
                self.leave(end + 3);
                true
            }
            Err(end) => self.wait(end),
        }
    }

    fn instruction(&mut self, start: usize) -> bool {
        match self.find_end("?>") {
            Ok(end) => {
                if self.capture.is_some() {
                    let inside = &self.input.text[start + "<?".len()..end];
                    let target = inside.split(|c: char| c.is_ascii_whitespace()).next().unwrap_or_default();
                    if !names::is_target(target) {
                        if target != "xml" {
                            self.problem(start, Kind::BadComment);
                        }
                        self.repair(start, end + 2 - start, "");
                    }
                }
                self.leave(end + 2);
                true
            }
            Err(end) => self.wait(end),
        }
    }

    fn doctype(&mut self, start: usize, subset: bool) -> bool {
        let rest = &self.input.text.as_bytes()[self.at..];
        let Some(length) = memchr::memchr3(b'[', b']', b'>', rest) else {
            return self.wait(self.input.text.len());
        };
        let mark = rest[length];
        let next = self.at + length + 1;
        if mark == b'>' && !subset {
            if self.capture.is_some() {
                self.repair(start, next - start, "");
            }
            self.leave(next);
        } else {
            self.mode = Mode::Doctype(start, if mark == b'>' { subset } else { mark == b'[' });
            self.at = next;
        }
        true
    }

    fn leave(&mut self, at: usize) {
        self.at = at;
        self.mode = Mode::Content;
        self.check_size();
    }

    fn wait(&mut self, at: usize) -> bool {
        self.at = at;
        self.check_size();
        false
    }

    fn start_tag(&mut self, name: Range<usize>, end: usize, empty: bool) -> bool {
        let text = &self.input.text;
        let Some((prefix, local)) = names::split(&text[name.clone()]) else {
            self.less_than();
            return true;
        };
        let (prefix, local) = (name.start..name.start + prefix.len(), name.end - local.len()..name.end);
        let inside = name.end..end - 1 - usize::from(empty);
        let syntax = if inside.is_empty() {
            self.attributes.clear();
            None
        } else {
            tag::attributes(text, inside.clone(), &mut self.attributes)
        };
        if self.is_next_record(&prefix, &local, empty) {
            let Some(next) = self.header_follows(&prefix, end) else { return false };
            if next {
                self.give_up_record();
                return true;
            }
        }
        let mark = self.namespaces.mark();
        let declared = self.declare();
        let parent = self.top();
        match parent {
            _ if self.capture.is_some() || matches!(parent, Some(Part::Container(_))) => {
                self.foreign_start(name, prefix, inside, mark, syntax.or(declared), end, empty);
            }
            _ => self.own_start(name, prefix, local, mark, end, empty),
        }
        self.at = end;
        self.check_size();
        true
    }

    /// Binds the namespaces the tag declares; those it may not declare are dropped.
    fn declare(&mut self) -> Option<Kind> {
        let text = &self.input.text;
        let mut wrong = None;
        for attribute in &mut self.attributes {
            let prefix = match text[attribute.name.clone()].strip_prefix("xmlns") {
                Some("") => "",
                Some(prefix) if prefix.starts_with(':') => &prefix[1..],
                _ => continue,
            };
            let mut uri = String::new();
            text::unescape(&text[attribute.value.clone()], &mut uri, |_, _| ());
            let sound = match prefix {
                // `xmlns:=` is nobody's declaration.
                "" if attribute.name.len() > "xmlns".len() => false,
                "" => uri != namespace::XML && uri != namespace::XMLNS,
                "xml" => uri == namespace::XML,
                _ => {
                    let name = names::split(prefix).is_some_and(|(none, _)| none.is_empty());
                    name && prefix != "xmlns"
                        && ![namespace::XML, namespace::XMLNS, ""].contains(&uri.as_str())
                }
            };
            if sound {
                let ours = uri == NAMESPACE;
                self.namespaces.declare(prefix, &uri, ours);
            } else {
                attribute.dropped = true;
                wrong = Some(Kind::BadAttribute);
            }
        }
        wrong
    }

    fn push(&mut self, name: Range<usize>, part: Part, mark: usize) {
        let start = self.names.len();
        self.names.push_str(&self.input.text[name]);
        self.stack.push(Open { name: start..self.names.len(), part, mark, full: false });
    }

    fn own_start(
        &mut self,
        name: Range<usize>,
        prefix: Range<usize>,
        local: Range<usize>,
        mark: usize,
        end: usize,
        empty: bool,
    ) {
        let binding = self.namespaces.find(&self.input.text[prefix.clone()]);
        let part = match self.top() {
            None => match self.root(&prefix, &local, binding) {
                Some(part) => part,
                None => return,
            },
            Some(Part::Ignored | Part::Leaf(_) | Part::Foreign) => Part::Ignored,
            // An element in no namespace at all is taken for what it is called.
            Some(_) if binding.is_some_and(|binding| !self.namespaces.is_ours(binding)) => Part::Ignored,
            Some(parent) => {
                let (part, spelt) = child(parent, &self.input.text[local]);
                if !spelt {
                    self.problem(name.start, Kind::MisspeltElement);
                }
                part
            }
        };
        if part == Part::Ignored && self.stack.len() >= self.limits.depth_max {
            if empty {
                self.namespaces.forget(mark);
            } else {
                self.beyond += 1;
            }
            return;
        }
        self.begin(part, name.start);
        self.push(name, part, mark);
        if empty {
            self.pop(end, end);
        }
    }

    fn root(&mut self, prefix: &Range<usize>, local: &Range<usize>, binding: Option<usize>) -> Option<Part> {
        if self.root_seen {
            if !self.stray {
                self.problem(self.at, Kind::TrailingBytes);
            }
            self.mode = Mode::Done;
            return None;
        }
        let local = &self.input.text[local.clone()];
        if !local.eq_ignore_ascii_case("OAI-PMH") {
            let kind = if local.eq_ignore_ascii_case("html") { Kind::HtmlPage } else { Kind::NotOaiPmh };
            let detail = local.to_owned();
            self.problem_with(prefix.start, kind, &detail);
            self.mode = Mode::Done;
            return None;
        }
        self.root_seen = true;
        self.stray = false;
        match binding {
            Some(binding) if self.namespaces.is_ours(binding) => {}
            Some(binding) => {
                let uri = self.namespaces.uri(binding).to_owned();
                self.problem_with(prefix.start, Kind::MissingNamespace, &uri);
                self.namespaces.adopt(binding);
            }
            None => self.problem(prefix.start, Kind::MissingNamespace),
        }
        Some(Part::Root)
    }

    /// An element of the protocol begins.
    fn begin(&mut self, part: Part, at: usize) {
        match part {
            Part::Verb(verb) => {
                self.page.verb.get_or_insert(verb);
                if verb == crate::Verb::Identify {
                    self.item.start = Some(self.offset(at));
                }
            }
            Part::Record => {
                self.item.start = Some(self.offset(at));
                self.item.is_record = true;
            }
            Part::Set | Part::Format => self.item.start = Some(self.offset(at)),
            Part::Header => {
                self.item.start.get_or_insert(self.input.base + at as u64);
                if self
                    .attribute("status")
                    .is_some_and(|status| status.trim().eq_ignore_ascii_case("deleted"))
                {
                    self.item.header.deleted = true;
                }
            }
            Part::Container(_) => self.stray = false,
            Part::Leaf(_) => {
                self.leaf.clear();
                self.leaf_full = false;
                if !self.attributes.is_empty() {
                    let number = |text: Option<String>| text.and_then(|text| text.trim().parse().ok());
                    self.leaf_attributes = LeafAttributes {
                        code: self.attribute("code").unwrap_or_default(),
                        cursor: number(self.attribute("cursor")),
                        complete_list_size: number(self.attribute("completeListSize")),
                        expiration_date: self
                            .attribute("expirationDate")
                            .and_then(|text| crate::Datestamp::parse_lenient(&text)),
                    };
                }
            }
            Part::Root | Part::Foreign | Part::Ignored => {}
        }
    }

    fn attribute(&self, name: &str) -> Option<String> {
        let text = &self.input.text;
        let attribute = self.attributes.iter().find(|attribute| text[attribute.name.clone()] == *name)?;
        let mut value = String::new();
        text::unescape(&text[attribute.value.clone()], &mut value, |_, _| ());
        Some(value)
    }

    #[allow(clippy::too_many_arguments)] // one tag, taken apart once
    fn foreign_start(
        &mut self,
        name: Range<usize>,
        prefix: Range<usize>,
        inside: Range<usize>,
        mark: usize,
        wrong: Option<Kind>,
        end: usize,
        empty: bool,
    ) {
        if self.capture.is_none() {
            if let Some(container) = self.stack.last_mut()
                && std::mem::replace(&mut container.full, true)
                && self.item.lost.is_none()
            {
                self.problem(name.start - 1, Kind::SeveralRoots);
                self.push(name, Part::Ignored, mark);
                if empty {
                    self.pop(end, end);
                }
                return;
            }
            if self.item.lost.is_none() {
                self.namespaces.forget_uses();
                let own = self.namespaces.mark();
                self.capture = Some(Capture::new(name.start - 1, name.end, self.stack.len(), mark, own));
            }
        }
        if self.stack.len() >= self.limits.depth_max {
            self.lose(Kind::TooDeep);
            self.namespaces.forget(mark);
            self.beyond += usize::from(!empty);
            return;
        }
        if self.capture.is_some() {
            self.check_names(prefix, inside, wrong);
        }
        let part = if self.item.lost.is_some() { Part::Ignored } else { Part::Foreign };
        self.push(name, part, mark);
        if empty {
            self.pop(end, end);
        }
    }

    /// Binds every prefix of a tag and has its attributes written properly.
    fn check_names(&mut self, prefix: Range<usize>, inside: Range<usize>, syntax: Option<Kind>) {
        let at = inside.start;
        let mut wrong = syntax;
        let mut attributes = std::mem::take(&mut self.attributes);
        self.bind(prefix.clone(), prefix.is_empty());
        for index in 0..attributes.len() {
            let (before, rest) = attributes.split_at_mut(index);
            let attribute = &mut rest[0];
            let full = attribute.name.clone();
            let text = &self.input.text;
            let mut flawed = None;
            tag::value_flaws(&text[attribute.value.clone()], |flaw| flawed = Some(flaw.kind));
            wrong = wrong.or(flawed);
            if attribute.dropped
                || text[full.clone()].starts_with("xmlns") && is_declaration(&text[full.clone()])
            {
                if before.iter().any(|other| text[other.name.clone()] == text[full.clone()]) {
                    attribute.dropped = true;
                    wrong = Some(Kind::DuplicateAttribute);
                }
                continue;
            }
            let Some((prefix, local)) = names::split(&text[full.clone()]) else {
                attribute.dropped = true;
                wrong = wrong.or(Some(Kind::BadAttribute));
                continue;
            };
            let prefix = full.start..full.start + prefix.len();
            let local = full.end - local.len()..full.end;
            if !prefix.is_empty() {
                self.bind(prefix.clone(), false);
            }
            let text = &self.input.text;
            let same = |other: &Attribute| {
                let other_name = &text[other.name.clone()];
                if *other_name == text[full.clone()] {
                    return true;
                }
                let Some((other_prefix, other_local)) = names::split(other_name) else { return false };
                !other.dropped
                    && !prefix.is_empty()
                    && !other_prefix.is_empty()
                    && *other_local == text[local.clone()]
                    && self.same_namespace(other_prefix, &text[prefix.clone()])
            };
            if before.iter().any(same) {
                attribute.dropped = true;
                wrong = Some(Kind::DuplicateAttribute);
            }
        }
        if let Some(kind) = wrong {
            self.problem(at, kind);
            let mut rebuilt = String::new();
            tag::rebuild(&self.input.text, &attributes, &mut rebuilt);
            self.repair(at, inside.len(), rebuilt);
        }
        self.attributes = attributes;
    }

    fn same_namespace(&self, one: &str, other: &str) -> bool {
        match (self.namespaces.find(one), self.namespaces.find(other)) {
            (Some(one), Some(other)) => self.namespaces.uri(one) == self.namespaces.uri(other),
            _ => false,
        }
    }

    /// Notes the use of a prefix, or gives it a namespace.
    fn bind(&mut self, prefix: Range<usize>, default: bool) {
        let text = &self.input.text[prefix.clone()];
        if text == "xml" {
            return;
        }
        if let Some(binding) = self.namespaces.find(text) {
            self.namespaces.note_use(binding);
            return;
        }
        if default {
            return;
        }
        let usual = namespace::usual(text);
        let made_up = || usual.map_or_else(|| format!("urn:undeclared-prefix:{text}"), str::to_owned);
        if self.capture.as_mut().is_some_and(|capture| capture.declare(text, made_up)) {
            let kind = if usual.is_some() { Kind::KnownNamespace } else { Kind::UnboundPrefix };
            let detail = text.to_owned();
            self.problem_with(prefix.start, kind, &detail);
        }
    }

    /// Whether this tag may start another record while one is open: the end of the open one was lost.
    fn is_next_record(&self, prefix: &Range<usize>, local: &Range<usize>, empty: bool) -> bool {
        let text = &self.input.text;
        self.item.is_record
            && !empty
            && text[local.clone()] == *"record"
            && self.attributes.iter().all(|attribute| !is_declaration(&text[attribute.name.clone()]))
            && match self.namespaces.find(&text[prefix.clone()]) {
                Some(binding) => self.namespaces.is_ours(binding),
                None => prefix.is_empty(),
            }
    }

    /// Whether a header follows; `None` if more text is needed to tell.
    fn header_follows(&self, prefix: &Range<usize>, end: usize) -> Option<bool> {
        let text = &self.input.text;
        let rest = text[end..].trim_start();
        let gap = text.len() - end - rest.len();
        let prefix = &text[prefix.clone()];
        let header = if prefix.is_empty() { "<header".to_owned() } else { format!("<{prefix}:header") };
        if rest.len() < header.len() && header.starts_with(rest) && gap <= GAP_MAX && !self.ended {
            return None;
        }
        Some(gap <= GAP_MAX && rest.starts_with(&header))
    }

    /// Ends a record that nobody ended.
    fn give_up_record(&mut self) {
        self.lose(Kind::MismatchedTag);
        self.beyond = 0;
        while let Some(part) = self.top() {
            self.pop(self.at, self.at);
            if part == Part::Record {
                break;
            }
        }
    }

    fn end_tag(&mut self, name: Range<usize>, end: usize) {
        let start = self.at;
        let behind = name.end..end - 1;
        let name = &self.input.text[name];
        let is = |open: &Open| self.names[open.name.clone()] == *name;
        if self.beyond > 0 {
            let closes = |open: &Open| is(open) && !matches!(open.part, Part::Foreign | Part::Ignored);
            if !self.stack.iter().any(closes) {
                self.beyond -= 1;
                return;
            }
            self.beyond = 0;
        }
        if self.stack.last().is_some_and(is) {
            self.tidy_end_tag(behind);
            self.pop(end, end);
            return;
        }
        let found = self.stack.iter().rposition(is);
        let detail = name.to_owned();
        if self.stack.is_empty() {
            self.outside(start..end);
            return;
        }
        if self.item.lost.is_none() {
            self.problem_with(start, Kind::MismatchedTag, &detail);
        }
        let Some(found) = found else {
            self.repair(start, end - start, "");
            return;
        };
        let mut closers = String::new();
        for open in self.stack[found + 1..].iter().rev().filter(|open| open.part == Part::Foreign) {
            closers.push_str("</");
            closers.push_str(&self.names[open.name.clone()]);
            closers.push('>');
        }
        if !closers.is_empty() {
            self.repair(start, 0, closers);
        }
        while self.stack.len() > found + 1 {
            self.pop(start, start);
        }
        self.tidy_end_tag(behind);
        self.pop(end, end);
    }

    /// Nothing but blanks may stand behind the name of an end tag.
    fn tidy_end_tag(&mut self, behind: Range<usize>) {
        if self.capture.is_some() && !self.input.text[behind.clone()].trim().is_empty() {
            self.problem(behind.start, Kind::BadAttribute);
            self.repair(behind.start, behind.len(), "");
        }
    }

    /// Closes the innermost element; a captured one ends at `cut`.
    fn pop(&mut self, cut: usize, end: usize) {
        let Some(open) = self.stack.pop() else { return };
        if let Some(capture) = self.capture.take_if(|capture| capture.depth == self.stack.len()) {
            let xml = capture.finish(&self.input.text, cut, &self.namespaces);
            if let Some(Part::Container(container)) = self.top() {
                self.item.contains(container, xml);
            }
        }
        self.namespaces.forget(open.mark);
        self.names.truncate(open.name.start);
        self.finish_part(open.part, end);
    }

    fn finish_part(&mut self, part: Part, end: usize) {
        match part {
            Part::Leaf(leaf) => {
                let attributes = std::mem::take(&mut self.leaf_attributes);
                if let Some(kind) = fill(leaf, &self.leaf, attributes, &mut self.page, &mut self.item) {
                    let detail = std::mem::take(&mut self.leaf);
                    self.problem_with(self.at, kind, &detail);
                }
            }
            Part::Root => {
                self.page.complete = true;
                self.stray = false;
            }
            Part::Record => self.finish_record(end),
            Part::Header if !self.item.is_record => self.finish_item(ItemDraft::into_header),
            Part::Set => self.finish_item(ItemDraft::into_set),
            Part::Format => self.finish_item(ItemDraft::into_format),
            Part::Verb(crate::Verb::Identify) => self.finish_item(ItemDraft::into_identify),
            _ => {}
        }
    }

    fn take_item(&mut self, end: usize) -> (ItemDraft, u64) {
        let end = self.offset(end);
        let mut item = std::mem::take(&mut self.item);
        let start = item.start.unwrap_or(end);
        if end - start > self.limits.record_bytes_max as u64 {
            item.lost.get_or_insert(Kind::TooLarge);
        }
        (item, start)
    }

    fn finish_item(&mut self, make: impl FnOnce(ItemDraft, u64, &mut crate::problem::Problems) -> Item) {
        let (item, start) = self.take_item(self.at);
        self.ready = Some(make(item, start, &mut self.page.problems));
    }

    fn finish_record(&mut self, end: usize) {
        let (item, start) = self.take_item(end);
        let mut record = item.into_record(start);
        if !self.input.notes.is_empty() {
            self.share_notes(self.offset(end), &mut record.problems, start);
        }
        record.problems.sort_by_key(|problem| problem.offset);
        self.ready = Some(Item::Record(record));
    }

    /// Gives what was wrong with the bytes of a record to that record, and what stood before it to the page.
    fn share_notes(&mut self, end: u64, problems: &mut Vec<Problem>, start: u64) {
        let until = self.input.notes.partition_point(|note| note.offset < end);
        for note in self.input.notes.drain(..until) {
            if note.offset >= start {
                problems.push(note);
            } else {
                self.page.problems.push(note);
            }
        }
        problems.truncate(crate::problem::KEPT_MAX);
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
