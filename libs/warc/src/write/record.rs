//! A record to be written, put together field by field.

use std::io::{Read, Seek};
use std::net::IpAddr;

use super::RecordId;
use crate::date::Date;
use crate::digest::{Algorithm, Digest};
use crate::header::RecordType;
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
    /// The crawler's disk had no room for more. Not among the reasons that ISO 28500 lists; it allows others.
    Disk,
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
            Truncated::Disk => "disk",
            Truncated::Unspecified => "unspecified",
        }
    }
}

pub(super) enum Body<'a> {
    Bytes(&'a [u8]),
    Stream(&'a mut dyn Reread, u64),
}

/// A record to be written.
pub struct NewRecord<'a> {
    pub(super) kind: RecordType,
    pub(super) id: RecordId,
    pub(super) date: Date,
    pub(super) uri: Option<Vec<u8>>,
    pub(super) content_type: Option<String>,
    pub(super) fields: Vec<(&'static str, Vec<u8>)>,
    pub(super) extra: Vec<(String, Vec<u8>)>,
    pub(super) head: &'a [u8],
    pub(super) body: Body<'a>,
    pub(super) algorithm: Algorithm,
    pub(super) block_digest: Option<Digest>,
    pub(super) payload_digest: Option<Digest>,
}

impl std::fmt::Debug for NewRecord<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewRecord").field("kind", &self.kind).field("id", &self.id).finish_non_exhaustive()
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
        NewRecord::new(RecordType::Resource, date).target_uri(uri).content_type(content_type).block(block)
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
        record.fields.push(("WARC-Refers-To-Target-URI", encode_blanks(uri)));
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
}

/// Percent-encodes what would end or break the line.
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
