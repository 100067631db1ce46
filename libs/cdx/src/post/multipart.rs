//! `multipart/form-data`: name and value of each part as arguments.

use super::percent::quote_plus;
use memchr::memmem;

/// The arguments, or `None` if the body is not what its type says.
pub(super) fn query(content_type: &str, body: &[u8]) -> Option<String> {
    let boundary = content_type.split("boundary=").nth(1)?;
    let boundary = boundary.split(';').next()?.trim().trim_matches('"');
    if boundary.is_empty() {
        return None;
    }
    let border = format!("--{boundary}");
    let mut rest = after_border(body, border.as_bytes())?;
    let mut out = String::new();
    loop {
        if rest.starts_with(b"--") {
            return Some(out);
        }
        rest = rest.strip_prefix(b"\r\n").or_else(|| rest.strip_prefix(b"\n"))?;
        let (part, next) = split_at_border(rest, border.as_bytes())?;
        if let Some((name, value)) = name_and_value(part) {
            if !out.is_empty() {
                out.push('&');
            }
            quote_plus(name.as_bytes(), &mut out);
            out.push('=');
            quote_plus(value, &mut out);
        }
        rest = next;
    }
}

fn after_border<'b>(body: &'b [u8], border: &[u8]) -> Option<&'b [u8]> {
    let at = memmem::find_iter(body, border).find(|at| *at == 0 || body[at - 1] == b'\n')?;
    Some(&body[at + border.len()..])
}

/// The part before the next border, without the line end that belongs to the border, and what follows it.
fn split_at_border<'b>(rest: &'b [u8], border: &[u8]) -> Option<(&'b [u8], &'b [u8])> {
    let at = memmem::find_iter(rest, border).find(|at| *at == 0 || rest[at - 1] == b'\n')?;
    let part = rest[..at].strip_suffix(b"\n").unwrap_or(&rest[..at]);
    Some((part.strip_suffix(b"\r").unwrap_or(part), &rest[at + border.len()..]))
}

fn name_and_value(part: &[u8]) -> Option<(String, &[u8])> {
    let (head, value) = match (memmem::find(part, b"\r\n\r\n"), memmem::find(part, b"\n\n")) {
        (Some(crlf), lf) if lf.is_none_or(|lf| crlf < lf) => (&part[..crlf], &part[crlf + 4..]),
        (_, Some(lf)) => (&part[..lf], &part[lf + 2..]),
        // A part whose value is empty may end right behind its head.
        _ => (part, &part[part.len()..]),
    };
    let head = String::from_utf8_lossy(head);
    let disposition = head
        .lines()
        .find(|line| line.get(..20).is_some_and(|name| name.eq_ignore_ascii_case("content-disposition:")))?;
    Some((parameter(disposition, "name")?, value))
}

/// The value of a parameter, quoted or not.
fn parameter(line: &str, name: &str) -> Option<String> {
    let mut rest = line;
    while let Some(at) = rest.find(';') {
        rest = rest[at + 1..].trim_start();
        let Some(value) = rest.strip_prefix(name).and_then(|rest| rest.trim_start().strip_prefix('=')) else {
            continue;
        };
        let value = value.trim_start();
        let Some(quoted) = value.strip_prefix('"') else {
            return Some(value.split(';').next().unwrap_or("").trim().to_owned());
        };
        let mut out = String::new();
        let mut chars = quoted.chars();
        while let Some(c) = chars.next() {
            match c {
                '"' => break,
                '\\' => out.extend(chars.next()),
                c => out.push(c),
            }
        }
        return Some(out);
    }
    None
}
