//! What is sent of a capture: in which encoding, which part of it, with which status, read in which charset.

use axum::Router;
use http_body_util::BodyExt as _;

use super::tests::{ask, site};
use crate::tests::{Bed, gzip, http};

const DATE: &str = "2020-01-01T00:00:00Z";
const TIME: &str = "20200101000000";

struct Sent {
    status: u16,
    body: Vec<u8>,
    headers: http::HeaderMap,
}

impl Sent {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

async fn send(site: &Router, modifier: &str, url: &str, headers: &[(&str, &str)]) -> Sent {
    let response = ask(site, "GET", &format!("/local/{TIME}{modifier}/{url}"), headers).await;
    let (parts, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes().to_vec();
    Sent { status: parts.status.as_u16(), body, headers: parts.headers }
}

fn brotli(plain: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    std::io::Write::write_all(&mut brotli::CompressorWriter::new(&mut out, 4096, 5, 20), plain).unwrap();
    out
}

/// URL, what the client takes, the encoding that is sent, the body.
type Sending<'a> = (&'a str, Option<&'a str>, Option<&'a str>, &'a [u8]);

#[tokio::test]
async fn bodies_are_sent_in_an_encoding_that_they_are_in_and_the_client_takes() {
    let png: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89";
    let font = b"wOF2, a font that is long enough to be packed. ".repeat(400);
    let (zipped, squeezed) = (gzip(&font), brotli(&font));
    let bed = Bed::new();
    let head = |kind: &str, encoding: &str| {
        format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Encoding: {encoding}")
    };
    bed.add_gz(
        "a.warc.gz",
        &[
            http("http://e.org/lie.png", DATE, &head("image/png", "gzip"), png),
            http("http://e.org/lie2.png", DATE, &head("image/png", "br"), png),
            http("http://e.org/semicolon", DATE, &head("text/plain", "br"), b";"),
            http("http://e.org/semicolon.js", DATE, &head("text/javascript", "br"), b";"),
            http("http://e.org/odd", DATE, &head("font/woff2", "sdch"), &font),
            http("http://e.org/none", DATE, &head("font/woff2", "utf-8"), &font),
            http("http://e.org/gz", DATE, &head("font/woff2", "x-gzip"), &zipped),
            http("http://e.org/br", DATE, &head("font/woff2", "BR"), &squeezed),
            http("http://e.org/twice", DATE, &head("font/woff2", "br, gzip"), &gzip(&squeezed)),
        ],
    );
    let site = site(&bed);
    let cases: &[Sending<'_>] = &[
        ("lie.png", Some("gzip, br"), None, png),
        ("lie.png", None, None, png),
        ("lie2.png", Some("gzip, br"), None, png),
        ("semicolon", Some("gzip, br"), None, b";"),
        ("odd", Some("gzip, br"), None, &font),
        ("none", Some("gzip, br"), None, &font),
        ("gz", Some("gzip"), Some("x-gzip"), &zipped),
        ("gz", None, Some("x-gzip"), &zipped),
        ("gz", Some("identity"), None, &font),
        ("br", Some("gzip, deflate"), None, &font),
        ("br", Some("gzip, deflate, br"), Some("br"), &squeezed),
        ("br", Some("br;q=0"), None, &font),
        ("twice", Some("gzip, deflate, br"), None, &font),
    ];
    for (url, accept, encoding, body) in cases {
        for modifier in ["oe_", "id_"] {
            let headers: Vec<_> = accept.iter().map(|accept| ("accept-encoding", *accept)).collect();
            let sent = send(&site, modifier, &format!("http://e.org/{url}"), &headers).await;
            assert_eq!(sent.header("content-encoding"), *encoding, "{modifier} {url} {accept:?}");
            assert!(sent.body == *body, "{modifier} {url} {accept:?}: {} bytes", sent.body.len());
            let varies = sent.header("vary").is_some_and(|value| value == "accept-encoding");
            assert_eq!(varies, *url != "none", "{modifier} {url}");
        }
    }
    let script = send(&site, "js_", "http://e.org/semicolon.js", &[]).await;
    assert!(script.body.contains(&b';'), "{:?}", script.body);
}

#[tokio::test]
async fn captures_of_parts_answer_for_what_they_hold() {
    let bed = Bed::new();
    let part = |range: &str| {
        format!("HTTP/1.1 206 Partial\r\nContent-Type: video/mp4\r\nContent-Range: bytes {range}/30")
    };
    bed.add_gz(
        "a.warc.gz",
        &[
            http("http://e.org/film", DATE, &part("0-9"), b"0123456789"),
            http("http://e.org/film", "2020-01-01T00:00:07Z", &part("10-19"), b"abcdefghij"),
            http("http://e.org/all", DATE, &part("0-9").replace("/30", "/10"), b"0123456789"),
            http("http://e.org/page", DATE, &part("0-9").replace("video/mp4", "text/html"), b"<p>4567</p"),
            http(
                "http://e.org/whole",
                DATE,
                "HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\nETag: \"x\"",
                b"0123456789",
            ),
        ],
    );
    let site = site(&bed);
    for (url, range, if_range, status, told, body) in [
        ("film", "bytes=5-6", None, 206, Some("bytes 5-6/30"), "56"),
        ("film", "bytes=0-", None, 206, Some("bytes 0-9/30"), "0123456789"),
        // The next capture has it.
        ("film", "bytes=12-13", None, 206, Some("bytes 12-13/30"), "cd"),
        ("film", "bytes=20-", None, 416, Some("bytes */30"), ""),
        ("film", "Bytes=5-6", None, 206, Some("bytes 5-6/30"), "56"),
        ("whole", "bytes=5-6", None, 206, Some("bytes 5-6/10"), "56"),
        ("whole", "bytes=5-6", Some("\"x\""), 200, None, "0123456789"),
        ("whole", "bytes=50-", None, 416, Some("bytes */10"), ""),
    ] {
        let mut headers = vec![("range", range)];
        headers.extend(if_range.map(|validator| ("if-range", validator)));
        let sent = send(&site, "oe_", &format!("http://e.org/{url}"), &headers).await;
        assert_eq!((sent.status, sent.header("content-range")), (status, told), "{url} {range}");
        assert_eq!(String::from_utf8_lossy(&sent.body), body, "{url} {range}");
    }
    // A part never looks like the whole, except where it is all of it; as captured it is as it was sent.
    for (modifier, url, status, told) in [
        ("oe_", "film", 206, Some("bytes 0-9/30")),
        ("id_", "film", 206, Some("bytes 0-9/30")),
        ("mp_", "page", 206, Some("bytes 0-9/30")),
        ("oe_", "all", 200, None),
        ("id_", "all", 206, Some("bytes 0-9/10")),
        ("oe_", "whole", 200, None),
    ] {
        let all = send(&site, modifier, &format!("http://e.org/{url}"), &[]).await;
        assert_eq!((all.status, all.header("content-range")), (status, told), "{modifier} {url}");
    }
}

#[tokio::test]
async fn a_byte_order_mark_says_how_a_page_is_read() {
    let page = "<html><head></head><a href='/x'>\u{e9}</a></html>";
    let wide: Vec<u8> =
        [0xff, 0xfe].into_iter().chain(page.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    let bed = Bed::new();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=iso-8859-1";
    bed.add_gz(
        "a.warc.gz",
        &[
            http("http://e.org/wide", DATE, head, &wide),
            http("http://e.org/marked", DATE, head, &[b"\xef\xbb\xbf", page.as_bytes()].concat()),
        ],
    );
    let site = site(&bed);
    for url in ["http://e.org/wide", "http://e.org/marked"] {
        let sent = send(&site, "mp_", url, &[]).await;
        let text = if url.ends_with("wide") {
            let units = sent.body[2..].chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
            String::from_utf16(&units.collect::<Vec<_>>()).unwrap()
        } else {
            String::from_utf8(sent.body[3..].to_vec()).unwrap()
        };
        let link = format!("<a href=\"/local/{TIME}mp_/http://e.org/x\">\u{e9}</a>");
        assert!(text.contains(&link), "{url}: {text}");
    }
}

#[tokio::test]
async fn odd_answers_are_shown_as_they_were() {
    let bed = Bed::new();
    let long = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n{}X: y",
        "X-Filler: 0123456789\r\n".repeat(20_000)
    );
    bed.add_gz(
        "a.warc.gz",
        &[
            http("http://e.org/600", DATE, "HTTP/1.1 600 Odd\r\nContent-Type: text/plain", b"odd"),
            http("http://e.org/999", DATE, "HTTP/1.1 999 Odd\r\nContent-Type: text/plain", b"odd"),
            http(
                "http://e.org/empty",
                DATE,
                "HTTP/1.1 302 Found\r\nContent-Type: text/html\r\nLocation: ",
                b"<p>stay</p>",
            ),
            http("http://e.org/long", DATE, &long, b"the body"),
        ],
    );
    let site = site(&bed);
    for (url, status, body) in
        [("600", 600, "odd"), ("999", 999, "odd"), ("empty", 302, "stay"), ("long", 200, "the body")]
    {
        let sent = send(&site, "mp_", &format!("http://e.org/{url}"), &[]).await;
        let text = String::from_utf8_lossy(&sent.body);
        assert_eq!(sent.status, status, "{url}: {text}");
        assert!(text.contains(body) && !text.contains("X-Filler"), "{url}: {text}");
        assert_eq!(sent.header("location"), None, "{url}");
    }
}

/// Browsers write the query of a link in the charset of its page, and the crawler did the same.
#[tokio::test]
async fn a_query_in_the_charset_of_its_page_leads_to_its_capture() {
    let in_gbk = |text: &str| encoding_rs::GBK.encode(text).0.into_owned();
    let link = "../s?q=你好";
    let page = in_gbk(&format!("<meta charset=gbk><a href=\"{link}\">你好</a>"));
    let other = in_gbk("<base href='http://s.org/b/'><a href=\"/s?q=你好\">你好</a>");
    let bed = Bed::new();
    let html = "HTTP/1.1 200 OK\r\nContent-Type: text/html";
    bed.add_gz(
        "a.warc.gz",
        &[
            http("http://e.org/a/page", DATE, html, &page),
            http("http://e.org/a/other", DATE, &format!("{html}; charset=gb2312"), &other),
            http("http://e.org/s?q=%C4%E3%BA%C3", DATE, html, b"found in GBK"),
            http("http://e.org/s?q=%E4%BD%A0%E5%A5%BD", DATE, html, b"found in UTF-8"),
            http("http://s.org/s?q=%C4%E3%BA%C3", DATE, html, b"found elsewhere"),
        ],
    );
    let site = site(&bed);
    for (url, found) in [("http://e.org/a/page", "found in GBK"), ("http://e.org/a/other", "found elsewhere")]
    {
        let sent = send(&site, "mp_", url, &[]).await;
        let start = memchr::memmem::find(&sent.body, b"<a href=\"").unwrap() + b"<a href=\"".len();
        let len = memchr::memchr(b'"', &sent.body[start..]).unwrap();
        let href = &sent.body[start..start + len];
        // What a browser makes of it: ASCII as it is, the bytes of the page's charset escaped.
        let escaped: String = href
            .iter()
            .map(|byte| if byte.is_ascii() { char::from(*byte).to_string() } else { format!("%{byte:02X}") })
            .collect();
        let here = format!("http://h/local/{TIME}mp_/{url}");
        let asked = url::Url::parse(&here).unwrap().join(&escaped).unwrap();
        let path = &asked[url::Position::BeforePath..];
        assert!(path.ends_with("?q=%C4%E3%BA%C3"), "{path}");
        let response = ask(&site, "GET", path, &[]).await;
        assert_eq!(response.status(), 200, "{path}");
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert!(String::from_utf8_lossy(&body).contains(found), "{path}: {body:?}");
    }
}
