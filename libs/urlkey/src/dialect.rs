//! The entry points: which dialect, which buffer.

use crate::general::{Form, Rules, Scratch, write};
use crate::{fast, outback};
use std::cell::RefCell;
use std::str::FromStr;

/// The version of [`Dialect::Standard`]. Stored beside keys, so that an index knows when to compute them anew.
pub const KEY_VERSION: u32 = 1;

/// Whose keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Dialect {
    /// The stable key of this crate: pywb's, but total and safe in a line. See the head of the crate.
    #[default]
    Standard,
    /// PyPI `surt` 0.3.1 as pywb and cdxj-indexer use it. Where that raises an exception the URL itself is the
    /// key, which is what cdxj-indexer writes.
    Ia,
    /// OutbackCDX: `:port` behind the parenthesis, IPv4 not reversed, more session ids, `x:http://…` keyed inside.
    Outback,
}

impl Dialect {
    /// The name used in settings and queries.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Ia => "ia",
            Self::Outback => "outback",
        }
    }
}

/// A dialect name that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown key dialect {0:?}: expected standard, ia or outback")]
pub struct UnknownDialect(pub String);

impl FromStr for Dialect {
    type Err = UnknownDialect;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        [Self::Standard, Self::Ia, Self::Outback]
            .into_iter()
            .find(|dialect| dialect.name() == name)
            .ok_or_else(|| UnknownDialect(name.to_owned()))
    }
}

/// Computes keys and keeps the buffers they are computed in.
#[derive(Debug, Default)]
pub struct Keyer {
    dialect: Dialect,
    scratch: Scratch,
}

impl Keyer {
    /// A keyer for one dialect. It allocates nothing until it meets an unusual URL.
    #[must_use]
    pub fn new(dialect: Dialect) -> Self {
        Self { dialect, scratch: Scratch::default() }
    }

    /// The dialect of the keys.
    #[must_use]
    pub const fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Appends the key of `url` to `out`.
    pub fn key_into(&mut self, url: &str, out: &mut String) {
        self.key_bytes_into(url.as_bytes(), out);
    }

    /// Appends the key of a URL that may not be UTF-8 to `out`.
    pub fn key_bytes_into(&mut self, url: &[u8], out: &mut String) {
        if self.dialect == Dialect::Outback {
            outback::write(&outback::lossy(url), out);
            return;
        }
        append(out, |bytes| {
            if !fast::try_key(url, &mut self.scratch.query, bytes) {
                self.general(url, Form::Key, bytes);
            }
        });
    }

    /// Appends the key without trying the shortcut; for tests that compare the two.
    #[doc(hidden)]
    pub fn general_key_into(&mut self, url: &[u8], out: &mut String) {
        append(out, |bytes| self.general(url, Form::Key, bytes));
    }

    /// Appends the canonical form of `url` (scheme and host in their usual order) to `out`.
    ///
    /// For [`Dialect::Outback`] this is the standard form: OutbackCDX stores no canonical URLs.
    pub fn canonical_into(&mut self, url: &[u8], out: &mut String) {
        append(out, |bytes| self.general(url, Form::Url, bytes));
    }

    fn general(&mut self, url: &[u8], form: Form, out: &mut Vec<u8>) {
        let rules = if self.dialect == Dialect::Ia { Rules::Ia } else { Rules::Standard };
        let start = out.len();
        if write(url, rules, form, &mut self.scratch, out).is_err() {
            out.truncate(start);
            out.extend_from_slice(url);
        }
    }
}

/// Lends a string's bytes to `write`. What is written is ASCII except for keys that repeat foreign bytes.
fn append(out: &mut String, write: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = std::mem::take(out).into_bytes();
    write(&mut bytes);
    *out = String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
}

thread_local! {
    static KEYER: RefCell<Keyer> = RefCell::new(Keyer::new(Dialect::Standard));
}

/// The standard key of `url`.
#[must_use]
pub fn key(url: &str) -> String {
    let mut out = String::with_capacity(url.len());
    key_into(url, &mut out);
    out
}

/// Appends the standard key of `url` to `out`, with buffers of this thread.
pub fn key_into(url: &str, out: &mut String) {
    KEYER.with_borrow_mut(|keyer| keyer.key_into(url, out));
}

/// The standard canonical form of `url`: what the key is made of, still readable as a URL.
///
/// ```
/// assert_eq!(urlkey::canonical("HTTP://www.Example.com:80/a/../b/?y&x#top"), "http://example.com/b?x&y");
/// ```
#[must_use]
pub fn canonical(url: &str) -> String {
    let mut out = String::with_capacity(url.len());
    KEYER.with_borrow_mut(|keyer| keyer.canonical_into(url.as_bytes(), &mut out));
    out
}
