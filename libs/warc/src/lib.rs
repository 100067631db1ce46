//! Reads every WARC and ARC file there is, names what is wrong with it, and writes sound ones.
//!
//! A web archive is a pile of files written over thirty years by programs that are gone: cut off, padded,
//! packed twice or not at all, with lengths that lie. This library reads the good records around every
//! damage and says where and what the damage is. It knows nothing of any particular archive.
//!
//! What holds everywhere:
//!
//! * An error is one of the disk. Whatever a file holds is a record or a [`Problem`], and reading goes on.
//! * Nothing panics, nothing runs on, and memory stays below 64 MB whatever a file claims; no length in a
//!   file is ever a size to allocate.
//! * Bytes are kept as they were found: header names and values, URIs, heads, blocks.
//! * A file is known by its first bytes, never by its name.
//! * A record borrows the reader; nothing is copied or decoded before it is asked for.
//!
//! ```
//! use std::io::Read;
//! use warc::Reader;
//!
//! # fn main() -> std::io::Result<()> {
//! # let file = b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:1>\r\nWARC-Date: 2026\r\n\
//! #     WARC-Target-URI: http://example.org/\r\nContent-Type: application/http\r\nContent-Length: 24\r\n\r\n\
//! #     HTTP/1.1 200 OK\r\n\r\nhello\r\n\r\n";
//! let mut reader = Reader::from_bytes(&file[..])?; // or Reader::open("crawl.warc.gz")?
//! while let Some(mut record) = reader.next()? {
//!     println!("{:?} at {}", record.kind(), record.place().offset);
//!     if let Some(http) = record.http()? {
//!         assert_eq!(http.status(), Some(200));
//!     }
//!     let mut text = String::new();
//!     record.content()?.read_to_string(&mut text)?;
//!     assert_eq!(text, "hello");
//!     record.finish()?;
//!     for problem in record.problems() {
//!         eprintln!("{} {}: {problem}", problem.offset, problem.kind.code());
//!     }
//! }
//! for problem in reader.problems() {
//!     eprintln!("{} {}: {problem}", problem.offset, problem.kind.code());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! From the bottom up: `source` (stored bytes), `gzip`, `zstd_frames` and `hunt` (unpacking, and finding the
//! next member), `tape` (plain bytes with member borders), `start`, `head` and `block` (finding records,
//! their headers and their ends), [`Record`] on top; `http`, `chunked`, `payload`, `content` and `verify` look inside; [`mod@write`]
//! stands apart.

mod arc;
mod block;
mod chunked;
mod coding;
mod content;
pub mod convert;
mod date;
mod deflate;
mod digest;
mod fields;
mod gzip;
mod head;
mod header;
mod http;
mod hunt;
mod payload;
mod problem;
mod range;
mod reader;
mod record;
mod resync;
mod revisit;
mod segment;
mod source;
mod start;
mod tape;
mod verify;
pub mod write;
mod zstd_frames;

pub use chunked::{Dechunker, Flaw, Piece};
pub use coding::{ENCODING_PROBE_BYTES, EncodingForm, encoding_form};
pub use content::Content;
pub use date::{Date, Precision};
pub use digest::{Algorithm, Digest, DigestError, Hasher};
pub use header::{Header, RecordType};
pub use http::HttpHead;
pub use payload::Payload;
pub use problem::{Kind, Level, Problem};
pub use reader::{Container, Place, Reader};
pub use record::{Block, Record};
pub use resync::Version;
pub use revisit::{Profile, Revisit};
pub use segment::{Offered, Reassembly, Segment};
pub use verify::{Check, DigestCheck, Which};
