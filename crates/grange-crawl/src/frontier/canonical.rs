//! When two URLs are the same to the frontier: the canonical form, and its 64-bit fingerprint.
//!
//! The canonical form decides only what is fetched again; fetched is always the URL as it was found. Session ids are
//! recognised by their name and shape as Heritrix does, so that a shop's `sid=3` stays.

use std::borrow::Cow;

use url::Url;

use super::settings::Canonical;

/// The first 64 bits of BLAKE3 of the canonical form.
///
/// Among n URLs the chance that any two share it is about n² / 2⁶⁵: 1 in 37,000,000 for a million, 1 in 370,000 for ten
/// million, 1 in 3,700 for a hundred million. A page cannot choose links that collide with another's without 2⁶⁴ work.
pub(super) fn fingerprint(url: &Url, rules: Canonical) -> u64 {
    let hash = blake3::hash(canonical(url, rules).as_bytes());
    hash.as_bytes().first_chunk().copied().map_or(0, u64::from_le_bytes)
}

pub(super) fn canonical(url: &Url, rules: Canonical) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(url.as_str());
    if url.fragment().is_some() || !url.username().is_empty() || url.password().is_some() {
        let mut bare = url.clone();
        bare.set_fragment(None);
        // Refused only where there is no host, and so no user.
        let _ = bare.set_username("").and_then(|()| bare.set_password(None));
        text = Cow::Owned(bare.into());
    }
    if rules == Canonical::Heritrix {
        if text.bytes().any(|b| b.is_ascii_uppercase()) {
            text = Cow::Owned(text.to_ascii_lowercase());
        }
        if let Some(bare) = without_www(&text) {
            text = Cow::Owned(bare);
        }
    }
    if let Some(bare) = without_sessions(&text) {
        text = Cow::Owned(bare);
    }
    text
}

/// Drops `www.`, `www1.` … before another name.
fn without_www(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let after = rest.strip_prefix("www")?;
    let after = after.trim_start_matches(|c: char| c.is_ascii_digit()).strip_prefix('.')?;
    let host = after.split(['/', '?', ':']).next()?;
    host.contains('.').then(|| format!("{scheme}://{after}"))
}

/// Drops session ids from path and query, and the `?` and `&` that then separate nothing. `None` if all stays.
fn without_sessions(url: &str) -> Option<String> {
    if !url.bytes().any(|b| matches!(b, b'?' | b';')) {
        return None;
    }
    let (path, query) = match url.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (url, None),
    };
    let mut out = String::with_capacity(url.len());
    let mut parts = path.split(';');
    out.push_str(parts.next()?);
    for part in parts {
        // `;jsessionid=…` ends where the path goes on.
        let (word, after) = part.split_at(part.find('/').unwrap_or(part.len()));
        if !is_session(word) {
            out.push(';');
            out.push_str(word);
        }
        out.push_str(after);
    }
    if let Some(query) = query {
        let kept = without_cold_fusion(query);
        let mut mark = '?';
        for word in kept.split('&') {
            if !word.is_empty() && !is_session(word) {
                out.push(mark);
                out.push_str(word);
                mark = '&';
            }
        }
    }
    (out != url).then_some(out)
}

/// `jsessionid`, `phpsessid` and `sid` with 32 letters or digits (Tomcat appends `.node`), `ASPSESSIONID` and 8 letters
/// with 24 letters.
fn is_session(word: &str) -> bool {
    let Some((name, value)) = word.split_once('=') else { return false };
    let is = |known: &str| name.eq_ignore_ascii_case(known);
    if is("jsessionid") || is("phpsessid") || is("sid") {
        let id = value.split('.').next().unwrap_or(value);
        return id.len() == 32 && id.bytes().all(|b| b.is_ascii_alphanumeric());
    }
    const ASP: &str = "aspsessionid";
    name.len() == ASP.len() + 8
        && name.get(..ASP.len()).is_some_and(|start| start.eq_ignore_ascii_case(ASP))
        && value.len() == 24
        && value.bytes().all(|b| b.is_ascii_alphabetic())
}

