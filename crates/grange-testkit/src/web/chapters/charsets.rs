//! The same address in several encodings: the path is asked for in UTF-8 whatever the page is written in.

use crate::web::answer::Answer;
use crate::web::place::Place::AHref;
use crate::web::site::Builder;

pub(super) fn write(site: &mut Builder, index: &str) {
    let utf16 = {
        let text = "<html><body><a href=\"/charsets/utf16-œuvre.html\">x</a></body></html>\n";
        let units = std::iter::once(0xFEFF).chain(text.encode_utf16());
        units.flat_map(u16::to_le_bytes).collect::<Vec<u8>>()
    };
    let pages: [(&str, &str, Vec<u8>, &str); 5] = [
        (
            "/charsets/utf-8.html",
            "text/html; charset=UTF-8",
            "<html><body><a href=\"/charsets/utf8-é.html\">x</a></body></html>\n".into(),
            "/charsets/utf8-%C3%A9.html",
        ),
        (
            "/charsets/latin-1.html",
            "text/html; charset=iso-8859-1",
            b"<html><body><a href=\"/charsets/latin-caf\xE9.html\">x</a></body></html>\n".to_vec(),
            "/charsets/latin-caf%C3%A9.html",
        ),
        (
            "/charsets/windows-1252.html",
            "text/html",
            b"<html><head><meta charset=\"windows-1252\"></head><body><a href=\"/charsets/win-\x9Cuvre.html\">x</a></body></html>\n".to_vec(),
            "/charsets/win-%C5%93uvre.html",
        ),
        (
            "/charsets/koi8-r.html",
            "text/html",
            b"<html><head><meta http-equiv=\"Content-Type\" content=\"text/html; charset=koi8-r\"></head><body><a href=\"/charsets/koi-\xC4\xC1.html\">x</a></body></html>\n".to_vec(),
            "/charsets/koi-%D0%B4%D0%B0.html",
        ),
        ("/charsets/utf-16.html", "text/html", utf16, "/charsets/utf16-%C5%93uvre.html"),
    ];
    let mut page = site.document();
    for (path, mime, body, target) in pages {
        page.plant(&format!("<a href=\"{path}\">{path}</a>"), &[(AHref, path)]);
        let mut links = site.document();
        links.record(&[(AHref, target)]);
        site.put(path, Answer::new(200, mime, body), links);
    }
    site.page(index, "Encodings", page);
}
