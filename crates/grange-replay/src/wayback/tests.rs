use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response};
use grange_index::access::{Decision, Rule, RuleSet};
use http_body_util::BodyExt as _;
use tower::ServiceExt as _;

use crate::cdx::Options;
use crate::collection::Collections;
use crate::tests::{Bed, gzip, http, revisit};
use crate::wayback::routes;

const HTML: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/html";

/// A small web: a page with two versions, a redirect, files, and things that hostile sites send.
fn bed() -> Bed {
    let bed = Bed::new();
    let at = |day: u8, time: &str| format!("2020-01-{day:02}T{time}Z");
    let packed = gzip(b"<p>packed</p>");
    bed.add_gz(
        "a.warc.gz",
        &[
            http("http://e.org/", &at(1, "00:00:00"), HTML, b"<p>first</p>"),
            http("http://e.org/", &at(9, "12:00:00"), HTML, b"<p>second</p>"),
            revisit("http://e.org/", &at(10, "12:00:00"), HTML, b"<p>first</p>", ""),
            http("http://e.org/moved", &at(2, "00:00:00"), "HTTP/1.1 301 Moved\r\nLocation: /new?a=b", b""),
            http("http://e.org/new?a=b", &at(2, "00:00:01"), HTML, b"<p>new</p>"),
            // http and https of one page, the first of which leads to the second.
            http("http://s.org/", &at(3, "00:00:00"), "HTTP/1.1 301 Moved\r\nLocation: https://s.org/", b""),
            http("https://s.org/", &at(3, "00:00:05"), HTML, b"<p>secure</p>"),
            http("http://loop.org/", &at(3, "00:00:00"), "HTTP/1.1 302 Found\r\nLocation: http://loop.org/", b""),
            http("http://e.org/film.mp4", &at(4, "00:00:00"), "HTTP/1.1 200 OK\r\nContent-Type: video/mp4", b"0123456789"),
            http("http://e.org/logo.png?v=1", &at(4, "00:00:00"), "HTTP/1.1 200 OK\r\nContent-Type: image/png", b"\x89PNG"),
            http("http://e.org/packed", &at(4, "00:00:00"), &format!("{HTML}\r\nContent-Encoding: gzip"), &packed),
            http(
                "http://evil.org/",
                &at(5, "00:00:00"),
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nSet-Cookie: session=stolen; Path=/; Domain=localhost\r\nSet-Cookie: grange_session=evil; Path=/\r\n\
                 Clear-Site-Data: \"*\"\r\nStrict-Transport-Security: max-age=9\r\nX-Bad: a\rSet-Cookie: b=c\r\n\
                 Content-Security-Policy: default-src *\r\nService-Worker-Allowed: /\r\nAccess-Control-Allow-Origin: *",
                b"<p>evil</p>",
            ),
            http("http://secret.org/", &at(6, "00:00:00"), HTML, b"<p>secret</p>"),
            revisit("http://gone.org/", &at(7, "00:00:00"), HTML, b"never stored", ""),
            http("http://odd.org/", &at(8, "00:00:00"), "HTTP/1.1 999 Odd\r\nContent-Type: text/plain", b"odd"),
            http("http://odd.org/a b", &at(8, "00:00:01"), "HTTP/1.1 200 OK\r\nContent-Type: text/plain", b"spaced"),
            http("http://odd.org/c#d", &at(8, "00:00:02"), "HTTP/1.1 200 OK\r\nContent-Type: text/plain", b"with a fragment"),
        ],
    );
    bed
}

pub(super) fn site(bed: &Bed) -> Router {
    site_with(bed, Options::default())
}

pub(super) fn site_with(bed: &Bed, options: Options) -> Router {
    let collections = Collections::default();
    let source = &bed.collection;
    let collection = crate::Collection::new("local", source.index.clone(), source.holdings.clone());
    collection.set_rules(source.rules());
    collections.add(collection);
    routes(collections, options)
}

pub(super) async fn ask(site: &Router, method: &str, path: &str, headers: &[(&str, &str)]) -> Response<Body> {
    let mut request = Request::builder().method(method).uri(path).header("host", "h");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    site.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap()
}

