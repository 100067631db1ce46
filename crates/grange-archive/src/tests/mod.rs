//! Faults, each counted: what was broken, what was found, what was mended.

mod bed;
mod crash;
mod damage;
mod gate;
mod log;
mod names;
mod rebuild;
mod record;
mod recovery;
mod store;
mod throttle;
