//! The wire form of every act a person may perform, and a small client.
//!
//! The same types are what the server answers, what the command line prints with `--json`, and what other
//! programs read. The client speaks over any [`Transport`]: HTTP to a running node, or straight into a node's
//! router inside this process, so that a command works the same way with and without a server.

pub mod client;
pub mod error;
pub mod wire;

pub use client::{Body, Client, HttpTransport, Transport};
pub use error::{ApiError, ErrorBody};

/// All JSON acts live below this path; a change that would break a client gets a new number.
pub const BASE: &str = "/api/v1";
