//! `grange replicas`, `repair`, `audit verify-log`, `audit prove` and `archive rebuild`

use grange_api::Client;
use grange_api::client::segment;
use grange_api::wire::archive::RepairAll;
use grange_base::Size;
use serde_json::Value;

use super::text;
use crate::cli::Common;
use crate::exit::Exit;
use crate::progress::Progress;
use crate::{context, output};

pub(super) async fn replicas(common: &Common) -> anyhow::Result<Exit> {
    let replicas: Vec<Value> = context::client(common).await?.get("/replicas").await?;
    if common.json {
        output::json(&replicas)?;
        return Ok(Exit::Ok);
    }
    let row = |replica: &Value| {
        let size = Size(replica["bytes"].as_u64().unwrap_or_default()).to_string();
        let [name, kind, files, completed, failed, missing, corrupt] =
            ["name", "kind", "files", "completed", "failed", "missing", "corrupt"]
                .map(|field| text(&replica[field]));
        [name, kind, files, size, completed, failed, missing, corrupt]
    };
    let rows: Vec<_> = replicas.iter().map(row).collect();
    output::table(["NAME", "KIND", "FILES", "SIZE", "PROVEN", "FAILED", "MISSING", "CORRUPT"], &rows)?;
    for replica in replicas.iter().filter(|replica| !replica["away"].is_null()) {
        outln!("{} is away: {}", text(&replica["name"]), text(&replica["away"]));
    }
    Ok(Exit::Ok)
}

/// Takes a replica as it is now.
pub(super) async fn adopt_replica(common: &Common, name: &str) -> anyhow::Result<Exit> {
    let path = format!("/replicas/{}/adopt", segment(name));
    let places: Vec<String> = context::client(common).await?.post(&path, &()).await?;
    if common.json {
        output::json(&places)?;
        return Ok(Exit::Ok);
    }
    for place in places {
        outln!("{place} is marked as replica {name}");
    }
    outln!(
        "Find missing copies with `grange audit run --replica {name} --wait`, create them with `grange repair --all --yes`."
    );
    Ok(Exit::Ok)
}

/// So many copies on all replicas, by what is said of them. `None` when that cannot be told now.
async fn counted(client: &Client, fields: &[&str]) -> Option<u64> {
    let replicas: Vec<Value> = client.get("/replicas").await.ok()?;
    let count = |replica: &Value| fields.iter().filter_map(|field| replica[*field].as_u64()).sum::<u64>();
    Some(replicas.iter().map(count).sum())
}

/// Repairs, or says what a repair would do. Exit code 5 when something is left, or a replica was not asked.
pub(super) async fn repair(common: &Common, yes: bool) -> anyhow::Result<Exit> {
    let asked = RepairAll { dry_run: !yes, credentials: yes && common.server.is_none() };
    let client = context::client(common).await?;
    let wrong = counted(&client, &["missing", "corrupt"]).await.unwrap_or_default();
    let progress = Progress::of_copies(wrong);
    let left = async || Some(wrong.saturating_sub(counted(&client, &["missing", "corrupt"]).await?));
    let report: Value = progress.beside(client.post("/repairs", &asked), left).await?;
    let copies = report["copies"].as_array().cloned().unwrap_or_default();
    if common.json {
        output::json(&report)?;
    } else {
        for copy in &copies {
            let [name, replica, kind, state] =
                ["name", "replica", "kind", "state"].map(|field| text(&copy[field]));
            let state = match (state.as_str(), yes) {
                ("failed", false) => "cannot be repaired".to_owned(),
                (_, false) => "would be repaired".to_owned(),
                (_, true) => state,
            };
            let error = copy["error"].as_str().map(|error| format!(": {error}")).unwrap_or_default();
            outln!("{name} on {replica} ({kind}): {state}{error}");
        }
        let away = away(&report);
        for replica in &away {
            outln!("the replica {replica} is away and was not asked; `grange replicas ls` says why");
        }
        if copies.is_empty() && away.is_empty() {
            outln!("Nothing to repair.");
        } else if copies.is_empty() {
            outln!("Nothing to repair on the other replicas.");
        } else if !yes {
            outln!("Repeat with --yes to do it.");
        }
    }
    let left = report["failed"].as_u64().unwrap_or_default() + report["waiting"].as_u64().unwrap_or_default();
    Ok(if left > 0 || !away(&report).is_empty() { Exit::Partial } else { Exit::Ok })
}

/// The replicas that could not be asked.
fn away(report: &Value) -> Vec<String> {
    report["away"].as_array().into_iter().flatten().map(text).collect()
}

