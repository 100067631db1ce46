//! How long link extraction takes, per document and per byte.
//!
//! `cargo run --release -p grange-crawl --example extract_speed [FILE [CONTENT-TYPE]]`: a page of 10 KB with ten links, a
//! style block and a script, the same from a reader, a style sheet, a script and a sitemap; or the file named.

use std::fmt::Write;
use std::time::{Duration, Instant};

use grange_crawl::extract::{Body, Document, Role, Settings, extract};
use grange_crawl::robots::Robots;
use url::Url;

fn main() {
    let mut arguments = std::env::args().skip(1);
    if let Some(file) = arguments.next() {
        let content_type = arguments.next().unwrap_or_else(|| "text/html".to_owned());
        let body = std::fs::read(&file).unwrap_or_else(|error| panic!("reading {file}: {error}"));
        return measure(&file, &content_type, &body);
    }
    let page = page();
    measure("page", "text/html; charset=utf-8", page.as_bytes());
    measure("page, charset unsaid", "text/html", page.replace("<meta charset=utf-8>", "").as_bytes());
    let css: String = (0..200).fold(String::new(), |mut css, n| {
        let _ = writeln!(
            css,
            ".class-{n} > p {{ margin: 0 auto; color: #333333; background: url(img/{n}.png) }}"
        );
        css
    });
    measure("style sheet", "text/css", css.as_bytes());
    let script: String = (0..200).fold(String::new(), |mut script, n| {
        let _ = writeln!(
            script,
            "function f{n}(a, b) {{ return a['key{n}'] + \"text {n}\" + b; }} var u{n} = '/api/{n}.json';"
        );
        script
    });
    measure("script", "text/javascript", script.as_bytes());
    let entries: String = (0..1000).fold(String::new(), |mut entries, n| {
        let _ = writeln!(
            entries,
            "<url><loc>http://example.com/page/{n}.html</loc><lastmod>2026-01-01</lastmod></url>"
        );
        entries
    });
    measure("sitemap", "text/xml", format!("<urlset>{entries}</urlset>").as_bytes());

    let rules: String = (0..100).fold("User-agent: *\n".to_owned(), |mut rules, n| {
        let _ = writeln!(rules, "Disallow: /private/{n}/*.html");
        rules
    });
    let robots = Robots::parse(rules.as_bytes(), "grange");
    time("robots.txt of 100 rules, one path", rules.len(), || {
        usize::from(std::hint::black_box(&robots).allows("/public/page.html?x=1").allowed)
    });
    time("robots.txt of 100 rules, parsing", rules.len(), || {
        Robots::parse(rules.as_bytes(), "grange").rules().len()
    });
}

fn measure(name: &str, content_type: &str, body: &[u8]) {
    let url = Url::parse("http://example.com/dir/page.html").expect("a URL");
    time(name, body.len(), || links(&url, content_type, Body::Bytes(body)));
    time(&format!("{name}, from a reader"), body.len(), || {
        links(&url, content_type, Body::Read(&mut &*body))
    });
}

fn links<'a>(url: &'a Url, content_type: &'a str, body: Body<'a>) -> usize {
    let document = Document { url, content_type: Some(content_type), headers: &[], role: Role::Any, body };
    extract(document, &Settings::default()).links.len()
}

/// The shortest of many runs: other work on the machine only adds.
fn time(name: &str, bytes: usize, mut once: impl FnMut() -> usize) {
    let mut best = Duration::MAX;
    let mut found = 0;
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(700) {
        let run = Instant::now();
        found = once();
        best = best.min(run.elapsed());
    }
    let rate = bytes as f64 / 1e6 / best.as_secs_f64();
    println!(
        "{name:40} {bytes:>8} bytes {found:>5} found {:>9.1} us {rate:>7.0} MB/s",
        best.as_secs_f64() * 1e6
    );
}

fn page() -> String {
    let mut page = "<!doctype html><html lang=en><head><meta charset=utf-8><title>A page</title>\
        <link rel=stylesheet href=/s.css><style>body{background:url(/bg.png);color:#333} .a .b > p { margin: 0 auto }</style>\
        <script>var a = \"hello\"; function f(x){ return x + 1; } var u = '/api/data.json'; g('<p>hi</p>');</script>\
        </head><body class=\"main page\">"
        .to_owned();
    let mut line = 0;
    while page.len() < 10_200 {
        line += 1;
        if line % 6 == 0 && line <= 60 {
            let _ = writeln!(
                page,
                "<p><a class=\"link\" href=\"/page/{line}.html?a=1&amp;b=2\">Link {line}</a> and words</p>"
            );
        } else {
            page.push_str(
                "<div class=\"para text\"><p>Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod \
                 tempor incididunt ut labore &amp; dolore.</p></div>\n",
            );
        }
    }
    page.push_str("<img src=/a.png alt=''></body></html>");
    page
}
