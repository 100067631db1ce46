//! XHTML through the rewriter, judged by a parser that, like those of browsers, forgives nothing.

use encoding_rs::{Encoding, UTF_8};
use proptest::prelude::*;
use roxmltree::{Document, NodeType, ParsingOptions};

use super::*;
use crate::rewrite::assets::has_wombat;
use crate::rewrite::modifier::Modifier;

const NAMESPACE: &str = "xmlns=\"http://www.w3.org/1999/xhtml\"";

fn rewritten(page: &[u8], modifier: Modifier, encoding: &'static Encoding, piece: usize) -> String {
    let place = Place::new("", "/c/", "20200102030405", modifier, "https://example.org/a/page.html");
    let mut html = Box::new(Html::new(&place, Dialect::Xml, encoding, true, &Options::default()));
    let mut out = Vec::new();
    for piece in page.chunks(piece) {
        html.push(piece, &mut out);
    }
    html.finish(&mut out);
    let (text, _) = encoding.decode_without_bom_handling(&out);
    text.into_owned()
}

/// What a parser sees, without what is put into the head; values as they are.
fn tree(text: &str) -> Result<Vec<String>, String> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    let document =
        Document::parse_with_options(text, options).map_err(|error| format!("{error} in {text}"))?;
    let ours =
        |node: &roxmltree::Node<'_, '_>| node.ancestors().any(|node| node.has_attribute("data-grange"));
    let mut seen = Vec::new();
    for node in document.descendants().filter(|node| !ours(node)) {
        match node.node_type() {
            NodeType::Element => {
                seen.push(format!("<{}", node.tag_name().name()));
                seen.extend(node.attributes().map(|one| format!("{}={}", one.name(), one.value())));
            }
            NodeType::Text => seen.push(format!("#{}", node.text().unwrap_or_default())),
            NodeType::Comment => seen.push(format!("!{}", node.text().unwrap_or_default())),
            NodeType::PI => seen.push(format!("?{:?}", node.pi())),
            NodeType::Root => {}
        }
    }
    Ok(seen)
}

#[test]
fn parts_of_a_page_change_and_it_stays_well_formed() {
    let p = "/c/20200102030405";
    for (part, expected) in [
        (
            "<a href='/x?a=1&amp;b=&lt;'/>",
            format!("<a href=\"{p}mp_/https://example.org/x?a=1&amp;b=&lt;\"/>"),
        ),
        (
            "<a style=\"a{b:url(/x)}\n&#10;\"/>",
            format!("<a style=\"a{{b:url({p}oe_/https://example.org/x)}} &#10;\"/>"),
        ),
        (
            "<style>a{b:url('/x')} a&gt;b{}</style>",
            format!("<style>a{{b:url('{p}oe_/https://example.org/x')}} a&gt;b{{}}</style>"),
        ),
        (
            "<style>/*<![CDATA[*/ a>b{c:url(/x)} /*]]>*/</style>",
            format!("<style>/**/ a&gt;b{{c:url({p}oe_/https://example.org/x)}} /**/</style>"),
        ),
        (
            "<style>/*<![CDATA[*/ a>b{} /*]]>*/</style>",
            "<style>/*<![CDATA[*/ a>b{} /*]]>*/</style>".to_owned(),
        ),
        (
            "<s:svg xmlns:s='s' xmlns:x='x'><s:a x:href='/x'/><s:set attributeName='x:href' to='/x'/></s:svg>",
            format!(
                "<s:svg xmlns:s='s' xmlns:x='x'><s:a x:href=\"{p}mp_/https://example.org/x\"/>\
                 <s:set attributeName='x:href' to=\"{p}mp_/https://example.org/x\"/></s:svg>"
            ),
        ),
        (
            "<h:meta xmlns:h='http://www.w3.org/1999/xhtml' http-equiv='refresh' content='0;url=/x'/>",
            format!(
                "<h:meta xmlns:h='http://www.w3.org/1999/xhtml' http-equiv='refresh' \
                 content=\"0;url={p}uo_/https://example.org/x\"/>"
            ),
        ),
        (
            "<h:style xmlns:h='http://www.w3.org/1999/xhtml'>a{b:url(/x)}</h:style>",
            format!(
                "<h:style xmlns:h='http://www.w3.org/1999/xhtml'>a{{b:url({p}oe_/https://example.org/x)}}</h:style>"
            ),
        ),
        ("<style/><a href='/x'/>", format!("<style/><a href=\"{p}mp_/https://example.org/x\"/>")),
        (
            "<noscript><img src='/i'/></noscript>",
            format!("<noscript><img src=\"{p}im_/https://example.org/i\"/></noscript>"),
        ),
        ("<title><a href='x'/></title>", "<title><a href='x'/></title>".to_owned()),
        ("<![CDATA[ <a href='/x'> ]]>", "<![CDATA[ <a href='/x'> ]]>".to_owned()),
        (
            "<?xml-stylesheet href='/s.css'?>",
            format!("<?xml-stylesheet href='{p}cs_/https://example.org/s.css'?>"),
        ),
    ] {
        let page = |part: &str| format!("<html {NAMESPACE}><body>{part}</body></html>");
        for piece in [1, 3, usize::MAX] {
            let out = rewritten(page(part).as_bytes(), Modifier::UrlsOnly, UTF_8, piece);
            assert_eq!(
                tree(&out).unwrap(),
                tree(&page(&expected)).unwrap(),
                "{part} in pieces of {piece}: {out}"
            );
        }
    }
}

