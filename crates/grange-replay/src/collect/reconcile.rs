//! An index and the rows of its collection: after this every indexed row is in the index, and no row that is out.

use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use grange_db::{CollectedFile, CollectedState, Db, IndexLease};
use grange_index::{Index, Snapshot};
use grange_model::collection::FileKind as Kind;
use jiff::Timestamp;

use super::blocking;
use super::feeder::FeedError;
use super::taking::{lines_job, take_out};

/// Where an index is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Provenance {
    /// This node kept it, or nobody did: what is in it is what was marked.
    Kept,
    /// A copy that was made at this time. Rows may have changed since.
    CopyOf(Timestamp),
}

/// Rows read at once.
const PAGE: u32 = 1000;

/// Changes this long before a copy was made count as later: the mark of a file is made after its commit, and by another
/// clock than the copy.
const COPY_DOUBT: Duration = Duration::from_secs(300);

/// The repair of one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Repair {
    /// Its captures go out of the index.
    take_out: bool,
    /// It waits to be indexed again.
    send_back: bool,
}

/// Decides about one row. `held`: the index has it; `None`: the index has nothing of such a file.
fn repair(state: CollectedState, held: Option<bool>, changed_since_copy: Option<bool>) -> Repair {
    let nothing = Repair { take_out: false, send_back: false };
    let Some(held) = held else { return nothing };
    let from_copy = changed_since_copy.is_some();
    match state {
        // A file indexed after the copy was made may be another one under the same name.
        CollectedState::Indexed => {
            let stale = changed_since_copy.unwrap_or_default();
            Repair { take_out: held && stale, send_back: !held || stale }
        }
        CollectedState::Out | CollectedState::Failed => Repair { take_out: held, send_back: false },
        // In an index of ours it was committed a moment before a crash, and is only to be marked.
        CollectedState::Waiting => Repair { take_out: held && from_copy, send_back: false },
        // Taking it out is due anyway.
        CollectedState::Leaving => nothing,
    }
}

/// Files of a collection that are out of its index or failed: nothing about them may be in it.
#[derive(Debug, Default)]
pub(super) struct Unwanted(HashSet<String>);

impl Unwanted {
    pub(super) async fn of(db: &Db, collection: &str) -> Result<Self, grange_db::Error> {
        let mut names = HashSet::new();
        for state in [CollectedState::Out, CollectedState::Failed] {
            let mut after = 0;
            loop {
                let rows = db.collections().files(collection, Some(state), after, PAGE).await?;
                let Some(last) = rows.last() else { break };
                after = last.id;
                names.extend(rows.into_iter().map(|row| row.name));
            }
        }
        Ok(Self(names))
    }

    pub(super) fn has(&self, file: &str) -> bool {
        is_known(&self.0, file)
    }
}

/// The contents of an index, by name.
struct Contents {
    snapshot: std::sync::Arc<Snapshot>,
    /// Those that were read.
    files: BTreeSet<String>,
    /// Also those that only lines name.
    named: BTreeSet<String>,
}

impl Contents {
    fn of(index: &Index) -> Self {
        let snapshot = index.snapshot();
        let files = snapshot.whole_files().map(ToOwned::to_owned).collect();
        let named = snapshot.file_names().map(ToOwned::to_owned).collect();
        Self { snapshot, files, named }
    }

    fn holds(&self, row: &CollectedFile) -> Option<bool> {
        let kind = Kind::of(row.path.as_deref().unwrap_or(&row.name));
        let empty = row.state == CollectedState::Indexed && row.captures == 0;
        // Taking a file out takes out the lines that name it.
        let unwanted = matches!(row.state, CollectedState::Out | CollectedState::Failed);
        let files = if unwanted { &self.named } else { &self.files };
        match kind {
            Kind::Records => Some(files.contains(&row.name)),
            Kind::Other if unwanted => Some(files.contains(&row.name)),
            Kind::Wacz | Kind::Lines if empty => None,
            Kind::Wacz => {
                let below = format!("{}/", row.name);
                Some(files.range(below.clone()..).next().is_some_and(|file| file.starts_with(&below)))
            }
            Kind::Lines => Some(self.snapshot.holds_job(&lines_job(&row.name))),
            Kind::Other => None,
        }
    }
}

