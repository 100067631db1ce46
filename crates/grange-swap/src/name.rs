//! Names: where a collection hangs, and where a file lies in it. Whatever is refused here never reaches a disk.

use std::fmt::{self, Display};

use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};

use crate::place::Point;

/// Longest component, bytes: what every file system of the trade keeps (`NAME_MAX`).
pub const MAX_COMPONENT_BYTES: usize = 255;
/// Longest path within a collection, bytes: `PATH_MAX` is 4096 with its NUL; the rest is left for the namespace and
/// the folder of the partition, so that plain tools can still name the file.
pub const MAX_PATH_BYTES: usize = 3000;
/// Longest namespace, bytes and components; the remainder of what `PATH_MAX` leaves.
pub const MAX_NAMESPACE_BYTES: usize = 512;
pub const MAX_NAMESPACE_COMPONENTS: usize = 16;

/// Why a name is no name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadName {
    #[error("a component of the path is empty: write one / between names, none at the end")]
    Empty,
    #[error("\"{0}\" is not a name: . and .. are not allowed")]
    Dots(String),
    #[error("a component of the path has {0} bytes, more than {MAX_COMPONENT_BYTES}")]
    LongComponent(usize),
    #[error("the path has {0} bytes, more than {MAX_PATH_BYTES}")]
    LongPath(usize),
    #[error("the namespace is longer than {MAX_NAMESPACE_BYTES} bytes or {MAX_NAMESPACE_COMPONENTS} names")]
    LongNamespace,
    #[error("a name holds the control character U+{0:04X}")]
    Control(u32),
    #[error("a name holds a slash, written %2F")]
    Slash,
    #[error("a name is not UTF-8")]
    NotUtf8,
    #[error("\"{0}\" is kept for SWAP itself: choose another first name for the namespace")]
    Reserved(String),
}

fn check_component(name: &str) -> Result<(), BadName> {
    if name.is_empty() {
        return Err(BadName::Empty);
    }
    if name == "." || name == ".." {
        return Err(BadName::Dots(name.to_owned()));
    }
    if name.len() > MAX_COMPONENT_BYTES {
        return Err(BadName::LongComponent(name.len()));
    }
    // NUL ends names for the kernel; the others break manifests and recovery scripts.
    if let Some(byte) = name.bytes().find(u8::is_ascii_control) {
        return Err(BadName::Control(u32::from(byte)));
    }
    Ok(())
}

fn check_path(path: &str) -> Result<(), BadName> {
    if path.len() > MAX_PATH_BYTES {
        return Err(BadName::LongPath(path.len()));
    }
    path.split('/').try_for_each(check_component)
}

/// Decodes the raw path of a request, component by component and exactly once. A plus sign is a plus sign.
pub fn decode(raw: &str) -> Result<String, BadName> {
    if !raw.contains('%') {
        return Ok(raw.to_owned());
    }
    let mut path = String::with_capacity(raw.len());
    for (index, component) in raw.split('/').enumerate() {
        let decoded = percent_decode_str(component).decode_utf8().map_err(|_| BadName::NotUtf8)?;
        if decoded.contains('/') {
            return Err(BadName::Slash);
        }
        if index > 0 {
            path.push('/');
        }
        path.push_str(&decoded);
    }
    Ok(path)
}

/// Encodes a name for a URL path; what is plain stays plain.
pub fn encode(path: &str) -> String {
    const KEPT: percent_encoding::AsciiSet =
        percent_encoding::NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');
    percent_encoding::utf8_percent_encode(path, &KEPT).to_string()
}

/// Where a file or directory lies in its collection: one or more names, `/` between them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LocalPath(String);

