//! Whole bodies through [`transform`].

use proptest::prelude::*;

use super::*;

fn place(modifier: Modifier) -> Place {
    Place::new("http://r.example:8081", "/c/", "20200102030405", modifier, "https://example.org/a/page.html")
}

fn pushed(kind: Kind, place: &Place, charset: Option<&str>, options: &Options, pieces: &[&[u8]]) -> Vec<u8> {
    let mut transform = transform(kind, place, charset, options);
    let mut out = Vec::new();
    for piece in pieces {
        transform.push(piece, &mut out);
    }
    transform.finish(&mut out);
    out
}

/// HTML through the rewriter, without what is put into its head.
fn html(text: &str) -> String {
    let place = place(Modifier::Main);
    let out = pushed(Kind::Html, &place, Some("utf-8"), &Options::default(), &[text.as_bytes()]);
    let out = String::from_utf8(out).unwrap();
    out.replace(&head::insert(&place, &Options::default(), false), "")
}

/// `{m}` in an expectation stands for the start of a link with modifier `m`.
fn expand(text: &str) -> String {
    let mut out = text.to_owned();
    for modifier in ["mp_", "im_", "js_", "esm_", "cs_", "oe_", "if_", "fr_"] {
        out = out.replace(&format!("{{{modifier}}}"), &format!("/c/20200102030405{modifier}/"));
    }
    out
}

#[test]
fn links_of_a_page() {
    let cases = [
        ("<a href=\"http://o.org/?a=1&amp;b=2\">", "<a href=\"{mp_}http://o.org/?a=1&amp;b=2\">"),
        ("<a href=/x>y</a>", "<a href=\"{mp_}https://example.org/x\">y</a>"),
        ("<A HREF='//o.org/'>", "<A HREF=\"{mp_}https://o.org/\">"),
        ("<a href=http:&#x2f;&#x2f;o.org/>", "<a href=\"{mp_}http://o.org/\">"),
        ("<area href=/x>", "<area href=\"{mp_}https://example.org/x\">"),
        ("<img src=/i.png>", "<img src=\"{im_}https://example.org/i.png\">"),
        (
            "<img srcset=\"/a.png 1x, /b.png 2x\">",
            "<img srcset=\"{im_}https://example.org/a.png 1x, {im_}https://example.org/b.png 2x\">",
        ),
        ("<picture><source srcset=/a.png>", "<picture><source srcset=\"{im_}https://example.org/a.png\">"),
        (
            "<video src=/v poster=/p>",
            "<video src=\"{oe_}https://example.org/v\" poster=\"{im_}https://example.org/p\">",
        ),
        (
            "<audio src=/v><track src=/t>",
            "<audio src=\"{oe_}https://example.org/v\"><track src=\"{oe_}https://example.org/t\">",
        ),
        ("<iframe src=/f>", "<iframe src=\"{if_}https://example.org/f\">"),
        ("<frame src=/f>", "<frame src=\"{fr_}https://example.org/f\">"),
        ("<embed src=/f>", "<embed src=\"{oe_}https://example.org/f\">"),
        (
            "<object data=/f><param value=http://o.org/x><param value=/x>",
            "<object data=\"{oe_}https://example.org/f\"><param value=\"{oe_}http://o.org/x\"><param value=/x>",
        ),
        ("<form action=/f>", "<form action=\"{mp_}https://example.org/f\">"),
        ("<button formaction=/f>", "<button formaction=\"{mp_}https://example.org/f\">"),
        ("<body background=/b>", "<body background=\"{im_}https://example.org/b\">"),
        ("<blockquote cite=/b>", "<blockquote cite=\"{mp_}https://example.org/b\">"),
        (
            "<svg><image xlink:href=/x /><use href=#y></svg>",
            "<svg><image xlink:href=\"{im_}https://example.org/x\" /><use href=#y></svg>",
        ),
        (
            "<svg><a href=#><set attributeName=href to=http://o.org/ begin=0>",
            "<svg><a href=#><set attributeName=href to=\"{mp_}http://o.org/\" begin=0>",
        ),
        (
            "<svg><animate values='#;/x' from=/y by=z attributename=XLINK:HREF>",
            "<svg><animate values=\"#;{mp_}https://example.org/x\" from=\"{mp_}https://example.org/y\" by=z \
             attributename=XLINK:HREF>",
        ),
        (
            "<svg><set attributeName=x to=/x><a x:href=/x to=/x values=/x v-bind:href=/x>",
            "<svg><set attributeName=x to=/x><a x:href=/x to=/x values=/x v-bind:href=/x>",
        ),
        (
            "<link rel=stylesheet href=/s.css>",
            "<link rel=stylesheet href=\"{cs_}https://example.org/s.css\">",
        ),
        (
            "<link rel=preload as=font href=/f>",
            "<link rel=preload as=font href=\"{oe_}https://example.org/f\">",
        ),
        (
            "<link rel=preload as=script href=f.js>",
            "<link rel=preload as=script href=\"{js_}https://example.org/a/f.js\">",
        ),
        (
            "<link rel=modulepreload href=m.js>",
            "<link rel=modulepreload href=\"{esm_}https://example.org/a/m.js\">",
        ),
        ("<link rel=canonical href=/x>", "<link rel=canonical href=/x>"),
        ("<link rel=preconnect href=//o.org>", "<link rel=preconnect _href=//o.org>"),
        (
            "<link rel='shortcut icon' href=/x>",
            "<link rel='shortcut icon' href=\"{im_}https://example.org/x\">",
        ),
        (
            "<meta http-equiv=refresh content='0; url=/x'>",
            "<meta http-equiv=refresh content=\"0; url={mp_}https://example.org/x\">",
        ),
        (
            "<meta http-equiv=Content-Security-Policy content='default-src *'>",
            "<meta http-equiv=Content-Security-Policy _content='default-src *'>",
        ),
        (
            "<meta property=og:image content=http://o.org/x>",
            "<meta property=og:image content=http://o.org/x>",
        ),
        ("<p style='background:url(/x)'>", "<p style=\"background:url({oe_}https://example.org/x)\">"),
        ("<style>a{b:url(/x)}</style>", "<style>a{b:url({oe_}https://example.org/x)}</style>"),
        (
            "<script src=/x.js integrity=sha1 crossorigin nonce=1></script>",
            "<script src=\"{js_}https://example.org/x.js\" _integrity=sha1 _crossorigin _nonce=1></script>",
        ),
        (
            "<base href=/deep/er/><a href=../x>",
            "<base href=\"{mp_}https://example.org/deep/er/\"><a href=\"{mp_}https://example.org/deep/x\">",
        ),
        ("<a ping=/p href=x>", "<a _ping=/p href=x>"),
    ];
    for (text, expected) in cases {
        assert_eq!(html(text), expand(expected), "{text}");
    }
}

