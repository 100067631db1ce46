//! One harvest: decisions that know no clock and no IO, and a thin loop that acts on them.

mod batch;
mod judge;
pub mod ledger;
mod limits;
pub mod position;
mod run;
mod window;

pub use judge::{Judge, UnusableRules};
pub use ledger::{Ledger, LedgerError};
pub use position::{Asked, Position};
pub use run::{Ended, Harvest, Order};
