//! Four streams side by side against the same four one after another.
//!
//! `cargo run --release -p sha512x4 --example speed`

use std::time::Instant;

use sha2::{Digest, Sha512};
use sha512x4::Stream;

const BYTES: usize = 1 << 20;
const ROUNDS: usize = 256;

fn main() {
    let texts: [Vec<u8>; 4] = std::array::from_fn(|lane| vec![lane as u8; BYTES]);
    let mebibytes = ((4 * ROUNDS * BYTES) >> 20) as f64;
    let start = Instant::now();
    let mut streams: [Stream; 4] = Default::default();
    for _ in 0..ROUNDS {
        sha512x4::update(&mut streams, texts.each_ref().map(Vec::as_slice));
    }
    let digests = streams.map(Stream::finish);
    let together = mebibytes / start.elapsed().as_secs_f64();
    let start = Instant::now();
    for (text, digest) in texts.iter().zip(digests) {
        let mut hasher = Sha512::new();
        for _ in 0..ROUNDS {
            hasher.update(text);
        }
        assert_eq!(digest, <[u8; 64]>::from(hasher.finalize()));
    }
    let alone = mebibytes / start.elapsed().as_secs_f64();
    println!("four together {together:.0} MiB/s, one by one {alone:.0} MiB/s, ratio {:.2}", together / alone);
}
