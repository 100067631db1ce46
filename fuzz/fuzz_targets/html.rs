//! Any bytes as a page, and as every other format that is told by its first bytes.
#![no_main]

#[allow(dead_code)]
mod extraction;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| extraction::check(
    bytes,
    &["text/html", "application/octet-stream", "text/xml", "image/svg+xml", "text/html; charset=iso-2022-jp"]
));
