//! SHA-512 of four streams side by side on one core.
//!
//! Whoever sums up many files has many streams. Four of them together pass through one core's vector units in less
//! time than two pass one after the other. A stream that is left alone goes on with the `sha2` crate from the
//! state it has reached, so no stream ever waits for another.
//!
//! ```
//! let mut streams: [sha512x4::Stream; 4] = Default::default();
//! sha512x4::update(&mut streams, [b"one", b"two", b"three", b""]);
//! let [one, ..] = streams;
//! assert_eq!(one.finish()[..4], [0x05, 0xf7, 0x03, 0x41]);
//! ```

#[cfg(target_arch = "x86_64")]
mod wide;

/// What the compression function takes at a time.
const BLOCK_BYTES: usize = 128;

/// The place of the length in the last block, which is 128 bits wide.
const LENGTH_AT: usize = BLOCK_BYTES - 16;

type State = [u64; 8];

/// FIPS 180-4, 5.3.5: the first 64 bits of the fractional parts of the square roots of the first eight primes.
#[rustfmt::skip]
const INITIAL: State = [
    0x6a09_e667_f3bc_c908, 0xbb67_ae85_84ca_a73b, 0x3c6e_f372_fe94_f82b, 0xa54f_f53a_5f1d_36f1,
    0x510e_527f_ade6_82d1, 0x9b05_688c_2b3e_6c1f, 0x1f83_d9ab_fb41_bd6b, 0x5be0_cd19_137e_2179,
];

/// One stream and how far its digest has come.
#[derive(Clone, Debug)]
pub struct Stream {
    state: State,
    bytes: u128,
    /// The beginning of the next block, `bytes % BLOCK_BYTES` of it filled.
    tail: [u8; BLOCK_BYTES],
}

impl Default for Stream {
    fn default() -> Self {
        Self { state: INITIAL, bytes: 0, tail: [0; BLOCK_BYTES] }
    }
}

impl Stream {
    /// Takes more of this stream alone.
    pub fn update(&mut self, input: &[u8]) {
        let (blocks, rest) = self.align(input).as_chunks::<BLOCK_BYTES>();
        sha2::block_api::compress512(&mut self.state, blocks);
        self.keep(blocks.len(), rest);
    }

    pub fn finish(mut self) -> [u8; 64] {
        let filled = self.filled();
        let mut last = [[0; BLOCK_BYTES]; 2];
        last[0][..filled].copy_from_slice(&self.tail[..filled]);
        last[0][filled] = 0x80;
        // The length needs its place behind the mark; where that is taken, a block more is needed.
        let blocks = if filled < LENGTH_AT { 1 } else { 2 };
        last[blocks - 1][LENGTH_AT..].copy_from_slice(&(self.bytes * 8).to_be_bytes());
        sha2::block_api::compress512(&mut self.state, &last[..blocks]);
        let mut digest = [0; 64];
        for (bytes, word) in digest.as_chunks_mut::<8>().0.iter_mut().zip(self.state) {
            *bytes = word.to_be_bytes();
        }
        digest
    }

    fn filled(&self) -> usize {
        (self.bytes % BLOCK_BYTES as u128) as usize
    }

    /// Fills up a block that was begun; what is left of the input starts a new one.
    fn align<'a>(&mut self, input: &'a [u8]) -> &'a [u8] {
        let filled = self.filled();
        if filled == 0 {
            return input;
        }
        let (now, rest) = input.split_at(input.len().min(BLOCK_BYTES - filled));
        self.tail[filled..filled + now.len()].copy_from_slice(now);
        self.bytes += now.len() as u128;
        if self.filled() == 0 {
            sha2::block_api::compress512(&mut self.state, std::slice::from_ref(&self.tail));
        }
        rest
    }

    /// Counts the blocks that were taken, and keeps a rest shorter than one.
    fn keep(&mut self, blocks: usize, rest: &[u8]) {
        self.bytes += (blocks * BLOCK_BYTES) as u128;
        if !rest.is_empty() {
            self.tail[..rest.len()].copy_from_slice(rest);
            self.bytes += rest.len() as u128;
        }
    }
}

/// Takes more of four streams: what they have in common in length side by side, the rest one by one. Inputs of equal
/// length are the fastest; any length is right.
pub fn update(streams: &mut [Stream; 4], inputs: [&[u8]; 4]) {
    let mut rests = inputs;
    for (stream, rest) in streams.iter_mut().zip(&mut rests) {
        *rest = stream.align(rest);
    }
    let common = rests.map(|rest| rest.len() / BLOCK_BYTES).into_iter().min().unwrap_or(0);
    if common > 0 {
        let blocks = rests.map(|rest| &rest.as_chunks::<BLOCK_BYTES>().0[..common]);
        let mut states = std::array::from_fn(|lane| streams[lane].state);
        if compress(&mut states, blocks).is_some() {
            for ((stream, state), rest) in streams.iter_mut().zip(states).zip(&mut rests) {
                stream.state = state;
                stream.keep(common, &[]);
                *rest = &rest[common * BLOCK_BYTES..];
            }
        }
    }
    for (stream, rest) in streams.iter_mut().zip(rests) {
        stream.update(rest);
    }
}

#[cfg(target_arch = "x86_64")]
use wide::compress;

/// Other processors hash one stream as fast as they can.
#[cfg(not(target_arch = "x86_64"))]
fn compress(_: &mut [State; 4], _: [&[[u8; BLOCK_BYTES]]; 4]) -> Option<()> {
    None
}
