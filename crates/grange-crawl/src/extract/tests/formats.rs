//! Everything that is not a page: headers, feeds, sitemaps, PDF, playlists, and telling them apart.

use std::io::Write;

use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use url::Url;

use super::{PAGE, check, document, extracted, found, lines, plain};
use crate::extract::{Body, Document, Extraction, Format, Role, Settings, extract};

fn of(url: &str, content_type: Option<&str>, role: Role, body: &[u8]) -> Extraction {
    let url = Url::parse(url).unwrap();
    extract(Document { url: &url, content_type, headers: &[], role, body: Body::Bytes(body) }, &plain())
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn headers_redirect_refresh_link_and_locate() {
    let cases: &[(&str, &[u8], &[&str])] = &[
        ("Location", b"../new", &["R /new Location:"]),
        ("LOCATION", "http://other.org/é".as_bytes(), &["R http://other.org/%C3%A9 Location:"]),
        ("Location", b"/caf\xe9", &["R /caf%C3%A9 Location:"]),
        ("Refresh", b"3;url=/r", &["R /r Refresh:"]),
        ("Content-Location", b"page.en.html", &["I /dir/page.en.html Content-Location:"]),
        (
            "Link",
            b"</s.css>; rel=preload; as=style, </n>; rel=\"next\"; title=\"a, b\", <//cdn.org>; rel=preconnect,</p>",
            &["E /s.css Link:", "L /n Link:", "L /p Link:"],
        ),
        ("Link", b"<unclosed", &[]),
        ("Server", b"http://other.org/", &[]),
    ];
    let url = Url::parse(PAGE).unwrap();
    for (name, value, expected) in cases {
        let headers: &[(&[u8], &[u8])] = &[(name.as_bytes(), value)];
        let mut document = document(&url, "image/png", b"");
        document.headers = headers;
        assert_eq!(lines(&extract(document, &plain())), *expected, "{name}");
    }
}

#[test]
fn the_format_is_known_by_type_and_by_first_bytes() {
    let cases: &[(Option<&str>, &str, &str, Format)] = &[
        (Some("text/html"), "/", "<p>", Format::Html),
        (Some("text/html"), "/", "plain words", Format::Html),
        (Some("text/html"), "/", "<?xml version='1.0'?><rss>", Format::Feed),
        (Some("text/html"), "/", "<?xml version='1.0'?><urlset>", Format::Sitemap),
        (Some("text/plain"), "/", "<!DOCTYPE html><p>", Format::Html),
        (Some("text/plain"), "/x.css", "a{}", Format::Css),
        (Some("text/plain"), "/x", "words", Format::Text),
        (Some("application/xml"), "/", "<!-- c --><?pi?><s:sitemapindex xmlns:s='x'>", Format::Sitemap),
        (Some("text/xml"), "/", "<feed xmlns='x'>", Format::Feed),
        (Some("text/xml"), "/", "<?xml version='1.0'?><html>", Format::Html),
        (Some("text/xml"), "/", "<other>", Format::Xml),
        (Some("application/xhtml+xml; charset=utf-8"), "/", "", Format::Html),
        (Some("image/svg+xml"), "/", "<svg>", Format::Svg),
        (Some("application/ld+json"), "/", "{}", Format::Json),
        (Some("text/javascript"), "/x.js", "<!DOCTYPE html><title>404", Format::Html),
        (Some("text/javascript"), "/x.js", "<!-- hide\nvar a", Format::Script),
        (Some("text/css"), "/x.css", "a{}", Format::Css),
        (Some("application/octet-stream"), "/x", "%PDF-1.4", Format::Pdf),
        (Some("video/mp2t"), "/x", "#EXTM3U\n", Format::Playlist),
        (Some("image/png"), "/x", "<html>", Format::Other),
        (Some("application/zip"), "/x", "PK", Format::Other),
        (None, "/", "\u{feff} \n<HTML>", Format::Html),
        (None, "/x.js", "var a", Format::Script),
        (None, "/x", "words", Format::Other),
        (None, "/robots.txt", "User-agent: *", Format::Robots),
    ];
    for (content_type, path, body, format) in cases {
        let extraction = of(&format!("http://h.org{path}"), *content_type, Role::Any, body.as_bytes());
        assert_eq!(extraction.format, *format, "{content_type:?} {path} {body}");
    }
}

#[test]
fn feeds_give_entries_and_enclosures() {
    check(
        "application/rss+xml",
        &[
            (
                "<?xml version='1.0'?><?xml-stylesheet href='/s.xsl'?><rss><channel><link>/home</link>\
                 <atom:link href='/self.rss' rel='self'/><image><url>/logo.png</url><link>/home</link></image>\
                 <item><link><![CDATA[ /one?a=1&b=2 ]]></link><guid>http://example.com/one</guid>\
                 <enclosure url='/one.mp3'/><media:content url='/one.jpg'/><comments>/one#c</comments></item>\
                 <item><link>/two?a=1&amp;b=2</link><guid>tag:two</guid><itunes:image href='/two.jpg'/></item></rss>",
                &[
                    "E /s.xsl =EMBED_MISC",
                    "L /home link",
                    "L /self.rss link/@href",
                    "E /logo.png image",
                    "L /one?a=1&b=2 link",
                    "L /one guid",
                    "E /one.mp3 enclosure/@url",
                    "E /one.jpg enclosure/@url",
                    "L /two?a=1&b=2 link",
                    "E /two.jpg image/@href",
                ],
            ),
            (
                "<feed xmlns='http://www.w3.org/2005/Atom'><link href='/'/><link rel='enclosure' href='/e.mp3'/>\
                 <entry><link rel='alternate' href='/entry'/><content src='/full.html'/></entry><icon>/i.ico</icon></feed>",
                &[
                    "L / link/@href",
                    "E /e.mp3 link/@href",
                    "L /entry link/@href",
                    "E /full.html content/@src",
                    "E /i.ico image",
                ],
            ),
        ],
    );
}

#[test]
fn other_xml_gives_absolute_urls_that_are_not_names() {
    check(
        "text/xml",
        &[(
            "<x xmlns='http://names.org/ns/' xsi:schemaLocation='http://names.org/a.xsd' u='http://other.org/a?b&amp;c'>\
             <y> http://other.org/text </y><z>see http://other.org/prose here</z><w>/relative/x.html</w>\
             <![CDATA[http://other.org/data]]><v xlink='http://www.w3.org/1999/xlink'/></x>",
            &[
                "X http://other.org/a?b&c =SPECULATIVE_MISC",
                "X http://other.org/text =SPECULATIVE_MISC",
                "X http://other.org/data =SPECULATIVE_MISC",
            ],
        )],
    );
}

const SITEMAP: &str = "<?xml version='1.0' encoding='UTF-8'?><!-- c --><urlset xmlns='x' xmlns:image='y'>\
    <url><loc> http://example.com/a?b&amp;c </loc><lastmod>2020-01-01</lastmod>\
    <image:image><image:loc>http://example.com/a.jpg</image:loc></image:image>\
    <xhtml:link rel='alternate' hreflang='de' href='http://example.com/de'/>\
    <video:video><video:thumbnail_loc>http://example.com/t.jpg</video:thumbnail_loc>\
    <video:content_loc>http://example.com/v.mp4</video:content_loc></video:video>\
    <news:news><news:title>http://example.com/title</news:title></news:news></url>\
    <url><loc><![CDATA[http://example.com/b&c]]></loc></url><url><loc/></url></urlset>";

const SITEMAP_LINKS: [&str; 6] = [
    "M /a?b&c =MANIFEST_MISC",
    "M /a.jpg =MANIFEST_MISC",
    "M /de =MANIFEST_MISC",
    "M /t.jpg =MANIFEST_MISC",
    "M /v.mp4 =MANIFEST_MISC",
    "M /b&c =MANIFEST_MISC",
];

#[test]
fn sitemaps_give_their_entries_packed_or_not() {
    let extraction = extracted("text/xml", SITEMAP.as_bytes(), &plain());
    assert_eq!(lines(&extraction), SITEMAP_LINKS);
    assert!(extraction.annotations.contains(&"isSitemap".to_owned()));
    let index = b"<sitemapindex><sitemap><loc>http://example.com/s1.xml.gz</loc></sitemap></sitemapindex>";
    assert_eq!(found("text/xml", index), ["M /s1.xml.gz =MANIFEST_MISC"]);

    let packed = gzip(SITEMAP.as_bytes());
    for (url, role) in
        [("http://example.com/sitemap.xml.gz", Role::Any), ("http://example.com/anything", Role::Sitemap)]
    {
        let extraction = of(url, Some("application/x-gzip"), role, &packed);
        assert_eq!(
            (extraction.format, lines(&extraction)),
            (Format::Sitemap, SITEMAP_LINKS.map(str::to_owned).to_vec())
        );
        // Cut short, as a broken transfer leaves it.
        let _ = of(url, None, role, &packed[..packed.len() / 2]);
    }
    let archive = of("http://example.com/data.tar.gz", Some("application/gzip"), Role::Any, &packed);
    assert_eq!(archive.format, Format::Other);
}

#[test]
fn a_sitemap_may_be_a_list_of_lines_or_a_feed() {
    let list = b"\xef\xbb\xbfhttp://example.com/1\r\n\r\njunk\nhttp://example.com/2\rhttp://example.com/3";
    let extraction = of("http://example.com/sitemap.txt", Some("text/plain"), Role::Sitemap, list);
    assert_eq!(lines(&extraction), ["M /1 =MANIFEST_MISC", "M /2 =MANIFEST_MISC", "M /3 =MANIFEST_MISC"]);
    let feed =
        of("http://example.com/feed", None, Role::Sitemap, b"<rss><link>http://example.com/x</link></rss>");
    assert_eq!(lines(&feed), ["L /x link"]);
    let page = of("http://example.com/s.xml", Some("text/html"), Role::Sitemap, b"<html><a href=/gone>");
    assert_eq!((page.format, lines(&page)), (Format::Html, vec!["L /gone a/@href".to_owned()]));
    let many: Vec<_> = (0..7_000).map(|n| format!("<url><loc>http://example.com/{n}</loc></url>")).collect();
    let many = extracted("text/xml", format!("<urlset>{}</urlset>", many.concat()).as_bytes(), &plain());
    assert_eq!((many.links.len(), many.dropped), (7_000, 0));
}

#[test]
fn robots_txt_names_sitemaps() {
    let robots =
        b"User-agent: *\nDisallow: /\nSitemap: http://example.com/s.xml\nsitemap:/relative.xml # c\nSitemap:";
    let extraction = of("http://example.com/robots.txt", Some("text/plain"), Role::Robots, robots);
    assert_eq!(lines(&extraction), ["M /s.xml =MANIFEST_MISC", "M /relative.xml =MANIFEST_MISC"]);
    let url = Url::parse(PAGE).unwrap();
    let without = Settings { sitemaps: false, ..plain() };
    let document = Document { role: Role::Robots, ..document(&url, "text/plain", robots) };
    assert!(extract(document, &without).links.is_empty());
}

#[test]
fn playlists_give_what_they_play() {
    check(
        "application/vnd.apple.mpegurl",
        &[(
            "#EXTM3U\n#EXT-X-KEY:METHOD=AES-128,URI=\"k.key\"\n#EXTINF:4,\nseg1.ts\r\n\n#EXT-X-MEDIA:TYPE=AUDIO,URI=\"/a.m3u8\",X=1\n/low.m3u8\n",
            &[
                "E /dir/k.key =EMBED_MISC",
                "E /dir/seg1.ts =EMBED_MISC",
                "E /a.m3u8 =EMBED_MISC",
                "E /low.m3u8 =EMBED_MISC",
            ],
        )],
    );
}

#[test]
fn pdf_links_are_found_plain_and_packed() {
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::default());
    packed.write_all(b"12 0 <</Type/Annot/A<</S/URI/URI(http://other.org/packed)>>>>").unwrap();
    let packed = packed.finish().unwrap();
    let mut pdf = b"%PDF-1.5\n1 0 obj <</Type/Annot/Subtype/Link/A <</S /URI /URI (http://other.org/a\\(1\\)\\055b)>>>> endobj\n\
        2 0 obj <</URI <687474703A2F2F6F746865722E6F72672F686578>>> endobj\n\
        3 0 obj <</URI (relative.html) >> endobj 4 0 obj <</URI (mailto:a@b.c)>> endobj /URI /URI (not \n an address)\n"
        .to_vec();
    pdf.extend_from_slice(b"5 0 obj <</Type/ObjStm/N 1/First 4/Filter/FlateDecode/Length 9>>stream\r\n");
    pdf.extend_from_slice(&packed);
    pdf.extend_from_slice(b"\nendstream endobj");
    assert_eq!(
        found("application/pdf", &pdf),
        [
            "L http://other.org/a(1)-b =NAVLINK_MISC",
            "L http://other.org/hex =NAVLINK_MISC",
            "L /dir/relative.html =NAVLINK_MISC",
            "L http://other.org/packed =NAVLINK_MISC",
        ]
    );
    pdf.extend_from_slice(b"trailer <</Encrypt 9 0 R>>");
    assert_eq!(found("application/pdf", &pdf), [""; 0]);
}

#[test]
fn plain_text_is_read_when_asked_for() {
    let body = b"See http://other.org/a, (https://other.org/b) and HTTP://other.org/c_(d). Not ftp://x.org/ or http://nothing";
    assert_eq!(found("text/plain", body), [""; 0]);
    let settings = Settings { text: true, ..plain() };
    assert_eq!(
        lines(&extracted("text/plain", body, &settings)),
        [
            "X http://other.org/a =SPECULATIVE_MISC",
            "X https://other.org/b =SPECULATIVE_MISC",
            "X http://other.org/c_(d) =SPECULATIVE_MISC",
        ]
    );
}

#[test]
fn drawings_give_their_parts() {
    check(
        "image/svg+xml",
        &[(
            "<svg xmlns:xlink='http://www.w3.org/1999/xlink'><style>@import url(/s.css);</style><image href='/i.png'/></svg>",
            &["E /s.css =EMBED_MISC", "E /i.png image/@href"],
        )],
    );
}
