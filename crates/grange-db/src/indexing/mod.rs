//! What is indexed: collections, their files, and the rules of who may see them.

mod access;
mod collections;
mod files;
mod lease;

pub use access::{AccessRow, AccessRules};
pub use collections::{Collection, CollectionCounts, Collections};
pub use files::{CollectedFile, CollectedState, Enrolled, NewCollected, Which};
pub use lease::{FileClaim, Indexed};
