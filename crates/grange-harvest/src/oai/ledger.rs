//! The facts of one harvest, kept in the database under its claim.

use async_trait::async_trait;
use grange_base::Chain;
use grange_db::{Db, OaiClaim};
use grange_model::Actor;
use grange_model::oai::{KnownRecord, OaiPage, RepositoryId, RepositoryRules};
use grange_oai::{Ledger, LedgerError};

/// One harvest's way to the database.
pub(super) struct DbLedger {
    pub db: Db,
    pub claim: OaiClaim,
    pub repository: RepositoryId,
    pub prefix: String,
    pub set: Option<String>,
}

fn told(error: grange_db::Error) -> LedgerError {
    LedgerError(Chain(&error).to_string())
}

#[async_trait]
impl Ledger for DbLedger {
    async fn known(&self, identifiers: &[&str]) -> Result<Vec<KnownRecord>, LedgerError> {
        self.db.oai_records().known(self.repository, &self.prefix, identifiers).await.map_err(told)
    }

    async fn folders(&self, paths: &[&str]) -> Result<Vec<(String, i64)>, LedgerError> {
        self.db.oai_records().folders(self.repository, paths).await.map_err(told)
    }

    async fn begin_list(&self) -> Result<i64, LedgerError> {
        self.db.oai_repositories().begin_list(self.repository).await.map_err(told)
    }

    async fn commit(&self, page: OaiPage) -> Result<(), LedgerError> {
        self.db.oai_jobs().commit(&self.claim, page).await.map_err(told)
    }

    async fn unseen(&self, list: i64, limit: u32) -> Result<Vec<KnownRecord>, LedgerError> {
        let records = self.db.oai_records();
        records.unseen(self.repository, &self.prefix, self.set.as_deref(), list, limit).await.map_err(told)
    }

    async fn unseen_count(&self, list: i64) -> Result<u64, LedgerError> {
        let records = self.db.oai_records();
        records.unseen_count(self.repository, &self.prefix, self.set.as_deref(), list).await.map_err(told)
    }

    async fn active(&self) -> Result<u64, LedgerError> {
        let records = self.db.oai_records();
        records.active(self.repository, &self.prefix, self.set.as_deref()).await.map_err(told)
    }

    async fn no_windows(&self) -> Result<(), LedgerError> {
        let repositories = self.db.oai_repositories();
        let Some(found) = repositories.get(self.repository).await.map_err(told)? else { return Ok(()) };
        let rules = RepositoryRules { no_windows: true, ..found.rules };
        repositories.change(self.repository, rules, None, &Actor::system()).await.map_err(told)?;
        Ok(())
    }
}
