//! Names looked up at a name server that answers from a table.

mod fetch_server;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fetch_server::settings;
use grange_base::{Clock, Period};
use grange_crawl::FetchStatus;
use grange_crawl::fetch::{AddressChoice, DnsFailure, DnsSettings, DnsSource, Fetcher, Settings};
use tempfile::TempDir;
use tokio::net::UdpSocket;

const A: u16 = 1;
const CNAME: u16 = 5;
const AAAA: u16 = 28;

/// Answers questions; counts those for addresses.
async fn name_server() -> (SocketAddr, Arc<AtomicUsize>) {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    tokio::spawn(async move {
        let mut packet = [0; 1500];
        while let Ok((len, from)) = socket.recv_from(&mut packet).await {
            count.fetch_add(1, Ordering::SeqCst);
            if let Some(reply) = answer(&packet[..len]) {
                socket.send_to(&reply, from).await.unwrap();
            }
        }
    });
    (address, asked)
}

fn encode(name: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for label in name.split('.') {
        out.push(label.len() as u8);
        out.extend_from_slice(label.as_bytes());
    }
    out.push(0);
    out
}

/// None where the server stays silent.
fn answer(packet: &[u8]) -> Option<Vec<u8>> {
    let mut at = 12;
    let mut labels = Vec::new();
    while packet[at] != 0 {
        let len = usize::from(packet[at]);
        labels.push(String::from_utf8_lossy(&packet[at + 1..=at + len]).to_lowercase());
        at += len + 1;
    }
    let question = &packet[12..at + 5];
    let kind = u16::from_be_bytes([packet[at + 1], packet[at + 2]]);
    let name = labels.join(".");
    let record = |name: &str, kind: u16, ttl: u32, data: &[u8]| {
        let mut out = encode(name);
        out.extend_from_slice(&kind.to_be_bytes());
        out.extend_from_slice(&1_u16.to_be_bytes());
        out.extend_from_slice(&ttl.to_be_bytes());
        out.extend_from_slice(&(data.len() as u16).to_be_bytes());
        out.extend_from_slice(data);
        out
    };
    let six = "2001:db8::1".parse::<std::net::Ipv6Addr>().unwrap().octets();
    let (code, records): (u8, Vec<Vec<u8>>) = match (name.as_str(), kind) {
        ("www.site.example", A) => (
            0,
            vec![
                record("www.site.example", CNAME, 300, &encode("a.example")),
                record("a.example", A, 60, &[192, 0, 2, 1]),
                record("a.example", A, 60, &[192, 0, 2, 2]),
            ],
        ),
        ("long.example", A) => (0, vec![record("long.example", A, 40_000, &[192, 0, 2, 3])]),
        ("both.example", A) => (0, vec![record("both.example", A, 60, &[192, 0, 2, 4])]),
        ("both.example" | "six.example", AAAA) => (0, vec![record(&name, AAAA, 60, &six)]),
        ("both.example" | "six.example", _) => (0, vec![]),
        (_, A) if name.ends_with(".hyphens.example") => (0, vec![record(&name, A, 60, &[192, 0, 2, 9])]),
        ("silent.example", _) => return None,
        ("broken.example", _) => (2, vec![]),
        _ => (3, vec![]),
    };
    let mut reply = packet[..2].to_vec();
    reply.extend_from_slice(&[0x81, 0x80 | code, 0, 1, 0, records.len() as u8, 0, 0, 0, 0]);
    reply.extend_from_slice(question);
    reply.extend(records.into_iter().flatten());
    Some(reply)
}

fn with(server: SocketAddr) -> Settings {
    Settings {
        dns: DnsSettings {
            servers: vec![server.to_string()],
            system_fallback: false,
            timeout: Period::from_millis(500),
            retries: 0,
            ..DnsSettings::default()
        },
        ..settings()
    }
}

#[tokio::test]
async fn answers_are_kept_and_written_as_heritrix_does() {
    let (server, asked) = name_server().await;
    let scratch = TempDir::new().unwrap();
    let (clock, hand) = Clock::test("2026-11-16T01:02:03Z".parse().unwrap());
    let fetcher = Fetcher::new(&with(server), scratch.path(), clock).unwrap();
    let answer = fetcher.resolve("www.site.example").await;
    assert_eq!((answer.status(), answer.source), (FetchStatus::DNS_OK, DnsSource::Servers));
    let ips = [1, 2].map(|n| Ipv4Addr::new(192, 0, 2, n).into());
    assert_eq!(answer.addresses.as_deref(), Ok(&ips[..]));
    assert_eq!(
        answer.text(),
        "20261116010203\n\
        www.site.example.\t300\tIN\tCNAME\ta.example.\n\
        a.example.\t\t60\tIN\tA\t192.0.2.1\n\
        a.example.\t\t60\tIN\tA\t192.0.2.2\n"
    );
    // Its 60 seconds are stretched to six hours.
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    hand.advance(Duration::from_secs(6 * 3600 - 1));
    fetcher.resolve("www.site.example").await;
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    hand.advance(Duration::from_secs(2));
    assert_ne!(fetcher.resolve("www.site.example").await.asked, answer.asked);
    assert_eq!(asked.load(Ordering::SeqCst), 2);
    // A longer time to live is believed.
    fetcher.resolve("long.example").await;
    hand.advance(Duration::from_secs(39_000));
    fetcher.resolve("long.example").await;
    assert_eq!(asked.load(Ordering::SeqCst), 3);
    hand.advance(Duration::from_secs(1001));
    fetcher.resolve("long.example").await;
    assert_eq!(asked.load(Ordering::SeqCst), 4);
}

