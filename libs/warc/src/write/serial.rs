//! A record to be written, as bytes: its digests, its header, its block.

use std::fmt::Write as _;
use std::io::{self, SeekFrom};

use super::RecordId;
use super::record::{Body, NewRecord, Reread};
use crate::chunked::{Dechunker, Piece};
use crate::digest::{Digest, Hasher};
use crate::header::RecordType;
use crate::http::HttpHead;
use crate::resync::Version;

impl NewRecord<'_> {
    pub(super) fn block_len(&self) -> u64 {
        self.head.len() as u64
            + match &self.body {
                Body::Bytes(bytes) => bytes.len() as u64,
                Body::Stream(_, len) => *len,
            }
    }

    /// Whether the payload is something of its own that deserves a digest.
    fn has_payload(&self) -> bool {
        match self.kind {
            RecordType::Response | RecordType::Resource | RecordType::Conversion => true,
            RecordType::Request => self.block_len() > self.head.len() as u64,
            _ => false,
        }
    }

    /// Computes the digests that are not set.
    pub(super) fn digest(&mut self) -> io::Result<()> {
        let payload_wanted = self.has_payload() && self.payload_digest.is_none();
        let mut block = self.block_digest.is_none().then(|| Hasher::new(self.algorithm));
        let mut payload = payload_wanted.then(|| Hasher::new(self.algorithm));
        if let Some(hasher) = &mut block {
            hasher.update(self.head);
        }
        let chunked =
            payload_wanted && HttpHead::from_bytes(self.head).is_some_and(|(head, _)| head.is_chunked());
        let mut chunks = chunked.then(Dechunker::new);
        let mut take = |bytes: &[u8]| {
            if let Some(hasher) = &mut block {
                hasher.update(bytes);
            }
            if let Some(hasher) = &mut payload {
                hash_payload(hasher, chunks.as_mut(), bytes);
            }
        };
        if payload_wanted || self.block_digest.is_none() {
            match &mut self.body {
                Body::Bytes(bytes) => take(bytes),
                Body::Stream(reader, len) => {
                    let start = reader.stream_position()?;
                    copy_exactly(reader, *len, &mut |bytes| {
                        take(bytes);
                        Ok(())
                    })?;
                    reader.seek(SeekFrom::Start(start))?;
                }
            }
        }
        if let (Some(hasher), Some(chunks)) = (&mut payload, &mut chunks) {
            hasher.update(chunks.end());
        }
        self.block_digest = self.block_digest.or(block.map(Hasher::finish));
        self.payload_digest = self.payload_digest.or(payload.map(Hasher::finish));
        Ok(())
    }

    pub(super) fn payload(&self) -> Option<Digest> {
        self.payload_digest
    }

    /// Writes the header into `out`. The digests must have been computed.
    pub(super) fn header(&self, warcinfo: Option<RecordId>, out: &mut Vec<u8>) -> io::Result<()> {
        let mut text = String::with_capacity(512);
        let _ = write!(
            text,
            "{}\r\nWARC-Type: {}\r\nWARC-Record-ID: {}\r\nWARC-Date: {}\r\n",
            Version::V1_1,
            self.kind.as_str(),
            self.id,
            self.date
        );
        out.extend_from_slice(text.as_bytes());
        if let Some(uri) = &self.uri {
            put(out, "WARC-Target-URI", uri)?;
        }
        if let Some(warcinfo) = warcinfo.filter(|_| self.kind != RecordType::Warcinfo) {
            put(out, "WARC-Warcinfo-ID", warcinfo.to_string().as_bytes())?;
        }
        for (name, value) in &self.fields {
            put(out, name, value)?;
        }
        for (name, digest) in
            [("WARC-Block-Digest", self.block_digest), ("WARC-Payload-Digest", self.payload_digest)]
        {
            if let Some(digest) = digest {
                put(out, name, digest.to_string().as_bytes())?;
            }
        }
        for (name, value) in &self.extra {
            put(out, name, value)?;
        }
        if let Some(content_type) = self.content_type.as_ref().filter(|_| self.block_len() > 0) {
            put(out, "Content-Type", content_type.as_bytes())?;
        }
        put(out, "Content-Length", self.block_len().to_string().as_bytes())?;
        out.extend_from_slice(b"\r\n");
        Ok(())
    }

    /// Hands the block to `sink`, piece by piece.
    pub(super) fn copy_block(&mut self, sink: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        sink(self.head)?;
        match &mut self.body {
            Body::Bytes(bytes) => sink(bytes),
            Body::Stream(reader, len) => copy_exactly(reader, *len, sink),
        }
    }
}

fn hash_payload(hasher: &mut Hasher, chunks: Option<&mut Dechunker>, mut bytes: &[u8]) {
    let Some(chunks) = chunks else {
        return hasher.update(bytes);
    };
    while !bytes.is_empty() {
        match chunks.step(bytes) {
            Piece::Data(n) => {
                hasher.update(&bytes[..n]);
                bytes = &bytes[n..];
            }
            Piece::Skip(n) => bytes = &bytes[n..],
            Piece::Held(held) => hasher.update(held),
        }
    }
}

/// Reads exactly `len` bytes; a body that ends early is an error, because its length is in the header.
fn copy_exactly(
    reader: &mut dyn Reread,
    len: u64,
    sink: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut buf = vec![0; 64 << 10];
    let mut left = len;
    while left > 0 {
        let want = left.min(buf.len() as u64) as usize;
        reader.read_exact(&mut buf[..want])?;
        sink(&buf[..want])?;
        left -= want as u64;
    }
    Ok(())
}

fn put(out: &mut Vec<u8>, name: &str, value: &[u8]) -> io::Result<()> {
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if name.is_empty()
        || !name.bytes().all(token)
        || value.iter().any(|&b| b == b'\r' || b == b'\n' || b == 0)
    {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("the field {name:?} cannot be written"),
        ));
    }
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
    Ok(())
}
