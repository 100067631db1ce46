//! `kill -9` at random moments during stores: what was acknowledged is proven and readable, the rest is finished or
//! absent, and nothing is doubled.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use grange_base::{Clock, Period, Shutdown};
use grange_model::{AuditKind, LogEvent};
use rand::RngExt as _;
use tempfile::TempDir;

use super::bed::{Bed, anna, database, named, parts, settings};
use crate::{Archive, Settings, Store};

const CHILD: &str = "GRANGE_ARCHIVE_CRASH_CHILD";
/// Kills in one run of the tests; `GRANGE_CRASH_ROUNDS` asks for more.
const ROUNDS: usize = 12;

fn quick() -> Settings {
    // A killed child's files are free again soon.
    Settings { lease: Period::from_millis(300), ..settings() }
}

fn bytes_of(name: &str) -> Vec<u8> {
    name.bytes().cycle().take(20_000 + name.len() * 997).collect()
}

/// Not a test by itself: the child of the other. Stores until it is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child_that_stores_until_killed() {
    let Ok(told) = std::env::var(CHILD) else { return };
    let (dir, round) = told.split_once('|').unwrap();
    let (dir, clock) = (Path::new(dir), Clock::system());
    let db = database(dir, &clock).await;
    let archive = Archive::open(parts(dir, db, &clock, quick()).await).await.unwrap();
    let incoming = dir.join("incoming");
    std::fs::create_dir_all(&incoming).unwrap();
    let storers = (0..3).map(|storer| {
        let (archive, incoming, round) = (archive.clone(), incoming.clone(), round.to_owned());
        tokio::spawn(async move {
            for n in 0.. {
                let name = format!("round-{round}-{storer}-{n}");
                let path = incoming.join(&name);
                std::fs::write(&path, bytes_of(&name)).unwrap();
                let outcome = archive.store(&path, &Store::new(named(&name), "child")).await.unwrap();
                assert!(outcome.stored);
                std::io::stdout().lock().write_all(format!("\nstored {name}\n").as_bytes()).unwrap();
            }
        })
    });
    futures_util::future::join_all(storers.collect::<Vec<_>>()).await;
}

/// Starts the child and kills it some moments after its `lines`-th word; gives what it said was stored.
fn killed_after(lines: usize, moments: u64, dir: &Path, round: usize) -> Vec<String> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "tests::crash::child_that_stores_until_killed", "--nocapture"])
        .env(CHILD, format!("{}|{round}", dir.display()))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stored = Vec::new();
    let mut killed = false;
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        let Some(name) = line.strip_prefix("stored ") else { continue };
        stored.push(name.to_owned());
        if stored.len() >= lines && !killed {
            // Not a wait for something: it spreads the kill over the steps of a store.
            let until = std::time::Instant::now() + std::time::Duration::from_micros(moments);
            while std::time::Instant::now() < until {
                std::hint::spin_loop();
            }
            child.kill().unwrap();
            killed = true;
        }
    }
    child.wait().unwrap();
    assert!(stored.len() >= lines, "the child ended by itself");
    stored
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_at_random_moments_nothing_acknowledged_is_lost_and_nothing_doubled() {
    let rounds =
        std::env::var("GRANGE_CRASH_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(ROUNDS);
    let dir = TempDir::new().unwrap();
    let mut stored = BTreeMap::new();
    for round in 0..rounds {
        let (lines, moments) = (rand::rng().random_range(1..6), rand::rng().random_range(0..30_000));
        let folder = dir.path().to_owned();
        let words =
            tokio::task::spawn_blocking(move || killed_after(lines, moments, &folder, round)).await.unwrap();
        stored.extend(words.into_iter().map(|name| (name, round)));
    }
    let bed = Bed::on(dir, quick()).await;
    // The worker finishes what the dead left, from their sources and from proven copies.
    grange_testkit::until("the queue to be empty", async || {
        bed.archive.store_step(&Shutdown::never()).await.unwrap();
        bed.archive.db().work().counts(grange_db::STORE_WORK).await.unwrap() == grange_db::Counts::default()
    })
    .await;
    let files =
        bed.archive.list(&grange_db::FileFilter { limit: 100_000, ..Default::default() }).await.unwrap();
    for name in stored.keys() {
        assert!(
            files.iter().any(|status| status.file.name.as_str() == name),
            "{name} was acknowledged and is lost"
        );
    }
    for status in &files {
        let name = status.file.name.as_str();
        assert!(status.proven(), "{status:?}");
        assert_eq!(bed.got(name).await, bytes_of(name));
    }
    assert_eq!(bed.events(LogEvent::Stored).await, files.len(), "one record for each file");
    let rows = bed.archive.audit_all(AuditKind::Checksum, &anna()).await.unwrap();
    for row in &rows {
        let found = (row.found.ok, row.found.missing, row.found.corrupt, row.found.extra);
        assert_eq!(found, (files.len() as u64, 0, 0, 0), "{row:?}");
    }
    assert!(bed.archive.verify_log().await.unwrap().ok);
    println!("{rounds} kills, {} acknowledged, {} files in the archive", stored.len(), files.len());
}
