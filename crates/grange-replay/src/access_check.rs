//! What one reader may see of one collection: everything that leaves it is asked about here.
//!
//! The decision itself is [`grange_index::access`]; this finds the facts that it needs, such as the type of the original of a
//! revisit.

use std::cell::OnceCell;
use std::net::IpAddr;
use std::sync::Arc;

use grange_index::access::{
    CaptureFacts, CapturedUrl, CompiledRule, LookupHint, MediaType, Reader, RuleSet, Verdict,
};
use grange_index::query::{Keys, Next, Query};
use grange_index::{Capture, CaptureView, Snapshot, Stamp};
use warc::RecordType;

use crate::capture::{About, Original, OriginalFinder, Refers};
use crate::collection::{Collection, Collections};

/// Whoever asks, as rules see them.
#[derive(Clone, Debug, Default)]
pub struct Person {
    pub address: Option<IpAddr>,
    pub user: Option<String>,
    /// The role of the account of that name.
    pub(crate) role: Option<String>,
    pub(crate) staff: bool,
    pub(crate) now: Stamp,
}

impl Person {
    pub(crate) fn new(
        address: Option<IpAddr>,
        user: Option<&str>,
        now: Stamp,
        collections: &Collections,
    ) -> Self {
        let account = user.and_then(|user| collections.account(user));
        Self {
            address,
            user: user.map(ToOwned::to_owned),
            staff: account.as_ref().is_some_and(|account| account.staff),
            role: account.map(|account| account.role),
            now,
        }
    }

    fn reader(&self) -> Reader<'_> {
        Reader {
            address: self.address,
            user: self.user.as_deref(),
            role: self.role.as_deref(),
            staff: self.staff,
            now: self.now,
        }
    }
}

/// One state of the index, one set of rules, one reader.
#[derive(Clone, Debug)]
pub(crate) struct AccessCheck {
    collection: String,
    pub(crate) snapshot: Arc<Snapshot>,
    rules: Arc<RuleSet>,
    person: Person,
    hint: LookupHint,
    /// For the types of revisits.
    originals: OriginalFinder,
}

impl AccessCheck {
    pub(crate) fn new(collection: &Collection, person: &Person) -> Self {
        Self {
            collection: collection.name.clone(),
            snapshot: collection.index.snapshot(),
            rules: collection.rules(),
            person: person.clone(),
            hint: LookupHint::default(),
            originals: OriginalFinder::new(true),
        }
    }

    /// Looks at so many captures at most for the types of revisits; [`Self::is_cut_short`] says whether that was too few. A clone
    /// has no limit.
    pub(crate) fn limit(&mut self, rows: u64) {
        self.originals.limit(rows);
    }

    /// Whether a limit kept it from judging everything.
    pub(crate) fn is_cut_short(&self) -> bool {
        self.originals.is_exhausted()
    }

    /// Whether nothing was decided by anybody: only the documentation of crawls is hidden.
    pub(crate) fn is_without_rules(&self) -> bool {
        self.rules.is_empty()
    }

    /// The rule that hides all documentation of crawls from the reader, if no other rule opens some of it.
    pub(crate) fn hides_documentation(&self) -> Option<&CompiledRule> {
        self.rules.hides_documentation(&self.collection, &self.person.reader())
    }

    fn hides(&self, facts: &CaptureFacts<'_>) -> Option<&CompiledRule> {
        match self.rules.judge(facts, &self.person.reader(), &self.hint) {
            Verdict::Visible => None,
            Verdict::Hidden(rule) => Some(rule),
        }
    }

    /// Whether the reader may see a capture, by what the index knows of it.
    pub(crate) fn sees_capture(&self, capture: &Capture) -> bool {
        self.hides_capture(capture).is_none()
    }

    /// Whether the reader may know of a row of the index.
    pub(crate) fn sees_row(&self, view: &CaptureView<'_>) -> bool {
        let known = OnceCell::new();
        let types = || known.get_or_init(|| self.original_types(&view.to_capture())).clone();
        self.hides(&CaptureFacts::of_view(&self.collection, view, &types)).is_none()
    }

    /// The rule that hides a capture, by what the index knows of it.
    pub(crate) fn hides_capture(&self, capture: &Capture) -> Option<&CompiledRule> {
        let known = OnceCell::new();
        let types = || known.get_or_init(|| self.original_types(capture)).clone();
        self.hides(&CaptureFacts::of_capture(&self.collection, capture, &types))
    }

    /// The rule that hides a capture, by what its records say: an index may know another type, or none.
    pub(crate) fn hides_loaded(
        &self,
        capture: &Capture,
        about: &About,
        original: Option<&Original>,
    ) -> Option<&CompiledRule> {
        if let Some(original) = original {
            // Hidden is the body as well as the name: another URL that had the same does not open it. Neither may cookies of the
            // original's head be shown, nor any record that only a line calls the original.
            if let Some(rule) = self.hides_capture(&original.capture) {
                return Some(rule);
            }
        }
        self.hides_content(capture, about, original.map(|original| &*original.about))
    }

    /// The rule that hides a capture for the types that its record and its original name, or for the URL of the record: where
    /// the index is of another version of the file, that is another one.
    pub(crate) fn hides_content(
        &self,
        capture: &Capture,
        about: &About,
        original: Option<&About>,
    ) -> Option<&CompiledRule> {
        let own = own_type(about);
        let types = || {
            let mut types: Vec<String> = own.iter().cloned().chain(original.and_then(About::mime)).collect();
            if original.is_none() {
                types.extend(self.original_types(capture));
            }
            types
        };
        let media_type = if about.kind == RecordType::Revisit {
            MediaType::Revisit(&types)
        } else {
            MediaType::Of(own.as_deref())
        };
        self.hides(&self.facts(capture, about, media_type))
    }

