//! Segments of the journal on their way out: closed, then kept, then synced and removed.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::store::journal;

#[derive(Debug)]
pub(super) struct Segments {
    root: PathBuf,
    /// Everything in them is kept with the commit under way.
    closed: Vec<PathBuf>,
    /// Everything in them is kept.
    kept: Vec<PathBuf>,
    /// Of those, what an earlier harvest left: they took no room.
    left_before: usize,
    retiring: Option<JoinHandle<()>>,
    /// Room for further ones.
    space: Arc<Semaphore>,
}

impl Segments {
    pub(super) fn new(root: PathBuf) -> Self {
        let space = Arc::new(Semaphore::new(journal::SEGMENTS_MAX));
        Self { root, closed: Vec::new(), kept: Vec::new(), left_before: 0, retiring: None, space }
    }

    pub(super) fn space(&self) -> Arc<Semaphore> {
        Arc::clone(&self.space)
    }

    pub(super) fn left_before(&mut self, segments: Vec<PathBuf>) {
        self.left_before += segments.len();
        self.kept.extend(segments);
    }

    pub(super) fn closed(&mut self, segments: Vec<PathBuf>) {
        self.closed.extend(segments);
    }

    /// The commit under way has been made.
    pub(super) fn kept(&mut self) {
        self.kept.append(&mut self.closed);
    }

    /// What nobody has retired.
    pub(super) fn leave(self) -> Vec<PathBuf> {
        self.kept
    }

    /// Syncs the files that segments guard, and removes those; one such call at a time, beside everything else.
    pub(super) fn retire(&mut self) {
        if self.kept.is_empty() || self.retiring.as_ref().is_some_and(|task| !task.is_finished()) {
            return;
        }
        let (root, kept) = (self.root.clone(), std::mem::take(&mut self.kept));
        let own = kept.len().saturating_sub(std::mem::take(&mut self.left_before));
        let space = Arc::clone(&self.space);
        self.retiring = Some(tokio::task::spawn_blocking(move || {
            if let Err(error) = journal::retire(&root, &kept) {
                tracing::warn!(error = %grange_base::Chain(&error), "the journal of a harvest stays");
            }
            space.add_permits(own);
        }));
    }
}
