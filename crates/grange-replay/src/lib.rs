//! The page as it looked: Wayback mode, proxy mode, CDX and Memento APIs.
//!
//! Archived pages are foreign code. They live on an origin of their own, and nothing here knows users' sessions, the
//! admin pages or how to fetch from the live web.

pub mod capture;
pub mod cdx;
pub mod collect;
mod collection;
pub mod holdings;
mod lines;
mod memento;
mod pages;
mod reader;
pub mod rewrite;
pub mod wayback;

#[cfg(test)]
mod tests;

pub use collection::{Collection, Collections};
pub use holdings::{Holdings, HoldingsError};
