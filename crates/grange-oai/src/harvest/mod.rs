//! One harvest: decisions that know no clock and no IO, and a thin loop that acts on them.

mod batch;
mod conclude;
mod entry;
mod existence;
mod judge;
mod keep;
pub mod ledger;
mod limits;
mod looped;
mod order;
pub mod position;
mod queue;
mod receive;
mod repeats;
mod run;
mod segments;
mod start;
mod window;
mod work;

pub use judge::{Judge, UnusableRules};
pub use ledger::{Ledger, LedgerError};
pub use order::{Ended, Order, Outcome, rules_of};
pub use position::{Asked, Position};
pub use run::Harvest;

#[cfg(test)]
mod tests;
