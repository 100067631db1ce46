//! Whatever comes: nothing panics, links are sound, limits hold.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use url::Url;

use super::{PAGE, document, extracted, plain};
use crate::extract::{Body, Document, Extraction, Guess, MaxDocument, Role, Settings, extract};

const TYPES: [&str; 12] = [
    "text/html",
    "text/css",
    "text/javascript",
    "application/json",
    "text/xml",
    "application/rss+xml",
    "image/svg+xml",
    "application/pdf",
    "application/vnd.apple.mpegurl",
    "text/plain",
    "text/html; charset=utf-16le",
    "application/octet-stream",
];

fn eager() -> Settings {
    Settings { javascript: Guess::Eager, text: true, max_links: 50, ..Settings::default() }
}

fn assert_sound(extraction: &Extraction, settings: &Settings) {
    assert!(extraction.links.len() <= settings.max_links.max(settings.max_sitemap_links));
    for (index, link) in extraction.links.iter().enumerate() {
        assert!(matches!(link.url.scheme(), "http" | "https") && link.url.fragment().is_none());
        assert!(link.url.as_str().len() <= settings.max_url_length);
        assert!(
            !link.context.contains(char::is_whitespace) && link.context.len() <= 100,
            "{:?}",
            link.context
        );
        assert!(extraction.links[..index].iter().all(|other| other.url != link.url));
    }
}

/// Every extractor on the same bytes.
fn survive(body: &[u8]) {
    let url = Url::parse(PAGE).unwrap();
    let settings = eager();
    for content_type in TYPES {
        assert_sound(&extracted(content_type, body, &settings), &settings);
    }
    for role in [Role::Robots, Role::Sitemap] {
        let extraction = extract(Document { role, ..document(&url, "", body) }, &settings);
        assert_sound(&extraction, &settings);
    }
    let headers: Vec<(&[u8], &[u8])> =
        [&b"Location"[..], b"Refresh", b"Link", b"Content-Location", b"X-Robots-Tag"]
            .map(|name| (name, body))
            .to_vec();
    let content_type = String::from_utf8_lossy(body);
    let whole = Document { headers: &headers, content_type: Some(&content_type), ..document(&url, "", body) };
    assert_sound(&extract(whole, &settings), &settings);
}

/// What the readers of all formats look for.
const PIECES: &[&[u8]] = &[
    b"<a href=",
    b"<img srcset='",
    b"<meta http-equiv=refresh content=",
    b"<base href=",
    b"url(",
    b"@import",
    b"image-set(",
    b"\"",
    b"'",
    b"`",
    b"\\",
    b"\\u00",
    b"\\x",
    b"http://",
    b"//a.b/",
    b"/x.js",
    b"<script>",
    b"</script>",
    b"<style>",
    b"<!--",
    b"-->",
    b"<!--[if",
    b"]>",
    b"<![endif]",
    b"&#x",
    b"&amp;",
    b"&",
    b";",
    b",",
    b"(",
    b")",
    b"=",
    b"<?xml version='1.0'?>",
    b"<urlset>",
    b"<loc>",
    b"</loc>",
    b"<rss>",
    b"<link>",
    b"</link>",
    b"<![CDATA[",
    b"]]>",
    b"%PDF-1.4",
    b"/URI (",
    b"/URI <",
    b"/ObjStm/FlateDecode stream\n",
    b"#EXTM3U\n",
    b"URI=\"",
    b"Sitemap: ",
    b"\n",
    b"\r",
    b" ",
    b"\0",
    b"\xff\xfe",
    b"\xfe\xff",
    b"\xef\xbb\xbf",
    b"\xc3",
    b"\xa9",
    b"\x1b$B",
    b"\x80",
    b"%E",
    b"data-src=",
    b"style=",
    b"onclick=",
    b"<object codebase=",
    b" data=",
    b"<iframe srcdoc='",
    b"0;url=",
    b"rel=",
    b">",
    b"/>",
    b"</",
];

fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(PIECES);
    prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn random_bytes(body in prop::collection::vec(any::<u8>(), 0..300)) {
        survive(&body);
    }

    #[test]
    fn pieces_of_all_formats(body in pieces()) {
        survive(&body);
    }

    #[test]
    fn a_damaged_page(at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<prop::sample::Index>()) {
        let mut page = include_bytes!("page.html").to_vec();
        let at = at.index(page.len());
        page[at] = byte;
        survive(&page);
        survive(&page[..cut.index(page.len())]);
    }
}

/// Of each, so many that a reader which looks at the rest for every one of them would not come to its end.
#[test]
fn a_document_of_one_piece_again_and_again_is_read() {
    const BYTES: usize = 200_000;
    let url = Url::parse(PAGE).unwrap();
    let settings = eager();
    for piece in PIECES {
        let body = piece.repeat(BYTES / piece.len());
        for content_type in TYPES {
            let extraction = extract(document(&url, content_type, &body), &settings);
            assert_sound(&extraction, &settings);
        }
    }
}

#[test]
fn only_so_much_is_read() {
    let limits =
        MaxDocument { html: grange_base::Size(40), css: grange_base::Size(20), ..MaxDocument::default() };
    let settings = Settings { max_document: limits, ..plain() };
    let page = format!("<a href=/near>{}<a href=/far>", " ".repeat(40));
    assert_eq!(super::lines(&extracted("text/html", page.as_bytes(), &settings)), ["L /near a/@href"]);
    let css = "a{b:url(/near)}       c{d:url(/far)}";
    assert_eq!(super::lines(&extracted("text/css", css.as_bytes(), &settings)), ["E /near =EMBED_MISC"]);
}

/// A reader that never ends costs time, not memory: the reading stops at the limit.
#[test]
fn endless_documents_end() {
    struct Endless(Vec<u8>, u64);
    impl std::io::Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let at = (self.1 % self.0.len() as u64) as usize;
            let len = buffer.len().min(self.0.len() - at);
            buffer[..len].copy_from_slice(&self.0[at..at + len]);
            self.1 += len as u64;
            Ok(len)
        }
    }
    let url = Url::parse(PAGE).unwrap();
    for (content_type, pattern) in [
        ("text/html", &b"<a href=/x>"[..]),
        ("text/html", b"<"),
        ("text/html", b"<a "),
        ("text/html", b"<!--"),
        ("text/html", b"<script>"),
        ("text/xml", b"<?xml version='1.0'?><urlset><loc>http://example.com/</loc>"),
        ("application/rss+xml", b"<link>x"),
        ("text/css", b"url("),
        ("text/javascript", b"'/a/b.js"),
        ("application/vnd.apple.mpegurl", b"x"),
        ("application/pdf", b"/URI ("),
    ] {
        // Where it is one token that never ends, more than the largest one.
        let size =
            grange_base::Size::mib(if pattern.len() < 9 && content_type == "text/html" { 5 } else { 1 });
        let max_document = MaxDocument {
            html: size,
            xml: size,
            sitemap: size,
            script: size,
            css: size,
            pdf: size,
            text: size,
        };
        let settings = Settings { max_document, ..plain() };
        let mut reader = Endless(pattern.repeat(10_000), 0);
        let document = Document { body: Body::Read(&mut reader), ..document(&url, content_type, &[]) };
        let extraction = extract(document, &settings);
        assert!(extraction.links.len() < 3, "{content_type}");
        assert!(reader.1 <= size.0 + (1 << 20), "{content_type} read {}", reader.1);
    }
}

#[test]
fn a_packed_bomb_is_unpacked_up_to_the_limit() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(b"<urlset><url><loc>http://example.com/first</loc></url>").unwrap();
    let blanks = vec![b' '; 1 << 20];
    for _ in 0..64 {
        encoder.write_all(&blanks).unwrap();
    }
    let bomb = encoder.finish().unwrap();
    let max_document = MaxDocument { sitemap: grange_base::Size::mib(1), ..MaxDocument::default() };
    let settings = Settings { max_document, ..plain() };
    let url = Url::parse("http://example.com/sitemap.xml.gz").unwrap();
    let extraction = extract(Document { role: Role::Sitemap, ..document(&url, "", &bomb) }, &settings);
    assert_eq!(super::lines(&extraction), ["M /first =MANIFEST_MISC"]);
}
