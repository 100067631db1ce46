//! The `sha2` crate is the judge: whatever the lengths and wherever the pieces end, the digests are the same.

use proptest::prelude::*;
use sha2::{Digest, Sha512};
use sha512x4::Stream;

fn judge(text: &[u8]) -> [u8; 64] {
    Sha512::digest(text).into()
}

fn text(length: usize, seed: u8) -> Vec<u8> {
    (0..length).map(|index| (index as u8).wrapping_mul(31).wrapping_add(seed) ^ (index >> 8) as u8).collect()
}

#[test]
fn every_length_around_the_blocks_is_right() {
    for length in (0..=400).chain([1023, 1024, 1025, 65_535, 65_536]) {
        let texts = [0, 1, 2, 3].map(|lane| text(length + usize::from(lane) % 2, lane));
        let mut streams: [Stream; 4] = Default::default();
        sha512x4::update(&mut streams, texts.each_ref().map(Vec::as_slice));
        for (stream, text) in streams.into_iter().zip(&texts) {
            assert_eq!(stream.finish(), judge(text), "{} bytes", text.len());
        }
    }
}

proptest! {
    #[test]
    fn pieces_do_not_matter(
        texts in proptest::array::uniform4(proptest::collection::vec(any::<u8>(), 0..3000)),
        cuts in proptest::collection::vec(proptest::array::uniform4(0..900_usize), 0..6),
        alone in 0..4_usize,
    ) {
        let mut streams: [Stream; 4] = Default::default();
        let mut rests = texts.each_ref().map(Vec::as_slice);
        for cut in cuts {
            let inputs = std::array::from_fn(|lane| {
                let (now, rest) = rests[lane].split_at(cut[lane].min(rests[lane].len()));
                rests[lane] = rest;
                now
            });
            sha512x4::update(&mut streams, inputs);
        }
        // One goes its own way; the others go on together.
        streams[alone].update(rests[alone]);
        rests[alone] = &[];
        sha512x4::update(&mut streams, rests);
        for (stream, text) in streams.into_iter().zip(&texts) {
            prop_assert_eq!(stream.finish(), judge(text));
        }
    }
}
