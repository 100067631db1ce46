//! A disk that does not take what was written to it, and the end of a crawl that nobody waits for.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use grange_base::{Clock, Size};
use grange_testkit::until;
use grange_testkit::web::{Options, Profile, Rules, Web};
use warc::RecordType;

use super::*;
use crate::job::{Budgets, Job};
use crate::log::CrawlLine;
use crate::politeness::Pace;
use crate::record::NoOracle;
use crate::record::unsynced::Unsynced;
use crate::scope::Traps;
use crate::template::{parse, shipped};

fn job(server: std::net::SocketAddr, seeds: Vec<String>) -> Job {
    let text = shipped().iter().find(|(name, _)| *name == "default").unwrap().1;
    let mut template = parse(text).unwrap();
    "grange-test (+http://grange.invalid/)".clone_into(&mut template.fetch.user_agent);
    template.fetch.all_hosts_to = server.to_string();
    template.fetch.accept_encodings = Vec::new();
    template.frontier.pace = Pace::none();
    template.extract.favicon = false;
    template.scope.max_trans_hops = 1;
    template.engine.min_free = Size(0);
    Job {
        name: "test".to_owned(),
        seeds,
        template,
        budgets: Budgets::default(),
        traps: Traps::default(),
        credentials: Vec::new(),
        info: Vec::new(),
    }
}

/// How often each URL is in the WARC files.
fn captured(root: &Path) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(root.join("warcs")).unwrap() {
        let mut reader = warc::Reader::open(entry.unwrap().path()).unwrap();
        while let Some(record) = reader.next().unwrap() {
            if record.kind() == RecordType::Response {
                let url = String::from_utf8_lossy(record.target_uri().unwrap()).into_owned();
                *found.entry(url).or_default() += 1;
            }
        }
        assert_eq!(reader.problems(), []);
    }
    found
}

