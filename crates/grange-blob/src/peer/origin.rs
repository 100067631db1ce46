//! Where a file lies, in words that every node of one Grange understands.
//!
//! An origin names a node by its id, never by an address: whoever fetches looks the address up in its own register of
//! nodes, and believes the answer only with the proof of the node token. So nobody can have a node fetch from a place
//! of his choosing.

use std::fmt::{self, Debug};
use std::sync::Arc;

use async_trait::async_trait;
use grange_base::{Chain, Clock};
use serde::{Deserialize, Serialize};

use super::{Peer, PeerAuth};
use crate::error::Error;

/// Where a file lies that others may fetch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The id of the node.
    pub node: String,
    #[serde(flatten)]
    pub at: At,
}

/// Where on that node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum At {
    /// In the store of that name.
    Store(String),
    /// Laid out for once, under a name that cannot be guessed.
    Offer(String),
}

impl At {
    /// The path below which it answers; `None` for a name that no store or offer has.
    pub(super) fn mount(&self) -> Option<String> {
        let (kind, name) = match self {
            Self::Store(name) => ("blob", name),
            Self::Offer(id) => ("offer", id),
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        (!name.is_empty() && name.chars().all(plain)).then(|| format!("/peer/v1/{kind}/{name}"))
    }

    /// The store or offer that answers at this path.
    pub(super) fn mounted(mount: &str) -> Option<Self> {
        let (kind, name) = mount.strip_prefix("/peer/v1/")?.split_once('/')?;
        match kind {
            "blob" => Some(Self::Store(name.to_owned())),
            "offer" => Some(Self::Offer(name.to_owned())),
            _ => None,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.at {
            At::Store(name) => write!(f, "store {name} of node {}", self.node),
            // Its name is half of what opens it.
            At::Offer(_) => write!(f, "a file of node {}", self.node),
        }
    }
}

/// The nodes that are known here.
#[async_trait]
pub trait Nodes: Debug + Send + Sync {
    /// `HOST:PORT` of the node with that id; `None` when there is none.
    async fn address(&self, node: &str) -> Result<Option<String>, String>;
}

/// How this node gets at what lies on others.
#[derive(Clone, Debug)]
pub struct Reach {
    nodes: Arc<dyn Nodes>,
    http: reqwest::Client,
    auth: Arc<dyn PeerAuth>,
    clock: Clock,
}

impl Reach {
    pub fn new(nodes: Arc<dyn Nodes>, auth: Arc<dyn PeerAuth>, clock: Clock) -> Result<Self, Error> {
        let http = super::http_client()
            .map_err(|source| Error::Unreachable { place: "peers".to_owned(), source: source.into() })?;
        Ok(Self { nodes, http, auth, clock })
    }

    /// The store or offer, to be read from. The error is a reason: the node is not known here, does not answer, or is
    /// another one (an address such as `0.0.0.0` leads to whoever asks).
    pub async fn peer(&self, origin: &Origin) -> Result<Peer, String> {
        let mount = origin.at.mount().ok_or("no store and no offer has such a name")?;
        let address = self.nodes.address(&origin.node).await?;
        let address = address.ok_or_else(|| format!("the node {} is not known here", origin.node))?;
        let peer = Peer {
            http: self.http.clone(),
            place: format!("peer://{address}{mount}"),
            address,
            mount,
            auth: Arc::clone(&self.auth),
            clock: self.clock.clone(),
            offers: None,
            origin: Some(origin.clone()),
        };
        match peer.node_id().await {
            Ok(node) if node == origin.node => Ok(peer),
            Ok(_) => Err(format!("another node answers at {}", peer.place)),
            Err(error) => Err(Chain(&error).to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_stores_and_offers_can_be_named() {
        for (at, mount) in [
            (At::Store("one".to_owned()), Some("/peer/v1/blob/one")),
            (At::Offer("0a1b".to_owned()), Some("/peer/v1/offer/0a1b")),
            (At::Store(String::new()), None),
            (At::Store("..".to_owned()), None),
            (At::Store("one/../../hello".to_owned()), None),
            (At::Offer("a?b".to_owned()), None),
            (At::Offer("a@evil:80".to_owned()), None),
            (At::Store("a%2fb".to_owned()), None),
        ] {
            assert_eq!(at.mount().as_deref(), mount, "{at:?}");
            if let Some(mount) = mount {
                assert_eq!(At::mounted(mount), Some(at));
            }
        }
    }

    #[test]
    fn an_origin_reads_as_it_is_written_and_keeps_its_offer_to_itself() {
        let origin = Origin { node: "n1".to_owned(), at: At::Offer("secret".to_owned()) };
        let text = serde_json::to_string(&origin).unwrap();
        assert_eq!(text, r#"{"node":"n1","offer":"secret"}"#);
        assert_eq!(serde_json::from_str::<Origin>(&text).unwrap(), origin);
        assert!(!origin.to_string().contains("secret"));
        for wrong in [r#"{"node":"n1"}"#, r#"{"node":"n1","url":"http://x/"}"#, r#"{"offer":"x"}"#] {
            assert!(serde_json::from_str::<Origin>(wrong).is_err(), "{wrong}");
        }
    }
}
