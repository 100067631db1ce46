//! Which file and offset answer a URL and a time.
//!
//! An index is a folder of immutable sorted segments and a small head with a log. Captures of a file are added in one
//! commit; a file or a job can be taken out again. Readers work on snapshots.
//!
//! # Invariants
//!
//! - After [`Index::commit`] returns, its captures survive a crash; a crash anywhere leaves the state before or after it.
//! - Adding the same file again changes nothing. Key, time, file and offset together name a capture.
//! - Damage is an error that names file and byte; what is not damaged can still be read. No bytes make it panic.
//! - Queries stream: their memory does not grow with their answers.
//!
//! It must never know where files are stored, who asks, or how answers travel.

pub mod access;
mod address;
mod batch;
mod block;
mod capture;
mod closest;
mod combine;
mod compact;
pub mod dialect;
mod digest;
mod durable;
mod error;
mod folder;
mod history;
mod jobs;
mod key;
mod load;
mod log;
mod log_v1;
mod manifest;
mod merge;
mod original;
mod plan;
pub mod query;
mod records;
mod row;
mod rule_keys;
mod run;
mod segment;
mod settings;
mod snapshot;
mod stamp;
mod store;
mod varint;
mod view;
mod writer;

#[cfg(test)]
mod tests;

pub use batch::{Batch, Committed};
pub use capture::Capture;
pub use closest::Closest;
pub use compact::Merger;
pub use error::{Error, Result};
pub use jobs::{JobIndexKind, JobIndexReport, write_job_index};
pub use key::{key, keys, line_key};
pub use load::{LoadProblem, LoadReport};
pub use rule_keys::{RuleKeys, rule_keys};
pub use segment::{Position, SegmentReport, verify};
pub use settings::Settings;
pub use snapshot::{Ascending, Descending, DigestUse, Snapshot, Stats};
pub use stamp::Stamp;
pub use store::Index;
pub use view::CaptureView;

/// Reads `bytes` as every piece of a segment there is, for fuzzing: whatever they are, nothing may panic or grow without bound.
#[doc(hidden)]
pub fn read_anything(bytes: &[u8]) {
    segment::read_anything(bytes);
}
