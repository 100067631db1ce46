//! Records on disk: where each one lies, and how a page of them gets there.

pub mod files;
pub mod journal;
pub mod path;
pub mod place;
