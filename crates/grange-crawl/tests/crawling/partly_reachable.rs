//! Hosts that answer by one scheme and not by the other are no outage of our own network.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use grange_base::{Clock, Period};
use grange_crawl::engine::{Crawl, End, Phase};
use grange_crawl::log::CrawlLine;
use grange_crawl::politeness::Pace;
use grange_crawl::record::NoOracle;
use grange_crawl::robots::Policy;
use grange_testkit::until;
use jiff::Timestamp;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::site::{Asked, Reply, Site};
use super::{job, template_to};

const PAGES: usize = 8;

/// A server that speaks http whatever it is asked.
async fn plain_http() -> (SocketAddr, tokio::task::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move {
        while let Ok((mut tcp, _)) = listener.accept().await {
            let mut hello = [0; 5];
            let reply = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            if tcp.read_exact(&mut hello).await.is_ok() && tcp.write_all(reply).await.is_ok() {
                let _ = tcp.shutdown().await;
            }
        }
    });
    (addr, serving)
}

/// Nobody listens there.
fn closed() -> SocketAddr {
    "127.0.0.1:1".parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_whose_https_port_does_not_work_pause_nothing() {
    let (plain, serving) = plain_http().await;
    for (hosts, https, policy, schemes) in [
        (3, closed(), Policy::Obey, ["http", "https"]),
        (3, closed(), Policy::Obey, ["https", "http"]),
        (2, closed(), Policy::Ignore, ["http", "https"]),
        (3, plain, Policy::Obey, ["http", "https"]),
        (4, plain, Policy::Ignore, ["https", "http"]),
    ] {
        let what = format!("{hosts} {https} {policy:?} {schemes:?}");
        let site = Site::serve(|asked: Asked| async move {
            Some(match asked.url.split_once('/') {
                Some((_, "robots.txt")) => Reply::status(404),
                Some((host, "n/")) => {
                    Reply::links("front", (0..PAGES).map(|page| format!("http://{host}/n/{page}")))
                }
                _ => Reply::links(&asked.url, Vec::new()),
            })
        })
        .await;
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("crawl");
        let mut template = template_to(site.addr());
        template.robots.policy = policy;
        // As they are outside of tests.
        template.robots.cache = grange_crawl::robots::Settings::default();
        template.frontier.retry_delay = Period::from_secs(60);
        template.fetch.resolve =
            (0..hosts).map(|n| format!("p{n}.test:443:{}:{}", https.ip(), https.port())).collect();
        let seeds = (0..hosts).flat_map(|n| schemes.map(|scheme| format!("{scheme}://p{n}.test/n/")));
        let (clock, hand) = Clock::test(Timestamp::from_second(1_700_000_000).unwrap());
        let crawl =
            Crawl::start(job(template, seeds.collect()), &root, Arc::new(NoOracle), clock.clone()).unwrap();
        let handle = crawl.handle();
        let running = tokio::spawn(crawl.run());
        let mut paused = None;
        until("the crawl to end", async || {
            let seen = handle.snapshot();
            if seen.phase == Phase::Waiting {
                paused = seen.waits_for;
            }
            // Not far ahead of what the crawl has seen of it.
            if clock.now() < seen.at.unwrap_or(Timestamp::MIN) + Duration::from_secs(30) {
                hand.advance(Duration::from_secs(10));
            }
            running.is_finished()
        })
        .await;
        let outcome = running.await.unwrap().unwrap();
        assert_eq!(paused, None, "{what}");
        assert_eq!((outcome.end, outcome.last.queued), (End::Finished, 0), "{what}");
        let progress = std::fs::read_to_string(root.join("logs/progress-statistics.log")).unwrap();
        assert!(!progress.contains("no host can be reached"), "{what}: {progress}");
        let text = std::fs::read_to_string(root.join("logs/crawl.log")).unwrap();
        let of = |url: &str| {
            let lines = text.lines().map(|line| CrawlLine::parse(line).unwrap());
            lines.filter(|line| line.url == url).map(|line| line.status.0).collect::<Vec<_>>()
        };
        for n in 0..hosts {
            assert_eq!(of(&format!("https://p{n}.test/n/")), [-2], "{what}: {text}");
            for page in 0..PAGES {
                assert_eq!(of(&format!("http://p{n}.test/n/{page}")), [200], "{what}: {text}");
            }
        }
    }
    serving.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn three_hosts_that_go_away_pause_nothing_while_another_server_takes_connections() {
    let pages = |asked: Asked| async move {
        Some(match asked.url.split_once('/') {
            Some((host, "")) => Reply::links("front", (0..PAGES).map(|page| format!("http://{host}/{page}"))),
            _ => Reply::links(&asked.url, Vec::new()),
        })
    };
    let going = Site::serve(pages).await;
    let released = Arc::new(watch::Sender::new(false));
    let release = Arc::clone(&released);
    // It has responded, and responds to nothing more before it is released.
    let staying = Site::serve(move |asked: Asked| {
        let mut released = release.subscribe();
        async move {
            if asked.url == "stays.test/held" {
                released.wait_for(|released| *released).await.ok()?;
            }
            Some(Reply::links("front", vec!["http://stays.test/held".to_owned()]))
        }
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let mut template = template_to(staying.addr());
    template.robots.policy = Policy::Ignore;
    template.frontier.pace = Pace::fixed(Duration::from_millis(20));
    template.frontier.park_after = 2;
    template.frontier.park_for = Period::from_millis(20);
    template.frontier.max_parks = 2;
    template.fetch.resolve =
        (0..3).map(|n| format!("h{n}.test:80:{}:{}", going.addr().ip(), going.addr().port())).collect();
    let mut seeds: Vec<_> = (0..3).map(|n| format!("http://h{n}.test/")).collect();
    seeds.push("http://stays.test/".to_owned());
    let root = folder.path().join("crawl");
    let crawl = Crawl::start(job(template, seeds), &root, Arc::new(NoOracle), Clock::system()).unwrap();
    let handle = crawl.handle();
    let running = tokio::spawn(crawl.run());
    until("every host to respond", async || {
        staying.times("stays.test/held") == 1 && (0..3).all(|n| going.times(&format!("h{n}.test/0")) == 1)
    })
    .await;
    drop(going);
    until("the hosts that went away to be left", async || {
        let seen = handle.snapshot();
        assert_ne!(seen.phase, Phase::Waiting, "{:?}", seen.waits_for);
        seen.retired_queues == 3
    })
    .await;
    released.send_replace(true);
    assert_eq!(running.await.unwrap().unwrap().end, End::Unreachable);
}
