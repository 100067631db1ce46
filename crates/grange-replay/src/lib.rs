//! The page as it looked: Wayback mode, proxy mode, CDX and Memento APIs.
//!
//! Archived pages are foreign code. They live on an origin of their own, and nothing here knows users' sessions, the
//! admin pages or how to fetch from the live web.

pub mod capture;
mod collection;
pub mod holdings;

#[cfg(test)]
mod tests;
mod holdings;
pub mod rewrite;

pub use collection::{Collection, Collections};
pub use holdings::{Holdings, HoldingsError};