/// Makes the rows and the index agree. For an index that nobody else writes to or serves.
pub(super) async fn reconcile(
    db: &Db,
    lease: &IndexLease,
    index: &Index,
    provenance: Provenance,
) -> Result<(), FeedError> {
    let of = index.clone();
    let contents = blocking(move || Contents::of(&of)).await;
    let copied = match provenance {
        Provenance::Kept => None,
        Provenance::CopyOf(made) => Some(made.saturating_sub(COPY_DOUBT).unwrap_or(Timestamp::MIN)),
    };
    let (mut known, mut leaving) = (HashSet::new(), Vec::new());
    let (mut after, mut sent_back) = (0, 0);
    loop {
        let rows = db.collections().files(&lease.collection, None, after, PAGE).await?;
        let Some(last) = rows.last() else { break };
        after = last.id;
        let mut again = Vec::new();
        for row in rows {
            let changed = copied.map(|copied| row.changed_at >= copied);
            let repair = repair(row.state, contents.holds(&row), changed);
            if repair.send_back {
                again.push(row.id);
            }
            if repair.take_out {
                leaving.push(row.name.clone());
            }
            if copied.is_some() {
                known.insert(row.name);
            }
        }
        if !again.is_empty() {
            sent_back += db.collections().send_back(lease, &again).await?;
        }
    }
    if copied.is_some() {
        leaving.extend(contents.files.iter().filter(|file| !is_known(&known, file)).cloned());
    }
    let taken_out = leaving.len();
    if sent_back > 0 || taken_out > 0 {
        tracing::warn!(
            collection = lease.collection,
            sent_back,
            taken_out,
            "the index did not agree with its rows: files that it lacked are indexed again, files that it should not have were taken out"
        );
    }
    let index = index.clone();
    let out = move || leaving.iter().try_for_each(|name| take_out(&index, name));
    blocking(out).await.map_err(|trouble| FeedError::Index(trouble.to_string()))
}

/// Whether a file of the index has a row: its own, or that of the package it is in.
fn is_known(rows: &HashSet<String>, file: &str) -> bool {
    rows.contains(file) || file.match_indices('/').any(|(at, _)| rows.contains(&file[..at]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_what_its_state_says() {
        use CollectedState::{Failed, Indexed, Leaving, Out, Waiting};
        for (state, held, since, take_out, send_back) in [
            (Indexed, Some(true), None, false, false),
            (Indexed, Some(false), None, false, true),
            (Indexed, None, None, false, false),
            (Indexed, Some(true), Some(false), false, false),
            (Indexed, Some(true), Some(true), true, true),
            (Indexed, Some(false), Some(false), false, true),
            (Out, Some(true), None, true, false),
            (Out, Some(false), None, false, false),
            (Failed, Some(true), None, true, false),
            (Waiting, Some(true), None, false, false),
            (Waiting, Some(true), Some(false), true, false),
            (Waiting, Some(false), Some(true), false, false),
            (Leaving, Some(true), Some(true), false, false),
        ] {
            let found = repair(state, held, since);
            assert_eq!(found, Repair { take_out, send_back }, "{state} {held:?} {since:?}");
        }
    }

    #[test]
    fn members_of_a_package_belong_to_its_row() {
        let rows: HashSet<String> = ["a.warc", "b/c.wacz"].map(ToOwned::to_owned).into();
        for (file, known) in [
            ("a.warc", true),
            ("b/c.wacz/archive/d.warc", true),
            ("b/d.warc", false),
            ("c.wacz/archive/d.warc", false),
        ] {
            assert_eq!(is_known(&rows, file), known, "{file}");
        }
    }
}
