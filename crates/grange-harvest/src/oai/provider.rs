//! What was harvested, served again over OAI-PMH: Grange as an aggregator.
//!
//! Identifiers are those of the repositories, since an aggregator must not rename items. Sets are `r<number>` for a
//! repository and `r<number>:<set>` for its sets. Datestamps are the times records changed here. Where two
//! repositories have the same identifier, GetRecord gives the one that was added first.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use grange_base::Clock;
use grange_db::{Db, ServeFilter};
use grange_model::oai::{OaiRecord, RecordStatus, Repository, RepositoryId};
use grange_oai::provide::{self, Listing, Selected};
use jiff::{Timestamp, ToSpan};

/// Answers OAI-PMH requests. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Provider {
    db: Db,
    clock: Clock,
    root: Arc<Path>,
    page: u32,
    contact: Arc<str>,
}

/// Records are dated when the transaction that keeps them begins, by the database's clock, and can be listed when it
/// ends. Harvesters begin their next list at the date of a response, so that is set back by more than a transaction lasts
/// and clocks of nodes differ.
const SET_BACK: Duration = Duration::from_mins(1);

impl Provider {
    pub fn new(db: Db, clock: Clock, root: PathBuf, settings: &grange_oai::Settings) -> Self {
        let page = settings.serve_page.clamp(1, 10_000);
        Self { db, clock, root: root.into(), page, contact: settings.contact.as_str().into() }
    }

    /// The answer to the arguments of a request, already decoded.
    pub async fn answer(
        &self,
        base_url: &str,
        arguments: Vec<(String, String)>,
    ) -> Result<String, grange_db::Error> {
        let asked = provide::understand(arguments, self.clock.now() - SET_BACK);
        let listing = match asked.wants() {
            provide::Wants::Nothing => Listing::default(),
            provide::Wants::Identify => {
                Listing { earliest: self.db.oai_holdings().earliest().await?, ..Listing::default() }
            }
            provide::Wants::Formats { identifier } => self.formats(identifier.as_deref()).await?,
            provide::Wants::Sets => self.sets().await?,
            provide::Wants::Record { identifier, prefix } => self.one(&identifier, &prefix).await?,
            provide::Wants::Records(selected) => self.records(selected).await?,
        };
        Ok(asked.answer(base_url, &self.contact, listing))
    }

    async fn formats(&self, identifier: Option<&str>) -> Result<Listing, grange_db::Error> {
        let mut formats = self.db.oai_holdings().formats().await?;
        let Some(identifier) = identifier else { return Ok(Listing { formats, ..Listing::default() }) };
        let records = self.named(identifier).await?;
        formats.retain(|format| records.iter().any(|record| record.prefix == format.prefix));
        Ok(Listing { formats, ..Listing::default() })
    }

    async fn sets(&self) -> Result<Listing, grange_db::Error> {
        let mut sets: Vec<_> = self
            .db
            .oai_repositories()
            .list()
            .await?
            .into_iter()
            .map(|repository| (format!("r{}", repository.id), repository.said.name))
            .collect();
        for (repository, set) in self.db.oai_holdings().sets().await? {
            sets.push((format!("r{repository}:{}", set.spec), set.name));
        }
        sets.sort();
        Ok(Listing { sets, ..Listing::default() })
    }

    async fn named(&self, identifier: &str) -> Result<Vec<OaiRecord>, grange_db::Error> {
        for repository in self.db.oai_repositories().list().await? {
            let found = self.db.oai_holdings().record(repository.id, identifier).await?;
            if !found.is_empty() {
                return Ok(found);
            }
        }
        Ok(Vec::new())
    }

    async fn one(&self, identifier: &str, prefix: &str) -> Result<Listing, grange_db::Error> {
        let records = self.named(identifier).await?;
        let known = !records.is_empty();
        let records = records.into_iter().filter(|record| record.prefix == prefix).collect();
        let records = self.with_content(records).await?;
        Ok(Listing { records, known, ..Listing::default() })
    }

    async fn records(&self, selected: Selected) -> Result<Listing, grange_db::Error> {
        let known =
            self.db.oai_holdings().formats().await?.iter().any(|format| format.prefix == selected.prefix);
        let (repository, set) = match selected.set.as_deref().map(repository_set) {
            Some(None) => return Ok(Listing { known, ..Listing::default() }),
            Some(Some((repository, set))) => (Some(repository), set),
            None => (None, None),
        };
        let filter = ServeFilter {
            prefix: selected.prefix,
            repository,
            set,
            from: selected.from.unwrap_or(Timestamp::UNIX_EPOCH),
            before: selected
                .until
                .map_or(Timestamp::MAX, |until| until.saturating_add(1.second()).unwrap_or(Timestamp::MAX)),
            after: selected.after,
            // One more tells whether the list goes on.
            limit: self.page + 1,
        };
        let mut records = self.db.oai_holdings().page(filter).await?;
        let more = records.len() > self.page as usize;
        records.truncate(self.page as usize);
        let records = if selected.headers_only {
            records.into_iter().map(|record| (record, None)).collect()
        } else {
            self.with_content(records).await?
        };
        Ok(Listing { records, more, known, ..Listing::default() })
    }

    /// The records with what their files hold. A record whose file is gone is left without, and told.
    async fn with_content(
        &self,
        records: Vec<OaiRecord>,
    ) -> Result<Vec<(OaiRecord, Option<String>)>, grange_db::Error> {
        let repositories = self.db.oai_repositories().list().await?;
        let root = Arc::clone(&self.root);
        let read = move || read_all(&root, &repositories, records);
        // Reading files blocks; a panic there is this request's.
        match tokio::task::spawn_blocking(read).await {
            Ok(read) => Ok(read),
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        }
    }
}

fn read_all(
    root: &Path,
    repositories: &[Repository],
    records: Vec<OaiRecord>,
) -> Vec<(OaiRecord, Option<String>)> {
    let with = |record: OaiRecord| {
        let repository = repositories.iter().find(|one| one.id == record.repository);
        let content = repository.filter(|_| record.status == RecordStatus::Active).and_then(|repository| {
            let path = super::folder(root, repository).join(&record.filename);
            std::fs::read_to_string(&path)
                .inspect_err(
                    |error| tracing::warn!(%error, path = %path.display(), "a record's file cannot be read"),
                )
                .ok()
        });
        (record, content)
    };
    records.into_iter().map(with).collect()
}

/// `r7` and `r7:a:b` name a repository and a set of it.
fn repository_set(set: &str) -> Option<(RepositoryId, Option<String>)> {
    let (number, set) = match set.strip_prefix('r')?.split_once(':') {
        Some((number, set)) => (number, Some(set.to_owned())),
        None => (set.strip_prefix('r')?, None),
    };
    Some((number.parse().ok()?, set))
}

#[cfg(test)]
mod tests {
    use grange_db::{Db, Settings};

    use super::*;

    #[tokio::test]
    async fn the_next_list_of_a_harvester_covers_transactions_that_were_under_way() {
        let folder = tempfile::tempdir().unwrap();
        let clock = Clock::test("2026-01-01T12:00:00Z".parse().unwrap()).0;
        let db = Db::open(&Settings::default(), folder.path(), clock.clone()).await.unwrap();
        let provider = Provider::new(db, clock, folder.path().to_owned(), &grange_oai::Settings::default());
        let arguments = vec![("verb".to_owned(), "Identify".to_owned())];
        let response = provider.answer("http://x/oai", arguments).await.unwrap();
        assert!(response.contains("<responseDate>2026-01-01T11:59:00Z</responseDate>"), "{response}");
    }
}
