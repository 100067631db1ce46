//! The mutual proof: both sides know one secret, the node token, and neither ever sends it.
//!
//! ```text
//! request   Authorization: Grange-Peer node=<id> at=<unix seconds> nonce=<32 hex> mac=<64 hex>
//!           mac = HMAC-SHA256(token, "grange-peer-1 request" LF method LF path?query LF node LF at LF nonce)
//! response  Grange-Peer-Proof: <64 hex>
//!           proof = HMAC-SHA256(token, "grange-peer-1 response" LF nonce LF status)
//! ```
//!
//! A server that does not know the token cannot prove itself, so a client never believes an impostor; a request
//! heard on the wire cannot be sent again, because its nonce was used and its time passes. Bodies are not covered:
//! files carry their own checksums, which the archive compares with what it knows.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use data_encoding::HEXLOWER;
use hmac::{Hmac, KeyInit, Mac};
use jiff::Timestamp;
use sha2::Sha256;

/// How far two clocks may differ before nodes stop believing each other. Kerberos allows the same.
const SKEW_MAX: Duration = Duration::from_secs(300);

/// Nonces remembered at most: ten minutes at 1,000 requests a second. Beyond that requests are refused,
/// not believed blindly.
const NONCES_MAX: usize = 600_000;

/// The shortest secret taken, in bytes of text; a made one has 64.
const TOKEN_BYTES_MIN: usize = 32;

/// The secret that all nodes of one Grange share.
#[derive(Clone)]
pub struct NodeToken(String);

/// The token file is missing, unreadable or too weak.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error(
        "cannot read the node token from {path}; copy the file from another node of this Grange, readable only by its user"
    )]
    Unreadable {
        path: String,
        #[source]
        source: std::io::Error,
    },
    #[error(
        "the node token in {path} is shorter than {TOKEN_BYTES_MIN} characters; copy the whole file from another node"
    )]
    TooShort { path: String },
    #[error("cannot make a node token in {path}")]
    Unwritable {
        path: String,
        #[source]
        source: std::io::Error,
    },
}

/// Why a peer was not believed. Told to the peer in general terms, logged in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("the request carries no Grange-Peer authorization")]
    Absent,
    #[error("the Grange-Peer authorization is ill-formed")]
    IllFormed,
    #[error(
        "the clocks of the two nodes differ by more than {} s: the sender's says {theirs}, this node's {ours}; set the clock \
         of the machine that is wrong",
        SKEW_MAX.as_secs()
    )]
    Skewed { theirs: Timestamp, ours: Timestamp },
    #[error("the request was seen before")]
    Replayed,
    #[error("the two nodes do not share the same node token")]
    Wrong,
    #[error("more requests than can be remembered; try again later")]
    Busy,
}

/// A refused request. With the nonce of one that was signed with our token: the sender then gets a proof that the answer
/// comes from a node that shares the token, and does not suspect the token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    pub refusal: Refusal,
    pub nonce: Option<String>,
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self { refusal, nonce: None }
    }
}

impl NodeToken {
    /// Reads the token; makes the file with a new one, readable only by its owner, when it is absent.
    pub fn read_or_make(path: &Path) -> Result<Self, TokenError> {
        let name = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) if text.trim().len() < TOKEN_BYTES_MIN => Err(TokenError::TooShort { path: name }),
            Ok(text) => Ok(Self(text.trim().to_owned())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let token = crate::secret::random();
                crate::secret::write(path, &token)
                    .map_err(|source| TokenError::Unwritable { path: name, source })?;
                Ok(Self(token))
            }
            Err(source) => Err(TokenError::Unreadable { path: name, source }),
        }
    }

    #[cfg(test)]
    pub(crate) fn from_text(text: &str) -> Self {
        Self(text.to_owned())
    }

    fn mac(&self, parts: &[&str]) -> Hmac<Sha256> {
        // HMAC takes keys of any length.
        let mut mac = Hmac::<Sha256>::new_from_slice(self.0.as_bytes()).expect("any key length will do");
        for (index, part) in parts.iter().enumerate() {
            if index > 0 {
                mac.update(b"\n");
            }
            mac.update(part.as_bytes());
        }
        mac
    }

    /// The `Authorization` value for a request.
    pub fn sign(&self, node: &str, method: &str, target: &str, now: Timestamp, nonce: &str) -> String {
        let at = now.as_second().to_string();
        let mac = self.mac(&["grange-peer-1 request", method, target, node, &at, nonce]);
        let mac = HEXLOWER.encode(&mac.finalize().into_bytes());
        format!("Grange-Peer node={node} at={at} nonce={nonce} mac={mac}")
    }

    /// The proof that answers a nonce.
    pub fn prove(&self, nonce: &str, status: u16) -> String {
        let mac = self.mac(&["grange-peer-1 response", nonce, &status.to_string()]);
        HEXLOWER.encode(&mac.finalize().into_bytes())
    }

    /// Whether the answer came from someone who knows the token.
    pub fn proven(&self, nonce: &str, status: u16, proof: &str) -> bool {
        let Ok(bytes) = HEXLOWER.decode(proof.as_bytes()) else { return false };
        self.mac(&["grange-peer-1 response", nonce, &status.to_string()]).verify_slice(&bytes).is_ok()
    }
}

impl fmt::Debug for NodeToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NodeToken(…)")
    }
}

/// Checks requests and remembers their nonces until their time has passed.
#[derive(Debug)]
pub struct Gate {
    token: NodeToken,
    seen: Mutex<HashMap<String, Timestamp>>,
}

/// A believed request: who sent it, and the nonce its answer must prove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    pub node: String,
    pub nonce: String,
}

