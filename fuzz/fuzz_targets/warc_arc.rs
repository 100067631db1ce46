//! Any bytes as an ARC file.
#![no_main]

#[allow(dead_code)]
#[path = "../../libs/warc/tests/common/entry.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| entry::arc(bytes));
