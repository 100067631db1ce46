//! Fetching from servers that behave.

mod fetch_server;

use std::io::{Read as _, Write as _};
use std::sync::Arc;

use fetch_server::{Act, Client, Server, send, settings, text};
use grange_base::{Period, Size};
use grange_crawl::FetchStatus;
use grange_crawl::fetch::{
    DnsSettings, DnsSource, FetchError, ProblemKind, Request, Settings, Validators, WantsBody,
};
use url::Url;
use warc::write::Truncated;
use warc::{Algorithm, Digest};

#[tokio::test]
async fn an_answer_is_kept_as_it_came() {
    let wire = "HTTP/1.1 200 Fine\r\nContent-Type: Text/HTML; charset=x\r\nETag: \"1\"\r\nContent-Length: 5\r\n\r\nhello";
    let server = Server::start(vec![send(wire), Act::Hang]).await;
    let client = Client::new(&settings());
    let mut fetched = client.get(server.url("/a?b")).await;
    assert_eq!(fetched.status, FetchStatus(200));
    assert_eq!(fetched.response.bytes(), Some(wire.as_bytes()));
    assert_eq!(fetched.head_len, wire.len() - 5);
    assert_eq!(fetched.block_digest, Digest::of(Algorithm::Sha1, wire.as_bytes()));
    assert_eq!(fetched.payload_digest, Digest::of(Algorithm::Sha1, b"hello"));
    assert_eq!((fetched.payload_length, fetched.wire_length), (5, wire.len() as u64));
    assert_eq!((fetched.ip, fetched.truncated), (Some(server.address.ip()), None));
    assert_eq!(fetched.annotations().count(), 0);
    assert_eq!(fetched.mime().as_deref(), Some("text/html"));
    assert_eq!(fetched.validators().unwrap().etag.as_deref(), Some("\"1\""));
    assert!(fetched.first_byte.unwrap() <= fetched.duration);
    assert_eq!(String::from_utf8_lossy(&fetched.request), server.requests()[0]);
    assert!(
        server.requests()[0]
            .contains("User-Agent: Mozilla/5.0 (compatible; grange/0.1; +http://operator.example/crawl)")
    );
    assert_eq!(text(&mut fetched), "hello");
}

#[tokio::test]
async fn one_connection_serves_many_requests() {
    let reply = || send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx");
    let chunked = || send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n");
    let server =
        Server::start(vec![reply(), Act::Next, chunked(), Act::Next, reply(), Act::Next, reply()]).await;
    let client = Client::new(&settings());
    for (n, path) in ["/1", "/2", "/3", "/4"].into_iter().enumerate() {
        let mut fetched = client.get(server.url(path)).await;
        assert_eq!((fetched.status.0, fetched.reused), (200, n > 0));
        assert_eq!(text(&mut fetched), "x");
    }
    assert_eq!((server.connections(), server.requests().len()), (1, 4));
}

#[tokio::test]
async fn a_connection_that_was_closed_meanwhile_is_replaced_in_silence() {
    let reply = || send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx");
    // The first connection takes a second request and closes without a word.
    let server =
        Server::with(move |n| if n == 0 { vec![reply(), Act::Next, Act::Close] } else { vec![reply()] })
            .await;
    let client = Client::new(&settings());
    for _ in 0..2 {
        let fetched = client.get(server.url("/")).await;
        assert_eq!((fetched.status.0, fetched.annotations().count()), (200, 0));
    }
    assert_eq!(server.connections(), 2);

    // A fresh connection that is closed is a failure.
    let server =
        Server::with(move |n| if n == 0 { vec![reply(), Act::Next, Act::Close] } else { vec![Act::Close] })
            .await;
    client.get(server.url("/")).await;
    let fetched = client.get(server.url("/")).await;
    assert_eq!((fetched.status, fetched.reused), (FetchStatus::CONNECT_LOST, false));
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn connections_are_not_used_again_when_they_should_not_be() {
    for (reply, keep_alive) in [
        ("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx", true),
        ("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", true),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxSURPLUS", true),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", false),
    ] {
        let server = Server::start(vec![send(reply), Act::Next, send(reply)]).await;
        let client = Client::new(&Settings { keep_alive, ..settings() });
        for _ in 0..2 {
            assert_eq!(client.get(server.url("/")).await.status.0, 200);
        }
        assert_eq!(server.connections(), 2, "{reply:?}");
        let word = if keep_alive { "Connection: keep-alive\r\n" } else { "Connection: close\r\n" };
        assert!(server.requests()[0].contains(word));
    }
}

