//! Session ids that servers put into URLs: they make one page look like thousands.
//!
//! The shapes are those of the Internet Archive's canonicalizer. They are matched on lower-cased text, each
//! shape once and at its last occurrence, as the regular expressions of the other tools do.

use memchr::memmem;

const TOKEN: usize = 32;
const ASP_TOKEN: usize = 24;

/// Longer paths are left alone: no server issues them, and looking at each of their directories costs the square.
pub(crate) const PATH_BYTES_MAX: usize = 64 * 1024;

/// Removes `/(S(…24…))` and `/(…24…)` directories that stand before an `.aspx` page in `buf[start..]`.
pub(crate) fn strip_path(buf: &mut Vec<u8>, start: usize) {
    if buf.len() - start > PATH_BYTES_MAX
        || memmem::find(&buf[start..], b".aspx").is_none()
        || memchr::memchr(b'(', &buf[start..]).is_none()
    {
        return;
    }
    for shape in [asp_groups, asp_group] {
        let path = &buf[start..];
        let found = memchr::memrchr_iter(b'/', path).find_map(|slash| {
            let len = shape(&path[slash + 1..])?;
            page_follows(&path[slash + 1 + len..]).then_some((slash + 1, len))
        });
        if let Some((at, len)) = found {
            buf.drain(start + at..start + at + len);
        }
    }
}

/// `(a(…24…)b(…24…))/`
fn asp_groups(text: &[u8]) -> Option<usize> {
    let mut at = 1;
    if *text.first()? != b'(' {
        return None;
    }
    loop {
        let letter = *text.get(at)?;
        if letter == b')' && at > 1 {
            return (*text.get(at + 1)? == b'/').then_some(at + 2);
        }
        if !letter.is_ascii_lowercase() {
            return None;
        }
        let group = text.get(at + 1..at + 3 + ASP_TOKEN)?;
        let (open, rest) = group.split_first()?;
        let (close, token) = rest.split_last()?;
        if *open != b'(' || *close != b')' || !is_token(token) {
            return None;
        }
        at += 3 + ASP_TOKEN;
    }
}

/// `(…24…)/`
fn asp_group(text: &[u8]) -> Option<usize> {
    let group = text.get(..ASP_TOKEN + 3)?;
    let whole = group[0] == b'(' && group.ends_with(b")/") && is_token(&group[1..=ASP_TOKEN]);
    whole.then_some(group.len())
}

fn page_follows(rest: &[u8]) -> bool {
    let end = memchr::memchr(b'?', rest).unwrap_or(rest.len());
    // At least one character stands before the dot.
    end > 0 && memmem::rfind(&rest[..end], b".aspx").is_some_and(|at| at > 0)
}

fn is_token(token: &[u8]) -> bool {
    token.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
}

/// Whether a `=` at the end of `before` may end the name of a session argument. Cheap enough for every `=`.
pub(crate) fn may_name_session(before: &[u8]) -> bool {
    before.ends_with(b"sid")
        || before.ends_with(b"sessionid")
        || before.ends_with(b"cftoken")
        || (before.len() >= 20 && before[before.len() - 20..].starts_with(b"aspsessionid"))
}

/// Removes the session arguments from the lower-cased query in `buf[start..]`.
pub(crate) fn strip_query(buf: &mut Vec<u8>, start: usize) {
    for name in [&b"jsessionid="[..], b"phpsessid=", b"sid="] {
        strip_last(buf, start, name, |rest| rest.get(..TOKEN).is_some_and(is_token).then_some(TOKEN));
    }
    strip_last(buf, start, b"aspsessionid", |rest| {
        let whole = rest.get(..8 + 1 + ASP_TOKEN)?;
        let (name, value) = (&whole[..8], &whole[9..]);
        let letters = |text: &[u8]| text.iter().all(u8::is_ascii_lowercase);
        (whole[8] == b'=' && letters(name) && letters(value)).then_some(whole.len())
    });
    strip_coldfusion(buf, start);
}

/// `cfid=…&cftoken=…`
fn strip_coldfusion(buf: &mut Vec<u8>, start: usize) {
    const TOKEN_NAME: &[u8] = b"&cftoken=";
    let mut end = buf.len();
    while let Some(at) = memmem::rfind(&buf[start..end], TOKEN_NAME) {
        let (id_end, value) = (start + at, start + at + TOKEN_NAME.len());
        let value_end = memchr::memchr(b'&', &buf[value..]).map_or(buf.len(), |at| value + at);
        let id_start = memchr::memrchr(b'&', &buf[start..id_end]).map_or(start, |at| start + at + 1);
        // At least one character stands behind either name.
        let id = memmem::rfind(&buf[id_start..id_end.saturating_sub(1).max(id_start)], b"cfid=");
        if let Some(id) = id.filter(|_| value_end > value) {
            buf.drain(id_start + id..(value_end + 1).min(buf.len()));
            return;
        }
        end = id_end;
    }
}

/// Removes the last `name` + value (+ `&`) for which `value_len` knows a value that ends the argument.
fn strip_last(buf: &mut Vec<u8>, start: usize, name: &[u8], value_len: impl Fn(&[u8]) -> Option<usize>) {
    let mut end = buf.len();
    while let Some(at) = memmem::rfind(&buf[start..end], name) {
        let value = start + at + name.len();
        if let Some(len) = value_len(&buf[value..]) {
            let after = value + len;
            let cut = match buf.get(after) {
                None => Some(after),
                Some(b'&') => Some(after + 1),
                Some(_) => None,
            };
            if let Some(cut) = cut {
                buf.drain(start + at..cut);
                return;
            }
        }
        end = start + at + name.len() - 1;
    }
}
