//! From captures to files: WARC records, their order on disk, chunks and their manifests.
//!
//! Workers pack the records of a URL into a [`Parcel`]; one committer thread appends parcels to the open files,
//! writes the log lines, and only then tells the frontier. The ends of the files travel in the same frontier
//! commit (see [`state`]), so that after a crash the files are cut back to exactly what the frontier knows of.

pub mod capture;
pub mod chunk;
pub mod files;
pub mod logs;
pub mod oracle;
pub mod parcel;
pub mod recorder;
pub mod settings;
pub mod state;
pub mod unsynced;

pub use oracle::{DuplicateOracle, NoOracle, Original};
pub use parcel::{Parcel, Scratch};
pub use recorder::{Desk, Ready, Recorder};
pub use settings::{Dedup, DedupBy, Write};
