//! A port that is closed and a name that has no address keep nothing waiting but what needs them, and once.

use std::sync::Arc;
use std::time::Duration;

use grange_base::{Clock, Period};
use grange_crawl::engine::{Crawl, End};
use grange_crawl::fetch::{DnsSettings, Settings};
use grange_crawl::log::CrawlLine;
use grange_crawl::record::NoOracle;
use grange_testkit::until;
use jiff::Timestamp;

use super::site::{Asked, Reply, Site};
use super::{job, template_to};

const PAGES: usize = 6;

/// The seed leads to https before it leads to more pages; all of them are in one queue.
async fn answer(asked: Asked) -> Option<Reply> {
    let plain = (0..PAGES).map(|n| format!("http://h.test/{n}"));
    Some(match asked.url.as_str() {
        "h.test/" => Reply::links("front", ["https://h.test/secure".to_owned()].into_iter().chain(plain)),
        "h.test/robots.txt" => Reply::status(404),
        _ => Reply::links(&asked.url, Vec::new()),
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_https_port_does_not_hold_up_the_http_urls_of_its_host() {
    let site = Site::serve(answer).await;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("crawl");
    let mut template = template_to(site.addr());
    // As they are outside of tests.
    template.robots.cache = grange_crawl::robots::Settings::default();
    template.frontier.retry_delay = Period::from_secs(60);
    // Nobody listens at port 1.
    template.fetch.resolve = vec!["h.test:443:127.0.0.1:1".to_owned()];
    let start = Timestamp::from_second(1_700_000_000).unwrap();
    let (clock, hand) = Clock::test(start);
    let crawl =
        Crawl::start(job(template, vec!["http://h.test/".to_owned()]), &root, Arc::new(NoOracle), clock);
    let running = tokio::spawn(crawl.unwrap().run());
    // The clock stands still: who waits for https waits for ever.
    until("the http pages to be fetched", async || site.times(&format!("h.test/{}", PAGES - 1)) == 1).await;
    until("the crawl to end", async || {
        hand.advance(Duration::from_secs(10));
        running.is_finished()
    })
    .await;
    let outcome = running.await.unwrap().unwrap();
    assert_eq!((outcome.end, outcome.last.queued), (End::Finished, 0));
    let text = std::fs::read_to_string(root.join("logs/crawl.log")).unwrap();
    let of = |url: &str| {
        let lines = text.lines().map(|line| CrawlLine::parse(line).unwrap());
        lines.filter(|line| line.url == url).map(|line| line.status.0).collect::<Vec<_>>()
    };
    assert_eq!((of("https://h.test/secure"), of("https://h.test/robots.txt")), (vec![-9998], vec![-2]));
    for n in 0..PAGES {
        assert_eq!(of(&format!("http://h.test/{n}")), [200]);
    }
    let progress = std::fs::read_to_string(root.join("logs/progress-statistics.log")).unwrap();
    let said = "waits for https://h.test until 2023-11-14T22:14:20Z: the connection failed; other URLs of the host are \
                fetched meanwhile";
    assert!(progress.contains(said), "{progress}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_without_an_address_is_waited_for_once_whatever_the_scheme() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("crawl");
    let site = Site::serve(answer).await;
    let mut template = template_to(site.addr());
    template.robots.cache = grange_crawl::robots::Settings::default();
    template.frontier.retry_delay = Period::from_secs(60);
    template.frontier.park_after = 0;
    // Nobody is asked about any name.
    let dns = DnsSettings {
        servers: vec!["127.0.0.1:1".to_owned()],
        timeout: Period::from_millis(50),
        retries: 0,
        system_fallback: false,
        ..DnsSettings::default()
    };
    template.fetch = Settings { all_hosts_to: String::new(), dns, ..template.fetch };
    let start = Timestamp::from_second(1_700_000_000).unwrap();
    let (clock, hand) = Clock::test(start);
    let seeds = ["http://gone.test/a", "https://gone.test/b"].map(str::to_owned).to_vec();
    let crawl = Crawl::start(job(template, seeds), &root, Arc::new(NoOracle), clock.clone()).unwrap();
    let running = tokio::spawn(crawl.run());
    until("the crawl to end", async || {
        hand.advance(Duration::from_secs(10));
        running.is_finished()
    })
    .await;
    let outcome = running.await.unwrap().unwrap();
    assert_eq!((outcome.end, outcome.last.queued), (End::Finished, 0));
    let text = std::fs::read_to_string(root.join("logs/crawl.log")).unwrap();
    let lines: Vec<_> = text.lines().map(|line| CrawlLine::parse(line).unwrap()).collect();
    let page = |url: &str| lines.iter().find(|line| line.url == url).unwrap();
    assert_eq!((page("http://gone.test/a").status.0, page("https://gone.test/b").status.0), (-9998, -9998));
    // Half an hour of tries for the first; at most one to see whether that still holds for the second.
    let tries = |url: &str| {
        let words = lines.iter().filter(|line| line.url == url).flat_map(|line| line.annotations.split(','));
        words.filter_map(|word| word.strip_suffix('t')?.parse::<u32>().ok()).max().unwrap_or(1)
    };
    assert!(tries("http://gone.test/robots.txt") >= 2);
    assert_eq!(tries("https://gone.test/robots.txt"), 1);
}
