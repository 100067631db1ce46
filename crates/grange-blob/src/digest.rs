//! Checksums in one pass over the bytes, by two implementations; several of them side by side.
//!
//! What is written is summed by RustCrypto, what is read back by AWS-LC (and audits of large files by `sha512x4`), so that a flaw in one of them, or in the
//! memory it ran in, does not prove itself right. MD5 has no second implementation here.

use std::io::{self, Read};
use std::panic::resume_unwind;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use aws_lc_rs::{digest as second, hmac};
use bytes::Bytes;
use grange_model::{Algorithm, Checksums, Md5, Sha256, Sha512};
use sha2::Digest;

use crate::buffers::Buffers;

/// Below this a thread costs more than it saves: two cores hash so much in the time one takes to start.
const INLINE_BYTES_MAX: u64 = 256 << 10;

/// Buffers under way to each hashing thread: enough to cover a hiccup of the disk, few enough to stay in the cache.
const UNDER_WAY: usize = 4;

/// Which implementation computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// RustCrypto, on the way in.
    First,
    /// AWS-LC, on reading back.
    Second,
}

enum Hasher {
    Md5(md5::Md5),
    FirstSha256(sha2::Sha256),
    FirstSha512(sha2::Sha512),
    SecondSha256(second::Context),
    SecondSha512(second::Context),
}

impl Hasher {
    fn new(by: By, algorithm: Algorithm) -> Self {
        match (by, algorithm) {
            (_, Algorithm::Md5) => Self::Md5(md5::Md5::new()),
            (By::First, Algorithm::Sha256) => Self::FirstSha256(sha2::Sha256::new()),
            (By::First, Algorithm::Sha512) => Self::FirstSha512(sha2::Sha512::new()),
            (By::Second, Algorithm::Sha256) => Self::SecondSha256(second::Context::new(&second::SHA256)),
            (By::Second, Algorithm::Sha512) => Self::SecondSha512(second::Context::new(&second::SHA512)),
        }
    }

    fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Md5(hasher) => hasher.update(bytes),
            Self::FirstSha256(hasher) => hasher.update(bytes),
            Self::FirstSha512(hasher) => hasher.update(bytes),
            Self::SecondSha256(context) | Self::SecondSha512(context) => context.update(bytes),
        }
    }

    fn finish(self, sums: &mut Checksums) {
        match self {
            Self::Md5(hasher) => sums.md5 = Some(Md5(hasher.finalize().into())),
            Self::FirstSha256(hasher) => sums.sha256 = Some(Sha256(hasher.finalize().into())),
            Self::FirstSha512(hasher) => sums.sha512 = Some(Sha512(hasher.finalize().into())),
            Self::SecondSha256(context) => {
                sums.sha256 = context.finish().as_ref().try_into().ok().map(Sha256);
            }
            Self::SecondSha512(context) => {
                sums.sha512 = context.finish().as_ref().try_into().ok().map(Sha512);
            }
        }
    }
}

/// A thread that hashes what it is sent.
struct Lane {
    sender: SyncSender<Bytes>,
    thread: JoinHandle<Hasher>,
}

/// Sums up bytes as they come: in the caller's thread, or, of a large file with several algorithms, with a thread for
/// each. One algorithm alone gained nothing from a thread beside the reader when it was tried.
pub(crate) struct Summing {
    inline: Vec<Hasher>,
    lanes: Vec<Lane>,
    bytes: u64,
    threads: bool,
}

impl Summing {
    /// May block on its threads; not for async code.
    pub(crate) fn new(by: By, algorithms: &[Algorithm]) -> Self {
        let inline = Self::inline(by, algorithms);
        Self { threads: inline.inline.len() > 1, ..inline }
    }

    /// Always in the caller's thread.
    pub(crate) fn inline(by: By, algorithms: &[Algorithm]) -> Self {
        let known = Algorithm::ALL.iter().filter(|algorithm| algorithms.contains(algorithm));
        let inline = known.map(|algorithm| Hasher::new(by, *algorithm)).collect();
        Self { inline, lanes: Vec::new(), bytes: 0, threads: false }
    }

    pub(crate) fn update(&mut self, bytes: &Bytes) {
        self.bytes += bytes.len() as u64;
        if self.threads && self.bytes > INLINE_BYTES_MAX {
            self.spread();
        }
        for hasher in &mut self.inline {
            hasher.update(bytes);
        }
        for lane in &self.lanes {
            // A lane that is gone has panicked, which `finish` tells.
            let _ = lane.sender.send(bytes.clone());
        }
    }

