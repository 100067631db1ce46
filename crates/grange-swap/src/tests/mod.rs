//! Whole servers in one process, asked over HTTP.

mod bed;
mod changes;
mod conflicts;
mod damage;
mod http;
mod listings;
mod moves;
mod network;
mod patience;
mod seeds;
