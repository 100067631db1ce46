//! The index at one moment: what readers read.

use std::collections::HashSet;

use crate::capture::Capture;
use crate::closest::Closest;
use crate::digest;
use crate::error::Result;
use crate::merge::{Layer, Merge};
use crate::row::FileEntry;
use crate::segment::{BackCursor, Cursor, Position};
use crate::stamp::Stamp;
use crate::view::CaptureView;

/// A state of the index that no later change touches. Cheap to keep for the time of a request.
#[derive(Debug)]
pub struct Snapshot {
    /// Newest first.
    layers: Vec<Layer>,
}

/// What an index holds, in numbers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stats {
    /// Rows in all segments. Those hidden by later changes count until merging drops them.
    pub rows: u64,
    /// Different keys, counted per segment.
    pub surts: u64,
    /// Bytes of segments, the head included.
    pub bytes: u64,
    pub segments: u64,
    pub files: u64,
}

impl Snapshot {
    pub(crate) fn new(layers: Vec<Layer>) -> Self {
        Self { layers }
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = &FileEntry> {
        self.layers.iter().flat_map(|layer| {
            let files = layer.segment.files.iter().zip(0..);
            files.filter(|(_, number)| !layer.is_dead(*number)).map(|(file, _)| file)
        })
    }

    /// The names of files that were committed as files; one may come more than once.
    pub fn whole_files(&self) -> impl Iterator<Item = &str> {
        self.files().filter(|file| file.whole).map(|file| &*file.name)
    }

    /// Whether anything of a job is here.
    pub fn holds_job(&self, job: &str) -> bool {
        self.files().any(|file| file.job.as_deref() == Some(job))
    }

    /// The names of files that have captures here; one may come more than once.
    pub fn file_names(&self) -> impl Iterator<Item = &str> {
        self.files().map(|file| &*file.name)
    }

    pub fn stats(&self) -> Stats {
        let sum = |of: fn(&Layer) -> u64| self.layers.iter().map(of).sum();
        let files: HashSet<&str> = self.files().map(|file| &*file.name).collect();
        Stats {
            rows: sum(|layer| layer.segment.footer.rows),
            surts: sum(|layer| layer.segment.footer.surts),
            bytes: sum(|layer| layer.segment.bytes()),
            segments: self.layers.len() as u64,
            files: files.len() as u64,
        }
    }

    /// Captures from `start` on whose keys are below `end`, ascending.
    pub fn ascending(&self, start: Position, end: Option<Vec<u8>>) -> Ascending {
        let key = start.key();
        let near = self.layers.iter().filter(|layer| layer.segment.overlaps(&key, end.as_deref()));
        let cursors = near.map(|layer| (Cursor::new(layer.segment.clone(), start.clone()), layer.clone()));
        Ascending { merge: Merge::new(cursors), end, done: false }
    }

    /// Captures below `end` whose keys are not below `start`, descending.
    pub fn descending(&self, start: Vec<u8>, end: Position) -> Descending {
        let key = end.key();
        let near = self.layers.iter().filter(|layer| layer.segment.overlaps(&start, Some(&key)));
        let cursors = near.map(|layer| (BackCursor::new(layer.segment.clone(), end.clone()), layer.clone()));
        Descending { merge: Merge::new(cursors), start, done: false }
    }

    /// Captures of one key from `time` on, ascending. Segments that do not know the key are not touched.
    pub fn captures(&self, surt: &str, time: Stamp) -> Result<Ascending> {
        let layers = self.that_may_hold(surt)?;
        Ok(Ascending::of_key(layers.into_iter(), surt.as_bytes(), time))
    }

    /// Captures of one key by their distance from `time`. Segments that do not know the key are not touched.
    pub fn by_distance(&self, surt: &str, time: Stamp) -> Result<Closest> {
        Ok(Closest::new(&self.that_may_hold(surt)?, surt.as_bytes(), time))
    }

    /// The capture of a key closest in time, earlier ones first among equals.
    pub fn closest(&self, surt: &str, time: Stamp) -> Result<Option<Capture>> {
        let mut captures = self.by_distance(surt, time)?;
        while captures.advance()? {
            if let Some(view) = captures.current().filter(|view| !view.is_description()) {
                return Ok(Some(view.to_capture()));
            }
        }
        Ok(None)
    }

    fn that_may_hold(&self, surt: &str) -> Result<Vec<&Layer>> {
        let end = end_of_key(surt.as_bytes());
        let mut layers = Vec::with_capacity(self.layers.len());
        for layer in &self.layers {
            if layer.segment.may_hold(surt.as_bytes(), &end)? {
                layers.push(layer);
            }
        }
        Ok(layers)
    }

    /// Captures with a digest that are no revisits and fit, up to `most` of them; of very many only the first are looked at.
    pub fn with_digest(
        &self,
        text: &str,
        most: usize,
        fits: impl Fn(&Capture) -> bool,
    ) -> Result<Vec<Capture>> {
        /// Blocks of one segment: one content is rarely in more, and each is read to its end.
        const LOOKED_MAX: usize = 64;
        let mut packed = Vec::new();
        let form = digest::pack(Some(text), &mut packed);
        let essence = digest::essence(form, &packed);
        let mut found = Vec::new();
        for (age, layer) in self.layers.iter().enumerate() {
            for posting in layer.segment.postings(digest::hash(essence))?.into_iter().take(LOOKED_MAX) {
                let mut rows = crate::block::BlockCursor::default();
                let block = layer.segment.block(posting.block, true)?;
                let damaged = || crate::error::Error::at(layer.segment.path(), 0, "a block");
                rows.reset(block).map_err(damaged())?;
                while found.len() < most && rows.advance().map_err(damaged())? {
                    let row = rows.row();
                    let view = CaptureView::new(row, &layer.segment);
                    let same = view.digest_essence() == essence
                        && !view.is_revisit()
                        && !view.is_deleted()
                        && !layer.is_dead(row.file);
                    if same && !self.is_hidden(&view, age)? {
                        found.extend(Some(view.to_capture()).filter(&fits));
                    }
                }
            }
        }
        Ok(found)
    }

    /// What is known of a digest, in any of its spellings: the first capture with it (originals before revisits) and how
    /// many there are.
    pub fn digest(&self, text: &str) -> Result<Option<DigestUse>> {
        let mut packed = Vec::new();
        let form = digest::pack(Some(text), &mut packed);
        let essence = digest::essence(form, &packed);
        let hash = digest::hash(essence);
        let mut found: Option<DigestUse> = None;
        for (age, layer) in self.layers.iter().enumerate() {
            let mut looked = 0;
            for posting in layer.segment.postings(hash)? {
                // Beyond this many blocks nothing can be earlier (postings are by time), and the count by digest number is
                // exact unless two digests share it.
                const LOOKED_MAX: usize = 64;
                looked += 1;
                if looked > LOOKED_MAX && layer.dead.is_none() {
                    if let Some(found) = &mut found {
                        found.count += posting.rows;
                    }
                    continue;
                }
                let mut rows = crate::block::BlockCursor::default();
                let block = layer.segment.block(posting.block, true)?;
                let damaged = || crate::error::Error::at(layer.segment.path(), 0, "a block");
                rows.reset(block).map_err(damaged())?;
                while rows.advance().map_err(damaged())? {
                    let row = rows.row();
                    let view = CaptureView::new(row, &layer.segment);
                    let same =
                        view.digest_essence() == essence && !view.is_deleted() && !layer.is_dead(row.file);
                    if !same || self.is_hidden(&view, age)? {
                        continue;
                    }
                    match &mut found {
                        None => found = Some(DigestUse { first: view.to_capture(), count: 1 }),
                        Some(found) => {
                            found.count += 1;
                            let order =
                                |revisit, time, file: &str, offset| (revisit, time, file.to_owned(), offset);
                            let first = &found.first;
                            if order(view.is_revisit(), view.time(), view.file(), view.offset())
                                < order(first.is_revisit(), first.time, &first.file, first.offset)
                            {
                                found.first = view.to_capture();
                            }
                        }
                    }
                }
            }
        }
        Ok(found)
    }

    /// Whether another row hides this one, as merging would.
    fn is_hidden(&self, view: &CaptureView<'_>, age: usize) -> Result<bool> {
        let mut start = view.surt_bytes().to_vec();
        start.push(0);
        let mut near = Vec::with_capacity(self.layers.len());
        for (other, layer) in self.layers.iter().enumerate() {
            // Older ones hide only what yields.
            let counts = other < age || view.yields();
            if other == age || counts && layer.segment.may_hold(view.surt_bytes(), &start)? {
                near.push(other);
            }
        }
        if near.len() == 1 && !view.is_shared() {
            return Ok(false);
        }
        let position = view.position();
        let cursors = near
            .iter()
            .map(|at| &self.layers[*at])
            .map(|layer| (Cursor::new(layer.segment.clone(), position.clone()), layer.clone()));
        let mut rows = Merge::new(cursors);
        if !rows.advance()? {
            return Ok(true);
        }
        let shown = rows.current().map(|(row, segment)| CaptureView::new(row, segment));
        let is_shown = shown.is_some_and(|shown| {
            near[rows.age()] == age && shown.is_row_of(view) && shown.position() == position
        });
        Ok(!is_shown)
    }
}

/// Above the key and not above any that is larger: keys hold no NUL.
fn end_of_key(surt: &[u8]) -> Vec<u8> {
    [surt, &[0]].concat()
}

/// How often a content was captured, and when first.
#[derive(Debug, Clone, PartialEq)]
pub struct DigestUse {
    pub first: Capture,
    pub count: u64,
}

/// Captures in ascending order. After an error the next call goes on behind the damage.
#[derive(Debug)]
pub struct Ascending {
    merge: Merge<Cursor>,
    end: Option<Vec<u8>>,
    done: bool,
}

impl Ascending {
    pub(crate) fn of_key<'l>(layers: impl Iterator<Item = &'l Layer>, surt: &[u8], time: Stamp) -> Self {
        let start = Position { time, ..Position::before(surt) };
        let cursors = layers.map(|layer| (Cursor::new(layer.segment.clone(), start.clone()), layer.clone()));
        Self { merge: Merge::new(cursors), end: Some(end_of_key(surt)), done: false }
    }

