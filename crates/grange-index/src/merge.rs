//! The rows of several segments as one sequence, without those that were taken out or are there twice.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::error::Result;
use crate::row::{DELETED, FileEntry, Row};
use crate::segment::{BackCursor, Cursor, Segment};

/// A segment of a snapshot, with the files that were taken out of it.
#[derive(Debug, Clone)]
pub(crate) struct Layer {
    pub(crate) segment: Arc<Segment>,
    /// By number of file; `None` if nothing was taken out.
    pub(crate) dead: Option<Arc<[bool]>>,
}

impl Layer {
    pub(crate) fn is_dead(&self, file: u32) -> bool {
        self.dead.as_ref().is_some_and(|dead| dead.get(file as usize).copied().unwrap_or_default())
    }
}

/// Rows of one segment in one direction.
pub(crate) trait Rows {
    const DESCENDING: bool;
    fn advance(&mut self) -> Result<bool>;
    fn row(&self) -> Row<'_>;
    fn segment(&self) -> &Segment;
}

impl Rows for Cursor {
    const DESCENDING: bool = false;
    fn advance(&mut self) -> Result<bool> {
        Self::advance(self)
    }
    fn row(&self) -> Row<'_> {
        Self::row(self)
    }
    fn segment(&self) -> &Segment {
        Self::segment(self)
    }
}

impl Rows for BackCursor {
    const DESCENDING: bool = true;
    fn advance(&mut self) -> Result<bool> {
        Self::advance(self)
    }
    fn row(&self) -> Row<'_> {
        // Asked only after an advance that found one.
        Self::row(self).unwrap_or_default()
    }
    fn segment(&self) -> &Segment {
        Self::segment(self)
    }
}

#[derive(Debug)]
struct Source<C> {
    cursor: C,
    layer: Layer,
    /// Newer layers have smaller numbers and hide older ones, unless they yield.
    age: usize,
}

