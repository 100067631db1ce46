//! Keeps bytes by name: in memory, on this machine's disks, on a peer node, in an S3 bucket, or in a SWAP
//! collection.
//!
//! What holds here:
//!
//! - **After `put` says `Ok` the bytes are durable and proven**: written aside, synced, read back from where they lie
//!   by a second implementation of the digest, renamed into place, folder synced. Before that nothing is visible,
//!   after an error neither. Putting the same bytes again changes nothing.
//! - **A stored file never changes.** Other bytes under a known name are refused; removing means moving to the attic,
//!   and only for who names the checksum of what lies there.
//! - **No checksum is believed.** What a sender announces is compared with what is computed here.
//! - **A missing file is an answer**, given at once.
//! - **Plain files.** On disk a file lies under its own name in `filedir`, readable with all Grange software gone.
//!
//! What it must never know: what a replica is, how many there should be, or what the bytes mean.

pub mod blob;
pub mod error;
pub mod peer;
pub mod settings;

mod buffers;
mod check;
mod digest;
mod disk;
mod memory;
mod open;
#[cfg(feature = "s3")]
mod s3;
mod swap;

#[cfg(test)]
mod conformance;

pub use blob::{
    Blob, Listed, MARKER, MarkedPart, Opened, Source, Space, Stat, Stored, Taking, UnlistedFiles, sum_path,
};
pub use disk::{Disk, DiskSettings, FreeSpace, Placement, Room};
pub use error::Error;
pub use memory::Memory;
pub use open::{Context, mount, open, open_marked, peer_at};
pub use peer::{Nodes, Offer, Offers, Origin, Peer, PeerAuth, Reach, SignedRequest};
#[cfg(feature = "s3")]
pub use s3::{BucketFile, BucketSettings, Buckets, S3, S3Settings, is_bucket_url};
pub use settings::Settings;
pub use swap::Swap;
