//! Elements and attributes.

use url::Url;

use super::{PAGE, check, document, extracted, found, lines, plain};
use crate::extract::{Guess, Settings, extract};

#[test]
fn each_element_gives_its_links_with_their_kind() {
    check(
        "text/html",
        &[
            ("<a href=x.html>", &["L /dir/x.html a/@href"]),
            ("<A HREF='../X.html'>", &["L /X.html a/@href"]),
            ("<a href=\" /blanks\n \">", &["L /blanks a/@href"]),
            ("<a href=\"/a\tb\nc\">", &["L /abc a/@href"]),
            ("<a href=\"?q=1&amp;r=2#frag\">", &["L /dir/page.html?q=1&r=2 a/@href"]),
            ("<a href=\"/?a=1&copy=2\">", &["L /?a=1&copy=2 a/@href"]),
            ("<a href='/caf&eacute;'>", &["L /caf%C3%A9 a/@href"]),
            ("<a href='&#x2F;num&#46;html'>", &["L /num.html a/@href"]),
            ("<a href=//other.org/x>", &["L http://other.org/x a/@href"]),
            ("<a href=\\\\other.org\\x>", &["L http://other.org/x a/@href"]),
            ("<a href=https:relative>", &["L https://relative/ a/@href"]),
            ("<area href=/m>", &["L /m area/@href"]),
            ("<img src=i.png>", &["E /dir/i.png img/@src"]),
            (
                "<img src=/1.png lowsrc=/2.png longdesc=/3 usemap=#m>",
                &["E /1.png img/@src", "E /2.png img/@lowsrc", "E /3 img/@longdesc"],
            ),
            ("<body background=/bg.gif>", &["E /bg.gif body/@background"]),
            ("<td background=/t.gif>", &["E /t.gif td/@background"]),
            ("<script src=/s.js></script>", &["E /s.js script/@src"]),
            ("<iframe src=/f></iframe><frame src=/g>", &["E /f iframe/@src", "E /g frame/@src"]),
            (
                "<video src=/v.mp4 poster=/p.jpg><source src=/w.webm><track src=/t.vtt></video>",
                &[
                    "E /v.mp4 video/@src",
                    "E /p.jpg video/@poster",
                    "E /w.webm source/@src",
                    "E /t.vtt track/@src",
                ],
            ),
            (
                "<audio src=/a.mp3></audio><embed src=/e.swf><bgsound src=/b.mid>",
                &["E /a.mp3 audio/@src", "E /e.swf embed/@src", "E /b.mid bgsound/@src"],
            ),
            ("<input type=image src=/go.gif>", &["E /go.gif input/@src"]),
            ("<blockquote cite=/q>", &["L /q blockquote/@cite"]),
            (
                "<html manifest=/app.cache><head profile=/p>",
                &["E /app.cache html/@manifest", "E /p head/@profile"],
            ),
            (
                "<svg><image xlink:href=/i.svg /><use href=/sprite.svg#icon /><a xlink:href=/l /></svg>",
                &["E /i.svg image/@xlink:href", "E /sprite.svg use/@href", "L /l a/@xlink:href"],
            ),
            (
                "<object data=/o.swf codebase=/base/ classid=c.bin archive='a.jar b.jar'>",
                &[
                    "E /o.swf object/@data",
                    "E /base/c.bin object/@classid",
                    "E /base/a.jar object/@archive",
                    "E /base/b.jar object/@archive",
                ],
            ),
            ("<object classid='clsid:D27CDB6E-AE6D-11cf-96B8-444553540000'>", &[]),
            (
                "<applet code=org.x.Main codebase=java archive=m.jar,n.jar>",
                &[
                    "E /dir/java/m.jar applet/@archive",
                    "E /dir/java/n.jar applet/@archive",
                    "E /dir/java/org/x/Main.class applet/@code",
                ],
            ),
            ("<param name=movie value=/m.swf><param name=quality value=high>", &["E /m.swf param/@value"]),
            ("<iframe srcdoc='<img src=&quot;/in.png&quot;>'></iframe>", &["E /in.png img/@src"]),
            ("<amp-img src=/amp.jpg>", &["E /amp.jpg amp-img/@src"]),
            ("<noscript><img src=/n.png></noscript>", &["E /n.png img/@src"]),
            ("<noframes><a href=/n></a></noframes>", &["L /n a/@href"]),
        ],
    );
}

