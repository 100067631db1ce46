//! Sites that write a session id into the path of every link, and give every visitor a new one: the same pages come
//! under ever new URLs. Ids that are known by their name are left out of the canonical form; this finds the others by
//! what they lead to.
//!
//! A page counts only if it leads on: it links to its own place with another id ([`super::near_content`]). Small images,
//! empty responses, error pages, redirects and the days of a calendar do not, however many are alike. When
//! [`SessionPaths`] is convinced, further URLs of the shape are left alone but for a few: if they say something new, so may
//! those that come next, and soon the shape is free again.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};
use url::Url;

use super::near_content::near_content;
use super::shape::{Shape, first_bits};
use crate::link::Link;

/// Shapes remembered in each of two generations, at most some 200 bytes each. Shapes that come once are forgotten soon;
/// a trap comes all the time.
const REMEMBERED_MAX: usize = 1 << 14;

/// Traps of a crawl that are never forgotten, and shapes that are kept over restarts. Beyond, a restart begins to count
/// again.
const KEPT_MAX: usize = 4096;

/// Different contents of one shape that are known again: the pages of a site below one session id mostly have shapes of
/// their own.
const CONTENTS_MAX: usize = 16;

/// One new content outweighs this many repetitions. A place where one page of twenty is worth having is not left alone.
const REPETITIONS_FOR_A_NEW_CONTENT: u32 = 19;

/// Of the URLs of a trap one is fetched after so many at most. A site may have hundreds of deleted pages in a row, all alike,
/// and good ones behind them: of those so many are lost.
const PROBE_GAP: u32 = 64;

/// The gap grows with what was left alone, so that an endless trap ends: while that doubles, so many are fetched at most. Good
/// pages behind deleted ones are lost in that proportion: one for 32.
const PROBES_PER_DOUBLING: u32 = 32;

/// Counts are kept over restarts when they are a multiple of this: so many fetches a crash can cost.
const KEEP_EVERY: u32 = 5;

/// What came under one shape.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShapeRecord {
    contents: Vec<u64>,
    /// Responses with a content not seen before, and pages that do not lead on.
    new: u32,
    repeated: u32,
    /// Shapes of what is below these pages; if that does not repeat itself, the pages do not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    own_links: Vec<u64>,
    /// It is a shape of pages that lead on.
    leads_on: bool,
    /// URLs that came after it was left alone.
    came: u32,
    /// Those of them that came after the last new content.
    #[serde(default)]
    came_since_new: u32,
}

impl ShapeRecord {
    fn take(&mut self, content: Option<u64>) {
        if content.is_some_and(|content| self.contents.contains(&content)) {
            self.repeated = self.repeated.saturating_add(1);
            return;
        }
        self.new = self.new.saturating_add(1);
        self.came_since_new = 0;
        self.contents.extend(content.filter(|_| self.contents.len() < CONTENTS_MAX));
    }

    /// Counts a URL that comes while the shape is left alone; true if it is fetched all the same.
    fn probes(&mut self) -> bool {
        self.came = self.came.saturating_add(1);
        self.came_since_new = self.came_since_new.saturating_add(1);
        // What stands behind new content is probably new as well.
        let is_near = self.came_since_new < PROBE_GAP && self.came_since_new.is_power_of_two();
        let gap = ((1 << self.came.ilog2()) / PROBES_PER_DOUBLING).max(PROBE_GAP);
        is_near || self.came.is_power_of_two() || self.came.is_multiple_of(gap)
    }

    /// Nearly everything was there before.
    fn repeats_itself(&self) -> bool {
        self.repeated >= self.new.saturating_mul(REPETITIONS_FOR_A_NEW_CONTENT)
    }
}

/// A response as far as it matters here.
#[derive(Clone, Copy, Debug)]
pub enum Content<'a> {
    Page {
        body: &'a [u8],
        links: &'a [Link],
    },
    /// What is no page, by the digest of its payload.
    Other {
        digest: &'a [u8],
    },
}

/// A response of a URL with opaque parts. Made of a long page it costs some milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShapeContent {
    shape: String,
    key: u64,
    /// None of a page that does not lead on.
    content: Option<u64>,
    leads_on: bool,
    own_links: Vec<u64>,
}

impl ShapeContent {
    /// None if nothing of the URL is opaque.
    pub fn of(url: &Url, content: Content<'_>) -> Option<ShapeContent> {
        let shape = Shape::of(url)?;
        let key = shape.key();
        let near = match content {
            Content::Page { body, links } => near_content(&shape, body, links),
            Content::Other { digest } => {
                let content = Some(first_bits(&blake3::hash(digest)));
                let shape = shape.into_text();
                return Some(ShapeContent { shape, key, content, leads_on: false, own_links: Vec::new() });
            }
        };
        let (content, leads_on) = (near.as_ref().map(|near| near.digest), near.is_some());
        let own_links = near.map(|near| near.own_links).unwrap_or_default();
        Some(ShapeContent { shape: shape.into_text(), key, content, leads_on, own_links })
    }
}

/// What a response changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observation {
    /// To be kept over restarts.
    pub record: Option<(u64, ShapeRecord)>,
    /// The shape that is left alone from now on, and how many of its URLs had the same contents.
    pub trap: Option<(String, u32)>,
}

/// Finds shapes that are a trap.
#[derive(Debug)]
pub struct SessionPaths {
    limit: u32,
    remembered: usize,
    young: HashMap<u64, ShapeRecord>,
    old: HashMap<u64, ShapeRecord>,
    traps: HashMap<u64, ShapeRecord>,
    /// What is kept over restarts.
    kept: HashSet<u64>,
    /// URLs that were begun and put back, by the hash of each.
    put_back: HashSet<u64>,
}

