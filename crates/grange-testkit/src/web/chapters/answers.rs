//! What servers answer: statuses, header links, framings, codings, pauses, sizes, and the same body in many places.

use std::time::Duration;

use crate::web::answer::{Answer, Body, Framing, Pace};
use crate::web::coding::Coding;
use crate::web::dice;
use crate::web::leaf::leaf;
use crate::web::place::Place::{AHref, ContentLocation, ImgSrc, LinkHeader, LinkPreload, RefreshHeader};
use crate::web::site::Builder;

/// A body that is the same on every site: its digest is met again and again.
const SHARED: &str = "<!DOCTYPE html>\n<html><body><p>The same everywhere.</p></body></html>\n";
/// A body that does not fit in anybody's buffer; small enough to be sent in a moment.
const LARGE_BYTES: u64 = 1_500_000;

pub(super) fn write(site: &mut Builder, index: &str) {
    let leaf_of = |site: &Builder, path: &str| leaf(site.seed, site.index, path);
    let html = |text: &str| format!("<html><body><p>{text}</p></body></html>\n");
    let mut answers = vec![
        ("/answers/204", Answer::new(204, "", "")),
        ("/answers/404.html", Answer::new(404, "text/html", html("Not found"))),
        ("/answers/410.html", Answer::new(410, "text/html", html("Gone for good"))),
        ("/answers/500.html", Answer::new(500, "text/html", html("It broke"))),
        // Says 200 and means 404.
        ("/answers/soft-404.html", Answer::html(html("Page not found"))),
        ("/answers/empty.txt", Answer::new(200, "text/plain", "")),
        ("/answers/no-type", Answer::new(200, "", "Bytes of some kind.\n")),
        (
            "/answers/chunked.txt",
            leaf_of(site, "/answers/chunked.txt").framed(Framing::Chunked { trailers: false }),
        ),
        (
            "/answers/trailers.bin",
            leaf_of(site, "/answers/trailers.bin").framed(Framing::Chunked { trailers: true }),
        ),
        ("/answers/until-close.html", leaf_of(site, "/answers/until-close.html").framed(Framing::UntilClose)),
        ("/answers/http-1.0.html", leaf_of(site, "/answers/http-1.0.html").framed(Framing::Http10)),
        ("/answers/closing.html", Answer { close: true, ..leaf_of(site, "/answers/closing.html") }),
        (
            "/answers/slow.html",
            leaf_of(site, "/answers/slow.html").paced(Pace::After(Duration::from_millis(150))),
        ),
        (
            "/answers/drip.bin",
            leaf_of(site, "/answers/drip.bin")
                .paced(Pace::Drip { piece_bytes: 60, every: Duration::from_millis(10) }),
        ),
        (
            "/answers/dated.html",
            Answer {
                validators: Some(("\"v1\"".into(), "Tue, 02 Jan 2024 12:00:00 GMT".into())),
                ..leaf_of(site, "/answers/dated.html")
            },
        ),
        // The same body under two names, and on all sites.
        ("/answers/same-1.html", Answer::html(SHARED)),
        ("/answers/same-2.html", Answer::html(SHARED)),
    ];
    for (path, coding) in [
        ("/answers/gzip.html", Coding::Gzip),
        ("/answers/deflate.html", Coding::Deflate),
        ("/answers/br.html", Coding::Br),
    ] {
        answers.push((path, Answer::html(html(&dice::prose(1, 3_000))).coded(coding, false)));
    }
    // Sent although nobody offered it, and in chunks.
    answers.push((
        "/answers/forced.html",
        Answer::html(html("Squeezed")).coded(Coding::Gzip, true).framed(Framing::Chunked { trailers: false }),
    ));
    // A large body on one site in eight: thousands of hosts would make thousands of them.
    if site.index.is_multiple_of(8) {
        let body = Body::Stream { seed: dice::mix(&[site.seed, site.index as u64, 6]), bytes: LARGE_BYTES };
        let large = Answer { body, ..Answer::new(200, "application/octet-stream", "") };
        answers.push(("/answers/large.bin", large.clone()));
        answers.push(("/answers/large-chunked.bin", large.framed(Framing::Chunked { trailers: false })));
    }
    let mut page = site.document();
    for (path, answer) in answers {
        page.plant(&format!("<a href=\"{path}\">{path}</a>"), &[(AHref, path)]);
        site.put_leaf(path, answer);
    }
    page.plant("<a href=\"headers.html\">headers</a>", &[(AHref, "/answers/headers.html")]);
    headers(site);
    site.page(index, "Answers", page);

    // What other sites embed.
    site.put_leaf("/shared/pixel.gif", leaf(0, 0, "/shared/pixel.gif"));
    let mut frame = site.document();
    frame.plant("<img src=\"inner.png\" alt=\"\">", &[(ImgSrc, "/shared/inner.png")]);
    frame.plant("<a href=\"inner.html\">out of scope from elsewhere</a>", &[(AHref, "/shared/inner.html")]);
    site.page("/shared/frame.html", "Framed", frame);
}

fn headers(site: &mut Builder) {
    let mut links = site.document();
    links.record(&[
        (LinkHeader, "/answers/next.html"),
        (LinkPreload, "/answers/early.css"),
        (ContentLocation, "/answers/headers.en.html"),
        (RefreshHeader, "/answers/refreshed.html"),
    ]);
    let answer = Answer::html("<html><body><p>See the headers.</p></body></html>\n")
        .header("Link", "<next.html>; rel=\"next\", </answers/early.css>; rel=preload; as=style")
        .header("Content-Location", "/answers/headers.en.html")
        .header("Refresh", "3600; url=refreshed.html");
    site.put("/answers/headers.html", answer, links);
}
