//! URLs that keep the text they came from.

use urlkey::OriginalUrl;

#[test]
fn the_text_stays_and_the_url_is_a_browsers() {
    let url = OriginalUrl::parse("HTTP://Example.com:80/a b/../ü#x").unwrap();
    assert_eq!(url.original(), "HTTP://Example.com:80/a b/../ü#x");
    assert_eq!(url.url().as_str(), "http://example.com/%C3%BC#x");
    assert_eq!(url.key(), "com,example)/%c3%bc");
    assert_eq!(url.to_string(), url.original());
}

#[test]
fn references_are_joined() {
    let base = url::Url::parse("http://example.com/a/b").unwrap();
    assert_eq!(OriginalUrl::join(&base, "../c").unwrap().url().as_str(), "http://example.com/c");
}

#[test]
fn what_is_no_url_says_so() {
    let error = OriginalUrl::parse("http://exa mple/").unwrap_err();
    assert_eq!(error.to_string(), "not a URL: \"http://exa mple/\"");
}
