//! The URL of a capture as its difference from the key: most often two or three bits.
//!
//! The key `com,example)/a?b=1` suggests `http://example.com/a?b=1`. Bits say `https`, `www.` and a closing slash;
//! whatever else the key lost (letter case, the order of arguments, a fragment) stands between what both share at
//! their beginnings and ends.

use crate::varint::{self, Malformed};

pub(crate) const HTTPS: u8 = 1;
pub(crate) const WWW: u8 = 2;
pub(crate) const SLASH: u8 = 4;
/// Literal bytes follow: shared at the beginning, shared at the end, the middle.
pub(crate) const DIFFERS: u8 = 8;
/// The row has further fields after the URL's literal bytes. Kept here because this byte is there anyway.
pub(crate) const EXTRA: u8 = 16;
/// There is no URL at all.
pub(crate) const ABSENT: u8 = 32;

/// Writes what the key and `code` suggest.
fn suggest(surt: &[u8], code: u8, out: &mut Vec<u8>) {
    let Some(close) = memchr::memchr(b')', surt) else {
        // No host: `dns:…`, `urn:…` are their own keys.
        out.extend_from_slice(surt);
        return;
    };
    out.extend_from_slice(if code & HTTPS == 0 { b"http://" } else { b"https://" });
    if code & WWW != 0 {
        out.extend_from_slice(b"www.");
    }
    let (host, port) = match memchr::memchr(b':', &surt[..close]) {
        Some(colon) if memchr::memrchr(b':', &surt[..close]) == Some(colon) => surt[..close].split_at(colon),
        _ => (&surt[..close], &[][..]),
    };
    let mut end = host.len();
    for comma in memchr::memrchr_iter(b',', host) {
        out.extend_from_slice(&host[comma + 1..end]);
        out.push(b'.');
        end = comma;
    }
    out.extend_from_slice(&host[..end]);
    out.extend_from_slice(port);
    out.extend_from_slice(&surt[close + 1..]);
    if code & SLASH != 0 {
        out.push(b'/');
    }
}

/// Appends the literal bytes of `url` to `literals` and returns its code. `scratch` saves an allocation.
pub(crate) fn encode(surt: &[u8], url: Option<&str>, literals: &mut Vec<u8>, scratch: &mut Vec<u8>) -> u8 {
    let Some(url) = url.map(str::as_bytes) else { return ABSENT };
    let mut code = 0;
    let rest = if url.starts_with(b"https://") {
        code |= HTTPS;
        &url[8..]
    } else {
        url.get(7..).unwrap_or_default()
    };
    if rest.starts_with(b"www.") {
        code |= WWW;
    }
    if url.last() == Some(&b'/') && surt.last() != Some(&b'/') {
        code |= SLASH;
    }
    scratch.clear();
    suggest(surt, code, scratch);
    if scratch == url {
        return code;
    }
    let shortest = scratch.len().min(url.len());
    let shared = common_prefix(scratch, url);
    let end = scratch
        .iter()
        .rev()
        .zip(url.iter().rev())
        .take(shortest - shared)
        .take_while(|(a, b)| a == b)
        .count();
    varint::put(literals, shared as u64);
    varint::put(literals, end as u64);
    varint::put_bytes(literals, &url[shared..url.len() - end]);
    code | DIFFERS
}

/// Appends the URL to `out`; false if there is none. `at` moves past its literal bytes.
pub(crate) fn decode(
    surt: &[u8],
    code: u8,
    literals: &[u8],
    at: &mut usize,
    out: &mut Vec<u8>,
) -> Result<bool, Malformed> {
    if code & ABSENT != 0 {
        return Ok(false);
    }
    let start = out.len();
    suggest(surt, code, out);
    if code & DIFFERS == 0 {
        return Ok(true);
    }
    let shared = varint::get_usize(literals, at)?;
    let end = varint::get_usize(literals, at)?;
    let middle = varint::get_bytes(literals, at)?;
    let suggested = out.len() - start;
    if shared.checked_add(end).is_none_or(|both| both > suggested) {
        return Err(Malformed);
    }
    out.splice(start + shared..start + suggested - end, middle.iter().copied());
    Ok(true)
}

/// Moves `at` past the literal bytes of a URL without making it.
#[inline]
pub(crate) fn skip(code: u8, literals: &[u8], at: &mut usize) -> Result<(), Malformed> {
    if code & DIFFERS != 0 {
        varint::get(literals, at)?;
        varint::get(literals, at)?;
        varint::get_bytes(literals, at)?;
    }
    Ok(())
}

pub(crate) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let len = a.len().min(b.len());
    let mut at = 0;
    // Eight bytes a step: keys of one site share dozens.
    while at + 8 <= len {
        let (Ok(x), Ok(y)) = (a[at..at + 8].try_into(), b[at..at + 8].try_into()) else { break };
        let different = u64::from_le_bytes(x) ^ u64::from_le_bytes(y);
        if different != 0 {
            return at + different.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    at + a[at..len].iter().zip(&b[at..len]).take_while(|(x, y)| x == y).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn through(surt: &str, url: Option<&str>) -> (u8, usize) {
        let (mut literals, mut out, mut at) = (Vec::new(), Vec::new(), 0);
        let code = encode(surt.as_bytes(), url, &mut literals, &mut Vec::new());
        let there = decode(surt.as_bytes(), code, &literals, &mut at, &mut out).unwrap();
        assert_eq!(there.then(|| String::from_utf8(out).unwrap()).as_deref(), url, "{surt}");
        assert_eq!(at, literals.len());
        let mut skipped = 0;
        skip(code, &literals, &mut skipped).unwrap();
        assert_eq!(skipped, literals.len());
        (code, literals.len())
    }

    #[test]
    fn usual_urls_take_no_literal_bytes() {
        for url in [
            "http://example.com/",
            "https://www.example.com/a/b?c=d",
            "https://example.com:8443/x/",
            "http://192.168.1.1/x",
            "dns:example.com",
        ] {
            assert_eq!(through(&urlkey::key(url), Some(url)).1, 0, "{url}");
        }
    }

    #[test]
    fn unusual_ones_take_what_differs() {
        for (url, most) in [
            ("http://example.com/Index.html", 4),
            ("http://example.com/a?b=2&a=1", 12),
            ("http://www2.example.com/", 8),
            ("http://[2001:db8::1]/", 40),
            ("HTTP://EXAMPLE.com/", 24),
            ("", 4),
            ("é", 6),
        ] {
            let (code, len) = through(&urlkey::key(url), Some(url));
            assert!(code & DIFFERS != 0 && len <= most, "{url}: {code} {len}");
        }
        assert_eq!(through("com,example)/", None), (ABSENT, 0));
    }

    proptest! {
        #[test]
        fn any_url_comes_back_from_any_key(
            surt in "([a-z]{1,3},){0,3}[a-z]{1,5}(:[0-9]{1,2})?\\)?(/[a-zé]{0,4}){0,3}",
            url in "(https?://)?(www\\.)?[a-zA-Z.]{0,8}(/[a-zA-Zé]{0,4}){0,3}/?",
        ) {
            through(&surt, Some(&url));
            through(&urlkey::key(&url), Some(&url));
        }

        #[test]
        fn foreign_bytes_are_refused_or_read(surt: Vec<u8>, code: u8, literals: Vec<u8>) {
            let _ = decode(&surt, code, &literals, &mut 0, &mut Vec::new());
        }
    }
}
