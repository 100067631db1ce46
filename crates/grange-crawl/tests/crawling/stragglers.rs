//! External hosts that fail do not keep a crawl open whose own hosts are done, and waits are reported while they last.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use grange_base::{Clock, Period};
use grange_crawl::engine::{Crawl, End};
use grange_crawl::log::CrawlLine;
use grange_crawl::record::NoOracle;
use grange_testkit::until;
use jiff::Timestamp;

use super::site::{Asked, Reply, Site};
use super::{captured, job, template_to};

/// `own.test` embeds parts of `dead.test`, which hangs up, and of `busy.test`, whose robots.txt is answered with 503.
async fn answer(asked: Asked) -> Option<Reply> {
    match asked.url.as_str() {
        "own.test/" => Some(Reply::page(
            "<html><img src=http://dead.test/1.png><img src=http://dead.test/2.png>\
             <img src=http://busy.test/1.png></html>",
        )),
        url if url.starts_with("dead.test") => None,
        url if url.starts_with("busy.test") => Some(Reply::status(503)),
        _ => Some(Reply::status(404)),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn external_hosts_that_fail_are_given_up_when_only_they_are_left() {
    let site = Site::serve(answer).await;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("crawl");
    let mut template = template_to(site.addr());
    // As they are outside of tests: a host that fails is waited for for half an hour.
    template.robots.cache = grange_crawl::robots::Settings::default();
    template.frontier.retry_delay = Period::from_secs(60);
    let (clock, hand) = Clock::test(Timestamp::from_second(1_700_000_000).unwrap());
    let wanted = job(template, vec!["http://own.test/".to_owned()]);
    let crawl = Crawl::start(wanted, &root, Arc::new(NoOracle), clock).unwrap();
    let handle = crawl.handle();
    let running = tokio::spawn(crawl.run());
    until("the external hosts to be asked", async || {
        site.times("dead.test/robots.txt") > 0 && site.times("busy.test/robots.txt") > 0
    })
    .await;
    let mut said = None;
    until("the wait to be stated", async || {
        hand.advance(Duration::from_secs(1));
        said = handle.snapshot().waits_for;
        said.is_some()
    })
    .await;
    let said = said.unwrap();
    assert!(said.starts_with("waits for ") && said.contains(".test until 2023-11-14T22:"), "{said}");
    until("the crawl to end", async || {
        hand.advance(Duration::from_secs(10));
        running.is_finished()
    })
    .await;
    let outcome = running.await.unwrap().unwrap();
    assert_eq!((outcome.end, outcome.last.queued), (End::Finished, 0));
    assert!(captured(&root).contains_key("http://own.test/"));
    for host in ["dead.test", "busy.test"] {
        assert!(site.times(&format!("{host}/robots.txt")) >= 2, "{host}");
        assert_eq!(site.times(&format!("{host}/1.png")), 0, "{host}");
    }
    let text = std::fs::read_to_string(root.join("logs/crawl.log")).unwrap();
    let lines = text.lines().map(|line| CrawlLine::parse(line).unwrap());
    let lines: BTreeMap<_, _> =
        lines.map(|line| (line.url.into_owned(), (line.status.0, line.annotations.into_owned()))).collect();
    for (url, status) in [
        ("http://dead.test/robots.txt", -3),
        ("http://dead.test/1.png", -3),
        ("http://dead.test/2.png", -3),
        ("http://busy.test/robots.txt", -61),
        ("http://busy.test/1.png", -61),
    ] {
        assert_eq!(lines[url], (status, "externalHostUnreachable".to_owned()), "{url}");
    }
    let progress = std::fs::read_to_string(root.join("logs/progress-statistics.log")).unwrap();
    for words in ["waits for dead.test until", "waits for busy.test until", "robots.txt returned status 503"]
    {
        assert!(progress.contains(words), "{words}: {progress}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn urls_that_fail_on_a_host_that_answers_do_not_leave_it_unfinished() {
    for hanging in [1, 2] {
        let site = Site::serve(move |asked: Asked| async move {
            match asked.url.as_str() {
                "own.test/" => {
                    Some(Reply::links("front", (0..hanging).map(|n| format!("http://own.test/hangs{n}"))))
                }
                url if url.starts_with("own.test/hangs") => None,
                _ => Some(Reply::status(404)),
            }
        })
        .await;
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("crawl");
        let mut template = template_to(site.addr());
        template.robots.cache = grange_crawl::robots::Settings::default();
        template.frontier.retry_delay = Period::from_secs(60);
        // The wait ends first.
        template.frontier.max_retries = 99;
        let start = Timestamp::from_second(1_700_000_000).unwrap();
        let (clock, hand) = Clock::test(start);
        let wanted = job(template, vec!["http://own.test/".to_owned()]);
        let crawl = Crawl::start(wanted, &root, Arc::new(NoOracle), clock.clone()).unwrap();
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
        assert_eq!((outcome.end, outcome.last.queued), (End::Finished, 0), "{hanging}");
        let text = std::fs::read_to_string(root.join("logs/crawl.log")).unwrap();
        for n in 0..hanging {
            let url = format!("http://own.test/hangs{n}");
            let lines = text.lines().map(|line| CrawlLine::parse(line).unwrap());
            let statuses: Vec<_> = lines.filter(|line| line.url == url).map(|line| line.status.0).collect();
            assert_eq!(statuses, [-3], "{text}");
        }
    }
}
