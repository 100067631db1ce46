//! Captures and requests made to break out: none leads elsewhere, none adds a header, none keeps the server busy.

use std::fmt::Write as _;

use grange_base::{Shutdown, Size};
use http_body_util::BodyExt as _;

use super::RewritePool;
use super::tests::{ask, site, site_with};
use crate::cdx::Options;
use crate::rewrite::{POLICY, has_wombat};
use crate::tests::{Bed, gzip, http, revisit};

const T: &str = "2020-01-01T00:00:00Z";
const HTML: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/html";

#[tokio::test]
async fn no_address_leads_out_of_the_archive() {
    let bed = Bed::new();
    bed.add_gz("a.warc.gz", &[http("http://e.org/", T, HTML, b"<p>page</p>")]);
    let site = site(&bed);
    for path in [
        "//evil.org/",
        "/%2f%2fevil.org/",
        "/local//evil.org",
        "/local/\\evil.org",
        "/local/2020mp_//evil.org/",
        "/local/2020mp_/http:/\\evil.org/",
        "/local/2020mp_/https:evil.org",
        "/local/2020mp_/file:///etc/passwd",
        "/local/2020mp_/javascript:alert(1)",
        "/local/2020mp_/data:text/html,x",
        "/local/2020mp_/../../../etc/passwd",
        "/local/2020mp_/http://e.org/../../../x",
        "/static/../../etc/passwd",
        "/static/%2e%2e/%2e%2e/etc/passwd",
        "/local/2020/http://e.org/%0d%0aSet-Cookie:%20a=b",
        "/local/2020/http://e.org/%00",
        "/local/99999999999999mp_/http://e.org/",
        "/local/00000000000000mp_/http://e.org/",
        "/local/20200231mp_/http://e.org/",
        "/local/*/http://e.org/%ff%fe",
        "/local/timemap/link/http://[::1",
        "/local/timemap/xml/http://e.org/",
        "/local/export/wacz?url=%00",
        "/local/cdx?url=http://e.org/&limit=99999999999999999999",
        "/local/2020mp_/http://user:pass@e.org:99999/",
    ] {
        let response = ask(&site, "GET", path, &[]).await;
        assert!(response.status().as_u16() < 500, "{path}: {}", response.status());
        if let Some(to) = response.headers().get("location") {
            let to = to.to_str().unwrap();
            assert!(to.starts_with("/local/"), "{path} leads to {to}");
        }
        assert!(!response.headers().contains_key("set-cookie"), "{path}");
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert!(!body.starts_with(b"root:"), "{path}");
    }
}

#[tokio::test]
async fn a_host_or_forwarding_header_cannot_choose_where_links_lead() {
    let bed = Bed::new();
    bed.add_gz("a.warc.gz", &[http("http://e.org/", T, HTML, b"<p>page</p>")]);
    let site = site(&bed);
    let headers = [
        ("x-forwarded-host", "evil.org"),
        ("x-forwarded-proto", "javascript"),
        ("forwarded", "host=evil.org"),
        ("x-original-url", "/admin"),
    ];
    for path in ["/local/20200101000000/http://e.org/", "/local/20200101000000mp_/http://e.org/", "/local/"] {
        let response = ask(&site, "GET", path, &headers).await;
        assert_eq!(response.status(), 200, "{path}");
        let head = format!("{:?}", response.headers());
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let text = String::from_utf8_lossy(&body);
        assert!(!text.contains("evil.org") && !head.contains("evil.org"), "{path}: {head}\n{text}");
    }
}

#[tokio::test]
async fn redirects_in_a_circle_are_told_one_at_a_time() {
    let bed = Bed::new();
    let to = |url: &str| format!("HTTP/1.1 302 Found\r\nLocation: {url}");
    bed.add_gz(
        "a.warc.gz",
        &[
            http("http://a.org/", T, &to("http://b.org/"), b""),
            http("http://b.org/", T, &to("http://a.org/"), b""),
            http("http://far.org/", T, &to(&format!("http://far.org/{}", "x".repeat(100_000))), b""),
            http("http://odd.org/", T, "HTTP/1.1 302 Found\r\nLocation: http://[::1", b""),
        ],
    );
    let site = site(&bed);
    for (url, location) in [
        ("http://a.org/", Some("/local/20200101000000mp_/http://b.org/")),
        ("http://b.org/", Some("/local/20200101000000mp_/http://a.org/")),
    ] {
        let response = ask(&site, "GET", &format!("/local/20200101000000mp_/{url}"), &[]).await;
        let told = response.headers().get("location").map(|value| value.to_str().unwrap());
        assert_eq!((response.status().as_u16(), told), (302, location), "{url}");
    }
    for url in ["http://far.org/", "http://odd.org/"] {
        let response = ask(&site, "GET", &format!("/local/20200101000000mp_/{url}"), &[]).await;
        assert!(response.status().as_u16() < 600, "{url}");
    }
}

