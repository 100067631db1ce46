//! Collections as a node keeps them: their rows in the database, their indexes in the data folder, their files wherever
//! they lie.
//!
//! ```text
//! collection_files ──claim──▶ Feeder: reads a file once ──commit──▶ DIR/index/NAME ──mark──▶ indexed
//!                                                                       │
//! collections, access_rules ──────────▶ Watcher ──opens, refreshes──────┴──▶ Collections, for the routes
//! ```
//!
//! The order is what makes it safe to die anywhere: captures are on disk before the mark is, and a file that the index
//! already has changes nothing. So after a crash the same file is read again and its mark made, with no capture twice.

mod copies;
mod feeder;
mod file_stamp;
mod foreign;
pub mod mirror;
mod reading;
mod rules;
mod settings;
mod shelf;
mod taking;
mod watcher;

#[cfg(test)]
mod tests;

pub use copies::{CopyError, Follower, Publisher};
pub use feeder::{FeedError, Feeder, OpenArchive};
pub use rules::read_rules;
pub use settings::IndexSettings;
pub use shelf::{Shelf, ShelfError};
pub use watcher::{WatchError, Watcher, open_all};
