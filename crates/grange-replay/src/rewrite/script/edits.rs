//! Changes to a text, collected in any order and made at once.

use std::borrow::Cow;

use super::tokens::Token;
use crate::rewrite::work;

#[derive(Debug)]
pub(super) struct Edits<'a> {
    text: &'a str,
    changes: Vec<Change>,
    /// Bytes that the changes write.
    written: usize,
}

#[derive(Debug)]
struct Change {
    start: usize,
    end: usize,
    new: Cow<'static, str>,
}

/// Which change it was, for taking it back.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChangeIndex(usize);

impl<'a> Edits<'a> {
    pub(super) const fn new(text: &'a str) -> Self {
        Self { text, changes: Vec::new(), written: 0 }
    }

    pub(super) fn text(&self, token: Token) -> &'a str {
        &self.text[token.start..token.end]
    }

    pub(super) fn replace(&mut self, token: Token, new: impl Into<Cow<'static, str>>) -> ChangeIndex {
        self.replace_range(token.start, token.end, new)
    }

    pub(super) fn replace_range(
        &mut self,
        start: usize,
        end: usize,
        new: impl Into<Cow<'static, str>>,
    ) -> ChangeIndex {
        let new = new.into();
        self.written += new.len();
        self.changes.push(Change { start, end, new });
        ChangeIndex(self.changes.len() - 1)
    }

    pub(super) fn insert(&mut self, at: usize, new: impl Into<Cow<'static, str>>) -> ChangeIndex {
        self.replace_range(at, at, new)
    }

    /// Takes a change back.
    pub(super) fn cancel(&mut self, index: ChangeIndex) {
        if let Some(change) = self.changes.get_mut(index.0) {
            change.end = change.start;
            change.new = Cow::Borrowed("");
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.changes.iter().all(|change| change.start == change.end && change.new.is_empty())
    }

    /// The text would become too long.
    pub(super) fn is_outgrown(&self) -> bool {
        work::is_outgrown(self.text.len(), self.text.len() + self.written)
    }

    /// The changed text, appended to `out`. Of changes that overlap the first wins.
    pub(super) fn apply(mut self, out: &mut String) {
        self.changes.sort_by_key(|change| change.start);
        let mut done = 0;
        for change in &self.changes {
            if change.start < done {
                continue;
            }
            out.push_str(&self.text[done..change.start]);
            out.push_str(&change.new);
            done = change.end;
        }
        out.push_str(&self.text[done..]);
        work::spend(self.text.len() + self.written);
    }
}
