//! Duplicate reduction: what the jobs that a job continues from have stored already, so that it need not be stored
//! again.
//!
//! ```text
//! metadata WARCs of the jobs ── crawl logs (and CDX) ──▶ Builder ──▶ one index file per set of jobs ──▶ Index ──▶ crawler
//! ```
//!
//! Which jobs a job continues from was settled when it was planned (`grange_schedule::dedup`). The index answers one
//! question, "was this URL stored with this payload?", with file, offset and date of the original record. A second one,
//! made for templates with `dedup.by = "digest"`, answers "was this payload stored?". Neither knows validators of
//! servers: logs do not tell them.
//!
//! Invariants:
//! - A line that is a duplicate itself passes its original on: revisits never refer to revisits. If that original is a
//!   record of another URL it stands for the payload only.
//! - An entry names a file that was verified on every replica when the index was built or last opened, and that holds
//!   records the logs describe. Captures in any other file are stored again.
//! - A key is 96 bits of BLAKE3 over URL and digest, and an entry is believed only if all of them are equal. Among ten
//!   million entries one lookup in 2^73 (10^22) is answered wrongly by chance.
//! - Every type is indexed; the template's `dedup.skip_types` decides what is asked for. By default no text is.
//! - An index file is there whole or not at all, and every byte of it is under a checksum. A damaged one is named, taken
//!   away and made anew; until then captures are stored in full.

mod anywhere;
mod build;
mod cache;
mod entry;
mod index;
mod join;
mod layout;
mod map;
mod oracle;
mod partition;
mod source;
mod stored;
#[cfg(test)]
mod tests;

pub use build::{Builder, By};
pub use cache::{Cache, Limits, set_name};
pub use entry::{Entry, Key};
pub use index::{Index, IndexError};
pub use oracle::{DedupError, Prepared, oracle_for};
pub use source::{Fed, feed};
pub use stored::FileEvidence;