#[test]
fn what_leads_nowhere_is_left_alone() {
    check(
        "text/html",
        &[
            ("<a href=mailto:a@b.c><a href=tel:1><a href=about:blank><a href='  javascript:void(0)'>", &[]),
            ("<img src=data:image/png;base64,AAAA><a href=blob:x><a href=ftp://h/x>", &[]),
            ("<a href=''><a href='#top'><a href=' #x'><a><a href>", &[]),
            ("<a href='http://'><a href='http://[::1'><a href='http://a b/'>", &[]),
            ("<!-- <a href=/hidden> --><textarea><a href=/typed></textarea><title><a href=/t></title>", &[]),
            ("<a title='<a href=/quoted>'>", &[]),
            ("</a href=/end>", &[]),
            ("<a href=/never-ends", &[]),
        ],
    );
    let long = format!("<a href=/{}><a href=/short>", "x".repeat(2_100));
    assert_eq!(found("text/html", long.as_bytes()), ["L /short a/@href"]);
}

#[test]
fn images_that_come_later_are_found() {
    check(
        "text/html",
        &[
            (
                "<img srcset='/1.png 1x, /2.png 2x,/3.png'>",
                &["E /1.png img/@srcset", "E /2.png img/@srcset", "E /3.png img/@srcset"],
            ),
            (
                "<img srcset='/a,b.png 100w,\n /c.png,200w.png 200w'>",
                &["E /a,b.png img/@srcset", "E /c.png,200w.png img/@srcset"],
            ),
            ("<source srcset='/s.webp' type=image/webp>", &["E /s.webp source/@srcset"]),
            (
                "<link rel=preload as=image imagesrcset='/p.png 2x' href=/q.png>",
                &["E /p.png link/@imagesrcset", "E /q.png link/@href"],
            ),
            (
                "<img src=data:image/gif;base64,R0 data-src=/lazy.jpg data-srcset='/l1.jpg 1x, /l2.jpg 2x'>",
                &["E /lazy.jpg img/@data-src", "E /l1.jpg img/@data-srcset", "E /l2.jpg img/@data-srcset"],
            ),
            (
                "<img data-original=/o.jpg data-lazy-src=/l.jpg data-full-src=/f.jpg data-lazy=/z.jpg>",
                &[
                    "E /o.jpg img/@data-original",
                    "E /l.jpg img/@data-lazy-src",
                    "E /f.jpg img/@data-full-src",
                    "E /z.jpg img/@data-lazy",
                ],
            ),
            (
                "<div data-bg=\"url('/bg.jpg')\" data-background-image=/b.jpg>",
                &["E /bg.jpg div/@data-bg", "E /b.jpg div/@data-background-image"],
            ),
            (
                "<img data-src='/w.jpg 300w, /x.jpg 600w'>",
                &["E /w.jpg img/@data-src", "E /x.jpg img/@data-src"],
            ),
            ("<img data-src=42 data-lazy=true data-original='{\"a\":1}' data-thumb=1.5>", &[]),
            (
                "<div data-id=/ data-config='{\"u\":\"/x.js\"}' data-href=/go/page.html data-x=text/html>",
                &["X /go/page.html div/@data-href"],
            ),
        ],
    );
}

#[test]
fn the_rel_of_a_link_decides_what_it_is() {
    check(
        "text/html",
        &[
            ("<link rel=stylesheet href=/a.css>", &["E /a.css link/@href"]),
            ("<link rel='alternate stylesheet' href=/a.css>", &["E /a.css link/@href"]),
            ("<link rel='SHORTCUT ICON' href=/f.ico>", &["E /f.ico link/@href"]),
            (
                "<link href=/m.json rel=manifest><link rel=modulepreload href=/m.mjs>",
                &["E /m.json link/@href", "E /m.mjs link/@href"],
            ),
            (
                "<link rel=canonical href=/c><link rel=next href=/n><link href=/norel>",
                &["L /c link/@href", "L /n link/@href", "L /norel link/@href"],
            ),
            (
                "<link rel=preconnect href=//cdn.org><link rel=dns-prefetch href=//x.org><link rel=pingback href=/p>",
                &[],
            ),
            ("<link rel=sitemap href=/sitemap.xml>", &["M /sitemap.xml link/@href"]),
        ],
    );
}

#[test]
fn a_base_counts_once_and_for_the_whole_page() {
    check(
        "text/html",
        &[
            ("<base href=/b/><a href=x>", &["L /b/x a/@href"]),
            (
                "<a href=early><base href='http://other.org/d/'><base href=/no/><a href=late>",
                &["L http://other.org/d/early a/@href", "L http://other.org/d/late a/@href"],
            ),
            ("<base target=_top><base href=/b/><a href=x>", &["L /b/x a/@href"]),
            ("<base href='javascript:x'><a href=x>", &["L /dir/x a/@href"]),
            ("<!-- <base href=/c/> --><script>'<base href=/s/>'</script><a href=x>", &["L /dir/x a/@href"]),
        ],
    );
    let far = format!("<a href=x>{}<base href=/b/><a href=y>", " ".repeat(70_000));
    assert_eq!(found("text/html", far.as_bytes()), ["L /dir/x a/@href", "L /b/y a/@href"]);
}

