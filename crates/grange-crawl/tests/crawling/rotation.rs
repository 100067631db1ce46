//! A chunk is closed while a server keeps us waiting: one slow host does not hold up the others.

use std::sync::Arc;
use std::time::Duration;

use grange_base::Clock;
use grange_crawl::engine::{Crawl, End};
use grange_crawl::politeness::Pace;
use grange_crawl::record::NoOracle;
use grange_testkit::until;
use tokio::sync::watch;

use super::site::{Reply, Site};
use super::{captured, job, template_to};

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_host_keeps_no_chunk_open() {
    let released = Arc::new(watch::Sender::new(false));
    let site = Site::serve({
        let released = Arc::clone(&released);
        move |asked| {
            let mut released = released.subscribe();
            async move {
                Some(match asked.url.as_str() {
                    // The first answer is there, and belongs to the chunk; the second one is long in coming.
                    "slow.test/robots.txt" => Reply::status(302).with("Location: /slow"),
                    "slow.test/slow" => {
                        released.wait_for(|released| *released).await.ok()?;
                        Reply::page("User-agent: *\nDisallow:\n")
                    }
                    "fast.test/" => Reply::links("fast", (0..400).map(|n| format!("http://fast.test/{n}"))),
                    url => Reply::links(url, Vec::new()),
                })
            }
        }
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("crawl");
    let mut template = template_to(site.addr());
    template.frontier.pace = Pace::fixed(Duration::from_millis(5));
    let seeds = ["http://slow.test/", "http://fast.test/"].map(str::to_owned).to_vec();
    let crawl = Crawl::start(job(template, seeds), &root, Arc::new(NoOracle), Clock::system()).unwrap();
    let handle = crawl.handle();
    let running = tokio::spawn(crawl.run());
    until("the slow host", async || site.times("slow.test/slow") == 1 && site.total() > 10).await;
    let closed = tokio::time::timeout(Duration::from_secs(30), handle.rotate()).await;
    let manifest = closed.expect("the chunk is closed while the host is slow").unwrap().unwrap();
    assert!(manifest.urls > 0);
    assert_eq!(site.times("slow.test/"), 0, "the host is still slow");
    // What comes after it is written at once, not held back.
    until("captures of the next chunk", async || handle.snapshot().finished > manifest.urls).await;
    assert_eq!(site.times("slow.test/"), 0, "the host is still slow");
    released.send_replace(true);
    assert_eq!(running.await.unwrap().unwrap().end, End::Finished);
    let found = captured(&root);
    assert_eq!(found.len(), 1 + 400 + 1 + 3, "pages and robots.txt of both hosts");
    assert!(found.values().all(|captures| captures.len() == 1));
}
