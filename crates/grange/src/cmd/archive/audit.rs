//! `grange audit run` and `status`

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Context as _;
use grange_api::Client;
use grange_api::wire::archive::NewAudit;
use grange_base::Size;
use grange_model::AuditKind;
use serde_json::{Value, json};

use super::text;
use crate::cli::Common;
use crate::exit::Exit;
use crate::progress::Progress;
use crate::{context, output};

/// How often a waiting command looks; a row is cheap to read.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Strays that are listed; the others are counted. `--json` on the API gives them all.
const STRAYS_SHOWN: u32 = 20;

/// Starts checks and, when told to, waits for their end.
pub(super) async fn run(
    common: &Common,
    kind: AuditKind,
    replica: Option<String>,
    wait: bool,
) -> anyhow::Result<Exit> {
    let client = context::client(common).await?;
    let checks = check(&client, kind, replica, wait).await?;
    let strays = strays(&client).await?;
    let sum = |field: &str| sum(&checks, field);
    if common.json {
        let counts = json!({
            "files": sum("files"), "bytes": sum("bytes"), "ok": sum("ok"), "missing": sum("missing"),
            "corrupt": sum("corrupt"), "undecided": sum("undecided"), "extra": sum("extra"), "checks": checks,
            "strays": strays,
        });
        output::json(&counts)?;
    } else {
        print(&checks, &strays)?;
    }
    let failed = checks.iter().any(|check| check["state"] == "failed");
    let trouble = sum("missing") + sum("corrupt") + sum("undecided") + sum("extra") > 0;
    Ok(if failed {
        Exit::Failed
    } else if trouble {
        Exit::Partial
    } else {
        Exit::Ok
    })
}

/// Files that replicas hold and the database does not know: how many copies, and the first of them.
async fn strays(client: &Client) -> anyhow::Result<Value> {
    Ok(client.get(&format!("/strays?limit={STRAYS_SHOWN}")).await?)
}

/// Checks all replicas, waits for the end, and gives the checks and the strays.
pub(crate) async fn audit_all(client: &Client, kind: AuditKind) -> anyhow::Result<(Vec<Value>, Value)> {
    let checks = check(client, kind, None, true).await?;
    Ok((checks, strays(client).await?))
}

/// Starts checks and, when asked to, waits for their end.
async fn check(
    client: &Client,
    kind: AuditKind,
    replica: Option<String>,
    wait: bool,
) -> anyhow::Result<Vec<Value>> {
    let mut checks: Vec<Value> = client.post("/audits", &NewAudit { kind, replica }).await?;
    let ids: Vec<String> = checks.iter().map(|check| text(&check["id"])).collect();
    let progress = if wait { Some(Progress::of_copies(copies(client, &checks).await?)) } else { None };
    let mut told = BTreeSet::new();
    while wait && checks.iter().any(|check| check["state"] == "running") {
        if let Some(progress) = &progress {
            progress.set(sum(&checks, "files") + sum(&checks, "missing"));
            for line in checks.iter().filter_map(reason_to_wait).filter(|line| told.insert(line.clone())) {
                progress.suspend(|| errln!("{line}"));
            }
        }
        tokio::time::sleep(LOOK_EVERY).await;
        let newest: Vec<Value> = client.get("/audits?limit=1000").await?;
        let find = |id: &String| newest.iter().find(|check| text(&check["id"]) == *id).cloned();
        checks = ids.iter().map(|id| find(id).context("a check vanished")).collect::<Result<_, _>>()?;
    }
    if let Some(progress) = progress {
        progress.finish();
    }
    Ok(checks)
}

/// Why an audit that is not over does not get on.
fn reason_to_wait(check: &Value) -> Option<String> {
    let reason = check["last_error"].as_str().filter(|_| check["state"] == "running")?;
    Some(format!("{} {} waits: {reason}", text(&check["replica"]), text(&check["kind"])))
}

