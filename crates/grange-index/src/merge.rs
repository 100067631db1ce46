//! The rows of several segments as one sequence, without those that were taken out or are there twice.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::history::{self, RowRole};
use crate::row::{DELETED, Row, SHARED};
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
    /// Newer layers have smaller numbers.
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

    fn flags(&self) -> u8 {
        self.cursor.segment().kinds.get(self.cursor.row().kind as usize).map_or(0, |kind| kind.flags)
    }

    fn file_name(&self, row: &Row<'_>) -> &str {
        file_name(self.cursor.segment(), row.file)
    }

    fn compare_keys(&self, other: &Self) -> Ordering {
        let (a, b) = (self.cursor.row(), other.cursor.row());
        a.surt
            .cmp(b.surt)
            .then_with(|| a.time.cmp(&b.time))
            .then_with(|| self.file_name(&a).cmp(other.file_name(&b)))
            .then_with(|| a.offset.cmp(&b.offset))
    }

    /// Of the same capture the newest comes first, in both directions.
    fn compare(&self, other: &Self) -> Ordering {
        let keys = self.compare_keys(other);
        let keys = if C::DESCENDING { keys.reverse() } else { keys };
        keys.then(self.age.cmp(&other.age))
    }

    fn is_same_capture(&self, other: &Self) -> bool {
        let (a, b) = (self.cursor.row(), other.cursor.row());
        a.offset == b.offset && a.time == b.time && self.compare_keys(other).is_eq()
    }

    fn is_capture_of(&self, held: &HeldRow) -> bool {
        let (a, b) = (self.cursor.row(), held.row());
        a.offset == b.offset
            && a.time == b.time
            && a.surt == b.surt
            && self.file_name(&a) == file_name(&held.segment, b.file)
    }

    fn hold(&self) -> HeldRow {
        let row = self.cursor.row();
        HeldRow {
            surt: row.surt.into(),
            digest: row.digest.into(),
            literals: row.literals.into(),
            numbers: Row { surt: &[], digest: &[], literals: &[], ..row },
            segment: self.layer.segment.clone(),
            age: self.age,
            shares: false,
        }
    }
}

fn file_name(segment: &Segment, number: u32) -> &str {
    segment.files.get(number as usize).map_or("", |file| &file.name)
}

/// A row whose cursor has moved on.
#[derive(Debug)]
struct HeldRow {
    surt: Box<[u8]>,
    digest: Box<[u8]>,
    literals: Box<[u8]>,
    /// What is not in the above.
    numbers: Row<'static>,
    segment: Arc<Segment>,
    age: usize,
    /// Others that are handed out are the same capture.
    shares: bool,
}

impl HeldRow {
    fn row(&self) -> Row<'_> {
        Row { surt: &self.surt, digest: &self.digest, literals: &self.literals, ..self.numbers }
    }

    fn role(&self) -> RowRole<'_> {
        let flags = self.segment.kinds.get(self.numbers.kind as usize).map_or(0, |kind| kind.flags);
        let file = self.segment.files.get(self.numbers.file as usize).filter(|file| file.yields());
        match file.and_then(|file| file.job.as_deref()) {
            _ if flags & DELETED != 0 => RowRole::Deletes,
            Some(job) => RowRole::Yields(job),
            None => RowRole::Stays,
        }
    }
}

/// Which rows a merge hands out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    /// Of each capture the one that is shown.
    Answer,
    /// Those that another segment needs. `bottom`: nothing is older, and rows that take others away have done so.
    Rewrite { bottom: bool },
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
    purpose: Use,
    /// Rows of a capture that has several, to be handed out. The first is the current one.
    held: VecDeque<HeldRow>,
    /// Damage that was met while rows were held.
    damage: Vec<Error>,
}

