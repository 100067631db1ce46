//! What stands between a record and the names given by it.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::error::Error;
use crate::lifecycle::{Standing, gives_names};
use crate::place::Point;

/// The epoch a server works by in one collection. Held for reading while a name is given, for writing while the record
/// changes: so no name is given by a table that no longer holds.
#[derive(Debug, Default)]
pub struct Gate {
    epoch: RwLock<u64>,
    /// Names removed since the running move began: a copy that is still under way here must not bring them back.
    removed: Mutex<HashSet<u128>>,
}

pub(crate) fn changing() -> Error {
    Error::away("the collection is just changing")
}

impl Gate {
    pub(crate) fn at(epoch: u64) -> Self {
        Self { epoch: RwLock::new(epoch), removed: Mutex::default() }
    }

    fn read(&self) -> RwLockReadGuard<'_, u64> {
        self.epoch.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn epoch(&self) -> u64 {
        *self.read()
    }

    /// For who takes over a record.
    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, u64> {
        self.epoch.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Held while a file or directory gets its name.
    pub(crate) fn for_names(&self, by: Standing) -> Result<RwLockReadGuard<'_, u64>, Error> {
        let epoch = self.read();
        if gives_names(*epoch, by) { Ok(epoch) } else { Err(changing()) }
    }

    /// Held while something is read or removed by a record.
    pub(crate) fn unchanged(&self, epoch: u64) -> Result<RwLockReadGuard<'_, u64>, Error> {
        let held = self.read();
        if *held == epoch { Ok(held) } else { Err(changing()) }
    }

    fn removed(&self) -> MutexGuard<'_, HashSet<u128>> {
        self.removed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The names are forgotten: copies by the older record get no name any more.
    pub(crate) fn forget_removed(&self) {
        self.removed().clear();
    }

    /// From now on no copy under way by this epoch brings the name back; those that were faster are there to be removed.
    pub(crate) fn note_removal(&self, epoch: u64, point: Point) -> Result<(), Error> {
        let _held = self.unchanged(epoch)?;
        self.removed().insert(point.0);
        Ok(())
    }

    /// Gives a name to a copy of a file that moves, unless the file was removed meanwhile.
    pub(crate) fn unless_removed<T>(&self, point: Point, give: impl FnOnce() -> T) -> Option<T> {
        let removed = self.removed();
        (!removed.contains(&point.0)).then(give)
    }
}
