//! Originals of many revisits, for answers that ask about each.
//!
//! A URL such as `robots.txt` has thousands of revisits of one original. Looking through its captures for each of them would
//! cost the square of their number, so they are read once for each URL: where contents stand in time.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use grange_index::query::{Keys, Next, Query};
use grange_index::{Capture, Error, Snapshot, Stamp};

use super::original::{Likeness, bare, in_file, likeness, named_by_line};

/// Finds what [`super::first_originals`] finds first. Keeps the captures of the last URL that it was asked about.
#[derive(Debug)]
pub(crate) struct OriginalFinder {
    /// Only captures of which the index knows the type count.
    typed: bool,
    known: Mutex<Option<Contents>>,
    /// Rows that may still be read.
    rows_left: AtomicU64,
    #[cfg(test)]
    urls_read: std::sync::atomic::AtomicUsize,
}

/// Without its limit, and with nothing known.
impl Clone for OriginalFinder {
    fn clone(&self) -> Self {
        Self::new(self.typed)
    }
}

/// How a digest is looked up: as the value that it stands for, or, where that is not known, as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Value,
    /// Written so, whether or not the value is known.
    Text,
    /// Written so, and the value is not known.
    OnlyText,
}

/// Digests that can be compared: the algorithm where it is known, and the length as written.
type Class = (Option<warc::Algorithm>, usize);

/// The captures of one URL that are no revisits.
#[derive(Debug)]
struct Contents {
    surt: String,
    hasher: RandomState,
    /// By digest (as a hash: what is found is compared) and time.
    by_digest: Vec<(Kind, u64, Stamp)>,
    /// The times of all, in order.
    all: Vec<Stamp>,
    /// Those with a digest, and a status other than 304.
    classes: Vec<(Class, Vec<Stamp>)>,
    /// Captures of other URLs by their digests.
    elsewhere: HashMap<String, Option<Capture>>,
    /// The last one that was found, and the digest that it was found for.
    last: Option<(Option<String>, Capture)>,
}

impl OriginalFinder {
    pub(crate) fn new(typed: bool) -> Self {
        Self {
            typed,
            known: Mutex::new(None),
            rows_left: AtomicU64::new(u64::MAX),
            #[cfg(test)]
            urls_read: 0.into(),
        }
    }

    /// Reads so many rows and then finds no more: every answer is [`Error::Unfinished`].
    pub(crate) fn limit(&mut self, rows: u64) {
        self.rows_left = AtomicU64::new(rows);
    }

    pub(crate) fn is_exhausted(&self) -> bool {
        self.rows_left.load(Ordering::Relaxed) == 0
    }

    #[cfg(test)]
    fn urls_read(&self) -> usize {
        self.urls_read.load(Ordering::Relaxed)
    }

    pub(crate) fn find(&self, snapshot: &Snapshot, revisit: &Capture) -> Result<Option<Capture>, Error> {
        // Of one that its line names, the type is not known.
        if let Some(named) = named_by_line(revisit).filter(|_| !self.typed) {
            return Ok(Some(named));
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let contents = match &mut *known {
            Some(contents) if contents.surt == revisit.surt => contents,
            known => {
                #[cfg(test)]
                self.urls_read.fetch_add(1, Ordering::Relaxed);
                let left = self.rows_left.load(Ordering::Relaxed);
                let (contents, rows) = Contents::read(snapshot, &revisit.surt, self.typed, left)
                    .inspect_err(|_| self.rows_left.store(0, Ordering::Relaxed))?;
                self.rows_left.store(left.saturating_sub(rows), Ordering::Relaxed);
                known.insert(contents)
            }
        };
        contents.find(snapshot, revisit, self.typed)
    }
}

impl Contents {
    /// The captures of a URL, and how many rows were read for them.
    fn read(snapshot: &Snapshot, surt: &str, typed: bool, rows_max: u64) -> Result<(Self, u64), Error> {
        let mut contents = Self {
            surt: surt.to_owned(),
            hasher: RandomState::new(),
            by_digest: Vec::new(),
            all: Vec::new(),
            classes: Vec::new(),
            elsewhere: HashMap::new(),
            last: None,
        };
        let mut digest = String::new();
        let mut rows = 0;
        let mut query = Query::new(Keys::Exact(surt.to_owned()));
        query.rows_most = Some(rows_max);
        let run = query.run(snapshot, |view| {
            rows += 1;
            if !view.is_revisit() && (!typed || view.mime().is_some()) {
                digest.clear();
                let digest = view.digest_into(&mut digest).then_some(&*digest);
                contents.add(view.time(), view.status(), digest);
            }
            Ok(Next::More)
        });
        run?;
        contents.by_digest.sort_unstable();
        contents.by_digest.dedup();
        Ok((contents, rows))
    }

    fn add(&mut self, time: Stamp, status: Option<u16>, digest: Option<&str>) {
        self.all.push(time);
        let Some(digest) = digest else { return };
        let value = warc::Digest::parse(digest.as_bytes()).ok();
        let text = self.hash(&bare(digest).to_ascii_lowercase());
        self.by_digest.push((Kind::Text, text, time));
        self.by_digest.push(match &value {
            Some(value) => (Kind::Value, self.hash(&value.to_string()), time),
            None => (Kind::OnlyText, text, time),
        });
        if status != Some(304) {
            let class = class(digest);
            match self.classes.iter_mut().find(|(one, _)| *one == class) {
                Some((_, times)) => times.push(time),
                None => self.classes.push((class, vec![time])),
            }
        }
    }

