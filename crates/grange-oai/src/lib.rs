//! One OAI-PMH job becomes records on disk. It reaches no db, bus, blob or index.
//!
//! ```text
//! list (pure: what to ask next) ── fetch (one request, with patience) ── reader (records as they arrive)
//!        ▲                                                                     │ a page
//!        └───────────────────── journal, synced once per page ◄──── judge ─────┘
//!                                  └── keeper: compare ── files ── ledger: rows and position in one transaction
//! ```
//!
//! Facts are kept by whoever runs a harvest, behind the [`Ledger`] trait; this crate decides and writes files.

mod fetch;
pub mod filter;
mod friends;
pub mod harvest;
pub mod normalize;
mod outgoing;
mod probe;
pub mod provide;
mod responses;
pub mod rules;
pub mod settings;
pub mod store;
mod unpack;
pub mod validate;

pub use fetch::FetchError;
pub use friends::{fetch_friends, friends};
pub use harvest::{Ended, Harvest, Judge, Ledger, LedgerError, Order, Outcome, rules_of};
pub use probe::probe;
pub use responses::answers_below;
pub use settings::Settings;
