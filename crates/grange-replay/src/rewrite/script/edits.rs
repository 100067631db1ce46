//! Changes to a text, collected in any order and made at once.

use super::tokens::Token;

#[derive(Debug)]
pub(super) struct Edits<'a> {
    text: &'a str,
    changes: Vec<Change>,
}

#[derive(Debug)]
struct Change {
    start: usize,
    end: usize,
    new: String,
}

impl<'a> Edits<'a> {
    pub(super) const fn new(text: &'a str) -> Self {
        Self { text, changes: Vec::new() }
    }

    pub(super) fn text(&self, token: Token) -> &'a str {
        &self.text[token.start..token.end]
    }

    pub(super) fn replace(&mut self, token: Token, new: &str) {
        self.replace_range(token.start, token.end, new);
    }

    pub(super) fn replace_range(&mut self, start: usize, end: usize, new: &str) {
        self.changes.push(Change { start, end, new: new.to_owned() });
    }

    pub(super) fn insert(&mut self, at: usize, new: &str) {
        self.replace_range(at, at, new);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.changes.is_empty()
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
    }
}
