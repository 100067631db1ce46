//! Hosts that cannot be reached: their URLs are left and said to be left, tried again on resume or by order, and not
//! lost to an outage of our own network.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use grange_base::{Clock, Period};
use grange_crawl::engine::{Crawl, End, Order, Outcome, Phase};
use grange_crawl::job::StopReason;
use grange_crawl::politeness::Pace;
use grange_crawl::record::NoOracle;
use grange_crawl::robots::Policy;
use grange_crawl::template::Template;
use grange_testkit::until;
use jiff::Timestamp;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::site::{Asked, Reply, Site};
use super::{captured, job, run, template_to};

const PAGES: usize = 24;

/// Hosts are given up after few failures.
fn impatient(site: &Site) -> Template {
    let mut template = template_to(site.addr());
    template.robots.policy = Policy::Ignore;
    template.frontier.park_after = 2;
    template.frontier.park_for = Period::from_millis(20);
    template.frontier.max_parks = 2;
    template
}

fn front(host: &str) -> Reply {
    Reply::links(host, (0..PAGES).map(|n| format!("http://{host}/{n}")))
}

/// `good.test` leads to `bad.test`, which hangs up until it is mended. `good.test/held` is answered when that is
/// released.
async fn two_hosts(mended: Arc<AtomicBool>, released: Arc<watch::Sender<bool>>) -> Site {
    let answer = move |asked: Asked| {
        let (mended, mut released) = (Arc::clone(&mended), released.subscribe());
        async move {
            if asked.url.starts_with("bad.test") && !mended.load(Ordering::SeqCst) {
                return None;
            }
            if asked.url == "good.test/held" {
                released.wait_for(|released| *released).await.ok()?;
            }
            Some(if asked.url == "good.test/" {
                front("bad.test")
            } else {
                Reply::links(&asked.url, Vec::new())
            })
        }
    };
    Site::serve(answer).await
}

#[tokio::test(flavor = "multi_thread")]
async fn urls_of_a_host_that_could_not_be_reached_are_left_and_a_resume_fetches_them() {
    let (mended, released) = (Arc::new(AtomicBool::new(false)), Arc::new(watch::Sender::new(true)));
    let site = two_hosts(Arc::clone(&mended), released).await;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("crawl");
    let mut template = impatient(&site);
    template.scope.kind = grange_crawl::scope::ScopeKind::Any;
    let outcome = run(job(template, vec!["http://good.test/".to_owned()]), &root).await;
    assert_eq!(outcome.end, End::Unreachable);
    let left = outcome.last.queued;
    assert!(left > 10, "{:?}", outcome.last);
    let report = std::fs::read_to_string(root.join("reports/crawl-report.txt")).unwrap();
    assert!(
        report.contains("crawl status: Finished - URLs left, their hosts could not be reached"),
        "{report}"
    );
    mended.store(true, Ordering::SeqCst);
    let crawl = Crawl::resume(&root, Arc::new(NoOracle), Clock::system()).unwrap();
    let outcome = crawl.run().await.unwrap();
    assert_eq!((outcome.end, outcome.last.queued), (End::Finished, 0));
    let pages = captured(&root).keys().filter(|url| url.starts_with("http://bad.test/")).count() as u64;
    assert!(pages >= left, "{pages} of {left}");
}