    /// Whether the capture that a revisit refers to is hidden, also one that no index lists.
    pub(crate) fn hides_referred(&self, refers: &Refers, revisit: &Capture) -> bool {
        let Some(uri) = &refers.uri else { return false };
        let surt = grange_index::key(uri);
        let time = refers.date.and_then(|date| Stamp::parse(date.digits14())).unwrap_or(revisit.time);
        let types = || self.original_types(revisit);
        let facts = CaptureFacts {
            collection: &self.collection,
            surt: surt.as_bytes(),
            url: CapturedUrl::Text(uri),
            time,
            media_type: MediaType::Revisit(&types),
        };
        self.hides(&facts).is_some()
    }

    fn facts<'a>(
        &'a self,
        capture: &'a Capture,
        about: &'a About,
        media_type: MediaType<'a>,
    ) -> CaptureFacts<'a> {
        let (surt, time) = (capture.surt.as_bytes(), capture.time);
        let url = about.uri.as_deref().map_or(CapturedUrl::Unknown, CapturedUrl::Text);
        CaptureFacts { collection: &self.collection, surt, url, time, media_type }
    }

    /// The rule that hides a record that no index lists, such as a request: it is of the type of the capture that it belongs
    /// to, or of any.
    pub(crate) fn hides_unlisted(&self, capture: &Capture, about: &About) -> Option<&CompiledRule> {
        let speaks_of_another = !matches!(
            about.kind,
            RecordType::Response | RecordType::Resource | RecordType::Conversion | RecordType::Revisit
        );
        if !speaks_of_another {
            return self.hides_content(capture, about, None);
        }
        let types = || self.types_at(capture);
        self.hides(&self.facts(capture, about, MediaType::Revisit(&types)))
    }

    /// The capture of a record, if the index lists it.
    pub(crate) fn listed(&self, file: &str, offset: u64, key: &str, time: Stamp) -> Option<Capture> {
        let mut found = None;
        // The answer to a request with a body is listed under its URL and that body.
        let with_body = Keys::Range(format!("{key}?"), Some(format!("{key}@")));
        for keys in [Keys::Exact(key.to_owned()), with_body] {
            let mut query = Query::new(keys);
            (query.from, query.to) = moment(time);
            let mut rows = 0;
            let looked = query.run(&self.snapshot, |view| {
                rows += 1;
                if view.file() == file && view.offset() == Some(offset) {
                    found = Some(view.to_capture());
                }
                Ok(if found.is_none() && rows < BODIES_MAX { Next::More } else { Next::Stop })
            });
            note(looked.map(drop));
            if found.is_some() {
                break;
            }
        }
        found
    }

    /// The types of the captures of a URL and a moment.
    fn types_at(&self, capture: &Capture) -> Vec<String> {
        let mut query = Query::new(Keys::Exact(capture.surt.clone()));
        (query.from, query.to) = moment(capture.time);
        let mut captures = Vec::new();
        let looked = query.run(&self.snapshot, |view| {
            captures.push(view.to_capture());
            Ok(Next::More)
        });
        note(looked.map(drop));
        let types = captures.into_iter().flat_map(|one| {
            if one.is_revisit() { self.original_types(&one) } else { one.mime.into_iter().collect() }
        });
        types.collect()
    }

    /// The type of the original of a revisit as the index knows it; none if it knows of no original.
    fn original_types(&self, revisit: &Capture) -> Vec<String> {
        let found = self.originals.find(&self.snapshot, revisit).unwrap_or_else(|error| {
            if !matches!(error, grange_index::Error::Unfinished { .. }) {
                note(Err(error));
            }
            None
        });
        found.and_then(|original| original.mime).into_iter().collect()
    }

    /// How much the reader may see, if that can be said without looking at everything: captures and files.
    pub(crate) fn quick_counts(&self) -> Option<(u64, u64)> {
        if !self.rules.is_empty() {
            return None;
        }
        let stats = self.snapshot.stats();
        let (mut rows, mut files) = (0, std::collections::HashSet::new());
        for (start, end) in [("filedesc:", "filedesc;"), ("metadata:", "metadata;")] {
            let query = Query::new(Keys::Range(start.to_owned(), Some(end.to_owned())));
            let looked = query.run(&self.snapshot, |view| {
                rows += 1;
                files.insert(view.file().to_owned());
                Ok(if rows > DOCUMENTATION_ROWS_MAX { Next::Stop } else { Next::More })
            });
            note(looked.map(drop));
        }
        let counted = rows <= DOCUMENTATION_ROWS_MAX;
        counted.then(|| (stats.rows.saturating_sub(rows), stats.files.saturating_sub(files.len() as u64)))
    }
}

/// Rows of documentation that are counted while somebody waits for a page: some ten milliseconds.
const DOCUMENTATION_ROWS_MAX: u64 = 10_000;
/// Captures of one moment that are looked through for the one of a record.
const BODIES_MAX: u32 = 1000;

/// All that a time may mean: an index may know it to the millisecond.
fn moment(time: Stamp) -> (Stamp, Stamp) {
    let digits = time.to_string();
    (Stamp::earliest(&digits).unwrap_or(Stamp::MIN), Stamp::latest(&digits).unwrap_or(Stamp::MAX))
}

fn own_type(about: &About) -> Option<String> {
    match about.kind {
        // The type of the block of a revisit without a head is that of HTTP, not of what it stands for.
        RecordType::Revisit if about.http.is_none() => None,
        _ => about.mime(),
    }
}

/// A type that could not be looked up is one that nobody knows.
fn note(looked: Result<(), grange_index::Error>) {
    if let Err(error) = looked {
        tracing::warn!(error = %grange_base::Chain(&error), "cannot look up the type of a capture for an access rule");
    }
}
