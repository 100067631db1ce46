//! What a harvest needs of whoever keeps the facts.

use async_trait::async_trait;
use grange_model::oai::{KnownRecord, OaiPage};

/// Why a fact could not be read or kept; ends the harvest, which goes on later from its last position.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct LedgerError(pub String);

/// The facts of one harvest. Every method is a whole act.
#[async_trait]
pub trait Ledger: Send + Sync {
    /// Those of the identifiers that are known in this format.
    async fn known(&self, identifiers: &[&str]) -> Result<Vec<KnownRecord>, LedgerError>;

    /// How many files were ever placed in these folders; those never used may be left out.
    async fn folders(&self, paths: &[&str]) -> Result<Vec<(String, i64)>, LedgerError>;

    /// The number of a list that begins now, larger than all before.
    async fn begin_list(&self) -> Result<i64, LedgerError>;

    /// Keeps a page and the position after it in one transaction.
    async fn commit(&self, page: OaiPage) -> Result<(), LedgerError>;

    /// Active records last seen in a list before this one.
    async fn unseen(&self, list: i64, limit: u32) -> Result<Vec<KnownRecord>, LedgerError>;

    /// How many active records were last seen in a list before this one.
    async fn unseen_count(&self, list: i64) -> Result<u64, LedgerError>;

    /// How many active records are held in this format.
    async fn active(&self) -> Result<u64, LedgerError>;

    /// The repository ignores windows of dates; later harvests need not try.
    async fn no_windows(&self) -> Result<(), LedgerError>;
}
