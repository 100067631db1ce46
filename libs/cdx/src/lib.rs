//! Index lines of web archives: CDX and CDXJ, made from records, read, sorted, merged and searched.
//!
//! An index says for every capture where its record lies. One line is one capture; lines are sorted by bytes,
//! so that all captures of a URL, a host and a domain stand together.
//!
//! ```
//! use cdx::{Line, SortOptions, Sorter, parse_line};
//!
//! let lines = [
//!     r#"com,example)/b 20260102030405 {"url": "http://example.com/b", "offset": "512", "filename": "a.warc.gz"}"#,
//!     "com,example)/a 20260102030405 http://example.com/a text/html 200 AAAA - - 99 0 a.warc.gz",
//! ];
//! let mut sorter = Sorter::new(SortOptions::default());
//! for line in lines {
//!     sorter.push(line.as_bytes())?;
//! }
//! let mut sorted = Vec::new();
//! sorter.finish(&mut sorted)?;
//! let Line::Entry(first, _) = parse_line(&sorted, None) else { panic!() };
//! assert_eq!(first.key, "com,example)/a");
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # Invariants
//!
//! - Lines from elsewhere are read as far as they can be; what is wrong is named in a [`LineProblem`].
//! - Sorting, merging and searching take memory by their settings, not by their input.
//! - No input makes a function panic.
//!
//! # Where index lines differ from cdxj-indexer's
//!
//! See [`index`](fn@index). What is deliberately absent: where lines are kept and who may see them.

mod entry;
mod index;
mod json;
mod legend;
mod lookup;
mod merge;
mod parse;
mod post;
mod sort;
mod write;
pub mod zipnum;

pub use entry::{Entry, Original, REVISIT_MIME};
pub use index::{ExtraField, Format, IndexOptions, IndexReport, Records, Tally, index, index_file};
pub use legend::{Column, Legend};
pub use lookup::{RangeLines, SortedFile};
pub use merge::{Dedupe, merge};
pub use parse::{Line, LineProblem, parse_line};
pub use post::{
    BODY_BYTES_MAX, BODY_BYTES_UNNAMED, QUERY_CHARS_MAX, Spelling, body_query, modern_spelling, url_with_body,
};
pub use sort::{SortOptions, Sorter};
