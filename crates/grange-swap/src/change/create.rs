//! A new collection. The server of slice 0 makes it real: it takes hold of the name, then asks every other server whether the
//! name is free, then writes the record. Of two collections of one name that are made at the same time, the one whose server
//! took hold later meets the other, held or real: see [`crate::lifecycle::name_is_free`].

use std::sync::Arc;

use futures_util::future::join_all;
use uuid::Uuid;

use super::placing::{assign, candidates};
use super::{count, tell};
use crate::collection::{Collection, Layout, Slice};
use crate::error::Error;
use crate::name::Namespace;
use crate::node::Node;
use crate::peer::call::{Answer, Call};
use crate::peer::serve::blocking;
use crate::simulation;
use crate::view::Inventory;

pub(super) async fn create(
    node: &Arc<Node>,
    namespace: Namespace,
    slices: u32,
    public: bool,
    mixed: bool,
) -> Result<Collection, Error> {
    node.all_here()?;
    let slices = count(slices)?;
    let uuid = simulation::new_id();
    let servers = everybody(node);
    node.name_is_free(uuid, &namespace, &servers)?;
    let inventories = ask_everybody(node, uuid, &namespace, &servers).await?;
    let candidates = candidates(&inventories, None);
    let chosen = assign(&candidates, slices.get() as usize, mixed).map_err(Error::refused)?;
    let slice = |partition| Slice { uuid: simulation::new_id(), partition };
    let record = Collection {
        uuid,
        namespace,
        epoch: 1,
        layout: Layout::Stable { slices },
        public,
        slices: chosen.into_iter().map(slice).collect(),
    };
    establish(node, &record, &inventories).await?;
    tell(node, &record).await;
    Ok(record)
}

/// All servers we know, and we.
fn everybody(node: &Node) -> Vec<String> {
    let others = node.others().into_iter().map(|other| other.base.to_string());
    others.chain([node.base.to_string()]).collect()
}

/// Asks every server whether a name is free; their inventories and ours.
async fn ask_everybody(
    node: &Arc<Node>,
    collection: Uuid,
    namespace: &Namespace,
    servers: &[String],
) -> Result<Vec<Inventory>, Error> {
    let own = Arc::clone(node);
    let mut inventories = vec![blocking(move || Ok(own.inventory())).await?];
    let others = servers.iter().filter(|server| **server != *node.base);
    let asked = others.map(|base| async move {
        let call = Call::NameFree { collection, namespace: namespace.clone(), servers: servers.to_vec() };
        match node.link(base)?.ask(call).await? {
            Answer::Inventory(inventory) => Ok(*inventory),
            Answer::Overlap(other) => Err(Error::Overlap { namespace: namespace.clone(), other }),
            _ => Err(Error::away(format!("the server {base} is away"))),
        }
    });
    for inventory in join_all(asked).await {
        inventories.push(inventory?);
    }
    Ok(inventories)
}

/// Has the server of slice 0 make the collection real.
async fn establish(node: &Arc<Node>, record: &Collection, inventories: &[Inventory]) -> Result<(), Error> {
    let first = record.slices.first().map(|slice| slice.partition);
    let host = inventories
        .iter()
        .find(|inventory| inventory.partitions.iter().any(|seen| Some(seen.uuid) == first))
        .ok_or_else(|| Error::away("the server of slice 0 is away"))?;
    if *host.base == *node.base {
        return establish_here(node, record).await;
    }
    match node.link(&host.base)?.ask(Call::Establish { record: record.clone() }).await? {
        Answer::Overlap(other) => Err(Error::Overlap { namespace: record.namespace.clone(), other }),
        _ => Ok(()),
    }
}

/// Every server hears of the removals that made the name free, and confirms it: else an older record of what was removed,
/// still under way to a server that never had it, would bring it to life beside the new one.
async fn tell_removals(
    node: &Arc<Node>,
    namespace: &Namespace,
    servers: &[String],
    inventories: &[Inventory],
) -> Result<(), Error> {
    let records = inventories.iter().flat_map(|inventory| &inventory.collections);
    let mut gone: Vec<&Collection> = records
        .filter(|record| record.layout == Layout::Gone && record.namespace.overlaps(namespace))
        .collect();
    gone.sort_by_key(|record| record.uuid);
    gone.dedup_by_key(|record| record.uuid);
    for record in gone {
        let (own, ours) = (Arc::clone(node), record.clone());
        blocking(move || own.adopt(&ours)).await?;
        let others = servers.iter().filter(|server| **server != *node.base);
        let told = others.map(|base| async move {
            node.link(base)?.ask(Call::Adopt { record: record.clone() }).await.map(drop)
        });
        join_all(told).await.into_iter().collect::<Result<(), Error>>()?;
    }
    Ok(())
}

/// We keep slice 0.
pub(crate) async fn establish_here(node: &Arc<Node>, record: &Collection) -> Result<(), Error> {
    let servers = everybody(node);
    // Held until the record is written or all is over.
    let held = node.hold_name(record.uuid, &record.namespace, &servers)?;
    let inventories = ask_everybody(node, record.uuid, &record.namespace, &servers).await?;
    tell_removals(node, &record.namespace, &servers, &inventories).await?;
    let (own, record) = (Arc::clone(node), record.clone());
    let adopted = blocking(move || {
        let _held = held;
        own.adopt(&record)
    });
    if adopted.await? { Ok(()) } else { Err(Error::refused("this server does not keep slice 0")) }
}
