//! The crawl engine: one job in, WARC files, logs and reports out.
//!
//! It reaches no database, bus, store or index. What it needs from outside is a job (seeds, template, limits,
//! traps, credentials), a duplicate oracle, a clock and a folder; what it leaves behind lies in that folder.
//!
//! The path of a URL, from the bottom up:
//!
//! * [`frontier`] keeps every URL that was ever seen and the queues of those still to do, on disk; it hands out
//!   one URL per queue at a time, when politeness and budgets allow.
//! * [`robots`] and [`politeness`] say whether and when a host may be asked.
//! * [`fetch`] asks, and keeps the bytes of the wire exactly as they came.
//! * [`extract`] finds links in what came back; [`scope`] decides which of them are ours.
//! * [`record`] writes the WARC records, the log lines and the chunk manifests; [`log`] and [`report`] say in
//!   which words.
//! * [`virus`] stands between the two, where a scanner is set.
//! * [`engine`] joins them. [`template`] is what a curator chooses; [`job`] is what is asked for.
//!
//! # Invariants
//!
//! * A URL is finished when its records and log lines are in the files and the frontier says so, in this order.
//!   After a crash files are cut back to what the frontier knows of: nothing is lost, nothing is in them twice.
//! * Whatever a server sends, memory is bounded and nothing panics: a bad answer is a capture with annotations.
//! * Time is handed in. Decisions (scope, pace, budgets, robots) are pure functions.

pub mod candidate;
pub mod engine;
pub mod extract;
pub mod fetch;
pub mod frontier;
pub mod hops;
pub mod job;
pub mod link;
pub mod log;
pub mod politeness;
pub mod record;
pub mod report;
pub mod robots;
pub mod scope;
pub mod status;
pub mod template;
pub mod virus;

pub use candidate::Candidate;
pub use hops::{Hop, Hops};
pub use link::Link;
pub use status::FetchStatus;
