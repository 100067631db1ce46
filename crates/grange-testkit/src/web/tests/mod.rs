//! The web against its own promises.

mod client;
mod foreign;
mod model;
mod served;
mod wire;
