//! The nodes that this one fetches files from: those in the register, at the addresses they gave there.

use async_trait::async_trait;
use grange_base::Chain;
use grange_blob::Nodes;
use grange_db::Db;
use grange_model::ids::NodeId;

/// The register of nodes.
#[derive(Clone, Debug)]
pub struct Register(pub Db);

#[async_trait]
impl Nodes for Register {
    async fn address(&self, node: &str) -> Result<Option<String>, String> {
        let Ok(id) = node.parse::<NodeId>() else { return Ok(None) };
        let record = self.0.nodes().get(id).await.map_err(|error| Chain(&error).to_string())?;
        Ok(record.and_then(|record| record.addresses.get("node").cloned()))
    }
}
