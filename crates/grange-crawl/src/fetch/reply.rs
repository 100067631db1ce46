//! An answer on its way in, byte by byte, without any IO: where its head begins and ends, where its body ends, and
//! what is wrong with it. Whatever the bytes are, they are kept, and something is made of them.

use warc::write::Truncated;
use warc::{Algorithm, Digest, Hasher, HttpHead};

use super::body::{Body, Framing, framing, is_doubtful};
use super::problem::{Problem, ProblemKind};
use crate::FetchStatus;

/// The longest head, with all that comes before it. Servers refuse 8 to 32 KiB of request head themselves.
pub const HEAD_BYTES_MAX: usize = 64 << 10;
/// How far a status line is looked for behind garbage. What is longer is no accident but another protocol.
const GARBAGE_BYTES_MAX: usize = 4096;
/// Within so many bytes a status line may begin in the middle of a line: the rest of a body before it.
const GARBAGE_INLINE_MAX: usize = 64;

/// How the bytes came to an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The answer was complete, or was cut by its own limits.
    Done,
    /// The server closed the connection in order.
    Closed,
    /// The connection broke.
    Lost,
    /// We waited too long.
    TimedOut,
    /// The caller did not want the body.
    NotWanted,
    /// There is no room for more of it.
    DiskFull,
}

/// An answer on its way in.
#[derive(Debug)]
pub(super) struct Reply {
    /// What came and was not taken away by [`Reply::take_bytes`]. It ends where the answer does once it is done.
    buffer: Vec<u8>,
    /// How many bytes of the buffer have been looked at, and digested if they are part of the answer.
    seen: usize,
    /// How many bytes of the answer were taken away.
    gone: u64,
    /// The most bytes of the answer that are kept.
    max_bytes: u64,
    no_body: bool,
    phase: Phase,
    preamble: Vec<u8>,
    head: Option<HttpHead>,
    head_len: usize,
    algorithm: Algorithm,
    block: Hasher,
    body: Option<Body>,
    framing: Framing,
    truncated: Option<Truncated>,
    problems: Vec<Problem>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Head,
    Body,
    Done,
}

/// What became of an answer.
#[derive(Debug)]
pub struct Outcome {
    pub status: FetchStatus,
    /// What is left of the answer's bytes in memory.
    pub buffer: Vec<u8>,
    /// Interim answers (1xx) and garbage that came before the head.
    pub preamble: Vec<u8>,
    pub head: Option<HttpHead>,
    pub head_len: usize,
    pub block_digest: Digest,
    pub payload_digest: Digest,
    pub payload_len: u64,
    pub len: u64,
    pub truncated: Option<Truncated>,
    pub problems: Vec<Problem>,
    /// Whether the connection is in a state to be used again, if both sides agree to.
    pub clean: bool,
}

impl Reply {
    /// Awaits an answer. `no_body` says that the request was one whose answer has none (HEAD); `max_bytes` is the
    /// most that is kept.
    pub(super) fn new(no_body: bool, max_bytes: u64, algorithm: Algorithm) -> Reply {
        Reply {
            buffer: Vec::new(),
            seen: 0,
            gone: 0,
            max_bytes,
            no_body,
            phase: Phase::Head,
            preamble: Vec::new(),
            head: None,
            head_len: 0,
            algorithm,
            block: Hasher::new(algorithm),
            body: None,
            framing: Framing::Close,
            truncated: None,
            problems: Vec::new(),
        }
    }

    /// Where the next bytes are to be put, at the end. Call [`Reply::advance`] afterwards.
    pub(super) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// The head, once it is there.
    pub(super) fn head(&self) -> Option<&HttpHead> {
        self.head.as_ref()
    }

    pub(super) fn in_body(&self) -> bool {
        self.phase == Phase::Body
    }

    /// How many bytes are still to come, where that is known.
    pub(super) fn left(&self) -> Option<u64> {
        self.body.as_ref().and_then(Body::left)
    }

