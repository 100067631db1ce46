//! Stored files: how they may be named, and the checksums by which their bytes are known.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use unicode_normalization::is_nfc;

use crate::nearest::named;

/// The name of a stored file. Names compare by their bytes.
///
/// A name is a plain file name on every disk, safe in a shell, a URL path segment and an S3 key: 1 to 255 bytes of
/// UTF-8 in Unicode's composed form (NFC), so that one name has one spelling. Refused are `/` and `\`, control
/// characters (NUL and line breaks among them) and the invisible ones that turn or break lines, a leading `.`, `-`
/// or space (`.` and `..` among them), and a trailing `.` or space, which some file systems drop.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct FileName(String);

/// A text that cannot name a file; says the rule it breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{}\" cannot name a file: {rule}", given.escape_debug())]
pub struct FileNameError {
    /// What was given, shortened.
    pub given: String,
    pub rule: &'static str,
}

/// What ext4, XFS, btrfs and ZFS take for one name.
pub const FILE_NAME_BYTES_MAX: usize = 255;

/// Characters of a refused name shown in its error; enough to recognise it, no place for a pasted novel.
const SHOWN_CHARS: usize = 80;

impl FileName {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The rule that `text` breaks.
    fn broken(text: &str) -> Option<&'static str> {
        if text.is_empty() {
            return Some("it is empty");
        }
        if text.len() > FILE_NAME_BYTES_MAX {
            return Some("it is longer than 255 bytes");
        }
        if text.contains(['/', '\\']) {
            return Some("it holds a slash or backslash; give the name without its folder");
        }
        if text.chars().any(unfit) {
            return Some("it holds a control character, or an invisible one that turns or breaks lines");
        }
        if text.starts_with(['.', '-', ' ']) {
            return Some("it starts with a dot, a hyphen or a space");
        }
        if text.ends_with(['.', ' ']) {
            return Some("it ends with a dot or a space");
        }
        if !is_nfc(text) {
            return Some("its letters are not in Unicode's composed form (NFC)");
        }
        None
    }
}

/// Controls, byte-order mark, line and paragraph separators, and the marks that reverse the text shown after them.
fn unfit(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{feff}' | '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

impl FromStr for FileName {
    type Err = FileNameError;

    fn from_str(text: &str) -> Result<Self, FileNameError> {
        match Self::broken(text) {
            None => Ok(Self(text.to_owned())),
            Some(rule) => Err(FileNameError { given: text.chars().take(SHOWN_CHARS).collect(), rule }),
        }
    }
}

impl AsRef<str> for FileName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl<'de> Deserialize<'de> for FileName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for FileName {
    fn schema_name() -> Cow<'static, str> {
        "FileName".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "minLength": 1, "maxLength": FILE_NAME_BYTES_MAX })
    }

    fn inline_schema() -> bool {
        true
    }
}

named! {
    /// How bytes are summed up. Ordered by strength: the greatest that two sides know decides between them.
    Algorithm, "checksum algorithm" {
        /// Against accidents only: collisions can be made. Kept because old archives know their files by it.
        Md5 = "md5",
        Sha256 = "sha256",
        Sha512 = "sha512",
    }
}

/// A text that is not a checksum.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChecksumError {
    #[error("\"{}\" is not a {algorithm} checksum: write {} hexadecimal digits", given.escape_debug(), 2 * algorithm.bytes())]
    Digits { given: String, algorithm: Algorithm },
    #[error("\"{}\" is not a checksum: write sha512=…, sha256=… or md5=…", given.escape_debug())]
    Form { given: String },
    #[error("{algorithm} is given twice, with different values")]
    Twice { algorithm: Algorithm },
}

impl Algorithm {
    /// The length of its value.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Md5 => 16,
            Self::Sha256 => 32,
            Self::Sha512 => 64,
        }
    }
}

macro_rules! checksum {
    ($name:ident, $algorithm:ident, $bytes:literal) => {
        #[doc = concat!("A ", stringify!($name), " value, written in lower-case hexadecimal.")]
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub [u8; $bytes]);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&HEXLOWER.encode(&self.0))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({self})", stringify!($name))
            }
        }

        impl FromStr for $name {
            type Err = ChecksumError;

            fn from_str(text: &str) -> Result<Self, ChecksumError> {
                let bytes = HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok();
                bytes.and_then(|bytes| bytes.try_into().ok()).map(Self).ok_or_else(|| ChecksumError::Digits {
                    given: text.chars().take(2 * $bytes + 1).collect(),
                    algorithm: Algorithm::$algorithm,
                })
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "pattern": format!("^[0-9a-f]{{{}}}$", 2 * $bytes) })
            }

            fn inline_schema() -> bool {
                true
            }
        }
    };
}

