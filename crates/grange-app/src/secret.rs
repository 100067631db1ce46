//! Secrets that are looked up by their hash: API tokens and session keys. They carry 256 random bits, so a plain
//! SHA-256 is as good as a slow hash and can be an index.

use data_encoding::{BASE32_NOPAD, HEXLOWER};
use sha2::{Digest, Sha256};

/// A new secret behind a prefix that scanners for leaked secrets recognise: `grange_…`.
pub(crate) fn make() -> String {
    format!("grange_{}", BASE32_NOPAD.encode(&rand::random::<[u8; 32]>()).to_lowercase())
}

/// What is kept of a secret.
pub(crate) fn hash(secret: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(secret.as_bytes()))
}
