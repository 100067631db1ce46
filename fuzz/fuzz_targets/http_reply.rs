//! Any bytes as an HTTP answer, in any pieces: what is kept is what came, and the pieces make no difference.
#![no_main]

use grange_crawl::fetch::{End, read_reply};
use libfuzzer_sys::fuzz_target;
use warc::{Algorithm, Digest};

fuzz_target!(|data: &[u8]| {
    let Some(([how, limit, pieces @ ..], wire)) = data.split_first_chunk::<6>() else { return };
    let end = [End::Closed, End::Lost, End::TimedOut, End::NotWanted][usize::from(how % 4)];
    let max_bytes = if *limit == 0 { u64::MAX } else { u64::from(*limit) * 16 };
    let whole = read_reply(wire, [usize::MAX], max_bytes, end);
    assert_eq!(whole.block_digest, Digest::of(Algorithm::Sha1, &whole.buffer));
    assert!(wire.starts_with(&[&whole.preamble[..], &whole.buffer].concat()));
    assert!(whole.head_len <= whole.buffer.len() && whole.payload_len <= whole.len);
    let pieced = read_reply(wire, pieces.iter().cycle().map(|n| usize::from(*n)), max_bytes, end);
    assert_eq!(
        (whole.status, whole.head_len, whole.payload_digest, whole.block_digest, whole.truncated),
        (pieced.status, pieced.head_len, pieced.payload_digest, pieced.block_digest, pieced.truncated)
    );
});
