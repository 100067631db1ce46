//! A full disk pauses a crawl. Nothing is lost and nothing is there twice when there is space again.

use std::collections::HashSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::Mutex;

use grange_base::Clock;
use grange_crawl::engine::{Crawl, End, Phase};
use grange_crawl::politeness::Pace;
use grange_crawl::record::NoOracle;
use grange_crawl::record::settings::Packing;
use grange_crawl::virus::OnUnscanned;
use grange_testkit::web::{Options, Profile, Rules, Web};
use grange_testkit::{skipped, until};
use tokio::sync::watch;
use warc::{Reader, RecordType};

use super::site::{Reply, Site};
use super::{annotations, captured, job, run, serve, template, template_to, warcs};

/// A small disk of its own, in memory. It is gone with its value.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// None where only root may mount, and we are not root. In CI that is a failure.
    fn mount() -> Option<SmallDisk> {
        SmallDisk::of("128m")
    }

    fn of(size: &str) -> Option<SmallDisk> {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(folder.path())
            .output()
            .is_ok_and(|output| output.status.success());
        if !mounted {
            skipped("the right to mount a small disk (run as root)");
        }
        mounted.then(|| SmallDisk(folder))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Takes all the space there is.
    fn fill(&self) -> PathBuf {
        let path = self.path().join("filler");
        let mut file = std::fs::File::create(&path).expect("it can be made");
        // Large pieces first: the crawl must not end meanwhile.
        for piece in [1 << 20, 4 << 10] {
            while file.write_all(&vec![0; piece]).is_ok() {}
        }
        path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}

fn web() -> Web {
    Web::new(Options { hosts: 4, pages: 40, seed: 17, profile: Profile::Plain, ..Options::default() })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_pauses_a_crawl_which_goes_on_when_there_is_space() {
    let Some(disk) = SmallDisk::mount() else { return };
    let web = web();
    let server = serve(&web).await;
    let root = disk.path().join("crawl");
    let mut template = template(&server);
    template.frontier.pace = Pace::fixed(std::time::Duration::from_millis(50));
    template.write.roll_at = grange_base::Size(100_000);
    let crawl = Crawl::start(job(template, web.seeds()), &root, Arc::new(NoOracle), Clock::system()).unwrap();
    let handle = crawl.handle();
    let running = tokio::spawn(crawl.run());
    until("some pages", async || server.total() > 20).await;
    let filler = disk.fill();
    until("the pause", async || handle.snapshot().phase == Phase::Waiting).await;
    assert!(!running.is_finished(), "it waits");
    std::fs::remove_file(filler).unwrap();
    let outcome = running.await.unwrap().expect("a full disk is no reason to end");
    assert_eq!(outcome.end, End::Finished);
    let found = captured(&root);
    assert!(found.values().all(|captures| captures.len() == 1));
    assert_eq!(
        found.into_keys().collect::<Vec<_>>(),
        web.expected(&Rules::default()).into_keys().collect::<Vec<_>>()
    );
    server.stop().await;
}

/// A harvester that ends, or that lost its job, drops its crawl; the disk is still full.
#[tokio::test(flavor = "multi_thread")]
async fn a_crawl_that_is_dropped_on_a_full_disk_lets_go_of_its_folder() {
    let Some(disk) = SmallDisk::mount() else { return };
    let web = web();
    let server = serve(&web).await;
    let root = disk.path().join("crawl");
    let mut template = template(&server);
    template.frontier.pace = Pace::fixed(std::time::Duration::from_millis(10));
    let crawl = Crawl::start(job(template, web.seeds()), &root, Arc::new(NoOracle), Clock::system()).unwrap();
    let handle = crawl.handle();
    let running = tokio::spawn(crawl.run());
    until("some pages", async || server.total() > 20).await;
    let filler = disk.fill();
    until("the pause", async || handle.snapshot().phase == Phase::Waiting).await;
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    let resume = || Crawl::resume(&root, Arc::new(NoOracle), Clock::system());
    until("the folder", async || !matches!(resume(), Err(error) if error.is_in_use())).await;
    if let Err(error) = resume() {
        assert!(error.is_disk_full(), "{error:?}");
    }
    std::fs::remove_file(filler).unwrap();
    let outcome = resume().unwrap().run().await.unwrap();
    assert_eq!(outcome.end, End::Finished);
    assert!(captured(&root).values().all(|captures| captures.len() == 1));
    server.stop().await;
}

/// Longer than what is held in memory: it goes to the scratch folder, where there is no space left.
#[tokio::test(flavor = "multi_thread")]
async fn a_response_that_finds_no_space_is_fetched_again_when_there_is_some() {
    let Some(disk) = SmallDisk::mount() else { return };
    let is_full = Arc::new(watch::Sender::new(false));
    let site = Site::serve({
        let is_full = Arc::clone(&is_full);
        move |asked| {
            let mut is_full = is_full.subscribe();
            async move {
                if asked.url != "h.test/large" {
                    return Some(Reply::links(&asked.url, ["http://h.test/large".to_owned()]));
                }
                is_full.wait_for(|is_full| *is_full).await.ok()?;
                Some(Reply::page("x".repeat(600 << 10)))
            }
        }
    })
    .await;
    let root = disk.path().join("crawl");
    let mut template = template_to(site.addr());
    template.fetch.memory_bytes = grange_base::Size(128 << 10);
    // The small disk has no room for the default reserve.
    template.fetch.scratch_min_free = grange_base::Size(0);
    template.engine.min_free = grange_base::Size(1 << 20);
    // Longer than it takes to see that the disk is full: the next try comes when there is space again.
    template.frontier.retry_delay = grange_base::Period::from_secs(5);
    let seeds = vec!["http://h.test/".to_owned()];
    let crawl = Crawl::start(job(template, seeds), &root, Arc::new(NoOracle), Clock::system()).unwrap();
    let handle = crawl.handle();
    let running = tokio::spawn(crawl.run());
    until("the request", async || site.times("h.test/large") == 1).await;
    let filler = disk.fill();
    is_full.send_replace(true);
    until("the pause", async || handle.snapshot().phase == Phase::Waiting).await;
    std::fs::remove_file(filler).unwrap();
    let outcome = running.await.unwrap().expect("a full disk is no reason to end");
    assert_eq!((outcome.end, outcome.last.failed), (End::Finished, 0));
    let large = &captured(&root)["http://h.test/large"];
    assert_eq!(large.iter().map(|capture| capture.length).collect::<Vec<_>>(), [600 << 10]);
}

/// How often each large document is in the WARC files, by URL and as one of these records.
fn stored_as(root: &Path, kind: RecordType) -> Vec<String> {
    let mut urls = Vec::new();
    for path in warcs(root) {
        let mut reader = Reader::open(&path).expect("it opens");
        while let Some(record) = reader.next().expect("it reads") {
            let url = String::from_utf8_lossy(record.target_uri().unwrap_or_default()).into_owned();
            if record.kind() == kind && url.ends_with("/large") {
                assert_eq!(record.header().get_text("WARC-Truncated").as_deref(), Some("disk"), "{url}");
                urls.push(url);
            }
        }
    }
    urls.sort();
    urls
}

/// A response is on the disk twice while it is packed, and once more as a record: nobody else may have that room.
#[tokio::test(flavor = "multi_thread")]
async fn responses_longer_than_half_the_free_space_are_cut_and_stored_at_the_first_try() {
    // Of 192 MB the frontier takes 64 for its journal.
    for (hosts, quarantined, min_free) in [(1, false, 0), (1, true, 0), (4, false, 40 << 20)] {
        let Some(disk) = SmallDisk::of("192m") else { return };
        let site = Site::serve({
            let asked_before = Arc::new(Mutex::new(HashSet::new()));
            move |asked| {
                let asked_before = Arc::clone(&asked_before);
                async move {
                    if !asked.url.ends_with("/large") {
                        return Some(Reply::status(404));
                    }
                    // A second request is a fault, and is not answered at the same length: it would never end.
                    let is_first = asked_before.lock().unwrap().insert(asked.url.clone());
                    Some(if is_first { Reply::bytes("x".repeat(100 << 20)) } else { Reply::status(404) })
                }
            }
        })
        .await;
        let root = disk.path().join("crawl");
        let mut template = template_to(site.addr());
        template.write.compression = Packing::None;
        template.fetch.scratch_min_free = grange_base::Size(min_free);
        // A response that is cut in memory, for want of any room, is stored without another try too.
        template.frontier.max_retries = 0;
        if quarantined {
            // Nobody listens there.
            template.virus.clamd = "tcp:127.0.0.1:1".to_owned();
            template.virus.on_unscanned = OnUnscanned::Quarantine;
        }
        let urls: Vec<_> = (0..hosts).map(|n| format!("http://h{n}.test/large")).collect();
        let outcome = run(job(template, urls.clone()), &root).await;
        let case = format!("{hosts} {quarantined}");
        assert_eq!((outcome.end, outcome.last.failed), (End::Finished, 0), "{case}");
        let kind = if quarantined { RecordType::Conversion } else { RecordType::Response };
        assert_eq!(stored_as(&root, kind), urls, "{case}");
        let annotations = annotations(&root);
        for url in &urls {
            let asked = url.strip_prefix("http://").unwrap();
            assert_eq!(site.times(asked), 1, "{case} {url}");
            assert!(annotations[url].contains("diskTrunc"), "{case} {url} {}", annotations[url]);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crawl_stopped_on_a_full_disk_is_resumed_without_a_loss() {
    let Some(disk) = SmallDisk::mount() else { return };
    let web = web();
    let server = serve(&web).await;
    let root = disk.path().join("crawl");
    let mut template = template(&server);
    template.frontier.pace = Pace::fixed(std::time::Duration::from_millis(50));
    template.engine.stop_within = grange_base::Period::from_millis(200);
    // A chunk is closed every few pages: the stop falls into the end of one.
    template.write.chunk_size = grange_base::Size(60_000);
    let wanted = job(template, web.seeds());
    let crawl = Crawl::start(wanted, &root, Arc::new(NoOracle), Clock::system()).unwrap();
    let handle = crawl.handle();
    let running = tokio::spawn(crawl.run());
    until("some pages", async || server.total() > 30).await;
    let filler = disk.fill();
    until("the pause", async || handle.snapshot().phase == Phase::Waiting).await;
    handle.stop();
    // Its reports cannot be written either, which is an error; but it ends.
    let ended = running.await.unwrap();
    assert!(
        !ended.is_ok_and(|outcome| outcome.manifest.is_some()),
        "no file is closed that is not committed"
    );
    std::fs::remove_file(filler).unwrap();
    let crawl = Crawl::resume(&root, Arc::new(NoOracle), Clock::system()).unwrap();
    assert_eq!(crawl.run().await.unwrap().end, End::Finished);
    let found = captured(&root);
    assert!(found.values().all(|captures| captures.len() == 1));
    assert_eq!(
        found.into_keys().collect::<Vec<_>>(),
        web.expected(&Rules::default()).into_keys().collect::<Vec<_>>()
    );
    server.stop().await;
}
