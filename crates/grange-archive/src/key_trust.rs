//! Which keys may sign the log. Pure: decided from what the rows, the witnesses and the node token say.
//!
//! A row is not believed because it is there: who can write to the database can write one. A key is trusted when it is
//! this node's own, when its announcement proves knowledge of the node token, or when a trusted key signed it. The last
//! is what others can follow without the token: witnesses and proofs carry those signatures.

use std::collections::BTreeMap;

use aws_lc_rs::hmac;
use data_encoding::HEXLOWER;
use grange_db::{Checkpoint, KeyVouch, LogKey};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::keys::{SigningKey, verified};

/// A key's signature over another key, with all that it is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SignedVouch {
    /// The key that is vouched for, in hexadecimal.
    pub public_key: String,
    /// The node that it belongs to.
    pub node: String,
    /// The key that signed.
    pub by_key: String,
    #[schemars(with = "String")]
    pub at: Timestamp,
    pub signature: String,
}

/// The vouches of one key that witnesses and proofs carry: the oldest say it all, and a witness stays small.
const VOUCHES_PER_KEY_MAX: usize = 3;

fn vouch_text(public_key: &str, node: &str, at: Timestamp) -> String {
    format!("grange log key 1\n{public_key}\n{node}\n{at}\n")
}

impl SignedVouch {
    pub(crate) fn holds(&self) -> bool {
        verified(&self.by_key, &vouch_text(&self.public_key, &self.node, self.at), &self.signature)
    }
}

/// Signs another key.
pub(crate) fn vouch(key: &SigningKey, public_key: &str, node: &str, at: Timestamp) -> KeyVouch {
    // The database keeps microseconds, and what is signed must read back the same.
    let at = Timestamp::from_microsecond(at.as_microsecond()).unwrap_or(at);
    let signature = key.sign(&vouch_text(public_key, node, at));
    KeyVouch { by_key: key.public_key(), at, signature }
}

/// Shows to who knows the token that whoever announces the key knows it too.
pub(crate) fn announcement_proof(token: &str, public_key: &str, node: &str) -> String {
    HEXLOWER.encode(hmac::sign(&mac_key(token), announcement(public_key, node).as_bytes()).as_ref())
}

fn mac_key(token: &str) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, token.as_bytes())
}

fn announcement(public_key: &str, node: &str) -> String {
    format!("grange log key announcement 1\n{public_key}\n{node}\n")
}

pub(crate) fn announced_with(token: &str, key: &LogKey) -> bool {
    let Some(proof) = key.proof.as_deref().and_then(|proof| HEXLOWER.decode(proof.as_bytes()).ok()) else {
        return false;
    };
    hmac::verify(&mac_key(token), announcement(&key.public_key, &key.node).as_bytes(), &proof).is_ok()
}

/// The vouches of the rows, in the form that travels.
pub(crate) fn signed_vouches(keys: &[LogKey]) -> Vec<SignedVouch> {
    let of_key = |key: &LogKey| {
        let (public_key, node) = (key.public_key.clone(), key.node.clone());
        let vouches = key.vouches.iter().take(VOUCHES_PER_KEY_MAX).cloned();
        let signed = vouches.map(move |KeyVouch { by_key, at, signature }| SignedVouch {
            public_key: public_key.clone(),
            node: node.clone(),
            by_key,
            at,
            signature,
        });
        signed.collect::<Vec<_>>()
    };
    keys.iter().flat_map(of_key).collect()
}

/// The keys that may sign.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeyTrust {
    /// Trusted keys, with when they were retired.
    trusted: BTreeMap<String, Option<Timestamp>>,
    known: Vec<String>,
}

impl KeyTrust {
    /// `own` and the keys whose announcement the token proves, and all that these vouch for, one by way of another.
    pub(crate) fn new(own: &str, token: Option<&str>, keys: &[LogKey], more: &[SignedVouch]) -> Self {
        let retired = |public_key: &str| {
            keys.iter().find(|key| key.public_key == public_key).and_then(|key| key.retired_at)
        };
        let mut trusted = BTreeMap::from([(own.to_owned(), retired(own))]);
        let proven = keys.iter().filter(|key| token.is_some_and(|token| announced_with(token, key)));
        trusted.extend(proven.map(|key| (key.public_key.clone(), key.retired_at)));
        let mut vouches = signed_vouches(keys);
        vouches.extend_from_slice(more);
        loop {
            let count = trusted.len();
            for vouch in &vouches {
                let Some(signer_retired) = trusted.get(&vouch.by_key) else { continue };
                let in_time = signer_retired.is_none_or(|retired| vouch.at <= retired);
                if !trusted.contains_key(&vouch.public_key) && in_time && vouch.holds() {
                    trusted.insert(vouch.public_key.clone(), retired(&vouch.public_key));
                }
            }
            if trusted.len() == count {
                break;
            }
        }
        let known = keys.iter().map(|key| key.public_key.clone());
        let known = known.chain(vouches.iter().map(|vouch| vouch.public_key.clone())).collect();
        Self { trusted, known }
    }

