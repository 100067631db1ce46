//! Pages through the rewriter, judged by tables and by html5gum, which follows the standard to the letter.

use std::collections::BTreeMap;
use std::io::Read as _;

use encoding_rs::{SHIFT_JIS, UTF_8, WINDOWS_1252};
use html5gum::{DefaultEmitter, State as GumState, Token as Gum, Tokenizer};
use proptest::prelude::*;

use super::*;
use crate::rewrite::attributes::{Around, Change, change, known};
use crate::rewrite::modifier::Modifier;
use crate::tests::samples::samples;

/// Addresses only: nothing is put into the head, and scripts stay as they are.
fn place() -> Place {
    Place::new("", "/c/", "20200102030405", Modifier::UrlsOnly, "https://example.org/a/page.html")
}

fn rewritten(page: &[u8], encoding: &'static Encoding, certain: bool, piece: usize) -> Vec<u8> {
    let mut html = Box::new(Html::new(&place(), Dialect::Browser, encoding, certain, &Options::default()));
    let mut out = Vec::new();
    for piece in page.chunks(piece) {
        html.push(piece, &mut out);
    }
    html.finish(&mut out);
    out
}

/// `{m}` in an expectation stands for the start of a link with modifier `m`, to the page's own site.
fn expand(text: &str) -> String {
    ["mp_", "im_", "oe_", "js_"].into_iter().fold(text.to_owned(), |text, modifier| {
        text.replace(&format!("{{{modifier}}}"), &format!("/c/20200102030405{modifier}/https://example.org"))
    })
}

#[test]
fn attributes_change_where_they_stand() {
    for (page, expected) in [
        // Of several with one name browsers take the first.
        ("<a href=/x HREF=/y>", "<a href=\"{mp_}/x\" HREF=/y>"),
        ("<a ping=/x class=y PING='/z'>", "<a _ping=/x class=y _PING='/z'>"),
        ("<a  class=x\n href = '/x'\ttitle=\"y\" >", "<a  class=x\n href=\"{mp_}/x\"\ttitle=\"y\" >"),
        ("<a href='/x'title=y>", "<a href=\"{mp_}/x\"title=y>"),
        ("<a href=/x/>", "<a href=\"{mp_}/x/\">"),
        ("<a href=/x />", "<a href=\"{mp_}/x\" />"),
        ("<a href='/x?a=\"&amp;b=&#39;&copy=c'>", "<a href=\"{mp_}/x?a=&quot;&amp;b='&amp;copy=c\">"),
        ("<a\u{0}b href=/x>", "<a\u{0}b href=\"{mp_}/x\">"),
        ("<a hr\u{0}ef=/x>", "<a hr\u{0}ef=/x>"),
        ("<A HREF=>", "<A HREF=>"),
        ("<a / href=/x>", "<a / href=\"{mp_}/x\">"),
        ("<ä href=/x>", "<ä href=/x>"),
        ("<a\rhref=/x\r>", "<a\rhref=\"{mp_}/x\"\r>"),
    ] {
        let out = rewritten(page.as_bytes(), UTF_8, true, usize::MAX);
        assert_eq!(String::from_utf8(out).unwrap(), expand(expected), "{page}");
    }
}