impl SessionPaths {
    /// What the log says of a URL that is left alone.
    pub const ANNOTATION: &'static str = "sessionPath";

    /// Leaves URLs alone after `limit` repetitions, counting on from what earlier runs kept; never with 0.
    pub fn new(limit: u32, kept: impl IntoIterator<Item = (u64, ShapeRecord)>) -> SessionPaths {
        let mut paths = SessionPaths::remembering(REMEMBERED_MAX, limit);
        for (key, record) in kept {
            paths.kept.insert(key);
            paths.young.insert(key, record);
        }
        let traps: Vec<u64> = paths.young.keys().copied().filter(|key| paths.is_trap(*key)).collect();
        for key in traps {
            paths.hold_trap(key);
        }
        paths
    }

    fn remembering(remembered: usize, limit: u32) -> SessionPaths {
        SessionPaths {
            limit,
            remembered,
            young: HashMap::new(),
            old: HashMap::new(),
            traps: HashMap::new(),
            kept: HashSet::new(),
            put_back: HashSet::new(),
        }
    }

    /// Takes note of a response with status 200.
    pub fn observe(&mut self, seen: ShapeContent) -> Observation {
        if self.limit == 0 {
            return Observation::default();
        }
        let key = seen.key;
        let was_trap = self.traps.contains_key(&key);
        let record = self.record(key);
        record.take(seen.content);
        record.leads_on |= seen.leads_on;
        if !seen.own_links.is_empty() {
            record.own_links = seen.own_links;
        }
        let record = record.clone();
        let is_trap = self.is_trap(key);
        let mut trap = None;
        if is_trap && !was_trap {
            trap = self.hold_trap(key).then_some((seen.shape, record.repeated));
        } else if was_trap && !is_trap {
            self.release(key);
        }
        let is_due = record.repeated > 0 && record.repeated.is_multiple_of(KEEP_EVERY);
        let keep = is_due || is_trap != was_trap || (self.kept.contains(&key) && !record.repeats_itself());
        Observation { record: self.kept(key, keep), trap }
    }

    /// Takes note of a URL that was not left alone and goes back to its queue without a try: when it comes again, it is not
    /// left alone either, nor counted.
    pub fn put_back(&mut self, url: &Url) {
        // As many as were in flight when the network went away. The bound is for those that never come again.
        if self.limit > 0 && self.put_back.len() < REMEMBERED_MAX && Shape::of(url).is_some() {
            self.put_back.insert(hash(url));
        }
    }

    /// Whether a URL is left alone, and what is to be kept over restarts of that. To be asked once for each URL.
    pub fn leaves_alone(&mut self, url: &Url) -> (bool, Option<(u64, ShapeRecord)>) {
        let was_begun = !self.put_back.is_empty() && self.put_back.remove(&hash(url));
        if was_begun || self.traps.is_empty() {
            return (false, None);
        }
        let Some(key) = Shape::of(url).map(|shape| shape.key()) else { return (false, None) };
        if !self.traps.contains_key(&key) {
            return (false, None);
        }
        if !self.is_trap(key) {
            // What is below its pages turned out to be new.
            self.release(key);
            return (false, self.kept(key, true));
        }
        let Some(record) = self.traps.get_mut(&key) else { return (false, None) };
        let is_probe = record.probes();
        (!is_probe, self.kept(key, is_probe))
    }

    fn is_trap(&self, key: u64) -> bool {
        let Some(record) = self.find(key) else { return false };
        let repeats = record.leads_on && record.repeated >= self.limit && record.repeats_itself();
        // What was not fetched yet may be new.
        repeats && record.own_links.iter().all(|key| self.find(*key).is_some_and(ShapeRecord::repeats_itself))
    }

    fn find(&self, key: u64) -> Option<&ShapeRecord> {
        self.traps.get(&key).or_else(|| self.young.get(&key)).or_else(|| self.old.get(&key))
    }

    fn record(&mut self, key: u64) -> &mut ShapeRecord {
        if self.traps.contains_key(&key) {
            return self.traps.entry(key).or_default();
        }
        if self.young.len() >= self.remembered && !self.young.contains_key(&key) {
            self.old = std::mem::take(&mut self.young);
        }
        let before = self.old.remove(&key);
        self.young.entry(key).or_insert_with(|| before.unwrap_or_default())
    }

    /// False if there are too many.
    fn hold_trap(&mut self, key: u64) -> bool {
        if self.traps.len() < KEPT_MAX
            && let Some(record) = self.young.remove(&key)
        {
            self.traps.insert(key, record);
            return true;
        }
        false
    }

    fn release(&mut self, key: u64) {
        if let Some(record) = self.traps.remove(&key) {
            self.young.insert(key, ShapeRecord { came: 0, came_since_new: 0, ..record });
        }
    }

    fn kept(&mut self, key: u64, keep: bool) -> Option<(u64, ShapeRecord)> {
        if !keep || (self.kept.len() >= KEPT_MAX && !self.kept.contains(&key)) {
            return None;
        }
        let record = self.find(key)?.clone();
        self.kept.insert(key);
        Some((key, record))
    }
}

fn hash(url: &Url) -> u64 {
    first_bits(&blake3::hash(url.as_str().as_bytes()))
}

#[cfg(test)]
#[path = "session_paths_tests.rs"]
mod tests;
