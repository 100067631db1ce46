//! Where the body of an answer ends, and which of its bytes are payload.

use warc::write::Truncated;
use warc::{Algorithm, Dechunker, Digest, Flaw, Hasher, HttpHead, Piece};

use super::problem::{Problem, ProblemKind};

/// How the end of a body is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// There is no body.
    Nothing,
    Chunked,
    Length(u64),
    /// After one of several announced lengths, between these two; nobody knows which.
    Disputed {
        least: u64,
        most: u64,
    },
    /// When the connection is closed.
    Close,
}

/// How the body after `head` ends (RFC 9112 6.3), and what is odd about that. `no_body` says that the request was
/// one whose answer has none.
pub(super) fn framing(head: &HttpHead, no_body: bool) -> (Framing, Vec<Problem>) {
    let mut problems = Vec::new();
    if no_body || matches!(head.status(), Some(100..=199 | 204 | 304)) {
        return (Framing::Nothing, problems);
    }
    let coded = head.get("Transfer-Encoding").is_some_and(|value| !value.eq_ignore_ascii_case(b"identity"));
    let length = length(head, &mut problems);
    if coded {
        if head.is_chunked() {
            if head.get("Content-Length").is_some() {
                problems.push(ProblemKind::LengthAndChunked.into());
            }
            return (Framing::Chunked, problems);
        }
        problems.push(ProblemKind::UnknownTransferCoding.into());
        return (Framing::Close, problems);
    }
    let framing = match length {
        None => Framing::Close,
        Some((least, most)) if least == most => Framing::Length(most),
        Some((least, most)) => Framing::Disputed { least, most },
    };
    (framing, problems)
}

/// Whether another reader of the same headers, such as the server's own proxy, could see the end of the body
/// elsewhere. Such a connection is not used again: its next bytes may belong to this response.
pub(super) fn is_doubtful(head: &HttpHead, no_body: bool) -> bool {
    let coded = head.get("Transfer-Encoding").is_some();
    let mut lengths = head.all("Content-Length");
    if no_body {
        return false;
    }
    match head.status() {
        // Proxies differ on whether these have a body when the headers announce one (RFC 9112 6.3).
        Some(100..=199 | 204) => coded || lengths.any(|value| value != b"0"),
        // A 304 repeats the length of the document (RFC 9110 8.6) and has no coding.
        Some(304) => coded,
        _ if coded => {
            let codings: Vec<&[u8]> = head.all("Transfer-Encoding").collect();
            let plain = matches!(codings[..], [coding] if coding.eq_ignore_ascii_case(b"chunked"));
            // HTTP/1.0 has no transfer codings; who sends one does not frame as it says (RFC 9112 6.1).
            !plain || lengths.next().is_some() || !head.start_line().starts_with(b"HTTP/1.1")
        }
        _ => lengths.any(|value| !value.iter().all(u8::is_ascii_digit)),
    }
}

/// The least and the greatest length that is announced.
fn length(head: &HttpHead, problems: &mut Vec<Problem>) -> Option<(u64, u64)> {
    let mut range: Option<(u64, u64)> = None;
    let values = head.all("Content-Length").flat_map(|value| value.split(|&b| b == b','));
    for value in values.map(<[u8]>::trim_ascii) {
        let digits = value.strip_prefix(b"+").unwrap_or(value);
        let number = std::str::from_utf8(digits)
            .ok()
            .filter(|text| text.bytes().all(|b| b.is_ascii_digit()))
            .and_then(|text| text.parse::<u64>().ok());
        match (number, range) {
            (None, _) if problems.is_empty() => problems.push(ProblemKind::BadLength.into()),
            (None, _) => {}
            (Some(number), None) => range = Some((number, number)),
            (Some(number), Some((least, most))) => range = Some((least.min(number), most.max(number))),
        }
    }
    if range.is_some_and(|(least, most)| least != most) {
        problems.push(ProblemKind::ConflictingLength.into());
    }
    range
}

/// A body on its way in: finds its end and digests its payload.
#[derive(Debug)]
pub(super) struct Body {
    framing: Framing,
    left: u64,
    chunks: Option<Box<Dechunker>>,
    payload: Hasher,
    payload_len: u64,
    begun: bool,
}

/// What [`Body::take`] made of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Took {
    /// How many of them belong to the body.
    pub(super) used: usize,
    /// Whether it ends after them.
    pub(super) done: bool,
}

impl Body {
    pub(super) fn new(framing: Framing, algorithm: Algorithm) -> Body {
        Body {
            framing,
            left: match framing {
                Framing::Length(length) | Framing::Disputed { most: length, .. } => length,
                Framing::Nothing | Framing::Chunked | Framing::Close => 0,
            },
            chunks: (framing == Framing::Chunked).then(Box::default),
            payload: Hasher::new(algorithm),
            payload_len: 0,
            begun: false,
        }
    }

