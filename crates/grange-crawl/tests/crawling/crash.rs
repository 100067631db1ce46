//! A crawl that is killed again and again loses nothing and has nothing twice.
//!
//! The test runs itself as a child process that crawls; the child is killed at random moments and started anew.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use grange_base::Clock;
use grange_crawl::engine::{Crawl, StartError};
use grange_crawl::record::NoOracle;
use grange_testkit::until;
use grange_testkit::web::{Options, Profile, Rules, Web};

use super::{captured, job, serve, template};

const KILLS: usize = 30;
const FOLDER: &str = "GRANGE_CRASH_FOLDER";

/// The child: goes on with the crawl in the folder. Does nothing when the suite runs it as a test.
#[tokio::test(flavor = "multi_thread")]
async fn child_that_crawls() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    match Crawl::resume(Path::new(&folder), Arc::new(NoOracle), Clock::system()) {
        Ok(crawl) => drop(crawl.run().await.expect("it comes to its end")),
        // Killed before the job was written.
        Err(StartError::Folder(error)) => panic!("{error}"),
        Err(error) => panic!("{error:?}"),
    }
}

pub(super) fn spawn(folder: &Path) -> Child {
    Command::new(std::env::current_exe().expect("we run"))
        .args(["--exact", "crawling::crash::child_that_crawls", "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts")
}

#[tokio::test(flavor = "multi_thread")]
async fn thirty_kills_lose_nothing_and_double_nothing() {
    let web =
        Web::new(Options { hosts: 12, pages: 120, seed: 5, profile: Profile::Plain, ..Options::default() });
    let server = serve(&web).await;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("crawl");
    let mut template = template(&server);
    // Several files and chunks, so that kills hit roll-overs and rotations too.
    template.write.roll_at = grange_base::Size(300_000);
    template.write.chunk_size = grange_base::Size(1_500_000);
    template.write.writers = 2;
    // A kill must not park a host: the server is there, only we were not.
    drop(Crawl::start(job(template, web.seeds()), &root, Arc::new(NoOracle), Clock::system()).unwrap());
    let mut kills = 0_usize;
    let mut random = 0x9e37_79b9_u64;
    while kills < KILLS {
        let mut child = spawn(&root);
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // Some requests later, wherever the child is then.
        let wanted = server.total() + (random >> 33) % 40;
        until("more requests", async || {
            assert_eq!(child.try_wait().expect("it can be asked"), None, "the crawl is over too soon");
            server.total() >= wanted
        })
        .await;
        child.kill().expect("it can be killed");
        child.wait().expect("it is gone");
        kills += 1;
    }
    let asked_before = server.total();
    let status = tokio::task::spawn_blocking({
        let mut child = spawn(&root);
        move || child.wait().expect("it ends")
    });
    assert!(status.await.unwrap().success(), "the last run comes to its end");
    let expected = web.expected(&Rules::default());
    let found = captured(&root);
    let missing: Vec<_> = expected.keys().filter(|url| !found.contains_key(*url)).collect();
    assert_eq!(missing, Vec::<&String>::new(), "after {kills} kills");
    let twice: Vec<_> = found.iter().filter(|(_, captures)| captures.len() > 1).map(|(url, _)| url).collect();
    assert_eq!(twice, Vec::<&String>::new(), "after {kills} kills");
    assert_eq!(found.len(), expected.len());
    // The logs tell of each URL once as well, over all chunks.
    let mut lines = 0;
    for entry in std::fs::read_dir(root.join("logs")).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_string_lossy().starts_with("crawl.log") {
            lines += std::fs::read_to_string(path).unwrap().lines().count();
        }
    }
    assert_eq!(lines, expected.len());
    // Every file is in exactly one manifest, with the digest it has.
    let mut named = Vec::new();
    for entry in std::fs::read_dir(root.join("manifests")).unwrap() {
        let manifest = grange_crawl::record::chunk::Manifest::load(&entry.unwrap().path()).unwrap();
        named.extend(manifest.files.into_iter().map(|file| (file.name, file.size)));
    }
    named.sort();
    let mut there: Vec<_> = super::warcs(&root)
        .into_iter()
        .map(|path| {
            let size = path.metadata().unwrap().len();
            (path.file_name().unwrap().to_string_lossy().into_owned(), size)
        })
        .collect();
    there.sort();
    assert_eq!(named, there);
    // The reports count over all runs.
    let pages = found.values().filter(|captures| captures[0].mime.starts_with("text/html")).count();
    let report = std::fs::read_to_string(root.join("reports/processors-report.txt")).unwrap();
    let html = report.split("Processor: extractorHtml").nth(1).unwrap_or_default();
    let told = html.lines().nth(2).unwrap_or_default();
    assert!(told.ends_with(&format!(" links from {pages} CrawlURIs")), "{pages} pages: {report}");
    // What was under way at a kill is asked for again, and nothing else is.
    let asked = server.total();
    assert!(asked_before < expected.len() as u64, "kills fell into the crawl");
    assert!(asked - expected.len() as u64 <= (KILLS * 12) as u64, "{asked} requests for {}", expected.len());
    server.stop().await;
}
