//! Metadata harvesting at work: jobs claimed and run by the engine, with the facts behind it; and what was harvested,
//! served again.

mod answers;
mod ledger;
mod provider;
mod worker;

pub use answers::OaiAnswers;
pub use grange_oai::{FetchError, Settings, answers_below, friends, probe};
pub use provider::Provider;
pub use worker::OaiWorker;

use std::path::{Path, PathBuf};

use grange_model::oai::{Repository, RepositoryId, RepositoryRules};

/// Where a repository's files are. `root` is the folder of all repositories.
pub fn folder_of(root: &Path, id: RepositoryId, rules: &RepositoryRules) -> PathBuf {
    if rules.folder.is_empty() { root.join(id.to_string()) } else { root.join(&rules.folder) }
}

fn folder(root: &Path, repository: &Repository) -> PathBuf {
    folder_of(root, repository.id, &repository.rules)
}

/// Whether a filter wants a record; the error is a sentence about either.
pub fn filter_wants(filter: &str, record: &str) -> Result<bool, String> {
    let filter = grange_oai::filter::Filter::parse(filter).map_err(|error| error.to_string())?;
    // A declaration and a byte order mark may stand before the root.
    filter.matches(record.trim_start_matches('\u{feff}').trim()).map_err(|error| error.to_string())
}

/// Whether a job can be run as it says; the error is a sentence.
pub fn check(spec: &grange_model::oai::HarvestSpec) -> Result<(), String> {
    grange_oai::Judge::new(spec, None, None).map(|_| ()).map_err(|error| error.to_string())
}

/// The base URLs in a list of repositories at an address.
pub async fn fetch_friends(url: &str, settings: &Settings) -> Result<Vec<String>, String> {
    grange_oai::fetch_friends(url, settings).await
}
