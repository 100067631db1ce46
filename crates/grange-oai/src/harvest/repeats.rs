//! Records that came twice in one list, against the list's completeListSize: pure.

use serde::{Deserialize, Serialize};

/// The end of a list: the records that were delivered, and how many the repository says there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListEnd {
    pub list: i64,
    pub records: u64,
    pub size: u64,
}

/// Repetitions of the list that is kept now, and the first list that they made look complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repeats {
    list: i64,
    records: u64,
    short: Option<ShortList>,
}

/// A list that delivered as many records as its completeListSize, but not as many different ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShortList {
    pub end: ListEnd,
    pub different: u64,
}

impl Repeats {
    /// Counts records of a list that came in it before.
    pub fn count(&mut self, list: i64, records: u64) {
        if self.list != list {
            (self.list, self.records) = (list, 0);
        }
        self.records += records;
    }

    /// Judges a list at its end.
    pub fn end_of_list(&mut self, end: ListEnd) {
        let repeated = if self.list == end.list { self.records } else { 0 };
        let different = end.records.saturating_sub(repeated);
        if different < end.size && end.size <= end.records {
            self.short.get_or_insert(ShortList { end, different });
        }
    }

    /// The first list that lacks records although it delivered enough of them.
    pub fn short(&self) -> Option<ShortList> {
        self.short
    }

    /// Nothing to be kept.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_short_where_repetitions_fill_it() {
        for (what, repeated, records, size, different) in [
            ("no repetition", 0, 20, 20, None),
            ("one repeated and one missing", 1, 20, 20, Some(19)),
            ("repeated beside all of them", 1, 21, 20, None),
            ("more missing than repeated", 1, 19, 20, None),
            ("each twice", 10, 20, 20, Some(10)),
        ] {
            let mut repeats = Repeats::default();
            repeats.count(7, repeated);
            repeats.end_of_list(ListEnd { list: 7, records, size });
            assert_eq!(repeats.short().map(|short| short.different), different, "{what}");
        }
    }

    #[test]
    fn repetitions_belong_to_their_list() {
        let mut repeats = Repeats::default();
        repeats.count(7, 3);
        repeats.count(8, 1);
        repeats.count(8, 1);
        repeats.end_of_list(ListEnd { list: 8, records: 9, size: 8 });
        assert_eq!(repeats.short().unwrap().different, 7);
        // The first one is told.
        repeats.end_of_list(ListEnd { list: 9, records: 2, size: 2 });
        assert_eq!(repeats.short().unwrap().end.list, 8);
        let mut other = Repeats::default();
        other.count(7, 3);
        other.end_of_list(ListEnd { list: 8, records: 9, size: 9 });
        assert_eq!(other.short(), None);
    }
}
