//! One process of Grange: settings read, backends opened, roles started in order and stopped in reverse, peers
//! answered, health told.
//!
//! A role is a function that takes opened handles and a shutdown; if a role is off, nothing of it is constructed.
//! Nothing below this crate knows which roles run together, and nothing here decides anything about the archive.

pub mod access;
pub mod data;
pub mod findings;
pub mod front;
pub mod health;
pub mod holders;
pub mod housekeeping;
pub mod late_archive;
pub mod node;
pub mod oai;
pub mod open;
pub mod peer;
pub mod restore;
pub mod role;
pub mod roles;
pub mod same_id;
pub mod secret;
pub mod serve;
pub mod settings;
pub mod supervise;
mod waiting;

pub use data::DataFolder;
/// Checking a proof needs no node, no data folder and no database.
pub use grange_archive::{Proof, Witness, check_proof};
pub use node::{Node, StartError};
pub use settings::Settings;

/// The version of this program, as told to people, peers and archives.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
