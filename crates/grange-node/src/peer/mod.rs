//! Nodes talking to nodes over HTTP, each proving to the other that it belongs to the same Grange.

pub mod auth;
pub mod client;
pub mod deposit;
pub mod elsewhere;
pub mod files;
pub mod known;
pub mod proof;
pub mod routes;
#[cfg(test)]
mod skew_tests;

pub use client::{PeerClient, PeerError};
pub use proof::{NodeToken, Refusal};