#[test]
fn refreshes_are_redirects() {
    check(
        "text/html",
        &[
            ("<meta http-equiv=refresh content='0; url=/next'>", &["R /next meta/@content"]),
            ("<meta http-equiv=Refresh content=\"5;URL='/n x'\">", &["R /n%20x meta/@content"]),
            ("<meta http-equiv=refresh content='0.5,/bare'>", &["R /bare meta/@content"]),
            ("<meta http-equiv=refresh content='url=/notime'>", &["R /notime meta/@content"]),
            ("<meta http-equiv=refresh content='30'>", &[]),
            ("<meta http-equiv=refresh content='30;'>", &[]),
            ("<meta http-equiv=refresh content='soon'>", &[]),
        ],
    );
}

#[test]
fn metas_name_images_and_sometimes_pages() {
    check(
        "text/html",
        &[
            ("<meta property=og:image content=http://example.com/og.jpg>", &["E /og.jpg meta/@content"]),
            ("<meta name=twitter:image content=/tw.png>", &["E /tw.png meta/@content"]),
            ("<meta property=og:url content=http://example.com/canonical>", &["X /canonical meta/@content"]),
            ("<meta name=description content='see /page.html and more'>", &[]),
            ("<meta name=viewport content='width=device-width, initial-scale=1.0'>", &[]),
            ("<meta name=generator content=WordPress/6.1>", &[]),
            ("<meta http-equiv=content-security-policy content=http://example.com/csp>", &[]),
        ],
    );
}

#[test]
fn forms_are_followed_when_sent_with_get() {
    check(
        "text/html",
        &[
            ("<form action=/search>", &["L /search form/@action"]),
            ("<form method=GET action=/search>", &["L /search form/@action"]),
            ("<form action=/buy method=Post><button formaction=/sell></form>", &[]),
            (
                "<form method=post><button formmethod=get formaction=/find></form>",
                &["L /find button/@formaction"],
            ),
            ("<form method=post></form><button formaction=/after>", &["L /after button/@formaction"]),
            (
                "<select><option value=/jump/page.html><option value=red></select>",
                &["X /jump/page.html option/@value"],
            ),
        ],
    );
    let settings = Settings { forms: false, ..plain() };
    assert!(extracted("text/html", b"<form action=/search>", &settings).links.is_empty());
}

#[test]
fn styles_scripts_and_handlers_within_a_page_are_read() {
    check(
        "text/html",
        &[
            (
                "<style>@import '/i.css'; a{background:url(b.png)}</style>",
                &["E /i.css =EMBED_MISC", "E /dir/b.png =EMBED_MISC"],
            ),
            ("<p style='background:url(&quot;/s.png&quot;)'>", &["E /s.png =EMBED_MISC"]),
            ("<script>var u='/js/x.json'; var t=\"text/html\";</script>", &["X /js/x.json =JS_MISC"]),
            (
                "<script type=application/ld+json>{\"url\":\"http:\\/\\/example.com\\/ld\"}</script>",
                &["X /ld =JS_MISC"],
            ),
            ("<script type=text/template><img src='/t/{{x}}.png'></script>", &[]),
            ("<a onclick=\"window.open('pop.html')\">", &["X /dir/pop.html =JS_MISC"]),
            ("<a href=\"javascript:go('next.html')\">", &["X /dir/next.html =JS_MISC"]),
            (
                "<script>if (a</b/.test('</a>')) x='/in.js'</script><a href=/out>",
                &["X /in.js =JS_MISC", "L /out a/@href"],
            ),
            (
                "<script><!-- '<script>' '/a/b.js' </script> <a href=/no> --></script><a href=/yes>",
                &["X /a/b.js =JS_MISC", "L /yes a/@href"],
            ),
            (
                "<!--[if lt IE 9]><script src=/ie.js></script><![endif]--><![if !IE]><img src=/n.png><![endif]>",
                &["E /ie.js script/@src", "E /n.png img/@src"],
            ),
        ],
    );
    let off = Settings { javascript: Guess::Off, css: false, ..plain() };
    let page =
        b"<style>a{b:url(/c)}</style><p style='b:url(/d)' onclick=\"x('e.html')\"><script>'/f/g.js'</script>";
    assert_eq!(lines(&extracted("text/html", page, &off)), [""; 0]);
}