impl Gate {
    pub fn new(token: NodeToken) -> Self {
        Self { token, seen: Mutex::default() }
    }

    pub fn token(&self) -> &NodeToken {
        &self.token
    }

    /// Believes a request once.
    pub fn admit(
        &self,
        authorization: Option<&str>,
        method: &str,
        target: &str,
        now: Timestamp,
    ) -> Result<Peer, Refused> {
        let fields =
            authorization.ok_or(Refusal::Absent)?.strip_prefix("Grange-Peer ").ok_or(Refusal::Absent)?;
        let field = |name: &str| {
            fields
                .split(' ')
                .find_map(|field| field.strip_prefix(name)?.strip_prefix('='))
                .ok_or(Refusal::IllFormed)
        };
        let (node, at, nonce, mac) = (field("node")?, field("at")?, field("nonce")?, field("mac")?);
        let mac = HEXLOWER.decode(mac.as_bytes()).map_err(|_| Refusal::IllFormed)?;
        let signed = self.token.mac(&["grange-peer-1 request", method, target, node, at, nonce]);
        signed.verify_slice(&mac).map_err(|_| Refusal::Wrong)?;
        let at = at.parse().ok().and_then(|at| Timestamp::from_second(at).ok()).ok_or(Refusal::IllFormed)?;
        let known = |refusal| Refused { refusal, nonce: Some(nonce.to_owned()) };
        if now.duration_since(at).unsigned_abs() > SKEW_MAX {
            return Err(known(Refusal::Skewed { theirs: at, ours: now }));
        }
        self.remember(nonce, now).map_err(known)?;
        Ok(Peer { node: node.to_owned(), nonce: nonce.to_owned() })
    }

    fn remember(&self, nonce: &str, now: Timestamp) -> Result<(), Refusal> {
        let mut seen = self.seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if seen.contains_key(nonce) {
            return Err(Refusal::Replayed);
        }
        if seen.len() >= NONCES_MAX {
            // A nonce may be forgotten once its request would be refused as too old anyway.
            seen.retain(|_, at| now.duration_since(*at).unsigned_abs() <= 2 * SKEW_MAX);
            if seen.len() >= NONCES_MAX {
                return Err(Refusal::Busy);
            }
        }
        seen.insert(nonce.to_owned(), now);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn token(letter: &str) -> NodeToken {
        NodeToken::from_text(&letter.repeat(64))
    }

    #[test]
    fn a_request_is_believed_once_for_what_it_asked() {
        let gate = Gate::new(token("a"));
        let signed = token("a").sign("n1", "GET", "/peer/v1/hello?x=1", NOW, "00ff");
        let skewed = |at| Refusal::Skewed { theirs: NOW, ours: Timestamp::from_second(at).unwrap() };
        let cases = [
            (None, "GET", "/peer/v1/hello?x=1", 0, Err(Refusal::Absent)),
            (Some("Bearer x"), "GET", "/peer/v1/hello?x=1", 0, Err(Refusal::Absent)),
            (Some("Grange-Peer node=n1"), "GET", "/peer/v1/hello?x=1", 0, Err(Refusal::IllFormed)),
            (Some(signed.as_str()), "PUT", "/peer/v1/hello?x=1", 0, Err(Refusal::Wrong)),
            (Some(signed.as_str()), "GET", "/peer/v1/hello?x=2", 0, Err(Refusal::Wrong)),
            (Some(signed.as_str()), "GET", "/peer/v1/hello?x=1", 301, Err(skewed(301))),
            (Some(signed.as_str()), "GET", "/peer/v1/hello?x=1", -301, Err(skewed(-301))),
            (Some(signed.as_str()), "GET", "/peer/v1/hello?x=1", 300, Ok(())),
            (Some(signed.as_str()), "GET", "/peer/v1/hello?x=1", 0, Err(Refusal::Replayed)),
        ];
        for (authorization, method, target, at, expected) in cases {
            let now = Timestamp::from_second(at).unwrap();
            let answer = gate.admit(authorization, method, target, now);
            // Only to a sender that knows the token is anything proven.
            let proven = answer.as_ref().is_err_and(|refused| refused.nonce.is_some());
            let knows = matches!(expected, Err(Refusal::Skewed { .. } | Refusal::Replayed));
            assert_eq!(proven, knows, "{authorization:?} {method} {target} {at}");
            let answer = answer.map(|_| ()).map_err(|refused| refused.refusal);
            assert_eq!(answer, expected, "{authorization:?} {method} {target} {at}");
        }
    }

    #[test]
    fn another_token_is_refused_and_cannot_answer() {
        let signed = token("b").sign("n1", "GET", "/", NOW, "00");
        let refused = Gate::new(token("a")).admit(Some(&signed), "GET", "/", NOW).unwrap_err();
        assert_eq!(refused, Refusal::Wrong.into());
        let proof = token("a").prove("00", 200);
        assert!(token("a").proven("00", 200, &proof));
        assert!(!token("b").proven("00", 200, &proof));
        assert!(!token("a").proven("01", 200, &proof));
        assert!(!token("a").proven("00", 403, &proof));
        assert!(!token("a").proven("00", 200, "zz"));
    }

    #[test]
    fn a_made_token_is_kept_private_and_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secrets/node.token");
        let made = NodeToken::read_or_make(&path).unwrap();
        assert_eq!(made.0, NodeToken::read_or_make(&path).unwrap().0);
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::write(&path, "short").unwrap();
        assert!(matches!(NodeToken::read_or_make(&path), Err(TokenError::TooShort { .. })));
        assert_eq!(format!("{made:?}"), "NodeToken(…)");
    }
}