async fn get(site: &Router, path: &str) -> (u16, String, String) {
    let response = ask(site, "GET", path, &[]).await;
    let status = response.status().as_u16();
    let location = response.headers().get("location").map_or("", |value| value.to_str().unwrap()).to_owned();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, location, String::from_utf8_lossy(&body).into_owned())
}

#[tokio::test]
async fn captures_are_found_by_time_and_shown_under_their_own() {
    let bed = bed();
    let site = site(&bed);
    // Path; status, where it leads or what it holds.
    let cases = [
        // Without a path relative addresses would lead elsewhere.
        ("/local/20200101000000mp_/http://e.org", 302, "/local/20200101000000mp_/http://e.org/"),
        ("/local/20200101000000/http://e.org?", 302, "/local/20200101000000/http://e.org/"),
        ("/local/20200101000000mp_/http%3A%2F%2Fe.org%2F", 302, "/local/20200101000000mp_/http://e.org/"),
        ("/local/20200101000000id_/http://e.org/", 200, "<p>first</p>"),
        ("/local/20200108000000id_/http://e.org/", 200, "<p>second</p>"),
        ("/local/20200110120000id_/http://e.org/", 200, "<p>first</p>"),
        ("/local/id_/http://e.org/", 200, "<p>first</p>"),
        ("/local/2020mp_/http://e.org/", 302, "/local/20200101000000mp_/http://e.org/"),
        ("/local/2020/http:/e.org", 302, "/local/20200101000000/http://e.org/"),
        ("/local/mp_/www.e.org", 302, "/local/20200110120000mp_/http://e.org/"),
        ("/local/20200109120000mp_/http://e.org/", 200, "<p>second</p>"),
        ("/local/20200109120000/http://e.org/", 200, "src=\"/local/20200109120000mp_/http://e.org/\""),
        ("/local/http://e.org/", 302, "/local/20200110120000/http://e.org/"),
        ("/local/20200102000000mp_/http://e.org/moved", 301, "/local/20200102000000mp_/http://e.org/new?a=b"),
        ("/local/20200102000000/http://e.org/moved", 302, "/local/20200102000000/http://e.org/new?a=b"),
        ("/local/20200102000001id_/http://e.org/new?a=b", 200, "<p>new</p>"),
        ("/local/20200103000000mp_/http://s.org/", 302, "/local/20200103000005mp_/https://s.org/"),
        ("/local/20200103000005mp_/https://s.org/", 200, "<p>secure</p>"),
        ("/local/2020mp_/http://loop.org/", 503, "it redirects to itself"),
        ("/local/2020id_/http://e.org/logo.png?v=1&_=1577836800000", 200, "PNG"),
        ("/local/2020im_/http://e.org/logo.png?v=2", 200, "PNG"),
        ("/local/2020mp_/http://e.org/nothing", 404, "Not in the archive"),
        ("/local/2020id_/http://gone.org/", 503, "no record with that content"),
        ("/local/20200108000000mp_/http://odd.org/", 999, "odd"),
        ("/local/20200104000000mp_/http://e.org/packed", 200, "<p>packed</p>"),
        ("/local/2020mp_/", 400, "cannot be read"),
        ("/local", 302, "/local/"),
        // Browsers spell these two otherwise when they follow; they are shown where they are asked for.
        ("/local/20200108000001mp_/http://odd.org/a%20b", 200, "spaced"),
        ("/local/20200108000002mp_/http://odd.org/c", 200, "with a fragment"),
        ("/other/2020mp_/http://e.org/", 404, "No collection"),
        ("/", 302, "/local/"),
        ("/local/", 200, "http://e.org/"),
        ("/local/?url=e.org&show=captures", 302, "/local/*/http://e.org/"),
        ("/local/*/http://e.org/", 200, "3 captures in 2020"),
        ("/local/*/http://e.org/?grange-view=list", 200, "3 captures, 2 versions"),
        ("/local/*/http://e.org/*", 200, "http://e.org/film.mp4"),
        ("/local/20200109*/http://e.org/", 200, "1 capture, 1 version"),
        ("/local/*/http://nowhere.org/", 404, "Not in the archive"),
        ("/static/replay.css", 200, "color-scheme"),
        ("/static/nothing", 404, ""),
        ("/static/../grange.toml", 404, ""),
    ];
    for (path, status, expected) in cases {
        let (got, location, body) = get(&site, path).await;
        assert_eq!(got, status, "{path}: {location} {body}");
        let told = if (300..400).contains(&got) { &location } else { &body };
        assert!(told.contains(expected), "{path}: {told}");
    }
}

