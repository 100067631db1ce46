//! A record to be written: its fields, its block, and the digests over it.

use std::fmt::Write as _;
use std::io::{self, Read, Seek, SeekFrom};
use std::net::IpAddr;

use super::RecordId;
use crate::chunked::{Dechunker, Piece};
use crate::date::Date;
use crate::digest::{Algorithm, Digest, Hasher};
use crate::header::RecordType;
use crate::http::HttpHead;
use crate::resync::Version;
use crate::revisit::Profile;

/// A body that can be read twice: once for its digest, once to be written.
pub trait Reread: Read + Seek {}
impl<T: Read + Seek + ?Sized> Reread for T {}

/// Why a block is not all there was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Truncated {
    /// It was too long.
    Length,
    /// It took too long.
    Time,
    /// The connection broke.
    Disconnect,
    /// For another reason.
    Unspecified,
}

impl Truncated {
    /// The word in `WARC-Truncated`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Truncated::Length => "length",
            Truncated::Time => "time",
            Truncated::Disconnect => "disconnect",
            Truncated::Unspecified => "unspecified",
        }
    }
}

enum Body<'a> {
    Bytes(&'a [u8]),
    Stream(&'a mut dyn Reread, u64),
}

/// A record to be written.
pub struct NewRecord<'a> {
    kind: RecordType,
    id: RecordId,
    date: Date,
    uri: Option<Vec<u8>>,
    content_type: Option<String>,
    fields: Vec<(&'static str, Vec<u8>)>,
    extra: Vec<(String, Vec<u8>)>,
    head: &'a [u8],
    body: Body<'a>,
    algorithm: Algorithm,
    block_digest: Option<Digest>,
    payload_digest: Option<Digest>,
}

impl std::fmt::Debug for NewRecord<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewRecord")
            .field("kind", &self.kind)
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl<'a> NewRecord<'a> {
    /// A record of any type, without a block. The shorter forms below say what belongs to each type.
    pub fn new(kind: RecordType, date: Date) -> NewRecord<'a> {
        NewRecord {
            kind,
            id: RecordId::random(),
            date,
            uri: None,
            content_type: None,
            fields: Vec::new(),
            extra: Vec::new(),
            head: &[],
            body: Body::Bytes(&[]),
            algorithm: Algorithm::Sha1,
            block_digest: None,
            payload_digest: None,
        }
    }

    /// What a server answered: the HTTP head and the body as they came over the wire.
    pub fn response(uri: &str, date: Date, head: &'a [u8], body: &'a [u8]) -> NewRecord<'a> {
        NewRecord::new(RecordType::Response, date)
            .target_uri(uri)
            .content_type("application/http; msgtype=response")
            .http(head, body)
    }

    /// What was asked.
    pub fn request(uri: &str, date: Date, head: &'a [u8], body: &'a [u8]) -> NewRecord<'a> {
        NewRecord::new(RecordType::Request, date)
            .target_uri(uri)
            .content_type("application/http; msgtype=request")
            .http(head, body)
    }

    /// A resource without HTTP around it.
    pub fn resource(uri: &str, date: Date, content_type: &str, block: &'a [u8]) -> NewRecord<'a> {
        NewRecord::new(RecordType::Resource, date)
            .target_uri(uri)
            .content_type(content_type)
            .block(block)
    }

    /// Another form of the resource in the record `of`.
    pub fn conversion(
        uri: &str,
        date: Date,
        of: RecordId,
        content_type: &str,
        block: &'a [u8],
    ) -> NewRecord<'a> {
        NewRecord::new(RecordType::Conversion, date)
            .target_uri(uri)
            .refers_to(of)
            .content_type(content_type)
            .block(block)
    }

    /// What is known about the capture of `uri`, as lines of `name: value`.
    pub fn metadata(uri: &str, date: Date, fields: &'a [u8]) -> NewRecord<'a> {
        NewRecord::new(RecordType::Metadata, date)
            .target_uri(uri)
            .content_type("application/warc-fields")
            .block(fields)
    }

    /// A capture whose payload is that of an earlier one. `head` is the HTTP head of this capture, or empty.
    pub fn revisit(
        uri: &str,
        date: Date,
        profile: Profile,
        payload: Digest,
        head: &'a [u8],
    ) -> NewRecord<'a> {
        let record = NewRecord::new(RecordType::Revisit, date)
            .target_uri(uri)
            .content_type("application/http; msgtype=response")
            .http(head, &[])
            .payload_digest(payload);
        record.standard("WARC-Profile", profile.uri())
    }

    /// Sets the id; without this it is random.
    #[must_use]
    pub fn id(mut self, id: RecordId) -> Self {
        self.id = id;
        self
    }

    /// The id, to refer to this record from others.
    pub fn record_id(&self) -> RecordId {
        self.id
    }

    /// Sets the target URI. Blanks and control characters in it are percent-encoded.
    #[must_use]
    pub fn target_uri(mut self, uri: &str) -> Self {
        self.uri = Some(encode_blanks(uri));
        self
    }

    /// Sets the type of the block.
    #[must_use]
    pub fn content_type(mut self, content_type: &str) -> Self {
        self.content_type = Some(content_type.to_owned());
        self
    }

    /// Sets the address of the server.
    #[must_use]
    pub fn ip(self, ip: IpAddr) -> Self {
        self.standard("WARC-IP-Address", &ip.to_string())
    }

    /// Adds a record that was made together with this one. May be repeated.
    #[must_use]
    pub fn concurrent_to(self, id: RecordId) -> Self {
        self.standard("WARC-Concurrent-To", &id.to_string())
    }

    /// Sets the record that this one is about.
    #[must_use]
    pub fn refers_to(self, id: RecordId) -> Self {
        self.standard("WARC-Refers-To", &id.to_string())
    }

    /// Sets the capture that this revisit repeats.
    #[must_use]
    pub fn refers_to_capture(self, uri: &str, date: Date) -> Self {
        let mut record = self.standard("WARC-Refers-To-Date", &date.to_string());
        record
            .fields
            .push(("WARC-Refers-To-Target-URI", encode_blanks(uri)));
        record
    }

    /// Says that the block is not all there was.
    #[must_use]
    pub fn truncated(self, reason: Truncated) -> Self {
        self.standard("WARC-Truncated", reason.as_str())
    }

    /// Adds any other field. Writing fails if it holds a line end.
    #[must_use]
    pub fn field(mut self, name: &str, value: &[u8]) -> Self {
        self.extra.push((name.to_owned(), value.to_vec()));
        self
    }

    fn standard(mut self, name: &'static str, value: &str) -> Self {
        self.fields.push((name, value.as_bytes().to_vec()));
        self
    }

    /// Sets the block.
    #[must_use]
    pub fn block(mut self, block: &'a [u8]) -> Self {
        (self.head, self.body) = (&[], Body::Bytes(block));
        self
    }

    /// Sets the block to an HTTP message.
    #[must_use]
    pub fn http(mut self, head: &'a [u8], body: &'a [u8]) -> Self {
        (self.head, self.body) = (head, Body::Bytes(body));
        self
    }

    /// Sets the block to `head` and `len` bytes of a body that is not in memory. Without digests set it is
    /// read twice.
    #[must_use]
    pub fn stream(mut self, head: &'a [u8], body: &'a mut dyn Reread, len: u64) -> Self {
        (self.head, self.body) = (head, Body::Stream(body, len));
        self
    }

    /// Sets the algorithm of the digests; without this it is SHA-1, which every tool can check.
    #[must_use]
    pub fn algorithm(mut self, algorithm: Algorithm) -> Self {
        self.algorithm = algorithm;
        self
    }

    /// Sets the digest of the block, if the caller has computed it.
    #[must_use]
    pub fn block_digest(mut self, digest: Digest) -> Self {
        self.block_digest = Some(digest);
        self
    }

    /// Sets the digest of the payload, if the caller has computed it: of the body with its transfer coding
    /// undone.
    #[must_use]
    pub fn payload_digest(mut self, digest: Digest) -> Self {
        self.payload_digest = Some(digest);
        self
    }

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
        for (name, digest) in [
            ("WARC-Block-Digest", self.block_digest),
            ("WARC-Payload-Digest", self.payload_digest),
        ] {
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

fn encode_blanks(uri: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(uri.len());
    for b in uri.bytes() {
        if b <= b' ' || b == 0x7f {
            out.extend_from_slice(format!("%{b:02X}").as_bytes());
        } else {
            out.push(b);
        }
    }
    out
}
