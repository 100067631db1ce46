//! This node's word to others, for stores that lie on them.

use grange_base::Clock;
use grange_blob::{PeerAuth, SignedRequest};

use super::proof::NodeToken;

/// Signs for this node with the token that all nodes share.
#[derive(Clone, Debug)]
pub struct NodeAuth {
    pub node: String,
    pub token: NodeToken,
    pub clock: Clock,
}

impl PeerAuth for NodeAuth {
    fn sign(&self, method: &str, target: &str) -> SignedRequest {
        let nonce = crate::secret::random();
        let authorization = self.token.sign(&self.node, method, target, self.clock.now(), &nonce);
        SignedRequest { authorization, nonce }
    }

    fn proven(&self, nonce: &str, status: u16, proof: &str) -> bool {
        self.token.proven(nonce, status, proof)
    }
}
