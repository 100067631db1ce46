//! `grange audit check-proof`: what a third party does with a proof.

use std::path::Path;

use anyhow::Context as _;
use grange_base::Chain;
use grange_node::{Proof, Witness, check_proof};
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::cli::Common;
use crate::exit::Exit;
use crate::output;

/// Exit code 1 when the proof does not hold.
pub(super) fn check(
    common: &Common,
    file: &Path,
    key: Option<&str>,
    witness: Option<&Path>,
) -> anyhow::Result<Exit> {
    let proof: Proof = read(file)?;
    let kept: Option<Witness> = witness.map(read).transpose()?;
    let records = match check_proof(&proof, key, kept.as_ref()) {
        Ok(records) => records,
        Err(error) => {
            let reason = Chain(&error).to_string();
            if common.json {
                output::json(&json!({ "holds": false, "reason": reason }))?;
            } else {
                outln!("{reason}");
            }
            return Ok(Exit::Failed);
        }
    };
    let mark = &proof.checkpoint;
    if common.json {
        let (signed_at, public_key) = (mark.at, &mark.public_key);
        output::json(&json!({
            "holds": true, "name": proof.name, "records": records, "signed_at": signed_at,
            "public_key": public_key, "key_given": key.is_some(), "witnessed": kept.is_some(),
        }))?;
        return Ok(Exit::Ok);
    }
    for record in &records {
        let checksum = record.checksum.as_deref().unwrap_or("-");
        outln!("{} {} {} by {}", record.at, record.event, checksum, record.by);
    }
    outln!("The proof holds for {}: signed at {} with the key {}.", proof.name, mark.at, mark.public_key);
    if key.is_none() {
        outln!("Compare that key with the archive's, got by another way (--key does it).");
    }
    if kept.is_none() {
        outln!("With a witness that you kept (--witness) it also proves that nothing was rewritten since.");
    }
    Ok(Exit::Ok)
}

fn read<T: DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    let text = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_slice(&text).with_context(|| format!("{} does not hold what it should", path.display()))
}
