//! Why a crawl hands out no URLs although nobody paused it. Each reason is set and cleared by its own owner: one that
//! passes does not lift the others.

use std::io;

use tokio::sync::watch;

/// The reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    /// Less space is left than the template asks for. Owner: the watch over the disk.
    LowSpace,
    /// The files of the crawl cannot be written. Owner: the committer.
    Committer,
    /// Workers could not write to the scratch folder. Set by them; cleared by the watch over the disk, after a trial.
    Scratch,
    /// No host answers: the network of this machine is out of order. Owner: [`super::outage`].
    Outage,
}

const COUNT: usize = 4;

/// All reasons that hold now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Reasons([Option<String>; COUNT]);

impl Reasons {
    /// One of them, in words.
    pub(super) fn first(&self) -> Option<&str> {
        self.0.iter().flatten().next().map(String::as_str)
    }

    pub(super) fn has(&self, hold: Hold) -> bool {
        self.0[hold as usize].is_some()
    }

    /// Whether nothing holds the crawl but this, if that does.
    pub(super) fn has_only(&self, hold: Hold) -> bool {
        self.has(hold) && self.0.iter().flatten().count() == 1
    }
}

/// Sets and clears reasons.
#[derive(Debug)]
pub(super) struct Holds(watch::Sender<Reasons>);

impl Default for Holds {
    fn default() -> Holds {
        Holds(watch::Sender::new(Reasons::default()))
    }
}

impl Holds {
    /// Sets the reason; true if it did not hold before.
    pub(super) fn set(&self, hold: Hold, reason: String) -> bool {
        let mut is_new = false;
        self.0.send_if_modified(|reasons| {
            let place = &mut reasons.0[hold as usize];
            is_new = place.is_none();
            let changed = place.as_ref() != Some(&reason);
            *place = Some(reason);
            changed
        });
        is_new
    }

    /// Clears the reason; true if it held.
    pub(super) fn clear(&self, hold: Hold) -> bool {
        self.0.send_if_modified(|reasons| reasons.0[hold as usize].take().is_some())
    }

    pub(super) fn now(&self) -> Reasons {
        self.0.borrow().clone()
    }

    pub(super) fn watch(&self) -> watch::Receiver<Reasons> {
        self.0.subscribe()
    }
}

/// Whether an error passes once somebody frees space.
pub(super) fn is_disk_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_that_passes_leaves_the_others() {
        let holds = Holds::default();
        assert!(holds.set(Hold::LowSpace, "low".to_owned()));
        assert!(!holds.set(Hold::LowSpace, "lower".to_owned()));
        assert!(holds.set(Hold::Committer, "full".to_owned()));
        assert!(holds.clear(Hold::Committer) && !holds.clear(Hold::Committer));
        assert_eq!(holds.now().first(), Some("lower"));
        assert!(holds.now().has_only(Hold::LowSpace) && !holds.now().has_only(Hold::Outage));
        holds.clear(Hold::LowSpace);
        assert_eq!(holds.now(), Reasons::default());
    }
}
