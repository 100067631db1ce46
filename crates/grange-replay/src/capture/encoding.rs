//! Content encodings of bodies that are sent as they were stored: only ones that the client can undo, and no lies.
//!
//! Servers name encodings that their bodies do not have, and crawlers ask for ones that not every client knows.

use http::header::{self, HeaderMap, HeaderValue};
use warc::HttpHead;

use super::{About, Body, BodyError, Undo};

/// The encodings that a client says it can undo.
#[derive(Clone, Debug, Default)]
pub(crate) struct Accepted {
    /// Names in lower case with whether they are accepted; `None`: it said nothing, and takes any.
    named: Option<Vec<(String, bool)>>,
}

impl Accepted {
    /// Reads `Accept-Encoding`.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let mut values = headers.get_all(header::ACCEPT_ENCODING).iter().peekable();
        if values.peek().is_none() {
            return Self::default();
        }
        let named = values
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .map(|part| {
                let (name, parameters) = part.split_once(';').unwrap_or((part, ""));
                let weight = parameters.split(';').find_map(|one| one.trim().strip_prefix("q="));
                let refused = weight.is_some_and(|weight| weight.trim().parse() == Ok(0.0_f32));
                (name.trim().to_ascii_lowercase(), !refused)
            })
            .collect();
        Self { named: Some(named) }
    }

    fn takes(&self, coding: &str) -> bool {
        let Some(named) = &self.named else { return true };
        let coding = coding.strip_prefix("x-").unwrap_or(coding);
        let is = |name: &str| named.iter().find(|(one, _)| one.strip_prefix("x-").unwrap_or(one) == name);
        is(coding).or_else(|| is("*")).is_some_and(|(_, takes)| *takes)
    }

    /// What of the packing of a body is undone for this client if it is not rewritten.
    pub(crate) fn undo(&self, about: &About) -> Undo {
        match about.http.as_ref().map(codings).unwrap_or_default().as_slice() {
            [] => Undo::Transfer,
            // A part of a packed body cannot be unpacked.
            _ if about.status() == Some(206) => Undo::Transfer,
            [one] if is_known(one) && self.takes(one) => Undo::Transfer,
            // Nothing of it is kept in memory, so it may be as long as it is.
            _ => Undo::Content { bytes_max: u64::MAX },
        }
    }
}

/// The encodings that a head names and that change something, the innermost first, in lower case.
fn codings(head: &HttpHead) -> Vec<String> {
    let names = head.all("Content-Encoding").flat_map(|value| value.split(|byte| *byte == b','));
    let names = names.map(|name| String::from_utf8_lossy(name.trim_ascii()).to_ascii_lowercase());
    names.filter(|name| !matches!(name.as_str(), "" | "identity" | "none" | "utf-8" | "binary")).collect()
}

fn is_known(coding: &str) -> bool {
    matches!(coding, "gzip" | "x-gzip" | "deflate" | "br" | "zstd")
}

/// Whether a body came in a content encoding, so that what is sent depends on what the client takes.
pub(crate) fn is_packed(about: &About) -> bool {
    about.http.as_ref().is_some_and(|head| !codings(head).is_empty())
}

/// The `Content-Encoding` of a body whose transfer coding alone was undone; `None` where it is in none, whatever its head says.
pub(crate) async fn label(about: &About, body: &mut Body) -> Result<Option<HeaderValue>, BodyError> {
    let codings = about.http.as_ref().map(codings).unwrap_or_default();
    let value = HeaderValue::from_str(&codings.join(", ")).ok().filter(|value| !value.is_empty());
    let ([one], true) = (codings.as_slice(), about.status() != Some(206)) else { return Ok(value) };
    let first = body.first().await?;
    let whole = body.len() == Some(first.len() as u64);
    Ok(value.filter(|_| warc::encoding_form(one.as_bytes(), &first, whole).is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_say_what_they_take() {
        let all = ["gzip", "x-gzip", "br", "deflate", "zstd"];
        for (accept, taken) in [
            (None, &all[..]),
            (Some("gzip, deflate"), &["gzip", "x-gzip", "deflate"]),
            (Some("GZIP;q=0.5,br;q=0"), &["gzip", "x-gzip"]),
            (Some("x-gzip"), &["gzip", "x-gzip"]),
            (Some("*"), &all),
            (Some("*, br;q=0.0"), &["gzip", "x-gzip", "deflate", "zstd"]),
            (Some("identity"), &[]),
            (Some("*;q=0"), &[]),
            (Some(""), &[]),
        ] {
            let headers = accept.map(|value| (header::ACCEPT_ENCODING, HeaderValue::from_static(value)));
            let accepted = Accepted::of(&headers.into_iter().collect());
            for coding in all {
                assert_eq!(accepted.takes(coding), taken.contains(&coding), "{accept:?} {coding}");
            }
        }
    }
}
