use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use reqwest::Method;

use super::bed::{Bed, KEY};
use crate::digest::Sum;

#[tokio::test(flavor = "multi_thread")]
async fn a_file_comes_back_as_it_was_sent() {
    let bed = Bed::new(1, 2).await;
    bed.create("library/maps", 2, true).await;
    let large: Vec<u8> = (0..3_000_000_u32).flat_map(u32::to_le_bytes).collect();
    for (path, bytes) in [
        ("readme.txt", &b"hello"[..]),
        ("a/b/c d+é%.warc.gz", &large[..70_000]),
        ("large.bin", &large),
        ("empty", b""),
    ] {
        assert_eq!(bed.put(0, "library/maps", path, bytes).await, 201, "{path}");
        assert_eq!(bed.get(0, "library/maps", path).await.unwrap(), bytes, "{path}");
        // The same again is no change, other bytes are refused.
        assert_eq!(bed.put(0, "library/maps", path, bytes).await, 200, "{path}");
        assert_eq!(bed.put(0, "library/maps", path, b"other").await, 409, "{path}");
        assert_eq!(bed.get(0, "library/maps", path).await.unwrap(), bytes, "{path}");
    }
    let head = bed.once(Method::HEAD, 0, "get/library/maps/readme.txt", None).await;
    let header = |name: &str| head.headers()[name].to_str().unwrap().to_owned();
    let sum = Sum::of(b"hello");
    assert_eq!(header("content-length"), "5");
    assert_eq!(header("content-type"), "text/plain; charset=utf-8");
    assert_eq!(header("etag"), format!("\"sha512-{sum}\""));
    assert_eq!(header("repr-digest"), format!("sha-512=:{}:", sum.base64()));
    assert_eq!(bed.copied("library/maps").len(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_and_conditions() {
    let bed = Bed::new(1, 1).await;
    bed.create("c", 1, true).await;
    let bytes: Vec<u8> = (0..200_000_u32).map(|n| (n % 251) as u8).collect();
    bed.put(0, "c", "x.bin", &bytes).await;
    let url = bed.url(0, "get/c/x.bin");
    let get = |name: &'static str, value: String| bed.client.get(&url).header(name, value).send();
    let tag = bed.client.get(&url).send().await.unwrap().headers()["etag"].to_str().unwrap().to_owned();
    let modified =
        bed.client.get(&url).send().await.unwrap().headers()["last-modified"].to_str().unwrap().to_owned();

    let part = get("Range", "bytes=100-149999".into()).await.unwrap();
    assert_eq!(
        (part.status().as_u16(), &part.headers()["content-range"]),
        (206, &"bytes 100-149999/200000".parse().unwrap())
    );
    assert_eq!(part.bytes().await.unwrap(), bytes[100..150_000]);
    let parts = get("Range", "bytes=0-9,199990-".into()).await.unwrap();
    assert!(parts.headers()["content-type"].to_str().unwrap().starts_with("multipart/byteranges"));
    let text = parts.bytes().await.unwrap();
    for piece in [&bytes[..10], &bytes[199_990..], b"Content-Range: bytes 199990-199999/200000"] {
        assert!(text.windows(piece.len()).any(|window| window == piece));
    }
    assert_eq!(get("Range", "bytes=200000-".into()).await.unwrap().status(), 416);
    assert_eq!(get("If-None-Match", tag.clone()).await.unwrap().status(), 304);
    assert_eq!(get("If-None-Match", "\"other\"".into()).await.unwrap().status(), 200);
    assert_eq!(get("If-Modified-Since", modified).await.unwrap().status(), 304);
    let stale = bed.client.get(&url).header("Range", "bytes=0-0").header("If-Range", "\"other\"");
    assert_eq!(stale.send().await.unwrap().status(), 200);
    let fresh = bed.client.get(&url).header("Range", "bytes=0-0").header("If-Range", tag);
    assert_eq!(fresh.send().await.unwrap().status(), 206);
}

#[tokio::test(flavor = "multi_thread")]
async fn announced_checksums_are_honoured_and_returned() {
    let bed = Bed::new(1, 1).await;
    bed.create("c", 1, true).await;
    let put = |path: &str, name: &'static str, value: &'static str| {
        bed.client.put(bed.url(0, &format!("put/c/{path}"))).header(name, value).body("hello world").send()
    };
    let good = put("a", "Content-MD5", "XrY7u+Ae7tCTyyK7j1rNww==").await.unwrap();
    assert_eq!(good.status(), 201);
    assert_eq!(good.headers()["content-md5"], "XrY7u+Ae7tCTyyK7j1rNww==");
    assert!(good.headers()["repr-digest"].to_str().unwrap().contains("sha-512=:"));
    let wrong =
        put("b", "Repr-Digest", "sha-256=:uU0nuZNNPgilLlLX2n2r+sSE7+N6U4DukIj3rOLvzeg=:").await.unwrap();
    assert_eq!(wrong.status(), 422);
    assert_eq!(put("b", "Content-MD5", "nonsense").await.unwrap().status(), 400);
    assert_eq!(put("b", "Content-Range", "bytes 0-3/11").await.unwrap().status(), 400);
    assert_eq!(bed.get(0, "c", "b").await, Err(404));
    assert_eq!(put("a", "If-None-Match", "*").await.unwrap().status(), 412);
    assert_eq!(bed.copied("c").len(), 1);
}

/// A request as raw bytes, answered until the server closes.
fn raw(bed: &Bed, parts: &[&[u8]]) -> String {
    let mut stream = TcpStream::connect(&bed.addresses[0]).unwrap();
    for part in parts {
        stream.write_all(part).unwrap();
    }
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_in_chunks_and_after_a_wait() {
    let bed = Bed::new(1, 1).await;
    bed.create("c", 1, true).await;
    let head = b"PUT /put/c/x HTTP/1.1\r\nHost: h\r\nConnection: close\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n";
    let answer = raw(&bed, &[head, b"5\r\nhello\r\n", b"0\r\n\r\n"]);
    assert!(answer.starts_with("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\n"), "{answer}");
    assert_eq!(bed.get(0, "c", "x").await.unwrap(), b"hello");
    // Two requests in one packet get two answers.
    let two = b"GET /get/c/x HTTP/1.1\r\n\r\nGET /get/c/x HTTP/1.1\r\nConnection: close\r\n\r\n";
    assert_eq!(raw(&bed, &[two]).matches("\r\n\r\nhello").count(), 2);
    // An upload that breaks off leaves nothing.
    let cut = b"PUT /put/c/cut HTTP/1.1\r\nContent-Length: 1000000\r\n\r\nhalf";
    let mut stream = TcpStream::connect(&bed.addresses[0]).unwrap();
    stream.write_all(cut).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert!(!String::from_utf8_lossy(&answer).contains(" 20"));
    assert_eq!(bed.get(0, "c", "cut").await, Err(404));
    assert_eq!(bed.copied("c").len(), 1);
    assert_eq!(std::fs::read_dir(bed.partition(0, 0).join(".swap-tmp")).unwrap().count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_uploads_of_one_name_one_wins_whole() {
    let bed = Bed::new(1, 1).await;
    bed.create("c", 1, true).await;
    let bodies: Vec<Vec<u8>> = (0..16_u8).map(|n| vec![n; 300_000 + usize::from(n)]).collect();
    let statuses =
        futures_util::future::join_all(bodies.iter().map(|body| bed.put(0, "c", "d/x", body))).await;
    assert_eq!(statuses.iter().filter(|status| **status == 201).count(), 1, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 409).count(), 15, "{statuses:?}");
    let winner = statuses.iter().position(|status| *status == 201).unwrap();
    assert_eq!(bed.get(0, "c", "d/x").await.unwrap(), bodies[winner]);
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_names_and_links_are_refused() {
    let bed = Bed::new(1, 1).await;
    bed.create("c", 1, true).await;
    bed.put(0, "c", "d/x", b"x").await;
    let root = bed.partition(0, 0);
    std::os::unix::fs::symlink("/etc", root.join("c/etc")).unwrap();
    std::os::unix::fs::symlink(root.join("partition.properties"), root.join("c/props")).unwrap();
    for (path, status) in [
        ("/get/c/../partition.properties", " 400 "),
        ("/get/c/%2e%2e/partition.properties", " 400 "),
        ("/get/c/..%2fpartition.properties", " 400 "),
        ("/get/c/a%00b", " 400 "),
        ("/get/c//x", " 400 "),
        ("/get/c/etc/passwd", " 404 "),
        ("/get/c/props", " 404 "),
        ("/get/partition.properties", " 404 "),
        ("/get/.swap-attic/x", " 404 "),
        ("/get/c/d", " 302 "),
        ("/nothing", " 404 "),
        ("/peer", " 404 "),
    ] {
        let answer = raw(&bed, &[format!("GET {path} HTTP/1.1\r\nConnection: close\r\n\r\n").as_bytes()]);
        assert!(answer.lines().next().unwrap().contains(status), "{path}: {answer}");
    }
    let long = format!("put/c/{}", "x".repeat(256));
    assert_eq!(bed.once(Method::PUT, 0, &long, Some(b"x")).await.status(), 400);
    assert_eq!(bed.once(Method::PUT, 0, "put/c/etc/x", Some(b"x")).await.status(), 409);
    assert_eq!(bed.once(Method::POST, 0, "put/c/x", Some(b"x")).await.status(), 405);
    assert!(raw(&bed, &[b"GET / HTTP/1.1\r\nx: ", &vec![b'y'; 20_000]]).contains(" 431 "));
}

#[tokio::test(flavor = "multi_thread")]
async fn writing_needs_the_key_and_reading_too_unless_public() {
    let bed = Bed::tuned(1, 2, |settings| settings.trust_local = false).await;
    bed.create("open", 1, true).await;
    bed.create("closed", 1, false).await;
    let bearer = format!("Bearer {KEY}");
    let put = |path: &str| bed.client.put(bed.url(0, path)).body("hello");
    assert_eq!(put("put/open/x").send().await.unwrap().status(), 401);
    assert_eq!(put("put/open/x").header("Authorization", "Bearer wrong").send().await.unwrap().status(), 401);
    for name in ["open", "closed"] {
        let path = format!("put/{name}/x");
        assert_eq!(put(&path).header("Authorization", &bearer).send().await.unwrap().status(), 201);
        assert_eq!(bed.delete(0, name, "x").await, 401);
    }
    assert_eq!(bed.get(0, "open", "x").await.unwrap(), b"hello");
    assert_eq!(bed.get(0, "closed", "x").await, Err(401));
    let closed = bed.client.get(bed.url(0, "get/closed/x")).header("Authorization", &bearer);
    assert_eq!(closed.send().await.unwrap().status(), 200);
    assert_eq!(bed.once(Method::GET, 0, "admin/v1/status", None).await.status(), 401);
    let root = bed.once(Method::GET, 0, "?format=json", None).await.text().await.unwrap();
    assert!(root.contains("open") && !root.contains("closed"), "{root}");
}

#[tokio::test(flavor = "multi_thread")]
async fn this_user_on_this_machine_needs_no_key_but_web_pages_do() {
    let bed = Bed::new(1, 1).await;
    bed.create("c", 1, false).await;
    assert_eq!(bed.put(0, "c", "x", b"hello").await, 201);
    let from_page = bed.client.put(bed.url(0, "put/c/y")).header("Origin", "http://evil").body("x");
    assert_eq!(from_page.send().await.unwrap().status(), 401);
    let proxied = bed.client.get(bed.url(0, "get/c/x")).header("X-Forwarded-For", "192.0.2.1");
    assert_eq!(proxied.send().await.unwrap().status(), 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn removal_names_the_bytes_and_keeps_them_in_the_attic() {
    let bed = Bed::new(1, 1).await;
    bed.create("c", 1, true).await;
    bed.put(0, "c", "d/x", b"hello").await;
    let delete = |tag: &str| bed.client.delete(bed.url(0, "put/c/d/x")).header("If-Match", tag).send();
    assert_eq!(bed.once(Method::DELETE, 0, "put/c/d/x", None).await.status(), 428);
    assert_eq!(delete(&format!("\"sha512-{}\"", Sum::of(b"other"))).await.unwrap().status(), 412);
    assert_eq!(delete(&format!("\"sha512-{}\"", Sum::of(b"hello"))).await.unwrap().status(), 204);
    assert_eq!(delete("*").await.unwrap().status(), 404);
    assert_eq!(bed.get(0, "c", "d/x").await, Err(404));
    assert_eq!(bed.copied(".swap-attic").into_values().collect::<Vec<_>>(), [b"hello"]);
    // The name is free again.
    assert_eq!(bed.put(0, "c", "d/x", b"again").await, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_record_of_an_archive_file() {
    let bed = Bed::new(1, 1).await;
    bed.create("c", 1, true).await;
    let first = "WARC/1.0\r\nWARC-Type: warcinfo\r\nWARC-Record-ID: <urn:uuid:0>\r\nWARC-Date: 2026-01-01T00:00:00Z\r\nContent-Length: 4\r\n\r\ninfo\r\n\r\n";
    let second = "WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:1>\r\nWARC-Date: 2026-01-01T00:00:00Z\r\nWARC-Target-URI: http://example.org/\r\nContent-Type: application/http\r\nContent-Length: 50\r\n\r\nHTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nhello\r\n\r\n";
    bed.put(0, "c", "x.warc", format!("{first}{second}").as_bytes()).await;
    let get = async |query: String| {
        let response = bed.once(Method::GET, 0, &format!("warc/c/x.warc?{query}"), None).await;
        let kind = response.headers()["content-type"].to_str().unwrap().to_owned();
        (response.status().as_u16(), kind, response.text().await.unwrap())
    };
    let (status, kind, text) = get(format!("offset={}&contentonly=true", first.len())).await;
    assert_eq!((status, kind.as_str(), text.as_str()), (200, "text/plain", "hello"));
    let (status, kind, text) = get(format!("offset={}", first.len())).await;
    assert_eq!((status, kind.as_str()), (200, "application/warc"));
    assert_eq!(text, second.trim_end());
    assert_eq!(get("offset=7".to_owned()).await.0, 404);
    assert_eq!(get("offset=99999".to_owned()).await.0, 404);
    assert_eq!(get("offset=x".to_owned()).await.0, 400);
}
