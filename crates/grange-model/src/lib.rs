//! The nouns of Grange and their rules.
//!
//! Invariants: every function here is a pure function of its arguments (no clock, no IO, no async), and a value
//! that exists is valid: names and ids are checked where they are made, not where they are used.
//!
//! It must never know where the nouns are kept (SQL lives in `grange-db`), how they travel or how they are shown.

pub mod account;
pub mod audit;
pub mod collection;
pub mod copy_row;
pub mod file;
pub mod finding;
pub mod harvest;
pub mod holding;
pub mod ids;
pub mod logbook;
mod nearest;
pub mod node;
pub mod numbers;
pub mod oai;
pub mod replica;
pub mod store_state;
pub mod vote;

pub use account::{Permission, Role, Session, Token, User, UserName};
pub use audit::{Actor, AuditEntry};
pub use copy_row::{AuditAnswer, CopyRow};
pub use file::{Agreement, Algorithm, Checksums, FileName, Md5, Sha256, Sha512};
pub use finding::{Condition, FindingChanges, FindingKind, Observation, OpenFinding};
pub use holding::{
    AuditKind, AuditState, Presence, RepairChoice, RepairKind, RepairState, UploadState, Verdict,
};
pub use ids::{AuditId, NodeId, RepairId, SessionId, TokenId, UserId, WorkId};
pub use logbook::{LogEvent, LogRecord};
pub use nearest::UnknownName;
pub use node::{Liveness, NodeRecord, NodeRole};
pub use numbers::HighestNumbers;
pub use replica::{ReplicaKind, ReplicaName};
pub use store_state::{CopyState, StoreAction, StoreEvent};
pub use vote::{Ballot, Contradiction, Decision, UNREADABLE, Vote, contradiction, vote};