    /// Moves to the next capture; false after the last.
    pub fn advance(&mut self) -> Result<bool> {
        if self.done || !self.merge.advance()? {
            self.done = true;
            return Ok(false);
        }
        self.done = self
            .merge
            .current()
            .is_none_or(|(row, _)| self.end.as_deref().is_some_and(|end| row.surt >= end));
        Ok(!self.done)
    }

    /// The capture that [`advance`](Self::advance) moved to.
    pub fn current(&self) -> Option<CaptureView<'_>> {
        self.merge.current().filter(|_| !self.done).map(|(row, segment)| CaptureView::new(row, segment))
    }

    #[allow(clippy::should_implement_trait)] // It lends what it hands out, which `Iterator` cannot.
    pub fn next(&mut self) -> Result<Option<CaptureView<'_>>> {
        Ok(if self.advance()? { self.current() } else { None })
    }
}

/// Captures in descending order. After an error the next call goes on behind the damage.
#[derive(Debug)]
pub struct Descending {
    merge: Merge<BackCursor>,
    start: Vec<u8>,
    done: bool,
}

impl Descending {
    /// Captures of a key before `time`.
    pub(crate) fn of_key<'l>(layers: impl Iterator<Item = &'l Layer>, surt: &[u8], time: Stamp) -> Self {
        let end = Position { time, ..Position::before(surt) };
        let cursors =
            layers.map(|layer| (BackCursor::new(layer.segment.clone(), end.clone()), layer.clone()));
        Self { merge: Merge::new(cursors), start: surt.to_vec(), done: false }
    }

    /// Moves to the next capture; false after the last.
    pub fn advance(&mut self) -> Result<bool> {
        if self.done || !self.merge.advance()? {
            self.done = true;
            return Ok(false);
        }
        self.done = self.merge.current().is_none_or(|(row, _)| row.surt < self.start.as_slice());
        Ok(!self.done)
    }

    /// The capture that [`advance`](Self::advance) moved to.
    pub fn current(&self) -> Option<CaptureView<'_>> {
        self.merge.current().filter(|_| !self.done).map(|(row, segment)| CaptureView::new(row, segment))
    }

    #[allow(clippy::should_implement_trait)] // It lends what it hands out, which `Iterator` cannot.
    pub fn next(&mut self) -> Result<Option<CaptureView<'_>>> {
        Ok(if self.advance()? { self.current() } else { None })
    }
}
