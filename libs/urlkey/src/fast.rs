//! The key of the URL that nearly every URL is: ASCII, http(s), nothing to undo.
//!
//! One pass writes the key straight into the output. At the first sign of something unusual the attempt is
//! given up and the general way is taken; `tests/it/fast.rs` proves that both give the same key.

use crate::escape::is_plain;
use crate::host::www_len;
use crate::query::{QueryScratch, sort_args};
use crate::session;

/// Appends the key of `url` to `out`, or appends nothing and returns false.
pub(crate) fn try_key(url: &[u8], query: &mut QueryScratch, out: &mut Vec<u8>) -> bool {
    let start = out.len();
    let done = key(url, query, out).is_some();
    if !done {
        out.truncate(start);
    }
    done
}

fn key(url: &[u8], query: &mut QueryScratch, out: &mut Vec<u8>) -> Option<()> {
    let (default_port, rest) = match url.strip_prefix(b"http") {
        Some([b':', b'/', b'/', rest @ ..]) => (80, rest),
        Some([b's', b':', b'/', b'/', rest @ ..]) => (443, rest),
        _ => return None,
    };
    let end = rest.iter().position(|b| !CLASS[usize::from(*b)].is_host())?;
    if end == 0 || rest[end] != b'/' && rest[end] != b':' {
        return None;
    }
    out.reserve(rest.len() + 1);
    push_host(&rest[..end], out)?;
    let mut tail = &rest[end..];
    if let Some(port_and_tail) = tail.strip_prefix(b":") {
        let (port, after) = split_port(port_and_tail)?;
        if port != default_port {
            push_port(port, out);
        }
        tail = after;
    }
    out.push(b')');
    push_tail(tail, query, out)
}

/// Pushes the reversed host; gives up on empty labels and on everything that may be a number.
fn push_host(host: &[u8], out: &mut Vec<u8>) -> Option<()> {
    if host[0].is_ascii_digit() && host.iter().all(|b| b.is_ascii_digit() || *b == b'.') {
        return None;
    }
    // `www` is looked for in lower case only; any other spelling of it is rare enough for the general way.
    if host.len() >= 3 && host[..3].eq_ignore_ascii_case(b"www") && !host.starts_with(b"www") {
        return None;
    }
    let host = &host[www_len(host)..];
    let mut end = host.len();
    loop {
        let dot = memchr::memrchr(b'.', &host[..end]);
        let label = &host[dot.map_or(0, |dot| dot + 1)..end];
        if label.is_empty() {
            return None;
        }
        out.extend(label.iter().map(u8::to_ascii_lowercase));
        match dot {
            Some(dot) => {
                out.push(b',');
                end = dot;
            }
            None => return Some(()),
        }
    }
}

fn split_port(text: &[u8]) -> Option<(u16, &[u8])> {
    let len = text.iter().position(|b| !b.is_ascii_digit())?;
    if len == 0 || text[len] != b'/' {
        return None;
    }
    let port = std::str::from_utf8(&text[..len]).ok()?.parse().ok().filter(|port| *port != 0)?;
    Some((port, &text[len..]))
}

pub(crate) fn push_port(port: u16, out: &mut Vec<u8>) {
    let mut digits = [0u8; 5];
    let mut at = digits.len();
    let mut rest = port;
    while at == digits.len() || rest > 0 {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    out.push(b':');
    out.extend_from_slice(&digits[at..]);
}

/// Pushes path and query; `tail` begins with a slash.
fn push_tail(tail: &[u8], query: &mut QueryScratch, out: &mut Vec<u8>) -> Option<()> {
    let path_start = out.len();
    let mut at = 0;
    loop {
        let run =
            tail[at..].iter().position(|b| !CLASS[usize::from(*b)].is_path_run()).unwrap_or(tail.len() - at);
        out.extend(tail[at..at + run].iter().map(u8::to_ascii_lowercase));
        at += run;
        match tail.get(at) {
            None | Some(b'#' | b'?') => break,
            Some(b'/') => {
                // A second slash or a dot segment needs the general way.
                if matches!(tail.get(at + 1), Some(b'/' | b'.')) {
                    return None;
                }
                out.push(b'/');
                at += 1;
            }
            // A session id in the path, an escape, a byte to be escaped.
            Some(_) => return None,
        }
    }
    if out.len() > path_start + 1 && out.last() == Some(&b'/') {
        out.pop();
    }
    if tail.get(at) == Some(&b'?') {
        push_query(&tail[at + 1..], query, out)?;
    }
    Some(())
}

fn push_query(text: &[u8], scratch: &mut QueryScratch, out: &mut Vec<u8>) -> Option<()> {
    let text = &text[..memchr::memchr(b'#', text).unwrap_or(text.len())];
    if text.is_empty() {
        return Some(());
    }
    out.push(b'?');
    let start = out.len();
    for &byte in text {
        if !is_plain(byte) {
            return None;
        }
        if byte == b'=' && session::may_name_session(&out[start..]) {
            return None;
        }
        out.push(byte.to_ascii_lowercase());
    }
    sort_args(out, start, scratch);
    Some(())
}

#[derive(Clone, Copy)]
struct Class(u8);

impl Class {
    const HOST: u8 = 1;
    const PATH_RUN: u8 = 2;

    const fn is_host(self) -> bool {
        self.0 & Self::HOST != 0
    }

    const fn is_path_run(self) -> bool {
        self.0 & Self::PATH_RUN != 0
    }
}

/// What each byte may be: part of a plain host, part of a plain path between two slashes.
static CLASS: [Class; 256] = {
    let mut table = [Class(0); 256];
    let mut byte = 0u8;
    while byte < 128 {
        let mut class = 0;
        if byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_') {
            class |= Class::HOST;
        }
        if is_plain(byte) && !matches!(byte, b'/' | b'?' | b'(') {
            class |= Class::PATH_RUN;
        }
        table[byte as usize] = Class(class);
        byte += 1;
    }
    table
};