#[tokio::test]
async fn archived_headers_cannot_act_on_this_origin() {
    let bed = bed();
    let site = site(&bed);
    for modifier in ["mp_", "id_"] {
        let response =
            ask(&site, "GET", &format!("/local/20200105000000{modifier}/http://evil.org/"), &[]).await;
        assert_eq!(response.status(), 200);
        let headers = response.headers();
        for name in [
            "clear-site-data",
            "strict-transport-security",
            "service-worker-allowed",
            "access-control-allow-origin",
        ] {
            assert!(!headers.contains_key(name), "{modifier} {name}");
        }
        for cookie in headers.get_all("set-cookie") {
            let cookie = cookie.to_str().unwrap().to_ascii_lowercase();
            assert!(!cookie.contains("domain="), "{cookie}");
            assert!(cookie.contains("path=/local/") && !cookie.contains("grange"), "{cookie}");
        }
        let policy = headers.get("content-security-policy").unwrap().to_str().unwrap();
        assert!(policy.contains("'self'") && !policy.contains('*'), "{policy}");
        assert_eq!(headers.get("memento-datetime").unwrap(), "Sun, 05 Jan 2020 00:00:00 GMT");
        let link = headers.get_all("link").iter().map(|value| value.to_str().unwrap()).collect::<String>();
        assert!(link.contains("<http://evil.org/>; rel=\"original\""), "{link}");
    }
    // Nothing of ours sets a cookie, and none that is sent makes a difference.
    for path in [
        "/",
        "/local/",
        "/local/*/http://e.org/",
        "/local/20200109120000/http://e.org/",
        "/local/20200109120000mp_/http://e.org/",
        "/local/cdx?url=e.org",
        "/nothing",
        "/static/replay.css",
    ] {
        let with = ask(&site, "GET", path, &[("cookie", "grange_session=s3cret")]).await;
        assert!(!with.headers().contains_key("set-cookie"), "{path}");
        let without = ask(&site, "GET", path, &[]).await;
        assert_eq!(with.headers(), without.headers(), "{path}");
        let (with, without) = (with.into_body().collect().await, without.into_body().collect().await);
        assert_eq!(with.unwrap().to_bytes(), without.unwrap().to_bytes(), "{path}");
    }
}

#[tokio::test]
async fn service_workers_are_confined() {
    let bed = bed();
    let site = site(&bed);
    let header = [("service-worker", "script")];
    for (path, status) in [
        ("/local/20200101000000mp_/http://e.org/", 403),
        ("/local/20200101000000js_/http://e.org/", 403),
        ("/static/frame.js", 403),
        ("/local/20200101000000sw_/http://e.org/", 200),
    ] {
        assert_eq!(ask(&site, "GET", path, &header).await.status(), status, "{path}");
    }
}

#[tokio::test]
async fn ranges_and_heads() {
    let bed = bed();
    let site = site(&bed);
    let film = "/local/20200104000000oe_/http://e.org/film.mp4";
    for (range, status, content_range, body) in [
        ("bytes=2-4", 206, Some("bytes 2-4/10"), "234"),
        ("bytes=-2", 206, Some("bytes 8-9/10"), "89"),
        ("bytes=0-", 206, Some("bytes 0-9/10"), "0123456789"),
        ("bytes=10-", 416, Some("bytes */10"), ""),
        ("bytes=1-2,4-5", 200, None, "0123456789"),
    ] {
        let response = ask(&site, "GET", film, &[("range", range)]).await;
        assert_eq!(response.status(), status, "{range}");
        let told = response.headers().get("content-range").map(|value| value.to_str().unwrap());
        assert_eq!(told, content_range, "{range}");
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), body, "{range}");
    }
    let response = ask(&site, "HEAD", film, &[]).await;
    assert_eq!(
        (response.status().as_u16(), response.headers()["content-length"].to_str().unwrap()),
        (200, "10")
    );
    assert!(response.into_body().collect().await.unwrap().to_bytes().is_empty());
    // A page that is rewritten has no ranges.
    let page = ask(&site, "GET", "/local/20200109120000mp_/http://e.org/", &[("range", "bytes=0-1")]).await;
    assert_eq!(page.status(), 200);
}

