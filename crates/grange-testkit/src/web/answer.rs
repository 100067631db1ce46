//! What a server says to one request, as a value: made by the model, put on the wire by the server, and weighed by
//! the expectation.

use std::time::Duration;

use super::coding::Coding;
use super::dice;

#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub status: u16,
    /// Without those that the framing brings.
    pub headers: Vec<(&'static str, String)>,
    pub body: Body,
    pub framing: Framing,
    pub coding: Option<Coded>,
    pub pace: Pace,
    pub gate: Gate,
    /// Entity tag and date: conditional requests get 304.
    pub validators: Option<(String, String)>,
    /// Closes the connection afterwards although it could stay.
    pub close: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Body {
    Bytes(Vec<u8>),
    /// Made while it is sent.
    Stream {
        seed: u64,
        bytes: u64,
    },
    /// These bytes instead of an answer, head and all.
    Wire {
        bytes: Vec<u8>,
        ending: Ending,
    },
}

/// What follows after the bytes of a broken answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The connection is closed in good order.
    Close,
    /// It is reset.
    Reset,
    /// Nothing, until the other side gives up (or the server is stopped).
    Silence,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    Length,
    Chunked {
        trailers: bool,
    },
    /// The end of the connection is the end of the body.
    UntilClose,
    /// HTTP/1.0 with a length.
    Http10,
}

/// Compressed when offered, or whether the client wants it or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Coded {
    pub coding: Coding,
    pub forced: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    AtOnce,
    After(Duration),
    Drip { piece_bytes: usize, every: Duration },
}

/// What must be shown to get in, and what is said to those who do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gate {
    Open,
    /// A cookie that the page before sets; else 403.
    Cookie,
    /// HTTP basic; else 401.
    Basic,
    /// HTTP digest; else 401.
    Digest,
    /// The cookie of the log-in form; else 302 to the form.
    Session,
    /// The form's own address: right words get 303 and the cookie, wrong ones 403, and anything but POST 405.
    LogIn,
    /// The first requests get this status and Retry-After.
    Busy {
        times: u32,
        status: u16,
    },
}

/// Seconds in Retry-After of a busy page: the least that a whole number can say.
pub(crate) const RETRY_AFTER_S: u32 = 1;

impl Answer {
    pub(crate) fn new(status: u16, mime: &str, body: impl Into<Vec<u8>>) -> Self {
        let mut headers = Vec::new();
        if !mime.is_empty() {
            headers.push(("Content-Type", mime.to_owned()));
        }
        Self {
            status,
            headers,
            body: Body::Bytes(body.into()),
            framing: Framing::Length,
            coding: None,
            pace: Pace::AtOnce,
            gate: Gate::Open,
            validators: None,
            close: false,
        }
    }

    pub(crate) fn html(body: impl Into<Vec<u8>>) -> Self {
        Self::new(200, "text/html; charset=utf-8", body)
    }

    pub(crate) fn redirect(status: u16, location: &str) -> Self {
        let body = format!("<html><body><p>{status}, see elsewhere.</p></body></html>\n");
        Self::new(status, "text/html", body).header("Location", location)
    }

    pub(crate) fn wire(bytes: Vec<u8>, ending: Ending) -> Self {
        Self { body: Body::Wire { bytes, ending }, ..Self::new(0, "", "") }
    }

    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(crate) fn framed(self, framing: Framing) -> Self {
        Self { framing, ..self }
    }

    pub(crate) fn coded(self, coding: Coding, forced: bool) -> Self {
        Self { coding: Some(Coded { coding, forced }), ..self }
    }

    pub(crate) fn gated(self, gate: Gate) -> Self {
        Self { gate, ..self }
    }

    pub(crate) fn paced(self, pace: Pace) -> Self {
        Self { pace, ..self }
    }

    /// The value of Content-Type, or nothing.
    pub(crate) fn mime(&self) -> &str {
        self.headers.iter().find(|(name, _)| *name == "Content-Type").map_or("", |(_, value)| value)
    }

    /// The coding that a client gets who offers these.
    pub(crate) fn coding_for(&self, offered: impl Fn(Coding) -> bool) -> Option<Coding> {
        self.coding.filter(|coded| coded.forced || offered(coded.coding)).map(|coded| coded.coding)
    }
}

impl Body {
    /// In one piece; for bodies that are known to be small.
    pub(crate) fn whole(&self) -> Vec<u8> {
        let mut whole = Vec::new();
        self.pieces(|piece| whole.extend_from_slice(piece));
        whole
    }

    /// Hands the bytes over piece by piece; memory stays bounded however long the body is.
    pub(crate) fn pieces(&self, mut take: impl FnMut(&[u8])) {
        match self {
            Self::Bytes(bytes) => take(bytes),
            Self::Wire { .. } => {}
            Self::Stream { seed, bytes } => {
                let mut block = vec![0; STREAM_BLOCK_BYTES];
                let mut at = 0;
                while at < *bytes {
                    let count = STREAM_BLOCK_BYTES.min((*bytes - at) as usize);
                    dice::fill(*seed, at, &mut block[..count]);
                    take(&block[..count]);
                    at += count as u64;
                }
            }
        }
    }
}

/// How much of a streamed body is in memory at once.
pub(crate) const STREAM_BLOCK_BYTES: usize = 64 * 1024;
