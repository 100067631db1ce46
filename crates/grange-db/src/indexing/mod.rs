//! What is indexed: collections, their files, and the rules of who may see them.

mod access;
mod access_kept;
mod collections;
mod files;
mod lease;
mod owners;

pub use access::{AccessRow, AccessRules, AccessRulesMark};
pub use access_kept::{AccessRuleState, KeptRule, RemovedRule};
pub use collections::{Collection, CollectionCounts, Collections};
pub use files::{CollectedFile, CollectedState, Enrolled, NewCollected, Which};
pub use lease::{FileClaim, IndexRetry, Indexed};
pub use owners::{IndexLease, IndexOwner, IndexedCollection};