#[tokio::test]
async fn leaked_requests_are_led_back() {
    let bed = bed();
    let site = site(&bed);
    let referer =
        [("referer", "http://h/local/20200109120000mp_/http://e.org/page"), ("sec-fetch-dest", "image")];
    let response = ask(&site, "GET", "/logo.png?v=1", &referer).await;
    assert_eq!(response.status(), 307);
    assert_eq!(response.headers()["location"], "/local/20200109120000im_/http://e.org/logo.png?v=1");
    assert_eq!(ask(&site, "GET", "/images/logo.png", &[]).await.status(), 404);
}

#[tokio::test]
async fn memento_speaks_in_three_formats() {
    let bed = bed();
    let site = site(&bed);
    let (status, _, link) = get(&site, "/local/timemap/link/http://e.org/").await;
    assert_eq!((status, link.matches("rel=\"memento\"").count()), (200, 3), "{link}");
    assert!(link.contains("<http://h/local/20200109120000mp_/http://e.org/>; rel=\"memento\"; datetime=\"Thu, 09 Jan 2020 12:00:00 GMT\""), "{link}");
    let (_, _, json) = get(&site, "/local/timemap/json/http://e.org/").await;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["mementos"]["list"].as_array().unwrap().len(), 3);
    let (_, _, cdxj) = get(&site, "/local/timemap/cdxj/http://e.org/").await;
    assert_eq!(cdxj.lines().filter(|line| line.starts_with("2020")).count(), 3, "{cdxj}");
    assert_eq!(get(&site, "/local/timemap/link/http://nowhere.org/").await.0, 404);

    for (asked, status, location) in [
        ("Wed, 08 Jan 2020 00:00:00 GMT", 302, "/local/20200109120000mp_/http://e.org/"),
        ("Wed, 01 Jan 1997 00:00:00 GMT", 302, "/local/20200101000000mp_/http://e.org/"),
        ("not a time", 400, ""),
    ] {
        let response = ask(&site, "GET", "/local/http://e.org/", &[("accept-datetime", asked)]).await;
        assert_eq!(response.status(), status, "{asked}");
        assert_eq!(response.headers().get("location").map_or("", |value| value.to_str().unwrap()), location);
        let varies = response.headers().get_all("vary").iter().any(|value| value == "accept-datetime");
        assert!(varies, "{asked}");
    }
    let missing = ask(&site, "GET", "/local/http://nowhere.org/", &[]).await;
    assert_eq!(missing.status(), 404);
    assert!(missing.headers().get_all("vary").iter().any(|value| value == "accept-datetime"));
}

#[tokio::test]
async fn what_a_rule_hides_is_nowhere() {
    let bed = bed();
    bed.collection.set_rules(RuleSet::from(vec![Rule::new(
        "org,secret)",
        Decision::Block { message: "Withdrawn by its owner.".into() },
    )]));
    let site = site(&bed);
    for path in [
        "/local/20200106000000mp_/http://secret.org/",
        "/local/20200106000000id_/http://secret.org/",
        "/local/20200106000000/http://secret.org/",
        "/local/http://secret.org/",
    ] {
        let (status, _, body) = get(&site, path).await;
        assert_eq!(status, 451, "{path}");
        assert!(body.contains("Withdrawn by its owner.") && !body.contains("<p>secret"), "{path}: {body}");
    }
    for path in [
        "/local/timemap/link/http://secret.org/",
        "/local/*/http://secret.org/",
        "/local/*/http://secret.org/*",
    ] {
        assert_eq!(get(&site, path).await.0, 404, "{path}");
    }
    assert!(!get(&site, "/local/").await.2.contains("secret.org"));
}

