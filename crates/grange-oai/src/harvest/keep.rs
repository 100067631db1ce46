//! The side of a harvest that keeps: entries of the journal become files, and then rows.
//!
//! ```text
//! queue ── group ── compare ── files ──► commit        of one group
//!                   compare ── files ──► commit        of the next, whose files are written meanwhile
//! ```

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use grange_model::oai::{Counts, KnownRecord, OaiPage};
use jiff::Timestamp;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;

use super::batch::{Judged, WARNINGS_MAX};
use super::entry::Entry;
use super::ledger::{Ledger, LedgerError};
use super::looped::{Looped, PageSoFar};
use super::position::Position;
use super::queue::{Group, Names, Waiting};
use super::repeats::Repeats;
use super::segments::Segments;
use super::work::{self, Rules};
use crate::store::files::{self, Change, Folder};
use crate::store::place::Places;

/// Writes files and rows.
pub(super) struct Keeper {
    ledger: Arc<dyn Ledger>,
    root: PathBuf,
    folder: Option<Folder>,
    places: Places,
    prefix: String,
    parse_id: bool,
    /// Of everything that is kept.
    counts: Counts,
    repeats: Repeats,
    warned: u64,
    page: PageSoFar,
    looped: Looped,
    committing: Option<(JoinHandle<Result<(), LedgerError>>, Names)>,
    segments: Segments,
}

impl Keeper {
    pub(super) fn new(
        ledger: Arc<dyn Ledger>,
        root: PathBuf,
        folder: Folder,
        places: Places,
        rules: Rules<'_>,
    ) -> Self {
        let segments = Segments::new(root.clone());
        Self {
            ledger,
            root,
            folder: Some(folder),
            places,
            prefix: rules.prefix.to_owned(),
            parse_id: rules.parse_id,
            counts: Counts::default(),
            repeats: Repeats::default(),
            warned: 0,
            page: PageSoFar::default(),
            looped: Looped::default(),
            committing: None,
            segments,
        }
    }

    pub(super) fn looped(&self) -> Looped {
        self.looped.clone()
    }

    pub(super) fn space(&self) -> Arc<Semaphore> {
        self.segments.space()
    }

    pub(super) fn counts(&self) -> Counts {
        self.counts
    }

    pub(super) fn repeats(&self) -> Repeats {
        self.repeats
    }

    /// What was kept before goes on from here.
    pub(super) fn go_on_from(&mut self, position: &Position) {
        (self.counts, self.repeats) = (position.counts, position.repeats);
    }

    /// Segments of an earlier harvest that hold nothing that is not kept.
    pub(super) fn may_retire(&mut self, segments: Vec<PathBuf>) {
        self.segments.left_before(segments);
    }

    /// What is left to be retired when all is over.
    pub(super) fn leave(self) -> Vec<PathBuf> {
        self.segments.leave()
    }

    /// Keeps what comes until nobody sends any more.
    pub(super) async fn run(mut self, mut queue: mpsc::Receiver<Waiting>) -> (Self, Result<(), String>) {
        let outcome = self.keep_all(&mut queue).await;
        // Whoever waits for room is told that there will be none.
        self.segments.space().close();
        (self, outcome)
    }

    async fn keep_all(&mut self, queue: &mut mpsc::Receiver<Waiting>) -> Result<(), String> {
        let mut held: Option<Waiting> = None;
        loop {
            let first = match held.take() {
                Some(first) => Some(first),
                None => queue.recv().await,
            };
            let Some(first) = first else { break };
            let mut group = Group::of(first);
            while !group.is_full()
                && let Ok(next) = queue.try_recv()
            {
                if let Err(next) = group.add(next) {
                    held = Some(*next);
                    break;
                }
            }
            self.keep(group).await?;
        }
        self.settle().await
    }

    /// Files first; then the rows that say so, with the position, while the next group's files are written.
    pub(super) async fn keep(&mut self, group: Group) -> Result<(), String> {
        let Group { list, entries, names, .. } = group;
        if self.committing.as_ref().is_some_and(|(_, before)| before.shares(&names)) {
            self.settle().await?;
        }
        let mut known = self.known(entries.iter().map(|waiting| &waiting.entry)).await?;
        self.learn_folders(&entries, &known).await?;
        let (mut changes, mut page) = (Vec::new(), OaiPage { list, ..OaiPage::default() });
        let mut rooms = Vec::with_capacity(entries.len());
        let mut closed = Vec::new();
        for mut waiting in entries {
            closed.extend(waiting.full_segment.take());
            let records = std::mem::take(&mut waiting.entry.records);
            let (entry, count) = (&mut waiting.entry, records.len());
            let lists = (entry.position.first_list, list);
            let rules = Rules { prefix: &self.prefix, parse_id: self.parse_id };
            let work = work::compare(records, &mut known, rules, &mut self.places, lists, entry.response);
            if self.page.take(entry.page, count, work.only_seen) {
                self.looped.set(list);
            }
            // Of a page that is asked for again, nobody knows which records came twice.
            if !entry.page.again {
                self.repeats.count(list, entry.repeated + work.repeated);
            }
            if let Some(end) = entry.position.list_end.filter(|end| end.list == list) {
                self.repeats.end_of_list(end);
            }
            self.counts += entry.counts;
            self.counts += work.counts;
            changes.extend(work.changes);
            page.records.extend(work.rows);
            page.same.extend(work.same);
            self.warn(&mut page.warnings, std::mem::take(&mut entry.warnings));
            rooms.push(waiting);
        }
        if let Some(last) = rooms.last() {
            self.stand(&mut page, &last.entry.position);
        }
        page.folders = self.places.take_changed();
        self.write(changes).await?;
        drop(rooms);
        self.commit(page, names).await?;
        self.segments.closed(closed);
        self.segments.retire();
        Ok(())
    }

