//! Keeps N proven copies of every file.
//!
//! What holds here:
//!
//! - **Stored means proven.** A store says yes when every replica's own checksum, read from where the copy lies, is
//!   that of the bytes that came in. Otherwise it says which replica is not.
//! - **A wrong copy is never served.** What is read is compared on the way; another copy takes its place, and the event
//!   is written down.
//! - **Nothing is sent that is proven, nothing is lost that is pending.** State lives in rows; whoever is killed goes
//!   on from them.
//! - **Nobody is blamed without a majority,** and no copy leaves its place without two persons or the replica's
//!   credential; then it goes to the attic.
//! - **What happened cannot be rewritten.** Every event is a leaf of one Merkle log, whose signed roots lie on every
//!   replica.
//!
//! It must never know what the bytes mean (WARC is none of its business), who is allowed to ask (that is
//! `grange-app`), or how bytes lie on a disk (`grange-blob`).

mod access_rules;
mod amend;
mod archive;
mod audit;
mod challenge;
mod client;
mod digest;
mod drive;
mod error;
mod held_file;
mod journal;
mod key_trust;
mod keys;
mod lost_log;
mod presence;
mod proof;
mod read;
mod rebuild;
mod remove;
mod repair;
mod replica;
mod schedule;
mod settings;
mod spool;
mod store;
mod strays;
mod sums;
#[cfg(test)]
mod tests;
mod transfer;
mod tree;
mod verify;
mod withdraw;
mod witness;

pub use access_rules::{AccessRuleReport, RuleTooLong, check_rule_length};
pub use archive::{Archive, Parts, Places, open_places};
pub use client::ArchiveClient;
pub use error::Error;
pub use journal::{Entry, Journal, Line};
pub use key_trust::SignedVouch;
pub use presence::Marker;
pub use proof::{Proof, ProvenLeaf, check_proof};
pub use read::Got;
pub use rebuild::{Conflict, Rebuilt};
pub use remove::Second;
pub use repair::{RepairReport, Repaired};
pub use replica::Replica;
pub use settings::{ReplicaSettings, Settings, Unusable};
pub use store::{Store, StoreOutcome, Unproven};
pub use sums::{LocalSums, PeerSums, Sums, answer as answer_about_sums};
pub use verify::{LogReport, WitnessReport};
pub use witness::{PREFIX as WITNESS_PREFIX, Witness};
