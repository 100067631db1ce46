//! The general way to a key: every rule, for every input. `fast` is a shortcut through it.

use crate::escape::{escape_lower, escape_unprintable, unescape_repeatedly};
use crate::fast::push_port;
use crate::host::{canonical_host, push_reversed};
use crate::path::{AboveRoot, PathScratch, write_path};
use crate::query::{QueryScratch, sort_args};
use crate::session;
use crate::split::{Parts, clean, split, trim};

/// Buffers that one key after another is built in.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    clean: Vec<u8>,
    host_raw: Vec<u8>,
    host: Vec<u8>,
    text: Vec<u8>,
    path: PathScratch,
    pub(crate) query: QueryScratch,
}

/// Where the dialects of this family part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rules {
    /// This crate's own key; see the list of differences in the head of `lib.rs`.
    Standard,
    /// PyPI surt to the letter.
    Ia,
}

/// What is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// `com,example)/path`
    Key,
    /// `http://example.com/path`
    Url,
}

/// PyPI surt raises an exception for this input.
#[derive(Debug)]
pub(crate) struct Refused;

enum Port<'a> {
    None,
    Number(u16),
    /// Not a port number; a standard key keeps the text so that the capture is still found under its host.
    Text(&'a [u8]),
}

/// Appends the key or canonical form of `url` to `out`. Only `Rules::Ia` ever refuses.
pub(crate) fn write(
    url: &[u8],
    rules: Rules,
    form: Form,
    scratch: &mut Scratch,
    out: &mut Vec<u8>,
) -> Result<(), Refused> {
    let standard = rules == Rules::Standard;
    if url.is_empty() || (standard && trim(url).is_empty()) {
        out.push(b'-');
        return Ok(());
    }
    if url.starts_with(b"filedesc") {
        if standard {
            escape_unprintable(url, out);
        } else {
            out.extend_from_slice(url);
        }
        return Ok(());
    }
    let Scratch { clean: text, .. } = scratch;
    clean(url, standard, text);
    if standard && let Some(len) = crate::split::scheme_len(text) {
        text[..len].make_ascii_lowercase();
    }
    if text.is_empty() {
        return Err(Refused);
    }
    let parts = split(text, standard);
    write_parts(&parts, rules, form, scratch, out)
}

fn write_parts(
    parts: &Parts,
    rules: Rules,
    form: Form,
    scratch: &mut Scratch,
    out: &mut Vec<u8>,
) -> Result<(), Refused> {
    let Scratch { clean, host_raw, host, text, path, query } = scratch;
    let scheme = &clean[parts.scheme.clone()];
    let port = match port(&clean[parts.port.clone()], scheme) {
        Port::Text(_) if rules == Rules::Ia => return Err(Refused),
        port => port,
    };
    canonical_host(&clean[parts.host.clone()], scheme != b"dns", host_raw, host);
    let has_host = !host.is_empty();
    if form == Form::Url || !has_host {
        out.extend_from_slice(scheme);
        out.push(b':');
    }
    if has_host {
        match form {
            Form::Key => push_reversed(host, out),
            Form::Url => {
                out.extend_from_slice(b"//");
                push_url_host(host, out);
            }
        }
        match port {
            Port::None => {}
            Port::Number(port) => push_port(port, out),
            Port::Text(port) => {
                out.push(b':');
                escape_lower(port, out);
            }
        }
        if form == Form::Key {
            out.push(b')');
        }
    }
    let above = if rules == Rules::Standard { AboveRoot::Drop } else { AboveRoot::Keep };
    let path_start = out.len();
    write_path(&clean[parts.path.clone()], parts.path_lacks_slash, has_host, above, path, out);
    let path_empty = out.len() == path_start;
    write_query(&clean[parts.query.clone()], path_empty, text, query, out);
    Ok(())
}

/// IPv6 needs its brackets back to be read again.
fn push_url_host(host: &[u8], out: &mut Vec<u8>) {
    let bracketed = memchr::memchr(b':', host).is_some();
    if bracketed {
        out.push(b'[');
    }
    out.extend_from_slice(host);
    if bracketed {
        out.push(b']');
    }
}

fn port<'a>(text: &'a [u8], scheme: &[u8]) -> Port<'a> {
    if text.is_empty() {
        return Port::None;
    }
    let number = text
        .iter()
        .all(u8::is_ascii_digit)
        .then(|| text.iter().try_fold(0u16, |n, d| n.checked_mul(10)?.checked_add(u16::from(d - b'0'))));
    match number.flatten() {
        None => Port::Text(text),
        Some(0) => Port::None,
        Some(80) if scheme.eq_ignore_ascii_case(b"http") => Port::None,
        Some(443) if scheme.eq_ignore_ascii_case(b"https") => Port::None,
        Some(number) => Port::Number(number),
    }
}

fn write_query(
    raw: &[u8],
    path_empty: bool,
    text: &mut Vec<u8>,
    scratch: &mut QueryScratch,
    out: &mut Vec<u8>,
) {
    if raw.is_empty() {
        return;
    }
    text.clear();
    text.extend_from_slice(raw);
    unescape_repeatedly(text);
    let whole = out.len();
    if path_empty {
        out.push(b'/');
    }
    out.push(b'?');
    let start = out.len();
    escape_lower(text, out);
    session::strip_query(out, start);
    if out.len() == start {
        out.truncate(whole);
    } else {
        sort_args(out, start, scratch);
    }
}
