//! What came of a request, for records, logs and extractors.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use warc::write::Truncated;
use warc::{Digest, HttpHead};

use super::problem::{Problem, ProblemKind};
use super::spool::Spool;
use super::tls::Tls;
use crate::FetchStatus;

/// What came of a request.
#[derive(Debug)]
pub struct Fetched {
    /// When we began, with the lookup of the name.
    pub started: Timestamp,
    pub duration: Duration,
    /// From the start to the first byte of the answer.
    pub first_byte: Option<Duration>,
    /// The server's address; not known through a proxy.
    pub ip: Option<IpAddr>,
    /// The request exactly as it was sent, but for what only the proxy was told. Empty if none was sent.
    pub request: Vec<u8>,
    /// The answer as it came over the wire: head, then body.
    pub response: Spool,
    /// How many bytes of the response are its head; 0 if it has none.
    pub head_len: usize,
    /// The head, read leniently. None if there is no status line, or no answer.
    pub http: Option<HttpHead>,
    /// What came before the head: interim answers (1xx), and garbage.
    pub preamble: Vec<u8>,
    pub status: FetchStatus,
    /// Of the whole response.
    pub block_digest: Digest,
    /// Of the body with its transfer coding undone and its content encoding left.
    pub payload_digest: Digest,
    pub payload_length: u64,
    /// The bytes of the response over the wire.
    pub wire_length: u64,
    pub truncated: Option<Truncated>,
    pub problems: Vec<Problem>,
    pub tls: Option<Arc<Tls>>,
    /// Whether the connection had been used before.
    pub reused: bool,
}

impl Fetched {
    /// What the crawl log notes, in the order in which it happened.
    pub fn annotations(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.problems.iter().map(|problem| problem.kind.annotation())
    }

    pub fn has_problem(&self, kind: ProblemKind) -> bool {
        self.problems.iter().any(|problem| problem.kind == kind)
    }

    /// The first header of that name, as text.
    pub fn header(&self, name: &str) -> Option<Cow<'_, str>> {
        self.http.as_ref()?.get(name).map(String::from_utf8_lossy)
    }

    /// The media type without parameters, in lower case.
    pub fn mime(&self) -> Option<String> {
        let mime = self.http.as_ref()?.mime().filter(|mime| !mime.is_empty())?;
        Some(String::from_utf8_lossy(mime).to_ascii_lowercase())
    }

    /// What marks this version of the document, for the next visit.
    pub fn validators(&self) -> Option<super::Validators> {
        let text = |name| self.header(name).map(Cow::into_owned).filter(|value| !value.is_empty());
        let validators = super::Validators { etag: text("ETag"), last_modified: text("Last-Modified") };
        (validators.etag.is_some() || validators.last_modified.is_some()).then_some(validators)
    }
}