    /// Takes the next bytes.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Took {
        match self.framing {
            Framing::Nothing => Took { used: 0, done: true },
            Framing::Close => {
                self.add(bytes);
                Took { used: bytes.len(), done: false }
            }
            Framing::Length(_) | Framing::Disputed { .. } => {
                let used = self.left.min(bytes.len() as u64) as usize;
                self.add(&bytes[..used]);
                self.left -= used as u64;
                Took { used, done: self.left == 0 }
            }
            Framing::Chunked => self.take_chunks(bytes),
        }
    }

    fn take_chunks(&mut self, bytes: &[u8]) -> Took {
        let Some(chunks) = &mut self.chunks else { return Took { used: 0, done: true } };
        self.begun |= !bytes.is_empty();
        let mut rest = bytes;
        while !rest.is_empty() && !chunks.is_done() {
            match chunks.step(rest) {
                Piece::Data(n) => {
                    self.payload.update(&rest[..n]);
                    self.payload_len += n as u64;
                    rest = &rest[n..];
                }
                Piece::Skip(n) => rest = &rest[n..],
                Piece::Held(held) => {
                    self.payload.update(held);
                    self.payload_len += held.len() as u64;
                }
            }
        }
        Took { used: bytes.len() - rest.len(), done: chunks.is_done() }
    }

    fn add(&mut self, bytes: &[u8]) {
        self.payload.update(bytes);
        self.payload_len += bytes.len() as u64;
    }

    /// How many bytes are still to come, where that is known.
    pub(super) fn left(&self) -> Option<u64> {
        matches!(self.framing, Framing::Length(_)).then_some(self.left)
    }

    /// Whether the body is whole by one of the lengths that are announced.
    pub(super) fn may_end_here(&self) -> bool {
        matches!(self.framing, Framing::Disputed { least, most } if [least, most].contains(&self.payload_len))
    }

    /// No more bytes come. Gives the digest and length of the payload; if the connection was closed, and not by us,
    /// also what was missing.
    pub(super) fn finish(
        mut self,
        closed: bool,
        problems: &mut Vec<Problem>,
    ) -> (Digest, u64, Option<Truncated>) {
        let mut truncated = None;
        if let Some(mut chunks) = self.chunks.take() {
            let held = chunks.end();
            self.payload.update(held);
            self.payload_len += held.len() as u64;
            let kind = match chunks.flaw() {
                Some(Flaw::NotChunked) => Some(ProblemKind::NotChunked),
                Some(Flaw::Broken) => Some(ProblemKind::BrokenChunk),
                Some(Flaw::NoLastChunk) => Some(ProblemKind::NoLastChunk),
                None => (!self.begun).then_some(ProblemKind::NoLastChunk),
            };
            match kind {
                Some(ProblemKind::NotChunked) => problems.push(ProblemKind::NotChunked.into()),
                // Cut by ourselves, the last chunk is missing for a reason already known.
                Some(kind) if closed => {
                    problems.push(kind.into());
                    truncated = Some(Truncated::Disconnect);
                }
                _ => {}
            }
        } else if closed && self.left > 0 && !self.may_end_here() {
            truncated = Some(Truncated::Disconnect);
        }
        (self.payload.finish(), self.payload_len, truncated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ProblemKind as P;

    #[test]
    fn the_end_of_a_body_is_known_as_rfc_9112_says() {
        type Case = (&'static str, Framing, &'static [ProblemKind]);
        let cases: &[Case] = &[
            ("200\r\nContent-Length: 5", Framing::Length(5), &[]),
            ("200\r\nContent-Length: +5", Framing::Length(5), &[]),
            ("200\r\nContent-Length: 5, 5", Framing::Length(5), &[]),
            ("200\r\nContent-Length: 5\r\nContent-Length: 5", Framing::Length(5), &[]),
            (
                "200\r\nContent-Length: 7\r\nContent-Length: 5, 6",
                Framing::Disputed { least: 5, most: 7 },
                &[P::ConflictingLength],
            ),
            ("200\r\nContent-Length: -1", Framing::Close, &[P::BadLength]),
            ("200\r\nContent-Length: five", Framing::Close, &[P::BadLength]),
            ("200\r\nContent-Length: 99999999999999999999999", Framing::Close, &[P::BadLength]),
            ("200\r\nContent-Length:", Framing::Close, &[P::BadLength]),
            ("200\r\nTransfer-Encoding: chunked", Framing::Chunked, &[]),
            (
                "200\r\nTransfer-Encoding: chunked\r\nContent-Length: 3",
                Framing::Chunked,
                &[P::LengthAndChunked],
            ),
            ("200\r\nTransfer-Encoding: identity\r\nContent-Length: 3", Framing::Length(3), &[]),
            ("200\r\nTransfer-Encoding: gzip", Framing::Close, &[P::UnknownTransferCoding]),
            ("200", Framing::Close, &[]),
            ("204\r\nContent-Length: 5", Framing::Nothing, &[]),
            ("304\r\nContent-Length: 5", Framing::Nothing, &[]),
            ("101", Framing::Nothing, &[]),
        ];
        for (head, expected, problems) in cases {
            let text = format!("HTTP/1.1 {head}\r\n\r\n");
            let (head, _) = HttpHead::from_bytes(text.as_bytes()).unwrap();
            let (got, found) = framing(&head, false);
            assert_eq!(got, *expected, "{text:?}");
            assert_eq!(found.iter().map(|problem| problem.kind).collect::<Vec<_>>(), *problems, "{text:?}");
            assert_eq!(framing(&head, true).0, Framing::Nothing);
        }
    }

    #[test]
    fn a_response_that_can_be_read_in_two_ways_is_doubtful() {
        for (head, expected) in [
            ("HTTP/1.1 200\r\nContent-Length: 5", false),
            ("HTTP/1.1 200\r\nContent-Length: 5\r\nContent-Length: 5", false),
            ("HTTP/1.1 200\r\nContent-Length: 5, 5", true),
            ("HTTP/1.1 200\r\nContent-Length: +5", true),
            ("HTTP/1.1 200\r\nTransfer-Encoding: Chunked", false),
            ("HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\nContent-Length: 5", true),
            ("HTTP/1.1 200\r\nTransfer-Encoding: gzip, chunked", true),
            ("HTTP/1.1 200\r\nTransfer-Encoding: identity\r\nContent-Length: 5", true),
            ("HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked", true),
            ("HTTP/1.0 200\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked", true),
            ("HTTP/1.0 200\r\nConnection: keep-alive\r\nContent-Length: 5", false),
            ("HTTP/1.1 204", false),
            ("HTTP/1.1 204\r\nContent-Length: 0", false),
            ("HTTP/1.1 204\r\nContent-Length: 5", true),
            ("HTTP/1.1 304\r\nContent-Length: 5", false),
            ("HTTP/1.1 304\r\nTransfer-Encoding: chunked", true),
        ] {
            let text = format!("{head}\r\n\r\n");
            let (head, _) = HttpHead::from_bytes(text.as_bytes()).unwrap();
            assert_eq!(is_doubtful(&head, false), expected, "{text:?}");
            assert!(!is_doubtful(&head, true), "nobody expects a body after HEAD: {text:?}");
        }
    }

    #[test]
    fn the_payload_is_the_body_without_its_transfer_coding() {
        // Framing, bytes, closed; payload, bytes used, done, cut.
        type Case = (Framing, &'static str, bool, &'static str, usize, bool, bool);
        let cases: &[Case] = &[
            (Framing::Length(3), "abcdef", false, "abc", 3, true, false),
            (Framing::Length(3), "ab", true, "ab", 2, false, true),
            (Framing::Length(0), "", false, "", 0, true, false),
            (Framing::Close, "abc", true, "abc", 3, false, false),
            (Framing::Nothing, "abc", false, "", 0, true, false),
            (Framing::Disputed { least: 3, most: 5 }, "abcdef", false, "abcde", 5, true, false),
            (Framing::Disputed { least: 3, most: 5 }, "abc", true, "abc", 3, false, false),
            (Framing::Disputed { least: 3, most: 5 }, "abcd", true, "abcd", 4, false, true),
            (Framing::Chunked, "3\r\nabc\r\n0\r\n\r\nnext", false, "abc", 13, true, false),
            (Framing::Chunked, "3\r\nabc\r\n0\r\nA: b\r\n\r\n", false, "abc", 19, true, false),
            (Framing::Chunked, "3\r\nabc\r\n", true, "abc", 8, false, true),
            (Framing::Chunked, "9\r\nabc", true, "abc", 6, false, true),
            (Framing::Chunked, "9\r\nabc", false, "abc", 6, false, false),
            (Framing::Chunked, "", true, "", 0, false, true),
            (Framing::Chunked, "<p>no chunks", true, "<p>no chunks", 12, false, false),
        ];
        for (framing, bytes, closed, payload, used, done, cut) in cases {
            let mut body = Body::new(*framing, Algorithm::Sha1);
            let took = body.take(bytes.as_bytes());
            assert_eq!(took, Took { used: *used, done: *done }, "{framing:?} {bytes:?}");
            let mut problems = Vec::new();
            let (digest, len, truncated) = body.finish(*closed, &mut problems);
            assert_eq!(digest, Digest::of(Algorithm::Sha1, payload.as_bytes()), "{framing:?} {bytes:?}");
            assert_eq!((len as usize, truncated.is_some()), (payload.len(), *cut), "{framing:?} {bytes:?}");
        }
    }
}