#[tokio::test]
async fn long_answers_go_to_disk_and_come_back_whole() {
    let body: Vec<u8> = (0..3_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    let mut wire = head.clone();
    for chunk in body.chunks(70_000) {
        wire.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        wire.extend_from_slice(chunk);
        wire.extend_from_slice(b"\r\n");
    }
    wire.extend_from_slice(b"0\r\n\r\n");
    let server = Server::start(vec![Act::Send(wire.clone()), Act::Next, Act::Send(wire.clone())]).await;
    let client = Client::new(&Settings { memory_bytes: Size(128 << 10), ..settings() });
    let mut fetched = client.get(server.url("/")).await;
    assert!(fetched.response.bytes().is_none(), "it is not in memory");
    assert_eq!((fetched.wire_length, fetched.payload_length), (wire.len() as u64, 3_000_000));
    assert_eq!(fetched.block_digest, Digest::of(Algorithm::Sha1, &wire));
    assert_eq!(fetched.payload_digest, Digest::of(Algorithm::Sha1, &body));
    let mut back = Vec::new();
    for _ in 0..2 {
        back.clear();
        fetched.response.reader().unwrap().read_to_end(&mut back).unwrap();
        assert!(back == wire);
    }
    assert!(*fetched.content_bytes(u64::MAX).unwrap() == body);
    assert_eq!(fetched.content_bytes(1000).unwrap().len(), 1000);
    assert_eq!(std::fs::read_dir(client.scratch.path()).unwrap().count(), 0, "the file has no name");
    assert!(client.get(server.url("/")).await.reused);

    let gone = Client::new(&Settings { memory_bytes: Size(128 << 10), ..settings() });
    std::fs::remove_dir(gone.scratch.path()).unwrap();
    let error = gone.fetcher.fetch(&Request::get(server.url("/"))).await.unwrap_err();
    assert!(matches!(error, FetchError::Scratch { .. }), "{error}");
}

#[tokio::test]
async fn limits_cut_answers() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n";
    let server = Server::start(vec![send(head), Act::Send(vec![b'x'; 1_000_000]), Act::Hang]).await;
    let client = Client::new(&Settings { max_bytes: Size(1000), ..settings() });
    let fetched = client.get(server.url("/")).await;
    assert_eq!((fetched.wire_length, fetched.truncated), (1000, Some(Truncated::Length)));
    assert_eq!(fetched.annotations().collect::<Vec<_>>(), ["lenTrunc"]);

    let only_text = WantsBody(Arc::new(|head| head.mime() == Some(b"text/html")));
    let request = Request { wants_body: Some(only_text), ..Request::get(server.url("/")) };
    let fetched = Client::new(&settings()).fetcher.fetch(&request).await.unwrap();
    assert!(fetched.has_problem(ProblemKind::BodyNotWanted));
    assert!(fetched.wire_length < 200_000, "{}", fetched.wire_length);
}

#[tokio::test]
async fn a_full_disk_cuts_long_answers_and_marks_them() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n";
    let server = Server::with(move |n| match n {
        0 => vec![send(head), Act::Send(vec![b'x'; 3_000_000]), Act::Hang],
        _ => vec![send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nshort"), Act::Hang],
    })
    .await;
    let client = Client::new(&Settings {
        memory_bytes: Size(128 << 10),
        scratch_min_free: Size(u64::MAX),
        ..settings()
    });
    let fetched = client.get(server.url("/")).await;
    assert_eq!((fetched.status.0, fetched.truncated), (200, Some(Truncated::Disk)));
    assert_eq!(fetched.annotations().collect::<Vec<_>>(), ["diskTrunc"]);
    let kept = fetched.response.bytes().expect("it stays in memory");
    assert!(kept.len() >= 128 << 10 && kept.len() < 300 << 10, "{}", kept.len());
    assert_eq!(fetched.wire_length, kept.len() as u64);
    assert_eq!(fetched.block_digest, Digest::of(Algorithm::Sha1, kept));
    assert_eq!(Truncated::Disk.as_str(), "disk");
    // Others need no disk.
    let fetched = client.get(server.url("/")).await;
    assert_eq!((fetched.status.0, fetched.truncated), (200, None));
    assert!(Settings::default().max_bytes.0 > 0, "there is a limit unless the operator takes it away");
}

