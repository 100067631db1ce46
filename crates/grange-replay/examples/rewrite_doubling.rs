//! The time per rewriter and token, for a text of one token again and again and for one twice as long:
//! `cargo run --release -p grange-replay --example rewrite_doubling [KILOBYTES]`. Prints the worst first.

use std::time::Duration;

use grange_replay::rewrite::{Kind, Modifier, Options, Place, transform};

/// What each rewriter looks for, and what keeps it looking.
const TOKENS: [(&str, Kind, &[&str]); 6] = [
    ("script", Kind::Js, SCRIPT),
    ("module", Kind::Module, SCRIPT),
    (
        "HTML",
        Kind::Html,
        &[
            "<",
            "<a ",
            "<a b",
            "</a",
            "<!--",
            "-->",
            "<![CDATA[",
            "<?",
            "&",
            "'",
            "\"",
            "=",
            "<a href='",
            "<a href=/x>",
            "<p style='url(",
            "<script>",
            "<script><!--",
            "</script",
            "<style>",
            "<svg><style>",
            "<img srcset='",
            "<iframe srcdoc='",
            "<p onclick='/[",
            "<base href=/x/>",
        ],
    ),
    (
        "CSS",
        Kind::Css,
        &[
            "/*",
            "'",
            "\\",
            "url(",
            "url('",
            "url(/x)",
            "@import",
            "@import '",
            "@namespace url(",
            "image-set(",
        ],
    ),
    (
        "XML",
        Kind::Xml,
        &["<", "<a ", "<!--", "<![CDATA[", "<?", "'", "=", " ", "href='/x'", "<style>", "<style>url(", "&"],
    ),
    ("JSON", Kind::Json, &["/*", "/**/", "{", "[", "(", "a", "\""]),
];

const SCRIPT: &[&str] = &[
    "/",
    "/[",
    "/]",
    "\\/",
    "/*",
    "<!--",
    "'",
    "\"",
    "`",
    "${",
    "{",
    "(",
    "[",
    "let {[",
    "let [",
    "let a=",
    "const a=1,",
    "var ",
    "{var/[",
    "class A{",
    "function f(",
    "async(",
    "import(",
    "export{",
    "this.",
    "location=",
    "(location=1",
    "eval(",
    "x.postMessage(",
    "a=>",
    "case a:",
    "\n-->",
];

fn main() {
    let kilobytes: usize = std::env::args().nth(1).map_or(500, |size| size.parse().expect("a number of kB"));
    let mut rows = Vec::new();
    for (name, kind, tokens) in TOKENS {
        for token in tokens {
            let text = |bytes: usize| format!("window;{}", token.repeat(bytes / token.len()));
            let once = time(kind, &text(kilobytes * 1000));
            let twice = time(kind, &text(kilobytes * 2000));
            rows.push((twice, once, name, token));
        }
    }
    rows.sort_by_key(|row| std::cmp::Reverse(row.0));
    println!("rewriter  token               {kilobytes} kB ms  {} kB ms  factor", 2 * kilobytes);
    for (twice, once, name, token) in rows {
        let (once, twice) = (once.as_secs_f64() * 1e3, twice.as_secs_f64() * 1e3);
        println!("{name:9} {:18} {once:10.2} {twice:11.2} {:7.1}", format!("{token:?}"), twice / once);
    }
}

fn time(kind: Kind, text: &str) -> Duration {
    let place =
        Place::new("http://r", "/c/", "20200102030405", Modifier::Script, "https://example.org/a/b.js");
    let options = Options { callback: Some("f".to_owned()), ..Options::default() };
    let started = on_processor();
    let mut rewriter = transform(kind, &place, Some("utf-8"), &options);
    let mut out = Vec::new();
    for piece in text.as_bytes().chunks(64 * 1024) {
        rewriter.push(piece, &mut out);
    }
    rewriter.finish(&mut out);
    on_processor().checked_sub(started).expect("time goes on")
}

/// How long this thread has run so far.
fn on_processor() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    Duration::from_nanos(text.split(' ').next().and_then(|nanos| nanos.parse().ok()).expect("a number"))
}
