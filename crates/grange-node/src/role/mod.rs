//! Roles that need more than a function: one file each.

pub mod indexer;