checksum!(Sha512, Sha512, 64);
checksum!(Sha256, Sha256, 32);
checksum!(Md5, Md5, 16);

/// What is known of some bytes. Written `sha512=… sha256=… md5=…`, strongest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Checksums {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha512: Option<Sha512>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Sha256>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub md5: Option<Md5>,
}

/// What the strongest algorithm that both sides know says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreement {
    Same(Algorithm),
    Different(Algorithm),
    /// No algorithm in common; nothing can be said.
    Unknown,
}

impl Checksums {
    /// The value of one algorithm, if known.
    pub fn get(&self, algorithm: Algorithm) -> Option<&[u8]> {
        match algorithm {
            Algorithm::Sha512 => self.sha512.as_ref().map(|value| &value.0[..]),
            Algorithm::Sha256 => self.sha256.as_ref().map(|value| &value.0[..]),
            Algorithm::Md5 => self.md5.as_ref().map(|value| &value.0[..]),
        }
    }

    /// Which are known, strongest first.
    pub fn algorithms(&self) -> impl Iterator<Item = Algorithm> + use<'_> {
        Algorithm::ALL.iter().rev().copied().filter(|algorithm| self.get(*algorithm).is_some())
    }

    pub fn is_empty(&self) -> bool {
        self.strongest().is_none()
    }

    /// The strongest known, with its value.
    pub fn strongest(&self) -> Option<(Algorithm, &[u8])> {
        let algorithm = self.algorithms().next()?;
        Some((algorithm, self.get(algorithm)?))
    }

    /// Compares by the strongest algorithm that both know; weaker ones then have no say.
    pub fn compare(&self, other: &Self) -> Agreement {
        for algorithm in self.algorithms() {
            if let (Some(ours), Some(theirs)) = (self.get(algorithm), other.get(algorithm)) {
                return if ours == theirs {
                    Agreement::Same(algorithm)
                } else {
                    Agreement::Different(algorithm)
                };
            }
        }
        Agreement::Unknown
    }

    /// These, and from the other whichever are missing.
    #[must_use]
    pub fn or(self, other: Option<&Self>) -> Self {
        let Some(other) = other else { return self };
        Self {
            sha512: self.sha512.or(other.sha512),
            sha256: self.sha256.or(other.sha256),
            md5: self.md5.or(other.md5),
        }
    }

    /// Only the named algorithms of these.
    #[must_use]
    pub fn only(self, algorithms: &[Algorithm]) -> Self {
        Self {
            sha512: self.sha512.filter(|_| algorithms.contains(&Algorithm::Sha512)),
            sha256: self.sha256.filter(|_| algorithms.contains(&Algorithm::Sha256)),
            md5: self.md5.filter(|_| algorithms.contains(&Algorithm::Md5)),
        }
    }

    /// Whether both are known to be of the same bytes.
    pub fn same_as(&self, other: &Self) -> bool {
        matches!(self.compare(other), Agreement::Same(_))
    }

    fn set(&mut self, algorithm: Algorithm, digits: &str) -> Result<(), ChecksumError> {
        fn once<T: PartialEq>(
            slot: &mut Option<T>,
            value: T,
            algorithm: Algorithm,
        ) -> Result<(), ChecksumError> {
            match slot {
                Some(before) if *before != value => Err(ChecksumError::Twice { algorithm }),
                _ => {
                    *slot = Some(value);
                    Ok(())
                }
            }
        }
        match algorithm {
            Algorithm::Sha512 => once(&mut self.sha512, digits.parse()?, algorithm),
            Algorithm::Sha256 => once(&mut self.sha256, digits.parse()?, algorithm),
            Algorithm::Md5 => once(&mut self.md5, digits.parse()?, algorithm),
        }
    }
}

impl fmt::Display for Checksums {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut gap = "";
        for algorithm in self.algorithms() {
            write!(f, "{gap}{algorithm}={}", HEXLOWER.encode(self.get(algorithm).unwrap_or_default()))?;
            gap = " ";
        }
        Ok(())
    }
}

impl FromStr for Checksums {
    type Err = ChecksumError;

