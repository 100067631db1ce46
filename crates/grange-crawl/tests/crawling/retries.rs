//! A response that broke off and one that never came are asked for again; half a response is better than none.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use grange_base::{Clock, Period};
use grange_crawl::engine::{Crawl, End};
use grange_crawl::record::NoOracle;
use grange_testkit::until;
use jiff::Timestamp;

use super::site::{Asked, Reply, Site};
use super::{annotations, captured, job, run, template_to};

#[tokio::test(flavor = "multi_thread")]
async fn what_broke_off_is_tried_again_and_the_last_part_is_kept() {
    let counts: Arc<Mutex<BTreeMap<String, usize>>> = Arc::default();
    let answer = move |asked: Asked| {
        let counts = Arc::clone(&counts);
        async move {
            let time = {
                let mut counts = counts.lock().unwrap();
                let count = counts.entry(asked.url.clone()).or_default();
                *count += 1;
                *count
            };
            Some(match (asked.url.as_str(), time) {
                ("h.test/", _) => {
                    let names = ["mends", "never", "fades", "hangs"];
                    Reply::links("front", names.map(|name| format!("http://h.test/{name}")))
                }
                ("h.test/mends", 1 | 2) | ("h.test/never", _) | ("h.test/fades", 1) => {
                    Reply::page("<html>half").cut()
                }
                ("h.test/fades", _) => return None,
                ("h.test/hangs", 1) => std::future::pending().await,
                _ => Reply::page("<html>whole</html>"),
            })
        }
    };
    let site = Site::serve(answer).await;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("crawl");
    let mut template = template_to(site.addr());
    template.fetch.first_byte_timeout = Period::from_secs(5);
    template.frontier.max_retries = 3;
    template.frontier.park_after = 0;
    let outcome = run(job(template, vec!["http://h.test/".to_owned()]), &root).await;
    assert_eq!((outcome.end, outcome.last.failed), (End::Finished, 0));
    let found = captured(&root);
    let (whole, half) = ("<html>whole</html>".len() as u64, "<html>half".len() as u64);
    for (name, length, times) in
        [("mends", whole, 3), ("never", half, 4), ("fades", half, 4), ("hangs", whole, 2)]
    {
        let captures = &found[&format!("http://h.test/{name}")];
        let seen: Vec<_> = captures.iter().map(|capture| (capture.status, capture.length)).collect();
        assert_eq!(seen, [(200, length)], "{name}");
        assert_eq!(site.times(&format!("h.test/{name}")), times, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn half_a_response_is_kept_when_robots_txt_forbids_another_try() {
    let asked_robots = Arc::new(Mutex::new(0));
    let answer = move |asked: Asked| {
        let again = asked.url.ends_with("/robots.txt") && {
            let mut count = asked_robots.lock().unwrap();
            *count += 1;
            *count > 1
        };
        std::future::ready(Some(match asked.url.as_str() {
            "h.test/robots.txt" if again => Reply::page("User-agent: *\nDisallow: /half\n"),
            "h.test/robots.txt" => Reply::status(404),
            "h.test/" => Reply::links("front", ["http://h.test/half".to_owned()]),
            _ => Reply::page("<html>half").cut(),
        }))
    };
    let site = Site::serve(answer).await;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("crawl");
    let mut template = template_to(site.addr());
    template.robots.cache = grange_crawl::robots::Settings::default();
    template.robots.cache.valid = Period::from_secs(3000);
    template.frontier.retry_delay = Period::from_secs(3600);
    let (clock, hand) = Clock::test(Timestamp::from_second(1_700_000_000).unwrap());
    let seeds = vec!["http://h.test/".to_owned()];
    let running =
        tokio::spawn(Crawl::start(job(template, seeds), &root, Arc::new(NoOracle), clock).unwrap().run());
    until("the page to be asked for", async || site.times("h.test/half") == 1).await;
    until("the crawl to end", async || {
        // Small steps, so that no second lifetime of robots.txt passes while the first request after it is under way.
        hand.advance(Duration::from_secs(10));
        running.is_finished()
    })
    .await;
    assert_eq!(running.await.unwrap().unwrap().end, End::Finished);
    assert_eq!((site.times("h.test/robots.txt"), site.times("h.test/half")), (2, 1));
    let captures: Vec<_> =
        captured(&root)["http://h.test/half"].iter().map(|one| (one.status, one.length)).collect();
    assert_eq!(captures, [(200, "<html>half".len() as u64)]);
    let words = &annotations(&root)["http://h.test/half"];
    assert!(words.split(',').all(|word| word != "2t"), "one try was made: {words}");
}

/// The body of a page, cut or whole, longer than `fetch.memory_bytes` of these tests.
fn long_body(bytes: usize) -> String {
    format!("<html>{}", "x".repeat(bytes - "<html>".len()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_response_that_broke_off_is_tried_again_as_a_short_one() {
    const WHOLE: usize = 600 << 10;
    // How many bytes come at each try; what is not named is whole. Then what is stored, and after how many tries.
    let cases: [(&str, &[usize], usize, usize); 4] = [
        ("once", &[WHOLE / 2], WHOLE, 2),
        // The longest part, wherever it came, on disk or in memory.
        ("never", &[200 << 10, 500 << 10, 300 << 10, 1 << 10], 500 << 10, 4),
        ("grows", &[1 << 10, 200 << 10, 300 << 10, 400 << 10], 400 << 10, 4),
        // 0 is no answer.
        ("fades", &[500 << 10, 0, 0, 0], 500 << 10, 4),
    ];
    let counts: Arc<Mutex<BTreeMap<String, usize>>> = Arc::default();
    let answer = move |asked: Asked| {
        let time = {
            let mut counts = counts.lock().unwrap();
            let count = counts.entry(asked.url.clone()).or_default();
            *count += 1;
            *count
        };
        let name = asked.url.strip_prefix("h.test/").unwrap_or_default().to_owned();
        std::future::ready(match cases.iter().find(|(case, ..)| *case == name) {
            _ if name == "robots.txt" => Some(Reply::status(404)),
            None => Some(Reply::links("front", cases.map(|(name, ..)| format!("http://h.test/{name}")))),
            Some((_, parts, ..)) => match parts.get(time - 1) {
                None => Some(Reply::page(long_body(WHOLE))),
                Some(0) => None,
                Some(part) => Some(Reply::page(long_body(*part)).cut()),
            },
        })
    };
    let site = Site::serve(answer).await;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("crawl");
    let mut template = template_to(site.addr());
    template.fetch.memory_bytes = grange_base::Size(128 << 10);
    template.fetch.scratch_min_free = grange_base::Size(0);
    template.frontier.max_retries = 3;
    template.frontier.park_after = 0;
    let outcome = run(job(template, vec!["http://h.test/".to_owned()]), &root).await;
    assert_eq!((outcome.end, outcome.last.failed), (End::Finished, 0));
    let found = captured(&root);
    for (name, _, length, times) in cases {
        let captures = &found[&format!("http://h.test/{name}")];
        let seen: Vec<_> = captures.iter().map(|capture| (capture.status, capture.length)).collect();
        assert_eq!(seen, [(200, length as u64)], "{name}");
        assert_eq!(site.times(&format!("h.test/{name}")), times, "{name}");
    }
}
