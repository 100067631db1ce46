//! Servers among themselves: one persistent connection from each to each, proven on both ends by the shared key.
//!
//! It starts as an HTTP request on the one port a server has (`Upgrade: swap-peer/1`), so that there is one address to
//! configure and to let through. After that frames: a length, JSON, and a proof over both that counts the frames.

pub(crate) mod call;
pub(crate) mod clocks;
pub(crate) mod frame;
pub(crate) mod handshake;
pub(crate) mod link;
pub(crate) mod serve;

pub(crate) const PROTOCOL: &str = "swap-peer/1";
