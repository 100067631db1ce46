//! Which captures answer a request, the best first.

use std::sync::Arc;

use grange_i18n::Tongue;
use grange_index::query::{Keys, Next, Order, Query};
use grange_index::{Capture, Error, Snapshot, Stamp};

use super::fuzzy;
use crate::access_check::AccessCheck;
use crate::capture::{self, About, Loaded, NoPayload, Undo};
use crate::collection::Collection;
use crate::lookup_pool::{self, SHORT_ROWS_MAX};
use crate::memento::Around;
use crate::reader::{Who, reason};

/// Captures that are tried when the ones before cannot be read or lead back to themselves.
const TRIED_MAX: usize = 50;

/// A collection as one request sees it: one state of the index, one set of rules, one reader.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) collection: Arc<Collection>,
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) access: AccessCheck,
    pub(crate) who: Who,
    /// Only captures of these jobs; empty: of all.
    pub(crate) jobs: Vec<String>,
    /// Rows that one question may read; `None` is as many as it takes.
    rows_most: Option<u64>,
}

/// What there is for a request.
#[derive(Debug)]
pub(crate) enum Found {
    /// Closest in time first.
    Captures(Vec<Capture>),
    /// There are captures, but this reader may not see them.
    Hidden(String),
    Nothing,
}

/// What is asked for.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) url: String,
    /// Keys to look under, the best first: several for a request with a body, which indexers spell differently.
    pub(crate) keys: Vec<String>,
    pub(crate) time: Stamp,
    /// Whether arguments may differ.
    pub(crate) fuzzy: bool,
}

impl Wanted {
    pub(crate) fn get(url: &str, time: Stamp) -> Self {
        Self { url: url.to_owned(), keys: vec![grange_index::key(url)], time, fuzzy: true }
    }

    /// A request with a body: method and body are in the key.
    pub(crate) fn with_body(url: &str, method: &str, content_type: &str, body: &[u8], time: Stamp) -> Self {
        let key = |spelling| {
            grange_index::key(&cdx::url_with_body(
                url,
                method,
                &cdx::body_query(content_type, body, spelling),
            ))
        };
        let mut keys = vec![key(cdx::Spelling::Modern), key(cdx::Spelling::Python)];
        keys.dedup();
        let url =
            cdx::url_with_body(url, method, &cdx::body_query(content_type, body, cdx::Spelling::Modern));
        Self { url, keys, time, fuzzy: true }
    }
}

impl View {
    /// The language to answer in.
    pub(crate) fn tongue(&self) -> Tongue {
        self.who.tongue()
    }

    pub(crate) fn new(collection: Arc<Collection>, who: Who) -> Self {
        let access = AccessCheck::new(&collection, &who.person);
        Self {
            snapshot: Arc::clone(&access.snapshot),
            collection,
            access,
            who,
            jobs: Vec::new(),
            rows_most: None,
        }
    }

    /// The same, but looking at few captures for anything.
    fn short(&self) -> Self {
        let mut short = self.clone();
        short.rows_most = Some(SHORT_ROWS_MAX);
        short.access.limit(SHORT_ROWS_MAX);
        short
    }