#[tokio::test]
async fn a_page_that_unpacks_without_end_is_cut_off() {
    let bed = Bed::new();
    // Some 300 MB of spaces in 300 KB, as a page that would be rewritten.
    let bomb = gzip(&vec![b' '; 300 << 20]);
    bed.add_gz(
        "b.warc.gz",
        &[http("http://bomb.org/", T, &format!("{HTML}\r\nContent-Encoding: gzip"), &bomb)],
    );
    let site = site(&bed);
    let response = ask(&site, "GET", "/local/20200101000000mp_/http://bomb.org/", &[]).await;
    let mut body = response.into_body();
    let (mut bytes, mut broken) = (0_usize, false);
    while let Some(frame) = body.frame().await {
        match frame {
            Ok(frame) => bytes += frame.into_data().map_or(0, |data| data.len()),
            Err(_) => broken = true,
        }
    }
    assert!(broken && bytes <= (257 << 20), "{bytes} {broken}");
}

/// A record that says it is longer than it is must not show the next one, which a rule may hide.
#[tokio::test]
async fn a_length_that_lies_shows_nothing_of_the_next_record() {
    let first = http("http://e.org/", T, HTML, b"<p>short</p>");
    let secret = http("http://secret.org/", T, HTML, b"<p>hidden</p>");
    let at =
        |text: &[u8]| memchr::memmem::find(text, b"Content-Length: ").unwrap() + b"Content-Length: ".len();
    for claimed in ["400", "100000"] {
        let mut lie = first[..at(&first)].to_vec();
        lie.extend_from_slice(claimed.as_bytes());
        let end = memchr::memmem::find(&first[at(&first)..], b"\r\n").unwrap();
        lie.extend_from_slice(&first[at(&first) + end..]);
        let bed = Bed::new();
        bed.add("lie.warc", &[lie, secret.clone()].concat());
        let site = site(&bed);
        let response = ask(&site, "GET", "/local/20200101000000id_/http://e.org/", &[]).await;
        assert_eq!(response.status(), 200);
        let (mut body, mut bytes, mut is_broken) = (response.into_body(), Vec::new(), false);
        while let Some(frame) = body.frame().await {
            match frame {
                Ok(frame) => bytes.extend(frame.into_data().unwrap_or_default()),
                Err(_) => is_broken = true,
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        assert!(text.contains("short") && !text.contains("hidden"), "{claimed}: {text}");
        assert!(is_broken, "{claimed}: it ends before its length");
    }
}

#[tokio::test]
async fn a_revisit_of_itself_ends() {
    let bed = Bed::new();
    let refers = format!("WARC-Refers-To-Target-URI: http://e.org/\r\nWARC-Refers-To-Date: {T}\r\n");
    bed.add_gz("r.warc.gz", &[revisit("http://e.org/", T, HTML, b"nothing", &refers)]);
    let site = site(&bed);
    let response = ask(&site, "GET", "/local/20200101000000mp_/http://e.org/", &[]).await;
    assert_eq!(response.status(), 503);
}

/// What would take a server long is given up, and leads nowhere but to the archive all the same.
#[tokio::test]
async fn a_body_past_its_budget_passes_unrewritten_and_stays_confined() {
    const JS: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/javascript";
    const CSS: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/css";
    let short = "window.x = 1;".to_owned();
    let long = short.repeat(50_000);
    let page = "<a href=/x>y</a>".repeat(100_000);
    let style = "a{b:url(/x)}".repeat(100_000);
    let bed = Bed::new();
    bed.add_gz(
        "a.warc.gz",
        &[
            http("http://e.org/long.js", T, JS, long.as_bytes()),
            http("http://e.org/short.js", T, JS, short.as_bytes()),
            http("http://e.org/page", T, HTML, page.as_bytes()),
            http("http://e.org/a.css", T, CSS, style.as_bytes()),
        ],
    );
    let rewriting = |budget| RewritePool::new(Size(budget), Shutdown::never());
    let bodies = [
        ("js_/http://e.org/long.js", &long),
        ("js_/http://e.org/short.js", &short),
        ("mp_/http://e.org/page", &page),
        ("cs_/http://e.org/a.css", &style),
    ];
    for (budget, unrewritten) in [(0, [true; 4]), (100_000, [true, false, true, true]), (1 << 30, [false; 4])]
    {
        let site = site_with(&bed, Options { rewriting: rewriting(budget), ..Options::default() });
        for ((path, captured), unrewritten) in bodies.into_iter().zip(unrewritten) {
            let response = ask(&site, "GET", &format!("/local/20200101000000{path}"), &[]).await;
            assert_eq!(response.status(), 200, "{path}");
            assert_eq!(response.headers()["content-security-policy"], POLICY, "{path}");
            let body = response.into_body().collect().await.unwrap().to_bytes();
            let text = String::from_utf8_lossy(&body);
            let whole = text == **captured;
            // A page is rewritten up to where its budget ends.
            let ends = text.ends_with(&captured[captured.len() - captured.len() / 4..]);
            let passed = if path.contains("page") { ends } else { whole };
            assert_eq!(passed, unrewritten || !has_wombat() && path.contains(".js"), "{budget} {path}");
        }
    }
}

/// Scripts that took a lexer the square of their length, on a server with one thread that answers. What they cost is counted:
/// within a budget of some looks at each byte they are rewritten to their ends.
#[tokio::test]
async fn scripts_made_to_be_slow_hold_nobody_up() {
    const JS: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/javascript";
    let scripts = [
        format!("window;{}", "/[".repeat(80_000)),
        format!("window;let {}", "{[".repeat(80_000)),
        format!("window;{}", "`${".repeat(60_000)),
    ];
    let bed = Bed::new();
    let mut records = vec![http("http://e.org/", T, HTML, b"<p>another page</p>")];
    for (number, script) in scripts.iter().enumerate() {
        records.push(http(&format!("http://e.org/{number}.js"), T, JS, script.as_bytes()));
    }
    bed.add_gz("a.warc.gz", &records);
    let rewriting = RewritePool::new(Size::mib(8), Shutdown::never());
    let site = site_with(&bed, Options { rewriting, ..Options::default() });
    let body = async |path: String| {
        let response = ask(&site, "GET", &path, &[]).await;
        assert_eq!(response.status(), 200, "{path}");
        let body = response.into_body().collect().await.unwrap().to_bytes();
        String::from_utf8_lossy(&body).into_owned()
    };
    for (number, script) in scripts.iter().enumerate() {
        let path = format!("/local/20200101000000js_/http://e.org/{number}.js");
        let page = "/local/20200101000000mp_/http://e.org/".to_owned();
        let (one, other, page) = tokio::join!(body(path.clone()), body(path), body(page));
        assert!(page.contains("another page"));
        for rewritten in [one, other] {
            assert_eq!(rewritten != *script, has_wombat(), "{script:.20}: its budget is used up");
        }
    }
}

/// The messages that are logged on this thread.
#[derive(Clone, Default)]
struct Log(std::sync::Arc<std::sync::Mutex<Vec<String>>>);

impl tracing::Subscriber for Log {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        struct Text(String);
        impl tracing::field::Visit for Text {
            fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                // A String never fails to be written to.
                let _ = write!(self.0, " {field}={value:?}");
            }
        }
        let mut text = Text(event.metadata().level().to_string());
        event.record(&mut text);
        self.0.lock().unwrap().push(text.0);
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test]
async fn a_body_past_its_budget_is_logged_once_with_its_address() {
    let bed = Bed::new();
    // One that is rewritten on this thread, one on another, one that comes in pieces.
    let page = |repeated: usize| "<a href=/x>y</a>".repeat(repeated);
    let sizes = [("short", 1_000), ("long", 20_000), ("pieces", 200_000)];
    let records: Vec<Vec<u8>> = sizes
        .iter()
        .map(|(name, repeated)| http(&format!("http://e.org/{name}"), T, HTML, page(*repeated).as_bytes()))
        .collect();
    bed.add_gz("a.warc.gz", &records);
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    for (budget, lines) in [(1_000, 1), (1 << 30, 0)] {
        let rewriting = RewritePool::new(Size(budget), Shutdown::never());
        let site = site_with(&bed, Options { rewriting, ..Options::default() });
        for (name, _) in sizes {
            log.0.lock().unwrap().clear();
            let response =
                ask(&site, "GET", &format!("/local/20200101000000mp_/http://e.org/{name}"), &[]).await;
            response.into_body().collect().await.unwrap();
            let said = log.0.lock().unwrap().clone();
            let about: Vec<&String> =
                said.iter().filter(|line| line.contains("exceeded replay.rewrite_budget")).collect();
            assert_eq!(about.len(), lines, "{name} within {budget}: {said:?}");
            for line in about {
                assert!(line.starts_with("WARN"), "{line}");
                assert!(line.contains(&format!("url=\"http://e.org/{name}\"")), "{line}");
                assert!(line.contains("the rest is served unrewritten"), "{line}");
            }
        }
    }
}
