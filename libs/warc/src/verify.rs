//! Checking the digests that a record's header states, in one pass over its block.

use std::io;

use crate::chunked::{Dechunker, Piece};
use crate::digest::{Digest, DigestError, Hasher};
use crate::header::{Known, RecordType};
use crate::problem::{Kind, quote};
use crate::record::Record;

/// The outcome for one digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// The header states none, or the record cannot be checked: a revisit or a segment holds no payload
    /// of its own, and a block that has been read already is gone.
    Absent,
    /// The field cannot be read or names an unknown algorithm.
    Unreadable,
    /// It matches.
    Good,
    /// It matches the body as stored, with the chunks in it. Many writers hash that.
    GoodAsStored,
    /// It does not match. The digest is what was computed.
    Bad(Digest),
}

impl Check {
    /// Whether the digest was checked and matches.
    pub fn is_good(self) -> bool {
        matches!(self, Check::Good | Check::GoodAsStored)
    }
}

/// The outcome for a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DigestCheck {
    /// For `WARC-Block-Digest`.
    pub block: Check,
    /// For `WARC-Payload-Digest`.
    pub payload: Check,
}

/// Which digests to check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Both.
    Both,
    /// Only that of the payload.
    Payload,
    /// Only that of the block.
    Block,
}

impl Record<'_> {
    /// Reads the block and checks both digests that the header states. Mismatches become problems.
    pub fn digest_check(&mut self) -> io::Result<DigestCheck> {
        self.check_digests(Which::Both)
    }

    /// Reads the block and checks the digests asked for.
    pub fn check_digests(&mut self, which: Which) -> io::Result<DigestCheck> {
        let mut outcome = DigestCheck { block: Check::Absent, payload: Check::Absent };
        if self.reader.current.read > 0 {
            return Ok(outcome);
        }
        let block = self.stated(Known::BlockDigest, which != Which::Payload, &mut outcome.block);
        // A revisit repeats the digest of a payload it does not hold; a segment holds only a part of it.
        let partial = matches!(self.kind(), RecordType::Revisit | RecordType::Continuation)
            || self.header().get("WARC-Segment-Number").is_some();
        let payload =
            self.stated(Known::PayloadDigest, which != Which::Block && !partial, &mut outcome.payload);
        if block.is_none() && payload.is_none() {
            return Ok(outcome);
        }
        let mut chunked = false;
        let mut head = 0;
        if payload.is_some()
            && let Some(http) = self.http()?
        {
            chunked = http.is_chunked();
            head = http.len();
        }
        let mut hashes = Hashes {
            block: block.map(|digest| Hasher::new(digest.algorithm())),
            stored: payload.map(|digest| Hasher::new(digest.algorithm())),
            dechunked: payload
                .filter(|_| chunked)
                .map(|digest| (Hasher::new(digest.algorithm()), Dechunker::new())),
            head,
        };
        loop {
            let have = self.reader.peek_block(1)?;
            if have == 0 {
                break;
            }
            hashes.update(&self.reader.tape.window()[..have]);
            self.reader.consume_block(have);
        }
        let offset = self.place().offset;
        let damaged = self.reader.current.damaged || self.reader.tape.is_broken();
        let revisit = self.kind() == RecordType::Revisit;
        let mut report = |kind: Kind, digest: Digest| {
            // A damaged record has said so already; that its digest is wrong too is no news.
            if !damaged {
                self.reader.tape.problems.add_with(offset, kind, || format!("computed {digest}"));
            }
        };
        if let (Some(stated), Some(hasher)) = (block, hashes.block) {
            let computed = hasher.finish();
            outcome.block = if computed == stated {
                Check::Good
            } else if revisit {
                // Writers of revisits often copy this field from the original.
                Check::Absent
            } else {
                report(Kind::BlockDigestMismatch, computed);
                Check::Bad(computed)
            };
        }
        if let (Some(stated), Some(hasher)) = (payload, hashes.stored) {
            let stored = hasher.finish();
            let dechunked = hashes.dechunked.map(|(mut hasher, mut chunks)| {
                hasher.update(chunks.end());
                hasher.finish()
            });
            outcome.payload = match dechunked {
                _ if dechunked.unwrap_or(stored) == stated => Check::Good,
                Some(_) if stored == stated => Check::GoodAsStored,
                _ => Check::Bad(dechunked.unwrap_or(stored)),
            };
            if let Check::Bad(computed) = outcome.payload {
                report(Kind::PayloadDigestMismatch, computed);
            }
        }
        Ok(outcome)
    }

    /// The digest a field states, if it is asked for and can be read.
    fn stated(&mut self, field: Known, wanted: bool, check: &mut Check) -> Option<Digest> {
        if !wanted {
            return None;
        }
        let value = self.header().known(field)?;
        match Digest::parse(value) {
            Ok(digest) => Some(digest),
            Err(error) => {
                let kind = match error {
                    DigestError::UnknownAlgorithm => Kind::UnknownDigest,
                    DigestError::Malformed => Kind::BadDigestField,
                };
                let detail = quote(value);
                let offset = self.place().offset;
                self.reader.tape.problems.add_with(offset, kind, || detail);
                *check = Check::Unreadable;
                None
            }
        }
    }
}

struct Hashes {
    block: Option<Hasher>,
    stored: Option<Hasher>,
    dechunked: Option<(Hasher, Dechunker)>,
    /// Bytes of the HTTP head still to pass.
    head: usize,
}

impl Hashes {
    fn update(&mut self, bytes: &[u8]) {
        if let Some(hasher) = &mut self.block {
            hasher.update(bytes);
        }
        let skip = self.head.min(bytes.len());
        self.head -= skip;
        let mut body = &bytes[skip..];
        if let Some(hasher) = &mut self.stored {
            hasher.update(body);
        }
        if let Some((hasher, chunks)) = &mut self.dechunked {
            while !body.is_empty() {
                match chunks.step(body) {
                    Piece::Data(n) => {
                        hasher.update(&body[..n]);
                        body = &body[n..];
                    }
                    Piece::Skip(n) => body = &body[n..],
                    Piece::Held(held) => hasher.update(held),
                }
            }
        }
    }
}
