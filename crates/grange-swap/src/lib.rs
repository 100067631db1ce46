//! Simple Web-Accessible Preservation: plain files spread over machines by one rule, with no catalogue anywhere.
//!
//! The file system and the partition files are the truth; nothing here knows SQL. From the bottom up: `place`, `name`
//! and `collection` (pure), `partition` and `tree` (one disk), `view` and `route` (who answers for a name, pure),
//! `lifecycle` and `gate` (which record holds), `node` (one server's state), `peer` (servers among themselves), `conflict`, `store`, `removal`, `listing`, `verify`,
//! `change` and `moves` (the acts), `http` and `server` on top; `admin` is the wire form of management and its client.
//!
//! What holds here:
//!
//! - **A name is given once, by one file system call on one machine.** Whoever gets a 201 has its bytes synced there.
//! - **No name is a file on one slice and a directory on another**, so all slices copied into one folder are the
//!   collection.
//! - **At every moment of a move a file is on its old slice, on both with equal bytes, or on the new one.**
//! - **A record with a higher epoch replaces a lower one**, and no server gives names by a lower one afterwards. One epoch
//!   names one record; a removal is final.
//! - **A namespace has one living record.** Every server agrees before a name is given, and none keeps two that overlap.

pub mod access;
pub mod admin;
pub mod collection;
pub mod digest;
pub mod error;
pub mod gate;
pub mod lifecycle;
pub mod listing;
#[doc(hidden)]
pub mod model;
pub mod moves;
pub mod name;
pub mod node;
pub mod partition;
mod pending;
pub mod place;
pub mod route;
pub mod server;
pub mod settings;
pub mod tree;
pub mod verify;
pub mod view;

mod anything;
mod change;
mod conflict;
mod http;
mod naming;
mod peer;
mod properties;
mod removal;
mod simulation;
mod store;
mod sums;

#[doc(hidden)]
pub use anything::read_anything;
pub use collection::{Collection, Layout, Slice};
pub use error::Error;
pub use name::{LocalPath, Namespace};
pub use partition::Partition;
pub use place::Point;
pub use server::Server;
pub use settings::Settings;

#[cfg(test)]
mod tests;
