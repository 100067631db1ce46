//! Twice the text is twice the work: for every rewriter, every token it knows, repeated behind every other.
//!
//! Work is what [`work`] counts, so that no clock decides. A scan to the end of a line or a text that is made once per token
//! shows as a count that grows with the square.

use std::time::Duration;

use super::script::{self, Mode, Source};
use super::*;

/// Looks at a byte that are fair: a script is read twice if it must be, a word is looked at ahead of its turn.
const LOOKS_MAX: u64 = 12;
/// What does not depend on the length: the block around a script.
const FIXED_BYTES: u64 = 4 * 1024;

type Rewrite = fn(&str) -> usize;

fn place() -> Place {
    Place::new("http://r", "/c/", "20200102030405", Modifier::UrlsOnly, "https://example.org/a/b")
}

fn pushed(kind: Kind, text: &str, piece: usize) -> usize {
    let options = Options { callback: Some("f".to_owned()), ..Options::default() };
    let mut transform = transform(kind, &place(), Some("utf-8"), &options);
    let mut out = Vec::new();
    for piece in text.as_bytes().chunks(piece) {
        transform.push(piece, &mut out);
    }
    transform.finish(&mut out);
    out.len()
}

fn scripted(text: &str, rewrite: impl Fn(&str, Source<'_>) -> usize) -> usize {
    let place = place();
    rewrite(text, Source { place: &place, url: None })
}

const CLASSIC: Rewrite =
    |text| scripted(text, |text, source| script::classic(text, source, Mode::Classic).len());
const MODULE: Rewrite = |text| scripted(text, |text, source| script::module(text, source, "/static/").len());
const HANDLER: Rewrite =
    |text| scripted(text, |text, source| script::inline(text, source).map_or(0, |text| text.len()));
const WHICH: Rewrite = |text| usize::from(script::is_module(text));

const SCRIPT: &[&str] = &[
    "/",
    "/[",
    "/[/",
    "/]",
    "\\",
    "\\/",
    "/\\",
    "/*",
    "*/",
    "//",
    "//x\n",
    "<!--",
    "-->",
    "\n",
    "\r\n",
    " ",
    "'",
    "\"",
    "`",
    "${",
    "}",
    "{",
    "(",
    ")",
    "[",
    "]",
    ":",
    ",",
    ";",
    "=",
    "=>",
    ".",
    "...",
    "?.",
    "?",
    "!",
    "*",
    "+",
    "++",
    "#!",
    "#x",
    "@",
    "a",
    "é",
    "\u{2028}",
    "1",
    ".5",
    "1e+",
    "let ",
    "let {[",
    "let [",
    "let a=",
    "const a,",
    "var ",
    "{var ",
    "var top;",
    "class ",
    "class A{",
    "class{m(){",
    "static ",
    "function ",
    "function*",
    "function f(location=",
    "async ",
    "async(",
    "import ",
    "import(",
    "import.",
    "import.meta.url",
    "import a,{",
    "import'./x'",
    "export ",
    "export{",
    "from ",
    "as ",
    "this",
    "this.",
    "this.?",
    "location",
    "location=",
    "{location=1",
    "(location=1",
    "eval",
    "eval(",
    "(eval",
    "window",
    "x.postMessage(",
    "get ",
    "of ",
    "in ",
    "return ",
    "if(",
    "for(",
    "catch(",
    "switch(",
    "do ",
    "while(",
    "case a:",
    "yield ",
    "await ",
    "new ",
];

const HTML: &[&str] = &[
    "<",
    "<!",
    "<!-",
    "<!--",
    "-->",
    "--!>",
    "-",
    ">",
    "<a",
    "<a ",
    "</",
    "</a",
    "</a>",
    "<?",
    "<![CDATA[",
    "]]>",
    "&",
    "&amp;",
    "&#",
    "'",
    "\"",
    "=",
    "= ",
    "/",
    "x",
    " ",
    "\n",
    "a=",
    "a='",
    "a=\"",
    "<a href=/x>",
    "<a href=\"",
    "<a href=../",
    "<a href=../>",
    "<base href=/",
    "<base href=/y/>",
    "<img srcset=\"",
    "/x 1x,",
    "/x (",
    ",",
    "<p style=\"",
    "url(",
    "url(/x)",
    "<p onclick=\"",
    "<set attributename=href values=\"",
    "../x;",
    "this",
    "<a href=\"javascript:",
    "<meta ",
    "<meta charset=",
    "<meta http-equiv=refresh content=\"",
    "0;url=/x",
    "<!DOCTYPE ",
    "<script",
    "<script>",
    "</script",
    "</script>",
    "<script><!--",
    "<script type=module>",
    "<script type=importmap>",
    "<style",
    "<style>",
    "</style",
    "<svg>",
    "<svg><style>",
    "</svg>",
    "<math>",
    "<title>",
    "<textarea>",
    "</textarea",
    "<plaintext>",
    "<noscript>",
    "<iframe srcdoc=\"",
    "<iframe srcdoc='<a href=/x>'>",
    "<template>",
    "\u{0}",
    "é",
];

/// In a page, so that what is gathered is rewritten at its end.
const XHTML: &[&str] = &[
    "<html>",
    "<a ",
    "<a>",
    "</a>",
    "/>",
    "<!--",
    "<!-- -->",
    "-->",
    "<!x>",
    "<![CDATA[",
    "<![CDATA[url(/x)",
    "<![CDATA[url(/x)]]>",
    "]]>",
    "<?",
    "<?a?>",
    "<?xml-stylesheet ",
    "<?xml-stylesheet href='/x'?>",
    "<a href='../x'/>",
    "<a href='&#10;/x'/>",
    "<p style='url(/x)'/>",
    "<iframe srcdoc='<a href=/x>'/>",
    "<style",
    "<style>",
    "<style/>",
    "</style>",
    "<style>url(/x)</style>",
    "<style>url(/x)",
    "<script>",
    "<script type='speculationrules'>",
    "</script>",
    "<meta charset='x'/>",
    "<base href='/y/'/>",
    "url(/x)",
    "&",
    "&amp;",
    "&#",
    "'",
    "\"",
    "=",
    "x",
    " ",
    "\n",
    "é",
];

const CSS: &[&str] = &[
    "/*",
    "*/",
    "/",
    "*",
    "'",
    "\"",
    "\\",
    "\\61 ",
    "\n",
    " ",
    "url(",
    "url(/",
    "url('",
    "url( ",
    "url(/x)",
    "u",
    ")",
    "(",
    "@",
    "@import",
    "@import '/x'",
    "@import url(",
    "@namespace",
    "@namespace url(",
    "image-set(",
    "image-set('/x'",
    ";",
    "{",
    "}",
    "a",
    "é",
    "<!--",
    ",",
    ":",
];

const XML: &[&str] = &[
    "<",
    ">",
    "</",
    "/>",
    "<a",
    "<a ",
    "<a>",
    "</a>",
    "<!--",
    "-->",
    "<!",
    "<!DOCTYPE a [",
    "]>",
    "<![CDATA[",
    "]]>",
    "<?",
    "?>",
    "<?xml-stylesheet ",
    "<?xml-stylesheet href='/x'?>",
    "href=",
    "href='",
    "href='/x'",
    "href=\"",
    "'",
    "\"",
    "=",
    "= ",
    " ",
    "\n",
    ":",
    "a:",
    "&",
    "&amp;",
    "&#",
    "x",
    "é",
    "<style>",
    "<a:style>",
    "</style>",
    "style='",
    "url(",
    "url(/x)",
    "<a href='../x'/>",
    "x:href='/x'",
    "<set attributeName='href' values='",
    "../x;",
];

const JSON: &[&str] = &[
    "/*", "*/", "/**/", " ", "{", "}", "[", "]", "(", ")", "a", ".", "\"", "\\", ",", ":", "1", "f(", "f({",
    "é",
];

/// A list of addresses between semicolons.
const LINKS: &[&str] = &["/x", "x", ";", "; ", " ", "../x;", "#a;", "http://o.org/;", "é"];

const PLAYLIST: &[&str] = &[
    "#",
    "#EXT-X-KEY:",
    "URI=\"",
    "URI=\"/x\"",
    "\"",
    "\n",
    "\r\n",
    "/x\n",
    "http://o.org/x\n",
    "../x\n",
    " ",
    ",",
    "x",
    "é",
];

const SRCSET: &[&str] = &["/x", " ", ",", ", ", "(", ")", "1x", "../x", "\n", "data:,", "é", "/x 1x,"];

/// Every rewriter with what it looks for. Each token follows each other one.
fn rewriters() -> Vec<(&'static str, Rewrite, &'static [&'static str])> {
    vec![
        ("classic script", CLASSIC, SCRIPT),
        ("module", MODULE, SCRIPT),
        ("HTML", |text| pushed(Kind::Html, text, usize::MAX), HTML),
        ("HTML in pieces", |text| pushed(Kind::Html, text, 64), HTML),
        ("XHTML", |text| pushed(Kind::Xhtml, text, usize::MAX), XHTML),
        ("XHTML in pieces", |text| pushed(Kind::Xhtml, text, 64), XHTML),
        ("CSS", |text| pushed(Kind::Css, text, usize::MAX), CSS),
        ("XML", |text| pushed(Kind::Xml, text, usize::MAX), XML),
        ("JSON", |text| pushed(Kind::Json, text, usize::MAX), JSON),
        ("import map", |text| importmap::rewrite(text, &place()).map_or(0, |text| text.len()), JSON),
        ("animated", |text| animated::rewrite(text, &place()).map_or(0, |text| text.len()), LINKS),
        ("playlist", |text| playlist::rewrite(text, &place()).map_or(0, |text| text.len()), PLAYLIST),
        ("srcset", |text| srcset::rewrite(text, &place()).map_or(0, |text| text.len()), SRCSET),
    ]
}

/// Bytes of work, and bytes that came of it.
fn cost(rewrite: Rewrite, text: &str) -> (u64, u64) {
    let before = work::spent();
    let out = rewrite(text) as u64;
    (work::spent() - before, out)
}

/// `None` if the work is in proportion.
fn out_of_proportion(rewrite: Rewrite, once: &str, twice: &str) -> Option<String> {
    let (once_cost, once_out) = cost(rewrite, once);
    let (cost, out) = cost(rewrite, twice);
    let fair = LOOKS_MAX * (twice.len() as u64 + out) + FIXED_BYTES;
    let doubled = |once: u64, twice: u64| twice <= once * 9 / 4 + FIXED_BYTES;
    let is_fair = cost <= fair && doubled(once_cost, cost) && doubled(once_out, out);
    (!is_fair).then(|| {
        format!(
            "{} bytes: {once_cost} looks, {once_out} out; {} bytes: {cost} looks, {out} out",
            once.len(),
            twice.len()
        )
    })
}

/// Enough for a square to stand out against [`FIXED_BYTES`] and [`LOOKS_MAX`].
const TIMES: usize = 100;

/// These read scripts as the others do, so that one token behind nothing will do.
const ALONE: [(&str, Rewrite); 2] = [("event handler", HANDLER), ("is it a module", WHICH)];

/// One header of an answer.
fn header(name: &str, value: &str) -> usize {
    let archived = [(name.as_bytes(), value.as_bytes())];
    headers(archived, &place(), Kind::Html).iter().map(|(_, value)| value.len()).sum()
}

const HEADERS: [(&str, Rewrite, &[&str]); 4] = [
    (
        "Link",
        |text| header("link", text),
        &["<", ">", "</x>", "<../x>; ", ",", ";", "rel=stylesheet", "as=", " ", "\"", "x"],
    ),
    ("Refresh", |text| header("refresh", text), &["1", ";", ",", "url=", "'", "\"", " ", "/x", "."]),
    (
        "Set-Cookie",
        |text| header("set-cookie", text),
        &["a=b", ";", "; path=/", "path=", "; domain=e.org", "=", " ", ","],
    ),
    ("Location", |text| header("location", text), &["/", "../", "http://", "?", "#", "%", "x", ":", "@"]),
];

#[test]
fn twice_the_tokens_are_twice_the_work() {
    let mut found = Vec::new();
    let mut cases = 0;
    let all = rewriters().into_iter().map(|(name, rewrite, tokens)| (name, rewrite, tokens, tokens));
    let none: &[&str] = &[];
    let alone = ALONE.into_iter().map(|(name, rewrite)| (name, rewrite, none, SCRIPT));
    for (name, rewrite, prefixes, tokens) in all.chain(alone) {
        for prefix in prefixes.iter().chain(&[""]) {
            for token in tokens {
                let text = |times: usize| format!("{prefix}{}", token.repeat(times));
                cases += 1;
                if let Some(why) = out_of_proportion(rewrite, &text(TIMES), &text(2 * TIMES)) {
                    found.push(format!("{name}: {prefix:?} and then {token:?} again and again: {why}"));
                }
                // Both of them again and again.
                let text = |times: usize| format!("{prefix}{token}").repeat(times);
                if let Some(why) = out_of_proportion(rewrite, &text(TIMES / 2), &text(TIMES)) {
                    found.push(format!("{name}: {prefix:?} {token:?} again and again: {why}"));
                }
            }
        }
    }
    assert!(cases > 20_000, "{cases}");
    assert!(found.is_empty(), "{} of {cases}:\n{}", found.len(), found.join("\n"));
}

/// Time that this thread spent on a processor: what others do on the machine does not count.
fn thread_time() -> Duration {
    // The kernel adds to the number when the thread passes through its scheduler.
    std::thread::yield_now();
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(stat.split(' ').next().unwrap().parse().unwrap())
}

fn time_of(rewrite: Rewrite, text: &str) -> Duration {
    let before = thread_time();
    std::hint::black_box(rewrite(text));
    thread_time().saturating_sub(before)
}

const SHORT_BYTES: usize = 32 << 10;
/// Four times the text may take so many times as long. A square takes 16 times.
const GROWTH_MAX: u32 = 8;
/// What no growth is seen below: memory that is new to the process, caches that are cold.
const SLACK: Duration = Duration::from_millis(2);
/// Runs until a suspicion counts. Each can only be too slow, so the fastest of them says what the work takes.
const RUNS_MAX: usize = 12;

/// The times for a text and for one four times as long, where they are not in proportion.
fn grows_too_fast(rewrite: Rewrite, unit: &str) -> Option<(Duration, Duration)> {
    let text = |bytes: usize| unit.repeat(bytes / unit.len());
    let (short, long) = (text(SHORT_BYTES), text(4 * SHORT_BYTES));
    let (mut fast, mut slow) = (Duration::MAX, Duration::MAX);
    for _ in 0..RUNS_MAX {
        fast = fast.min(time_of(rewrite, &short));
        slow = slow.min(time_of(rewrite, &long));
        if slow <= fast * GROWTH_MAX + SLACK {
            return None;
        }
    }
    Some((fast, slow))
}

/// Work that nobody counts with [`work::spend`] takes time all the same.
#[test]
fn four_times_the_tokens_take_no_sixteen_times_the_time() {
    // Again and again a look at all the rest, and none of it counted.
    let square: Rewrite = |text| {
        let bytes = text.as_bytes();
        (0..bytes.len()).step_by(8).filter(|at| memchr::memchr(0, &bytes[*at..]).is_some()).count()
    };
    assert!(grows_too_fast(square, "x").is_some(), "a square is not seen");
    let alone = ALONE.into_iter().map(|(name, rewrite)| (name, rewrite, SCRIPT));
    let mut found = Vec::new();
    for (name, rewrite, tokens) in rewriters().into_iter().chain(alone).chain(HEADERS) {
        for token in tokens {
            if let Some((short, long)) = grows_too_fast(rewrite, token) {
                found
                    .push(format!("{name}: {token:?} again and again: {short:?}, four times of it {long:?}"));
            }
        }
    }
    assert!(found.is_empty(), "{}:\n{}", found.len(), found.join("\n"));
}

#[test]
fn a_link_to_a_long_address_does_not_fill_the_memory() {
    let long = format!("https://example.org/{}/b/c", "a".repeat(1 << 20));
    let place = Place::new("", "/c/", "20200102030405", Modifier::UrlsOnly, &long);
    for (kind, text) in [
        (Kind::Css, "a{b:url(../x)}"),
        (Kind::Xml, "<a href='../x'/>"),
        (Kind::Html, "<a href='../x'/>"),
        (Kind::Xhtml, "<a href='../x'/>"),
        (Kind::Xhtml, "<style>a{b:url(../x)}</style>"),
        (Kind::Xhtml, "<?xml-stylesheet href='../x'?>"),
        (Kind::Html, "<p style='a:url(../x)'>"),
        (Kind::Html, "<img srcset='../x'>"),
    ] {
        let text = text.repeat(4096);
        let mut transform = transform(kind, &place, Some("utf-8"), &Options::default());
        let mut out = Vec::new();
        transform.push(text.as_bytes(), &mut out);
        transform.finish(&mut out);
        assert!(out.len() < 8 << 20, "{kind:?}: {}", out.len());
        assert!(out.ends_with(&text.as_bytes()[text.len() - 100..]), "{kind:?}: the rest passes");
    }
    let source = Source { place: &place, url: Some(&long) };
    for text in ["import('x');", "import '../x';", "eval(x);"] {
        let text = text.repeat(100_000);
        for out in [script::classic(&text, source, Mode::Classic), script::module(&text, source, "/static/")]
        {
            assert!(out.len() <= text.len() * 5 + (4 << 20), "{}", out.len());
        }
    }
}