#[test]
fn what_browsers_take_for_text_passes() {
    for text in [
        "<!-- <a href=/x> -->",
        "<!--[if IE]><a href=/x><![endif]-->",
        "<!--><!--->",
        "<! <a href=/x>",
        "<? <a href=/x>",
        "</ <a href=/x>",
        "<textarea><a href=/x></textarea>",
        "<title><a href=/x></title>",
        "<iframe><a href=/x></iframe>",
        "<xmp><a href=/x></xmp>",
        "<noscript><img src=/x></noscript>",
        "<noframes><a href=/x></noframes>",
        "<script><!-- <script> <a href=/x> </script> <a href=/y> --></script>",
        "<script type=text/template><a href=/x></script>",
        "<svg><style/>a{b:url(/x)}</svg>",
        "<svg><g>a{b:url(/x)}</g></svg>",
        "<svg><![CDATA[ <a href=/x> ]]></svg>",
    ] {
        let page = format!("{text}<a href=/z>");
        let expected = format!("{text}{}", expand("<a href=\"{mp_}/z\">"));
        let out = rewritten(page.as_bytes(), UTF_8, true, usize::MAX);
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
    for page in
        ["<plaintext><a href=/x></plaintext><a href=/x>", "<a href=/x", "<a href='/x>", "<!-- <a href=/x>"]
    {
        assert_eq!(rewritten(page.as_bytes(), UTF_8, true, usize::MAX), page.as_bytes());
    }
}

#[test]
fn inside_svg_links_are_links() {
    for (page, expected) in [
        (
            "<svg><script href=/x.js /><image href=/i>",
            "<svg><script href=\"{js_}/x.js\" /><image href=\"{im_}/i\">",
        ),
        ("<svg><style><a href=/x></style>", "<svg><style><a href=\"{mp_}/x\"></style>"),
        (
            "<svg><foreignObject><style>a{b:url(/x)}</style>",
            "<svg><foreignObject><style>a{b:url({oe_}/x)}</style>",
        ),
        (
            "<svg><title><a href=/x></title></svg><title><a href=/x>",
            "<svg><title><a href=\"{mp_}/x\"></title></svg><title><a href=/x>",
        ),
    ] {
        let out = rewritten(page.as_bytes(), UTF_8, true, usize::MAX);
        assert_eq!(String::from_utf8(out).unwrap(), expand(expected), "{page}");
    }
}

#[test]
fn values_stay_in_the_charset_of_the_page() {
    let link = |rest: &[u8]| [b"<a href=\"/c/20200102030405mp_/https://example.org/", rest, b"\">"].concat();
    // What the charset lacks becomes a reference.
    assert_eq!(rewritten(b"<a href=/\xe9&#8594;>", WINDOWS_1252, true, 99), link(b"\xe9&#8594;"));
    // The second byte of the letter is a backslash in ASCII, which would lead up.
    let page = b"<a href=/\x95\x5c>";
    assert_eq!(rewritten(page, SHIFT_JIS, true, 99), link(b"\x95\x5c"));
    assert_eq!(rewritten(page, WINDOWS_1252, false, 99), link(b"%E2%80%A2/"));
    for meta in [
        &b"<meta charset=Shift_JIS>"[..],
        b"<META content='text/html; charset=shift_jis' http-equiv=Content-Type>",
        b"<meta charset=utf-16><meta charset=nonsense><meta charset=sjis><meta charset=utf-8>",
    ] {
        let out = rewritten(&[meta, page].concat(), WINDOWS_1252, false, 99);
        assert_eq!(out, [meta, &link(b"\x95\x5c")].concat());
        let out = rewritten(&[meta, page].concat(), WINDOWS_1252, true, 99);
        assert_eq!(out, [meta, &link(b"%E2%80%A2/")].concat());
    }
    // A style with bytes that mean nothing in the charset passes, as long as nothing in it changes.
    assert_eq!(rewritten(b"<style>/*\xff*/</style>", UTF_8, true, 99), b"<style>/*\xff*/</style>");
}

#[test]
fn a_style_in_a_picture_is_a_style() {
    for (page, expected) in [
        ("<svg><style>a{b:url(/x)}</style></svg>", "<svg><style>a{b:url({oe_}/x)}</style></svg>"),
        (
            "<svg><style>a{b:url(\"/x?a&amp;b\")}</style><text>url(/y)</text></svg>",
            "<svg><style>a{b:url(\"{oe_}/x?a&amp;b\")}</style><text>url(/y)</text></svg>",
        ),
        (
            "<svg><STYLE><!-- url(/x) -->a{b:url(/x)}<![CDATA[g>a{b:url('/x')}]]></STYLE></svg>",
            "<svg><STYLE><!-- url(/x) -->a{b:url({oe_}/x)}<![CDATA[g>a{b:url('{oe_}/x')}]]></STYLE></svg>",
        ),
        ("<svg><style>a{b:url(/x", "<svg><style>a{b:url({oe_}/x"),
        // There it is text again, without references.
        (
            "<svg><foreignObject><style>a{b:url(/x?a&amp;b)}</style></foreignObject></svg>",
            "<svg><foreignObject><style>a{b:url({oe_}/x?a&amp;b)}</style></foreignObject></svg>",
        ),
    ] {
        for piece in [1, 7, usize::MAX] {
            let out = rewritten(page.as_bytes(), UTF_8, true, piece);
            assert_eq!(String::from_utf8(out).unwrap(), expand(expected), "{page} in pieces of {piece}");
        }
    }
}

#[test]
fn long_parts_pass_whole_and_in_pieces() {
    let script = format!("<style>{}url(/x)</style><a href=/x>", "x".repeat(WHOLE_BYTES_MAX));
    let comment = format!("<a href=/x><!-- {} --><a href=/x>", "x".repeat(TOKEN_BYTES_MAX));
    for (page, links) in [(script, 1), (comment, 1)] {
        let whole = rewritten(page.as_bytes(), UTF_8, true, usize::MAX);
        assert_eq!(rewritten(page.as_bytes(), UTF_8, true, 3 << 20), whole);
        assert_eq!(memchr::memmem::find_iter(&whole, b"/c/2020").count(), links);
    }
}

/// Name and attributes of every start tag, as html5gum reads them in a browser that runs scripts. Of SVG it knows nothing.
type Tags = Vec<(String, BTreeMap<String, String>)>;

fn tags(page: &[u8]) -> Tags {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut emitter = DefaultEmitter::default();
    emitter.naively_switch_states(false);
    let mut tokenizer = Tokenizer::new_with_emitter(page, emitter);
    let mut tags = Vec::new();
    while let Some(Ok(token)) = tokenizer.next() {
        let Gum::StartTag(tag) = token else { continue };
        let state = match &tag.name[..] {
            b"script" => Some(GumState::ScriptData),
            b"style" | b"iframe" | b"xmp" | b"noscript" | b"noframes" | b"noembed" => Some(GumState::RawText),
            b"title" | b"textarea" => Some(GumState::RcData),
            b"plaintext" => Some(GumState::PlainText),
            _ => None,
        };
        if let Some(state) = state {
            tokenizer.set_state(state);
        }
        let attributes = tag.attributes.iter().map(|(name, value)| (text(name), text(value)));
        tags.push((text(&tag.name), attributes.collect()));
    }
    tags
}

/// What should become of the tags of a page.
fn expected(tags: Tags) -> Tags {
    let (mut place, mut has_base) = (place(), false);
    let mut changed = Vec::new();
    for (tag, attributes) in tags {
        let word = |name: &str| attributes.get(name).map(|value| value.trim().to_ascii_lowercase());
        let around = Around {
            tag: &tag,
            rel: word("rel").filter(|_| tag == "link").unwrap_or_default(),
            purpose: word("as").filter(|_| tag == "link").unwrap_or_default(),
            meta: word("http-equiv").or_else(|| word("name")).filter(|_| tag == "meta").unwrap_or_default(),
            is_module: false,
            moves_link: matches!(&*tag, "animate" | "set")
                && word("attributename").is_some_and(|name| name.rsplit(':').next() == Some("href")),
            framed: false,
            scripted: false,
        };
        let mut new = BTreeMap::new();
        let mut base = None;
        for (name, value) in attributes.clone() {
            let change = known(name.as_bytes()).map(|known| change(&around, known, &value, &place));
            match change.unwrap_or(Change::Keep) {
                Change::Value(value) => new.insert(name, value),
                Change::ValueKeepingSource(link) => {
                    new.insert("__wb_orig_src".to_owned(), value);
                    new.insert(name, link)
                }
                Change::Disarm => new.insert(format!("_{name}"), value),
                Change::Base(link) => {
                    base = Some(value.clone());
                    new.insert(name, link.unwrap_or(value))
                }
                Change::Keep | Change::Page => new.insert(name, value),
            };
        }
        if let Some(base) = base.filter(|_| !std::mem::replace(&mut has_base, true)) {
            place.rebase(&base);
        }
        changed.push((tag, new));
    }
    changed
}

const PIECES: &[&str] = &[
    "<",
    ">",
    "</",
    "/>",
    "<!--",
    "-->",
    "--!>",
    "<!",
    "=",
    "\"",
    "'",
    " ",
    "\n",
    "/",
    "<a",
    "<a href=",
    "<a href=\"/x",
    "<img src='",
    "<IMG SRC=//o.org/y",
    "href",
    " HREF=/q",
    " ping=/p",
    " style='a:url(/b)'",
    "<script>",
    "</script>",
    "<script src=",
    "<style>",
    "</style",
    "<title>",
    "</title>",
    "<TextArea>",
    "</textarea>",
    "<plaintext>",
    "<xmp>",
    "</xmp>",
    "<noscript>",
    "</noscript>",
    "<link rel=preload as=style href=",
    "<link rel=dns-prefetch href=//o.org ",
    "<meta http-equiv=refresh content='0;url=/z'",
    "<base href=/deep/er/>",
    "../up",
    "http://o.org/",
    "&amp;",
    "&quot;",
    "&#x2f;",
    "&lt",
    "é",
    "x=y",
    "srcset='/a 1x, /b 2x'",
    "<p",
    "<!DOCTYPE html>",
    "<script ",
    "</SCRIPT\n",
    "<iframe>",
    "</iframe>",
    "integrity=x",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_changed_page_has_the_tags_it_should_have(
        words in proptest::collection::vec(proptest::sample::select(PIECES), 0..40),
        piece in 1_usize..50,
    ) {
        let page = words.concat();
        let out = rewritten(page.as_bytes(), UTF_8, true, piece);
        prop_assert_eq!(tags(&out), expected(tags(page.as_bytes())), "{}", page);
    }
}

/// The HTML in the shared samples that is UTF-8, each page once; longer ones than a megabyte are no pages.
fn sample_pages() -> Vec<Vec<u8>> {
    let files = samples(&[".warc", ".warc.gz", ".arc", ".arc.gz", ".warc.zst"]).unwrap_or_default();
    let mut pages = Vec::new();
    for file in files {
        let Ok(mut reader) = warc::Reader::open(&file) else { continue };
        while let Ok(Some(mut record)) = reader.next() {
            let is_page = record
                .http()
                .ok()
                .flatten()
                .and_then(|http| http.mime())
                .is_some_and(|mime| mime.starts_with(b"text/html"));
            let mut page = Vec::new();
            if is_page
                && record.content().unwrap().take(1 << 20).read_to_end(&mut page).is_ok()
                && !page.is_empty()
                && std::str::from_utf8(&page).is_ok()
            {
                pages.push(page);
            }
        }
    }
    pages.sort();
    pages.dedup();
    pages
}

#[test]
fn real_pages_have_the_tags_they_should_have() {
    let (mut pages, mut seen) = (0, 0);
    for page in sample_pages() {
        // Where html5gum alone cannot tell.
        if memchr::memmem::find(&page, b"<svg").is_some() || memchr::memmem::find(&page, b"<math").is_some() {
            continue;
        }
        let out = rewritten(&page, UTF_8, true, 1000);
        let expected = expected(tags(&page));
        seen += expected.len();
        assert_eq!(tags(&out), expected, "{}", String::from_utf8_lossy(&page));
        pages += 1;
    }
    eprintln!("{pages} real pages, {seen} tags");
}
