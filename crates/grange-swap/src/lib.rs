//! Simple Web-Accessible Preservation: plain files spread over machines by one rule, with no catalogue anywhere.
//!
//! The file system and the partition files are the truth; nothing here knows SQL.

pub mod collection;
pub mod digest;
pub mod error;
pub mod name;
pub mod partition;
pub mod place;
pub mod tree;

mod properties;

pub use collection::{Collection, Layout, Slice};
pub use error::Error;
pub use name::{LocalPath, Namespace};
pub use partition::Partition;
pub use place::Point;