#[test]
fn what_is_put_into_a_page_is_well_formed_too() {
    for page in [
        format!(
            "<?xml version=\"1.0\"?><!DOCTYPE html><html {NAMESPACE}><head><title>x</title></head><body/></html>"
        ),
        format!("<html {NAMESPACE}><head/><body/></html>"),
        format!("<html {NAMESPACE}><body/></html>"),
        format!("<html {NAMESPACE}/>"),
        "<svg xmlns=\"http://www.w3.org/2000/svg\"><g/></svg>".to_owned(),
    ] {
        let out = rewritten(page.as_bytes(), Modifier::Main, UTF_8, 7);
        assert_eq!(tree(&out).unwrap(), tree(&page).unwrap(), "{out}");
        let expected = has_wombat() && page.contains("<html") && !page.ends_with(&format!("{NAMESPACE}/>"));
        assert_eq!(out.contains("data-grange"), expected, "{out}");
    }
}

#[test]
fn scripts_of_a_page_stay_readable() {
    let scripts = [
        "if (a &amp;&amp; location.href &lt; 1) { f(\"]]&gt;\") }",
        "//<![CDATA[\nif (a && location.href < 1) { f('&amp;') }\n//]]>",
        "<!-- none of it --> top.location = '\u{20ac}'",
    ];
    for script in scripts {
        let page = format!("<html {NAMESPACE}><head/><body><script>{script}</script><p/></body></html>");
        for (modifier, encoding) in [(Modifier::Main, UTF_8), (Modifier::Main, encoding_rs::ISO_8859_2)] {
            let page = page.replace('\u{20ac}', if encoding == UTF_8 { "\u{20ac}" } else { "&#8364;" });
            let out = rewritten(page.as_bytes(), modifier, encoding, 5);
            let (is, was) = (Document::parse(&out).unwrap(), Document::parse(&page).unwrap());
            let text = |document: &Document<'_>| {
                let own = document.descendants().find(|node| {
                    node.has_tag_name(("http://www.w3.org/1999/xhtml", "script"))
                        && !node.has_attribute("data-grange")
                });
                let own = own.unwrap().children().filter(roxmltree::Node::is_text);
                own.filter_map(|node| node.text()).collect::<String>()
            };
            // The rewriter of scripts puts its own lines around what it leaves as it is.
            assert!(text(&is).contains(text(&was).trim()) || has_wombat(), "{out}");
            assert_eq!(text(&is).contains('\u{20ac}'), script.contains('\u{20ac}'), "{out}");
        }
    }
}

