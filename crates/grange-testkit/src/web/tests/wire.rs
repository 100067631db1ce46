//! What is on the wire: conditions, gates, broken answers, endless places, and the log of it all.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::client::{exchange, get, request, take_apart};
use crate::web::{Ending, Options, PASSWORD, Profile, RawServer, USER, Web, WebServer};

async fn serve(profile: Profile) -> WebServer {
    let web = Web::new(Options { hosts: 2, pages: 5, profile, ..Options::default() });
    web.serve("127.0.0.1:0").await.unwrap()
}

#[tokio::test]
async fn a_condition_that_holds_gets_304_without_a_body() {
    let server = serve(Profile::Deterministic).await;
    for url in
        ["http://h0000.test/p/1.html", "http://h0000.test/i/0.png", "http://h0000.test/answers/dated.html"]
    {
        let first = get(server.addr(), url, "").await;
        let (tag, date) = (first.header("etag").to_owned(), first.header("last-modified").to_owned());
        assert!(first.status == 200 && !tag.is_empty() && !date.is_empty(), "{url}");
        for (headers, status) in [
            (format!("If-None-Match: {tag}\r\n"), 304),
            (format!("If-None-Match: \"other\", W/{tag}\r\n"), 304),
            (format!("If-Modified-Since: {date}\r\n"), 304),
            ("If-None-Match: \"other\"\r\n".to_owned(), 200),
            // The tag decides when both are there.
            (format!("If-None-Match: \"other\"\r\nIf-Modified-Since: {date}\r\n"), 200),
        ] {
            let got = get(server.addr(), url, &headers).await;
            assert_eq!((got.status, got.body.is_empty()), (status, status == 304), "{url} {headers}");
        }
    }
}

#[tokio::test]
async fn protected_areas_open_to_those_who_know_the_words() {
    let server = serve(Profile::Deterministic).await;
    let addr = server.addr();
    let basic = data_encoding::BASE64.encode(format!("{USER}:{PASSWORD}").as_bytes());
    assert_eq!(get(addr, "http://h0000.test/basic/", "").await.status, 401);
    assert_eq!(get(addr, "http://h0000.test/basic/", "Authorization: Basic eDp5\r\n").await.status, 401);
    assert_eq!(
        get(addr, "http://h0000.test/basic/", &format!("Authorization: Basic {basic}\r\n")).await.status,
        200
    );

    let enter = "http://h0000.test/login/enter";
    assert_eq!(request(addr, "POST", enter, "", "user=reader&password=no").await.status, 403);
    let welcome = request(addr, "POST", enter, "", &format!("user={USER}&password={PASSWORD}&go=1")).await;
    assert_eq!((welcome.status, welcome.header("location")), (303, "/login/in/home.html"));
    let cookie = welcome.header("set-cookie").split(';').next().unwrap().to_owned();
    let inside = "http://h0000.test/login/in/home.html";
    assert_eq!(get(addr, inside, "").await.status, 302);
    assert_eq!(get(addr, inside, &format!("Cookie: a=b; {cookie}\r\n")).await.status, 200);
}

#[tokio::test]
async fn a_busy_page_says_when_to_come_again() {
    let server = serve(Profile::Deterministic).await;
    for (url, status) in [("http://h0001.test/busy/429.html", 429), ("http://h0001.test/busy/503.html", 503)]
    {
        let first = get(server.addr(), url, "").await;
        assert_eq!((first.status, first.header("retry-after")), (status, "1"));
        assert_eq!(get(server.addr(), url, "").await.status, 200);
    }
}

#[tokio::test]
async fn broken_answers_are_broken_as_promised() {
    let server = serve(Profile::Wild).await;
    let broken = server.web().broken(0);
    assert!(broken.len() > 20);
    for (url, bytes, ending) in broken {
        let path = url.strip_prefix("http://h0000.test").unwrap();
        let mut stream = TcpStream::connect(server.addr()).await.unwrap();
        stream
            .write_all(format!("GET {path} HTTP/1.1\r\nHost: h0000.test\r\n\r\n").as_bytes())
            .await
            .unwrap();
        let mut got = vec![0; bytes.len()];
        match ending {
            Ending::Close => {
                got.clear();
                stream.read_to_end(&mut got).await.unwrap();
            }
            Ending::Silence => {
                stream.read_exact(&mut got).await.unwrap();
            }
            // The reset may overtake the bytes.
            Ending::Reset => {
                let mut all = Vec::new();
                let end = stream.read_to_end(&mut all).await;
                assert!(end.is_err(), "{url} ended in good order");
                continue;
            }
        }
        assert!(got == bytes, "{url}");
    }
}

