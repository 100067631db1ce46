//! Faults, each counted: what was broken, what was found, what was mended.

mod bed;
mod checks;
mod contested;
mod crash;
mod damage;
mod gate;
mod given_back;
mod interrupted;
mod log;
mod names;
mod origins;
mod outcomes;
mod presence;
mod rebuild;
mod record;
mod recovery;
mod removal;
mod sources;
mod store;
mod throttle;
mod watch;
mod withdrawals;
