//! `grange init`

use grange_node::open;

use crate::cli::Common;
use crate::exit::Exit;
use crate::{context, output};

pub(super) async fn run(common: &Common) -> anyhow::Result<Exit> {
    let settings = context::load(common)?.settings;
    let made = open::create(&settings, &common.data).await?;
    if common.json {
        output::json(&serde_json::json!({
            "data": common.data,
            "node": made.node,
            "engine": made.database.engine,
            "schema_version": made.database.step,
            "full_replicas": made.full_replicas,
        }))?;
        return Ok(Exit::Ok);
    }
    let data = common.data.display();
    if made.full_replicas.is_empty() {
        outln!("Created an empty archive in {data}.");
    } else {
        outln!("Created an empty database in {data}.");
    }
    outln!("  database  {}, tables at version {}", made.database.place, made.database.step);
    if !made.database.pending.is_empty() {
        outln!("            older than this program: run `grange --data {data} db migrate`");
    }
    if !made.full_replicas.is_empty() {
        outln!("  replicas  {} hold files that this database does not know", made.full_replicas.join(", "));
        outln!("If the database was lost: with a backup of it, run `grange restore BACKUP --to {data}`;");
        outln!("without one, run `grange --data {data} archive rebuild`, which enters the files again.");
    }
    outln!("Start a node on it with `grange --data {data} up`.");
    Ok(Exit::Ok)
}
