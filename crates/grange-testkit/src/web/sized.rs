//! Answers whose size and pace stand in their address, on every host and in every profile:
//! `/sized?bytes=N`, with `&wait_ms=N` before the head, or `&drip_ms=N` between pieces of `&piece=N` bytes, and
//! `&chunked=1`, `&close=1`.

use std::time::Duration;

use super::answer::{Answer, Body, Framing, Pace};
use super::dice;
use super::name::{Names, Sub};
use super::site::Resource;

/// The largest body in bytes: a number in a query must not keep a connection busy for ever.
const BYTES_MAX: u64 = 64 << 30;
/// The longest pause in milliseconds: longer than every sensible timeout.
const PAUSE_MS_MAX: u64 = 3_600_000;

pub(crate) fn find(names: &Names, seed: u64, site: usize, sub: Sub, target: &str) -> Option<Resource> {
    let query = target.strip_prefix("/sized?")?;
    let number = |name: &str| -> Option<u64> {
        query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
    };
    let pause = |ms: u64| Duration::from_millis(ms.min(PAUSE_MS_MAX));
    let body = Body::Stream {
        seed: dice::mix(&[seed, site as u64, dice::of_text(target)]),
        bytes: number("bytes").unwrap_or(0).min(BYTES_MAX),
    };
    let pace = match (number("wait_ms"), number("drip_ms")) {
        (Some(ms), _) => Pace::After(pause(ms)),
        (None, Some(ms)) => {
            let piece_bytes = number("piece").unwrap_or(1).clamp(1, 65_536) as usize;
            Pace::Drip { piece_bytes, every: pause(ms) }
        }
        (None, None) => Pace::AtOnce,
    };
    let framing = match (number("chunked"), number("close")) {
        (Some(_), _) => Framing::Chunked { trailers: false },
        (None, Some(_)) => Framing::UntilClose,
        (None, None) => Framing::Length,
    };
    let answer =
        Answer { body, ..Answer::new(200, "application/octet-stream", "") }.paced(pace).framed(framing);
    let url = format!("{}{target}", names.origin(site, sub));
    Some(Resource { url, answer, links: Vec::new(), excluded: false, decoy: false, endless: false })
}
