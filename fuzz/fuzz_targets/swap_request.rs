//! Any bytes as a request to a SWAP server, and as each of its parts: paths, queries, ranges, checksums, records.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| grange_swap::read_anything(data));
