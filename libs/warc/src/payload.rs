//! The payload: the body after the transfer coding, and the content behind its content encodings.

use std::io::{self, BufRead, Read};

use crate::chunked::{Dechunker, Flaw, Piece};
use crate::coding::Coding;
use crate::content::{self, Content};
use crate::http::HttpHead;
use crate::problem::Kind;
use crate::reader::Reader;
use crate::record::Record;

impl Record<'_> {
    /// The body with its transfer coding undone. That is what payload digests are about.
    pub fn payload(&mut self) -> io::Result<Payload<'_>> {
        self.skip_http_head()?;
        let chunked = self.http()?.is_some_and(HttpHead::is_chunked);
        let chunks = chunked.then(Dechunker::new);
        Ok(Payload { reader: self.reader, chunks, ready: 0, held: Vec::new(), given: 0, ended: false })
    }

    /// The payload with its content encodings undone as well: what a browser would show.
    ///
    /// An encoding that the body does not have is passed over, with a [`Problem`](crate::Problem).
    pub fn content(&mut self) -> io::Result<Content<'_>> {
        let mut codings = Vec::new();
        let mut unknown = false;
        if let Some(http) = self.http()? {
            for value in http.all("Content-Encoding") {
                for name in value.split(|&b| b == b',') {
                    match Coding::parse(name.trim_ascii()) {
                        Ok(Some(coding)) if codings.len() < content::CODINGS_MAX => codings.push(coding),
                        Ok(None) => {}
                        _ => unknown = true,
                    }
                }
            }
        }
        let offset = self.place().offset;
        if unknown {
            self.reader.tape.problems.add(offset, Kind::UnknownEncoding);
            codings.clear();
        }
        content::decode(self.payload()?, &codings)
    }
}

/// Reads a payload.
#[derive(Debug)]
pub struct Payload<'a> {
    reader: &'a mut Reader,
    chunks: Option<Dechunker>,
    /// Payload bytes at the start of the window that the dechunker has counted already.
    ready: usize,
    /// Bytes that were taken for the size of a chunk and are not.
    held: Vec<u8>,
    given: usize,
    ended: bool,
}

impl Payload<'_> {
    pub(crate) fn add(&mut self, kind: Kind) {
        let offset = self.reader.current.place.offset;
        self.reader.tape.problems.add(offset, kind);
    }

    /// Passes over what is not payload, until some payload is ready or the block ends.
    fn advance(&mut self) -> io::Result<()> {
        while self.ready == 0 && self.given == self.held.len() {
            let have = self.reader.peek_block(1)?;
            let Some(chunks) = self.chunks.as_mut() else {
                self.ready = have;
                break;
            };
            if have == 0 {
                if self.ended {
                    break;
                }
                self.ended = true;
                self.held = chunks.end().to_vec();
                self.given = 0;
                if let Some(flaw) = chunks.flaw() {
                    self.add(flaw_kind(flaw));
                }
                continue;
            }
            match chunks.step(&self.reader.tape.window()[..have]) {
                Piece::Data(n) => self.ready = n,
                Piece::Skip(n) => self.reader.consume_block(n),
                Piece::Held(bytes) => {
                    self.held = bytes.to_vec();
                    self.given = 0;
                }
            }
        }
        Ok(())
    }
}

pub(crate) fn flaw_kind(flaw: Flaw) -> Kind {
    match flaw {
        Flaw::NotChunked => Kind::NotChunked,
        Flaw::Broken => Kind::BrokenChunk,
        Flaw::NoLastChunk => Kind::MissingLastChunk,
    }
}

impl BufRead for Payload<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.advance()?;
        if self.given < self.held.len() {
            return Ok(&self.held[self.given..]);
        }
        Ok(&self.reader.tape.window()[..self.ready])
    }

    fn consume(&mut self, n: usize) {
        if self.given < self.held.len() {
            self.given = (self.given + n).min(self.held.len());
        } else {
            let n = n.min(self.ready);
            self.ready -= n;
            self.reader.consume_block(n);
        }
    }
}

impl Read for Payload<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let bytes = self.fill_buf()?;
        let n = bytes.len().min(buf.len());
        buf[..n].copy_from_slice(&bytes[..n]);
        self.consume(n);
        Ok(n)
    }
}
