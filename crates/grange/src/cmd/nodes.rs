//! `grange nodes`

use grange_api::wire::system::NodeSeen;
use grange_base::Size;

use crate::cli::Common;
use crate::exit::Exit;
use crate::{context, output};

pub(super) async fn run(common: &Common) -> anyhow::Result<Exit> {
    let nodes: Vec<NodeSeen> = context::client(common).await?.get("/nodes").await?;
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
    Ok(Exit::Ok)
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
