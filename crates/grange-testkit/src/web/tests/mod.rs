//! The web against its own promises.

mod client;
mod served;
