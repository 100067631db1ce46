//! Asking another node.

use std::time::Duration;

use bytes::Bytes;
use grange_base::Clock;
use http::{Method, StatusCode};
use serde::de::DeserializeOwned;

use super::proof::NodeToken;
use super::routes::PROOF;

/// Long enough for a loaded node, short enough to notice a dead one. Transfers of files set their own.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// Why another node could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    #[error("cannot reach the node at {address}")]
    Unreachable {
        address: String,
        #[source]
        source: reqwest::Error,
    },
    #[error("the node at {address} does not prove that it knows the node token; nothing it says is believed")]
    Unproven { address: String },
    #[error("the node at {address} refused {what}: {reason}")]
    Refused { address: String, what: String, status: StatusCode, reason: String },
    #[error("the node at {address} answered something else than expected")]
    Foreign {
        address: String,
        #[source]
        source: serde_json::Error,
    },
}

/// Speaks for this node to others.
#[derive(Clone, Debug)]
pub struct PeerClient {
    node: String,
    token: NodeToken,
    clock: Clock,
    http: reqwest::Client,
}

impl PeerClient {
    pub fn new(node: &str, token: NodeToken, clock: Clock) -> Result<Self, reqwest::Error> {
        // A signed request goes to the node it was signed for and nowhere else.
        let http = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(ANSWER_WITHIN)
            .build()?;
        Ok(Self { node: node.to_owned(), token, clock, http })
    }

    /// Sends one request to `http://address/path` and believes the answer only with its proof.
    pub async fn call<T: DeserializeOwned>(
        &self,
        address: &str,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<T, PeerError> {
        let nonce = crate::secret::random();
        let authorization = self.token.sign(&self.node, method.as_str(), path, self.clock.now(), &nonce);
        let unreachable = |source| PeerError::Unreachable { address: address.to_owned(), source };
        let response = self
            .http
            .request(method.clone(), format!("http://{address}{path}"))
            .header(http::header::AUTHORIZATION, authorization)
            .timeout(ANSWER_WITHIN)
            .body(body)
            .send()
            .await
            .map_err(unreachable)?;
        let status = response.status();
        let proof = response.headers().get(PROOF).and_then(|proof| proof.to_str().ok()).unwrap_or_default();
        let proven = self.token.proven(&nonce, status.as_u16(), proof);
        // A refusal of our own request comes without proof when the tokens differ: say that, it is the likely cause.
        if !proven && status != StatusCode::UNAUTHORIZED {
            return Err(PeerError::Unproven { address: address.to_owned() });
        }
        let body = response.bytes().await.map_err(unreachable)?;
        if !status.is_success() {
            let reason = String::from_utf8_lossy(&body).trim().to_owned();
            let what = format!("{method} {path}");
            return Err(PeerError::Refused { address: address.to_owned(), what, status, reason });
        }
        serde_json::from_slice(&body)
            .map_err(|source| PeerError::Foreign { address: address.to_owned(), source })
    }
}
