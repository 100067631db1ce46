//! Whether the records of a file may be handed out, whichever collections the file is in.

use std::sync::Arc;

use grange_index::access::CompiledRule;
use grange_index::{Capture, Stamp};

use crate::access_check::{AccessCheck, Person};
use crate::capture::About;
use crate::collection::Collections;
use crate::holdings::{Holdings, HoldingsError};

/// A file and the collections that can open it, for one reader.
pub(super) struct RecordAccess {
    pub(super) holdings: Arc<dyn Holdings>,
    file: String,
    checks: Vec<AccessCheck>,
}

impl RecordAccess {
    /// Opens a file; `None` if no collection has it.
    pub(super) async fn open(
        collections: &Collections,
        person: &Person,
        file: &str,
    ) -> Result<Option<Self>, HoldingsError> {
        let mut found: Option<Self> = None;
        let mut failed = None;
        for collection in collections.all() {
            match collection.holdings.read_at(file, 0, 1).await {
                Ok(Some(_)) => {
                    let access = found.get_or_insert_with(|| Self {
                        holdings: Arc::clone(&collection.holdings),
                        file: file.to_owned(),
                        checks: Vec::new(),
                    });
                    access.checks.push(AccessCheck::new(&collection, person));
                }
                Ok(None) => {}
                Err(error) => failed = Some(error),
            }
        }
        match failed {
            Some(error) if found.is_none() => Err(error),
            _ => Ok(found),
        }
    }

    /// Whether no rule was made for any of the collections.
    pub(super) fn is_without_rules(&self) -> bool {
        self.checks.iter().all(AccessCheck::is_without_rules)
    }

    /// The rule that hides all documentation of crawls, if no rule of any of the collections opens some of it.
    pub(super) fn hides_documentation(&self) -> Option<&CompiledRule> {
        let hidden = self.checks.iter().map(AccessCheck::hides_documentation).collect::<Option<Vec<_>>>();
        hidden?.into_iter().next()
    }

    /// What may be said of the capture that begins at a byte of the file. Its collections are those whose index lists it: it is
    /// visible if it is in one of them.
    pub(super) fn judge_listed(&self, about: &About, offset: u64) -> ListedRecord<'_> {
        let (key, time) = key_and_time(about);
        let mut judged = ListedRecord::Unlisted;
        for check in &self.checks {
            let Some(capture) = check.listed(&self.file, offset, &key, time) else { continue };
            match check.hides_capture(&capture).or_else(|| check.hides_content(&capture, about, None)) {
                Some(rule) => judged = ListedRecord::Hidden(rule),
                None => return ListedRecord::Visible { length: capture.length },
            }
        }
        judged
    }

    /// The rule that hides a record that was found by reading the file from its start. One that no index lists, such as a
    /// request, must be visible in all collections that have the file.
    pub(super) fn hides(&self, about: &About, offset: u64) -> Option<&CompiledRule> {
        match self.judge_listed(about, offset) {
            ListedRecord::Visible { .. } => return None,
            ListedRecord::Hidden(rule) => return Some(rule),
            ListedRecord::Unlisted => {}
        }
        let (surt, time) = key_and_time(about);
        let digest = about.payload_digest.clone();
        let capture = Capture { surt, time, digest, url: about.uri.clone(), ..Capture::default() };
        self.checks.iter().find_map(|check| check.hides_unlisted(&capture, about))
    }
}

/// A record in the eyes of the indexes of all collections that have its file.
pub(super) enum ListedRecord<'a> {
    Visible {
        /// The bytes it takes in the file, if an index knows.
        length: Option<u64>,
    },
    Hidden(&'a CompiledRule),
    Unlisted,
}

fn key_and_time(about: &About) -> (String, Stamp) {
    let key = about.uri.as_deref().map(grange_index::key).unwrap_or_default();
    (key, about.date.and_then(|date| Stamp::parse(date.digits14())).unwrap_or_default())
}
