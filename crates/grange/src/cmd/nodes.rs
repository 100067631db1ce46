//! `grange nodes` and `grange findings`

use std::collections::BTreeSet;

use grange_api::client::segment;
use grange_api::wire::system::{FindingSeen as Finding, NodeSeen};
use grange_base::Size;
use serde_json::{Value, json};

use crate::cli::{Common, NodesCommand};
use crate::exit::Exit;
use crate::{context, output};

pub(super) async fn run(common: &Common, command: Option<NodesCommand>) -> anyhow::Result<Exit> {
    let client = context::client(common).await?;
    if let Some(NodesCommand::Forget { name }) = command {
        client.delete(&format!("/nodes/{}", segment(&name))).await?;
        if common.json {
            output::json(&json!({ "forgotten": name }))?;
        } else {
            outln!("The node {name} is forgotten.");
        }
        return Ok(Exit::Ok);
    }
    let nodes: Vec<NodeSeen> = client.get("/nodes").await?;
    if common.json {
        output::json(&nodes)?;
        return Ok(Exit::Ok);
    }
    let rows: Vec<_> = nodes
        .into_iter()
        .map(|NodeSeen { node, state }| {
            let roles: Vec<String> = node.roles.iter().map(ToString::to_string).collect();
            [
                node.name,
                state.to_string(),
                roles.join(","),
                node.version,
                node.clock_ahead_ms.map_or_else(|| "-".to_owned(), clock_difference),
                node.free_bytes.map_or_else(|| "-".to_owned(), |bytes| Size(bytes).to_string()),
                format!("{:.0}", node.seen_at),
                node.addresses.get("node").cloned().unwrap_or_default(),
            ]
        })
        .collect();
    output::table(["NAME", "STATE", "ROLES", "VERSION", "CLOCK", "FREE", "SEEN", "ADDRESS"], &rows)?;
    let findings: Vec<Value> = client.get("/findings").await?;
    if !findings.is_empty() {
        outln!("{} open findings: see `grange findings`", findings.len());
    }
    Ok(Exit::Ok)
}

/// Exit code 5 when something needs a person.
pub(super) async fn findings(common: &Common, all: bool) -> anyhow::Result<Exit> {
    let path = if all { "/findings?all=true" } else { "/findings" };
    let findings: Vec<Finding> = context::client(common).await?.get(path).await?;
    let open = findings.iter().filter(|one| one.closed_at.is_none()).count();
    if common.json {
        output::json(&findings)?;
    } else if findings.is_empty() {
        outln!("Nothing needs a person.");
    } else {
        let row = |one: &Finding| {
            let closed = one.closed_at.map_or_else(|| "open".to_owned(), |at| format!("closed {at:.0}"));
            [
                format!("{:.0}", one.opened_at),
                closed,
                one.kind.to_string(),
                one.subject.clone(),
                one.detail.clone(),
            ]
        };
        let rows: Vec<_> = findings.iter().map(row).collect();
        output::table(["SINCE", "STATE", "KIND", "SUBJECT", "DETAIL"], &rows)?;
        let kinds: BTreeSet<_> =
            findings.iter().filter(|one| one.closed_at.is_none()).map(|one| one.kind).collect();
        for kind in kinds {
            outln!("{kind}: {}", kind.advice());
        }
    }
    Ok(if open > 0 { Exit::Partial } else { Exit::Ok })
}

/// How far a machine's clock is from the database's: differences that a network makes are none.
fn clock_difference(ahead_ms: i64) -> String {
    if ahead_ms.abs() < 100 { "ok".to_owned() } else { format!("{:+.1}s", ahead_ms as f64 / 1000.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_right_or_shown_with_its_difference() {
        for (ahead_ms, shown) in [(0, "ok"), (-99, "ok"), (100, "+0.1s"), (-3_600_250, "-3600.2s")] {
            assert_eq!(clock_difference(ahead_ms), shown);
        }
    }
}
