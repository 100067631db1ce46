//! Checks read no faster than they may.

use std::time::Duration;

use grange_base::{Clock, Size};
use grange_model::AuditKind;
use grange_testkit::until;
use tempfile::TempDir;

use super::bed::{anna, database, named, parts, settings};
use crate::{Archive, Settings, Store};

const FILES: usize = 6;
const BYTES: usize = 1000;

/// How many seconds a check of six thousand bytes takes, by a clock that moves only when somebody waits for it.
async fn seconds_to_check(bytes_per_second: u64) -> u64 {
    let dir = TempDir::new().unwrap();
    let (clock, hand) = Clock::test("2026-01-01T00:00:00Z".parse().unwrap());
    let db = database(dir.path(), &clock).await;
    let settings = Settings { check_bytes_per_second: Size(bytes_per_second), ..settings() };
    let archive = Archive::open(parts(dir.path(), db, &clock, settings).await).await.unwrap();
    for number in 0..FILES {
        let path = dir.path().join(format!("f{number}"));
        std::fs::write(&path, vec![number as u8; BYTES]).unwrap();
        let stored = archive.store(&path, &Store::new(named(&format!("f{number}")), "anna")).await.unwrap();
        assert!(stored.stored, "{stored:?}");
    }
    let started = archive.start_audit("one", AuditKind::Checksum, &anna()).await.unwrap();
    let checking = tokio::spawn(async move { archive.wait_audit(started.id).await.unwrap() });
    let mut seconds = 0;
    until("the check to end", async || {
        if hand.sleepers() > 0 {
            hand.advance(Duration::from_secs(1));
            seconds += 1;
        }
        checking.is_finished()
    })
    .await;
    let row = checking.await.unwrap();
    assert_eq!((row.found.ok, row.found.missing, row.found.corrupt), (FILES as u64, 0, 0));
    seconds
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_reads_no_faster_than_it_may() {
    assert_eq!(seconds_to_check(0).await, 0);
    // The first second's worth is free.
    let seconds = seconds_to_check(1000).await;
    assert!(seconds >= 5, "{seconds}");
}
