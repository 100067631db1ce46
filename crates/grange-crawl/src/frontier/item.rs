//! A queued URL as bytes.
//!
//! ```text
//! flags u8 (1 force, 2 via, 4 source) | tries | hops | url | via | source     texts: length, bytes; numbers: LEB128
//! ```

use std::sync::Arc;

use url::Url;

use crate::candidate::Candidate;

const FORCE: u8 = 1;
const VIA: u8 = 2;
const SOURCE: u8 = 4;

pub(crate) fn encode(candidate: &Candidate, tries: u32) -> Vec<u8> {
    let via = candidate.via.as_deref();
    let source = candidate.source.as_deref();
    let url = candidate.url.as_str();
    let hops = candidate.hops.to_string();
    let texts = url.len() + hops.len() + via.map_or(0, str::len) + source.map_or(0, str::len);
    let mut out = Vec::with_capacity(texts + 12);
    let flag = |there: bool, flag| if there { flag } else { 0 };
    out.push(flag(candidate.force, FORCE) | flag(via.is_some(), VIA) | flag(source.is_some(), SOURCE));
    number(&mut out, u64::from(tries));
    for text in [Some(hops.as_str()), Some(url), via, source].into_iter().flatten() {
        number(&mut out, text.len() as u64);
        out.extend_from_slice(text.as_bytes());
    }
    out
}

/// The candidate and how often it was tried.
pub(crate) fn decode(bytes: &[u8]) -> Option<(Candidate, u32)> {
    let (flags, mut rest) = bytes.split_first()?;
    let rest = &mut rest;
    let tries = u32::try_from(read_number(rest)?).ok()?;
    let hops = read_text(rest)?.parse().ok()?;
    let url = Url::parse(read_text(rest)?).ok()?;
    let via = if flags & VIA > 0 { Some(Arc::from(read_text(rest)?)) } else { None };
    let source = if flags & SOURCE > 0 { Some(Arc::from(read_text(rest)?)) } else { None };
    Some((Candidate { url, via, hops, source, force: flags & FORCE > 0 }, tries))
}

/// The URL alone.
pub(super) fn url(bytes: &[u8]) -> Option<&str> {
    let rest = &mut bytes.get(1..)?;
    read_number(rest)?;
    read_text(rest)?;
    read_text(rest)
}

pub(super) fn number(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

pub(super) fn read_number(rest: &mut &[u8]) -> Option<u64> {
    let mut n = 0;
    for shift in (0..64).step_by(7) {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        n |= u64::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return Some(n);
        }
    }
    None
}

pub(super) fn read_text<'a>(rest: &mut &'a [u8]) -> Option<&'a str> {
    let len = usize::try_from(read_number(rest)?).ok()?;
    let (text, after) = rest.split_at_checked(len)?;
    *rest = after;
    std::str::from_utf8(text).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::hops::{Hop, Hops};

    proptest! {
        #[test]
        fn what_was_queued_comes_back(
            path in "[a-z/?=&%0-9é ]{0,300}", via in proptest::option::of("\\PC{0,200}"),
            source in proptest::option::of("\\PC{0,40}"), hops in 0..70_usize, force: bool, tries: u32,
        ) {
            let hops = (0..hops).fold(Hops::seed(), |hops, i| hops.and(if i % 3 == 0 { Hop::Embed } else { Hop::Link }));
            let candidate = Candidate {
                url: Url::parse(&format!("https://example.org/{path}")).unwrap(),
                via: via.map(Arc::from), source: source.map(Arc::from), hops, force,
            };
            let bytes = encode(&candidate, tries);
            prop_assert_eq!(url(&bytes), Some(candidate.url.as_str()));
            prop_assert_eq!(decode(&bytes), Some((candidate, tries)));
        }

        #[test]
        fn other_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = (decode(&bytes), url(&bytes));
        }
    }
}