    fn spread(&mut self) {
        self.threads = false;
        for mut hasher in self.inline.drain(..) {
            let (sender, receiver) = sync_channel::<Bytes>(UNDER_WAY);
            let thread = thread::spawn(move || {
                while let Ok(bytes) = receiver.recv() {
                    hasher.update(&bytes);
                }
                hasher
            });
            self.lanes.push(Lane { sender, thread });
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn finish(self) -> Checksums {
        let mut sums = Checksums::default();
        for hasher in self.inline {
            hasher.finish(&mut sums);
        }
        for Lane { sender, thread } in self.lanes {
            drop(sender);
            thread.join().unwrap_or_else(|panic| resume_unwind(panic)).finish(&mut sums);
        }
        sums
    }
}

/// Sums up what the file holds from where it stands to its end. Blocks.
pub(crate) fn sum_file(
    file: &mut impl Read,
    by: By,
    algorithms: &[Algorithm],
    buffers: &Buffers,
) -> io::Result<(u64, Checksums)> {
    let mut summing = Summing::new(by, algorithms);
    buffers.each(file, |bytes| {
        summing.update(&bytes);
        Ok(())
    })?;
    Ok((summing.bytes(), summing.finish()))
}

/// The salted proof that these bytes were read: HMAC-SHA-512 with the salt as key.
pub(crate) struct Proving(hmac::Context);

impl Proving {
    pub(crate) fn new(salt: &[u8]) -> Self {
        Self(hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA512, salt)))
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(crate) fn finish(self) -> Sha512 {
        let mut value = [0; 64];
        value.copy_from_slice(self.0.sign().as_ref());
        Sha512(value)
    }

    pub(crate) fn of(salt: &[u8], mut reader: impl Read, buffers: &Buffers) -> io::Result<Sha512> {
        let mut proving = Self::new(salt);
        buffers.each(&mut reader, |bytes| {
            proving.update(&bytes);
            Ok(())
        })?;
        Ok(proving.finish())
    }
}

/// The algorithms of both, each once.
pub(crate) fn union(configured: &[Algorithm], asked: Option<&Checksums>) -> Vec<Algorithm> {
    let asked: Vec<_> = asked.into_iter().flat_map(Checksums::algorithms).collect();
    let both = Algorithm::ALL.iter().copied();
    both.filter(|algorithm| configured.contains(algorithm) || asked.contains(algorithm)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(by: By, bytes: &[u8], piece: usize) -> Checksums {
        let mut summing = Summing::new(by, Algorithm::ALL);
        for piece in bytes.chunks(piece) {
            summing.update(&Bytes::copy_from_slice(piece));
        }
        assert_eq!(summing.bytes(), bytes.len() as u64);
        summing.finish()
    }

    #[test]
    fn the_published_values_come_out() {
        // FIPS 180-4 and RFC 1321, message "abc".
        let abc = "md5=900150983cd24fb0d6963f7d28e17f72 \
                   sha256=ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad \
                   sha512=ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a\
                   2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f";
        for by in [By::First, By::Second] {
            assert_eq!(sums(by, b"abc", 2), abc.parse().unwrap(), "{by:?}");
        }
    }

    #[test]
    fn both_implementations_agree_with_and_without_threads() {
        let bytes = crate::conformance::noise(3_000_000, 1);
        for len in [0, 1, 200_000, 262_144, 262_145, 3_000_000] {
            let first = sums(By::First, &bytes[..len], 100_000);
            assert_eq!(first, sums(By::Second, &bytes[..len], 65_537), "{len}");
        }
    }

    #[test]
    fn only_what_was_asked_is_computed() {
        let summing = Summing::new(By::Second, &[Algorithm::Sha256]);
        let sums = summing.finish();
        assert_eq!(sums.algorithms().collect::<Vec<_>>(), [Algorithm::Sha256]);
        let asked = Checksums { sha512: None, ..sums };
        assert_eq!(union(&[Algorithm::Md5], Some(&asked)), [Algorithm::Md5, Algorithm::Sha256]);
        assert_eq!(union(&[], None), []);
    }

    #[test]
    fn a_proof_needs_the_salt_and_every_byte() {
        let buffers = Buffers::default();
        let of = |salt: &[u8], bytes: &[u8]| Proving::of(salt, bytes, &buffers).unwrap();
        // RFC 4231, test case 2.
        assert!(
            of(b"Jefe", b"what do ya want for nothing?")
                .to_string()
                .starts_with("164b7a7bfcf819e2e395fbe73b56e0a3")
        );
        assert_ne!(of(b"a", b"bytes"), of(b"b", b"bytes"));
        assert_ne!(of(b"a", b"bytes"), of(b"a", b"byteS"));
    }
}