/// ColdFusion's pair `cfid=…&cftoken=…`; one without the other is something else.
fn without_cold_fusion(query: &str) -> Cow<'_, str> {
    let named =
        |word: &str, name: &str| word.split_once('=').is_some_and(|(n, _)| n.eq_ignore_ascii_case(name));
    let words: Vec<&str> = query.split('&').collect();
    let Some(at) = words.windows(2).position(|pair| named(pair[0], "cfid") && named(pair[1], "cftoken"))
    else {
        return Cow::Borrowed(query);
    };
    Cow::Owned([&words[..at], &words[at + 2..]].concat().join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rules: Canonical, cases: &[(&str, &str)]) {
        for (given, wanted) in cases {
            let url = Url::parse(given).unwrap();
            let once = canonical(&url, rules).into_owned();
            assert_eq!(once, *wanted, "{given}");
            let again = Url::parse(&once).unwrap();
            assert_eq!(canonical(&again, rules), once, "a second time: {given}");
        }
    }

    #[test]
    fn precise_keeps_all_that_may_matter() {
        let id = "0123456789abcdef0123456789ABCDEF";
        check(
            Canonical::Precise,
            &[
                ("http://Example.com/A?b=C", "http://example.com/A?b=C"),
                ("https://www.example.com/", "https://www.example.com/"),
                ("http://user:pw@example.com/a#frag", "http://example.com/a"),
                ("http://example.com/a?", "http://example.com/a"),
                ("http://example.com/a?&", "http://example.com/a"),
                ("http://example.com/a?&x=1&&y=2&", "http://example.com/a?x=1&y=2"),
                (&format!("http://e.org/a;jsessionid={id}?x=1"), "http://e.org/a?x=1"),
                (&format!("http://e.org/a;jsessionid={id}.node1/b;v=2"), "http://e.org/a/b;v=2"),
                (&format!("http://e.org/?PHPSESSID={id}&x=1"), "http://e.org/?x=1"),
                (&format!("http://e.org/?x=1&sid={id}"), "http://e.org/?x=1"),
                (&format!("http://e.org/?x=1&mysid={id}"), &format!("http://e.org/?x=1&mysid={id}")),
                ("http://e.org/?sid=3", "http://e.org/?sid=3"),
                ("http://e.org/?ASPSESSIONIDABCDEFGH=ABCDEFGHIJKLMNOPQRSTUVWX&x=1", "http://e.org/?x=1"),
                ("http://e.org/?cfid=1&cftoken=2&x=3", "http://e.org/?x=3"),
                ("http://e.org/?cfid=1&x=3", "http://e.org/?cfid=1&x=3"),
                ("dns:example.com", "dns:example.com"),
                ("http://[::1]:8080/", "http://[::1]:8080/"),
            ],
        );
    }

    #[test]
    fn heritrix_folds_case_and_www() {
        check(
            Canonical::Heritrix,
            &[
                ("http://WWW.Example.com/A?b=C", "http://example.com/a?b=c"),
                ("https://www12.example.com/", "https://example.com/"),
                ("http://www.com/", "http://www.com/"),
                ("http://wwwx.example.com/", "http://wwwx.example.com/"),
                ("http://user@www.example.com:81/?", "http://example.com:81/"),
            ],
        );
    }

    #[test]
    fn fingerprints_differ_where_canonical_forms_do() {
        let of = |text: &str| fingerprint(&Url::parse(text).unwrap(), Canonical::Precise);
        assert_eq!(of("http://e.org/#a"), of("http://e.org/"));
        assert_ne!(of("http://e.org/"), of("https://e.org/"));
        // Stored on disk: it must never change.
        assert_eq!(of("http://example.com/"), 0xa72b_797b_f2ff_d808_u64);
    }
}
