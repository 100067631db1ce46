//! Digests as header fields state them: `label:value`, in base16 or base32, with every habit of writers.

use std::fmt;

use data_encoding::{BASE32, BASE32_NOPAD, BASE64_NOPAD, HEXLOWER, HEXLOWER_PERMISSIVE};
use sha1::Digest as _;

/// A digest algorithm that this library computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// MD5, of old archives.
    Md5,
    /// SHA-1, what nearly every archive uses.
    Sha1,
    /// SHA-256.
    Sha256,
    /// SHA-512.
    Sha512,
    /// BLAKE3.
    Blake3,
}

impl Algorithm {
    /// The label in front of the value.
    pub const fn label(self) -> &'static str {
        match self {
            Algorithm::Md5 => "md5",
            Algorithm::Sha1 => "sha1",
            Algorithm::Sha256 => "sha256",
            Algorithm::Sha512 => "sha512",
            Algorithm::Blake3 => "blake3",
        }
    }

    /// The length of the digest in bytes.
    pub const fn len(self) -> usize {
        match self {
            Algorithm::Md5 => 16,
            Algorithm::Sha1 => 20,
            Algorithm::Sha256 | Algorithm::Blake3 => 32,
            Algorithm::Sha512 => 64,
        }
    }

    /// Always false; a digest has bytes.
    pub const fn is_empty(self) -> bool {
        false
    }

    /// Reads a label in any case, with or without a hyphen.
    fn from_label(label: &[u8]) -> Option<Algorithm> {
        const ALL: [Algorithm; 5] =
            [Algorithm::Sha1, Algorithm::Sha256, Algorithm::Md5, Algorithm::Sha512, Algorithm::Blake3];
        let plain = || label.iter().filter(|b| **b != b'-').map(u8::to_ascii_lowercase);
        ALL.into_iter().find(|algorithm| plain().eq(algorithm.label().bytes()))
    }
}

/// The bytes of a digest and the algorithm that made it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest {
    algorithm: Algorithm,
    bytes: [u8; 64],
}

/// Why a digest field could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DigestError {
    /// The algorithm is not one of [`Algorithm`].
    UnknownAlgorithm,
    /// The value is neither base16 nor base32 of the right length.
    Malformed,
}

impl Digest {
    /// Reads a field such as `sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ`. The encoding is told by the
    /// length; for MD5, where both are 32 long, base32 must be padded. A value without a label is SHA-1.
    pub fn parse(field: &[u8]) -> Result<Digest, DigestError> {
        let field = field.trim_ascii();
        let (algorithm, value) = match memchr::memchr(b':', field) {
            Some(colon) => {
                let algorithm = Algorithm::from_label(field[..colon].trim_ascii())
                    .ok_or(DigestError::UnknownAlgorithm)?;
                (algorithm, field[colon + 1..].trim_ascii())
            }
            None => (Algorithm::Sha1, field),
        };
        let mut bytes = [0; 64];
        let len = algorithm.len();
        let bare64 = value.iter().rposition(|&b| b != b'=').map_or(0, |last| last + 1);
        let decoded = if value.len() == len * 2 && !value.ends_with(b"=") {
            HEXLOWER_PERMISSIVE.decode(value)
        } else if bare64 == (len * 4).div_ceil(3) {
            // Base64, of some early writers, in either alphabet.
            let usual: Vec<u8> = value[..bare64]
                .iter()
                .map(|&b| match b {
                    b'-' => b'+',
                    b'_' => b'/',
                    other => other,
                })
                .collect();
            BASE64_NOPAD.decode(&usual)
        } else {
            let upper = value.to_ascii_uppercase();
            let bare = upper.iter().rposition(|&b| b != b'=').map_or(&upper[..0], |last| &upper[..=last]);
            BASE32_NOPAD.decode(bare)
        };
        match decoded {
            Ok(decoded) if decoded.len() == len => bytes[..len].copy_from_slice(&decoded),
            _ => return Err(DigestError::Malformed),
        }
        Ok(Digest { algorithm, bytes })
    }

    /// The digest of `data`.
    pub fn of(algorithm: Algorithm, data: &[u8]) -> Digest {
        let mut hasher = Hasher::new(algorithm);
        hasher.update(data);
        hasher.finish()
    }

    /// The algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.algorithm.len()]
    }

    /// The value in base32, upper case, padded where the length asks for it.
    pub fn base32(&self) -> String {
        BASE32.encode(self.as_bytes())
    }

    /// The value in base16, lower case.
    pub fn hex(&self) -> String {
        HEXLOWER.encode(self.as_bytes())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// As this library writes it: base32 for SHA-1, as all tools expect, and base16 for the others.
impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = if self.algorithm == Algorithm::Sha1 { self.base32() } else { self.hex() };
        write!(f, "{}:{value}", self.algorithm.label())
    }
}

