//! Any bytes as a style sheet.
#![no_main]

#[allow(dead_code)]
mod extraction;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| extraction::check(bytes, &["text/css"]));