/// Exit code 1 when the log was rewritten, 5 when the witnesses of a replica could not be read.
pub(super) async fn verify_log(common: &Common) -> anyhow::Result<Exit> {
    let report: Value = context::client(common).await?.get("/log/verify").await?;
    let ok = report["ok"] == true;
    if common.json {
        output::json(&report)?;
    } else {
        for problem in report["problems"].as_array().into_iter().flatten() {
            outln!("{}", text(problem));
        }
        for replica in away(&report) {
            outln!(
                "the witnesses on {replica} were not read: the replica is away; `grange replicas ls` says why"
            );
        }
        let witnesses = report["witnesses"].as_array().map_or(0, Vec::len);
        let [leaves, checkpoints, files] =
            ["leaves", "checkpoints", "files"].map(|field| text(&report[field]));
        outln!("{leaves} events, {checkpoints} signed roots, {witnesses} witnesses, {files} files compared");
        outln!(
            "{}",
            if ok { "Nothing was rewritten." } else { "The log or the database was changed or lost." }
        );
    }
    Ok(match (ok, away(&report).is_empty()) {
        (false, _) => Exit::Failed,
        (true, false) => Exit::Partial,
        (true, true) => Exit::Ok,
    })
}

pub(super) async fn log_keys(common: &Common) -> anyhow::Result<Exit> {
    let keys: Vec<Value> = context::client(common).await?.get("/log/keys").await?;
    if common.json {
        output::json(&keys)?;
        return Ok(Exit::Ok);
    }
    let row = |key: &Value| {
        let [public_key, node, since, retired] =
            ["public_key", "node", "since", "retired_at"].map(|field| text(&key[field]));
        let vouches = key["vouches"].as_array().map_or(0, Vec::len).to_string();
        [public_key, node, since, retired, vouches]
    };
    let rows: Vec<_> = keys.iter().map(row).collect();
    output::table(["KEY", "NODE", "SINCE", "RETIRED", "VOUCHES"], &rows)?;
    Ok(Exit::Ok)
}

pub(super) async fn rotate_log_key(common: &Common) -> anyhow::Result<Exit> {
    let key: Value = context::client(common).await?.post("/log/keys", &()).await?;
    if common.json {
        output::json(&key)?;
    } else {
        outln!("The log is now signed with the key {}.", text(&key["public_key"]));
        outln!("Keep it where the first one is kept; the old key signed it.");
    }
    Ok(Exit::Ok)
}

pub(super) async fn prove(common: &Common, name: &str) -> anyhow::Result<Exit> {
    let proof: Value = context::client(common).await?.get(&format!("/files/{}/proof", segment(name))).await?;
    output::json(&proof)?;
    Ok(Exit::Ok)
}

/// Exit code 5 when files were not entered or replicas could not be asked.
pub(super) async fn rebuild(common: &Common) -> anyhow::Result<Exit> {
    let client = context::client(common).await?;
    let entered = async || counted(&client, &["files"]).await;
    let rebuilt: Value = Progress::counting().beside(client.post("/archive/rebuild", &()), entered).await?;
    if common.json {
        output::json(&rebuilt)?;
    } else {
        print_rebuilt(&rebuilt);
    }
    Ok(if is_whole(&rebuilt) { Exit::Ok } else { Exit::Partial })
}

/// Whether a rebuild entered every file that it found, and asked every replica.
pub(in crate::cmd) fn is_whole(rebuilt: &Value) -> bool {
    ["conflicts", "refused_deposits", "away"]
        .iter()
        .all(|field| rebuilt[field].as_array().is_none_or(Vec::is_empty))
}

pub(in crate::cmd) fn print_rebuilt(rebuilt: &Value) {
    let [found, entered, incomplete] = ["found", "entered", "incomplete"].map(|field| text(&rebuilt[field]));
    outln!(
        "{found} files found on the replicas, {entered} entered, {incomplete} copies missing or different"
    );
    let listed = |field: &str| rebuilt[field].as_array().cloned().unwrap_or_default();
    for conflict in listed("conflicts") {
        outln!(
            "  {}: not entered, its copies contradict each other: {}",
            text(&conflict["name"]),
            conflict["answers"]
        );
    }
    for name in listed("refused_deposits") {
        let name = text(&name);
        outln!(
            "  {name}: not entered, a deposit that every replica refused has this name; run `grange files withdraw {name}`, \
             then `grange archive rebuild` again"
        );
    }
    for replica in listed("away") {
        outln!("  the replica {} could not be asked", text(&replica));
    }
}
