//! What became of the records of a harvest. Every record delivered is in exactly one of these numbers.

use std::ops::AddAssign;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Records by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Counts {
    /// Not known before, or known as deleted.
    pub new: u64,
    pub changed: u64,
    /// The same bytes as before; nothing was written.
    pub unchanged: u64,
    /// Deleted by the repository.
    pub deleted: u64,
    /// Not usable: a warning each.
    pub bad: u64,
    /// Refused by the filter.
    pub filtered: u64,
    /// Older than what is stored, from a page out of order.
    pub stale: u64,
}

impl Counts {
    /// All records delivered.
    pub const fn delivered(&self) -> u64 {
        self.new + self.changed + self.unchanged + self.deleted + self.bad + self.filtered + self.stale
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.new += other.new;
        self.changed += other.changed;
        self.unchanged += other.unchanged;
        self.deleted += other.deleted;
        self.bad += other.bad;
        self.filtered += other.filtered;
        self.stale += other.stale;
    }
}
