//! How an infected answer is kept: every byte combined with one key by exclusive or. Doing it again gives the bytes
//! back. The form is the one UKWA writes, so its tools read ours.

use std::io::{self, Read, Seek, SeekFrom};

/// The key: `v`.
pub const KEY: u8 = b'v';

/// The type of such a record. The number is the key.
pub const CONTENT_TYPE: &str = "application/http; encoding=bytewise_xor_with_118";

/// Turns the bytes, or turns them back.
pub fn xor(bytes: &mut [u8], key: u8) {
    for byte in bytes {
        *byte ^= key;
    }
}

/// A reader whose bytes are turned on their way.
#[derive(Debug)]
pub struct Xor<R> {
    inner: R,
    key: u8,
}

impl<R> Xor<R> {
    pub fn new(inner: R) -> Xor<R> {
        Xor { inner, key: KEY }
    }

    pub fn with_key(inner: R, key: u8) -> Xor<R> {
        Xor { inner, key }
    }
}

impl<R: Read> Read for Xor<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        xor(&mut buffer[..count], self.key);
        Ok(count)
    }
}

/// The key is the same everywhere.
impl<R: Seek> Seek for Xor<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.inner.seek(to)
    }
}

/// The key that a content type names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyOfType(pub u8);

impl KeyOfType {
    /// Reads the key off a content type; none when the record is not a turned one.
    pub fn parse(content_type: &str) -> Option<KeyOfType> {
        let mut parts = content_type.split(';').map(str::trim);
        if !parts.next()?.eq_ignore_ascii_case("application/http") {
            return None;
        }
        let key = parts.find_map(|part| part.strip_prefix("encoding=bytewise_xor_with_"))?;
        key.parse().ok().map(KeyOfType)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_type_names_the_key() {
        assert_eq!(KeyOfType::parse(CONTENT_TYPE), Some(KeyOfType(KEY)));
        for (text, key) in [
            ("Application/HTTP;encoding=bytewise_xor_with_7", Some(KeyOfType(7))),
            ("application/http; msgtype=response", None),
            ("application/http; encoding=bytewise_xor_with_999", None),
            ("text/plain; encoding=bytewise_xor_with_118", None),
            ("", None),
        ] {
            assert_eq!(KeyOfType::parse(text), key, "{text}");
        }
    }

    proptest! {
        #[test]
        fn turned_twice_is_the_same(bytes in proptest::collection::vec(any::<u8>(), 0..2000), key in any::<u8>()) {
            let mut turned = Vec::new();
            Xor::with_key(bytes.as_slice(), key).read_to_end(&mut turned).unwrap();
            prop_assert!(key == 0 || bytes.iter().zip(&turned).all(|(a, b)| a != b));
            xor(&mut turned, key);
            prop_assert_eq!(turned, bytes);
        }
    }
}
