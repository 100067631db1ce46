//! What each reader of the proxy has chosen: which index, which time, and whether missing URLs are written down.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use grange_index::Stamp;

/// Readers remembered. Beyond it the one who came first is forgotten, and begins again with the defaults.
const SESSIONS_MAX: usize = 10_000;
/// Missing URLs kept for one reader: a day of hard work, and some 10 MB at most.
const MISSING_MAX: usize = 100_000;

/// Which captures a reader browses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Choice {
    /// Those of every collection.
    #[default]
    All,
    Collection(String),
    /// Those of some jobs, in every collection.
    Jobs(Vec<String>),
}

impl Choice {
    pub(super) fn text(&self) -> String {
        match self {
            Self::All => "all collections".to_owned(),
            Self::Collection(name) => format!("the collection {name}"),
            Self::Jobs(jobs) => format!("the jobs {}", jobs.join(", ")),
        }
    }
}

/// One reader's state.
#[derive(Debug, Clone, Default)]
pub(crate) struct Session {
    pub(super) choice: Choice,
    /// What the reader calls this choice.
    pub(super) label: String,
    /// `None`: the latest captures.
    pub(super) time: Option<Stamp>,
    pub(super) recording: bool,
    pub(super) missing: BTreeSet<String>,
}

impl Session {
    /// Writes down a URL that no resolver had, while recording.
    pub(super) fn miss(&mut self, url: &str) {
        if self.recording && self.missing.len() < MISSING_MAX {
            self.missing.insert(url.to_owned());
        }
    }

    /// What a user name of the form `collection@time` or `@time` chooses.
    fn from_name(name: &str) -> Self {
        let mut session = Self::default();
        if let Some((collection, time)) = name.split_once('@') {
            session.time = Stamp::earliest(time);
            if !collection.is_empty() {
                session.choice = Choice::Collection(collection.to_owned());
            }
        }
        session
    }
}

/// All readers, by the user name they sent or the address they come from.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sessions {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    by_reader: HashMap<String, Session>,
    order: std::collections::VecDeque<String>,
}

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at or changes the state of a reader.
    pub(super) fn with<T>(&self, reader: &str, act: impl FnOnce(&mut Session) -> T) -> T {
        let mut inner = self.lock();
        if !inner.by_reader.contains_key(reader) {
            if inner.order.len() >= SESSIONS_MAX
                && let Some(oldest) = inner.order.pop_front()
            {
                inner.by_reader.remove(&oldest);
            }
            inner.order.push_back(reader.to_owned());
            inner.by_reader.insert(reader.to_owned(), Session::from_name(reader));
        }
        let mut fallback = Session::default();
        act(inner.by_reader.get_mut(reader).unwrap_or(&mut fallback))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_do_not_see_each_other() {
        let sessions = Sessions::default();
        sessions.with("anna", |session| {
            session.recording = true;
            session.miss("http://e.org/");
        });
        sessions.with("bert", |session| session.miss("http://e.org/"));
        assert_eq!(sessions.with("anna", |session| session.missing.len()), 1);
        assert_eq!(sessions.with("bert", |session| session.missing.len()), 0);
        let named = sessions.with("news@2020", |session| session.clone());
        assert_eq!(named.choice, Choice::Collection("news".into()));
        assert_eq!(named.time, Stamp::earliest("2020"));
    }

    #[test]
    fn there_is_an_end_to_what_is_remembered() {
        let sessions = Sessions::default();
        for reader in 0..SESSIONS_MAX + 5 {
            sessions.with(&reader.to_string(), |session| session.recording = true);
        }
        assert_eq!(sessions.lock().by_reader.len(), SESSIONS_MAX);
        assert!(!sessions.with("0", |session| session.recording));
    }
}
