//! robots.txt is asked for a few times in an hour, whatever goes wrong, and a failure at its renewal forbids nothing.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use grange_base::{Clock, Period};
use grange_crawl::engine::{Crawl, End, Outcome};
use grange_crawl::job::StopReason;
use grange_crawl::log::CrawlLine;
use grange_crawl::politeness::Pace;
use grange_crawl::record::NoOracle;
use grange_crawl::robots::{Policy, Settings};
use grange_crawl::template::Template;
use grange_testkit::until;
use jiff::{SignedDuration, Timestamp};

use super::site::{Asked, Reply, Site};
use super::{captured, job, template_to};

const HOUR: u64 = 3600;

/// What a test looks at.
struct Crawled {
    outcome: Outcome,
    /// When robots.txt was asked for, from the start of the crawl.
    asked: Vec<SignedDuration>,
    took: SignedDuration,
}

/// Crawls `pages` of one host, moving the clock by `step` whenever the crawl has seen where it stands. `robots` answers the
/// requests for robots.txt, which are counted from 1.
async fn crawl(
    root: &Path,
    pages: usize,
    step: Duration,
    robots: impl Fn(usize) -> Reply + Send + Sync + 'static,
    change: impl FnOnce(&mut Template),
    max_seconds: i64,
) -> Crawled {
    let start = Timestamp::from_second(1_700_000_000).unwrap();
    let (clock, hand) = Clock::test(start);
    let asked_at: Arc<Mutex<Vec<SignedDuration>>> = Arc::default();
    let (count, times, now) = (AtomicUsize::new(0), Arc::clone(&asked_at), clock.clone());
    let site = Site::serve(move |asked: Asked| {
        std::future::ready(Some(if asked.url == "h.test/robots.txt" {
            times.lock().unwrap().push(now.now().duration_since(start));
            robots(count.fetch_add(1, Ordering::SeqCst) + 1)
        } else {
            Reply::links(&asked.url, Vec::new())
        }))
    })
    .await;
    let mut template = template_to(site.addr());
    change(&mut template);
    let mut job = job(template, (0..pages).map(|n| format!("http://h.test/{n}")).collect());
    job.budgets.crawl.max_seconds = max_seconds;
    let crawl = Crawl::start(job, root, Arc::new(NoOracle), clock.clone()).unwrap();
    let handle = crawl.handle();
    let running = tokio::spawn(crawl.run());
    until("the crawl to end", async || {
        if clock.now() < handle.snapshot().at.unwrap_or(start) + step * 2 {
            hand.advance(step);
        }
        running.is_finished()
    })
    .await;
    let outcome = running.await.unwrap().unwrap();
    let asked = asked_at.lock().unwrap().clone();
    Crawled { outcome, asked, took: clock.now().duration_since(start) }
}

/// A robots.txt that is asked for again almost at once after a failure.
fn eager() -> Settings {
    Settings {
        retry: Period::from_millis(10),
        retry_max: Period::from_secs(HOUR),
        give_up: Period::from_secs(100 * HOUR),
        ..Settings::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_robots_txt_that_cannot_be_had_is_asked_for_twelve_times_in_the_first_hour() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("crawl");
    let change = |template: &mut Template| template.robots.cache = eager();
    let step = Duration::from_secs(10);
    let Crawled { outcome, asked, took } =
        crawl(&root, 3, step, |_| Reply::status(503), change, HOUR as i64 - 100).await;
    assert_eq!(outcome.end, End::Limit(StopReason::TimeLimit));
    assert!(took > SignedDuration::from_mins(55), "{took}");
    assert_eq!(asked.len(), 12, "{asked:?}");
    // With robots.txt itself.
    assert_eq!((outcome.last.finished, outcome.last.queued), (0, 4), "{:?}", outcome.last);
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_that_may_be_fetched_do_not_wait_for_a_robots_txt_that_was_asked_for_too_often() {
    let short = Settings { valid: Period::from_secs(1), ..Settings::default() };
    let stale = Settings { valid: Period::from_secs(1), ..eager() };
    for (policy, cache, later_status) in [(Policy::Ignore, short, 404), (Policy::Obey, stale, 500)] {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("crawl");
        let change = |template: &mut Template| {
            template.robots.policy = policy;
            template.robots.cache = cache;
            // 60 pages in 20 minutes.
            template.frontier.pace = Pace::fixed(Duration::from_secs(20));
        };
        let robots = move |time| Reply::status(if time == 1 { 404 } else { later_status });
        let Crawled { outcome, asked, took } =
            crawl(&root, 60, Duration::from_secs(10), robots, change, -1).await;
        assert_eq!((outcome.end, outcome.last.queued), (End::Finished, 0), "{policy:?}");
        assert_eq!(asked.len(), 12, "{policy:?}: {asked:?}");
        assert!(took < SignedDuration::from_hours(1), "{policy:?}: {took}");
        let pages = captured(&root).into_keys().filter(|url| !url.ends_with("robots.txt")).count();
        assert_eq!(pages, 60, "{policy:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_failure_at_the_renewal_of_robots_txt_forbids_no_page_of_a_slow_crawl() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("crawl");
    let change = |template: &mut Template| {
        // As they are outside of tests.
        template.robots.cache = Settings::default();
        // 60 pages in 50 hours.
        template.frontier.pace = Pace::fixed(Duration::from_secs(3000));
    };
    let robots =
        |time| if time == 2 { Reply::status(503) } else { Reply::page("User-agent: *\nDisallow: /x\n") };
    let Crawled { outcome, asked, took } =
        crawl(&root, 60, Duration::from_secs(100), robots, change, -1).await;
    assert!(took > SignedDuration::from_hours(48), "{took}");
    assert!((3..=4).contains(&asked.len()), "{asked:?}");
    assert_eq!((outcome.end, outcome.last.failed, outcome.last.disregarded), (End::Finished, 0, 0));
    let log = std::fs::read_to_string(root.join("logs/crawl.log")).unwrap();
    let lines: Vec<_> = log.lines().map(|line| CrawlLine::parse(line).unwrap()).collect();
    let pages = lines.iter().filter(|line| !line.url.ends_with("robots.txt"));
    let statuses: Vec<_> = pages.map(|line| line.status.0).collect();
    assert_eq!(statuses, [200; 60], "{log}");
}
