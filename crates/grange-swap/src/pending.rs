//! Names that are being given on one partition: from before they exist until they are durable or gone again.
//!
//! A name whose folder cannot be synced is removed again, because a second sync could succeed without writing it. Until
//! then nobody may rely on it: an upload of the same bytes, or a file below a new directory, waits here for the outcome.

use std::collections::HashSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
pub(crate) struct PendingNames {
    names: Mutex<HashSet<String>>,
    ended: Condvar,
}

/// Only one holds a name at a time.
#[derive(Debug)]
pub(crate) struct PendingName<'p> {
    pending: &'p PendingNames,
    name: String,
}

impl PendingNames {
    fn names(&self) -> MutexGuard<'_, HashSet<String>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until nobody else holds the name, a path in the partition. Blocks.
    pub(crate) fn hold(&self, name: String) -> PendingName<'_> {
        let held = self.ended.wait_while(self.names(), |names| names.contains(&name));
        held.unwrap_or_else(PoisonError::into_inner).insert(name.clone());
        PendingName { pending: self, name }
    }

    // An upload holds the name of its file while it waits for the gate of names, and a directory is made behind that gate: if both
    // held one name, they and a change that waits for the gate could wait for each other.
    /// As [`hold`](Self::hold), for the name as that of a directory. A file and a directory do not exclude each other here; the
    /// file system lets only one of them have the name.
    pub(crate) fn hold_directory(&self, path: &str) -> PendingName<'_> {
        self.hold(format!("{path}/"))
    }
}

impl Drop for PendingName<'_> {
    fn drop(&mut self) {
        self.pending.names().remove(&self.name);
        self.pending.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    #[test]
    fn a_name_is_held_by_one_and_the_next_waits() {
        let (pending, order) = (PendingNames::default(), Mutex::new(Vec::new()));
        let (waits, waiting) = mpsc::channel();
        thread::scope(|scope| {
            let first = pending.hold("c/a".to_owned());
            drop(pending.hold("c/b".to_owned()));
            scope.spawn(|| {
                waits.send(()).unwrap();
                let _second = pending.hold("c/a".to_owned());
                order.lock().unwrap().push("second");
            });
            waiting.recv().unwrap();
            order.lock().unwrap().push("first");
            drop(first);
        });
        assert_eq!(*order.lock().unwrap(), ["first", "second"]);
    }
}