impl<C: Rows> Source<C> {
    /// Moves to the next row that was not taken out. One that was hides nothing.
    fn advance(&mut self) -> Result<bool> {
        while self.cursor.advance()? {
            if !self.layer.is_dead(self.cursor.row().file) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether its row gives way to others that are the same capture.
    fn yields(&self) -> bool {
        self.cursor.segment().files.get(self.cursor.row().file as usize).is_some_and(FileEntry::yields)
    }

    fn file_name(&self, row: &Row<'_>) -> &str {
        self.cursor.segment().files.get(row.file as usize).map_or("", |file| &file.name)
    }

    fn compare_keys(&self, other: &Self) -> Ordering {
        let (a, b) = (self.cursor.row(), other.cursor.row());
        a.surt
            .cmp(b.surt)
            .then_with(|| a.time.cmp(&b.time))
            .then_with(|| self.file_name(&a).cmp(other.file_name(&b)))
            .then_with(|| a.offset.cmp(&b.offset))
    }

    fn compare(&self, other: &Self) -> Ordering {
        let keys = self.compare_keys(other);
        let keys = if C::DESCENDING { keys.reverse() } else { keys };
        keys.then_with(|| self.yields().cmp(&other.yields()).then(self.age.cmp(&other.age)))
    }

    fn is_same_capture(&self, other: &Self) -> bool {
        let (a, b) = (self.cursor.row(), other.cursor.row());
        a.offset == b.offset && a.time == b.time && self.compare_keys(other).is_eq()
    }
}

/// Goes through the rows of many segments in order.
#[derive(Debug)]
pub(crate) struct Merge<C> {
    /// Not begun yet.
    waiting: Vec<Source<C>>,
    /// A heap: the root has the next row.
    heap: Vec<Source<C>>,
    /// The root's row has been handed out.
    used: bool,
    /// Rows that take others away are handed out too, for segments that do not reach the bottom.
    keep_deleted: bool,
}

impl<C: Rows> Merge<C> {
    /// `layers` come newest first.
    pub(crate) fn new(layers: impl IntoIterator<Item = (C, Layer)>) -> Self {
        let waiting: Vec<_> = layers
            .into_iter()
            .enumerate()
            .map(|(age, (cursor, layer))| Source { cursor, layer, age })
            .collect();
        Self { heap: Vec::with_capacity(waiting.len()), waiting, used: false, keep_deleted: false }
    }

    pub(crate) fn keep_deleted(mut self) -> Self {
        self.keep_deleted = true;
        self
    }

    /// Moves to the next row; false after the last. After an error the next call goes on behind the damage.
    pub(crate) fn advance(&mut self) -> Result<bool> {
        while let Some(source) = self.waiting.last_mut() {
            let alive = source.advance()?;
            if let Some(source) = self.waiting.pop()
                && alive
            {
                self.heap.push(source);
                sift_up(&mut self.heap);
            }
        }
        loop {
            if self.used {
                self.skip_hidden()?;
                self.step()?;
                self.used = false;
            }
            let Some(root) = self.heap.first() else { return Ok(false) };
            self.used = true;
            let row = root.cursor.row();
            let flags = root.cursor.segment().kinds.get(row.kind as usize).map_or(0, |kind| kind.flags);
            if flags & DELETED != 0 && !self.keep_deleted {
                continue;
            }
            return Ok(true);
        }
    }

    /// Passes over the same capture in other layers.
    fn skip_hidden(&mut self) -> Result<()> {
        loop {
            let second = match self.heap.len() {
                0 | 1 => return Ok(()),
                2 => 1,
                _ if self.heap[2].compare(&self.heap[1]).is_lt() => 2,
                _ => 1,
            };
            if !self.heap[0].is_same_capture(&self.heap[second]) {
                return Ok(());
            }
            let advanced = self.heap[second].advance();
            if matches!(advanced, Ok(true)) {
                sift_down(&mut self.heap, second);
                continue;
            }
            let source = self.heap.swap_remove(second);
            rebuild(&mut self.heap);
            if let Err(error) = advanced {
                self.waiting.push(source);
                return Err(error);
            }
        }
    }

    /// Moves the root on.
    fn step(&mut self) -> Result<()> {
        let Some(root) = self.heap.first_mut() else { return Ok(()) };
        match root.advance() {
            Ok(true) => sift_down(&mut self.heap, 0),
            Ok(false) => {
                self.heap.swap_remove(0);
                sift_down(&mut self.heap, 0);
            }
            Err(error) => {
                // Its row is gone; it waits to be begun again behind the damage.
                let source = self.heap.swap_remove(0);
                sift_down(&mut self.heap, 0);
                self.waiting.push(source);
                self.used = false;
                return Err(error);
            }
        }
        Ok(())
    }

    /// The row that [`advance`](Self::advance) moved to, and its segment.
    pub(crate) fn current(&self) -> Option<(Row<'_>, &Segment)> {
        self.heap.first().map(|root| (root.cursor.row(), root.cursor.segment()))
    }

    /// The number of the layer that the row is from, newest first.
    pub(crate) fn age(&self) -> usize {
        self.heap.first().map_or(0, |root| root.age)
    }
}

fn sift_down<C: Rows>(heap: &mut [Source<C>], mut root: usize) {
    loop {
        let mut least = 2 * root + 1;
        if least >= heap.len() {
            return;
        }
        if least + 1 < heap.len() && heap[least + 1].compare(&heap[least]).is_lt() {
            least += 1;
        }
        if heap[root].compare(&heap[least]).is_le() {
            return;
        }
        heap.swap(root, least);
        root = least;
    }
}

fn sift_up<C: Rows>(heap: &mut [Source<C>]) {
    let mut at = heap.len() - 1;
    while at > 0 && heap[at].compare(&heap[(at - 1) / 2]).is_lt() {
        heap.swap(at, (at - 1) / 2);
        at = (at - 1) / 2;
    }
}

fn rebuild<C: Rows>(heap: &mut [Source<C>]) {
    for root in (0..heap.len() / 2).rev() {
        sift_down(heap, root);
    }
}
