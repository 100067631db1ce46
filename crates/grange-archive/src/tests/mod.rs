//! Faults, each counted: what was broken, what was found, what was mended.

mod bed;
mod crash;
mod damage;
mod gate;
mod log;
mod names;
mod rebuild;
mod record;
mod store;
mod throttle;
mod watch;
