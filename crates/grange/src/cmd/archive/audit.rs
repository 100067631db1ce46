//! `grange audit run` and `status`

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

/// Starts checks and, when told to, waits for their end.
pub(super) async fn run(
    common: &Common,
    kind: AuditKind,
    replica: Option<String>,
    wait: bool,
) -> anyhow::Result<Exit> {
    let client = context::client(common).await?;
    let mut checks: Vec<Value> = client.post("/audits", &NewAudit { kind, replica }).await?;
    let ids: Vec<String> = checks.iter().map(|check| text(&check["id"])).collect();
    let progress = if wait { Some(Progress::of_copies(copies(&client, &checks).await?)) } else { None };
    while wait && checks.iter().any(|check| check["state"] == "running") {
        if let Some(progress) = &progress {
            progress.set(sum(&checks, "files") + sum(&checks, "missing"));
        }
        tokio::time::sleep(LOOK_EVERY).await;
        let newest: Vec<Value> = client.get("/audits?limit=1000").await?;
        let find = |id: &String| newest.iter().find(|check| text(&check["id"]) == *id).cloned();
        checks = ids.iter().map(|id| find(id).context("a check vanished")).collect::<Result<_, _>>()?;
    }
    if let Some(progress) = progress {
        progress.finish();
    }
    let sum = |field: &str| sum(&checks, field);
    if common.json {
        let counts = json!({
            "files": sum("files"), "bytes": sum("bytes"), "ok": sum("ok"), "missing": sum("missing"),
            "corrupt": sum("corrupt"), "undecided": sum("undecided"), "extra": sum("extra"), "checks": checks,
        });
        output::json(&counts)?;
    } else {
        table(&checks)?;
    }
    let failed = checks.iter().any(|check| check["state"] == "failed");
    let trouble = sum("missing") + sum("corrupt") + sum("undecided") > 0;
    Ok(if failed {
        Exit::Failed
    } else if trouble {
        Exit::Partial
    } else {
        Exit::Ok
    })
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

pub(super) async fn status(common: &Common) -> anyhow::Result<Exit> {
    let checks: Vec<Value> = context::client(common).await?.get("/audits?limit=50").await?;
    if common.json {
        output::json(&checks)?;
    } else {
        table(&checks)?;
    }
    Ok(Exit::Ok)
}

fn table(checks: &[Value]) -> std::io::Result<()> {
    let row = |check: &Value| {
        let size = Size(check["bytes"].as_u64().unwrap_or_default()).to_string();
        let [replica, kind, state, files, ok, missing, corrupt, undecided] =
            ["replica", "kind", "state", "files", "ok", "missing", "corrupt", "undecided"]
                .map(|field| text(&check[field]));
        [replica, kind, state, files, size, ok, missing, corrupt, undecided]
    };
    let rows: Vec<_> = checks.iter().map(row).collect();
    output::table(
        ["REPLICA", "CHECK", "STATE", "FILES", "READ", "OK", "MISSING", "CORRUPT", "UNDECIDED"],
        &rows,
    )?;
    for check in checks.iter().filter(|check| !check["last_error"].is_null()) {
        let [replica, kind, state, reason] =
            ["replica", "kind", "state", "last_error"].map(|field| text(&check[field]));
        let state = if state == "running" { "waits".to_owned() } else { state };
        println!("{replica} {kind} {state}: {reason}");
    }
    Ok(())
}