/// Computes a digest piece by piece.
#[derive(Clone, Debug)]
pub struct Hasher(State);

#[derive(Clone, Debug)]
enum State {
    Md5(md5::Md5),
    Sha1(sha1::Sha1),
    Sha256(sha2::Sha256),
    Sha512(Box<sha2::Sha512>),
    Blake3(Box<blake3::Hasher>),
}

impl Hasher {
    /// Starts a digest.
    pub fn new(algorithm: Algorithm) -> Hasher {
        Hasher(match algorithm {
            Algorithm::Md5 => State::Md5(md5::Md5::new()),
            Algorithm::Sha1 => State::Sha1(sha1::Sha1::new()),
            Algorithm::Sha256 => State::Sha256(sha2::Sha256::new()),
            Algorithm::Sha512 => State::Sha512(Box::new(sha2::Sha512::new())),
            Algorithm::Blake3 => State::Blake3(Box::new(blake3::Hasher::new())),
        })
    }

    /// Adds bytes.
    pub fn update(&mut self, data: &[u8]) {
        match &mut self.0 {
            State::Md5(state) => state.update(data),
            State::Sha1(state) => state.update(data),
            State::Sha256(state) => state.update(data),
            State::Sha512(state) => state.update(data),
            State::Blake3(state) => {
                state.update(data);
            }
        }
    }

    /// The digest of all bytes added.
    pub fn finish(self) -> Digest {
        let mut bytes = [0; 64];
        let mut put = |digest: &[u8]| bytes[..digest.len()].copy_from_slice(digest);
        let algorithm = match self.0 {
            State::Md5(state) => {
                put(&state.finalize());
                Algorithm::Md5
            }
            State::Sha1(state) => {
                put(&state.finalize());
                Algorithm::Sha1
            }
            State::Sha256(state) => {
                put(&state.finalize());
                Algorithm::Sha256
            }
            State::Sha512(state) => {
                put(&state.finalize());
                Algorithm::Sha512
            }
            State::Blake3(state) => {
                put(state.finalize().as_bytes());
                Algorithm::Blake3
            }
        };
        Digest { algorithm, bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_every_form() {
        let empty = |algorithm| Digest::of(algorithm, b"");
        for (field, expected) in [
            ("sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ", Ok(empty(Algorithm::Sha1))),
            ("SHA-1:3i42h3s6nnfq2msvx7xzkyayscx5qbyj", Ok(empty(Algorithm::Sha1))),
            ("sha1: DA39A3EE5E6B4B0D3255BFEF95601890AFD80709 ", Ok(empty(Algorithm::Sha1))),
            ("3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ", Ok(empty(Algorithm::Sha1))),
            ("md5:d41d8cd98f00b204e9800998ecf8427e", Ok(empty(Algorithm::Md5))),
            ("md5:2QOYZWMPACZAJ2MABGMOZ6CCPY======", Ok(empty(Algorithm::Md5))),
            ("md5:2QOYZWMPACZAJ2MABGMOZ6CCPY", Ok(empty(Algorithm::Md5))),
            (
                "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
                Ok(empty(Algorithm::Sha256)),
            ),
            (
                "sha-256:4OYMIQUY7QOBJGX36TEJS35ZEQT24QPEMSNZGTFESWMRW6CSXBKQ====",
                Ok(empty(Algorithm::Sha256)),
            ),
            ("sha1:2jmj7l5rSw0yVb/vlWAYkK/YBwk=", Ok(empty(Algorithm::Sha1))),
            ("sha1:2jmj7l5rSw0yVb_vlWAYkK_YBwk", Ok(empty(Algorithm::Sha1))),
            ("crc32:00000000", Err(DigestError::UnknownAlgorithm)),
            ("sha1:short", Err(DigestError::Malformed)),
            ("sha1:", Err(DigestError::Malformed)),
            ("", Err(DigestError::Malformed)),
            ("sha1:=", Err(DigestError::Malformed)),
        ] {
            assert_eq!(Digest::parse(field.as_bytes()), expected, "{field}");
        }
        for algorithm in
            [Algorithm::Md5, Algorithm::Sha1, Algorithm::Sha256, Algorithm::Sha512, Algorithm::Blake3]
        {
            let digest = Digest::of(algorithm, b"abc");
            assert_eq!(Digest::parse(digest.to_string().as_bytes()), Ok(digest));
            let base32 = format!("{}:{}", algorithm.label(), digest.base32());
            assert_eq!(Digest::parse(base32.as_bytes()), Ok(digest));
        }
    }
}
