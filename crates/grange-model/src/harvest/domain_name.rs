//! The name of a domain: a registrable name by the public suffix list, or an IP address.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use urlkey::Suffixes;

/// A domain's name in the one form that is stored: ASCII, lower case, no final dot. Two spellings of an
/// internationalised name are one domain.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct DomainName(String);

/// A text that names no domain.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{}\" is not a domain: {reason}", given.escape_debug())]
pub struct DomainNameError {
    pub given: String,
    pub reason: String,
}

/// How much of a wrong line an error shows: enough to find it again.
const SHOWN_CHARS_MAX: usize = 100;

impl DomainName {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// As people read it: `bücher.example` for `xn--bcher-kva.example`.
    pub fn readable(&self) -> String {
        urlkey::host_to_unicode(&self.0)
    }

    pub fn address(&self) -> Option<IpAddr> {
        self.0.parse().ok()
    }

    /// The domain that a host belongs to: the registrable name, or the address itself.
    pub fn of_host(host: &str) -> Result<Self, DomainNameError> {
        let bare = host.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.');
        if let Ok(address) = bare.parse::<IpAddr>() {
            return Ok(Self(address.to_string()));
        }
        let wrong = |reason: &str| error(host, reason);
        let ascii = urlkey::host_to_ascii(bare).ok_or_else(|| wrong("it is not a host name"))?;
        if !urlkey::is_known_suffix(&ascii) {
            return Err(wrong("the public suffix list knows no such top-level domain"));
        }
        let domain = urlkey::registrable_domain(&ascii, Suffixes::All)
            .ok_or_else(|| wrong("it is a public suffix, not a domain below one"))?;
        domain.parse()
    }
}

fn error(given: &str, reason: &str) -> DomainNameError {
    DomainNameError { given: given.chars().take(SHOWN_CHARS_MAX).collect(), reason: reason.to_owned() }
}

impl FromStr for DomainName {
    type Err = DomainNameError;

    fn from_str(text: &str) -> Result<Self, DomainNameError> {
        let bare = text.strip_suffix('.').unwrap_or(text);
        if let Ok(address) = bare.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
            return Ok(Self(address.to_string()));
        }
        urlkey::check_domain(bare, Suffixes::All).map_err(|reason| error(text, &reason.to_string()))?;
        // The check has seen that the ASCII form exists.
        urlkey::host_to_ascii(bare).map(Self).ok_or_else(|| error(text, "it has no ASCII form"))
    }
}

impl fmt::Display for DomainName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl<'de> Deserialize<'de> for DomainName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<'de, str>::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for DomainName {
    fn schema_name() -> Cow<'static, str> {
        "DomainName".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "minLength": 1, "maxLength": 253 })
    }

    fn inline_schema() -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_domain_has_one_form() {
        for (given, kept, read) in [
            ("Example.DK", "example.dk", "example.dk"),
            ("example.dk.", "example.dk", "example.dk"),
            ("Bücher.de", "xn--bcher-kva.de", "bücher.de"),
            ("xn--bcher-kva.de", "xn--bcher-kva.de", "bücher.de"),
            ("192.0.2.1", "192.0.2.1", "192.0.2.1"),
            ("[2001:DB8::1]", "2001:db8::1", "2001:db8::1"),
            // Wildcard and exception rules of the list, which NetarchiveSuite skips.
            ("foo.bar.ck", "foo.bar.ck", "foo.bar.ck"),
            ("www.ck", "www.ck", "www.ck"),
        ] {
            let name: DomainName = given.parse().unwrap();
            assert_eq!((name.as_str(), name.readable().as_str()), (kept, read), "{given}");
        }
        for bad in [
            "",
            "dk",
            "co.uk",
            "www.example.dk",
            "a b.dk",
            "localhost",
            "example.notatld",
            "-a.dk",
            "http://a.dk",
        ] {
            assert!(bad.parse::<DomainName>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_host_knows_its_domain() {
        for (host, domain) in [
            ("www.bbc.co.uk", "bbc.co.uk"),
            ("a.b.c.example.com.", "example.com"),
            ("example.com", "example.com"),
            ("127.0.0.1", "127.0.0.1"),
            ("www.bücher.de", "xn--bcher-kva.de"),
        ] {
            assert_eq!(DomainName::of_host(host).unwrap().as_str(), domain, "{host}");
        }
        for bad in ["", "localhost", "co.uk", "a..b"] {
            assert!(DomainName::of_host(bad).is_err(), "{bad}");
        }
    }
}
