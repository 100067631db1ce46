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
//!
//! An index is a folder of one node, and one node keeps it, by a lease in the database: only its [`Keeper`] opens it for
//! writing, and before it does the folder and the rows are made to agree. Others serve copies of it.

mod copies;
mod feeder;
mod fetches;
mod file_stamp;
mod folder_owner;
mod foreign;
mod keeper;
pub mod mirror;
mod reading;
mod reconcile;
mod rules;
mod settings;
mod shelf;
mod taking;
mod watcher;

#[cfg(test)]
mod tests;

pub use copies::{CopyError, Follower, Publisher};
pub use feeder::{FeedError, Feeder, OpenArchive};
pub use keeper::Keeper;
pub use rules::read_rules;
pub use settings::IndexSettings;
pub use shelf::{KeptIndex, Shelf, ShelfError};
pub use watcher::{WatchError, Watcher, open_all};

/// Runs work that waits for disks.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        // The worker stops the process on a panic of its own, as it shall on this one.
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime stops, and drops this task where it waits next.
            Err(_) => std::future::pending().await,
        },
    }
}
