//! Checksums of stored bytes: SHA-512 for every file, others only when a sender names them.

use std::fmt::{self, Display, Write as _};

use data_encoding::{BASE64, HEXLOWER};
use md5::Md5;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256, Sha512};

/// SHA-512 of a whole file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Sum(pub [u8; 64]);

impl Sum {
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha512::digest(bytes).into())
    }

    pub fn base64(&self) -> String {
        BASE64.encode(&self.0)
    }
}

impl Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&HEXLOWER.encode(&self.0))
    }
}

impl fmt::Debug for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}

impl std::str::FromStr for Sum {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bytes =
            HEXLOWER.decode(text.to_ascii_lowercase().as_bytes()).map_err(|error| error.to_string())?;
        bytes.try_into().map(Self).map_err(|_| "a SHA-512 has 128 hexadecimal digits".to_owned())
    }
}

impl TryFrom<String> for Sum {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Sum> for String {
    fn from(sum: Sum) -> Self {
        sum.to_string()
    }
}

/// What a sender says its bytes sum up to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Declared {
    pub md5: Option<Vec<u8>>,
    pub sha256: Option<Vec<u8>>,
    pub sha512: Option<Vec<u8>>,
}

impl Declared {
    /// Takes `Content-MD5`, `Repr-Digest`, `Content-Digest` and `Digest`; algorithms we do not know are passed over,
    /// a value that cannot be read or two that differ are an error.
    pub fn header(&mut self, name: &str, value: &str) -> Result<(), String> {
        if name.eq_ignore_ascii_case("content-md5") {
            return keep(&mut self.md5, value.trim(), 16, name);
        }
        let structured = !name.eq_ignore_ascii_case("digest");
        for member in value.split(',') {
            let Some((algorithm, value)) = member.trim().split_once('=') else {
                return Err(format!("{name} cannot be read: {}", member.trim()));
            };
            let value = value.trim();
            let value = match value.strip_prefix(':').and_then(|value| value.strip_suffix(':')) {
                Some(inner) => inner,
                None if structured => return Err(format!("{name} cannot be read: write {algorithm}=:…:")),
                None => value,
            };
            match algorithm.trim().to_ascii_lowercase().as_str() {
                "sha-512" => keep(&mut self.sha512, value, 64, name)?,
                "sha-256" => keep(&mut self.sha256, value, 32, name)?,
                "md5" => keep(&mut self.md5, value, 16, name)?,
                _ => {}
            }
        }
        Ok(())
    }

    pub fn is_empty(&self) -> bool {
        self.md5.is_none() && self.sha256.is_none() && self.sha512.is_none()
    }
}

fn keep(slot: &mut Option<Vec<u8>>, value: &str, bytes: usize, header: &str) -> Result<(), String> {
    let decoded = BASE64.decode(value.as_bytes()).ok().filter(|decoded| decoded.len() == bytes);
    let decoded = decoded
        .ok_or_else(|| format!("{header} cannot be read: \"{value}\" is not {bytes} bytes in base64"))?;
    if slot.as_ref().is_some_and(|known| *known != decoded) {
        return Err(format!("{header} contradicts another checksum of the same request"));
    }
    *slot = Some(decoded);
    Ok(())
}

/// Sums up bytes on their way in: SHA-512 always, the others when declared.
#[derive(Clone, Debug)]
pub struct Summing {
    sha512: Sha512,
    sha256: Option<Sha256>,
    md5: Option<Md5>,
}

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sums {
    pub sha512: Sum,
    pub sha256: Option<[u8; 32]>,
    pub md5: Option<[u8; 16]>,
}

impl Summing {
    pub fn new(declared: &Declared) -> Self {
        Self {
            sha512: Sha512::new(),
            sha256: declared.sha256.as_ref().map(|_| Sha256::new()),
            md5: declared.md5.as_ref().map(|_| Md5::new()),
        }
    }

    pub fn update(&mut self, bytes: &[u8]) {
        self.sha512.update(bytes);
        if let Some(sha256) = &mut self.sha256 {
            sha256.update(bytes);
        }
        if let Some(md5) = &mut self.md5 {
            md5.update(bytes);
        }
    }

    pub fn finish(self) -> Sums {
        Sums {
            sha512: Sum(self.sha512.finalize().into()),
            sha256: self.sha256.map(|hasher| hasher.finalize().into()),
            md5: self.md5.map(|hasher| hasher.finalize().into()),
        }
    }
}

impl Sums {
    /// The name of the first checksum that is not as declared.
    pub fn differs(&self, declared: &Declared) -> Option<&'static str> {
        let wrong = |declared: &Option<Vec<u8>>, found: Option<&[u8]>| {
            declared.as_deref().is_some_and(|declared| Some(declared) != found)
        };
        if wrong(&declared.sha512, Some(&self.sha512.0)) {
            Some("SHA-512")
        } else if wrong(&declared.sha256, self.sha256.as_ref().map(<[u8; 32]>::as_slice)) {
            Some("SHA-256")
        } else if wrong(&declared.md5, self.md5.as_ref().map(<[u8; 16]>::as_slice)) {
            Some("MD5")
        } else {
            None
        }
    }

    /// The header lines that tell the sender what arrived.
    pub fn header_lines(&self) -> String {
        let mut lines = format!("Repr-Digest: sha-512=:{}:", self.sha512.base64());
        if let Some(sha256) = &self.sha256 {
            let _ = write!(lines, ", sha-256=:{}:", BASE64.encode(sha256));
        }
        lines += "\r\n";
        if let Some(md5) = &self.md5 {
            let _ = write!(lines, "Content-MD5: {}\r\n", BASE64.encode(md5));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declared_checksums_are_compared() {
        let hello = b"hello world";
        for (name, value, differs) in [
            ("Content-MD5", "XrY7u+Ae7tCTyyK7j1rNww==", None),
            ("content-md5", "XrY7u+Ae7tCTyyK7j1rNwA==", Some("MD5")),
            ("Repr-Digest", "sha-256=:uU0nuZNNPgilLlLX2n2r+sSE7+N6U4DukIj3rOLvzek=:", None),
            (
                "Repr-Digest",
                "sha-256=:uU0nuZNNPgilLlLX2n2r+sSE7+N6U4DukIj3rOLvzeg=:, unixsum=:AA==:",
                Some("SHA-256"),
            ),
            ("Digest", "SHA-256=uU0nuZNNPgilLlLX2n2r+sSE7+N6U4DukIj3rOLvzek=", None),
            ("Repr-Digest", "crc32c=:AAAAAA==:", None),
        ] {
            let mut declared = Declared::default();
            declared.header(name, value).unwrap();
            let mut summing = Summing::new(&declared);
            summing.update(&hello[..4]);
            summing.update(&hello[4..]);
            assert_eq!(summing.finish().differs(&declared), differs, "{name}: {value}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_an_error() {
        for (name, value) in [
            ("Content-MD5", "abc"),
            ("Repr-Digest", "sha-512=abc"),
            ("Repr-Digest", "sha-512"),
            ("Digest", "md5=AA=="),
        ] {
            assert!(Declared::default().header(name, value).is_err(), "{name}: {value}");
        }
        let mut declared = Declared::default();
        declared.header("Content-MD5", "XrY7u+Ae7tCTyyK7j1rNww==").unwrap();
        assert!(declared.header("Digest", "md5=XrY7u+Ae7tCTyyK7j1rNwA==").is_err());
    }
}