#[tokio::test]
async fn traps_lead_on_to_pages_never_seen_before() {
    let server = serve(Profile::Wild).await;
    for entrance in crate::web::traps::ENTRANCES {
        let mut url = format!("http://h0000.test{entrance}");
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..20 {
            let got = get(server.addr(), &url, "").await;
            assert_eq!(got.status, 200, "{url}");
            assert!(seen.insert(url.clone()), "{url} came again");
            let text = String::from_utf8(got.body).unwrap();
            let link =
                text.rsplit("href=\"").next().unwrap().split('"').next().unwrap().replace("&amp;", "&");
            url = if link.starts_with('/') {
                format!("http://h0000.test{link}")
            } else {
                format!("{url}{link}")
            };
        }
    }
    let tame = serve(Profile::Deterministic).await;
    assert_eq!(get(tame.addr(), "http://h0000.test/calendar/2026/11/", "").await.status, 404);
}

#[tokio::test]
async fn a_connection_serves_many_requests_and_the_log_tells_them() {
    let server = serve(Profile::Plain).await;
    let one = "GET /p/1.html HTTP/1.1\r\nHost: h0000.test\r\n\r\n";
    let last = "GET http://h0000.test/p/2.html HTTP/1.1\r\nHost: proxy\r\nConnection: close\r\n\r\n";
    let bytes = exchange(server.addr(), &format!("{one}{one}{last}")).await;
    let answers = bytes.windows(12).filter(|window| window == b"HTTP/1.1 200").count();
    assert_eq!(answers, 3);
    let requests = server.requests();
    assert_eq!(requests["http://h0000.test/p/1.html"], 2);
    assert_eq!(requests["http://h0000.test/p/2.html"], 1);
    assert_eq!((server.total(), server.concurrent_peak("h0000.test")), (3, 1));
    assert_eq!((server.moments("h0000.test").len(), server.intervals("h0000.test").len()), (3, 2));
}

#[tokio::test]
async fn requests_at_the_same_time_are_counted_as_such() {
    let server = serve(Profile::Plain).await;
    let silent = "http://h0000.test/sized?bytes=1&wait_ms=600000";
    let waiting: Vec<_> = (0..3)
        .map(|_| {
            let addr = server.addr();
            tokio::spawn(async move { get(addr, silent, "").await })
        })
        .collect();
    crate::until("three requests in flight", || async { server.concurrent_peak("h0000.test") == 3 }).await;
    waiting.iter().for_each(tokio::task::JoinHandle::abort);
    assert_eq!(server.intervals("h0001.test"), Vec::<Duration>::new());
    server.stop().await;
}

#[tokio::test]
async fn sizes_and_paces_follow_the_address() {
    let server = serve(Profile::Plain).await;
    for query in [
        "bytes=300000",
        "bytes=300000&chunked=1",
        "bytes=300000&close=1",
        "bytes=0",
        "bytes=40&drip_ms=1&piece=7",
    ] {
        let url = format!("http://h0001.test/sized?{query}");
        let wanted: usize = query[6..].split('&').next().unwrap().parse().unwrap();
        assert_eq!(get(server.addr(), &url, "").await.body.len(), wanted, "{query}");
    }
}

#[tokio::test]
async fn nonsense_is_refused_and_a_wrong_name_is_told() {
    let server = serve(Profile::Plain).await;
    let status = |bytes: Vec<u8>| take_apart(&bytes).unwrap().status;
    assert_eq!(status(exchange(server.addr(), "nonsense\r\n\r\n").await), 400);
    let long = format!("GET / HTTP/1.1\r\nHost: h0000.test\r\nX: {}", "x".repeat(70_000));
    assert_eq!(status(exchange(server.addr(), &long).await), 431);
    assert_eq!(get(server.addr(), "http://elsewhere.example/", "").await.status, 421);
    let index = get(server.addr(), "http://127.0.0.1/", "").await;
    assert!(String::from_utf8(index.body).unwrap().contains("http://h0001.test/"));
}

#[tokio::test]
async fn a_raw_server_says_what_it_was_told() {
    let server = RawServer::replying("SSH-2.0-nothing\r\n").await.unwrap();
    for _ in 0..2 {
        assert_eq!(exchange(server.addr(), "GET / HTTP/1.1\r\n\r\n").await, b"SSH-2.0-nothing\r\n");
    }
    assert_eq!(server.connections(), 2);
}
