//! ZipNum: sorted lines in gzip blocks, with a summary that says which block begins with which line.
//!
//! ```text
//! summary (.idx), classic       key timestamp TAB shard TAB offset TAB length TAB number
//! summary, as WACZ packs it     !meta 0 {"format": "cdxj-gzip-1.0", "filename": "index.cdx.gz"}
//!                               key timestamp {"offset": 0, "length": 1234}
//! data (.cdx.gz)                one gzip member per block of lines, back to back
//! locations (.loc)              shard TAB path TAB path …
//! ```
//!
//! A search reads the summary, then only the blocks that can hold an answer.

mod read;
mod summary;
mod write;

pub use read::{Cluster, ClusterLines, Location};
pub use summary::{Block, Summary};
pub use write::{Flavour, ZipNumOptions, ZipNumWriter};
