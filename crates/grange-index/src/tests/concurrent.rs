//! Readers, also of another handle on the folder, while a writer commits, takes out and merges.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{Batch, Capture, Index, Position, Settings, Snapshot, Stamp};

const FILES: u64 = 120;

fn rows_of(file: u64) -> u64 {
    1 + file % 9
}

fn settings() -> Settings {
    Settings { head_bytes: 3000, block_bytes: 128, ..Settings::default() }
}

/// Every file that is there is there as a whole; answers how many.
fn whole_files(snapshot: &Snapshot) -> usize {
    let mut found = BTreeMap::<u64, u64>::new();
    let mut rows = snapshot.ascending(Position::default(), None);
    while let Some(view) = rows.next().unwrap() {
        *found.entry(view.file().parse().unwrap()).or_default() += 1;
    }
    for (file, rows) in &found {
        assert_eq!(*rows, rows_of(*file), "file {file}");
    }
    found.len()
}

#[test]
fn readers_see_whole_files_only_and_never_wait() {
    let folder = tempfile::tempdir().unwrap();
    let index = Index::open(folder.path(), settings()).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let inside = scope.spawn(|| {
            let mut most = 0;
            while !done.load(Ordering::Acquire) {
                let old = index.snapshot();
                let before = whole_files(&old);
                assert_eq!(whole_files(&old), before, "a snapshot changed");
                most = most.max(before);
            }
            most
        });
        let outside = scope.spawn(|| {
            let reader = Index::open_read_only(folder.path(), settings()).unwrap();
            while !done.load(Ordering::Acquire) {
                reader.refresh().unwrap();
                whole_files(&reader.snapshot());
            }
            reader.refresh().unwrap();
            whole_files(&reader.snapshot())
        });
        let merger = index.merge_in_background().unwrap();
        for file in 0..FILES {
            let mut batch = Batch::new();
            let captures = (0..rows_of(file)).map(|n| Capture {
                surt: format!("com,example)/{}", (file * 31 + n * 7) % 40),
                time: Stamp::parse("20140102030405").unwrap(),
                offset: Some(n),
                ..Capture::default()
            });
            batch.add_file(&file.to_string(), None, captures);
            index.commit(batch).unwrap();
            if file % 10 == 9 {
                assert!(index.remove_file(&(file - 5).to_string()).unwrap());
            }
            merger.ring();
        }
        drop(merger);
        done.store(true, Ordering::Release);
        let left = (FILES - FILES / 10) as usize;
        assert!(inside.join().unwrap() <= FILES as usize);
        assert_eq!(outside.join().unwrap(), left);
        assert_eq!(whole_files(&index.snapshot()), left);
    });
    assert!(matches!(Index::open(folder.path(), settings()), Err(crate::Error::Locked { .. })));
}
