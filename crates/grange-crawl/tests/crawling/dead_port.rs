//! A port that is closed and a name that has no address keep nothing waiting but what needs them, and once.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use grange_base::{Clock, Period, TestClock};
use grange_crawl::engine::{Crawl, End, Handle, Outcome};
use grange_crawl::fetch::{DnsSettings, Settings};
use grange_crawl::frontier::QueueBy;
use grange_crawl::log::CrawlLine;
use grange_crawl::record::NoOracle;
use grange_crawl::robots::Policy;
use grange_testkit::until;
use jiff::Timestamp;
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::site::{Asked, Reply, Site, converse};
use super::{job, template_to};

const PAGES: usize = 6;

/// Lets some time pass, not far ahead of what the crawl has seen of it.
fn step(clock: &Clock, hand: &TestClock, handle: &Handle) {
    let seen = handle.snapshot().at.unwrap_or(Timestamp::from_second(1_700_000_000).unwrap());
    if clock.now() < seen + Duration::from_secs(30) {
        hand.advance(Duration::from_secs(10));
    }
}

/// How a crawl of `seeds` with a closed https port ends, whose clock goes on as soon as the http pages have come: whoever waits for
/// https before that waits for ever.
async fn crawl_beside_a_closed_port(
    policy: Policy,
    seeds: &[&str],
    links: &[&str],
) -> (Outcome, Vec<(String, i32)>, String) {
    let links: Vec<_> = links.iter().map(|url| (*url).to_owned()).collect();
    let site = Site::serve(move |asked: Asked| {
        let links = links.clone();
        async move {
            Some(match asked.url.as_str() {
                "h.test/" => Reply::links("front", links),
                url if url.ends_with("/robots.txt") => Reply::status(404),
                url => Reply::links(url, Vec::new()),
            })
        }
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("crawl");
    let mut template = template_to(site.addr());
    template.robots.policy = policy;
    template.robots.cache = grange_crawl::robots::Settings::default();
    template.frontier.retry_delay = Period::from_secs(60);
    // Nobody listens at port 1.
    template.fetch.resolve =
        vec!["h.test:443:127.0.0.1:1".to_owned(), "dead.h.test:80:127.0.0.1:1".to_owned()];
    if seeds.iter().any(|url| url.contains("dead.h.test")) {
        template.frontier.queue_by = QueueBy::Domain;
    }
    let (clock, hand) = Clock::test(Timestamp::from_second(1_700_000_000).unwrap());
    let seeds = seeds.iter().map(|url| (*url).to_owned()).collect();
    let crawl = Crawl::start(job(template, seeds), &root, Arc::new(NoOracle), clock.clone()).unwrap();
    let handle = crawl.handle();
    let running = tokio::spawn(crawl.run());
    until("the http pages to be fetched", async || site.times("h.test/last") == 1).await;
    until("the crawl to end", async || {
        step(&clock, &hand, &handle);
        running.is_finished()
    })
    .await;
    let outcome = running.await.unwrap().unwrap();
    let text = std::fs::read_to_string(root.join("logs/crawl.log")).unwrap();
    let lines = text.lines().map(|line| CrawlLine::parse(line).unwrap());
    let lines = lines.map(|line| (line.url.into_owned(), line.status.0)).collect();
    (outcome, lines, std::fs::read_to_string(root.join("logs/progress-statistics.log")).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_server_neither_holds_up_nor_loses_urls_of_another_one_in_its_queue() {
    let secure: Vec<_> = (0..12).map(|n| format!("https://h.test/s{n}")).collect();
    let mut links: Vec<_> = secure.iter().map(String::as_str).collect();
    links.push("http://h.test/last");
    let one = ["http://h.test/last"];
    for (policy, seeds, links) in [
        (Policy::Obey, &["https://h.test/", "http://h.test/"][..], &one[..]),
        (Policy::Obey, &["http://h.test/"], &links),
        (Policy::Ignore, &["http://h.test/"], &links),
        (Policy::Ignore, &["https://h.test/", "http://h.test/"], &links),
        // One queue holds the whole domain.
        (Policy::Obey, &["http://dead.h.test/", "http://h.test/"], &one),
        (Policy::Ignore, &["http://dead.h.test/", "http://h.test/"], &one),
    ] {
        let (outcome, lines, progress) = crawl_beside_a_closed_port(policy, seeds, links).await;
        let what = format!("{policy:?} {seeds:?} {}: {lines:?}", links.len());
        assert_eq!((outcome.end, outcome.last.queued), (End::Finished, 0), "{what}");
        let of = |url: &str| lines.iter().filter(|line| line.0 == url).map(|line| line.1).collect::<Vec<_>>();
        assert_eq!((of("http://h.test/"), of("http://h.test/last")), (vec![200], vec![200]), "{what}");
        // Each of the others once, with the true cause.
        let dead = seeds.iter().chain(links).filter(|url| !url.starts_with("http://h.test/"));
        for url in dead {
            assert_eq!(of(url), [-2], "{url}: {what}");
        }
        // Not half an hour.
        let waits: Vec<_> = progress.lines().filter(|line| line.contains("waits for ")).collect();
        assert!(outcome.last.ran_seconds < 1500.0, "{} {waits:#?}", outcome.last.ran_seconds);
    }
}

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
    assert_eq!(of("https://h.test/secure"), [-2]);
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
    template.engine.max_unreachable_wait = Period::from_secs(0);
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
    // Both URLs are left.
    assert_eq!((outcome.end, outcome.last.queued), (End::Unreachable, 2));
    let text = std::fs::read_to_string(root.join("logs/crawl.log")).unwrap();
    let lines: Vec<_> = text.lines().map(|line| CrawlLine::parse(line).unwrap()).collect();
    // Half an hour of tries for the first; at most one to see whether that still holds for the second.
    let tries = |url: &str| {
        let words = lines.iter().filter(|line| line.url == url).flat_map(|line| line.annotations.split(','));
        words.filter_map(|word| word.strip_suffix('t')?.parse::<u32>().ok()).max().unwrap_or(1)
    };
    assert!(tries("http://gone.test/robots.txt") >= 2, "{text}");
    assert_eq!(tries("https://gone.test/robots.txt"), 1);
    assert!(!lines.iter().any(|line| line.url.ends_with("/a") || line.url.ends_with("/b")), "{text}");
}

/// Serves https from the time `up` on; before, connections are closed without a word. The first page asked for is busy.
async fn serve_https(clock: Clock, up: Timestamp) -> (SocketAddr, tokio::task::JoinHandle<()>) {
    let made = rcgen::generate_simple_self_signed(["h.test".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![CertificateDer::from(made.cert.der().to_vec())], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move {
        let log = Mutex::new(Vec::new());
        while let Ok((tcp, _)) = listener.accept().await {
            if clock.now() < up {
                continue;
            }
            let Ok(tls) = acceptor.accept(tcp).await else { continue };
            let is_first_page = !log.lock().unwrap().iter().any(|line: &String| line.ends_with("/secure"));
            let answer = |asked: Asked| {
                std::future::ready(Some(match asked.url.as_str() {
                    "h.test/robots.txt" => Reply::status(404),
                    _ if is_first_page => Reply::status(503),
                    _ => Reply::page("secure"),
                }))
            };
            converse(tls, &answer, &log).await;
        }
    });
    (addr, serving)
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_for_a_port_uses_up_no_tries() {
    let site = Site::serve(answer).await;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("crawl");
    let start = Timestamp::from_second(1_700_000_000).unwrap();
    let (clock, hand) = Clock::test(start);
    // After waits of 60, 120, 240 and 480 seconds; the host is given up after 1800.
    let (addr, serving) = serve_https(clock.clone(), start + Duration::from_secs(600)).await;
    let mut template = template_to(site.addr());
    template.robots.cache = grange_crawl::robots::Settings::default();
    template.frontier.retry_delay = Period::from_secs(60);
    template.frontier.max_retries = 1;
    template.engine.max_unreachable_wait = Period::from_secs(0);
    template.fetch.resolve = vec![format!("h.test:443:{}:{}", addr.ip(), addr.port())];
    let seeds = vec!["http://h.test/".to_owned()];
    let running =
        tokio::spawn(Crawl::start(job(template, seeds), &root, Arc::new(NoOracle), clock).unwrap().run());
    until("the http pages to be fetched", async || site.times(&format!("h.test/{}", PAGES - 1)) == 1).await;
    until("the crawl to end", async || {
        hand.advance(Duration::from_secs(10));
        running.is_finished()
    })
    .await;
    serving.abort();
    let outcome = running.await.unwrap().unwrap();
    assert_eq!((outcome.end, outcome.last.queued), (End::Finished, 0));
    let text = std::fs::read_to_string(root.join("logs/crawl.log")).unwrap();
    let lines: Vec<_> = text.lines().map(|line| CrawlLine::parse(line).unwrap()).collect();
    let page: Vec<_> = lines.iter().filter(|line| line.url == "https://h.test/secure").collect();
    assert_eq!(page.iter().map(|line| line.status.0).collect::<Vec<_>>(), [200], "{text}");
    let tries = |word: &str| word.strip_suffix('t').and_then(|number| number.parse::<u32>().ok());
    assert_eq!(page[0].annotations.split(',').find_map(tries), Some(2), "{}", page[0].annotations);
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_of_one_queue_whose_robots_txt_leads_to_a_dead_host_do_not_wait_for_each_other() {
    let site = Site::serve(|asked: Asked| async move {
        Some(match asked.url.as_str() {
            url if url.ends_with("/robots.txt") => {
                Reply::status(301).with("Location: http://dead.test/robots.txt")
            }
            url => Reply::links(url, Vec::new()),
        })
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("crawl");
    let mut template = template_to(site.addr());
    template.robots.cache = grange_crawl::robots::Settings::default();
    template.frontier.retry_delay = Period::from_secs(60);
    template.frontier.queue_by = QueueBy::Domain;
    // Nobody listens at port 1.
    template.fetch.resolve = vec!["dead.test:80:127.0.0.1:1".to_owned()];
    let (clock, hand) = Clock::test(Timestamp::from_second(1_700_000_000).unwrap());
    let seeds = ["http://a.h.test/", "http://b.h.test/"].map(str::to_owned).to_vec();
    let crawl = Crawl::start(job(template, seeds), &root, Arc::new(NoOracle), clock.clone()).unwrap();
    let handle = crawl.handle();
    let running = tokio::spawn(crawl.run());
    until("the crawl to end", async || {
        step(&clock, &hand, &handle);
        running.is_finished()
    })
    .await;
    let outcome = running.await.unwrap().unwrap();
    assert_eq!((outcome.end, outcome.last.queued), (End::Finished, 0));
    let text = std::fs::read_to_string(root.join("logs/crawl.log")).unwrap();
    for url in ["http://a.h.test/", "http://b.h.test/"] {
        let lines = text.lines().map(|line| CrawlLine::parse(line).unwrap());
        let statuses: Vec<_> = lines.filter(|line| line.url == url).map(|line| line.status.0).collect();
        assert_eq!(statuses, [-9998], "{text}");
    }
}
