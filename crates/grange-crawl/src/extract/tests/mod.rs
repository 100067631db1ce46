//! What is found, and what is left alone.

mod charset;
mod formats;
mod hostile;
mod html;
mod script;
mod source;

use url::Url;

use super::{Body, Document, Extraction, Role, Settings, extract};

/// The page all tests are about.
const PAGE: &str = "http://example.com/dir/page.html";

fn document<'a>(url: &'a Url, content_type: &'a str, body: &'a [u8]) -> Document<'a> {
    Document { url, content_type: Some(content_type), headers: &[], role: Role::Any, body: Body::Bytes(body) }
}

/// Guesses of custom are off, so that a table shows what stands in the document.
fn plain() -> Settings {
    Settings { favicon: false, ..Settings::default() }
}

fn extracted(content_type: &str, body: &[u8], settings: &Settings) -> Extraction {
    let url = Url::parse(PAGE).unwrap();
    let whole = extract(document(&url, content_type, body), settings);
    // The same bytes from a reader give the same links.
    let mut reader = body;
    let streamed = Document { body: Body::Read(&mut reader), ..document(&url, content_type, &[]) };
    assert_eq!(extract(streamed, settings), whole);
    whole
}

/// One line per link: `L http://… a/@href`; links to the page's own site without it.
fn lines(extraction: &Extraction) -> Vec<String> {
    let link = |link: &crate::Link| {
        let url = link.url.as_str();
        let url = url.strip_prefix("http://example.com").unwrap_or(url);
        format!("{} {url} {}", link.hop.letter(), link.context)
    };
    extraction.links.iter().map(link).collect()
}

fn found(content_type: &str, body: &[u8]) -> Vec<String> {
    lines(&extracted(content_type, body, &plain()))
}

/// Runs a table of documents and what is found in them.
fn check(content_type: &str, cases: &[(&str, &[&str])]) {
    for (body, expected) in cases {
        assert_eq!(found(content_type, body.as_bytes()), *expected, "{body}");
    }
}

#[test]
fn what_should_be_a_url_and_is_none_is_told_and_guesses_are_not() {
    let page = br##"<a href="http://[1::2">a</a><img src="http://exa mple.com/"><a href="/good">b</a>
        <a href="mailto:a@b.example">c</a><a href="#top">d</a><script>var x = "http://[bad/y.js";</script>"##;
    let found = extracted("text/html", page, &plain());
    let told: Vec<_> = found.bad.iter().map(|bad| (bad.text.as_str(), bad.reason.to_string())).collect();
    assert_eq!(
        told,
        [
            ("http://[1::2", "invalid IPv6 address".to_owned()),
            ("http://exa mple.com/", "invalid international domain name".to_owned()),
        ]
    );
    let long = format!(
        "<a href='http://u:p@a.example/{}'>x</a><a href='{}'>y</a>",
        "l".repeat(3000),
        "ü".repeat(800)
    );
    let found = extracted("text/html", long.as_bytes(), &plain());
    assert_eq!(found.annotations.last().map(String::as_str), Some("tooLongLinks:2"));
    let told: Vec<_> = found.bad.iter().map(|bad| bad.reason.to_string()).collect();
    assert!(told[0].ends_with("bytes are longer than extract.max_url_length (2083)"), "{told:?}");
    assert!(found.bad[0].text.starts_with("http://a.example/lll") && found.bad[0].text.len() <= 200);
    let data = format!("<img src='data:image/png;base64,{}'>", "A".repeat(3000));
    assert_eq!(extracted("text/html", data.as_bytes(), &plain()).bad, []);
    let rubbish = "<a href='http://[x'>x</a>".repeat(1000);
    assert_eq!(extracted("text/html", rubbish.as_bytes(), &plain()).bad.len(), 50);
}
