//! What indexing found on the way.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use warc::{Kind, Level, Problem};

/// What was found on the way.
#[derive(Debug, Clone, Default)]
pub struct IndexReport {
    /// Records seen.
    pub records: u64,
    /// Lines written.
    pub lines: u64,
    /// The first [`PROBLEMS_MAX`](Self::PROBLEMS_MAX) problems, with their offsets.
    pub problems: Vec<Problem>,
    /// How often each kind of problem was found, kept or not.
    pub kinds: BTreeMap<Kind, Tally>,
    /// Lines for records that share a compressed member: their offset finds the member, not the record.
    pub unseekable: u64,
}

/// How often a kind of problem was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    pub count: u64,
    /// The offset of the first.
    pub first: u64,
}

impl IndexReport {
    /// How many problems are kept: a file of nothing but damage must not fill the memory.
    pub const PROBLEMS_MAX: usize = 1000;

    pub(super) fn note(&mut self, problems: &[Problem]) {
        for problem in problems {
            self.count(problem.kind, Tally { count: 1, first: problem.offset });
        }
        self.keep(problems);
    }

    fn count(&mut self, kind: Kind, more: Tally) {
        let tally = self.kinds.entry(kind).or_insert(Tally { count: 0, first: more.first });
        tally.count += more.count;
        tally.first = tally.first.min(more.first);
    }

    fn keep(&mut self, problems: &[Problem]) {
        let room = Self::PROBLEMS_MAX.saturating_sub(self.problems.len());
        self.problems.extend(problems.iter().take(room).cloned());
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.records += other.records;
        self.lines += other.lines;
        self.unseekable += other.unseekable;
        for (kind, tally) in &other.kinds {
            self.count(*kind, *tally);
        }
        self.keep(&other.problems);
    }

    /// How many problems matter at least as much as `level`.
    pub fn count_of(&self, level: Level) -> u64 {
        self.kinds_of(level).map(|(_, tally)| tally.count).sum()
    }

    /// A line for each kind of problem that matters at least as much as `level`, the worst first.
    pub fn summary(&self, level: Level) -> Vec<String> {
        let mut kinds: Vec<(Kind, Tally)> = self.kinds_of(level).collect();
        kinds.sort_by_key(|(kind, tally)| (Reverse(kind.level()), tally.first));
        let line = |(kind, Tally { count, first }): (Kind, Tally)| {
            let meaning = kind.meaning();
            match count {
                1 => format!("{meaning} At byte {first}."),
                _ => format!("{meaning} {count} times, first at byte {first}."),
            }
        };
        kinds.into_iter().map(line).collect()
    }

    fn kinds_of(&self, level: Level) -> impl Iterator<Item = (Kind, Tally)> {
        let of = move |(kind, _): &(&Kind, &Tally)| kind.level() >= level;
        self.kinds.iter().filter(of).map(|(kind, tally)| (*kind, *tally))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(kind: Kind, offset: u64) -> Problem {
        Problem { offset, kind, detail: None }
    }

    #[test]
    fn problems_are_told_by_kind_the_worst_first() {
        let mut report = IndexReport::default();
        report.note(&[problem(Kind::BareLf, 9), problem(Kind::FoldedHeader, 10)]);
        let mut later = IndexReport::default();
        later.note(&[problem(Kind::BareLf, 70), problem(Kind::TruncatedRecord, 80)]);
        report.add(&later);
        assert_eq!((report.count_of(Level::Comment), report.problems.len()), (4, 4));
        assert_eq!((report.count_of(Level::Advice), report.count_of(Level::Damage)), (3, 1));
        assert_eq!(report.summary(Level::Damage), ["The file ends inside the record. At byte 80."]);
        assert_eq!(
            report.summary(Level::Advice),
            [
                "The file ends inside the record. At byte 80.",
                "Header lines end in LF instead of CRLF. 2 times, first at byte 9.",
            ]
        );
    }

    #[test]
    fn what_is_not_kept_is_counted() {
        let mut report = IndexReport::default();
        for offset in 0..3000 {
            report.note(&[problem(Kind::BareLf, offset)]);
        }
        let mut sum = IndexReport::default();
        sum.add(&report);
        assert_eq!((sum.count_of(Level::Comment), sum.problems.len()), (3000, IndexReport::PROBLEMS_MAX));
        assert_eq!(sum.kinds[&Kind::BareLf], Tally { count: 3000, first: 0 });
    }
}