#[test]
fn a_page_without_links_passes_byte_for_byte() {
    for text in [
        "",
        "plain text",
        "<!DOCTYPE html><html><head><title>a & b</title></head><body class=x><p>é&nbsp;<br/></body></html>",
        "<a href='x.html' title=\"it's\">y</a><img src=i.png><!-- <a href=/x> -->",
        "<a href=\"#x\" data-src='http://o.org/'>",
        "<textarea><a href=/x></textarea><template><p></template>",
        "<script type=application/json>{\"a\": \"http://o.org/\"}</script>",
        "<div <p <<a b='c' =d>",
        "<a href='/x",
    ] {
        assert_eq!(html(text), text);
    }
}

#[test]
fn bytes_of_unknown_charsets_are_kept() {
    let page = b"<p>\xe9\xff\x81</p><a href=/\xe9>\xe9</a>";
    let place = place(Modifier::UrlsOnly);
    let out = pushed(Kind::Html, &place, None, &Options::default(), &[page]);
    assert_eq!(out, b"<p>\xe9\xff\x81</p><a href=\"/c/20200102030405mp_/https://example.org/\xe9\">\xe9</a>");
}

#[test]
fn utf_16_comes_back_as_utf_16() {
    let text: Vec<u8> = "<p>é</p><a href=/x>".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let place = place(Modifier::UrlsOnly);
    let out = pushed(Kind::Html, &place, Some("utf-16le"), &Options::default(), &[&text]);
    let units: Vec<u16> = out.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
    assert_eq!(
        String::from_utf16(&units).unwrap(),
        "<p>é</p><a href=\"/c/20200102030405mp_/https://example.org/x\">"
    );
}