impl LocalPath {
    pub fn new(path: impl Into<String>) -> Result<Self, BadName> {
        let path = path.into();
        check_path(&path)?;
        Ok(Self(path))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn point(&self) -> Point {
        Point::of(&self.0)
    }

    /// The directory it lies in; `None` for what lies at the root of the collection.
    pub fn parent(&self) -> Option<Self> {
        self.0.rsplit_once('/').map(|(parent, _)| Self(parent.to_owned()))
    }

    pub fn file_name(&self) -> &str {
        self.0.rsplit_once('/').map_or(&self.0, |(_, name)| name)
    }

    pub fn child(&self, name: &str) -> Result<Self, BadName> {
        Self::new(format!("{}/{name}", self.0))
    }
}

/// Where a collection hangs in the one tree of all collections.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Namespace(String);

impl Namespace {
    pub fn new(path: impl Into<String>) -> Result<Self, BadName> {
        let path = path.into();
        if path.len() > MAX_NAMESPACE_BYTES || path.split('/').count() > MAX_NAMESPACE_COMPONENTS {
            return Err(BadName::LongNamespace);
        }
        check_path(&path)?;
        let first = path.split('/').next().unwrap_or_default();
        if reserved(first) {
            return Err(BadName::Reserved(first.to_owned()));
        }
        Ok(Self(path))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn components(&self) -> impl Iterator<Item = &str> {
        self.0.split('/')
    }

    /// Whether one contains the other or both are the same: then a recursive copy could not tell them apart.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.components().zip(other.components()).all(|(one, two)| one == two)
    }
}

/// Names in the root of a partition that are not namespaces.
fn reserved(first: &str) -> bool {
    let file_of_a_collection =
        first.strip_suffix(".txt").is_some_and(|stem| uuid::Uuid::try_parse(stem).is_ok());
    first == "partition.properties"
        || first == "lost+found"
        || first.starts_with(".swap")
        || file_of_a_collection
}

macro_rules! text {
    ($type:ty) => {
        impl Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl TryFrom<String> for $type {
            type Error = BadName;

            fn try_from(text: String) -> Result<Self, BadName> {
                Self::new(text)
            }
        }

        impl std::str::FromStr for $type {
            type Err = BadName;

            fn from_str(text: &str) -> Result<Self, BadName> {
                Self::new(text)
            }
        }

        impl From<$type> for String {
            fn from(value: $type) -> Self {
                value.0
            }
        }
    };
}
text!(LocalPath);
text!(Namespace);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bad_paths_are_refused() {
        let long = "x".repeat(256);
        let deep = vec!["y".repeat(200); 16].join("/");
        for (raw, expected) in [
            ("", BadName::Empty),
            ("a//b", BadName::Empty),
            ("/a", BadName::Empty),
            ("a/", BadName::Empty),
            ("../a", BadName::Dots("..".to_owned())),
            ("a/%2e%2e/b", BadName::Dots("..".to_owned())),
            ("a/%2E", BadName::Dots(".".to_owned())),
            ("a%2Fb", BadName::Slash),
            ("a%00b", BadName::Control(0)),
            ("a%0Ab", BadName::Control(10)),
            ("a%7F", BadName::Control(127)),
            ("%ff", BadName::NotUtf8),
            (long.as_str(), BadName::LongComponent(256)),
            (deep.as_str(), BadName::LongPath(3215)),
        ] {
            assert_eq!(decode(raw).and_then(LocalPath::new).unwrap_err(), expected, "{raw}");
        }
    }

    #[test]
    fn good_paths_are_kept_byte_for_byte() {
        for (raw, path) in [
            ("a", "a"),
            ("a+b/c d", "a+b/c d"),
            ("%C3%A6/%25", "æ/%"),
            // Decoded once, never twice; neither case nor Unicode form is touched.
            ("%252e%252e", "%2e%2e"),
            ("A/a\u{301}", "A/a\u{301}"),
            (".swap/partition.properties", ".swap/partition.properties"),
            ("...", "..."),
        ] {
            assert_eq!(decode(raw).and_then(LocalPath::new).unwrap().as_str(), path, "{raw}");
        }
    }

    #[test]
    fn reserved_namespaces_are_refused() {
        for name in [
            "partition.properties",
            ".swap-tmp/x",
            ".swap",
            "936da01f-9abd-4d9d-80c7-02af85c822a8.txt",
            "a/..",
        ] {
            assert!(Namespace::new(name).is_err(), "{name}");
        }
        for name in ["chronopolis/umiacs/code", "a/partition.properties", "notes.txt"] {
            assert!(Namespace::new(name).is_ok(), "{name}");
        }
        assert_eq!(Namespace::new(vec!["a"; 17].join("/")).unwrap_err(), BadName::LongNamespace);
    }

    #[test]
    fn namespaces_overlap_when_one_holds_the_other() {
        let overlap =
            |one: &str, two: &str| Namespace::new(one).unwrap().overlaps(&Namespace::new(two).unwrap());
        assert!(overlap("a/b", "a/b") && overlap("a/b", "a/b/c") && overlap("a/b/c", "a/b"));
        assert!(!overlap("a/b", "a/c") && !overlap("a/b", "a/bc") && !overlap("ab", "a"));
    }

    proptest! {
        #[test]
        fn whatever_is_taken_stays_beneath_the_root(raw in "[a-c%/.0-9A-F]{0,40}") {
            if let Ok(path) = decode(&raw).and_then(LocalPath::new) {
                prop_assert!(path.as_str().split('/').all(|name| !name.is_empty() && name != "." && name != ".."));
                prop_assert_eq!(decode(&encode(path.as_str())).unwrap(), path.as_str());
            }
        }
    }
}
