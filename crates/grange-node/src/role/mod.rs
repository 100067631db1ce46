//! Roles with more to say than a function.

pub mod harvester;
pub mod indexer;
pub mod replay;
pub mod swap;
