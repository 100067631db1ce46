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
                node.free_bytes.map_or_else(|| "-".to_owned(), |bytes| Size(bytes).to_string()),
                format!("{:.0}", node.seen_at),
                node.addresses.get("node").cloned().unwrap_or_default(),
            ]
        })
        .collect();
    output::table(["NAME", "STATE", "ROLES", "VERSION", "FREE", "SEEN", "ADDRESS"], &rows)?;
    Ok(Exit::Ok)
}