fn sum(checks: &[Value], field: &str) -> u64 {
    checks.iter().filter_map(|check| check[field].as_u64()).sum()
}

/// How many copies the checked replicas should have.
async fn copies(client: &Client, checks: &[Value]) -> anyhow::Result<u64> {
    let replicas: Vec<Value> = client.get("/replicas").await?;
    let checked = |replica: &&Value| checks.iter().any(|check| check["replica"] == replica["name"]);
    Ok(replicas.iter().filter(checked).filter_map(|replica| replica["files"].as_u64()).sum())
}

/// Exit code 5 while replicas hold files that the database does not know.
pub(super) async fn status(common: &Common) -> anyhow::Result<Exit> {
    let client = context::client(common).await?;
    let mut checks: Vec<Value> = client.get("/audits?limit=50").await?;
    let strays = strays(&client).await?;
    if common.json {
        for check in &mut checks {
            let of_it = |file: &&Value| file["replica"] == check["replica"];
            let files: Vec<_> = strays["files"].as_array().into_iter().flatten().filter(of_it).collect();
            check["strays"] = json!(files);
        }
        output::json(&checks)?;
    } else {
        print(&checks, &strays)?;
    }
    Ok(if strays["count"].as_u64() > Some(0) { Exit::Partial } else { Exit::Ok })
}

/// The checks as a table, and the strays below it.
pub(crate) fn print(checks: &[Value], strays: &Value) -> std::io::Result<()> {
    table(checks)?;
    let count = strays["count"].as_u64().unwrap_or_default();
    if count == 0 {
        return Ok(());
    }
    let files = strays["files"].as_array().map(Vec::as_slice).unwrap_or_default();
    outln!(
        "{count} stray copies: on a replica, unknown to the database; enter them with `grange archive rebuild`"
    );
    for file in files {
        let size = Size(file["size"].as_u64().unwrap_or_default());
        outln!("  {} on {} ({size})", text(&file["name"]), text(&file["replica"]));
    }
    if count > files.len() as u64 {
        outln!("  and {} more", count - files.len() as u64);
    }
    // A path has slashes, a name never has.
    if files.iter().any(|file| text(&file["name"]).contains('/')) {
        outln!("a rebuild enters only files that lie in filedir itself: move the others there, or out of it");
    }
    Ok(())
}

fn table(checks: &[Value]) -> std::io::Result<()> {
    let row = |check: &Value| {
        let size = Size(check["bytes"].as_u64().unwrap_or_default()).to_string();
        let [replica, kind, state, files, ok, missing, corrupt, undecided, stray] =
            ["replica", "kind", "state", "files", "ok", "missing", "corrupt", "undecided", "extra"]
                .map(|field| text(&check[field]));
        [replica, kind, state, files, size, ok, missing, corrupt, undecided, stray]
    };
    let rows: Vec<_> = checks.iter().map(row).collect();
    output::table(
        ["REPLICA", "CHECK", "STATE", "FILES", "READ", "OK", "MISSING", "CORRUPT", "UNDECIDED", "STRAY"],
        &rows,
    )?;
    for check in checks.iter().filter(|check| !check["last_error"].is_null()) {
        let [replica, kind, state, reason] =
            ["replica", "kind", "state", "last_error"].map(|field| text(&check[field]));
        let state = if state == "running" { "waits".to_owned() } else { state };
        outln!("{replica} {kind} {state}: {reason}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_audit_that_is_not_over_and_has_a_reason_waits() {
        let check = |state: &str, reason: Value| json!({ "replica": "one", "kind": "list", "state": state, "last_error": reason });
        let waits = reason_to_wait(&check("running", json!("one is away")));
        assert_eq!(waits.as_deref(), Some("one list waits: one is away"));
        assert_eq!(reason_to_wait(&check("running", Value::Null)), None);
        assert_eq!(reason_to_wait(&check("failed", json!("one is away"))), None);
    }
}