#[tokio::test]
async fn failures_are_told_apart_and_soon_forgotten() {
    let (server, asked) = name_server().await;
    let scratch = TempDir::new().unwrap();
    let (clock, hand) = Clock::test("2026-11-16T01:02:03Z".parse().unwrap());
    let fetcher = Fetcher::new(&with(server), scratch.path(), clock).unwrap();
    for (name, missing) in [("none.example", true), ("silent.example", false), ("broken.example", false)] {
        let answer = fetcher.resolve(name).await;
        assert_eq!(answer.status(), FetchStatus::DNS_FAILED);
        assert_eq!(answer.addresses == Err(DnsFailure::NoSuchName), missing, "{name}: {answer:?}");
        assert_eq!(answer.text(), "20261116010203\n");
    }
    let before = asked.load(Ordering::SeqCst);
    fetcher.resolve("none.example").await;
    assert_eq!(asked.load(Ordering::SeqCst), before);
    hand.advance(Duration::from_secs(31));
    fetcher.resolve("none.example").await;
    assert!(asked.load(Ordering::SeqCst) > before);
}

#[tokio::test]
async fn a_retry_asks_the_name_servers_whatever_is_remembered() {
    let (server, asked) = name_server().await;
    let scratch = TempDir::new().unwrap();
    let (clock, hand) = Clock::test("2026-11-16T01:02:03Z".parse().unwrap());
    let mut settings = with(server);
    settings.dns.failure_ttl = Period::from_secs(24 * 3600);
    let fetcher = Fetcher::new(&settings, scratch.path(), clock).unwrap();
    let questions = |before: usize| asked.load(Ordering::SeqCst) - before;
    for name in ["none.example", "broken.example"] {
        let before = questions(0);
        fetcher.resolve(name).await;
        let each = questions(before);
        for retry in 1..=3 {
            hand.advance(Duration::from_secs(60));
            fetcher.forget_failure(name);
            // Ten URLs of the host are tried again together.
            for _ in 0..10 {
                fetcher.resolve(name).await;
                fetcher.forget_failure(name);
            }
            assert_eq!(questions(before), each * (retry + 1), "{name}");
        }
    }
    // What was found stays.
    let before = questions(0);
    fetcher.resolve("long.example").await;
    hand.advance(Duration::from_secs(60));
    fetcher.forget_failure("long.example");
    fetcher.resolve("long.example").await;
    assert_eq!(questions(before), 1);
}

#[tokio::test]
async fn labels_may_begin_and_end_with_a_hyphen() {
    let (server, _) = name_server().await;
    let scratch = TempDir::new().unwrap();
    let fetcher = Fetcher::new(&with(server), scratch.path(), Clock::system()).unwrap();
    for name in ["-a.hyphens.example", "a-.hyphens.example", "-.hyphens.example", "a_b.hyphens.example"] {
        let answer = fetcher.resolve(name).await;
        assert_eq!(answer.addresses, Ok(vec![Ipv4Addr::new(192, 0, 2, 9).into()]), "{name}: {answer:?}");
    }
    // What cannot be a name is not asked for.
    let long = format!("{}.example", "a".repeat(64));
    assert!(
        matches!(&fetcher.resolve(&long).await.addresses, Err(DnsFailure::NoAnswer(why)) if why.contains("not a name"))
    );
}

#[tokio::test]
async fn the_wanted_kind_of_address_is_asked_for() {
    use AddressChoice::{Ipv4First, Ipv4Only, Ipv6First, Ipv6Only};
    let (server, _) = name_server().await;
    let scratch = TempDir::new().unwrap();
    for (name, choice, expected) in [
        ("both.example", Ipv4First, Some("192.0.2.4")),
        ("both.example", Ipv6First, Some("2001:db8::1")),
        ("six.example", Ipv4First, Some("2001:db8::1")),
        ("six.example", Ipv4Only, None),
        ("both.example", Ipv6Only, Some("2001:db8::1")),
    ] {
        let settings = Settings { addresses: choice, ..with(server) };
        let fetcher = Fetcher::new(&settings, scratch.path(), Clock::system()).unwrap();
        let answer = fetcher.resolve(name).await;
        let first = answer.addresses.clone().ok().map(|ips| ips[0].to_string());
        assert_eq!(first.as_deref(), expected, "{name} {choice:?}");
    }
}

#[tokio::test]
async fn names_are_forgotten_when_there_are_too_many() {
    let (server, asked) = name_server().await;
    let scratch = TempDir::new().unwrap();
    let mut settings = with(server);
    settings.dns.cache_names = 16;
    let fetcher = Fetcher::new(&settings, scratch.path(), Clock::system()).unwrap();
    for round in 1..=2 {
        for n in 0..40 {
            fetcher.resolve(&format!("n{n}.none.example")).await;
        }
        assert!(asked.load(Ordering::SeqCst) >= 40 * round, "they do not all fit");
    }
}

#[tokio::test]
async fn the_machine_is_asked_last() {
    let (server, _) = name_server().await;
    let scratch = TempDir::new().unwrap();
    let mut settings = with(server);
    settings.dns.system_fallback = true;
    let fetcher = Fetcher::new(&settings, scratch.path(), Clock::system()).unwrap();
    let answer = fetcher.resolve("localhost").await;
    assert_eq!((answer.status(), answer.source), (FetchStatus(1001), DnsSource::System), "{answer:?}");
    assert_eq!(answer.addresses, Ok(vec![Ipv4Addr::LOCALHOST.into()]));
}
