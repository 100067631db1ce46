//! Cookies of an archived site: readable by its own replayed pages, out of reach of everything else on the host.

use super::modifier::Modifier;
use super::place::Place;

/// Browsers keep about 180 cookies for one host; an archived page must not push out those of others.
pub(super) const PER_ANSWER_MAX: usize = 50;

/// What browsers accept at most for one cookie.
const COOKIE_BYTES_MAX: usize = 4096;

/// Cookies know no ports: a name of ours set by an archived page would reach the admin pages of the same host. The other two
/// are promises of browsers about a whole host, which one archived site of many cannot make.
const RESERVED: [&str; 3] = [OWN, "__host-", "__secure-"];

/// How every cookie of Grange itself begins.
const OWN: &str = "grange_";

fn begins_with(name: &str, start: &str) -> bool {
    name.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start))
}

/// The parts of a `Set-Cookie`: the pair, and its attributes. `None` if it is no cookie, or longer than one may be.
fn parts(value: &[u8]) -> Option<(&str, impl Iterator<Item = (&str, &str)>)> {
    if value.len() > COOKIE_BYTES_MAX || !value.iter().all(|byte| (0x20..0x7f).contains(byte)) {
        return None;
    }
    let mut parts = std::str::from_utf8(value).ok()?.split(';').map(str::trim);
    let pair = parts.next().filter(|pair| pair.contains('=') && !pair.starts_with('='))?;
    Some((pair, parts.map(|part| part.split_once('=').unwrap_or((part, "")))))
}

/// An archived `Set-Cookie` for a browser that sees the site under its own address: as it was, but gone with the session.
pub(crate) fn of_session(value: &[u8]) -> Option<String> {
    let (pair, attributes) = parts(value)?;
    let mut out = pair.to_owned();
    for (name, value) in attributes {
        let lasting = ["expires", "max-age"].iter().any(|lasting| name.eq_ignore_ascii_case(lasting));
        if !lasting && !name.is_empty() {
            out.push_str("; ");
            out.push_str(name);
            if !value.is_empty() {
                out.push('=');
                out.push_str(value);
            }
        }
    }
    Some(out).filter(|_| !begins_with(pair, OWN))
}

/// An archived `Set-Cookie` confined to the pages of its own site; `None` where it has no reader or is no cookie.
///
/// The archive itself reads no cookies: only scripts of the page do. So one marked `HttpOnly` serves nobody. Times
/// are those of the capture, thus every cookie ends with the session.
pub(super) fn scoped(value: &[u8], place: &Place) -> Option<String> {
    let (pair, attributes) = parts(value)?;
    if RESERVED.iter().any(|start| begins_with(pair, start)) {
        return None;
    }
    let mut path = None;
    let mut whole_site = false;
    for (name, value) in attributes {
        if name.eq_ignore_ascii_case("httponly") {
            return None;
        } else if name.eq_ignore_ascii_case("domain") && !value.trim().is_empty() {
            whole_site = true;
        } else if name.eq_ignore_ascii_case("path") {
            path = Some(value.trim()).filter(|path| path.starts_with('/'));
        }
    }
    let base = place.base()?;
    base.host_str()?;
    let origin = base.origin().ascii_serialization();
    let path = if whole_site { "/" } else { path.unwrap_or_else(|| default_path(base.path())) };
    let path = place.path(&format!("{origin}{path}"), Modifier::Main);
    Some(format!("{pair}; Path={path}"))
}

/// RFC 6265 §5.1.4: the folder of the page, without its last slash.
fn default_path(path: &str) -> &str {
    match path.rfind('/') {
        None | Some(0) => "/",
        Some(slash) => &path[..slash],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_stay_on_their_site() {
        let place = Place::new("", "/c/", "20200102030405", Modifier::Main, "http://example.org/a/b/page");
        let cases: &[(&[u8], Option<&str>)] = &[
            (b"a=1", Some("a=1; Path=/c/20200102030405mp_/http://example.org/a/b")),
            (b"a=1; Path=/", Some("a=1; Path=/c/20200102030405mp_/http://example.org/")),
            (b"a=1; path=/x", Some("a=1; Path=/c/20200102030405mp_/http://example.org/x")),
            (
                b"a=1; Domain=.example.org; Path=/x; Secure; SameSite=None; Max-Age=9; Expires=Wed, 01 Jan 2031 00:00:00 GMT",
                Some("a=1; Path=/c/20200102030405mp_/http://example.org/"),
            ),
            (b"a=b=c", Some("a=b=c; Path=/c/20200102030405mp_/http://example.org/a/b")),
            (b"session=evil; HttpOnly; Path=/", None),
            (b"grange_session=evil; Path=/", None),
            (b"Grange_x=evil", None),
            (b"__Host-a=1; Secure; Path=/", None),
            (b"__secure-a=1; Secure", None),
            (b"novalue", None),
            (b"=1", None),
            (b"", None),
            (b"a=1\r\nLocation: /x", None),
            (b"a=\xff", None),
        ];
        for (value, expected) in cases {
            assert_eq!(scoped(value, &place).as_deref(), *expected, "{}", String::from_utf8_lossy(value));
        }
        assert_eq!(scoped(&[b'a'; 5000], &place), None);
    }

    #[test]
    fn under_their_own_address_cookies_end_with_the_session() {
        let cases: &[(&[u8], Option<&str>)] = &[
            (b"a=1", Some("a=1")),
            (b"a=1; Max-Age=9;; path=/x; HttpOnly", Some("a=1; path=/x; HttpOnly")),
            (
                b"a=b=c; Domain=.e.org; EXPIRES=Wed, 01 Jan 2031 00:00:00 GMT; Secure",
                Some("a=b=c; Domain=.e.org; Secure"),
            ),
            (b"__Host-a=1; Secure; Path=/", Some("__Host-a=1; Secure; Path=/")),
            (b"grange_session=evil", None),
            (b"novalue; Max-Age=9", None),
            (b"a=1\r\nX: y", None),
        ];
        for (value, expected) in cases {
            assert_eq!(of_session(value).as_deref(), *expected, "{}", String::from_utf8_lossy(value));
        }
    }
}