#[tokio::test]
async fn silence_ends_a_fetch() {
    let quick = Period::from_millis(50);
    let partial = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc";
    for (acts, changed, status, cut) in [
        (vec![Act::Hang], Settings { first_byte_timeout: quick, ..settings() }, -4, None),
        (vec![send("HTTP/1.1 2"), Act::Hang], Settings { idle_timeout: quick, ..settings() }, -4, None),
        (
            vec![send(partial), Act::Hang],
            Settings { idle_timeout: quick, ..settings() },
            200,
            Some(Truncated::Time),
        ),
        (
            vec![send(partial), Act::Hang],
            Settings { total_timeout: Period::from_secs(1), ..settings() },
            200,
            Some(Truncated::Time),
        ),
        (vec![send(partial), Act::Close], settings(), 200, Some(Truncated::Disconnect)),
        (vec![send(partial), Act::Reset], settings(), 200, Some(Truncated::Disconnect)),
    ] {
        let server = Server::start(acts.clone()).await;
        let fetched = Client::new(&changed).get(server.url("/")).await;
        assert_eq!((fetched.status.0, fetched.truncated), (status, cut), "{acts:?}");
        if status == 200 {
            assert_eq!(fetched.response.bytes(), Some(partial.as_bytes()), "{acts:?}");
        }
    }
}

#[tokio::test]
async fn the_total_time_bounds_drips_and_floods() {
    let server = Server::start(vec![send("HTTP/1.1 200 OK\r\n\r\n"), Act::Flood]).await;
    let short = Settings { total_timeout: Period::from_millis(500), ..settings() };
    // 1 kB per second would take for ever; as fast as can be, a read is always ready and no wait ever begins.
    let drip = Settings { max_rate: Size(1000), ..short.clone() };
    for (settings, most) in [(drip, 1 << 20), (short, u64::MAX)] {
        let fetched = Client::new(&settings).get(server.url("/")).await;
        assert_eq!((fetched.status.0, fetched.truncated), (200, Some(Truncated::Time)));
        assert_eq!(fetched.annotations().collect::<Vec<_>>(), ["timeTrunc"]);
        assert!(fetched.wire_length < most, "{}", fetched.wire_length);
    }
}

#[tokio::test]
async fn what_cannot_be_reached_is_told_apart() {
    let nobody = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let no_dns = DnsSettings {
        servers: vec![nobody.to_string()],
        system_fallback: false,
        timeout: Period::from_millis(50),
        retries: 0,
        ..DnsSettings::default()
    };
    let client = Client::new(&Settings { dns: no_dns, ..settings() });
    for (url, status, annotation) in [
        (format!("http://{nobody}/"), FetchStatus::CONNECT_FAILED, "notConnected"),
        ("http://nobody.example/".to_owned(), FetchStatus::DNS_FAILED, "nameNotAnswered"),
        ("ftp://127.0.0.1/".to_owned(), FetchStatus::ILLEGAL_URI, "notFetchable"),
        ("mailto:a@b.example".to_owned(), FetchStatus::ILLEGAL_URI, "notFetchable"),
    ] {
        let fetched = client.get(Url::parse(&url).unwrap()).await;
        assert_eq!(fetched.status, status, "{url}: {:?}", fetched.problems);
        assert_eq!(fetched.annotations().collect::<Vec<_>>(), [annotation], "{url}");
        assert!(fetched.response.is_empty() && fetched.http.is_none());
        assert!(fetched.request.is_empty(), "nothing was sent");
    }
}

#[tokio::test]
async fn cookies_and_validators_travel() {
    let set = "HTTP/1.1 200 OK\r\nSet-Cookie: a=1; Path=/\r\nSet-Cookie: b=2\r\nContent-Length: 0\r\n\r\n";
    let plain = "HTTP/1.1 304 Same\r\n\r\n";
    let server = Server::start(vec![send(set), Act::Next, send(plain)]).await;
    let client = Client::new(&settings());
    client.get(server.url("/d/e")).await;
    let again = Request {
        conditional: Some(Validators {
            etag: Some("\"1\"".to_owned()),
            last_modified: Some("then".to_owned()),
        }),
        ..Request::get(server.url("/d/f"))
    };
    let fetched = client.fetcher.fetch(&again).await.unwrap();
    assert_eq!((fetched.status.0, fetched.reused, fetched.payload_length), (304, true, 0));
    let sent = &server.requests()[1];
    assert!(sent.contains("\r\nCookie: b=2; a=1\r\n"), "{sent}");
    assert!(sent.contains("\r\nIf-None-Match: \"1\"\r\nIf-Modified-Since: then\r\n"), "{sent}");
    assert_eq!(client.fetcher.cookies().len(), 2);

    let server = Server::start(vec![send(set), Act::Next, send(plain)]).await;
    let client = Client::new(&Settings { cookies: false, ..settings() });
    client.get(server.url("/")).await;
    client.get(server.url("/")).await;
    assert!(!server.requests()[1].contains("Cookie"));
}

