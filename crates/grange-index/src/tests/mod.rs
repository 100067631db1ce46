//! The index against simple models of it.

mod concurrent;
mod crash;
mod damage;
mod dialects;
mod faults;
mod jobs;
mod lines;
mod loading;
mod model;
mod originals;
mod promises;
mod records;

use std::sync::Arc;

use crate::{Index, Settings, Snapshot};

/// A snapshot of an index that was loaded from these lines.
fn loaded(lines: &str) -> (tempfile::TempDir, Arc<Snapshot>) {
    let folder = tempfile::tempdir().unwrap();
    let index = Index::open(folder.path(), Settings::default()).unwrap();
    index.load(lines.as_bytes(), None).unwrap();
    (folder, index.snapshot())
}
