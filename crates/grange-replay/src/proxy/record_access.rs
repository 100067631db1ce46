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

    /// The rule that hides a record. Its collections are those whose index lists it: it is visible if it is in one of them. A
    /// record that none lists, such as a request, must be visible in all that have the file.
    pub(super) fn hides(&self, about: &About, offset: u64) -> Option<&CompiledRule> {
        let key = about.uri.as_deref().map(grange_index::key).unwrap_or_default();
        let time = about.date.and_then(|date| Stamp::parse(date.digits14())).unwrap_or_default();
        let mut hidden = None;
        let mut listed = false;
        for check in &self.checks {
            let Some(capture) = check.listed(&self.file, offset, &key, time) else { continue };
            listed = true;
            match check.hides_capture(&capture).or_else(|| check.hides_content(&capture, about, None)) {
                Some(rule) => hidden = Some(rule),
                None => return None,
            }
        }
        if listed {
            return hidden;
        }
        let digest = about.payload_digest.clone();
        let capture = Capture { surt: key, time, digest, url: about.uri.clone(), ..Capture::default() };
        self.checks.iter().find_map(|check| check.hides_unlisted(&capture, about))
    }
}
