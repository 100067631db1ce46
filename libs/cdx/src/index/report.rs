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
    /// Problems counted.
    pub problem_count: u64,
    /// The first [`PROBLEMS_MAX`](Self::PROBLEMS_MAX) of them, with their offsets.
    pub problems: Vec<Problem>,
    /// How often each kind was found.
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
        self.problem_count += more.count;
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

    /// Problems that are more than a [comment](Level::Comment).
    pub fn notable(&self) -> u64 {
        self.notable_kinds().map(|(_, tally)| tally.count).sum()
    }

    /// Whether bytes were lost, doubted or guessed.
    pub fn is_damaged(&self) -> bool {
        self.kinds.keys().any(|kind| kind.level() == Level::Damage)
    }

    /// A line for each kind of problem that is more than a comment, the worst first.
    pub fn summary(&self) -> Vec<String> {
        let mut kinds: Vec<(Kind, Tally)> = self.notable_kinds().collect();
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

    fn notable_kinds(&self) -> impl Iterator<Item = (Kind, Tally)> {
        let notable = |(kind, _): &(&Kind, &Tally)| kind.level() > Level::Comment;
        self.kinds.iter().filter(notable).map(|(kind, tally)| (*kind, *tally))
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
        assert_eq!((report.problem_count, report.notable(), report.problems.len()), (4, 3, 4));
        assert!(report.is_damaged());
        assert_eq!(
            report.summary(),
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
        assert_eq!((sum.problem_count, sum.problems.len()), (3000, IndexReport::PROBLEMS_MAX));
        assert_eq!(sum.kinds[&Kind::BareLf], Tally { count: 3000, first: 0 });
    }
}
