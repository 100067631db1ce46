//! Whether a record is the one that an index line speaks of.
//!
//! Lines come from other programs, and files change under their indexes: a line may point at any record. One that is of
//! another URL, or of a type that is no answer, would be shown under a name that is not its own.

use percent_encoding::percent_decode;
use warc::{Record, RecordType};

use super::{About, Place};

/// How well a record has to fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    /// The URL as the line writes it, and its time.
    Exact,
    /// The same URL otherwise written, at any time.
    SameUrl,
}

impl Fit {
    /// In the order in which they are tried.
    pub(crate) const ALL: [Self; 2] = [Self::Exact, Self::SameUrl];
}

/// Whether a record fits. One without a URL, as warcinfo is, never does where the line has one: it may lie before others in one
/// gzip member. Where no URL is known, the place alone names the record.
pub(crate) fn fits(record: &Record<'_>, place: &Place, fit: Fit) -> bool {
    let url = place.url.is_empty()
        || can_be_capture(record.kind(), &place.url)
            && record.target_uri().is_some_and(|uri| match fit {
                Fit::Exact => String::from_utf8_lossy(uri) == place.url.as_str(),
                Fit::SameUrl => is_same_url(&text_of(uri), &place.url),
            });
    url && (fit == Fit::SameUrl || has_time(record, place))
}

/// A URL as indexers write it: bytes that are not UTF-8 are read as Latin-1.
fn text_of(uri: &[u8]) -> String {
    match std::str::from_utf8(uri) {
        Ok(uri) => uri.to_owned(),
        Err(_) => uri.iter().map(|byte| char::from(*byte)).collect(),
    }
}

fn has_time(record: &Record<'_>, place: &Place) -> bool {
    place.time == 0
        || record.date().is_none_or(|date| {
            std::str::from_utf8(&date.digits14()).is_ok_and(|digits| digits.parse() == Ok(place.time))
        })
}

/// Whether records of a type are captures: what a server answered or what stands for it, not what it was asked. Other programs
/// list metadata, too, and the head of an ARC file is listed under its own name.
fn can_be_capture(kind: RecordType, url: &str) -> bool {
    match kind {
        RecordType::Response
        | RecordType::Resource
        | RecordType::Conversion
        | RecordType::Revisit
        | RecordType::Metadata => true,
        RecordType::Warcinfo => url.starts_with("filedesc:"),
        RecordType::Request | RecordType::Continuation | RecordType::Unknown => false,
    }
}

/// Whether a record may be the original of a revisit.
pub(super) fn can_be_original(about: &About) -> bool {
    matches!(
        about.kind,
        RecordType::Response | RecordType::Resource | RecordType::Conversion | RecordType::Metadata
    )
}

/// Whether two texts are the same URL, whatever program wrote them: `www`, scheme, session ids, slashes at the end, case,
/// escapes and the bodies of requests may differ.
fn is_same_url(one: &str, other: &str) -> bool {
    grange_index::line_key(one) == grange_index::line_key(other) || loose_key(one) == loose_key(other)
}

fn loose_key(url: &str) -> String {
    let plain = percent_decode(url.trim().as_bytes()).decode_utf8_lossy().to_lowercase();
    let body = ["__wb_method=", "__wb_post_data=", "__pywb_method="]
        .iter()
        .filter_map(|name| plain.find(name))
        .min();
    let url = body.map_or(&*plain, |at| plain[..at].trim_end_matches(['?', '&']));
    let mut key = grange_index::line_key(&without_sessions(url));
    key.truncate(key.trim_end_matches(['/', '?', '&']).len());
    key
}

/// A URL without the arguments in which servers keep sessions. Programs differ in which they leave out.
fn without_sessions(url: &str) -> String {
    const NAMES: [&str; 6] = ["phpsessid", "jsessionid", "sid", "cfid", "cftoken", "aspsessionid"];
    let Some((path, query)) = url.split_once('?') else { return url.to_owned() };
    let is_kept = |argument: &&str| {
        let name = argument.split('=').next().unwrap_or_default();
        !NAMES
            .iter()
            .any(|session| name == *session || *session == "aspsessionid" && name.starts_with(session))
    };
    format!("{path}?{}", query.split('&').filter(is_kept).collect::<Vec<_>>().join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_may_write_a_url_in_their_own_way() {
        for (one, other, same) in [
            ("http://e.org/a", "http://e.org/a", true),
            ("http://www.e.org/a/", "https://e.org/a", true),
            ("e.org/a", "http://e.org/a", true),
            ("e.org:8080/a", "http://e.org:8080/a", true),
            ("http://E.org/A%20b", "http://e.org/A b", true),
            ("file:///example%20with%20spaces.png", "file:///example with spaces.png", true),
            ("http://e.org/a%20b%22'%3Cx%3E", "http://e.org/a b\"'<x>", true),
            ("http://e.org/a?x=1&PHPSESSID=0123456789abcdef0123456789abcdef", "http://e.org/a?x=1", true),
            ("http://e.org/f?__wb_method=POST&a=1", "http://e.org/f", true),
            ("http://e.org/\u{e5}", "http://e.org/%C3%A5", true),
            ("http://e.org/a", "http://e.org/b", false),
            ("http://e.org/a", "http://f.org/a", false),
            ("http://e.org/a?b=1", "http://e.org/a?b=2", false),
            ("http://e.org:8080/a", "http://e.org/a", false),
            ("urn:text:http://e.org/a", "http://e.org/a", false),
            ("dns:e.org", "http://e.org/", false),
        ] {
            assert_eq!(is_same_url(one, other), same, "{one} {other}");
            assert_eq!(is_same_url(other, one), same, "{other} {one}");
        }
    }
}
