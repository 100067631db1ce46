//! Lists that go round in circles: a page of only identifiers that came in the list before.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use super::entry::PagePart;

/// The list in which a page brought nothing but identifiers that came in it before.
#[derive(Clone, Debug, Default)]
pub(super) struct Looped(Arc<AtomicI64>);

impl Looped {
    pub(super) fn set(&self, list: i64) {
        self.0.store(list, Ordering::Release);
    }

    pub(super) fn is(&self, list: i64) -> bool {
        self.0.load(Ordering::Acquire) == list
    }
}

/// What is known of the page that is being kept.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PageSoFar {
    records: usize,
    new: bool,
}

impl PageSoFar {
    /// Takes a part in; true at the end of a page that had only what the list had before.
    pub(super) fn take(&mut self, part: PagePart, records: usize, only_seen: bool) -> bool {
        if part.first {
            *self = Self::default();
        }
        self.records += records;
        self.new |= !only_seen;
        part.last && !part.again && self.records > 0 && !self.new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_loops_when_all_parts_of_it_came_before() {
        const FIRST: PagePart = PagePart { first: true, last: false, again: false };
        const LAST: PagePart = PagePart { first: false, last: true, again: false };
        const WHOLE: PagePart = PagePart { first: true, last: true, again: false };
        const AGAIN: PagePart = PagePart { again: true, ..WHOLE };
        for (what, parts, loops) in [
            ("nothing new", vec![(WHOLE, 3, true)], true),
            ("something new", vec![(WHOLE, 3, false)], false),
            ("empty", vec![(WHOLE, 0, true)], false),
            ("nothing new in two parts", vec![(FIRST, 3, true), (LAST, 0, true)], true),
            ("something new in the first part", vec![(FIRST, 3, false), (LAST, 3, true)], false),
            ("asked again", vec![(AGAIN, 3, true)], false),
            ("a page after a new one", vec![(WHOLE, 3, false), (WHOLE, 3, true)], true),
        ] {
            let mut page = PageSoFar::default();
            let seen = parts.into_iter().map(|(part, records, only)| page.take(part, records, only));
            assert_eq!(seen.last(), Some(loops), "{what}");
        }
    }
}
