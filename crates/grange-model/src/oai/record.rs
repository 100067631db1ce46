//! Records: one item of a repository in one format.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ids::RepositoryId;
use crate::nearest::named;

named! {
    /// Whether the repository still has it.
    RecordStatus, "record status" {
        Active = "active",
        Deleted = "deleted",
    }
}

/// A record as it is known. Its identity is (repository, identifier, prefix).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OaiRecord {
    pub id: i64,
    pub repository: RepositoryId,
    pub identifier: String,
    pub prefix: String,
    /// Below the repository's folder; empty when there never was a file.
    pub filename: String,
    /// When it was last new, changed or deleted here: the datestamp Grange itself serves.
    #[schemars(with = "String")]
    pub changed_at: Timestamp,
    /// As the repository dates it.
    #[schemars(with = "String")]
    pub datestamp: Timestamp,
    pub status: RecordStatus,
    /// Changed since a consumer such as an indexer last cleared it.
    pub updated: bool,
    pub sets: Vec<String>,
}
