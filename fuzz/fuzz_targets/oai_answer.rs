//! Any bytes as an answer of an OAI-PMH repository.
#![no_main]

#[path = "../../libs/oaipmh/tests/common/entry.rs"]
#[allow(dead_code)]
mod entry;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| entry::answer(bytes));
