//! The page as it looked: Wayback mode, proxy mode, CDX and Memento APIs.
//!
//! Archived pages are foreign code. They live on an origin of their own, and nothing here knows users' sessions, the
//! admin pages or how to fetch from the live web.

mod access_check;
pub mod capture;
pub mod cdx;
pub mod collect;
mod collection;
mod export;
pub mod holdings;
pub mod local;
mod lookup_pool;
mod memento;
mod pages;
mod piece_channel;
pub mod proxy;
mod reader;
pub mod rewrite;
mod serve;
mod settings;
pub mod wayback;

#[cfg(test)]
mod tests;

pub use access_check::Person;
pub use collection::{Account, Collection, Collections};
pub use grange_index::{Index, Settings as IndexSettings};
pub use holdings::{Holdings, HoldingsError};
pub use serve::serve;
pub use settings::Settings;
pub use wayback::{RewritePool, routes};
