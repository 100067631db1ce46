//! Records that are held of a repository that announces no deletions, and what becomes of them.

use std::path::Path;
use std::sync::Arc;

use grange_model::oai::{Counts, DeletedSupport, HarvestSpec, RepositoryRules};
use tempfile::TempDir;

use super::super::Ended;
use super::bed::{Facts, Server, harvest_of, list, record, response};
use super::plain;
use crate::settings::Settings;

/// A repository that announces no deletions, and what is held of it.
pub(super) struct Held {
    pub dir: TempDir,
    pub facts: Arc<Facts>,
}

impl Held {
    /// So many records, from a complete list.
    pub(super) async fn records(count: u64) -> Self {
        let held = Self { dir: tempfile::tempdir().unwrap(), facts: Arc::default() };
        let server = Server::answering(move |_, _| list((0..count).map(good), "")).await;
        assert!(matches!(held.harvest(&server).await, Ended::Whole { .. }));
        assert_eq!(held.active(), count);
        held
    }

    pub(super) async fn harvest(&self, server: &Server) -> Ended {
        self.harvest_as(server, HarvestSpec::all("oai_dc"), RepositoryRules::default()).await
    }

    pub(super) async fn harvest_as(
        &self,
        server: &Server,
        spec: HarvestSpec,
        rules: RepositoryRules,
    ) -> Ended {
        let repository = (DeletedSupport::No, rules);
        let with = (Settings::default(), spec);
        harvest_of(server, &self.facts, self.dir.path(), with, repository).await.ended
    }

    /// One harvest with other settings.
    pub(super) async fn harvest_with(&self, settings: Settings, server: &Server) -> Ended {
        let repository = (DeletedSupport::No, RepositoryRules::default());
        let with = (settings, HarvestSpec::all("oai_dc"));
        harvest_of(server, &self.facts, self.dir.path(), with, repository).await.ended
    }

    pub(super) fn active(&self) -> u64 {
        self.facts.records.lock().unwrap().values().filter(|known| !known.deleted).count() as u64
    }

    pub(super) fn counts(&self) -> Counts {
        *self.facts.counts.lock().unwrap()
    }

    pub(super) fn has_file(&self, number: u64) -> bool {
        Path::new(self.dir.path()).join(format!("x/{number}.xml")).exists()
    }

    pub(super) fn warned(&self, word: &str) -> bool {
        self.facts.warnings.lock().unwrap().iter().any(|warning| warning.contains(word))
    }
}

pub(super) fn good(number: u64) -> String {
    record(number, &plain(number))
}

/// The reason of a harvest that is incomplete.
pub(super) fn incomplete(ended: &Ended) -> String {
    let shown = format!("{ended:?}");
    assert!(shown.starts_with("Incomplete"), "{shown}");
    shown
}

/// The number of the record that a query asks for by GetRecord.
pub(super) fn asked_record(query: &str) -> Option<u64> {
    let (_, rest) = query.split_once("identifier=oai%3Ax%3A")?;
    rest.split('&').next()?.parse().ok()
}

/// The response to GetRecord for a record that does not exist.
pub(super) fn does_not_exist() -> String {
    response("<error code='idDoesNotExist'>no</error>")
}

/// The response to GetRecord for this record.
pub(super) fn one(record: &str) -> String {
    response(&format!("<GetRecord>{record}</GetRecord>"))
}

/// A repository that has no record beside those of `list`.
pub(super) fn has_none(query: &str, list: impl FnOnce() -> String) -> String {
    if asked_record(query).is_some() { does_not_exist() } else { list() }
}