#[test]
fn a_url_is_told_once_and_as_part_of_the_page_if_it_is() {
    check(
        "text/html",
        &[
            ("<a href=/x#1><a href=/x#2><a href=/y>", &["L /x a/@href", "L /y a/@href"]),
            ("<a href=/pic.png><a href=/y><img src=/pic.png>", &["E /pic.png img/@src", "L /y a/@href"]),
            ("<img src=/pic.png><a href=/pic.png>", &["E /pic.png img/@src"]),
            ("<script>'/a/p.html'</script><a href=/a/p.html>", &["L /a/p.html a/@href"]),
        ],
    );
}

#[test]
fn links_over_the_limit_are_counted() {
    let page = (0..20).map(|n| format!("<a href=/{n}><a href=/{n}>")).collect::<Vec<_>>().concat();
    let settings = Settings { max_links: 15, ..plain() };
    let extraction = extracted("text/html", page.as_bytes(), &settings);
    assert_eq!((extraction.links.len(), extraction.dropped), (15, 10));
    assert_eq!(extraction.annotations, ["dol:10"]);
}

#[test]
fn nofollow_takes_the_links_and_leaves_the_parts() {
    let page = b"<meta name=ROBOTS content='NoFollow, noarchive'><a href=/a><img src=/i.png>";
    let extraction = extracted("text/html", page, &plain());
    assert!(extraction.directives.nofollow && extraction.directives.noarchive);
    assert_eq!(lines(&extraction), ["E /i.png img/@src"]);
    let follow = Settings { follow_meta_nofollow: true, ..plain() };
    assert_eq!(lines(&extracted("text/html", page, &follow)), ["L /a a/@href", "E /i.png img/@src"]);

    let url = Url::parse(PAGE).unwrap();
    for (value, nofollow) in [("noindex, none", true), ("otherbot: nofollow", false), ("noindex", false)] {
        let headers: &[(&[u8], &[u8])] = &[(b"X-Robots-Tag", value.as_bytes())];
        let mut document = document(&url, "text/html", b"<a href=/a>");
        document.headers = headers;
        let extraction = extract(document, &plain());
        assert_eq!(
            (extraction.directives.nofollow, extraction.links.is_empty()),
            (nofollow, nofollow),
            "{value}"
        );
    }
}

#[test]
fn a_frame_is_a_part_or_a_link_by_choice_and_an_icon_is_guessed_if_none_is_named() {
    let settings = Settings { frames_as_embeds: false, favicon: true, ..plain() };
    let extraction = extracted("text/html", b"<iframe src=/f></iframe>", &settings);
    assert_eq!(lines(&extraction), ["L /f iframe/@src", "I /favicon.ico =INFERRED_MISC"]);
    let extraction = extracted("text/html", b"<link rel=icon href=/i.png>", &settings);
    assert_eq!(lines(&extraction), ["E /i.png link/@href"]);
}

#[test]
fn in_xml_an_element_that_ends_in_its_own_tag_swallows_nothing() {
    let page = "<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'><head><script src='/a.js'/><style/>\
        <title/></head><body><iframe src='/f'/><textarea/><a href='/x'>x</a>\
        <script>var a = \"/y.html?b=1&amp;c=2\";</script><script><![CDATA[ var a = \"/z.html?b=1&c=2\"; ]]></script></body></html>";
    let all = [
        "E /a.js script/@src",
        "E /f iframe/@src",
        "L /x a/@href",
        "X /y.html?b=1&c=2 =JS_MISC",
        "X /z.html?b=1&c=2 =JS_MISC",
    ];
    for content_type in
        ["application/xhtml+xml", "application/xhtml+xml; charset=utf-8", "Text/XML", "application/xml", ""]
    {
        assert_eq!(found(content_type, page.as_bytes()), all, "{content_type}");
    }
    // Browsers read this one as HTML, where the slash means nothing.
    let as_html = found("text/html", page.as_bytes());
    assert!(!as_html.contains(&"L /x a/@href".to_owned()), "{as_html:?}");
    // Not well-formed, and the links are there all the same.
    let broken =
        "<html><script src='/a.js'/><p><a href='/x'><br></p><script>if (a<b && c) {}</script><a href=/y>";
    let all = ["E /a.js script/@src", "L /x a/@href", "L /y a/@href"];
    assert_eq!(found("application/xhtml+xml", broken.as_bytes()), all);
    let svg = "<svg><title/><style/><script href='/s.js'/><a href='/x'/></svg>";
    assert_eq!(found("image/svg+xml", svg.as_bytes()), ["E /s.js script/@href", "L /x a/@href"]);
    let inline = format!("<p>{svg}<script>/* &amp; */</script><a href='/y'>");
    assert_eq!(
        found("text/html", inline.as_bytes()),
        ["E /s.js script/@href", "L /x a/@href", "L /y a/@href"]
    );
}
