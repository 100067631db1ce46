//! Canonical URLs, SURT keys, search ranges and registrable domains for web archives.
//!
//! An archive finds a capture by the *key* of its URL: the host reversed, so that a domain's captures stand
//! together, and everything undone that does not change the page (scheme, `www.`, session ids, the order of
//! query arguments). This crate computes that key, its search ranges and the prefixes that scope a crawl.
//!
//! ```
//! use urlkey::{Dialect, Keyer, MatchType, key, search_range};
//!
//! assert_eq!(key("https://WWW2.Example.COM:443/Path/Index.HTML?B=2&a=1#frag"), "com,example)/path/index.html?a=1&b=2");
//!
//! // One buffer for many keys: nothing is allocated once it has grown.
//! let mut keyer = Keyer::new(Dialect::Standard);
//! let mut out = String::new();
//! for url in ["http://example.com/a", "http://example.com/b/"] {
//!     out.clear();
//!     keyer.key_into(url, &mut out);
//! }
//! assert_eq!(out, "com,example)/b");
//!
//! let range = search_range("http://example.com/", MatchType::Domain, Dialect::Standard);
//! assert!(range.contains("com,example,shop)/basket 20260101000000 {}"));
//! ```
//!
//! # Invariants
//!
//! - No input makes a function here panic or fail: bytes that are not UTF-8, empty text and hostile lengths
//!   all have a key. The only allocations are the result and buffers that are used again.
//! - A [`Dialect::Standard`] key is printable ASCII without spaces, so a key ends at the first space of a line.
//! - Keys are stored for decades. A change to what [`Dialect::Standard`] gives for any URL raises
//!   [`KEY_VERSION`]; the golden tables in `tests/` are then extended, never edited.
//!
//! # The standard key and pywb's
//!
//! [`Dialect::Standard`] equals PyPI `surt` 0.3.1 (pywb, and the Internet Archive's own tools but for details)
//! with four exceptions. [`Dialect::Ia`] has none of them.
//!
//! | input | surt | standard | why |
//! |---|---|---|---|
//! | `http://e.com:x/`, `http://e.com:99999/` | exception | `com,e:x)/` | one bad port must not lose a record; it stays under its host |
//! | `http://e.com/../x` | `com,e)/../x` | `com,e)/x` | no browser can ever ask for the former; RFC 3986 resolves it |
//! | `HTTP:/e.com/x`, `URN:x` | `HTTP:/e.com/x`, `URN:x` | `com,e)/x`, `urn:x` | schemes have no case |
//! | `filedesc:a b`, blanks only | `filedesc:a b`, exception | `filedesc:a%20b`, `-` | a key with a space breaks its line |
//!
//! What is deliberately absent: fuzzy rules (they belong to replay), and any knowledge of who calls.

mod dialect;
mod domain;
mod escape;
mod fast;
mod general;
mod host;
mod idn;
mod original;
mod outback;
mod path;
mod query;
mod range;
mod scope;
mod session;
mod split;

pub use dialect::{Dialect, KEY_VERSION, Keyer, UnknownDialect, canonical, key, key_into};
pub use domain::{DomainError, Suffixes, check_domain, is_known_suffix, public_suffix, registrable_domain};
pub use idn::{host_to_ascii, host_to_unicode};
pub use original::{OriginalUrl, ParseError};
pub use range::{KeyRange, MatchType, UnknownMatchType, search_range};
pub use scope::{SurtPrefix, SurtPrefixSet, scope_surt, scope_surt_into};