    /// Looks something up: here, which is cheap for nearly every URL, and again on a thread for that where it takes more than
    /// a few captures. `None`: the server stops.
    pub(crate) async fn look<T: Send + 'static>(
        &self,
        look: impl Fn(&Self) -> Result<T, Error> + Send + 'static,
    ) -> Option<Result<T, Error>> {
        let short = self.short();
        match look(&short) {
            Err(Error::Unfinished { .. }) => {}
            _ if short.access.is_cut_short() => {}
            done => return Some(done),
        }
        let view = self.clone();
        lookup_pool::run(move || look(&view)).await
    }

    fn query(&self, key: &str) -> Query {
        Query { rows_most: self.rows_most, ..Query::new(Keys::Exact(key.to_owned())) }
    }

    pub(crate) fn sees(&self, view: &grange_index::CaptureView<'_>) -> bool {
        let job =
            self.jobs.is_empty() || view.job().is_some_and(|job| self.jobs.iter().any(|one| one == job));
        job && self.access.sees_row(view)
    }

    /// Reads a capture, with an original that the reader may see if there is one.
    pub(crate) async fn load(
        &self,
        capture: &Capture,
        undo: impl Fn(&About) -> Undo + Clone + Send + 'static,
    ) -> Result<Loaded, NoPayload> {
        let sees = |original: &Capture| self.access.sees_capture(original);
        capture::load(&self.snapshot, &self.collection, capture, undo, sees).await
    }

    /// Why a capture that was read is not shown after all, if its records are of a type that the index did not know.
    pub(crate) async fn hides_loaded(&self, capture: &Capture, loaded: &Loaded) -> Option<String> {
        let Loaded { about, original, .. } = loaded;
        let short = self.short();
        let hidden = short.access.hides_loaded(capture, about, original.as_ref());
        if !short.access.is_cut_short() {
            return hidden.map(|rule| reason(rule, &self.tongue()));
        }
        let (view, capture, about, original) =
            (self.clone(), capture.clone(), Arc::clone(about), original.clone());
        let judged = lookup_pool::run(move || {
            let hidden = view.access.hides_loaded(&capture, &about, original.as_ref());
            hidden.map(|rule| reason(rule, &view.tongue()))
        });
        // Where the server stops, nothing is judged any more, and so nothing is shown.
        judged.await.unwrap_or_else(|| Some(self.tongue().say("hidden-blocked")))
    }

    /// The captures that answer, in the order in which they should be tried.
    pub(crate) fn find(&self, wanted: &Wanted) -> Result<Found, Error> {
        let mut hidden = None;
        for key in &wanted.keys {
            let mut captures = Vec::new();
            let mut query = self.query(key);
            query.order = Order::Closest(wanted.time);
            query.run(&self.snapshot, |view| {
                if self.sees(view) {
                    captures.push(view.to_capture());
                } else if hidden.is_none() {
                    let rule = self.access.hides_capture(&view.to_capture());
                    hidden = rule.map(|rule| reason(rule, &self.tongue()));
                }
                // One is enough nearly always; those of the same moment are weighed against each other.
                let enough = match captures.as_slice() {
                    [first, .., last] => first.time != last.time,
                    _ => false,
                };
                Ok(if enough { Next::Stop } else { Next::More })
            })?;
            if !captures.is_empty() {
                weigh(&mut captures, &wanted.url);
                return Ok(Found::Captures(captures));
            }
        }
        if let Some(reason) = hidden {
            return Ok(Found::Hidden(reason));
        }
        if wanted.fuzzy {
            let captures =
                fuzzy::candidates(&self.snapshot, &wanted.url, wanted.time, |view| self.sees(view))?;
            if !captures.is_empty() {
                return Ok(Found::Captures(captures));
            }
        }
        Ok(Found::Nothing)
    }

    /// More captures of the same keys, for when none of the first could be shown.
    pub(crate) fn find_more(&self, wanted: &Wanted) -> Result<Vec<Capture>, Error> {
        let mut captures = Vec::new();
        for key in &wanted.keys {
            let mut query = self.query(key);
            query.order = Order::Closest(wanted.time);
            query.run(&self.snapshot, |view| {
                if self.sees(view) {
                    captures.push(view.to_capture());
                }
                Ok(if captures.len() < TRIED_MAX { Next::More } else { Next::Stop })
            })?;
        }
        Ok(captures)
    }

    /// The captures before and after a moment, the first and the last.
    pub(crate) fn around(&self, key: &str, time: Stamp) -> Result<Around, Error> {
        let one = |order: Order, from: Stamp, to: Stamp, not: Option<Stamp>| {
            let mut query = self.query(key);
            (query.order, query.from, query.to) = (order, from, to);
            let mut found = None;
            query
                .run(&self.snapshot, |view| {
                    if self.sees(view) && Some(view.time()) != not {
                        found = Some(view.time());
                        return Ok(Next::Stop);
                    }
                    Ok(Next::More)
                })
                .map(|_| found)
        };
        Ok(Around {
            first: one(Order::Ascending, Stamp::MIN, Stamp::MAX, None)?,
            previous: one(Order::Descending, Stamp::MIN, time, Some(time))?,
            next: one(Order::Ascending, time, Stamp::MAX, Some(time))?,
            last: one(Order::Descending, Stamp::MIN, Stamp::MAX, None)?,
        })
    }
}

/// Among captures of the first moment: the URL as asked before its twins (http and https, with and without www), answers
/// before redirects before what has no content.
fn weigh(captures: &mut [Capture], url: &str) {
    let Some(first) = captures.first().map(|capture| capture.time) else { return };
    let same = captures.iter().take_while(|capture| capture.time == first).count();
    captures[..same].sort_by_key(|capture| {
        let other_url = capture.url.as_deref() != Some(url);
        let status = match capture.status {
            Some(304) => 3,
            Some(300..=399) => 2,
            Some(200..=299) => 0,
            None if !capture.is_revisit() => 1,
            None => 0,
            Some(_) => 1,
        };
        (other_url, status)
    });
}