    fn hash(&self, text: &str) -> u64 {
        self.hasher.hash_one(text)
    }

    fn find(
        &mut self,
        snapshot: &Snapshot,
        revisit: &Capture,
        typed: bool,
    ) -> Result<Option<Capture>, Error> {
        let Some(digest) = revisit.digest.as_deref() else {
            let named = named_by_line(revisit).is_some();
            let time = nearest(&self.all, revisit.time).filter(|_| !named);
            return time.map_or(Ok(None), |time| self.at(snapshot, time, None, typed, |_| true));
        };
        if let Some(time) = self.with_digest(digest, revisit.time) {
            let same =
                |other: Option<&str>| other.is_some_and(|other| likeness(digest, other) == Likeness::Same);
            let found = self.at(snapshot, time, Some(digest), typed, |one| same(one.digest.as_deref()))?;
            if found.is_some() {
                return Ok(found);
            }
        }
        if !self.elsewhere.contains_key(digest) {
            let found = snapshot.digest(digest)?.map(|known| known.first);
            let found = found.filter(|first| !first.is_revisit() && (!typed || first.mime.is_some()));
            // Of one URL they are few, unless somebody makes them up.
            if self.elsewhere.len() >= ELSEWHERE_MAX {
                self.elsewhere.clear();
            }
            self.elsewhere.insert(digest.to_owned(), found);
        }
        if let Some(Some(first)) = self.elsewhere.get(digest) {
            return Ok(Some(first.clone()));
        }
        let until = revisit.time;
        let incomparable = |one: &Capture| {
            let likeness = one.digest.as_deref().map(|other| likeness(digest, other));
            one.status != Some(304) && likeness == Some(Likeness::Incomparable)
        };
        match self.of_other_algorithms(digest, until) {
            Some(time) => self.at(snapshot, time, Some(digest), typed, incomparable),
            None => Ok(None),
        }
    }

    /// When the same content was captured: the last time up to `time`, else the first one behind it.
    fn with_digest(&self, digest: &str, time: Stamp) -> Option<Stamp> {
        let text = self.hash(&bare(digest).to_ascii_lowercase());
        let looked: &[(Kind, u64)] = &match warc::Digest::parse(digest.as_bytes()) {
            Ok(value) => vec![(Kind::Value, self.hash(&value.to_string())), (Kind::OnlyText, text)],
            Err(_) => vec![(Kind::Text, text)],
        };
        let mut before = None;
        let mut behind = None;
        for (kind, hash) in looked {
            let at = self.by_digest.partition_point(|one| *one <= (*kind, *hash, time));
            let of = |at: usize| {
                let one = self.by_digest.get(at).filter(|one| (one.0, one.1) == (*kind, *hash));
                one.map(|one| one.2)
            };
            before = before.max(at.checked_sub(1).and_then(of));
            behind = behind.into_iter().chain(of(at)).min();
        }
        before.or(behind)
    }

    /// When the last content was captured whose digest says nothing of this one.
    fn of_other_algorithms(&self, digest: &str, until: Stamp) -> Option<Stamp> {
        let own = class(digest);
        let others = self.classes.iter().filter(|(other, _)| match (own.0, other.0) {
            (Some(own), Some(other)) => own != other,
            _ => own.1 != other.1,
        });
        let last =
            |times: &[Stamp]| Some(times[times.partition_point(|time| *time <= until).checked_sub(1)?]);
        others.filter_map(|(_, times)| last(times)).max()
    }

    /// The first capture of a moment that fits, in the order of files.
    fn at(
        &mut self,
        snapshot: &Snapshot,
        time: Stamp,
        digest: Option<&str>,
        typed: bool,
        fits: impl Fn(&Capture) -> bool,
    ) -> Result<Option<Capture>, Error> {
        if let Some((last, capture)) = &self.last
            && capture.time == time
            && last.as_deref() == digest
        {
            return Ok(Some(capture.clone()));
        }
        let mut query = Query::new(Keys::Exact(self.surt.clone()));
        (query.from, query.to) = (time, time);
        let mut found = Vec::new();
        let run = query.run(snapshot, |view| {
            if !view.is_revisit() && (!typed || view.mime().is_some()) {
                found.extend(Some(view.to_capture()).filter(&fits));
            }
            Ok(Next::More)
        });
        run?;
        let first = found.into_iter().min_by_key(in_file);
        self.last = first.clone().map(|first| (digest.map(ToOwned::to_owned), first));
        Ok(first)
    }
}

/// Digests that are remembered with what other URLs have of them.
const ELSEWHERE_MAX: usize = 10_000;

fn class(digest: &str) -> Class {
    let algorithm = warc::Digest::parse(digest.as_bytes()).ok().map(|digest| digest.algorithm());
    (algorithm, bare(digest).len())
}

/// The last of `times` up to `time`, else the first one behind it.
fn nearest(times: &[Stamp], time: Stamp) -> Option<Stamp> {
    let at = times.partition_point(|one| *one <= time);
    at.checked_sub(1).and_then(|at| times.get(at)).or_else(|| times.first()).copied()
}

#[cfg(test)]
#[path = "original_finder_tests.rs"]
mod tests;
