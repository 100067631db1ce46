//! The bytes of a document, in memory or coming from a reader, looked at through a window.

use std::borrow::Cow;
use std::io::Read;

use htmlscan::{Attribute, Dialect, Scanner, State, Token};

/// Room for the largest usual script or comment; a larger token makes the window grow.
const WINDOW_BYTES: usize = 256 * 1024;

/// A token beyond this size is handled in pieces (text) or skipped (a tag).
const LARGEST_TOKEN_BYTES: usize = 4 << 20;

/// Where the bytes are. What was read in front to know the format is in `head`.
pub(super) enum Source<'a> {
    Bytes(&'a [u8]),
    Stream { head: Vec<u8>, rest: Box<dyn Read + 'a> },
}

impl<'a> Source<'a> {
    /// A stream and its first bytes, read in advance.
    pub(super) fn stream(mut rest: Box<dyn Read + 'a>, head_bytes: usize) -> Source<'a> {
        let mut head = Vec::new();
        read_up_to(&mut rest, &mut head, head_bytes);
        Source::Stream { head, rest }
    }

    /// All that is known without reading on.
    pub(super) fn head(&self) -> &[u8] {
        match self {
            Source::Bytes(bytes) => bytes,
            Source::Stream { head, .. } => head,
        }
    }

    /// The first `limit` bytes in memory.
    pub(super) fn bytes(self, limit: u64) -> Cow<'a, [u8]> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        match self {
            Source::Bytes(bytes) => Cow::Borrowed(&bytes[..bytes.len().min(limit)]),
            Source::Stream { mut head, mut rest } => {
                head.truncate(limit);
                read_up_to(&mut rest, &mut head, limit);
                Cow::Owned(head)
            }
        }
    }

    /// A reader of all of it.
    pub(super) fn into_read(self) -> Box<dyn Read + 'a> {
        match self {
            Source::Bytes(bytes) => Box::new(bytes),
            Source::Stream { head, rest } => Box::new(std::io::Cursor::new(head).chain(rest)),
        }
    }

    /// Calls `each` with every token of the first `limit` bytes.
    pub(super) fn tokens(self, dialect: Dialect, limit: u64, each: impl FnMut(Token<'_>, &[Attribute<'_>])) {
        self.tokens_by(dialect, limit, WINDOW_BYTES, LARGEST_TOKEN_BYTES, each);
    }

    /// The same with a window and a largest token of other sizes.
    pub(super) fn tokens_by(
        self,
        dialect: Dialect,
        limit: u64,
        window_bytes: usize,
        largest_token_bytes: usize,
        mut each: impl FnMut(Token<'_>, &[Attribute<'_>]),
    ) {
        let (mut window, mut rest) = match self {
            Source::Bytes(bytes) => {
                let bytes = &bytes[..bytes.len().min(usize::try_from(limit).unwrap_or(usize::MAX))];
                return tokens_of(bytes, dialect, each);
            }
            Source::Stream { mut head, rest } => {
                head.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
                let left = limit - head.len() as u64;
                (head, rest.take(left))
            }
        };
        let mut state = State::default();
        let mut room = window_bytes;
        loop {
            let all = read_up_to(&mut rest, &mut window, room);
            let mut scanner = Scanner::new(&window, dialect, state);
            let mut attributes = Vec::new();
            let kept_from = loop {
                let (before, state_before) = (scanner.position(), scanner.state());
                let token = scanner.next(&mut attributes);
                if scanner.is_cut() && !all && window.len() - before < largest_token_bytes {
                    state = state_before;
                    break before;
                }
                let Some(token) = token else {
                    state = scanner.state();
                    break scanner.position();
                };
                each(token, &attributes);
            };
            if all {
                return;
            }
            window.drain(..kept_from);
            // Twice what is left over: a long token is looked at a few times, not once for every window.
            room = (window.len() * 2).max(window_bytes);
        }
    }
}

/// Calls `each` with every token of `bytes`.
pub(super) fn tokens_of(bytes: &[u8], dialect: Dialect, mut each: impl FnMut(Token<'_>, &[Attribute<'_>])) {
    let mut scanner = Scanner::new(bytes, dialect, State::default());
    let mut attributes = Vec::new();
    while let Some(token) = scanner.next(&mut attributes) {
        each(token, &attributes);
    }
}

/// Fills `buffer` up to `len` bytes. True when the reader has no more; a reader that fails has no more either, and
/// what came before still counts.
pub(super) fn read_up_to(reader: &mut impl Read, buffer: &mut Vec<u8>, len: usize) -> bool {
    let wanted = len.saturating_sub(buffer.len()) as u64;
    let read = reader.by_ref().take(wanted).read_to_end(buffer).unwrap_or(0) as u64;
    read < wanted
}
