//! A proof about one file that a third party can check with nothing but this program, or by RFC 9162 by hand.

use grange_db::Checkpoint;
use grange_model::{FileName, LogRecord};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::archive::Archive;
use crate::error::Error;
use crate::key_trust::{KeyTrust, SignedVouch, signed_vouches};
use crate::tree;
use crate::witness::Witness;

/// One record of the log and its path to the root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProvenLeaf {
    pub number: u64,
    /// The record, byte for byte. The leaf's input is its SHA-512.
    pub body: String,
    /// The hashes from the leaf to the root, one after the other, in hexadecimal.
    pub path: String,
}

/// That the tree of an older checkpoint is the beginning of this one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Continuation {
    pub of: Checkpoint,
    pub proof: String,
}

/// Everything the log says of one file, and why it must be so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Proof {
    /// `grange-proof 1`.
    pub format: String,
    pub name: FileName,
    pub leaves: Vec<ProvenLeaf>,
    pub checkpoint: Checkpoint,
    /// For each older checkpoint that was signed: this log continues it. Whoever kept a witness finds it here.
    pub continues: Vec<Continuation>,
    /// Signatures of keys over keys: whoever knows one key of the archive can follow to the one that signed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vouches: Vec<SignedVouch>,
}

const FORMAT: &str = "grange-proof 1";

impl Archive {
    /// Proves what happened to the file.
    pub async fn prove(&self, name: &FileName) -> Result<Proof, Error> {
        self.file(name).await?;
        let checkpoint = self.checkpoint().await?;
        let older = self.0.db.logbook().checkpoints().await?;
        let tree = self.0.tree.lock().await;
        // Others may have appended since: the proof is about the tree that was signed.
        if tree.len() != checkpoint.size {
            return Err(Error::Proof { reason: "the log grew meanwhile: ask again".to_owned() });
        }
        let mut leaves = Vec::new();
        for leaf in self.0.db.logbook().of_file(name.as_str()).await? {
            if let Some(path) = tree.inclusion(leaf.number) {
                leaves.push(ProvenLeaf { number: leaf.number, body: leaf.body, path });
            }
        }
        let mut continues = Vec::new();
        for of in older.into_iter().filter(|one| one.size > 0 && one.size < checkpoint.size) {
            if let Some(proof) = tree.consistency(of.size) {
                continues.push(Continuation { of, proof });
            }
        }
        let vouches = signed_vouches(&self.log_keys().await?);
        Ok(Proof { format: FORMAT.to_owned(), name: name.clone(), leaves, checkpoint, continues, vouches })
    }
}

/// Checks a proof without any database. `public_key` is the archive's, in hexadecimal, got by another way; a witness
/// somebody kept makes it certain that the log was not rewritten since.
pub fn check_proof(
    proof: &Proof,
    public_key: Option<&str>,
    witness: Option<&Witness>,
) -> Result<Vec<LogRecord>, Error> {
    let bad = |reason: String| Error::Proof { reason };
    let mark = &proof.checkpoint;
    if proof.format != FORMAT {
        return Err(bad(format!("\"{}\" is not a form of proof that is known here", proof.format)));
    }
    if let Some(wrong) = proof.vouches.iter().find(|vouch| !vouch.holds()) {
        return Err(bad(format!("the signature over the key {} does not hold", wrong.public_key)));
    }
    let root = public_key.unwrap_or(&mark.public_key);
    let trust = KeyTrust::new(root, None, &[], &proof.vouches);
    if !trust.trusts(&mark.public_key) {
        return Err(bad("it was signed with another key, which the given one does not vouch for".to_owned()));
    }
    if !tree::signature_holds(mark) {
        return Err(bad("the signature of its checkpoint does not hold".to_owned()));
    }
    for older in &proof.continues {
        // The key may be an older one; what it signed is compared with the tree, not believed.
        if !tree::signature_holds(&older.of) {
            return Err(bad(format!("the signature of the checkpoint at {} does not hold", older.of.at)));
        }
        let (old, new) = ((older.of.size, older.of.root.as_str()), (mark.size, mark.root.as_str()));
        tree::check_consistency(old, new, &older.proof)?;
    }
    if let Some(witness) = witness {
        let kept = &witness.checkpoint;
        let same = |one: &Checkpoint| one.size == kept.size && one.root == kept.root;
        if !same(mark) && !proof.continues.iter().any(|older| same(&older.of)) {
            return Err(bad(format!("nothing shows that it continues the log witnessed at {}", kept.at)));
        }
    }
    if proof.leaves.is_empty() {
        return Err(bad(format!("it holds no record of {}", proof.name)));
    }
    let mut records = Vec::new();
    for leaf in &proof.leaves {
        tree::check_inclusion(&leaf.body, leaf.number, &leaf.path, mark.size, &mark.root)?;
        let record: LogRecord = serde_json::from_str(&leaf.body)
            .map_err(|error| bad(format!("leaf {}: {error}", leaf.number)))?;
        if record.name.as_deref() != Some(proof.name.as_str()) {
            return Err(bad(format!("leaf {} is about another file", leaf.number)));
        }
        records.push(record);
    }
    Ok(records)
}