#[tokio::test]
async fn posts_are_found_by_their_bodies() {
    let bed = Bed::new();
    let url = "http://e.org/api";
    let date = "2020-01-01T00:00:00Z";
    let mut records = Vec::new();
    for (body, reply) in [("q=1", "one"), ("q=2", "two")] {
        let request = format!(
            "POST /api HTTP/1.1\r\nHost: e.org\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let response = http(url, date, "HTTP/1.1 200 OK\r\nContent-Type: application/json", reply.as_bytes());
        let text = String::from_utf8_lossy(&response).into_owned();
        let id = text.lines().find_map(|line| line.strip_prefix("WARC-Record-ID: ")).unwrap();
        let id = format!("WARC-Concurrent-To: {id}\r\nContent-Type: application/http; msgtype=request\r\n");
        records.push(response);
        records.push(crate::tests::record("request", url, date, &id, request.as_bytes()));
    }
    bed.add_gz("post.warc.gz", &records);
    let site = site(&bed);
    for (body, reply) in [("q=1", "one"), ("q=2", "two")] {
        let request = Request::builder()
            .method("POST")
            .uri("/local/2020mp_/http://e.org/api")
            .header("host", "h")
            .header("content-type", "application/x-www-form-urlencoded")
            .body(Body::from(body))
            .unwrap();
        let response = site.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), 200, "{body}");
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), reply);
    }
}

#[tokio::test]
async fn exports_stand_alone_and_hold_what_was_asked_for() {
    let bed = bed();
    let site = site(&bed);
    for (path, status) in [
        ("/local/export/zip?url=e.org", 404),
        ("/local/export/warc", 400),
        ("/local/export/warc?url=e.org&matchType=odd", 400),
        ("/local/export/warc?url=e.org&from=x", 400),
    ] {
        assert_eq!(get(&site, path).await.0, status, "{path}");
    }
    // Only the last capture, which is a revisit: its original comes along.
    let response = ask(&site, "GET", "/local/export/warc?url=http://e.org/&from=20200110", &[]).await;
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    let mut reader = warc::Reader::from_bytes(bytes.to_vec()).unwrap();
    let mut seen = Vec::new();
    while let Some(mut record) = reader.next().unwrap() {
        record.finish().unwrap();
        assert!(record.problems().is_empty(), "{:?}", record.problems());
        seen.push((record.kind(), record.date().map(|date| date.digits14())));
    }
    assert_eq!(seen.len(), 3, "{seen:?}");
    assert_eq!(seen[0].0, warc::RecordType::Warcinfo);
    assert_eq!(seen[1], (warc::RecordType::Response, Some(*b"20200101000000")));
    assert_eq!(seen[2], (warc::RecordType::Revisit, Some(*b"20200110120000")));

    // A package is read back in place and replays the same.
    let response = ask(&site, "GET", "/local/export/wacz?url=e.org&matchType=host", &[]).await;
    assert_eq!(response.headers()["content-type"], "application/wacz");
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    let second = Bed::new();
    let path = second.folder.path().join("export.wacz");
    std::fs::write(&path, &bytes).unwrap();
    valid_for_py_wacz(&path);
    let added = crate::local::add(&path, &second.collection.index, &second.files).unwrap();
    assert_eq!((added.captures, added.problems.len()), (8, 0), "{added:?}");
    let again = self::site(&second);
    for path in ["/local/20200110120000id_/http://e.org/", "/local/20200104000000id_/http://e.org/film.mp4"] {
        assert_eq!(get(&again, path).await, get(&site, path).await, "{path}");
    }
    // Its own index speaks of the same places.
    let members = crate::holdings::wacz::members(&path).unwrap();
    let names: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "archive/data.warc.gz",
            "indexes/index.cdx",
            "pages/pages.jsonl",
            "datapackage.json",
            "datapackage-digest.json"
        ]
    );
    let mut lines = String::new();
    std::io::Read::read_to_string(&mut members[1].section.as_ref().unwrap().open().unwrap(), &mut lines)
        .unwrap();
    assert_eq!(lines.lines().count(), 8, "{lines}");
    // Readers of the format need an id and a title on every line, the first included.
    let mut pages = String::new();
    std::io::Read::read_to_string(&mut members[2].section.as_ref().unwrap().open().unwrap(), &mut pages)
        .unwrap();
    let mut ids = std::collections::BTreeSet::new();
    for line in pages.lines() {
        let page: serde_json::Value = serde_json::from_str(line).unwrap();
        for name in ["id", "title"] {
            assert!(page[name].as_str().is_some_and(|text| !text.trim().is_empty()), "{name}: {line}");
        }
        assert!(ids.insert(page["id"].to_string()), "one id, one page: {line}");
    }
    assert_eq!(ids.len(), 5, "{pages}");
}