/// What a disk that failed gives back once memory is needed: nothing of what it did not take.
fn lose_unsynced(root: &Path, unsynced: &Unsynced) {
    let zero = |path: &Path, from: u64, to: u64| {
        let mut bytes = fs::read(path).unwrap();
        bytes[from as usize..to as usize].fill(0);
        fs::write(path, bytes).unwrap();
    };
    for file in &unsynced.files {
        zero(&root.join("warcs").join(format!("{}.open", file.name)), file.synced, file.size);
    }
    for log in &unsynced.logs {
        zero(&root.join("logs").join(&log.name), log.synced, log.synced + log.tail.len() as u64);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crawl_whose_sync_failed_ends_and_its_resume_has_everything_once() {
    let web =
        Web::new(Options { hosts: 2, pages: 12, seed: 9, profile: Profile::Plain, ..Options::default() });
    for (log, is_lost) in [(None, false), (None, true), (Some("crawl.log"), false), (Some("crawl.log"), true)]
    {
        let what = format!("{log:?} {is_lost}");
        let server = web.serve("127.0.0.1:0").await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("crawl");
        let clock = Clock::system();
        let mut crawl =
            Crawl::start(job(server.addr(), web.seeds()), &root, Arc::new(NoOracle), clock.clone()).unwrap();
        crawl.committer.rhythm.sync_every = Duration::ZERO;
        crawl.committer.recorder.break_sync(log, 10);
        let error = crawl.run().await.unwrap_err();
        assert!(matches!(error, CrawlError::Commit(CommitError::Unsynced { .. })), "{what}: {error:?}");
        let note = root.join("state/unsynced.json");
        let unsynced = Unsynced::load(&note).unwrap().unwrap();
        assert!(unsynced.files.iter().any(|file| file.synced < file.size), "{what}: {unsynced:?}");
        let has_lines =
            |log: &crate::record::unsynced::UnsyncedLog| log.name == "crawl.log" && !log.tail.is_empty();
        assert_eq!(unsynced.logs.iter().any(has_lines), log.is_some(), "{what}");
        if is_lost {
            lose_unsynced(&root, &unsynced);
        }
        let outcome = Crawl::resume(&root, Arc::new(NoOracle), clock).unwrap().run().await.unwrap();
        assert_eq!((outcome.end, outcome.last.queued), (End::Finished, 0), "{what}");
        assert!(!note.exists());
        let found = captured(&root);
        assert!(found.values().all(|times| *times == 1), "{what}: {found:?}");
        let expected = web.expected(&Rules::default());
        assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "{what}");
        let text = fs::read_to_string(root.join("logs/crawl.log")).unwrap();
        let lines: Vec<_> = text.lines().map(|line| CrawlLine::parse(line).unwrap()).collect();
        for url in expected.keys() {
            assert!(lines.iter().any(|line| line.url == **url), "{what}: {url}");
        }
        server.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_ends_the_wait_for_a_disk_when_nothing_is_left_to_crawl() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("crawl");
    let job = job("127.0.0.1:1".parse().unwrap(), vec!["http://a.test/".to_owned()]);
    let crawl = Crawl::start(job, &root, Arc::new(NoOracle), Clock::system()).unwrap();
    let handle = crawl.handle();
    let Crawl { shared, give_up, .. } = crawl;
    // What is written ends when it is told to give up, as on a full disk.
    let told = give_up.listener();
    let ending = or_give_up(&shared, &give_up, async move { told.wait().await });
    tokio::pin!(ending);
    assert!(futures_pending(&mut ending).await);
    handle.stop();
    ending.await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_the_time_ends_the_wait_for_a_disk_when_nothing_is_left_to_crawl() {
    for lowered in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("crawl");
        let mut job = job("127.0.0.1:1".parse().unwrap(), vec!["http://a.test/".to_owned()]);
        job.budgets.crawl.max_seconds = if lowered { -1 } else { 60 };
        let (clock, hand) = Clock::test(jiff::Timestamp::from_second(1_700_000_000).unwrap());
        let crawl = Crawl::start(job, &root, Arc::new(NoOracle), clock).unwrap();
        let handle = crawl.handle();
        let Crawl { shared, give_up, .. } = crawl;
        // What is written ends when it is told to give up, as on a full disk.
        let told = give_up.listener();
        let ending = or_give_up(&shared, &give_up, async move { told.wait().await });
        tokio::pin!(ending);
        assert!(futures_pending(&mut ending).await, "{lowered}");
        hand.advance(Duration::from_secs(59));
        assert!(futures_pending(&mut ending).await, "{lowered}");
        if lowered {
            let limits = crate::job::Limits { max_seconds: 30, ..crate::job::Limits::default() };
            handle.order("anna", Order::SetLimits { domain: None, limits: limits.into() }).await.unwrap();
        } else {
            hand.advance(Duration::from_secs(1));
        }
        tokio::select! {
            () = &mut ending => {}
            () = until("the end of the wait", async || false) => {}
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_that_is_waited_for_does_not_keep_the_crawl() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("crawl");
    let job = job("127.0.0.1:1".parse().unwrap(), vec!["http://a.test/".to_owned()]);
    let crawl = Crawl::start(job, &root, Arc::new(NoOracle), Clock::system()).unwrap();
    let handle = crawl.handle();
    // Nobody closes the chunk.
    let Crawl { shared, committer, .. } = crawl;
    let rotating = handle.order("anna", Order::Rotate);
    tokio::pin!(rotating);
    let waits = tokio::select! {
        biased;
        _ = &mut rotating => false,
        () = std::future::ready(()) => true,
    };
    assert!(waits);
    assert_eq!(Arc::strong_count(&shared), 1);
    drop((shared, committer));
    assert!(matches!(rotating.await, Err(OrderError::Ended)));
}

/// Whether a future has something to wait for.
async fn futures_pending(future: &mut (impl Future<Output = ()> + Unpin)) -> bool {
    tokio::select! {
        biased;
        () = future => false,
        () = std::future::ready(()) => true,
    }
}

/// Workers wait, not memory, while a chunk is held open.
#[tokio::test(flavor = "multi_thread")]
async fn a_chunk_that_is_held_open_bounds_what_is_packed_for_the_next() {
    const PERMITS: usize = 3;
    let web =
        Web::new(Options { hosts: 8, pages: 4, seed: 5, profile: Profile::Plain, ..Options::default() });
    let server = web.serve("127.0.0.1:0").await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("crawl");
    let clock = Clock::system();
    let job = job(server.addr(), web.seeds());
    let mut crawl = Crawl::start(job, &root, Arc::new(NoOracle), clock.clone()).unwrap();
    // The first chunk is to be closed as soon as anything is in it; somebody still works for it.
    crawl.committer.rhythm.chunk_size = 1;
    let shared = Arc::clone(&crawl.shared);
    let first = shared.desk.ticket(None, clock.now()).unwrap();
    assert_eq!(shared.packing.forget_permits(OUTBOX - PERMITS), OUTBOX - PERMITS);
    let handle = crawl.handle();
    let running = tokio::spawn(crawl.run());
    until("workers that wait", async || {
        let is_closing = shared.desk.ticket(None, clock.now()).unwrap().chunk > first.chunk;
        // A fault: more are delivered than may be packed.
        let all_delivered =
            shared.meter.busy() == 0 && shared.frontier.counts(clock.now()).in_flight > PERMITS as u64;
        is_closing && (shared.packing.available_permits() == 0 || all_delivered)
    })
    .await;
    assert_eq!(shared.packing.available_permits(), 0);
    let packing = Arc::clone(&shared.packing);
    drop((first, shared));
    // It looks again when something comes.
    let _ = handle.rotate().await;
    assert_eq!(running.await.unwrap().unwrap().end, End::Finished);
    assert_eq!(packing.available_permits(), PERMITS);
    let found = captured(&root);
    let expected = web.expected(&Rules::default());
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    assert!(found.values().all(|times| *times == 1), "{found:?}");
    server.stop().await;
}
