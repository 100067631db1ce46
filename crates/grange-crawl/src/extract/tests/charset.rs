//! Which encoding a document is in, and what that does to its links.

use encoding_rs::{Encoding, UTF_16BE, UTF_16LE};

use super::{extracted, found, plain};
use crate::extract::charset::charset;

#[test]
fn the_encoding_comes_from_mark_header_declaration_or_the_bytes() {
    let latin = encoding_rs::WINDOWS_1252.encode("<p>Déjà vu à la crèche, où l'élève étudie").0;
    let japanese =
        encoding_rs::SHIFT_JIS.encode("<p>これは日本語のページです。漢字とかなが混ざっています。").0;
    let cases: &[(Option<&str>, &[u8], &str)] = &[
        (None, b"\xef\xbb\xbf<meta charset=iso-8859-1>", "UTF-8"),
        (Some("text/html; charset=utf-8"), b"\xff\xfe<\0", "UTF-16LE"),
        (Some("text/html; charset=\"ISO-8859-2\""), b"<meta charset=utf-8>", "ISO-8859-2"),
        (Some("text/html;Charset=Shift_JIS;x=y"), b"", "Shift_JIS"),
        (Some("text/html; charset=nonsense"), b"<meta charset=koi8-r>", "KOI8-R"),
        (Some("text/html; charset="), b"<meta charset=koi8-r>", "KOI8-R"),
        (
            None,
            b"<html><META http-equiv=Content-Type content='text/html; charset=windows-1251'>",
            "windows-1251",
        ),
        (None, b"<?xml version='1.0' encoding='ISO-8859-15'?><a/>", "ISO-8859-15"),
        (None, b"@charset \"euc-jp\";", "EUC-JP"),
        (None, b"<meta charset=utf-16>", "UTF-8"),
        (None, b"<metadata charset=koi8-r>", "UTF-8"),
        (None, "<p>žluťoučký kůň".as_bytes(), "UTF-8"),
        (None, b"<p>plain", "UTF-8"),
        (None, &latin, "windows-1252"),
        (None, &japanese, "Shift_JIS"),
        (None, b"<\0p\0>\0", "UTF-16LE"),
        (None, b"\0<\0p\0>", "UTF-16BE"),
    ];
    for (content_type, head, name) in cases {
        assert_eq!(charset(*content_type, head).encoding.name(), *name, "{content_type:?} {head:?}");
    }
    let note = charset(Some("text/html; charset=a,b c"), b"").annotation;
    assert_eq!(note.as_deref(), Some("unsatisfiableCharsetInHeader:a?b?c"));
}

#[test]
fn links_are_read_in_the_encoding_of_the_page_and_queries_sent_in_it() {
    let page = "<meta charset=LABEL><a href='/déjà?vu=é'>";
    let expected = [
        ("utf-8", "L /d%C3%A9j%C3%A0?vu=%C3%A9 a/@href"),
        ("iso-8859-1", "L /d%C3%A9j%C3%A0?vu=%E9 a/@href"),
    ];
    for (label, expected) in expected {
        let encoding = Encoding::for_label(label.as_bytes()).unwrap();
        let page = page.replace("LABEL", label);
        assert_eq!(found("text/html", &encoding.encode(&page).0), [expected], "{label}");
    }
    let page = encoding_rs::SHIFT_JIS.encode("<a title=表 href=\"/表?q=ソ\"><img src=/i.png>").0;
    let links = found("text/html; charset=shift_jis", &page);
    assert_eq!(links, ["L /%E8%A1%A8?q=%83\\ a/@href", "E /i.png img/@src"]);
}

#[test]
fn wide_encodings_are_turned_into_utf_8_first() {
    let text = "<!doctype html><a href='/é'><img src=/i.png>";
    for (encoding, mark) in [(UTF_16LE, &b"\xff\xfe"[..]), (UTF_16BE, b"\xfe\xff")] {
        let units = text.encode_utf16();
        let body: Vec<u8> = if encoding == UTF_16LE {
            units.flat_map(u16::to_le_bytes).collect()
        } else {
            units.flat_map(u16::to_be_bytes).collect()
        };
        for body in [[mark, &body].concat(), body] {
            let extraction = extracted("text/html", &body, &plain());
            assert_eq!(extraction.charset, Some(encoding.name()));
            assert_eq!(super::lines(&extraction), ["L /%C3%A9 a/@href", "E /i.png img/@src"]);
        }
    }
    let page = encoding_rs::ISO_2022_JP.encode("<p>日本</p><a href=/x>").0;
    assert_eq!(found("text/html; charset=iso-2022-jp", &page), ["L /x a/@href"]);
}