    /// Adds what is known about the connection.
    pub(super) fn note(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    /// Takes away what has come of the body so far, to be put elsewhere. The emptied buffer is to be given back
    /// with [`Reply::give_back`].
    pub(super) fn take_bytes(&mut self) -> Vec<u8> {
        debug_assert!(
            self.phase != Phase::Head && self.seen == self.buffer.len(),
            "all bytes were looked at"
        );
        self.gone += self.buffer.len() as u64;
        self.seen = 0;
        std::mem::take(&mut self.buffer)
    }

    pub(super) fn give_back(&mut self, mut buffer: Vec<u8>) {
        buffer.clear();
        self.buffer = buffer;
    }

    /// Looks at the bytes that came since. Answers whether the answer is complete.
    pub(super) fn advance(&mut self) -> bool {
        if self.phase == Phase::Head {
            self.advance_head(false);
        }
        if self.phase == Phase::Body {
            self.advance_body();
        }
        self.phase == Phase::Done
    }

    fn advance_head(&mut self, ended: bool) {
        loop {
            let start = match find_status_line(&self.buffer, ended) {
                Start::At(start) => start,
                Start::More => return,
                Start::Nowhere => {
                    self.problems.push(ProblemKind::NoStatusLine.into());
                    return self.begin_body(Framing::Close);
                }
            };
            // A head is looked at anew from its first byte when there is more of it: the scan begins at the line
            // that was open the last time.
            let end = self.head_end(start);
            if self.preamble.len() + end.unwrap_or(self.buffer.len()) > HEAD_BYTES_MAX {
                return self.truncate_head(start);
            }
            let Some(end) = end else { return };
            self.seen = 0;
            self.read_head(start, end);
            // 101 is the last HTTP there is on a connection; the others announce another answer.
            if let Some(head) = self.head.take_if(|head| matches!(head.status(), Some(100 | 102..=199))) {
                self.preamble.extend(self.buffer.drain(..head.len()));
                self.head_len = 0;
                continue;
            }
            return self.begin();
        }
    }

    fn truncate_head(&mut self, start: usize) {
        let end = HEAD_BYTES_MAX.saturating_sub(self.preamble.len()).clamp(start, self.buffer.len());
        self.buffer.truncate(end);
        self.problems.push(ProblemKind::HeadTruncated.into());
        self.truncated = Some(Truncated::Length);
        self.read_head(start, end);
        self.block.update(&self.buffer);
        self.phase = Phase::Done;
    }

    /// Where the head that begins at `start` ends, if its blank line is there.
    fn head_end(&mut self, start: usize) -> Option<usize> {
        let mut line = self.seen.max(start);
        while let Some(newline) = memchr::memchr(b'\n', &self.buffer[line..]) {
            let text = &self.buffer[line..line + newline];
            line += newline + 1;
            if text.iter().all(|&b| b == b'\r') {
                return Some(line);
            }
        }
        self.seen = line;
        None
    }

    /// Reads the head in `start..end`, and moves what is before it out of the way.
    fn read_head(&mut self, start: usize, end: usize) {
        let read = HttpHead::from_bytes(&self.buffer[start..end]);
        if start > 0 {
            if self.buffer[..start].iter().any(|b| !b.is_ascii_whitespace()) {
                self.problems
                    .push(Problem::with(ProblemKind::GarbageBeforeHead, format_args!("{start} bytes")));
            }
            self.preamble.extend(self.buffer.drain(..start));
        }
        self.head_len = end - start;
        if let Some((head, kinds)) = read {
            let own = |kind: &warc::Kind| *kind != warc::Kind::HttpUnterminatedHead;
            for kind in kinds.into_iter().filter(own).map(ProblemKind::Head) {
                if !self.problems.iter().any(|problem| problem.kind == kind) {
                    self.problems.push(kind.into());
                }
            }
            self.head = Some(head);
        }
    }

    fn begin(&mut self) {
        let Some(head) = &self.head else { return self.begin_body(Framing::Close) };
        let (framing, problems) = framing(head, self.no_body);
        self.problems.extend(problems);
        self.begin_body(framing);
    }

    fn begin_body(&mut self, framing: Framing) {
        self.framing = framing;
        self.block.update(&self.buffer[..self.head_len]);
        self.seen = self.head_len;
        let mut body = Body::new(framing, self.algorithm);
        self.phase = if body.take(&[]).done { Phase::Done } else { Phase::Body };
        self.body = Some(body);
        if self.phase == Phase::Done {
            self.cut_surplus();
        }
    }

    fn advance_body(&mut self) {
        let Some(body) = &mut self.body else { return };
        let room = self.max_bytes.saturating_sub(self.gone + self.seen as u64);
        let new = &self.buffer[self.seen..];
        let over = new.len() as u64 > room;
        let new = &new[..if over { room as usize } else { new.len() }];
        let took = body.take(new);
        self.block.update(&new[..took.used]);
        self.seen += took.used;
        if took.done {
            self.cut_surplus();
            self.phase = Phase::Done;
        } else if over {
            self.buffer.truncate(self.seen);
            self.problems.push(ProblemKind::LengthTruncated.into());
            self.truncated = Some(Truncated::Length);
            self.phase = Phase::Done;
        }
    }

    fn cut_surplus(&mut self) {
        let surplus = self.buffer.len() - self.seen;
        if surplus > 0 {
            self.problems.push(Problem::with(ProblemKind::SurplusBytes, format_args!("{surplus} bytes")));
            self.buffer.truncate(self.seen);
        }
    }

    /// No more bytes come, for this reason.
    pub(super) fn finish(mut self, end: End) -> Outcome {
        let mut lost = None;
        if self.phase == Phase::Head {
            lost = self.end_head(end);
        }
        let may_end_here = self.body.as_ref().is_some_and(Body::may_end_here);
        if self.phase == Phase::Body && !may_end_here {
            match end {
                End::Done => {}
                // A close is how such bodies end; a break is not.
                End::Closed => {}
                End::Lost => self.truncated = Some(Truncated::Disconnect),
                End::TimedOut => {
                    self.problems.push(ProblemKind::TimeTruncated.into());
                    self.truncated = Some(Truncated::Time);
                }
                End::DiskFull => {
                    self.problems.push(ProblemKind::DiskTruncated.into());
                    self.truncated = Some(Truncated::Disk);
                }
                End::NotWanted => {
                    self.problems.push(ProblemKind::BodyNotWanted.into());
                    self.truncated = Some(Truncated::Unspecified);
                }
            }
        }
        let status = lost.unwrap_or_else(|| self.status());
        let incomplete = self.phase != Phase::Done;
        let body = self.body.take().unwrap_or_else(|| Body::new(Framing::Nothing, self.algorithm));
        let closed = incomplete && matches!(end, End::Closed | End::Lost);
        let (payload_digest, payload_len, missing) = body.finish(closed, &mut self.problems);
        self.truncated = self.truncated.or(missing);
        if self.truncated == Some(Truncated::Disconnect) {
            self.problems.push(ProblemKind::Disconnected.into());
        }
        // Nothing that went otherwise than it should leaves a connection whose next byte is known.
        let clean = !incomplete
            && self.truncated.is_none()
            && self.framing != Framing::Close
            && self.problems.is_empty()
            && self
                .head
                .as_ref()
                .is_some_and(|head| head.status() != Some(101) && !is_doubtful(head, self.no_body));
        Outcome {
            status,
            len: self.gone + self.buffer.len() as u64,
            buffer: self.buffer,
            preamble: self.preamble,
            head: self.head,
            head_len: self.head_len,
            block_digest: self.block.finish(),
            payload_digest,
            payload_len,
            truncated: self.truncated,
            problems: self.problems,
            clean,
        }
    }

    /// The bytes end within the head. Something is made of it if the server closed after a whole line; otherwise
    /// the fetch has failed, and gives the status for that.
    fn end_head(&mut self, end: End) -> Option<FetchStatus> {
        if end == End::Closed && !self.buffer.is_empty() {
            self.advance_head(true);
        }
        match self.phase {
            // There was no status line; all of it is body.
            Phase::Body => {
                self.advance_body();
                return None;
            }
            Phase::Done => return None,
            Phase::Head => {}
        }
        let start = find_status_line(&self.buffer, true);
        if let (End::Closed, Start::At(start)) = (end, start)
            && memchr::memchr(b'\n', &self.buffer[start..]).is_some()
        {
            self.read_head(start, self.buffer.len());
            self.block.update(&self.buffer);
            self.problems.push(ProblemKind::UnterminatedHead.into());
            self.truncated = Some(Truncated::Disconnect);
            self.phase = Phase::Done;
            return None;
        }
        self.block.update(&self.buffer);
        let (kind, status) = if end == End::TimedOut {
            (ProblemKind::AnswerTimeout, FetchStatus::TIMEOUT)
        } else {
            (ProblemKind::Disconnected, FetchStatus::CONNECT_LOST)
        };
        self.problems.push(kind.into());
        Some(status)
    }

    /// The status line's code; 200 where there is none, as for HTTP 0.9 and in browsers.
    fn status(&mut self) -> FetchStatus {
        let Some(head) = &self.head else {
            // Interim answers without end, and nothing else.
            return if self.body.is_some() { FetchStatus(200) } else { FetchStatus::CONNECT_LOST };
        };
        if let Some(code @ 100..=999) = head.status() {
            return FetchStatus(i32::from(code));
        }
        self.problems.push(ProblemKind::NoStatusCode.into());
        FetchStatus(200)
    }
}

/// Whether the server keeps the connection open after an answer with this head (RFC 9112 9.3).
pub(super) fn stays_open(head: &HttpHead) -> bool {
    let says = |word: &[u8]| {
        head.all("Connection")
            .flat_map(|value| value.split(|&b| b == b','))
            .any(|option| option.trim_ascii().eq_ignore_ascii_case(word))
    };
    !says(b"close") && (head.start_line().starts_with(b"HTTP/1.1") || says(b"keep-alive"))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    At(usize),
    More,
    Nowhere,
}

/// Where the status line begins; `ended` tells that no more bytes come.
fn find_status_line(bytes: &[u8], ended: bool) -> Start {
    let blank = bytes.iter().take_while(|b| matches!(b, b'\r' | b'\n')).count();
    if blank <= GARBAGE_INLINE_MAX {
        match looks_like_status_line(&bytes[blank..]) {
            Some(true) => return Start::At(blank),
            None if !ended => return Start::More,
            _ => {}
        }
    }
    let near = &bytes[..bytes.len().min(GARBAGE_BYTES_MAX)];
    for at in memchr::memmem::find_iter(near, b"HTTP/") {
        let allowed = at <= GARBAGE_INLINE_MAX || bytes[at - 1] == b'\n';
        if allowed && has_status_code(&bytes[at..]) {
            return Start::At(at);
        }
    }
    if ended || bytes.len() >= GARBAGE_BYTES_MAX { Start::Nowhere } else { Start::More }
}

/// Whether a status line begins here, however bad; `None` if more bytes must decide.
fn looks_like_status_line(bytes: &[u8]) -> Option<bool> {
    let mut open = false;
    for name in [&b"HTTP/"[..], b"HTTP ", b"ICY "] {
        let n = bytes.len().min(name.len());
        if bytes[..n].eq_ignore_ascii_case(&name[..n]) {
            if n == name.len() {
                return Some(true);
            }
            open = true;
        }
    }
    if open { None } else { Some(false) }
}

/// Whether `bytes` begin like `HTTP/1.1 200`: what stands behind garbage must look right.
fn has_status_code(bytes: &[u8]) -> bool {
    let Some(rest) = bytes.strip_prefix(b"HTTP/") else { return false };
    let version = rest.iter().take_while(|b| b.is_ascii_digit() || **b == b'.').count();
    let code = rest.get(version..).and_then(|rest| rest.strip_prefix(b" ")).unwrap_or_default();
    (1..=3).contains(&version) && code.len() >= 3 && code[..3].iter().all(u8::is_ascii_digit)
}

/// Makes an answer of bytes that came in pieces of the given lengths, and then the end.
pub fn read_reply(
    bytes: &[u8],
    pieces: impl IntoIterator<Item = usize>,
    max_bytes: u64,
    end: End,
) -> Outcome {
    let mut reply = Reply::new(false, max_bytes, Algorithm::Sha1);
    let mut rest = bytes;
    for n in pieces {
        if rest.is_empty() {
            break;
        }
        let n = n.clamp(1, rest.len());
        reply.buffer().extend_from_slice(&rest[..n]);
        rest = &rest[n..];
        if reply.advance() {
            return reply.finish(End::Done);
        }
    }
    reply.buffer().extend_from_slice(rest);
    let done = reply.advance();
    reply.finish(if done { End::Done } else { end })
}

#[cfg(test)]
mod tests;
