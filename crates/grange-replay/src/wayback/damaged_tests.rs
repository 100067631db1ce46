//! Records that break off, and index lines that point at other records: no part looks like a whole, and no record is shown
//! under a URL that is not its own.

use std::net::SocketAddr;

use grange_base::Trigger;
use http_body_util::BodyExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::tests::{ask, site};
use crate::tests::{Bed, gzip, http, record};

const DATE: &str = "2020-01-01T00:00:00Z";
const TIME: &str = "20200101000000";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream";

/// Everything that a client receives before the connection ends.
async fn received(address: SocketAddr, path: &str) -> String {
    let mut client = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    client.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    // The connection may end in a reset; the bytes before it are there.
    let _ = client.read_to_end(&mut bytes).await;
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Whether an answer ends as HTTP says that a whole one does.
fn is_whole(answer: &str) -> bool {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
    let head = head.to_ascii_lowercase();
    match head.lines().find_map(|line| line.strip_prefix("content-length: ")) {
        Some(len) => len.parse() == Ok(body.len()),
        None => body.ends_with("0\r\n\r\n"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_that_breaks_off_is_sent_as_far_as_it_is_there_and_never_looks_whole() {
    // Nothing that a packer makes much shorter.
    let noise: Vec<_> = (0..4000_u32).map(|n| format!("{:08x}", n.wrapping_mul(2_654_435_761))).collect();
    let noise = noise.concat();
    let whole = http("http://e.org/member", DATE, OK, noise.as_bytes());
    let packed = gzip(&whole);
    let bed = Bed::new();
    bed.add("member.warc.gz", &packed[..packed.len() / 2]);
    let plain = http("http://e.org/plain", DATE, OK, b"0123456789");
    bed.add("plain.warc", &plain[..plain.len() - 8]);
    let arc = "filedesc://x.arc 0.0.0.0 20200101000000 text/plain 75\n1 0 Test\nURL IP-address Archive-date Content-type \
        Archive-length\n\nhttp://e.org/arc 1.2.3.4 20200101000000 application/octet-stream 500\n\
        HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n\r\n0123456789";
    bed.add("short.arc", arc.as_bytes());
    // The record claims more than there is, and HTTP itself says that everything came.
    let said = format!("{OK}\r\nContent-Length: 10");
    let said = http("http://e.org/said", DATE, &said, b"0123456789");
    bed.add("said.warc", &said[..said.len() - 4]);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = Trigger::new();
    let served = tokio::spawn(crate::serve(listener, site(&bed), stop.listener()));
    for (url, beginning, whole) in [
        ("member", &noise[..4000], false),
        ("plain", "012345", false),
        ("arc", "0123456789", false),
        ("said", "0123456789", true),
    ] {
        for modifier in ["id_", "oe_"] {
            let answer = received(address, &format!("/local/{TIME}{modifier}/http://e.org/{url}")).await;
            let shown = answer.get(..300).unwrap_or(&answer);
            assert!(answer.starts_with("HTTP/1.1 200"), "{modifier} {url}: {shown:?}");
            assert!(answer.contains(beginning), "{modifier} {url}: {shown:?}");
            assert_eq!(is_whole(&answer), whole, "{modifier} {url}: {shown:?}");
        }
    }
    stop.pull();
    served.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_line_that_points_at_another_record_shows_nothing_of_it() {
    let good = gzip(&http("http://open.example/good", DATE, OK, b"good"));
    let other = gzip(&http("http://secret.example/", DATE, OK, b"secret"));
    let request = gzip(&record(
        "request",
        "http://open.example/evil",
        DATE,
        "Content-Type: application/http; msgtype=request\r\n",
        b"GET /evil HTTP/1.1\r\nHost: open.example\r\n\r\n",
    ));
    let spelled = gzip(&http("http://www.open.example/Odd%20One/", DATE, OK, b"spelled"));
    let bed = Bed::new();
    bed.add("a.warc.gz", &[good.clone(), other.clone(), request.clone(), spelled].concat());
    let line = |url: &str, second: u8, offset: usize, length: usize| {
        format!(
            "{} 202001010000{second:02} {{\"url\": \"{url}\", \"mime\": \"text/plain\", \"status\": \"200\", \
             \"filename\": \"a.warc.gz\", \"offset\": \"{offset}\", \"length\": \"{length}\"}}\n",
            grange_index::key(url)
        )
    };
    let (second, third) = (good.len(), good.len() + other.len());
    let lines = [
        line("http://open.example/evil", 1, second, other.len()),
        line("http://open.example/evil", 2, third, request.len()),
        line("http://open.example/other", 1, second, 9),
        line("https://open.example/odd one", 1, third + request.len(), 9),
    ];
    bed.collection.index.load(lines.concat().as_bytes(), None).unwrap();
    let site = site(&bed);
    for (url, status, body) in [
        ("http://open.example/good", 200, Some("good")),
        ("http://open.example/evil", 503, None),
        ("http://open.example/other", 503, None),
        ("https://open.example/odd%20one", 200, Some("spelled")),
    ] {
        for modifier in ["id_", "mp_", "oe_"] {
            let mut path = format!("/local/{TIME}{modifier}/{url}");
            let mut response = ask(&site, "GET", &path, &[]).await;
            if response.status().is_redirection() {
                path = response.headers()["location"].to_str().unwrap().to_owned();
                response = ask(&site, "GET", &path, &[]).await;
            }
            let got = response.status().as_u16();
            let text = response.into_body().collect().await.unwrap().to_bytes();
            let text = String::from_utf8_lossy(&text);
            assert_eq!(got, status, "{path}: {text}");
            assert!(body.is_none_or(|body| text.contains(body)), "{path}: {text}");
            assert!(!text.contains("secret") && !text.contains("GET /evil"), "{path}: {text}");
        }
    }
}

/// Unpacks an export.
async fn exported(site: &axum::Router, query: &str) -> String {
    let response = ask(site, "GET", &format!("/local/export/warc?{query}"), &[]).await;
    assert_eq!(response.status(), 200, "{query}");
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    let mut plain = String::new();
    std::io::Read::read_to_string(&mut flate2::read::MultiGzDecoder::new(&bytes[..]), &mut plain).unwrap();
    plain
}

#[tokio::test]
async fn exports_have_records_with_odd_urls_and_name_what_they_lack() {
    let odd = ["http://open.example/a b\"'<x>", "file:///example with spaces.png"];
    let bed = Bed::new();
    let records: Vec<_> = odd.iter().map(|url| http(url, DATE, OK, b"odd")).collect();
    bed.add_gz("odd.warc.gz", &records);
    bed.add_gz("gone.warc.gz", &[http("http://gone.example/", DATE, OK, b"gone")]);
    bed.add_gz("kept.warc.gz", &[http("http://gone.example/kept", DATE, OK, b"kept")]);
    std::fs::write(bed.folder.path().join("gone.warc.gz"), b"other bytes").unwrap();
    let site = site(&bed);
    for query in ["url=http://open.example/a%20b%22%27%3Cx%3E", "url=file:///example%20with%20spaces.png"] {
        let plain = exported(&site, query).await;
        assert!(plain.contains("WARC-Type: response") && plain.contains("odd"), "{query}: {plain}");
        assert!(!plain.contains("missing"), "{query}: {plain}");
    }
    let plain = exported(&site, "url=gone.example&matchType=host").await;
    assert!(plain.contains("kept") && plain.contains("WARC-Type: metadata"), "{plain}");
    let line = "missing: 20200101000000 http://gone.example/ (gone.warc.gz at byte 0): ";
    assert!(plain.contains("missing-count: 1\r\n") && plain.contains(line), "{plain}");
}

#[tokio::test]
async fn an_exported_revisit_does_not_name_a_hidden_original() {
    use grange_index::access::{Decision, Rule, RuleSet};
    let bed = Bed::new();
    bed.add_gz("a.warc.gz", &[http("http://hidden.example/", DATE, OK, b"same")]);
    let refers =
        "WARC-Refers-To-Target-URI: http://hidden.example/\r\nWARC-Refers-To-Date: 2020-01-01T00:00:00Z\r\n";
    let later = "2020-01-02T00:00:00Z";
    bed.add_gz("b.warc.gz", &[crate::tests::revisit("http://open.example/", later, OK, b"same", refers)]);
    let export = || async {
        let site = site(&bed);
        exported(&site, "url=http://open.example/").await
    };
    let plain = export().await;
    assert!(plain.contains("WARC-Refers-To-Target-URI: http://hidden.example/"), "{plain}");
    let rule = Rule::new("example,hidden)", Decision::Block { message: "no".to_owned() });
    bed.collection.set_rules(RuleSet::from(vec![rule]));
    let plain = export().await;
    assert!(plain.contains("WARC-Type: revisit") && plain.contains("WARC-Profile:"), "{plain}");
    assert!(!plain.contains("hidden.example") && !plain.to_lowercase().contains("refers-to"), "{plain}");
}
