//! Any bytes as a script and as JSON.
#![no_main]

#[allow(dead_code)]
mod extraction;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| extraction::check(
    bytes,
    &["text/javascript", "application/json"]
));
