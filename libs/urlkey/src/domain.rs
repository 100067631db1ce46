//! Registrable domains by the public suffix list, and what counts as a domain name.

use std::net::IpAddr;

/// Which part of the public suffix list decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Suffixes {
    /// All of it: `github.io` is a suffix, so `alice.github.io` is a domain of its own.
    #[default]
    All,
    /// Only what registries run: `alice.github.io` belongs to `github.io`.
    Icann,
}

/// The public suffix of a host name (`co.uk` of `www.bbc.co.uk`); addresses have none.
///
/// Wildcard and exception rules of the list are followed; an unknown top-level domain is its own suffix.
/// `host` may be Unicode or ASCII, in any case; the answer is a part of it.
#[must_use]
pub fn public_suffix(host: &str, suffixes: Suffixes) -> Option<&str> {
    let name = bare_name(host)?;
    // The list is looked up in lower-case ASCII; labels correspond one to one, so the count carries over.
    let ascii = if name.bytes().any(|b| b.is_ascii_uppercase() || !b.is_ascii()) {
        idna::domain_to_ascii(name).ok()?
    } else {
        name.to_owned()
    };
    let labels = suffix_labels(&ascii, suffixes)?;
    last_labels(name, labels)
}

/// The domain that someone registered: one label more than the public suffix.
///
/// A bare suffix and an address give `None`.
///
/// ```
/// use urlkey::{Suffixes, registrable_domain};
/// assert_eq!(registrable_domain("www.bbc.co.uk", Suffixes::All), Some("bbc.co.uk"));
/// assert_eq!(registrable_domain("alice.github.io", Suffixes::Icann), Some("github.io"));
/// assert_eq!(registrable_domain("co.uk", Suffixes::All), None);
/// ```
#[must_use]
pub fn registrable_domain(host: &str, suffixes: Suffixes) -> Option<&str> {
    let name = bare_name(host)?;
    let suffix = public_suffix(host, suffixes)?;
    last_labels(name, count_labels(suffix) + 1)
}

/// Whether the last labels of `host` are on the list rather than merely assumed to be a suffix.
#[must_use]
pub fn is_known_suffix(host: &str) -> bool {
    bare_name(host)
        .and_then(|name| idna::domain_to_ascii(name).ok())
        .is_some_and(|ascii| psl::suffix(ascii.as_bytes()).is_some_and(|suffix| suffix.is_known()))
}

/// Why a text is not a domain that can be harvested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum DomainError {
    /// Nothing was given.
    #[error("a domain name is empty")]
    Empty,
    /// Longer than DNS allows (253 bytes in ASCII form).
    #[error("a domain name is longer than 253 bytes")]
    TooLong,
    /// Not writable as host name: an odd character, an empty or overlong label, a leading or trailing hyphen.
    #[error("a label of the domain name is not letters, digits and inner hyphens, 1 to 63 bytes")]
    BadLabel,
    /// The top-level domain, or what ought to be one, is not on the public suffix list.
    #[error("the public suffix list knows no such top-level domain")]
    UnknownSuffix,
    /// A public suffix such as `co.uk`, under which others register.
    #[error("the name is a public suffix, not a domain below one")]
    IsSuffix,
    /// A host below a domain, such as `www.example.com`.
    #[error("the name is a host below a domain")]
    NotRegistrable,
}

/// Checks that `name` is a domain by itself: exactly one label below a known public suffix, or an IP address.
///
/// Unicode names are checked in their ASCII form. One trailing dot is allowed.
///
/// ```
/// use urlkey::{DomainError, Suffixes, check_domain};
/// assert_eq!(check_domain("example.com", Suffixes::All), Ok(()));
/// assert_eq!(check_domain("www.example.com", Suffixes::All), Err(DomainError::NotRegistrable));
/// assert_eq!(check_domain("192.0.2.1", Suffixes::All), Ok(()));
/// ```
pub fn check_domain(name: &str, suffixes: Suffixes) -> Result<(), DomainError> {
    const NAME_BYTES_MAX: usize = 253; // RFC 1035 without the root's dot.
    let bare = name.strip_suffix('.').unwrap_or(name);
    if bare.is_empty() {
        return Err(DomainError::Empty);
    }
    if is_address(bare) {
        return Ok(());
    }
    let ascii = idna::domain_to_ascii(bare).map_err(|_| DomainError::BadLabel)?;
    if ascii.len() > NAME_BYTES_MAX {
        return Err(DomainError::TooLong);
    }
    if !ascii.split('.').all(is_label) {
        return Err(DomainError::BadLabel);
    }
    if !is_known_suffix(&ascii) {
        return Err(DomainError::UnknownSuffix);
    }
    match registrable_domain(&ascii, suffixes) {
        None => Err(DomainError::IsSuffix),
        Some(domain) if domain.len() == ascii.len() => Ok(()),
        Some(_) => Err(DomainError::NotRegistrable),
    }
}

fn is_label(label: &str) -> bool {
    let bytes = label.as_bytes();
    (1..=63).contains(&bytes.len())
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'-')
        && bytes[0] != b'-'
        && bytes[bytes.len() - 1] != b'-'
}

fn is_address(host: &str) -> bool {
    host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().is_ok()
}

/// The host without its root dot, if it is a name with no empty label.
fn bare_name(host: &str) -> Option<&str> {
    let name = host.strip_suffix('.').unwrap_or(host);
    let whole = !name.is_empty() && !is_address(name) && name.split('.').all(|label| !label.is_empty());
    whole.then_some(name)
}

/// How many labels the suffix of a lower-case ASCII name has.
fn suffix_labels(ascii: &str, suffixes: Suffixes) -> Option<usize> {
    let mut name = ascii;
    loop {
        let suffix = psl::suffix(name.as_bytes())?;
        let text = std::str::from_utf8(suffix.as_bytes()).ok()?;
        if suffixes == Suffixes::All || suffix.typ() != Some(psl::Type::Private) {
            return Some(count_labels(text));
        }
        // Below a private suffix stands the registry's; drop labels until the list answers with it.
        name = text.split_once('.')?.1;
    }
}

fn count_labels(name: &str) -> usize {
    name.split('.').count()
}

/// The last `count` labels of `name`, or `None` if it has fewer.
fn last_labels(name: &str, count: usize) -> Option<&str> {
    let mut dots = name.rmatch_indices('.').map(|(at, _)| at);
    match dots.nth(count.checked_sub(1)?) {
        Some(dot) => Some(&name[dot + 1..]),
        None => (count_labels(name) == count).then_some(name),
    }
}
