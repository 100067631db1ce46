//! Memory stays bounded whatever servers send. Alone in its process, so that it can measure itself.
#![cfg(target_os = "linux")]

mod fetch_server;

use std::io::{self, Write as _};

use fetch_server::{Act, Client, Server, send, settings};
use grange_base::Size;
use grange_crawl::fetch::{ProblemKind, Settings};

/// The most memory this process has held, in kB.
fn peak_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn no_server_fills_the_memory() {
    const LONG: u64 = 60 << 20;
    let head = "HTTP/1.1 200 OK\r\n";
    let client = Client::new(&Settings { max_bytes: Size(LONG), ..settings() });
    // The first fetch brings in what every fetch needs.
    let server = Server::start(vec![send("HTTP/1.1 204 No\r\n\r\n")]).await;
    client.get(server.url("/")).await;
    let before = peak_kb();

    for (name, start, expected) in [
        ("a body without end", format!("{head}\r\n"), ProblemKind::LengthTruncated),
        (
            "a body longer than the disk",
            format!("{head}Content-Length: {}\r\n\r\n", u64::MAX),
            ProblemKind::LengthTruncated,
        ),
        (
            "a chunk without end",
            format!("{head}Transfer-Encoding: chunked\r\n\r\nfffffffffff\r\n"),
            ProblemKind::LengthTruncated,
        ),
        (
            "a chunk size without end",
            format!("{head}Transfer-Encoding: chunked\r\n\r\n1;"),
            ProblemKind::LengthTruncated,
        ),
        ("a head without end", format!("{head}A: "), ProblemKind::HeadTruncated),
        ("no head at all", String::new(), ProblemKind::NoStatusLine),
    ] {
        let server = Server::start(vec![send(&start), Act::Flood]).await;
        let mut fetched = client.get(server.url("/")).await;
        assert!(fetched.has_problem(expected), "{name}: {:?}", fetched.problems);
        assert!(fetched.wire_length <= LONG);
        let length = io::copy(&mut fetched.content(u64::MAX).unwrap(), &mut io::sink()).unwrap();
        assert_eq!(length, fetched.payload_length, "{name}");
        let more = peak_kb() - before;
        assert!(more < 16 << 10, "{name}: {more} kB");
    }

    // 60 MB of nothing, packed.
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    for _ in 0..60 {
        packed.write_all(&vec![0; 1 << 20]).unwrap();
    }
    let packed = packed.finish().unwrap();
    let start = format!("{head}Content-Encoding: gzip\r\nContent-Length: {}\r\n\r\n", packed.len());
    let server = Server::start(vec![send(&start), Act::Send(packed)]).await;
    let mut fetched = client.get(server.url("/")).await;
    assert_eq!(io::copy(&mut fetched.content(u64::MAX).unwrap(), &mut io::sink()).unwrap(), 60 << 20);
    assert_eq!(fetched.content_bytes(5000).unwrap().len(), 5000);
    let more = peak_kb() - before;
    assert!(more < 16 << 10, "a bomb: {more} kB");
}
