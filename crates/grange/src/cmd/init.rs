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
        }))?;
        return Ok(Exit::Ok);
    }
    let data = common.data.display();
    println!("Created an empty archive in {data}.");
    println!("  database  {}, tables at version {}", made.database.place, made.database.step);
    if !made.database.pending.is_empty() {
        println!("            older than this program: run `grange --data {data} db migrate`");
    }
    println!("Start a node on it with `grange --data {data} up`.");
    Ok(Exit::Ok)
}
