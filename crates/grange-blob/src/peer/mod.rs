//! Bytes on another node's disks, over HTTP.
//!
//! The asking side is [`Peer`]; the side that holds the bytes is [`serve::Served`]. Each proves to the other that
//! it knows the node token, through [`PeerAuth`]; the bytes are proven by their checksums.
//!
//! Bytes go straight from where they lie to where they are kept ([`crate::Blob::pull`]), unless the keeper cannot get at
//! them; then they are sent. Both ways go on where they were when a wire broke.

mod client;
mod download;
mod giving;
mod offer;
mod origin;
mod port;
pub(crate) mod pull;
mod range;
pub mod serve;
mod taking;
mod upload;
mod wire;

use std::fmt::Debug;

pub use client::Peer;
use client::{ANSWER_WITHIN, Answer, LONGEST, WATCH_EVERY, http_client, optional, patience};
pub use offer::{Offer, Offers};
pub use origin::{At, Nodes, Origin, Reach};

/// A signed request's header and the nonce that the answer must prove.
#[derive(Clone, Debug)]
pub struct SignedRequest {
    /// The value of `Authorization`.
    pub authorization: String,
    pub nonce: String,
}

/// How nodes know each other.
pub trait PeerAuth: Debug + Send + Sync {
    /// Signs a request for `target`, the path with its query.
    fn sign(&self, method: &str, target: &str) -> SignedRequest;

    /// Whether the answer with this status came from somebody who knows the token.
    fn proven(&self, nonce: &str, status: u16, proof: &str) -> bool;
}