/// Longer than what a text may grow by, in more pieces than one.
#[test]
fn a_long_text_in_many_parts_is_rewritten_and_so_is_what_follows() {
    let part = format!("{}<!-- -->", "a{} ".repeat(16 << 10));
    let page = format!(
        "<html {NAMESPACE}><style>{}b{{c:url(/x)}}</style><a href='/x'/></html>",
        part.repeat(5 << 20 >> 16)
    );
    let out = rewritten(page.as_bytes(), Modifier::UrlsOnly, UTF_8, 1 << 16);
    let p = "/c/20200102030405";
    let end = format!(
        "b{{c:url({p}oe_/https://example.org/x)}}</style><a href=\"{p}mp_/https://example.org/x\"/></html>"
    );
    assert!(out.ends_with(&end), "{}", &out[out.len() - 200..]);
}

#[test]
fn what_was_gathered_passes_when_the_budget_is_used_up() {
    let part = "url(/x)<!-- --><![CDATA[>]]>&amp;<?a?>";
    let page = format!("<html {NAMESPACE}><style>{}</style><a href='/x'/></html>", part.repeat(10));
    for piece in [1, 64, usize::MAX] {
        for budget in 0..page.len() as u64 {
            let demand = work::Demand::new(grange_base::Shutdown::never());
            let rewrite = || rewritten(page.as_bytes(), Modifier::UrlsOnly, UTF_8, piece);
            let (out, used) = work::within(budget, demand, rewrite);
            assert!(used.over);
            assert!(out == page, "{budget} in pieces of {piece}: {out}");
        }
    }
}

/// Well-formed markup: elements within elements, texts with references, data, comments.
fn markup() -> impl Strategy<Value = String> {
    let text = prop::sample::select(vec![
        "x",
        "&amp;",
        "&lt;a&gt;",
        "&#8364;",
        "é",
        "\n",
        "]]&gt;",
        "<![CDATA[<a href='/no'>&]]>",
        "<!-- <a href='/no'/> -->",
        "<?php a?>",
        "url(/y)",
        "&quot;",
        "'",
    ]);
    let value = prop::sample::select(vec![
        "/x",
        "",
        "http://o.org/?a&amp;b",
        "&lt;&quot;",
        "url(&#39;/z&#39;)",
        "a\nb",
        "&#10;",
        "../é",
        ">",
    ]);
    let name =
        || prop::sample::select(vec!["p", "style", "a", "img", "title", "textarea", "noscript", "iframe"]);
    let attribute = prop::sample::select(vec!["href", "src", "style", "srcdoc", "integrity", "class"]);
    let leaf = prop_oneof![
        text.prop_map(ToOwned::to_owned),
        (name(), attribute, value)
            .prop_map(|(name, attribute, value)| format!("<{name} {attribute}=\"{value}\"/>")),
    ];
    leaf.prop_recursive(4, 24, 6, move |inner| {
        (name(), prop::collection::vec(inner, 0..6))
            .prop_map(|(name, inner)| format!("<{name} title=''>{}</{name}>", inner.concat()))
    })
}

proptest! {
    #[test]
    fn well_formed_pages_stay_well_formed(body in markup(), piece in 1_usize..50) {
        let page = format!("<html {NAMESPACE}><head/><body>{body}</body></html>");
        let out = rewritten(page.as_bytes(), Modifier::Main, UTF_8, piece);
        let (is, was) = (tree(&out).map_err(TestCaseError::fail)?, tree(&page).map_err(TestCaseError::fail)?);
        let elements = |tree: &[String]| tree.iter().filter(|part| part.starts_with('<')).cloned().collect::<Vec<_>>();
        prop_assert_eq!(elements(&is), elements(&was), "{}", out);
    }
}
