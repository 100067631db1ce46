//! What went otherwise than it should, in the words of the crawl log's annotations.

use std::fmt;

/// What went otherwise than it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProblemKind {
    /// The answer is longer than allowed and was cut.
    LengthTruncated,
    /// The answer took longer than allowed and was cut.
    TimeTruncated,
    /// There was no room on disk for more of the answer, and it was cut.
    DiskTruncated,
    /// The head is longer than allowed; there is no body.
    HeadTruncated,
    /// The caller did not want the body after seeing the head.
    BodyNotWanted,
    /// The connection was closed or broke before the end of the answer.
    Disconnected,
    /// There is no such name.
    NoSuchName,
    /// The name servers gave no answer.
    NameNotAnswered,
    /// No connection was made to any address.
    NotConnected,
    /// No connection was made in time.
    ConnectTimeout,
    /// The TLS handshake failed.
    TlsFailed,
    /// The certificate cannot be verified.
    CertificateNotVerified,
    /// The proxy did not do its part.
    ProxyFailed,
    /// There was no answer in time.
    AnswerTimeout,
    /// The address is private and the operator does not allow it.
    AddressRefused,
    /// The URL is not one that can be asked for.
    NotFetchable,
    /// There is no status line; all of the answer was taken as body, as in HTTP 0.9.
    NoStatusLine,
    /// The status line has no usable code.
    NoStatusCode,
    /// Bytes that belong to nothing came before the status line.
    GarbageBeforeHead,
    /// The head ended with the connection, not with a blank line.
    UnterminatedHead,
    /// Content-Length is not a number; if no other is one, the body was taken to end with the connection.
    BadLength,
    /// Content-Length is repeated with different numbers; as much was taken as came, up to the greatest.
    ConflictingLength,
    /// The body is chunked and has a Content-Length, which was not looked at.
    LengthAndChunked,
    /// A transfer coding other than chunked was left in place.
    UnknownTransferCoding,
    /// The body is said to be chunked and is not.
    NotChunked,
    /// The chunks of the body break off or stop being chunks.
    BrokenChunk,
    /// There is no last chunk.
    NoLastChunk,
    /// More came after the end of the answer; it was not kept.
    SurplusBytes,
    /// The TLS connection was closed without saying so; the body may have been cut by someone.
    NoCloseNotify,
    /// A flaw of the head, as readers of the archive will report it too.
    Head(warc::Kind),
}

impl ProblemKind {
    /// One word without blanks or commas; Heritrix's where it has one.
    pub const fn annotation(self) -> &'static str {
        match self {
            ProblemKind::LengthTruncated => "lenTrunc",
            ProblemKind::TimeTruncated => "timeTrunc",
            ProblemKind::DiskTruncated => "diskTrunc",
            ProblemKind::HeadTruncated => "headerTrunc",
            ProblemKind::BodyNotWanted => "midFetchAbort",
            ProblemKind::Disconnected => "disconnected",
            ProblemKind::NoSuchName => "noSuchName",
            ProblemKind::NameNotAnswered => "nameNotAnswered",
            ProblemKind::NotConnected => "notConnected",
            ProblemKind::ConnectTimeout => "connectTimeout",
            ProblemKind::TlsFailed => "tlsFailed",
            ProblemKind::CertificateNotVerified => "certificateNotVerified",
            ProblemKind::ProxyFailed => "proxyFailed",
            ProblemKind::AnswerTimeout => "answerTimeout",
            ProblemKind::AddressRefused => "privateAddress",
            ProblemKind::NotFetchable => "notFetchable",
            ProblemKind::NoStatusLine => "noStatusLine",
            ProblemKind::NoStatusCode => "noStatusCode",
            ProblemKind::GarbageBeforeHead => "garbageBeforeHead",
            ProblemKind::UnterminatedHead => "unterminatedHead",
            ProblemKind::BadLength => "badLength",
            ProblemKind::ConflictingLength => "conflictingLength",
            ProblemKind::LengthAndChunked => "lengthAndChunked",
            ProblemKind::UnknownTransferCoding => "unknownTransferCoding",
            ProblemKind::NotChunked => "notChunked",
            ProblemKind::BrokenChunk => "brokenChunk",
            ProblemKind::NoLastChunk => "noLastChunk",
            ProblemKind::SurplusBytes => "surplusBytes",
            ProblemKind::NoCloseNotify => "noCloseNotify",
            ProblemKind::Head(kind) => kind.code(),
        }
    }
}

/// A problem, and the particular case where there is more to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub kind: ProblemKind,
    /// Never longer than a line.
    pub detail: Option<Box<str>>,
}

/// The longest detail kept; it comes from libraries and servers.
const DETAIL_CHARS_MAX: usize = 300;

impl Problem {
    pub(super) fn with(kind: ProblemKind, detail: impl fmt::Display) -> Problem {
        let text: String = detail
            .to_string()
            .chars()
            .take(DETAIL_CHARS_MAX)
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        Problem { kind, detail: Some(text.into()) }
    }
}

impl From<ProblemKind> for Problem {
    fn from(kind: ProblemKind) -> Problem {
        Problem { kind, detail: None }
    }
}

/// As error logs show it.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.annotation())?;
        match &self.detail {
            Some(detail) => write!(f, " ({detail})"),
            None => Ok(()),
        }
    }
}
