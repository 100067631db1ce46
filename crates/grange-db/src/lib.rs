//! Keeps the facts of Grange in SQL: SQLite or PostgreSQL, chosen by URL.
//!
//! Invariants:
//! - A store method is a whole act. After `Ok` it is on disk, after an error nothing of it is; no transaction leaves
//!   this crate.
//! - Both engines behave alike. SQL is written once; `dialect.rs` holds the few differences, and the conformance suite
//!   runs every method on both.
//! - Every change by a person writes its line of the audit log in the same transaction.
//! - Mutable rows carry an edition; a save made from an older one is refused.
//! - Leases are judged by one clock: the server's on PostgreSQL, the injected one on SQLite.
//!
//! It must never know who is allowed to do what (that is `grange-app`), how secrets are hashed (it stores opaque
//! hashes), or what the work it hands out is about. All SQL of the archive's facts lives here and nowhere else.

mod act;
mod adopt;
mod amend;
mod audit;
mod audit_page;
mod audits;
mod backup;
mod ballots;
mod bulk;
mod clocks;
#[cfg(test)]
mod conformance;
mod dialect;
mod error;
mod files;
mod findings;
mod frame_lock;
mod harvest;
mod indexing;
mod log_keys;
mod logbook;
mod migrate;
mod nodes;
mod numbers;
mod oai;
mod open;
mod opened_file;
mod places;
mod postgres;
mod repairs;
mod replicas;
mod restore;
mod row;
mod sessions;
mod settings;
mod sqlite;
mod store;
mod strays;
mod target;
#[cfg(test)]
mod tests;
mod tokens;
mod users;
mod withdraw;
mod work;
mod writer;

pub use adopt::Adopted;
pub use amend::Amendment;
pub use audit::{Audit, AuditFilter, Record};
pub use audit_page::{Page, Seen, Turned};
pub use audits::{AUDIT_WORK, AuditRow, Audits, Found};
pub use backup::{backup_due, fold_log, list_backups, prune_backups};
pub use ballots::Votes;
pub use clocks::ClockSkew;
pub use error::Error;
pub use files::{FileFilter, FileStatus, Files, Holding, StoredFile, Trouble, deciding};
pub use findings::{Finding, Findings, Look, UnservableCopy};
pub use harvest::{
    Added, Afterwards, Candidate, Channels, ConfigurationChange, CustomFields, DeadJobs, Definitions,
    DepositCounts, Deposits, DomainChange, DomainFilter, Domains, Due, Found as FoundDomains, HarvestChange,
    Heartbeat, HistoryFilter, Imported, JobClaim, JobFilter, JobReport, Jobs, Member, NewChannel,
    NewCredential, NewHarvest, NewJob, Planner, Policy, Reported, RunPlan, Schedules, SnapshotRow, Templates,
    Traps, WaitingDeposit,
};
pub use indexing::{
    AccessRow, AccessRuleState, AccessRules, AccessRulesMark, CollectedFile, CollectedState, Collection,
    CollectionCounts, Collections, Enrolled, FileClaim, IndexLease, IndexOwner, IndexRetry, Indexed,
    IndexedCollection, KeptRule, NewCollected, RemovedRule, Which,
};
pub use log_keys::{KeyVouch, LogKey};
pub use logbook::{Checkpoint, Leaf, Logbook};
pub use nodes::{NewNode, NodeHeartbeat, Nodes};
pub use oai::{
    ClaimedHarvest, Ending, NewOaiJob, NewRecurring, OaiClaim, OaiDeadJobs, OaiHeartbeat, OaiHistory,
    OaiHistoryFilter, OaiHoldings, OaiJobs, OaiPolicy, OaiRecords, OaiRecurring, OaiRepositories,
    ServeFilter, Served,
};
pub use open::{Db, Status};
pub use places::ReplicaPlaces;
pub use repairs::{Confirmed, NewRepair, REPAIR_WORK, RepairRow, RepairTurn, Repairs};
pub use replicas::{Declared, ReplicaOverview, ReplicaRow, Replicas};
pub use restore::{CameBack, KeyRing, TokenBack, UserBack, came_back};
pub use sessions::{NewSession, Sessions};
pub use settings::Settings;
pub use store::{Begun, HoldingChange, IfStored, NewFile, STORE_WORK};
pub use strays::{StrayFile, StrayFiles, StrayRange};
pub use target::Target;
pub use tokens::{NewToken, Tokens};
pub use users::{NewUser, Users};
pub use work::{Claim, Counts, Item, Offer, Offered, State, Work, WorkFilter};
