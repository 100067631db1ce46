//! The Merkle tree over the log: RFC 9162 with SHA-256. A leaf's input is SHA-512 of the record's canonical text.

use ct_merkle::mem_backed_tree::MemoryBackedTree;
use ct_merkle::{ConsistencyProof, InclusionProof, RootHash};
use data_encoding::HEXLOWER;
use grange_db::{Checkpoint, Leaf};
use jiff::Timestamp;
use sha2::{Digest, Sha256, Sha512};

use crate::error::Error;
use crate::keys::{self, SigningKey};

/// The tree in memory: about 130 bytes per leaf.
#[derive(Default)]
pub(crate) struct Tree(MemoryBackedTree<Sha256, [u8; 64]>);

pub(crate) fn leaf_of(body: &str) -> [u8; 64] {
    Sha512::digest(body.as_bytes()).into()
}

impl Tree {
    pub(crate) fn len(&self) -> u64 {
        self.0.len()
    }

    /// False when the leaf is not the next one: a leaf was taken out, or put in.
    pub(crate) fn push(&mut self, leaf: &Leaf) -> bool {
        let fits = leaf.number == self.len();
        if fits {
            self.0.push(leaf_of(&leaf.body));
        }
        fits
    }

    pub(crate) fn root(&self) -> String {
        HEXLOWER.encode(self.0.root().as_bytes())
    }

    /// The path from a leaf to the root, in hexadecimal. `None` when there is no such leaf.
    pub(crate) fn inclusion(&self, number: u64) -> Option<String> {
        (number < self.len()).then(|| HEXLOWER.encode(self.0.prove_inclusion(number as usize).as_bytes()))
    }

    /// That the first `size` leaves are still what they were.
    pub(crate) fn consistency(&self, size: u64) -> Option<String> {
        let added = self.len().checked_sub(size).filter(|_| size > 0)?;
        Some(HEXLOWER.encode(self.0.prove_consistency(added as usize).as_bytes()))
    }
}

impl std::fmt::Debug for Tree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tree({})", self.len())
    }
}

fn root_hash(size: u64, root: &str) -> Result<RootHash<Sha256>, Error> {
    let bad = |reason: &str| Error::Proof { reason: reason.to_owned() };
    let bytes = HEXLOWER.decode(root.as_bytes()).map_err(|_| bad("a root is not hexadecimal"))?;
    let bytes: [u8; 32] = bytes.try_into().map_err(|_| bad("a root has not 32 bytes"))?;
    Ok(RootHash::new(bytes.into(), size))
}

/// That the record is leaf `number` of the tree with this root.
pub(crate) fn check_inclusion(
    body: &str,
    number: u64,
    path: &str,
    size: u64,
    root: &str,
) -> Result<(), Error> {
    let bad = |reason: String| Error::Proof { reason };
    let path = HEXLOWER.decode(path.as_bytes()).map_err(|_| bad("a path is not hexadecimal".to_owned()))?;
    let path = InclusionProof::try_from_bytes(path).map_err(|error| bad(error.to_string()))?;
    root_hash(size, root)?
        .verify_inclusion(&leaf_of(body), number, &path)
        .map_err(|error| bad(format!("leaf {number} is not in the tree: {error}")))
}

/// That the tree with the old root is the beginning of the one with the new root.
pub(crate) fn check_consistency(old: (u64, &str), new: (u64, &str), proof: &str) -> Result<(), Error> {
    let bad = |reason: String| Error::Proof { reason };
    let proof =
        HEXLOWER.decode(proof.as_bytes()).map_err(|_| bad("a proof is not hexadecimal".to_owned()))?;
    let proof = ConsistencyProof::try_from_bytes(proof).map_err(|error| bad(error.to_string()))?;
    root_hash(new.0, new.1)?
        .verify_consistency(&root_hash(old.0, old.1)?, &proof)
        .map_err(|error| bad(format!("the log is no continuation of the older one: {error}")))
}

/// What is signed: readable, and of this purpose only.
pub(crate) fn signed_text(size: u64, at: Timestamp, root: &str) -> String {
    format!("grange log checkpoint 1\n{size}\n{at}\n{root}\n")
}

pub(crate) fn sign(tree: &Tree, at: Timestamp, key: &SigningKey) -> Checkpoint {
    // The database keeps microseconds, and what is signed must read back the same.
    let at = Timestamp::from_microsecond(at.as_microsecond()).unwrap_or(at);
    let (size, root) = (tree.len(), tree.root());
    let signature = key.sign(&signed_text(size, at, &root));
    Checkpoint { size, at, root, public_key: key.public_key(), signature }
}

pub(crate) fn signature_holds(checkpoint: &Checkpoint) -> bool {
    let text = signed_text(checkpoint.size, checkpoint.at, &checkpoint.root);
    keys::verified(&checkpoint.public_key, &text, &checkpoint.signature)
}