    /// Takes commas as well as spaces between the parts; nothing at all is no checksum known.
    fn from_str(text: &str) -> Result<Self, ChecksumError> {
        let mut checksums = Self::default();
        for part in text.split([' ', ',']).filter(|part| !part.is_empty()) {
            let form = || ChecksumError::Form { given: part.chars().take(SHOWN_CHARS).collect() };
            let (name, digits) = part.split_once('=').ok_or_else(form)?;
            let algorithm = name.parse().map_err(|_| form())?;
            checksums.set(algorithm, digits)?;
        }
        Ok(checksums)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_that_could_leave_their_folder_or_have_two_spellings_are_refused() {
        let long = "a".repeat(256);
        for (name, rule) in [
            ("", "empty"),
            (".", "starts with"),
            ("..", "starts with"),
            (".hidden", "starts with"),
            ("-rf", "starts with"),
            (" a", "starts with"),
            ("a.", "ends with"),
            ("a ", "ends with"),
            ("../a", "slash"),
            ("a/b", "slash"),
            ("a\\b", "slash"),
            ("a\0b", "control"),
            ("a\nb", "control"),
            ("a\u{202e}b", "control"),
            ("A\u{30a}.warc", "NFC"), // Å in two characters, as macOS writes it
            ("\u{212b}.warc", "NFC"), // the Ångström sign, which composes to Å
            (&long, "255 bytes"),
            (&"é".repeat(128), "255 bytes"),
        ] {
            let error = name.parse::<FileName>().unwrap_err();
            assert!(error.rule.contains(rule), "{name:?}: {error}");
            assert!(serde_json::from_value::<FileName>(name.into()).is_err(), "{name:?}");
        }
        for name in ["a", "Å.warc", "1-2-20230101.warc.gz", "a b", "a..b", &"a".repeat(255), "名前.warc"] {
            assert_eq!(name.parse::<FileName>().unwrap().as_str(), name);
        }
    }

    proptest! {
        #[test]
        fn a_name_that_is_taken_stays_in_its_folder(text in any::<String>()) {
            if let Ok(name) = text.parse::<FileName>() {
                let joined = std::path::Path::new("/base").join(name.as_str());
                prop_assert_eq!(joined.parent(), Some(std::path::Path::new("/base")));
                prop_assert_eq!(joined.components().count(), 3);
            }
        }
    }

    fn md5(byte: u8) -> Checksums {
        Checksums { md5: Some(Md5([byte; 16])), ..Checksums::default() }
    }

    #[test]
    fn the_strongest_that_both_know_decides() {
        let strong = |byte| Checksums { sha512: Some(Sha512([byte; 64])), ..md5(7) };
        assert_eq!(strong(1).compare(&strong(1)), Agreement::Same(Algorithm::Sha512));
        assert_eq!(strong(1).compare(&strong(2)), Agreement::Different(Algorithm::Sha512));
        assert_eq!(strong(1).compare(&md5(7)), Agreement::Same(Algorithm::Md5));
        assert_eq!(md5(8).compare(&strong(1)), Agreement::Different(Algorithm::Md5));
        assert_eq!(strong(1).compare(&Checksums::default()), Agreement::Unknown);
        assert_eq!(strong(1).strongest().unwrap().0, Algorithm::Sha512);
        assert!(Algorithm::Sha512 > Algorithm::Sha256 && Algorithm::Sha256 > Algorithm::Md5);
        assert!(!Checksums::default().same_as(&Checksums::default()), "knowing nothing proves nothing");
    }

    #[test]
    fn checksums_read_back_as_written() {
        let sums = Checksums { sha256: Some(Sha256([0xab; 32])), ..md5(1) };
        let text = sums.to_string();
        assert!(text.starts_with("sha256=abab") && text.ends_with("0101"), "{text}");
        assert_eq!(text.parse::<Checksums>().unwrap(), sums);
        assert_eq!(
            text.replace(' ', ", ").to_uppercase().parse::<Checksums>().ok(),
            None,
            "names are lower case"
        );
        let json = serde_json::to_string(&sums).unwrap();
        assert_eq!(json, format!("{{\"sha256\":\"{}\",\"md5\":\"{}\"}}", "ab".repeat(32), "01".repeat(16)));
        assert_eq!(serde_json::from_str::<Checksums>(&json).unwrap(), sums);
        assert_eq!("".parse::<Checksums>().unwrap(), Checksums::default());
        for bad in ["md5", "md5=12", "sha1=00", "md5=zz010101010101010101010101010101"] {
            assert!(bad.parse::<Checksums>().is_err(), "{bad}");
        }
        let twice = format!("{} md5={}", md5(1), "02".repeat(16)).parse::<Checksums>();
        assert_eq!(twice, Err(ChecksumError::Twice { algorithm: Algorithm::Md5 }));
    }
}
