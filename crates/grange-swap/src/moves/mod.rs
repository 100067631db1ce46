//! Doubling, halving and every other change of the number of slices, while the collection is in use.
//!
//! There is no list of what is to be moved: a file that does not lie where the new number puts it is to be moved.
//! At every moment a file is on its old slice, on both with equal bytes, or on the new one; never on none. So a crash
//! anywhere is mended by walking again, and a recursive copy gives the whole collection back in the middle of a move.

mod carry;
mod plan;
mod worker;

use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;

pub use plan::{Estimate, estimate};
pub(crate) use worker::{all_settled, run};

/// How a slice's part in the running move stands.
#[derive(Debug, Default)]
pub struct Progress(Mutex<Seen>);

#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// The epoch by which a whole walk found nothing left to move.
    pub settled: Option<u64>,
    pub files: u64,
    pub bytes: u64,
    pub trouble: Option<String>,
    /// Walks over the slice, and how many of the last ones failed in a row.
    pub walks: u64,
    pub failures: u32,
    /// Not walked again before.
    pub not_before: Option<Timestamp>,
}

impl Progress {
    pub(crate) fn seen(&self) -> Seen {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut Seen)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
