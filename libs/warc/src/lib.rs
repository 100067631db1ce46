//! Stub docs.
mod arc;
mod block;
mod date;
mod deflate;
mod digest;
mod fields;
mod gzip;
mod header;
mod http;
mod hunt;
mod problem;
mod reader;
mod record;
mod resync;
mod source;
mod start;
mod tape;
mod zstd_frames;

pub use date::{Date, Precision};
pub use digest::{Algorithm, Digest, DigestError, Hasher};
pub use header::{Header, RecordType};
pub use http::HttpHead;
pub use problem::{Kind, Level, Problem};
pub use reader::{Container, Place, Reader};
pub use record::{Block, Record};
pub use resync::Version;