impl<C: Rows> Merge<C> {
    /// The rows that are shown. `layers` come newest first.
    pub(crate) fn new(layers: impl IntoIterator<Item = (C, Layer)>) -> Self {
        let waiting: Vec<_> = layers
            .into_iter()
            .enumerate()
            .map(|(age, (cursor, layer))| Source { cursor, layer, age })
            .collect();
        Self {
            heap: Vec::with_capacity(waiting.len()),
            waiting,
            used: false,
            purpose: Use::Answer,
            held: VecDeque::new(),
            damage: Vec::new(),
        }
    }

    /// The rows that stand for those of all layers in a new segment.
    pub(crate) fn rewriting(mut self, bottom: bool) -> Self {
        self.purpose = Use::Rewrite { bottom };
        self
    }

    /// Moves to the next row; false after the last. After an error the next call goes on behind the damage.
    pub(crate) fn advance(&mut self) -> Result<bool> {
        self.held.pop_front();
        loop {
            if !self.held.is_empty() {
                return Ok(true);
            }
            if let Some(error) = self.damage.pop() {
                return Err(error);
            }
            while let Some(source) = self.waiting.last_mut() {
                let alive = source.advance()?;
                if let Some(source) = self.waiting.pop()
                    && alive
                {
                    self.heap.push(source);
                    sift_up(&mut self.heap);
                }
            }
            if std::mem::take(&mut self.used) {
                self.step()?;
            }
            let Some(root) = self.heap.first() else { return Ok(false) };
            let flags = root.flags();
            if flags & SHARED != 0 || self.heap.iter().skip(1).take(2).any(|next| root.is_same_capture(next))
            {
                self.gather();
                continue;
            }
            self.used = true;
            if flags & DELETED == 0 || self.purpose == (Use::Rewrite { bottom: false }) {
                return Ok(true);
            }
        }
    }

    /// Takes all rows that are the same capture as the root's, and holds those to be handed out.
    fn gather(&mut self) {
        let mut rows: Vec<HeldRow> = Vec::new();
        while self.heap.first().is_some_and(|root| rows.first().is_none_or(|row| root.is_capture_of(row))) {
            let mut source = self.heap.swap_remove(0);
            sift_down(&mut self.heap, 0);
            let newest = rows.len();
            let advanced = loop {
                rows.push(source.hold());
                match source.advance() {
                    Ok(true) if source.is_capture_of(&rows[0]) => {}
                    advanced => break advanced,
                }
            };
            // In a segment the newest is first.
            if C::DESCENDING {
                rows[newest..].reverse();
            }
            match advanced {
                Ok(true) => {
                    self.heap.push(source);
                    sift_up(&mut self.heap);
                }
                Ok(false) => {}
                Err(error) => {
                    self.damage.push(error);
                    self.waiting.push(source);
                }
            }
        }
        let mut kept = history::kept(rows.iter().map(HeldRow::role));
        if self.purpose == Use::Answer {
            kept.truncate(1);
        }
        if self.purpose != (Use::Rewrite { bottom: false }) {
            kept.retain(|at| rows[*at].role() != RowRole::Deletes);
        }
        let shares = kept.len() > 1;
        let mut at = 0;
        rows.retain_mut(|row| {
            row.shares = shares;
            at += 1;
            kept.contains(&(at - 1))
        });
        self.held = rows.into();
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
                return Err(error);
            }
        }
        Ok(())
    }

    /// The row that [`advance`](Self::advance) moved to, and its segment.
    pub(crate) fn current(&self) -> Option<(Row<'_>, &Segment)> {
        match self.held.front() {
            Some(held) => Some((held.row(), &held.segment)),
            None => self.heap.first().map(|root| (root.cursor.row(), root.cursor.segment())),
        }
    }

    /// The number of the layer that the row is from, newest first.
    pub(crate) fn age(&self) -> usize {
        match self.held.front() {
            Some(held) => held.age,
            None => self.heap.first().map_or(0, |root| root.age),
        }
    }

    /// Whether the rows before or behind it are the same capture: lines of several jobs tell of it.
    pub(crate) fn shares(&self) -> bool {
        self.held.front().is_some_and(|held| held.shares)
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
