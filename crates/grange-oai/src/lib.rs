//! One OAI-PMH job becomes records on disk. It reaches no db, bus, blob or index.
//!
//! ```text
//! list (pure: what to ask next) ── fetch (one request, with patience) ── reader (records as they arrive)
//!        ▲                                                                     │ a batch
//!        └──── ledger: rows and position in one transaction ◄── files, synced ─┘
//! ```
//!
//! Facts are kept by whoever runs a harvest, behind a trait; this crate decides and writes files.

pub mod store;
