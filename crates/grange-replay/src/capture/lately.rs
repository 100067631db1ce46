//! Records read lately, taken apart: the style sheet of a site is asked for by every reader of its pages, and its file may
//! lie on another machine.
//!
//! A record is named by its place and by the digest that the index has of its payload, so one that was replaced in its file
//! and indexed again is another record. Who may see it was decided before anything here is asked.

use std::sync::Arc;

use bytes::Bytes;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::{About, Body, Place, Undo};

/// What all records kept may take: some thousand small parts of pages.
const KEPT_BYTES_MAX: u64 = 64 << 20;
/// A body longer than this is not kept: it would push out too many others.
const BODY_BYTES_MAX: usize = 256 << 10;
/// What a record takes besides its body, roughly: its place twice, its head, and the cache's own.
const RECORD_BYTES: u64 = 2 << 10;

/// The cache. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Lately(Arc<Cache<Place, Kept, Weight>>);

#[derive(Clone, Debug)]
struct Kept {
    about: Arc<About>,
    /// The body with its transfer coding undone, once it was asked for.
    sent: Option<Bytes>,
    /// The body with its content encodings undone too.
    content: Option<Bytes>,
}

#[derive(Clone, Debug)]
struct Weight;

impl Weighter<Place, Kept> for Weight {
    fn weight(&self, _: &Place, kept: &Kept) -> u64 {
        let body = |body: &Option<Bytes>| body.as_ref().map_or(0, |bytes| bytes.len() as u64);
        RECORD_BYTES + body(&kept.sent) + body(&kept.content)
    }
}

impl Default for Lately {
    fn default() -> Self {
        Self(Arc::new(Cache::with_weighter((KEPT_BYTES_MAX / (8 << 10)) as usize, KEPT_BYTES_MAX, Weight)))
    }
}

impl Lately {
    /// The record at a place, if it is here with its body in the form that is wanted.
    pub(super) fn get(&self, place: &Place, undo: impl Fn(&About) -> Undo) -> Option<(Arc<About>, Body)> {
        place.digest.as_ref()?;
        let Kept { about, sent, content } = self.0.get(place)?;
        let body = match undo(&about) {
            Undo::Skip => Bytes::new(),
            Undo::Transfer => sent?,
            Undo::Content { .. } => content?,
        };
        Some((about, Body::Whole(body)))
    }

    /// Keeps a record that was read whole.
    pub(super) fn put(&self, place: &Place, about: &Arc<About>, undo: Undo, body: &Bytes) {
        if place.digest.is_none() || body.len() > BODY_BYTES_MAX {
            return;
        }
        let about = Arc::clone(about);
        let mut kept = self.0.get(place).unwrap_or(Kept { about, sent: None, content: None });
        match undo {
            Undo::Skip => {}
            Undo::Transfer => kept.sent = Some(body.clone()),
            Undo::Content { .. } => kept.content = Some(body.clone()),
        }
        self.0.insert(place.clone(), kept);
    }
}
