//! Name servers that fail, or that change their answers.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use grange_base::{Clock, Period};
use grange_crawl::FetchStatus;
use grange_crawl::engine::{Crawl, End};
use grange_crawl::fetch::{AddressChoice, DnsSettings, Fetcher, Request, Settings};
use grange_crawl::record::NoOracle;
use grange_testkit::until;
use tokio::net::UdpSocket;

use super::site::{Asked, Reply, Site};
use super::{captured, job, template_to};

/// Answers each question with what `address` says for its number; none is a failure. Nothing may be kept.
async fn name_server(
    address: impl Fn(usize) -> Option<Ipv4Addr> + Send + 'static,
) -> (SocketAddr, Arc<AtomicUsize>) {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let server = socket.local_addr().unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    tokio::spawn(async move {
        let mut packet = [0; 1500];
        while let Ok((len, from)) = socket.recv_from(&mut packet).await {
            let found = address(count.fetch_add(1, Ordering::SeqCst));
            let name_len = packet[12..len].iter().position(|byte| *byte == 0).unwrap();
            let question = &packet[12..12 + name_len + 5];
            let (code, answers) = if found.is_some() { (0, 1) } else { (2, 0) };
            let mut reply = packet[..2].to_vec();
            reply.extend_from_slice(&[0x81, 0x80 | code, 0, 1, 0, answers, 0, 0, 0, 0]);
            reply.extend_from_slice(question);
            if let Some(ip) = found {
                // The name of the question, A, IN, no time to live.
                reply.extend_from_slice(&[0xC0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
                reply.extend_from_slice(&ip.octets());
            }
            socket.send_to(&reply, from).await.unwrap();
        }
    });
    (server, asked)
}

fn asking(server: SocketAddr, settings: Settings) -> Settings {
    let dns = DnsSettings {
        servers: vec![server.to_string()],
        system_fallback: false,
        timeout: Period::from_secs(5),
        retries: 0,
        ..DnsSettings::default()
    };
    Settings { all_hosts_to: String::new(), addresses: AddressChoice::Ipv4Only, dns, ..settings }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_url_that_is_tried_again_asks_the_name_servers_again() {
    let site = Site::serve(|asked: Asked| async move { Some(Reply::links(&asked.url, Vec::new())) }).await;
    let (server, asked) = name_server(|n| (n > 0).then_some(Ipv4Addr::LOCALHOST)).await;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("crawl");
    let mut template = template_to(site.addr());
    template.fetch = asking(server, template.fetch);
    template.fetch.allow_networks = vec!["127.0.0.0/8".parse().unwrap()];
    // A failure is remembered for longer than the crawl lasts.
    template.fetch.dns.failure_ttl = Period::from_secs(24 * 3600);
    template.robots.cache = grange_crawl::robots::Settings::default();
    let url = format!("http://late.test:{}/", site.addr().port());
    let (clock, hand) = Clock::test("2026-11-16T01:02:03Z".parse().unwrap());
    let crawl = Crawl::start(job(template, vec![url.clone()]), &root, Arc::new(NoOracle), clock).unwrap();
    let running = tokio::spawn(crawl.run());
    until("the crawl to end", async || {
        hand.advance(Duration::from_secs(10));
        running.is_finished()
    })
    .await;
    let outcome = running.await.unwrap().unwrap();
    assert_eq!((outcome.end, outcome.last.queued), (End::Finished, 0));
    assert!(captured(&root).contains_key(&url));
    assert!(asked.load(Ordering::SeqCst) > 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_changes_to_a_private_address_after_the_check_is_not_connected_to() {
    let site = Site::serve(|asked: Asked| async move { Some(Reply::page(asked.url)) }).await;
    let port = site.addr().port();
    // A public address first.
    let (server, asked) =
        name_server(|n| Some(if n == 0 { Ipv4Addr::new(8, 8, 8, 8) } else { Ipv4Addr::LOCALHOST })).await;
    let scratch = tempfile::tempdir().unwrap();
    let (clock, hand) = Clock::test("2026-11-16T01:02:03Z".parse().unwrap());
    let settings = asking(server, template_to(site.addr()).fetch);
    let fetcher =
        Fetcher::new(&Settings { allow_networks: Vec::new(), ..settings }, scratch.path(), clock).unwrap();
    let url: url::Url = format!("http://rebound.test:{port}/secret").parse().unwrap();
    assert_eq!(fetcher.refusal(&url).await, None);
    // What was found is forgotten between the check and the connection.
    until("the name to be asked for again", async || {
        hand.advance(Duration::from_secs(24 * 3600));
        fetcher.resolve("rebound.test").await.addresses == Ok(vec![Ipv4Addr::LOCALHOST.into()])
    })
    .await;
    let fetched = fetcher.fetch(&Request::get(url.clone())).await.unwrap();
    assert_eq!(fetched.status, FetchStatus::BLOCKED_BY_ADDRESS);
    assert!(fetcher.refusal(&url).await.is_some());
    assert_eq!((site.total(), asked.load(Ordering::SeqCst)), (0, 2));
}
