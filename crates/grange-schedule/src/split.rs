//! Putting configurations into jobs so that all domains of a job take about the same time.
//!
//! A configuration goes into the open job if it passes the whole chain of checks, else the job is closed and a new
//! one begins. Configurations come in sorted order, so that those that belong together stand together.

use std::cmp::Reverse;
use std::collections::HashSet;

use grange_model::harvest::{Limit, Limits};

use crate::settings::{Method, Splitting};

/// A configuration as splitting sees it: a few words, so that millions of them fit into memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    pub configuration: i64,
    pub domain: i64,
    pub template: i64,
    pub bytes: Limit,
    pub objects: Limit,
    pub expected: u64,
}

/// A job to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    pub template: i64,
    /// What every domain of it is held to; a configuration's own limits may be tighter still.
    pub limits: Limits,
    pub expected_objects: u64,
    pub configurations: Vec<(i64, u64)>,
}

/// Sorts so that what belongs together stands together: by template, byte limit (none first, then the largest) and
/// expected objects (most first); for jobs of a fixed count by template and limits alone.
pub fn sort(pieces: &mut [Piece], harvest: Limits, settings: &Splitting) {
    match settings.method {
        Method::Balanced => pieces.sort_unstable_by_key(|piece| {
            let bytes = Reverse(piece.bytes.tighter(harvest.bytes).rank());
            (piece.template, bytes, Reverse(piece.expected), piece.configuration)
        }),
        Method::FixedCount => pieces.sort_unstable_by_key(|piece| {
            let limits = piece.budget().map(|limit| Reverse(limit.rank()));
            (piece.template, limits, piece.configuration)
        }),
    }
}

impl Piece {
    /// Bytes and objects; all budgets of nothing are one.
    fn budget(&self) -> [Limit; 2] {
        let budget = [self.bytes, self.objects];
        if budget.contains(&Limit::NOTHING) { [Limit::NOTHING; 2] } else { budget }
    }
}

/// Puts sorted pieces into jobs, by the method of the settings.
pub fn split(pieces: Vec<Piece>, harvest: Limits, snapshot: bool, settings: &Splitting) -> Jobs {
    let rules = Rules { harvest, snapshot, settings: settings.clone() };
    Jobs { pieces: pieces.into_iter(), waiting: None, rules }
}

/// The jobs, one at a time: only the open one is held.
#[derive(Debug)]
pub struct Jobs {
    pieces: std::vec::IntoIter<Piece>,
    waiting: Option<Piece>,
    rules: Rules,
}

#[derive(Debug)]
struct Rules {
    harvest: Limits,
    snapshot: bool,
    settings: Splitting,
}

/// A job under construction.
#[derive(Debug)]
struct Open {
    template: i64,
    limits: Limits,
    first: Piece,
    domains: HashSet<i64>,
    configurations: Vec<(i64, u64)>,
    total: u64,
    smallest: u64,
    largest: u64,
}

impl Iterator for Jobs {
    type Item = Planned;

    fn next(&mut self) -> Option<Planned> {
        let first = self.waiting.take().or_else(|| self.pieces.next())?;
        let mut open = Open::with(&first, &self.rules);
        for piece in self.pieces.by_ref() {
            if !self.rules.accepts(&open, &piece) {
                self.waiting = Some(piece);
                break;
            }
            open.add(&piece);
        }
        Some(open.close())
    }
}

impl Open {
    fn with(first: &Piece, rules: &Rules) -> Self {
        let limits = Limits {
            bytes: first.bytes.tighter(rules.harvest.bytes),
            objects: rules.harvest.objects,
            running_s: rules.harvest.running_s,
        };
        let mut open = Self {
            template: first.template,
            limits,
            first: *first,
            domains: HashSet::new(),
            configurations: Vec::new(),
            total: 0,
            smallest: first.expected,
            largest: first.expected,
        };
        open.add(first);
        open
    }

    fn add(&mut self, piece: &Piece) {
        self.domains.insert(piece.domain);
        self.configurations.push((piece.configuration, piece.expected));
        self.total = self.total.saturating_add(piece.expected);
        self.smallest = self.smallest.min(piece.expected);
        self.largest = self.largest.max(piece.expected);
    }

    fn close(self) -> Planned {
        Planned {
            template: self.template,
            limits: self.limits,
            expected_objects: self.total,
            configurations: self.configurations,
        }
    }
}

impl Rules {
    /// The chain of checks.
    fn accepts(&self, job: &Open, piece: &Piece) -> bool {
        let fits = self.settings.method == Method::FixedCount || self.sizes_fit(job, piece);
        !job.domains.contains(&piece.domain)
            && job.configurations.len() < self.count_max()
            && job.template == piece.template
            && self.limits_fit(job, piece)
            && fits
    }

    fn count_max(&self) -> usize {
        let count = match (self.settings.method, self.snapshot) {
            (Method::Balanced, _) => self.settings.config_chunk_size,
            (Method::FixedCount, true) => self.settings.fixed_count_snapshot,
            (Method::FixedCount, false) => self.settings.fixed_count_focused,
        };
        count.max(1) as usize
    }

    /// A job whose byte limit is the harvest's takes no configuration with a tighter one; a job whose byte limit came
    /// from its configurations takes only the same.
    fn limits_fit(&self, job: &Open, piece: &Piece) -> bool {
        if self.settings.method == Method::FixedCount {
            return job.first.budget() == piece.budget();
        }
        let same = |own: Limit, first: Limit, harvest: Limit| own.tighter(harvest) == first.tighter(harvest);
        same(piece.bytes, job.first.bytes, self.harvest.bytes)
            && (!self.settings.split_by_object_limit
                || same(piece.objects, job.first.objects, self.harvest.objects))
    }

    fn sizes_fit(&self, job: &Open, piece: &Piece) -> bool {
        // A job of nothing but empty domains takes whatever comes, or a large one could go nowhere.
        if job.total > 0 && job.total.saturating_add(piece.expected) > self.settings.max_total_size {
            return false;
        }
        let (smallest, largest) = (job.smallest.min(piece.expected), job.largest.max(piece.expected));
        if (smallest, largest) == (job.smallest, job.largest) {
            return true;
        }
        largest - smallest <= self.settings.min_absolute_size_difference
            || largest / smallest.max(1) <= self.settings.max_relative_size_difference
    }
}

#[cfg(test)]
#[path = "split_tests.rs"]
mod tests;