/// The validator of those who wrote the format. `GRANGE_TEST_PYTHON` names a Python that has it installed.
fn valid_for_py_wacz(path: &std::path::Path) {
    let python = std::env::var_os("GRANGE_TEST_PYTHON");
    let has_wacz = python.as_ref().filter(|python| {
        let import = std::process::Command::new(python).args(["-c", "import wacz"]).output();
        import.is_ok_and(|done| done.status.success())
    });
    let Some(python) = has_wacz else {
        return grange_testkit::skipped("the Python of the judges with wacz (GRANGE_TEST_PYTHON)");
    };
    let program = "import sys; from wacz.main import main; sys.exit(main(['validate', '-f', sys.argv[1]]))";
    let done = std::process::Command::new(python).args(["-c", program]).arg(path).output().unwrap();
    let told = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success() && told.contains("Validation succeeded"), "{told}");
}

#[tokio::test]
async fn pages_speak_the_language_of_the_reader() {
    let bed = bed();
    let site = site(&bed);
    for (path, lang, said) in [
        ("/local/", "da", "Adressen på en side"),
        ("/local/*/http://e.org/", "da-DK, en;q=0.5", "januar"),
        ("/local/*/http://e.org/", "de", "3 Aufnahmen"),
        ("/local/20200101000000/http://e.org/", "fr", "janvier"),
        ("/local/2020/http://e.org/none", "it", "lang=\"it\""),
        ("/local/*/http://e.org/*", "sv, de;q=0.1", "lang=\"de\""),
        ("/local/", "sv", "Address of a page"),
    ] {
        let response = ask(&site, "GET", path, &[("accept-language", lang)]).await;
        assert_eq!(response.headers()["vary"], "accept-language", "{path}");
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let body = String::from_utf8_lossy(&body);
        assert!(body.contains(said), "{path} in {lang}:\n{body}");
    }
    // What was captured is the same for everybody.
    let path = "/local/20200101000000mp_/http://e.org/";
    let response = ask(&site, "GET", path, &[("accept-language", "da")]).await;
    assert!(!response.headers().contains_key("vary"));
}

/// A URL can have any number of captures: what looks at all of them is no work for the threads that answer everybody.
#[tokio::test]
async fn captures_are_counted_beside_the_threads_that_answer() {
    use futures_util::FutureExt as _;
    let bed = bed();
    let site = site(&bed);
    for path in [
        "/local/*/http://e.org/",
        "/local/*/http://e.org/*",
        "/local/*/http://e.org/?grange-view=list",
        "/local/20200101*/http://e.org/",
        "/local/timemap/link/http://e.org/",
        "/local/20200101000000/http://e.org/",
    ] {
        let others = crate::lookup_pool::occupied().await;
        assert!(ask(&site, "GET", path, &[]).now_or_never().is_none(), "{path} is answered on this thread");
        drop(others);
        assert_eq!(get(&site, path).await.0, 200, "{path}");
    }
    assert!(ask(&site, "GET", "/local/cdx?url=e.org", &[]).now_or_never().is_some(), "a lookup is");
}

/// Lines of other people's indexes may name any record as the original of a revisit.
#[tokio::test]
async fn an_original_that_a_line_names_is_judged_by_its_own_address() {
    // One with a head shows no header of its original, but still its content.
    for head in ["", HTML] {
        check_a_named_original(head).await;
    }
}

