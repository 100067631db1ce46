//! How fast HTML is rewritten, on one core: `cargo run --release -p grange-replay --example rewrite_speed [PAGE.html]`.

use std::fmt::Write as _;
use std::time::Duration;

use grange_replay::rewrite::{Kind, Modifier, Options, Place, transform};

/// Long enough that starting up does not count. Time on the processor, so that a busy machine does not count either.
const RUN: Duration = Duration::from_secs(3);

fn main() {
    let page = match std::env::args().nth(1) {
        Some(path) => std::fs::read(path).expect("the page can be read"),
        None => made_up_page(),
    };
    let place = Place::new(
        "http://localhost:8081",
        "/c/",
        "20200102030405",
        Modifier::Main,
        "https://example.org/a/",
    );
    let (mut bytes, mut pages, mut written) = (0, 0_u64, 0);
    let mut out = Vec::new();
    let started = on_processor();
    while on_processor().checked_sub(started).unwrap() < RUN {
        let mut html = transform(Kind::Html, &place, Some("utf-8"), &Options::default());
        out.clear();
        for piece in page.chunks(64 * 1024) {
            html.push(piece, &mut out);
        }
        html.finish(&mut out);
        bytes += page.len();
        written += out.len();
        pages += 1;
    }
    let seconds = on_processor().checked_sub(started).unwrap().as_secs_f64();
    println!(
        "{} bytes a page, {pages} pages in {seconds:.1} s on the processor: {:.0} MB/s read, {:.0} MB/s written, {:.1} us a page",
        page.len(),
        bytes as f64 / seconds / 1e6,
        written as f64 / seconds / 1e6,
        seconds * 1e6 / pages as f64
    );
}

/// How long this thread has run so far.
fn on_processor() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    Duration::from_nanos(text.split(' ').next().and_then(|nanos| nanos.parse().ok()).expect("a number"))
}

/// About 30 KB in the proportions of a news page: navigation, paragraphs with links, pictures, some script and style.
fn made_up_page() -> Vec<u8> {
    let mut page = String::from(
        "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>A page</title>\
         <link rel=\"stylesheet\" href=\"/css/site.css\"><script src=\"/js/site.js\" async></script>\
         <style>body{margin:0;background:#fff url(/img/back.png)}h1{font-size:2em}</style></head><body>\n",
    );
    for number in 0..40 {
        let _ = writeln!(
            page,
            "<li class=\"nav-item nav-item-{number}\"><a class=\"nav-link\" href=\"/section/{number}\" data-id=\"{number}\">Section {number}</a></li>"
        );
    }
    for number in 0..45 {
        let _ = writeln!(
            page,
            "<article id=\"a{number}\" class=\"teaser teaser--wide\"><img class=\"lazy\" src=\"https://cdn.example.org/{number}.jpg\" width=\"320\" height=\"180\" alt=\"A picture\">\n\
             <h2><a href=\"https://example.org/2020/01/{number}/story.html\">A story about something that happened</a></h2>\n\
             <p>Some text of a length that paragraphs have, telling what happened, to whom, and why that may be of \
             interest to those who read it; then more of the same, with <em>stress</em> and a <a href=\"more.html\">link</a> \
             to something else. Quotes are part of it, as are numbers like 1,234 and names.</p></article>"
        );
    }
    page.push_str(
        "<script>var dataLayer = dataLayer || []; function track(e) { dataLayer.push(arguments); }\n\
         track('page', {title: document.title, url: location.href});</script></body></html>",
    );
    page.into_bytes()
}
