//! Turns due harvest definitions into runs and jobs, and watches over jobs whose harvesters died.
//!
//! ```text
//! due definition ── claim ──▶ configurations ── expect, sort, split ──▶ drafts ── commit ──▶ jobs, run, next date
//! ```
//!
//! Invariants:
//! - What is decided is decided in pure functions (`expect`, `split`, `dedup`, `plan::piece`) without clock and IO.
//! - Each due run is planned once, however many schedulers run and whenever they die: a plan is drafts until one
//!   transaction makes them jobs and moves the date on.
//! - Every configuration of a run is in exactly one job, or left out for a reason that is counted.
//!
//! It must never know crawlers or how a job is crawled.

pub mod dedup;
pub mod expect;
pub mod plan;
mod scheduler;
pub mod settings;
pub mod split;
#[cfg(test)]
mod tests;

pub use plan::{Preview, preview};
pub use scheduler::{Error, Scheduler};
pub use settings::{DeadHarvester, Expectation, Method, Settings, Splitting};