/// Crawls `own.test` and `gone.test`, which is out of reach from the first contact on and never answers. Advances the
/// clock until the crawl ends, and returns how long that took.
async fn crawl_without_a_host(
    root: &std::path::Path,
    policy: Policy,
    pages: usize,
    change: impl FnOnce(&mut Template),
    mended: &Arc<AtomicBool>,
) -> (Site, Outcome, u64) {
    let is_there = Arc::clone(mended);
    let site = Site::serve(move |asked: Asked| {
        let is_there = is_there.load(Ordering::SeqCst);
        async move {
            match asked.url.split_once('/') {
                Some(("gone.test", _)) if !is_there => None,
                Some((_, "robots.txt")) => Some(Reply::status(404)),
                _ => Some(Reply::links(&asked.url, Vec::new())),
            }
        }
    })
    .await;
    let mut template = template_to(site.addr());
    template.robots.policy = policy;
    // As they are outside of tests.
    template.robots.cache = grange_crawl::robots::Settings::default();
    template.frontier.retry_delay = Period::from_secs(60);
    change(&mut template);
    let mut seeds: Vec<_> = (0..pages).map(|n| format!("http://gone.test/{n}")).collect();
    seeds.push("http://own.test/".to_owned());
    let start = Timestamp::from_second(1_700_000_000).unwrap();
    let (clock, hand) = Clock::test(start);
    let crawl = Crawl::start(job(template, seeds), root, Arc::new(NoOracle), clock.clone()).unwrap();
    let handle = crawl.handle();
    let running = tokio::spawn(crawl.run());
    until("the crawl to end", async || {
        // Not far ahead of what the crawl has seen of it.
        if clock.now() < handle.snapshot().at.unwrap_or(start) + Duration::from_secs(30) {
            hand.advance(Duration::from_secs(10));
        }
        running.is_finished()
    })
    .await;
    let outcome = running.await.unwrap().unwrap();
    (site, outcome, clock.now().duration_since(start).as_secs().unsigned_abs())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_is_out_of_reach_from_the_start_keeps_its_urls_whatever_the_policy() {
    let never = Period::from_secs(0);
    for (policy, max_wait, max_retries, at_least, at_most) in [
        // Nothing else is left: some minutes.
        (Policy::Obey, Period::from_secs(300), 3, 300, 900),
        // By its own rules: robots.txt for half an hour.
        (Policy::Obey, never, 3, 1800, 4000),
        (Policy::Ignore, Period::from_secs(300), 99, 300, 900),
        (Policy::Ignore, never, 99, 1800, 5000),
    ] {
        let what = format!("{policy:?} {max_wait:?}");
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("crawl");
        let mended = Arc::new(AtomicBool::new(false));
        let change = |template: &mut Template| {
            template.engine.max_unreachable_wait = max_wait;
            template.frontier.max_retries = max_retries;
        };
        let (site, outcome, seconds) = crawl_without_a_host(&root, policy, PAGES, change, &mended).await;
        assert_eq!(outcome.end, End::Unreachable, "{what}");
        assert!((at_least..at_most).contains(&seconds), "{what}: {seconds} s");
        let log = std::fs::read_to_string(root.join("logs/crawl.log")).unwrap();
        let pages =
            log.lines().filter(|line| line.contains("http://gone.test/") && !line.contains("robots.txt"));
        assert_eq!(pages.count(), 0, "{what}: {log}");
        assert!(outcome.last.queued >= PAGES as u64, "{what}: {:?}", outcome.last);
        let domain = outcome.domains.iter().find(|domain| domain.domain == "gone.test").unwrap();
        assert_eq!(domain.stop_reason, StopReason::Unfinished, "{what}");
        if max_wait != never {
            let progress = std::fs::read_to_string(root.join("logs/progress-statistics.log")).unwrap();
            assert!(progress.contains("nothing else is left to crawl: it ends at "), "{what}: {progress}");
        }
        mended.store(true, Ordering::SeqCst);
        let crawl = Crawl::resume(&root, Arc::new(NoOracle), Clock::system()).unwrap();
        let outcome = crawl.run().await.unwrap();
        assert_eq!((outcome.end, outcome.last.queued), (End::Finished, 0), "{what}");
        let found = captured(&root);
        for n in 0..PAGES {
            assert_eq!(found[&format!("http://gone.test/{n}")].len(), 1, "{what}");
        }
        drop(site);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_queue_of_one_server_that_is_out_of_reach_waits_as_a_short_one() {
    let pages = 1_200;
    for max_wait in [Period::from_secs(300), Period::from_secs(0)] {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("crawl");
        let mended = Arc::new(AtomicBool::new(false));
        let change = |template: &mut Template| {
            template.engine.max_unreachable_wait = max_wait;
            template.frontier.max_retries = 99;
        };
        let (site, outcome, seconds) =
            crawl_without_a_host(&root, Policy::Ignore, pages, change, &mended).await;
        assert_eq!((outcome.end, outcome.last.queued), (End::Unreachable, pages as u64), "{max_wait:?}");
        assert!(seconds < 5_000, "{max_wait:?}: {seconds} s");
        assert!(site.total() < 60, "{max_wait:?}: {}", site.total());
        let progress = std::fs::read_to_string(root.join("logs/progress-statistics.log")).unwrap();
        assert!(!progress.contains("other URLs of the host are fetched meanwhile"), "{progress}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_at_the_start_of_a_crawl_costs_no_url() {
    // Nobody listens there yet.
    let addr = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut template = template_to(addr);
    template.frontier.park_after = 2;
    template.frontier.max_parks = 2;
    let seeds = (0..3).map(|n| format!("http://h{n}.test/")).collect();
    let root = folder.path().join("crawl");
    let crawl = Crawl::start(job(template, seeds), &root, Arc::new(NoOracle), Clock::system()).unwrap();
    let mut pictures = crawl.handle().watch();
    let running = tokio::spawn(crawl.run());
    let waits = |picture: &grange_crawl::engine::Snapshot| {
        let reason = picture.waits_for.as_deref().unwrap_or_default();
        picture.phase == Phase::Waiting && reason.contains("no host can be reached")
    };
    pictures.wait_for(waits).await.unwrap();
    let answer = |asked: Asked| async move { Some(Reply::links(&asked.url, Vec::new())) };
    let site = Site::serve_at(TcpListener::bind(addr).await.unwrap(), answer);
    let outcome = running.await.unwrap().unwrap();
    assert_eq!((outcome.end, outcome.last.failed, outcome.last.queued), (End::Finished, 0, 0));
    assert_eq!(site.times("h2.test/"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_revives_hosts_that_could_not_be_reached() {
    let (mended, released) = (Arc::new(AtomicBool::new(false)), Arc::new(watch::Sender::new(false)));
    let site = two_hosts(Arc::clone(&mended), Arc::clone(&released)).await;
    let folder = tempfile::tempdir().unwrap();
    let mut template = impatient(&site);
    template.scope.kind = grange_crawl::scope::ScopeKind::Any;
    let seeds = ["http://good.test/", "http://good.test/held"].map(str::to_owned).to_vec();
    let root = folder.path().join("crawl");
    let crawl = Crawl::start(job(template, seeds), &root, Arc::new(NoOracle), Clock::system()).unwrap();
    let handle = crawl.handle();
    let running = tokio::spawn(crawl.run());
    // The page that is held keeps the crawl from ending.
    until("the host to be given up", async || handle.snapshot().retired_queues == 1).await;
    mended.store(true, Ordering::SeqCst);
    assert_eq!(handle.order("anna", Order::Revive { queue: None }).await.unwrap(), json!({"revived": 1}));
    until("the host to be asked", async || site.times("bad.test/23") > 0).await;
    released.send_replace(true);
    assert_eq!(running.await.unwrap().unwrap().end, End::Finished);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_of_our_own_network_pauses_the_crawl_and_costs_no_url() {
    let answer = |asked: Asked| async move {
        Some(match asked.url.split_once('/') {
            Some((host, "")) => front(host),
            _ => Reply::links(&asked.url, Vec::new()),
        })
    };
    let site = Site::serve(answer).await;
    let addr = site.addr();
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("crawl");
    let mut template = impatient(&site);
    template.frontier.pace = Pace::fixed(Duration::from_millis(20));
    let seeds = (0..3).map(|n| format!("http://h{n}.test/")).collect();
    let crawl = Crawl::start(job(template, seeds), &root, Arc::new(NoOracle), Clock::system()).unwrap();
    let handle = crawl.handle();
    let running = tokio::spawn(crawl.run());
    until("some pages", async || site.total() > 15).await;
    // Nobody listens any more, whatever the host.
    drop(site);
    let mut pictures = handle.watch();
    let waits = |picture: &grange_crawl::engine::Snapshot| {
        let reason = picture.waits_for.as_deref().unwrap_or_default();
        picture.phase == Phase::Waiting && reason.contains("no host can be reached")
    };
    let first = pictures.wait_for(waits).await.unwrap().at;
    // Longer than it takes to give up a host.
    pictures.wait_for(|picture| picture.at > first).await.unwrap();
    let second = pictures.wait_for(waits).await.unwrap().at;
    pictures.wait_for(|picture| picture.at > second).await.unwrap();
    assert!(!running.is_finished(), "it waits");
    let mut again = None;
    until("the port", async || {
        again = TcpListener::bind(addr).await.ok();
        again.is_some()
    })
    .await;
    let site = Site::serve_at(again.unwrap(), answer);
    let outcome = running.await.unwrap().unwrap();
    assert_eq!((outcome.end, outcome.last.failed, outcome.last.queued), (End::Finished, 0, 0));
    let found = captured(&root);
    let pages = found.keys().filter(|url| !url.ends_with("robots.txt")).count();
    assert_eq!(pages, 3 * (PAGES + 1), "{}", site.total());
    assert!(found.values().flatten().all(|capture| capture.status == 200));
}
