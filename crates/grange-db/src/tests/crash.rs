//! `kill -9` while writing: whatever was acknowledged is there afterwards.
//!
//! The test starts itself again as a child process that offers work as fast as it can and says on its standard output
//! which offers came back. It is killed after a random number of those, several times over, on one database.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use grange_base::Clock;
use grange_testkit::TestDatabase;
use rand::RngExt as _;
use serde_json::json;
use tempfile::TempDir;

use crate::{Db, Offer, Settings, WorkFilter};

/// Where the child finds its database: "folder|url|name of the round".
const CHILD: &str = "GRANGE_DB_CRASH_CHILD";
const ROUNDS: usize = 6;

/// Not a test by itself: the child of the others. Runs until it is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child_that_writes_until_killed() {
    let Ok(told) = std::env::var(CHILD) else { return };
    let [dir, url, round] = told.split('|').collect::<Vec<_>>().try_into().unwrap();
    let settings = Settings { url: url.to_owned(), ..Settings::default() };
    let db = Db::open(&settings, Path::new(dir), Clock::system()).await.unwrap();
    let writers = (0..8).map(|w| {
        let (db, round) = (db.clone(), round.to_owned());
        tokio::spawn(async move {
            for n in 0.. {
                let key = format!("{round}-{w}-{n}");
                db.work().offer(Offer::new("job", &key, json!("x".repeat(300)))).await.unwrap();
                // One write per line, so that a line is whole or absent.
                let line = format!("\nacknowledged {key}\n");
                std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
            }
        })
    });
    futures_util::future::join_all(writers.collect::<Vec<_>>()).await;
}

/// Starts the child, kills it after `lines` acknowledgements, and gives all that it said, the last ones too.
fn killed_after(lines: usize, dir: &Path, url: &str, round: usize) -> HashSet<String> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "tests::crash::child_that_writes_until_killed", "--nocapture"])
        .env(CHILD, format!("{}|{url}|{round}", dir.display()))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut acknowledged = HashSet::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        let Some(key) = line.strip_prefix("acknowledged ") else {
            continue;
        };
        acknowledged.insert(key.to_owned());
        if acknowledged.len() == lines {
            // SIGKILL; what is in the pipe is read on until it ends.
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    assert!(acknowledged.len() >= lines, "the child ended by itself");
    acknowledged
}

async fn lose_nothing(dir: &Path, url: &str) {
    let settings = Settings { url: url.to_owned(), ..Settings::default() };
    Db::migrate(&settings, dir, &Clock::system()).await.unwrap();
    let seed: u64 =
        std::env::var("CRASH_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or_else(rand::random);
    println!("CRASH_SEED={seed}");
    let mut random: rand::rngs::StdRng = rand::SeedableRng::seed_from_u64(seed);
    let mut acknowledged = HashSet::new();
    for round in 0..ROUNDS {
        let lines = random.random_range(1..400);
        let (folder, url) = (dir.to_owned(), url.to_owned());
        let said = tokio::task::spawn_blocking(move || killed_after(lines, &folder, &url, round));
        acknowledged.extend(said.await.unwrap());
        // The next start finds all of it.
        let db = Db::open(&settings, dir, Clock::system()).await.unwrap();
        let all = WorkFilter { limit: u32::MAX, ..WorkFilter::default() };
        let present: HashSet<_> =
            db.work().list(&all).await.unwrap().into_iter().map(|item| item.key).collect();
        let lost: Vec<_> = acknowledged.difference(&present).collect();
        assert!(lost.is_empty(), "round {round}: {} of {} lost: {lost:?}", lost.len(), acknowledged.len());
        db.close().await;
    }
    println!("{} acknowledged, none lost in {ROUNDS} kills", acknowledged.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_loses_no_acknowledged_row() {
    let dir = TempDir::new().unwrap();
    lose_nothing(dir.path(), "sqlite:grange.db").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_loses_no_acknowledged_row() {
    let Some(server) = TestDatabase::create().await else {
        return;
    };
    let dir = TempDir::new().unwrap();
    lose_nothing(dir.path(), &server.url).await;
}