#[test]
fn a_long_script_and_a_long_tag_pass() {
    let script = format!("<script>{}</script><a href=/x>", "x".repeat(transform::WHOLE_BYTES_MAX + 10));
    let out = html(&script);
    assert_eq!(out, script.replace("href=/x", &expand("href=\"{mp_}https://example.org/x\"")));
    let tag = format!("<a href=/x><p title='{}'><a href=/y>", "x".repeat(20 * 1024 * 1024));
    let pieces: Vec<&[u8]> = tag.as_bytes().chunks(1024 * 1024).collect();
    let out = pushed(Kind::Html, &place(Modifier::UrlsOnly), Some("utf-8"), &Options::default(), &pieces);
    assert_eq!(out, tag.replace("href=/x", &expand("href=\"{mp_}https://example.org/x\"")).into_bytes());
}

#[test]
fn deep_nesting_passes() {
    let text = "<b>".repeat(200_000);
    assert_eq!(html(&text).len(), text.len());
}

mod with_wombat {
    use super::*;

    /// These tests show the work for wombat; without it built in there is none to show.
    fn wombat() -> bool {
        if has_wombat() {
            return true;
        }
        grange_testkit::skipped("wombat in this build (scripts/setup build)");
        false
    }

    #[test]
    fn wombat_comes_first() {
        if !wombat() {
            return;
        }
        let insert = head::insert(&place(Modifier::Main), &Options::default(), false);
        for (text, expected) in [
            ("<!DOCTYPE html><html><head><title>", format!("<!DOCTYPE html><html><head>{insert}<title>")),
            ("<title>x", format!("{insert}<title>x")),
            ("text<p>x", format!("text{insert}<p>x")),
            ("<html><body>", format!("<html>{insert}<body>")),
            ("no tags", "no tags".to_owned()),
        ] {
            let out = pushed(
                Kind::Html,
                &place(Modifier::Main),
                Some("utf-8"),
                &Options::default(),
                &[text.as_bytes()],
            );
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }

    #[test]
    fn scripts_of_a_page_meet_the_stand_ins() {
        if !wombat() {
            return;
        }
        let out = html("<script>location = '/x'</script>");
        assert!(out.contains("{let window = ") && out.ends_with(".maybeHref = '/x'\n}}</script>"), "{out}");
        let out = html("<script type=module src=./m.js></script>");
        assert_eq!(
            out,
            expand(
                "<script type=module src=\"{esm_}https://example.org/a/m.js\" __wb_orig_src=\"./m.js\"></script>"
            )
        );
        let out = html("<script type=module>import './m.js'; window</script>");
        assert_eq!(
            out,
            expand(
                "<script type=module>import {window} from \"/static/grange-modules.js\";\n\
                 import '{esm_}https://example.org/a/m.js'; window</script>"
            )
        );
        let out = html("<script type=importmap>{\"imports\":{\"a\":\"/a.js\"}}</script>");
        assert_eq!(
            out,
            expand(
                "<script type=importmap>{\"imports\":{\"a\":\"{esm_}https://example.org/a.js\"}}</script>"
            )
        );
        let out = html("<a onclick=\"location.href=&quot;/x&quot;\">");
        assert!(out.starts_with("<a onclick=\"{let location = "), "{out}");
        assert!(out.contains("location.href=&quot;/x&quot;"), "{out}");
        let out = html("<a href='javascript:top.x()'>");
        assert!(out.starts_with("<a href=\"javascript:{let top = "), "{out}");
        assert_eq!(
            html("<script type=speculationrules>{\"prefetch\":[]}</script>"),
            "<script type=speculationrules>{}</script>"
        );
    }

    #[test]
    fn a_page_inside_an_attribute_is_a_page() {
        if !wombat() {
            return;
        }
        let out = html("<iframe srcdoc=\"<p><a href='/x'>&amp;amp;</a>\"></iframe>");
        assert!(out.contains("wbinfo"), "{out}");
        assert!(
            out.contains(&expand("<a href=&quot;{mp_}https://example.org/x&quot;>&amp;amp;</a>")),
            "{out}"
        );
    }

    #[test]
    fn a_worker_starts_with_wombat() {
        if !wombat() {
            return;
        }
        let run = |modifier, kind, text: &str| {
            let out = pushed(kind, &place(modifier), None, &Options::default(), &[text.as_bytes()]);
            String::from_utf8(out).unwrap()
        };
        let out = run(Modifier::Worker, Kind::Js, "self.onmessage = f");
        assert!(out.contains("importScripts(o+\"/static/wombatWorkers.js\")"), "{out}");
        assert!(out.ends_with("\nself.onmessage = f"), "{out}");
        let out = run(Modifier::ModuleWorker, Kind::Module, "import './x.js'");
        assert!(out.starts_with("import \"/static/wombatWorkers.js\";"), "{out}");
    }

    #[test]
    fn targets_stay_in_the_frame() {
        let place = place(Modifier::UrlsOnly);
        let options = Options { framed: true, ..Options::default() };
        let out = pushed(Kind::Html, &place, Some("utf-8"), &options, &[b"<a target=_top><a target=x>"]);
        assert_eq!(out, b"<a target=\"grange_replay\"><a target=x>");
    }
}

#[test]
fn other_kinds_are_rewritten_whole() {
    let run = |kind, charset, text: &[u8]| {
        pushed(kind, &place(Modifier::Main), charset, &Options::default(), &[text])
    };
    assert_eq!(
        run(Kind::Css, None, b"a{b:url(/\xe9)}"),
        b"a{b:url(/c/20200102030405oe_/https://example.org/\xe9)}"
    );
    assert_eq!(run(Kind::Json, None, b"{\"a\":\"/x\"}"), b"{\"a\":\"/x\"}");
    assert_eq!(
        run(Kind::Xml, None, b"<a src='/x'/>"),
        b"<a src='/c/20200102030405mp_/https://example.org/x'/>"
    );
    assert_eq!(run(Kind::Plain, None, b"/x \xff"), b"/x \xff");
    assert_eq!(run(Kind::Binary, None, b"\x00\xff"), b"\x00\xff");
    let options = Options { callback: Some("b".to_owned()), ..Options::default() };
    let out = pushed(Kind::Js, &place(Modifier::Script), None, &options, &[b"a({})"]);
    assert_eq!(out, b"b({})");
}

const PIECES: &[&str] = &[
    "<a href=\"",
    "/x",
    "\">",
    "<img src=",
    "'",
    "<script>",
    "</script>",
    "location = 1",
    "<style>",
    "</style>",
    "url(/x)",
    "<!--",
    "-->",
    "<base href=/b/>",
    "é",
    " ",
    "\n",
    "<p",
    ">",
    "<svg>",
    "</svg>",
    "<head>",
    "&amp;",
    "http://o.org/",
    "<iframe srcdoc=\"",
    "<meta charset=utf-8>",
    "<title>",
    "<textarea>",
    "\u{0}",
    "srcset=",
    "<![CDATA[",
    "]]>",
];

proptest! {
    #[test]
    fn pieces_do_not_show(
        words in proptest::collection::vec(proptest::sample::select(PIECES), 0..25),
        cuts in proptest::collection::vec(0_usize..200, 0..6),
        kind in proptest::sample::select(vec![Kind::Html, Kind::Xhtml, Kind::Css, Kind::Js, Kind::Module, Kind::Json, Kind::Xml]),
        charset in proptest::sample::select(vec![None, Some("utf-8"), Some("windows-1252"), Some("shift_jis")]),
    ) {
        let text = words.concat().into_bytes();
        let place = place(Modifier::Main);
        let whole = pushed(kind, &place, charset, &Options::default(), &[&text]);
        let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| *cut < text.len()).collect();
        cuts.sort_unstable();
        let mut pieces = Vec::new();
        let mut from = 0;
        for cut in cuts {
            pieces.push(&text[from..cut]);
            from = cut;
        }
        pieces.push(&text[from..]);
        prop_assert_eq!(pushed(kind, &place, charset, &Options::default(), &pieces), whole);
    }

    #[test]
    fn any_bytes_go_through(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        kind in proptest::sample::select(vec![Kind::Html, Kind::Xhtml, Kind::Css, Kind::Js, Kind::Module, Kind::Json, Kind::Xml]),
        charset in proptest::sample::select(vec![None, Some("utf-8"), Some("shift_jis"), Some("utf-16be"), Some("iso-2022-jp")]),
    ) {
        pushed(kind, &place(Modifier::Main), charset, &Options::default(), &[&bytes]);
    }
}
