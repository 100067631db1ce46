//! A bed of records made by hand, for the tests of every part.

mod bed;
mod hidden;
pub(crate) mod samples;

pub(crate) use bed::{Bed, add_many, gzip, http, record, revisit};
