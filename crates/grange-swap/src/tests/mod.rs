//! Whole servers in one process, asked over HTTP.

mod bed;
mod conflicts;
mod http;
mod moves;
mod network;
mod patience;