async fn check_a_named_original(head: &str) {
    let date = "2020-01-01T00:00:00Z";
    let secret = gzip(&http("http://secret.org/", date, HTML, b"<p>the secret</p>"));
    let again = gzip(&revisit("http://e.org/", "2020-01-02T00:00:00Z", head, b"nobody has this", ""));
    let bed = Bed::new();
    let path = bed.folder.path().join("a.warc.gz");
    std::fs::write(&path, [secret.clone(), again].concat()).unwrap();
    bed.files.add("a.warc.gz", crate::holdings::Section::whole(path).unwrap());
    let line = format!(
        "org,e)/ 20200102000000 {{\"url\": \"http://e.org/\", \"mime\": \"warc/revisit\", \"status\": \"200\", \
         \"offset\": \"{}\", \"filename\": \"a.warc.gz\", \"orig.filename\": \"a.warc.gz\", \"orig.offset\": \"0\"}}\n",
        secret.len()
    );
    bed.collection.index.load(line.as_bytes(), None).unwrap();
    let block = Decision::Block { message: "Blocked.".into() };
    for (rules, shown) in [(vec![], true), (vec![Rule::new("org,secret)/", block)], false)] {
        bed.collection.set_rules(RuleSet::from(rules));
        let site = site(&bed);
        let (status, _, page) = get(&site, "/local/20200102000000mp_/http://e.org/").await;
        assert_eq!((status, page.contains("the secret")), if shown { (200, true) } else { (451, false) });
        let export = ask(&site, "GET", "/local/export/warc?url=http://e.org/", &[]).await;
        let export = export.into_body().collect().await.unwrap().to_bytes().to_vec();
        let mut reader = warc::Reader::from_bytes(export).unwrap();
        let mut uris = Vec::new();
        while let Some(record) = reader.next().unwrap() {
            uris.extend(record.target_uri().map(|uri| String::from_utf8_lossy(uri).into_owned()));
        }
        let expected =
            if shown { vec!["http://secret.org/", "http://e.org/"] } else { vec!["http://e.org/"] };
        assert_eq!(uris, expected);
    }
}

#[tokio::test]
async fn an_original_that_a_line_names_is_exported_once() {
    let page = gzip(&http("http://e.org/a", "2020-01-01T00:00:00Z", HTML, b"<p>the page</p>"));
    let again = gzip(&revisit("http://e.org/b", "2020-01-02T00:00:00Z", HTML, b"<p>the page</p>", ""));
    let bed = Bed::new();
    let path = bed.folder.path().join("a.warc.gz");
    std::fs::write(&path, [page.clone(), again].concat()).unwrap();
    bed.files.add("a.warc.gz", crate::holdings::Section::whole(path).unwrap());
    let lines = format!(
        "org,e)/a 20200101000000 {{\"url\": \"http://e.org/a\", \"mime\": \"text/html\", \"status\": \"200\", \
         \"offset\": \"0\", \"filename\": \"a.warc.gz\"}}\n\
         org,e)/b 20200102000000 {{\"url\": \"http://e.org/b\", \"mime\": \"warc/revisit\", \"status\": \"200\", \
         \"offset\": \"{}\", \"filename\": \"a.warc.gz\", \"orig.filename\": \"a.warc.gz\", \"orig.offset\": \"0\"}}\n",
        page.len()
    );
    bed.collection.index.load(lines.as_bytes(), None).unwrap();
    let site = site(&bed);
    for (query, expected) in [
        ("url=http://e.org/&matchType=prefix", &["http://e.org/a", "http://e.org/b"]),
        ("url=http://e.org/b", &["http://e.org/a", "http://e.org/b"]),
    ] {
        let export = ask(&site, "GET", &format!("/local/export/warc?{query}"), &[]).await;
        let export = export.into_body().collect().await.unwrap().to_bytes().to_vec();
        let mut reader = warc::Reader::from_bytes(export).unwrap();
        let mut uris = Vec::new();
        while let Some(record) = reader.next().unwrap() {
            uris.extend(record.target_uri().map(|uri| String::from_utf8_lossy(uri).into_owned()));
        }
        assert_eq!(uris, expected, "{query}");
    }
}

/// The same where few captures are visible, or fit, and they come last.
#[tokio::test]
async fn lookups_of_many_captures_wait_for_other_threads() {
    use futures_util::FutureExt as _;
    let bed = bed();
    bed.collection.set_rules(RuleSet::from(crate::tests::add_many(&bed)));
    let site = site(&bed);
    for (path, status) in [
        ("/local/2000id_/http://many.org/", 200),
        ("/local/http://many.org/", 302),
        ("/local/20200101000000mp_/http://many.org/", 200),
        ("/local/20200101000000id_/http://again.org/", 200),
    ] {
        let others = crate::lookup_pool::occupied().await;
        assert!(ask(&site, "GET", path, &[]).now_or_never().is_none(), "{path} is answered on this thread");
        drop(others);
        assert_eq!(get(&site, path).await.0, status, "{path}");
    }
    let path = "/local/20200101000000mp_/http://e.org/";
    let others = crate::lookup_pool::occupied().await;
    assert!(ask(&site, "GET", path, &[]).now_or_never().is_some(), "few captures are looked at in place");
    drop(others);
}

