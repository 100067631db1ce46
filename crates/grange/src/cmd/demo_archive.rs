//! The demo's part on the archive: one copy of a harvested file is damaged, found, repaired and proven.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use grange_api::Client;
use grange_api::wire::archive::{NewAudit, RepairAll};
use grange_model::AuditKind;
use serde_json::Value;

use crate::story::Story;

/// Damages the copy of a stored file in the first replica; `folder` is the data folder.
pub(super) async fn tell(
    story: &mut Story,
    client: &Client,
    folder: &Path,
    file: &str,
) -> anyhow::Result<()> {
    let copy = super::demo_harvest::copy_of(folder, file);
    let mut bytes = std::fs::read(&copy).context("the demo keeps replica one on this machine")?;
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&copy, bytes)?;
    let found = audit(client).await?;
    ensure!(found == (0, 1), "the flipped bit must be found: {found:?}");
    story.told("flipped bit found", "1 corrupt copy, by a vote of the replicas");

    let report: Value = client.post("/repairs", &RepairAll { dry_run: false, credentials: true }).await?;
    ensure!(report["done"] == 1, "the copy must be repaired: {report}");
    ensure!(audit(client).await? == (0, 0), "all copies must be good again");
    story.told("copy repaired", "from a proven one; the bad bytes are in the attic");
    let log: Value = client.get("/log/verify").await?;
    ensure!(log["ok"] == true, "the log must hold: {log}");
    story.told("log verified", format!("{} events, nothing rewritten", log["leaves"]));
    Ok(())
}

/// Missing and corrupt copies after reading every byte of every replica.
async fn audit(client: &Client) -> anyhow::Result<(u64, u64)> {
    let asked = NewAudit { kind: AuditKind::Checksum, replica: None };
    let started: Vec<Value> = client.post("/audits", &asked).await?;
    loop {
        let newest: Vec<Value> = client.get("/audits").await?;
        let ours: Vec<_> =
            newest.iter().filter(|check| started.iter().any(|start| start["id"] == check["id"])).collect();
        if ours.iter().all(|check| check["state"] != "running") {
            let sum = |field: &str| ours.iter().filter_map(|check| check[field].as_u64()).sum();
            return Ok((sum("missing"), sum("corrupt")));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
