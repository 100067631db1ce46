//! End tags: elements end, also those that nobody ended, and items are complete.

use std::ops::Range;

use super::{Open, Scanner};
use crate::problem::Problems;
use crate::read::draft::{ItemDraft, fill};
use crate::read::part::Part;
use crate::{Item, Kind, Problem, Verb};

impl Scanner {
    pub(super) fn end_tag(&mut self, name: Range<usize>, end: usize) {
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
    pub(super) fn tidy_end_tag(&mut self, behind: Range<usize>) {
        if self.capture.is_some() && !self.input.text[behind.clone()].trim().is_empty() {
            self.problem(behind.start, Kind::BadAttribute);
            self.repair(behind.start, behind.len(), "");
        }
    }

    /// Ends a record that nobody ended.
    pub(super) fn give_up_record(&mut self) {
        self.lose(Kind::MismatchedTag);
        self.beyond = 0;
        while let Some(part) = self.top() {
            self.pop(self.at, self.at);
            if part == Part::Record {
                break;
            }
        }
    }

    /// Closes the innermost element; a captured one ends at `cut`.
    pub(super) fn pop(&mut self, cut: usize, end: usize) {
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

    pub(super) fn finish_part(&mut self, part: Part, end: usize) {
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
            Part::Verb(Verb::Identify) => self.finish_item(ItemDraft::into_identify),
            _ => {}
        }
    }

    pub(super) fn take_item(&mut self, end: usize) -> (ItemDraft, u64) {
        let end = self.offset(end);
        let mut item = std::mem::take(&mut self.item);
        let start = item.start.unwrap_or(end);
        if end - start > self.limits.record_bytes_max as u64 {
            item.lost.get_or_insert(Kind::TooLarge);
        }
        (item, start)
    }

    pub(super) fn finish_item(&mut self, make: impl FnOnce(ItemDraft, u64, &mut Problems) -> Item) {
        let (item, start) = self.take_item(self.at);
        self.ready = Some(make(item, start, &mut self.page.problems));
    }

    pub(super) fn finish_record(&mut self, end: usize) {
        let (item, start) = self.take_item(end);
        let mut record = item.into_record(start);
        if !self.input.notes.is_empty() {
            self.share_notes(self.offset(end), &mut record.problems, start);
        }
        record.problems.sort_by_key(|problem| problem.offset);
        self.ready = Some(Item::Record(record));
    }

    /// Gives what was wrong with the bytes of a record to that record, and what stood before it to the page.
    pub(super) fn share_notes(&mut self, end: u64, problems: &mut Vec<Problem>, start: u64) {
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