    /// Keeps a position alone.
    pub(super) async fn keep_position(&mut self, position: &Position) -> Result<(), String> {
        let mut page = OaiPage { list: position.list, ..OaiPage::default() };
        self.stand(&mut page, position);
        self.commit(page, Names::default()).await?;
        self.settle().await
    }

    /// Keeps what became of held records that a whole list did not bring. `at` dates those that have no date.
    pub(super) async fn keep_unlisted(
        &mut self,
        unlisted: Vec<KnownRecord>,
        records: Vec<Judged>,
        (counts, warnings): (Counts, Vec<String>),
        at: Timestamp,
        position: &Position,
    ) -> Result<(), String> {
        let mut known = unlisted.into_iter().map(|known| (known.identifier.clone(), known)).collect();
        let rules = Rules { prefix: &self.prefix, parse_id: self.parse_id };
        let lists = (position.first_list, position.list);
        let work = work::compare(records, &mut known, rules, &mut self.places, lists, at);
        self.counts += counts;
        self.counts += work.counts;
        let mut page =
            OaiPage { list: position.list, records: work.rows, same: work.same, ..OaiPage::default() };
        self.warn(&mut page.warnings, warnings);
        self.stand(&mut page, position);
        self.write(work.changes).await?;
        // No journal speaks of these.
        let root = self.root.clone();
        blocking(move || files::sync(&root)).await?;
        self.commit(page, Names::default()).await?;
        self.settle().await
    }

    /// Keeps a line of history.
    pub(super) async fn tell(&mut self, told: String, position: &Position) -> Result<(), String> {
        let mut page = OaiPage { list: position.list, warnings: vec![told], ..OaiPage::default() };
        self.stand(&mut page, position);
        self.commit(page, Names::default()).await?;
        self.settle().await
    }

    /// Writes the files of an entry again whose rows are kept.
    pub(super) async fn mend(&mut self, entry: Entry) -> Result<(), String> {
        let known = self.known(std::iter::once(&entry)).await?;
        self.write(work::mend(entry.records, &known)).await
    }

    async fn known(
        &self,
        entries: impl Iterator<Item = &Entry>,
    ) -> Result<HashMap<String, KnownRecord>, String> {
        let names: Vec<_> =
            entries.flat_map(|entry| entry.records.iter().map(|record| record.identifier.as_str())).collect();
        if names.is_empty() {
            return Ok(HashMap::new());
        }
        let known = self.ledger.known(&names).await.map_err(|error| error.0)?;
        Ok(known.into_iter().map(|known| (known.identifier.clone(), known)).collect())
    }

    async fn learn_folders(
        &mut self,
        entries: &[Waiting],
        known: &HashMap<String, KnownRecord>,
    ) -> Result<(), String> {
        let rules = Rules { prefix: &self.prefix, parse_id: self.parse_id };
        let records = entries.iter().flat_map(|waiting| &waiting.entry.records);
        let paths = work::new_paths(records, known, rules);
        let unknown = self.places.unknown(paths.iter());
        if unknown.is_empty() {
            return Ok(());
        }
        // The commit under way may have the last word on them.
        self.settle().await?;
        let counts = self.ledger.folders(&unknown).await.map_err(|error| error.0)?;
        self.places.tell(&unknown, counts);
        Ok(())
    }

    fn warn(&mut self, into: &mut Vec<String>, warnings: Vec<String>) {
        let room = WARNINGS_MAX.saturating_sub(self.warned) as usize;
        self.warned += warnings.len() as u64;
        into.extend(warnings.into_iter().take(room));
    }

    /// The page ends at a position.
    fn stand(&self, page: &mut OaiPage, position: &Position) {
        let position = Position { counts: self.counts, repeats: self.repeats, ..position.clone() };
        page.position = serde_json::to_string(&position).unwrap_or_default();
        (page.pages, page.expected, page.counts) = (position.pages, position.size, position.counts);
    }

    async fn write(&mut self, changes: Vec<Change>) -> Result<(), String> {
        if changes.is_empty() {
            return Ok(());
        }
        let Some(mut folder) = self.folder.take() else {
            return Err("the folder was lost".to_owned());
        };
        let written = tokio::task::spawn_blocking(move || {
            let outcome = folder.apply(&changes);
            (folder, outcome)
        });
        let (folder, outcome) = written.await.map_err(|error| error.to_string())?;
        self.folder = Some(folder);
        outcome.map_err(|error| grange_base::Chain(&error).to_string())
    }

    /// Begins to keep rows, when those before are kept.
    async fn commit(&mut self, page: OaiPage, names: Names) -> Result<(), String> {
        self.settle().await?;
        let ledger = Arc::clone(&self.ledger);
        self.committing = Some((tokio::spawn(async move { ledger.commit(page).await }), names));
        Ok(())
    }

    /// Returns when everything is kept that was begun.
    pub(super) async fn settle(&mut self) -> Result<(), String> {
        if let Some((commit, _)) = self.committing.take() {
            commit.await.map_err(|error| error.to_string())?.map_err(|error| error.0)?;
        }
        self.segments.kept();
        Ok(())
    }
}

/// Runs what blocks where nobody waits for the thread.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, files::FileError> + Send + 'static,
) -> Result<T, String> {
    let done = tokio::task::spawn_blocking(work).await.map_err(|error| error.to_string())?;
    done.map_err(|error| grange_base::Chain(&error).to_string())
}