/// An index may not know the type that a record has.
#[tokio::test]
async fn where_only_the_record_is_of_a_hidden_type_the_next_capture_is_shown() {
    let bed = bed();
    let film = "HTTP/1.1 200 OK\r\nContent-Type: video/mp4";
    let (url, only) = ("http://two.org/", "http://one.org/");
    bed.add_gz(
        "two.warc.gz",
        &[
            http(url, "2020-01-01T00:00:00Z", HTML, b"<p>shown</p>"),
            http(url, "2020-01-02T00:00:00Z", film, b"a film"),
            http(only, "2020-01-02T00:00:00Z", film, b"a film"),
        ],
    );
    let mut batch = grange_index::Batch::new();
    let file = "of-lines.warc.gz".to_owned();
    std::fs::copy(bed.folder.path().join("two.warc.gz"), bed.folder.path().join(&file)).unwrap();
    bed.files.add(&file, crate::holdings::Section::whole(bed.folder.path().join(&file)).unwrap());
    for capture in [&bed.captures(url)[..], &bed.captures(only)].concat() {
        batch.add(&grange_index::Capture {
            file: file.clone(),
            mime: Some("text/html".to_owned()),
            ..capture
        });
    }
    bed.collection.index.remove_file("two.warc.gz").unwrap();
    bed.collection.index.commit(batch).unwrap();
    let block = Rule::new("", Decision::Block { message: "No films.".into() });
    bed.collection.set_rules(RuleSet::from(vec![Rule { mime: Some("video/*".to_owned()), ..block }]));
    let site = site(&bed);
    for (path, status, holds) in [
        ("/local/20200102000000id_/http://two.org/", 200, "<p>shown</p>"),
        ("/local/20200102000000mp_/http://two.org/", 302, "/local/20200101000000mp_/http://two.org/"),
        ("/local/20200102000000id_/http://one.org/", 451, "No films."),
    ] {
        let (got, location, body) = get(&site, path).await;
        assert!(
            got == status && (body.contains(holds) || location == holds),
            "{path}: {got} {location}\n{body}"
        );
    }
    let collections = Collections::default();
    let source = &bed.collection;
    let collection = crate::Collection::new("local", source.index.clone(), source.holdings.clone());
    collection.set_rules(source.rules());
    collections.add(collection);
    let secrets = bed.folder.path().join("secrets");
    let proxy = crate::proxy::Proxy::open(collections, Options::default(), &secrets).unwrap();
    for (url, status) in [(url, 200), (only, 451)] {
        let given = crate::proxy::tests::response(&proxy, url, "02 Jan 2020 00:00:00 GMT").await;
        assert_eq!(given.status(), status, "{url}");
    }
}

/// More URLs than one page lists.
#[tokio::test]
async fn a_list_of_urls_goes_on_to_its_end() {
    let bed = bed();
    let mut batch = grange_index::Batch::new();
    let of = bed.captures("http://e.org/")[0].clone();
    for number in 0..=500 {
        let url = format!("http://list.org/x?q={number:03}");
        let surt = grange_index::key(&url);
        batch.add(&grange_index::Capture { surt, url: Some(url), ..of.clone() });
    }
    bed.collection.index.commit(batch).unwrap();
    let site = site(&bed);
    for start in [
        "/local/*/http://list.org/*",
        "/local/2019-2021*/http://list.org/*",
        "/local/*/http://list.org/x?q=*",
    ] {
        let (status, _, body) = get(&site, start).await;
        assert!(status == 200 && body.contains("q=499") && !body.contains("q=500"), "{start}: {status}");
        let next = body.split("rel=\"next\"").next().unwrap().rsplit("href=\"").next().unwrap();
        let next = next.split('"').next().unwrap().replace("&amp;", "&").replace("&#38;", "&");
        let span = start.split("http").next().unwrap();
        assert!(next.starts_with(span), "{start} goes on to {next}");
        let (status, _, body) = get(&site, &next).await;
        assert!(status == 200 && body.contains("q=500") && !body.contains("q=499"), "{next}: {status}");
    }
}
