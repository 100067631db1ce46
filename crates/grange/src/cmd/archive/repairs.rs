//! `grange repair ls`, `decide`, `confirm` and `withdraw`: repairs that need two people.

use grange_api::client::segment;
use grange_api::wire::archive::RepairDecision;
use grange_model::RepairChoice;
use serde_json::Value;

use super::text;
use crate::cli::Common;
use crate::exit::Exit;
use crate::{context, output};

pub(super) async fn list(common: &Common) -> anyhow::Result<Exit> {
    let repairs: Vec<Value> = context::client(common).await?.get("/repairs").await?;
    if common.json {
        output::json(&repairs)?;
        return Ok(Exit::Ok);
    }
    let row = |repair: &Value| {
        ["id", "name", "replica", "kind", "state", "asked_by", "confirmed_by"]
            .map(|field| text(&repair[field]))
    };
    let rows: Vec<_> = repairs.iter().map(row).collect();
    output::table(["ID", "NAME", "REPLICA", "KIND", "STATE", "ASKED BY", "CONFIRMED BY"], &rows)?;
    Ok(Exit::Ok)
}

/// Exit code 5: the repairs wait for a second person.
pub(super) async fn decide(common: &Common, name: &str, keep: RepairChoice) -> anyhow::Result<Exit> {
    let path = format!("/files/{}/decide", segment(name));
    let repairs: Vec<Value> = context::client(common).await?.post(&path, &RepairDecision { keep }).await?;
    if common.json {
        output::json(&repairs)?;
    } else {
        for repair in &repairs {
            let [id, name, replica, kind] =
                ["id", "name", "replica", "kind"].map(|field| text(&repair[field]));
            outln!("{name} on {replica} ({kind}): waits for a second person: grange repair confirm {id}");
        }
    }
    Ok(Exit::Partial)
}

/// Exit code 5 when the repair did not succeed.
pub(super) async fn confirm(common: &Common, id: &str) -> anyhow::Result<Exit> {
    let path = format!("/repairs/{}/confirm", segment(id));
    let repair: Value = context::client(common).await?.post(&path, &()).await?;
    let done = repair["state"] == "done";
    if common.json {
        output::json(&repair)?;
    } else {
        let [name, replica, state] = ["name", "replica", "state"].map(|field| text(&repair[field]));
        let error = repair["last_error"].as_str().map(|error| format!(": {error}")).unwrap_or_default();
        outln!("{name} on {replica}: {state}{error}");
    }
    Ok(if done { Exit::Ok } else { Exit::Partial })
}

pub(super) async fn withdraw(common: &Common, id: &str) -> anyhow::Result<Exit> {
    let path = format!("/repairs/{}/withdraw", segment(id));
    let repair: Value = context::client(common).await?.post(&path, &()).await?;
    if common.json {
        output::json(&repair)?;
    } else {
        let [name, replica, kind] = ["name", "replica", "kind"].map(|field| text(&repair[field]));
        outln!("{name} on {replica} ({kind}): withdrawn");
    }
    Ok(Exit::Ok)
}
