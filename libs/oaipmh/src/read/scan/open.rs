//! Start tags: which element begins, of the protocol or of a record.

use std::ops::Range;

use super::{Mode, Open, Scanner, is_declaration};
use crate::read::capture::Capture;
use crate::read::draft::LeafAttributes;
use crate::read::part::{Part, child};
use crate::read::{names, tag, text};
use crate::{Datestamp, Kind, Verb};

/// Blanks between the tags of a record and its header that are looked through when a record was not closed.
const GAP_MAX: usize = 1024;

impl Scanner {
    pub(super) fn start_tag(&mut self, name: Range<usize>, end: usize, empty: bool) -> bool {
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

    pub(super) fn push(&mut self, name: Range<usize>, part: Part, mark: usize) {
        let start = self.names.len();
        self.names.push_str(&self.input.text[name]);
        self.stack.push(Open { name: start..self.names.len(), part, mark, full: false });
    }

    pub(super) fn own_start(
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

    pub(super) fn root(
        &mut self,
        prefix: &Range<usize>,
        local: &Range<usize>,
        binding: Option<usize>,
    ) -> Option<Part> {
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
    pub(super) fn begin(&mut self, part: Part, at: usize) {
        match part {
            Part::Verb(verb) => {
                self.page.verb.get_or_insert(verb);
                if verb == Verb::Identify {
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
                            .and_then(|text| Datestamp::parse_lenient(&text)),
                    };
                }
            }
            Part::Root | Part::Foreign | Part::Ignored => {}
        }
    }

    pub(super) fn attribute(&self, name: &str) -> Option<String> {
        let text = &self.input.text;
        let attribute = self.attributes.iter().find(|attribute| text[attribute.name.clone()] == *name)?;
        let mut value = String::new();
        text::unescape(&text[attribute.value.clone()], &mut value, |_, _| ());
        Some(value)
    }

    #[allow(clippy::too_many_arguments)] // one tag, taken apart once
    pub(super) fn foreign_start(
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

    /// Whether this tag may start another record while one is open: the end of the open one was lost.
    pub(super) fn is_next_record(&self, prefix: &Range<usize>, local: &Range<usize>, empty: bool) -> bool {
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
    pub(super) fn header_follows(&self, prefix: &Range<usize>, end: usize) -> Option<bool> {
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
}
