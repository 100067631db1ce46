//! Merging segments in the background.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::combine::combine;
use crate::error::Result;
use crate::folder::{UnnamedFile, remove_file};
use crate::manifest::{Manifest, SegmentEntry, segment_name};
use crate::merge::Layer;
use crate::plan::plan;
use crate::segment::Segment;
use crate::store::{Index, Inner};

impl Index {
    /// Merges what is due. False if nothing was.
    pub fn merge_step(&self) -> Result<bool> {
        self.inner.merge(|manifest| plan(&sizes(manifest)))
    }

    /// Merges everything into one segment, the head included.
    pub fn merge_all(&self) -> Result<()> {
        self.flush()?;
        let whole = |manifest: &Manifest| {
            let many = manifest.segments.len();
            (many > 1 || many == 1 && !manifest.removed.is_empty()).then_some(0..many)
        };
        self.inner.merge(whole).map(drop)
    }

    /// Starts a thread that merges what is due, until the handle is dropped.
    pub fn merge_in_background(&self) -> std::io::Result<Merger> {
        let state = Arc::new(MergerState::default());
        let (index, shared) = (self.clone(), state.clone());
        let thread =
            std::thread::Builder::new().name("index-merge".to_owned()).spawn(move || shared.run(&index))?;
        Ok(Merger { state, thread: Some(thread) })
    }
}

fn sizes(manifest: &Manifest) -> Vec<u64> {
    manifest.segments.iter().map(|entry| entry.bytes).collect()
}

impl Inner {
    fn merge(&self, choose: impl FnOnce(&Manifest) -> Option<std::ops::Range<usize>>) -> Result<bool> {
        let _one = self.merging.lock().unwrap_or_else(PoisonError::into_inner);
        // Under the lock only what to do is written down; the work itself lets commits go on.
        let chosen = self.with_writer(|writer| {
            let Some(range) = choose(&writer.manifest) else { return Ok(None) };
            let layer = |at: usize| {
                let segment = writer.segments[at].clone();
                let dead = writer.manifest.dead(&segment.files, writer.manifest.segments[at].change);
                Layer { segment, dead: dead.map(Into::into) }
            };
            let layers: Vec<Layer> = range.clone().rev().map(layer).collect();
            let inputs = writer.manifest.segments[range.clone()].to_vec();
            Ok(Some((range.start, layers, inputs, segment_name(writer.manifest.take_name()))))
        })?;
        let Some((from, layers, inputs, name)) = chosen else { return Ok(false) };
        let file = UnnamedFile::new(self.folder.join(&name));
        let started = Instant::now();
        let pace = |written: u64| {
            if let Some(rate) = self.settings.merge_bytes_per_s {
                let due = Duration::from_secs_f64(written as f64 / rate.max(1) as f64);
                std::thread::sleep(due.saturating_sub(started.elapsed()));
            }
        };
        let combined = combine(&layers, file.path(), from == 0, &self.settings, pace)?;
        let change = inputs.last().map_or(0, |entry| entry.change);
        let segment = Arc::new(Segment::open(file.path(), self.cache.clone())?);
        self.write(|_, writer| {
            let mut manifest = writer.manifest.clone();
            let entry = SegmentEntry { name, change, rows: combined.rows, bytes: combined.bytes };
            let range = from..from + inputs.len();
            manifest.segments.splice(range.clone(), [entry]);
            let mut merged = writer.segments.clone();
            merged.splice(range, [segment]);
            // A removal is done once no older segment holds anything of it.
            let still = |removal: &crate::manifest::Removal| {
                merged.iter().zip(&manifest.segments).any(|(segment, entry)| {
                    entry.change < removal.change && segment.files.iter().any(|file| removal.takes(file))
                })
            };
            let removed = manifest.removed.iter().filter(|removal| still(removal)).cloned().collect();
            manifest.removed = removed;
            file.leave();
            writer.replace(manifest, |segments| *segments = merged)
        })?;
        for entry in inputs {
            remove_file(&self.folder.join(entry.name));
        }
        Ok(true)
    }
}

#[derive(Debug, Default)]
struct MergerState {
    stop: AtomicBool,
    asked: Mutex<bool>,
    bell: Condvar,
}

/// How long the merger waits if nobody rings. Commits ring; this is for what was due at the start or failed before.
const LOOK_EVERY: Duration = Duration::from_secs(5);

impl MergerState {
    fn run(&self, index: &Index) {
        while !self.stop.load(Ordering::Acquire) {
            match index.merge_step() {
                Ok(true) => continue,
                Ok(false) => {}
                Err(error) => {
                    tracing::error!(%error, "cannot merge segments of the index; they are used as they are");
                }
            }
            let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
            if !*asked && !self.stop.load(Ordering::Acquire) {
                asked = self.bell.wait_timeout(asked, LOOK_EVERY).unwrap_or_else(PoisonError::into_inner).0;
            }
            *asked = false;
        }
    }
}

/// Merges as long as it lives. A merge that has begun is finished first.
#[derive(Debug)]
pub struct Merger {
    state: Arc<MergerState>,
    thread: Option<JoinHandle<()>>,
}

impl Merger {
    /// Says that there may be something to merge.
    pub fn ring(&self) {
        *self.state.asked.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.state.bell.notify_one();
    }
}

impl Drop for Merger {
    fn drop(&mut self) {
        self.state.stop.store(true, Ordering::Release);
        self.ring();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
