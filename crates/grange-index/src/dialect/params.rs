//! Query parameters and what all dialects read alike.

use percent_encoding::percent_decode_str;
use urlkey::MatchType;

use crate::key::keys;
use crate::query::{BadFilter, Keys};
use crate::stamp::Stamp;

/// The parameters of a request, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Params {
    pairs: Vec<(String, String)>,
    /// Rows that may be read for the answer; see [`Query::rows_most`](crate::query::Query::rows_most).
    pub rows_most: Option<u64>,
}

/// A request that cannot be answered as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadRequest {
    #[error("the parameter \"{name}\" is missing")]
    Missing { name: &'static str },
    #[error("\"{value}\" is no value for \"{name}\": {why}")]
    Value { name: &'static str, value: String, why: &'static str },
    #[error("\"{first}\" and \"{second}\" cannot be asked for together")]
    Together { first: &'static str, second: &'static str },
    #[error(transparent)]
    Filter(#[from] BadFilter),
}

impl Params {
    /// Reads the part of a URL after its question mark.
    pub fn parse(query: &str) -> Self {
        let text = |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
        let pair = |pair: &str| {
            pair.split_once('=').map_or((text(pair), String::new()), |(n, v)| (text(n), text(v)))
        };
        Self { pairs: query.split('&').filter(|part| !part.is_empty()).map(pair).collect(), rows_most: None }
    }

    /// The same with another value for a name.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.pairs.retain(|(key, _)| key != name);
        self.pairs.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The first value of a name that is not empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.pairs.iter().find(|(key, value)| key == name && !value.is_empty());
        found.map(|(_, value)| value.as_str())
    }

    pub(super) fn all<'p>(&'p self, name: &'p str) -> impl Iterator<Item = &'p str> {
        self.pairs
            .iter()
            .filter(move |(key, value)| key == name && !value.is_empty())
            .map(|(_, value)| value.as_str())
    }

    pub(super) fn is_set(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| matches!(value, "true" | "1" | "yes" | "on"))
    }

    pub(super) fn number<N: std::str::FromStr>(&self, name: &'static str) -> Result<Option<N>, BadRequest> {
        let parse = |value: &str| {
            value.parse().map_err(|_| BadRequest::Value {
                name,
                value: value.to_owned(),
                why: "it is no number here",
            })
        };
        self.get(name).map(parse).transpose()
    }

    pub(super) fn times(&self) -> Result<(Stamp, Stamp), BadRequest> {
        let read = |name, how: fn(&str) -> Option<Stamp>| {
            let bad = |value: &str| BadRequest::Value {
                name,
                value: value.to_owned(),
                why: "a time is 1 to 17 digits, from the year on",
            };
            self.get(name).map(|value| how(value).ok_or_else(|| bad(value))).transpose()
        };
        Ok((
            read("from", Stamp::earliest)?.unwrap_or(Stamp::MIN),
            read("to", Stamp::latest)?.unwrap_or(Stamp::MAX),
        ))
    }

    pub(super) fn closest(&self) -> Result<Option<Stamp>, BadRequest> {
        let bad = |value: &str| BadRequest::Value {
            name: "closest",
            value: value.to_owned(),
            why: "a time is 1 to 17 digits, from the year on",
        };
        self.get("closest").map(|value| Stamp::earliest(value).ok_or_else(|| bad(value))).transpose()
    }

    /// Whether an answer is only about the answer: a number of pages.
    pub(super) fn counts_pages(&self) -> bool {
        self.is_set("showNumPages")
    }

    /// The keys asked for by `url` and `matchType`, and which kind of match it is. Wildcards in the URL say so too.
    pub fn keys(&self) -> Result<(Keys, MatchType), BadRequest> {
        let url = self.get("url").ok_or(BadRequest::Missing { name: "url" })?;
        let kind = match self.get("matchType") {
            Some(name) => name.parse().map_err(|_| BadRequest::Value {
                name: "matchType",
                value: name.to_owned(),
                why: "it is exact, prefix, host or domain",
            })?,
            None if url.starts_with("*.") => MatchType::Domain,
            None if url.len() > 1 && url.ends_with('*') => MatchType::Prefix,
            None => MatchType::Exact,
        };
        Ok((keys(url, kind), kind))
    }
}
