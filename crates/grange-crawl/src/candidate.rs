//! A URL that may be fetched, and how we came to it.

use std::borrow::Cow;
use std::sync::Arc;

use url::{Position, Url};

use crate::hops::Hops;
use crate::link::Link;

/// A URL on its way into the frontier. It has no fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub url: Url,
    /// The page that named it; none for a seed.
    pub via: Option<Arc<str>>,
    pub hops: Hops,
    /// The seed it descends from, for the source report; the same text for all that do.
    pub source: Option<Arc<str>>,
    /// To be fetched even if it was seen before (a robots.txt that grew old, an operator's wish, a redirect
    /// to the same canonical URL).
    pub force: bool,
}

impl Candidate {
    pub fn seed(mut url: Url) -> Candidate {
        url.set_fragment(None);
        let source = Arc::from(&*target_uri(&url));
        Candidate { url, via: None, hops: Hops::seed(), source: Some(source), force: false }
    }

    /// How records, logs and `Referer` name it.
    pub fn target_uri(&self) -> Cow<'_, str> {
        target_uri(&self.url)
    }

    /// What `link`, found in this candidate's document, leads to. `via` is this candidate's target URI, given so that
    /// all links of a page share one text.
    #[must_use]
    pub fn next(&self, link: Link, via: &Arc<str>) -> Candidate {
        Candidate {
            url: link.url,
            via: Some(Arc::clone(via)),
            hops: self.hops.and(link.hop),
            source: self.source.clone(),
            force: false,
        }
    }
}

/// `url` as records, logs and `Referer` name it: without fragment, and without user name and password, which are for
/// the server alone (RFC 9110 10.1.3).
pub fn target_uri(url: &Url) -> Cow<'_, str> {
    let rest = &url[Position::BeforeHost..Position::AfterQuery];
    if url.username().is_empty() && url.password().is_none() {
        Cow::Borrowed(&url[..Position::AfterQuery])
    } else {
        Cow::Owned(format!("{}{rest}", &url[..Position::BeforeUsername]))
    }
}

/// A URL without user name and password: what links are resolved against. A browser keeps them for the origin, apart from
/// URLs.
#[must_use]
pub fn bare(mut url: Url) -> Url {
    // Refused only where there is no host, and so no user.
    let _ = url.set_username("").and_then(|()| url.set_password(None));
    url
}

/// A text that should be a URL with a host and may be none, without what would be its user name and password.
pub fn without_user_info(text: &str) -> Cow<'_, str> {
    let web = |scheme: &str| matches!(scheme.trim().to_ascii_lowercase().as_str(), "http" | "https");
    let after = match text.split_once(':') {
        Some((scheme, rest)) if web(scheme) || rest.starts_with("//") => rest,
        _ if text.starts_with(['/', '\\']) => text,
        _ => return Cow::Borrowed(text),
    };
    let after = after.trim_start_matches(['/', '\\']);
    let authority = &after[..after.find(['/', '?', '#', '\\']).unwrap_or(after.len())];
    match authority.rfind('@') {
        Some(at) => Cow::Owned(format!("{}{}", &text[..text.len() - after.len()], &after[at + 1..])),
        None => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_should_be_a_url_is_told_without_credentials() {
        for (text, told) in [
            ("http://u:p@exa mple.org/", "http://exa mple.org/"),
            ("HTTPS:\\\\u:p@[1::2/a@b", "HTTPS:\\\\[1::2/a@b"),
            ("//u:p@q@[x/", "//[x/"),
            ("http:u:p@[x", "http:[x"),
            ("ftp://u:p@[x/", "ftp://[x/"),
            ("mailto:u@x", "mailto:u@x"),
            ("http://[x/a?b=c@d", "http://[x/a?b=c@d"),
            ("a@b", "a@b"),
            ("", ""),
        ] {
            assert_eq!(without_user_info(text), told);
        }
    }

    #[test]
    fn a_target_uri_has_neither_credentials_nor_a_fragment() {
        for (url, expected) in [
            ("http://Example.org/a?b", "http://example.org/a?b"),
            ("http://example.org/a?b#c", "http://example.org/a?b"),
            ("http://user@example.org:8080/?@#c", "http://example.org:8080/?@"),
            ("https://user:pass@[::1]/", "https://[::1]/"),
            ("https://:pass@example.org", "https://example.org/"),
            ("dns:example.org", "dns:example.org"),
        ] {
            let url = Url::parse(url).unwrap();
            assert_eq!(target_uri(&url), expected);
            assert_eq!(Candidate::seed(url).source.as_deref(), Some(expected));
        }
    }
}