#[tokio::test]
async fn contents_come_out_of_their_codings() {
    let page = "<html>".repeat(500);
    let gzip = {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        out.write_all(page.as_bytes()).unwrap();
        out.finish().unwrap()
    };
    let zlib = {
        let mut out = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        out.write_all(page.as_bytes()).unwrap();
        out.finish().unwrap()
    };
    let deflate = {
        let mut out = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
        out.write_all(page.as_bytes()).unwrap();
        out.finish().unwrap()
    };
    let mut brotli = Vec::new();
    brotli::CompressorWriter::new(&mut brotli, 4096, 5, 20).write_all(page.as_bytes()).unwrap();
    let zstd = zstd::encode_all(page.as_bytes(), 3).unwrap();
    let zstd_in_gzip = {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        out.write_all(&zstd).unwrap();
        out.finish().unwrap()
    };
    let half = &gzip[..gzip.len() / 2];
    for (name, body, expected) in [
        ("gzip", &gzip[..], Some(&page[..])),
        ("X-GZip", &gzip, Some(&page)),
        ("deflate", &zlib, Some(&page)),
        ("deflate", &deflate, Some(&page)),
        ("br", &brotli, Some(&page)),
        ("zstd", &zstd, Some(&page)),
        ("zstd, gzip", &zstd_in_gzip, Some(&page)),
        ("identity", page.as_bytes(), Some(&page)),
        // Lies and accidents.
        ("gzip", page.as_bytes(), Some(&page)),
        ("br", page.as_bytes(), Some(&page)),
        ("deflate", page.as_bytes(), Some(&page)),
        ("zstd", page.as_bytes(), Some(&page)),
        ("sdch", page.as_bytes(), Some(&page)),
        // A whole stream of Brotli that holds nothing, and what begins like zlib.
        ("br", b";", Some(";")),
        ("deflate", b"x^2 + y^2", Some("x^2 + y^2")),
        ("gzip", b"", Some("")),
        ("gzip", half, None),
    ] {
        for chunked in [false, true] {
            let mut wire = format!("HTTP/1.1 200 OK\r\nContent-Encoding: {name}\r\n").into_bytes();
            if chunked {
                wire.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
                for chunk in body.chunks(11) {
                    wire.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                    wire.extend_from_slice(chunk);
                    wire.extend_from_slice(b"\r\n");
                }
                wire.extend_from_slice(b"0\r\n\r\n");
            } else {
                wire.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
                wire.extend_from_slice(body);
            }
            let server = Server::start(vec![Act::Send(wire)]).await;
            let mut fetched = Client::new(&settings()).get(server.url("/")).await;
            assert_eq!(fetched.payload_digest, Digest::of(Algorithm::Sha1, body), "{name}");
            let got = text(&mut fetched);
            match expected {
                Some(expected) => assert!(got == expected, "{name} chunked {chunked}: {} bytes", got.len()),
                None => assert!(page.starts_with(&got), "{name}: what decodes is kept"),
            }
            assert!(fetched.content_bytes(100).unwrap().len() <= 100);
        }
    }
}

#[tokio::test]
async fn hosts_are_sent_where_the_operator_says() {
    let server = Server::start(vec![send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")]).await;
    let address = server.address;
    for changed in [
        Settings { all_hosts_to: address.to_string(), ..settings() },
        Settings { resolve: vec![format!("a.example:80:{address}")], ..settings() },
    ] {
        let client = Client::new(&changed);
        let fetched = client.get(Url::parse("http://a.example/p").unwrap()).await;
        assert_eq!((fetched.status.0, fetched.ip), (200, Some(address.ip())));
        let answer = client.fetcher.resolve("a.example").await;
        assert_eq!((answer.source, answer.status()), (DnsSource::Override, FetchStatus::DNS_OK));
        assert_eq!(answer.addresses, Ok(vec![address.ip()]));
    }
    assert!(server.requests()[0].contains("Host: a.example\r\n"));
    let literal = Client::new(&settings()).fetcher.resolve("[::1]").await;
    assert_eq!(
        (literal.source, literal.addresses.clone()),
        (DnsSource::Literal, Ok(vec!["::1".parse().unwrap()]))
    );
}
