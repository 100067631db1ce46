//! Any bytes as a segment of the capture index, and as each of its pieces.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| grange_index::read_anything(data));
