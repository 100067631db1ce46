//! Answers that are not HTTP as it should be (profile wild), byte for byte.

use crate::web::answer::{Answer, Ending};
use crate::web::place::Place::AHref;
use crate::web::site::Builder;
use crate::web::traps::ENTRANCES;

pub(super) fn write(site: &mut Builder, index: &str) {
    let mut page = site.document();
    for (name, bytes, ending) in answers() {
        let path = format!("/broken/{name}");
        page.plant(&format!("<a href=\"{path}\">{path}</a>"), &[(AHref, &path)]);
        site.put_leaf(&path, Answer::wire(bytes, ending));
    }
    for entrance in ENTRANCES {
        let written = entrance.replace('&', "&amp;");
        page.plant(&format!("<a href=\"{written}\">on and on</a>"), &[(AHref, entrance)]);
    }
    site.page(index, "Wild things", page);
}

/// Name, bytes on the wire, and what follows them.
fn answers() -> Vec<(&'static str, Vec<u8>, Ending)> {
    let text = |text: &str| text.as_bytes().to_vec();
    let headers_of = |line: &str, count: usize| {
        let mut bytes = b"HTTP/1.1 200 OK\r\n".to_vec();
        bytes.extend(line.repeat(count).bytes());
        bytes.extend_from_slice(b"Content-Length: 2\r\nConnection: close\r\n\r\nok");
        bytes
    };
    let ok = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n";
    vec![
        ("cut-body", text(&format!("{ok}Content-Length: 1000\r\n\r\n<p>half a")), Ending::Close),
        ("reset-body", text(&format!("{ok}Content-Length: 1000\r\n\r\n<p>half a")), Ending::Reset),
        ("stalled-body", text(&format!("{ok}Content-Length: 1000\r\n\r\n<p>half a")), Ending::Silence),
        ("silent", Vec::new(), Ending::Silence),
        ("empty-reply", Vec::new(), Ending::Close),
        ("reset", Vec::new(), Ending::Reset),
        ("cut-head", text("HTTP/1.1 200 OK\r\nContent-Ty"), Ending::Close),
        ("long-body", text(&format!("{ok}Content-Length: 4\r\n\r\n<p>more than said</p>")), Ending::Close),
        ("bad-length", text(&format!("{ok}Content-Length: many\r\n\r\n<p>x</p>")), Ending::Close),
        ("negative-length", text(&format!("{ok}Content-Length: -5\r\n\r\n<p>x</p>")), Ending::Close),
        (
            "two-lengths",
            text(&format!("{ok}Content-Length: 8\r\nContent-Length: 4\r\n\r\n<p>x</p>")),
            Ending::Close,
        ),
        ("no-status-line", text("Content-Type: text/html\r\n\r\n<p>x</p>"), Ending::Close),
        ("http-0.9", text("<html><body>no head at all</body></html>\n"), Ending::Close),
        ("bad-status", text("HTTP/1.1 abc Fine\r\nContent-Length: 2\r\n\r\nok"), Ending::Close),
        (
            "no-reason",
            text("HTTP/1.1 200\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"),
            Ending::Close,
        ),
        (
            "lf-only",
            text("HTTP/1.1 200 OK\nContent-Type: text/plain\nContent-Length: 2\nConnection: close\n\nok"),
            Ending::Close,
        ),
        (
            "header-junk",
            text(&format!(
                "{ok}this is no header\r\n: nameless\r\nX Y: z\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
            )),
            Ending::Close,
        ),
        (
            "folded-header",
            text(
                "HTTP/1.1 200 OK\r\nX-Long: one\r\n two\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok",
            ),
            Ending::Close,
        ),
        (
            "binary-header",
            b"HTTP/1.1 200 OK\r\nX-Raw: \xFF\xFE\x80\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
                .to_vec(),
            Ending::Close,
        ),
        (
            "bad-chunk-size",
            text(&format!("{ok}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\nworld\r\n0\r\n\r\n")),
            Ending::Close,
        ),
        (
            "cut-chunk",
            text(&format!("{ok}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nff\r\nwor")),
            Ending::Close,
        ),
        (
            "huge-chunk-size",
            text(&format!("{ok}Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nx")),
            Ending::Close,
        ),
        (
            "no-last-chunk",
            text(&format!("{ok}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")),
            Ending::Close,
        ),
        (
            "chunked-and-length",
            text(&format!(
                "{ok}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
            )),
            Ending::Close,
        ),
        (
            "not-gzip",
            text(&format!(
                "{ok}Content-Encoding: gzip\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"
            )),
            Ending::Close,
        ),
        ("long-header", headers_of(&format!("X-Long: {}\r\n", "x".repeat(200_000)), 1), Ending::Close),
        ("many-headers", headers_of("X-Many: yes\r\n", 5_000), Ending::Close),
        (
            "continue-first",
            text(
                "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok",
            ),
            Ending::Close,
        ),
    ]
}
