//! A URL as a browser reads it, next to the text it was read from.

use std::fmt;
use url::{Host, Url};

/// A URL that parsed, together with the exact text it came from.
///
/// The text is what goes into a WARC record; the parsed form is what a client fetches and compares.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct OriginalUrl {
    original: Box<str>,
    url: Url,
}

/// A text that no browser would fetch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a URL: {text:?}")]
pub struct ParseError {
    /// The text, cut to a length that fits a message.
    pub text: String,
    /// What the WHATWG parser said.
    #[source]
    pub source: url::ParseError,
}

/// How much of a bad URL an error repeats.
const ERROR_TEXT_CHARS: usize = 200;

impl OriginalUrl {
    /// Reads `text` by WHATWG rules; relative references are errors.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        Self::keep(text, Url::parse(text))
    }

    /// Reads `text` as a reference on the page `base`.
    pub fn join(base: &Url, text: &str) -> Result<Self, ParseError> {
        Self::keep(text, base.join(text))
    }

    fn keep(text: &str, url: Result<Url, url::ParseError>) -> Result<Self, ParseError> {
        match url {
            Ok(url) => Ok(Self { original: text.into(), url }),
            Err(source) => Err(ParseError { text: text.chars().take(ERROR_TEXT_CHARS).collect(), source }),
        }
    }

    /// The text as it was given.
    #[must_use]
    pub fn original(&self) -> &str {
        &self.original
    }

    /// The parsed URL.
    #[must_use]
    pub const fn url(&self) -> &Url {
        &self.url
    }

    /// The host: a name in ASCII form, or an address.
    #[must_use]
    pub fn host(&self) -> Option<Host<&str>> {
        self.url.host()
    }

    /// The standard key of the text as it was given, which is what an index of the records holds.
    #[must_use]
    pub fn key(&self) -> String {
        crate::key(&self.original)
    }
}

impl fmt::Debug for OriginalUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OriginalUrl({:?} as {})", self.original, self.url.as_str())
    }
}

impl fmt::Display for OriginalUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.original)
    }
}