    pub(crate) fn trusts(&self, public_key: &str) -> bool {
        self.trusted.contains_key(public_key)
    }

    /// Why a checkpoint with this key is not believed; `None` when it is.
    pub(crate) fn doubt(&self, mark: &Checkpoint) -> Option<String> {
        let short = mark.public_key.get(..16).unwrap_or(&mark.public_key);
        match self.trusted.get(&mark.public_key) {
            Some(Some(retired)) if mark.at > *retired => Some(format!(
                "was signed at {} with the key {short}…, which was retired at {retired}",
                mark.at
            )),
            Some(_) => None,
            None if self.known.contains(&mark.public_key) => Some(format!(
                "was signed with the key {short}…, which neither the node token nor a known key vouches for"
            )),
            None => Some(format!("was signed with the key {short}…, which no node announced")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef0123456789abcdef";

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn new_key() -> SigningKey {
        let folder = tempfile::tempdir().unwrap();
        SigningKey::open(&folder.path().join("log.key")).unwrap()
    }

    fn row(key: &SigningKey, proof: Option<String>, vouches: Vec<KeyVouch>) -> LogKey {
        let (public_key, node, since) = (key.public_key(), "node1".to_owned(), at(0));
        LogKey { public_key, node, since, retired_at: None, proof, vouches }
    }

    fn mark(key: &SigningKey, second: i64) -> Checkpoint {
        crate::tree::sign(&crate::tree::Tree::default(), at(second), key)
    }

    #[test]
    fn a_row_alone_is_not_believed_and_the_token_or_a_known_key_vouches() {
        let (own, other, third, forged) = (new_key(), new_key(), new_key(), new_key());
        let proof = announcement_proof(TOKEN, &other.public_key(), "node1");
        let by_other = vouch(&other, &third.public_key(), "node1", at(5));
        let by_itself = vouch(&forged, &forged.public_key(), "node1", at(5));
        let wrong = announcement_proof("another token of more than 32 bytes", &forged.public_key(), "node1");
        let rows = [
            row(&other, Some(proof), vec![]),
            row(&third, None, vec![by_other]),
            row(&forged, Some(wrong), vec![by_itself]),
        ];
        let trust = KeyTrust::new(&own.public_key(), Some(TOKEN), &rows, &[]);
        for (key, believed) in [(&own, true), (&other, true), (&third, true), (&forged, false)] {
            assert_eq!(trust.doubt(&mark(key, 9)).is_none(), believed, "{:?}", trust.doubt(&mark(key, 9)));
        }
        assert!(trust.doubt(&mark(&new_key(), 9)).unwrap().contains("no node announced"));
        assert!(trust.doubt(&mark(&forged, 9)).unwrap().contains("vouches for"));
        // Without the token the first link is missing.
        let trust = KeyTrust::new(&own.public_key(), None, &rows, &[]);
        assert!(trust.doubt(&mark(&third, 9)).is_some());
    }

    #[test]
    fn a_retired_key_counts_for_what_it_signed_before_and_vouches_for_nothing_later() {
        let (own, late) = (new_key(), new_key());
        let mut old = row(&own, None, vec![]);
        old.retired_at = Some(at(10));
        let by_retired = vouch(&own, &late.public_key(), "node1", at(11));
        let rows = [old, row(&late, None, vec![by_retired])];
        let trust = KeyTrust::new(&own.public_key(), None, &rows, &[]);
        assert!(trust.doubt(&mark(&own, 10)).is_none());
        assert!(trust.doubt(&mark(&own, 11)).unwrap().contains("retired"));
        assert!(trust.doubt(&mark(&late, 12)).is_some());
    }

    #[test]
    fn a_vouch_for_one_key_or_node_is_none_for_another() {
        let (own, other) = (new_key(), new_key());
        let KeyVouch { by_key, at: when, signature } = vouch(&own, &other.public_key(), "node1", at(5));
        let good = SignedVouch {
            public_key: other.public_key(),
            node: "node1".to_owned(),
            by_key,
            at: when,
            signature,
        };
        assert!(good.holds());
        assert!(!SignedVouch { node: "node2".to_owned(), ..good.clone() }.holds());
        assert!(!SignedVouch { public_key: own.public_key(), ..good.clone() }.holds());
        assert!(!SignedVouch { at: at(6), ..good }.holds());
    }
}
