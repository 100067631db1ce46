//! Requests and answers of OAI-PMH 2.0.
//!
//! Repositories are old, hand-made and many; hardly one follows the protocol to the letter. This library reads what
//! they send as it arrives, keeps at most one record in memory, repairs what can be repaired, and says of every
//! record what was wrong with it. It opens no sockets: bytes come in, records go out.
//!
//! What holds everywhere:
//!
//! * An answer never fails to read. It gives items, errors of the protocol, and [`Problem`]s.
//! * Nothing panics, and memory stays within [`Limits`] whatever a server sends.
//! * Metadata comes out as a well-formed document of its own, in UTF-8, with its namespaces.
//! * How an answer is cut into pushes changes nothing.
//!
//! ```
//! use oaipmh::{Item, Limits, PageReader, Request, Selection};
//!
//! let request = Request::ListRecords(Selection::all("oai_dc"));
//! assert_eq!(request.to_url("http://example.org/oai"),
//!     "http://example.org/oai?verb=ListRecords&metadataPrefix=oai_dc");
//!
//! # let chunks = [&b"<OAI-PMH xmlns='http://www.openarchives.org/OAI/2.0/'><responseDate>2026-11-16T04:00:00Z\
//! #     </responseDate><request/><ListRecords><record><header><identifier>oai:x:1</identifier><datestamp>2026-01-01\
//! #     </datestamp></header><metadata><dc xmlns='urn:x'/></metadata></record>"[..], b"<resumptionToken>next\
//! #     </resumptionToken></ListRecords></OAI-PMH>"];
//! let mut reader = PageReader::new(Limits::default());
//! for chunk in chunks {
//!     reader.push(chunk);
//!     while let Some(item) = reader.next_item() {
//!         let Item::Record(record) = item else { continue };
//!         assert_eq!(record.header.identifier, "oai:x:1");
//!     }
//! }
//! let page = reader.finish();
//! assert_eq!(page.next_token(), Some("next"));
//! ```

mod answer;
mod date;
mod error;
pub mod flow;
mod problem;
mod read;
mod request;
pub mod write;

pub use answer::{DeletedRecord, Header, Identify, Item, MetadataFormat, Page, Record, ResumptionToken, Set};
pub use date::{Datestamp, Granularity};
pub use error::{ErrorCode, OaiError};
pub use problem::{Kind, Level, Problem};
pub use read::{Limits, PageReader};
pub use request::{Request, Selection, TokenStyle, Verb};

/// The namespace of everything the protocol itself defines.
pub const NAMESPACE: &str = "http://www.openarchives.org/OAI/2.0/";
