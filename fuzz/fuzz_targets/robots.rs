//! Any bytes as a robots.txt: there is an answer for every path, and what is stored is what was read.
#![no_main]

use grange_crawl::robots::{READ_BYTES_MAX, Robots};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let (path, text) = match data.iter().position(|b| *b == b'\n') {
        Some(at) => (&data[..at], &data[at + 1..]),
        None => (&[][..], data),
    };
    let robots = Robots::parse(text, "grange");
    let path = String::from_utf8_lossy(path);
    let verdict = robots.allows(&path);
    assert_eq!(verdict.allowed, verdict.rule.is_none_or(|rule| rule.allow));
    assert!(robots.rules().iter().all(|rule| rule.pattern.bytes().all(|b| b.is_ascii_graphic())));
    assert!(robots.rules().len() <= READ_BYTES_MAX);
    let _ = robots.crawl_delay();
});
