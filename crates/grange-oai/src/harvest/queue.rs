//! Entries between the side that receives and the side that keeps: bounded by bytes, taken in groups.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::entry::Entry;

/// Contents that may wait. Enough that neither side waits for the other's hiccups, little beside a page in memory.
const WAITING_KIB: u32 = 8 << 10;
/// Entries that may wait, however small.
const WAITING_MAX: usize = 64;
/// A group is kept by one transaction when it has so many records or bytes, or nothing more waits.
const GROUP_RECORDS: usize = 2_000;
const GROUP_BYTES: usize = 8 << 20;

/// An entry that is safe in the journal and waits to be kept.
#[derive(Debug)]
pub(super) struct Waiting {
    pub entry: Entry,
    /// The segment of the journal that the entry before this one closed.
    pub full_segment: Option<PathBuf>,
    _room: Option<OwnedSemaphorePermit>,
}

impl Waiting {
    /// An entry that nobody had to wait for.
    pub(super) fn alone(entry: Entry) -> Self {
        Self { entry, full_segment: None, _room: None }
    }
}

/// The receiving side's end.
#[derive(Debug)]
pub(super) struct Queue {
    sender: mpsc::Sender<Waiting>,
    room: Arc<Semaphore>,
}

pub(super) fn queue() -> (Queue, mpsc::Receiver<Waiting>) {
    let (sender, receiver) = mpsc::channel(WAITING_MAX);
    (Queue { sender, room: Arc::new(Semaphore::new(WAITING_KIB as usize)) }, receiver)
}

impl Queue {
    /// Hands an entry on, when there is room. False: nobody takes any more.
    pub(super) async fn send(&self, entry: Entry, full_segment: Option<PathBuf>) -> bool {
        let kib = u32::try_from(entry.bytes() >> 10).unwrap_or(u32::MAX).min(WAITING_KIB);
        let room = Arc::clone(&self.room).acquire_many_owned(kib);
        let room = tokio::select! {
            room = room => room.ok(),
            () = self.sender.closed() => return false,
        };
        self.sender.send(Waiting { entry, full_segment, _room: room }).await.is_ok()
    }
}

/// Entries that are kept together: of one list, and no identifier twice, so that all are compared at once.
#[derive(Debug)]
pub(super) struct Group {
    pub list: i64,
    pub entries: Vec<Waiting>,
    pub names: Names,
    records: usize,
    bytes: usize,
}

/// Identifiers by their hashes: two that collide are kept one after the other, and nothing else.
#[derive(Debug, Default)]
pub(super) struct Names(HashSet<u64>);

impl Names {
    fn of(entry: &Entry) -> impl Iterator<Item = u64> {
        entry.records.iter().map(|record| {
            let mut hasher = DefaultHasher::new();
            record.identifier.hash(&mut hasher);
            hasher.finish()
        })
    }

    pub(super) fn shares(&self, other: &Self) -> bool {
        self.0.iter().any(|name| other.0.contains(name))
    }
}

impl Group {
    pub(super) fn of(first: Waiting) -> Self {
        let mut group = Self {
            list: first.entry.list,
            entries: Vec::new(),
            names: Names::default(),
            records: 0,
            bytes: 0,
        };
        group.push(first);
        group
    }

    pub(super) fn is_full(&self) -> bool {
        self.records >= GROUP_RECORDS || self.bytes >= GROUP_BYTES
    }

    /// Takes one more in, or gives it back where it has to wait for this group.
    pub(super) fn add(&mut self, next: Waiting) -> Result<(), Box<Waiting>> {
        let fits =
            next.entry.list == self.list && !Names::of(&next.entry).any(|name| self.names.0.contains(&name));
        if !fits {
            return Err(Box::new(next));
        }
        self.push(next);
        Ok(())
    }

    fn push(&mut self, next: Waiting) {
        self.names.0.extend(Names::of(&next.entry));
        self.records += next.entry.records.len();
        self.bytes += next.entry.bytes();
        self.entries.push(next);
    }
}
