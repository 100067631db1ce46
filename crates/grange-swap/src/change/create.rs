//! A new collection. Every server promises the name first, so of two that are made at the same time at least one server
//! knows both and refuses the second; then the server of slice 0 makes it real, while its own promise holds.

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
    let uuid = Uuid::new_v4();
    let made = async {
        let inventories = promises(node, uuid, &namespace).await?;
        let candidates = candidates(&inventories, None);
        let chosen = assign(&candidates, slices.get() as usize, mixed).map_err(Error::refused)?;
        let slice = |partition| Slice { uuid: Uuid::new_v4(), partition };
        let record = Collection {
            uuid,
            namespace,
            epoch: 1,
            layout: Layout::Stable { slices },
            public,
            slices: chosen.into_iter().map(slice).collect(),
        };
        establish(node, &record, &inventories).await?;
        Ok(record)
    };
    let made = made.await;
    if let Ok(record) = &made {
        tell(node, record).await;
    }
    // Also after an error: a server whose answer was lost refuses to make it real afterwards, or has done so.
    release(node, uuid).await;
    made
}

/// Asks every server for the name; their inventories.
async fn promises(
    node: &Arc<Node>,
    collection: Uuid,
    namespace: &Namespace,
) -> Result<Vec<Inventory>, Error> {
    let others: Vec<Arc<str>> = node.others().into_iter().map(|other| other.base).collect();
    let servers: Vec<String> = others.iter().chain([&node.base]).map(ToString::to_string).collect();
    node.promise(collection, namespace, &servers)?;
    let own = Arc::clone(node);
    let mut inventories = vec![blocking(move || Ok(own.inventory())).await?];
    let asked = others.iter().map(|base| {
        let servers = servers.clone();
        async move {
            let call = Call::Promise { collection, namespace: namespace.clone(), servers };
            match node.link(base)?.ask(call).await? {
                Answer::Inventory(inventory) => Ok(*inventory),
                Answer::Overlap(other) => Err(Error::Overlap { namespace: namespace.clone(), other }),
                _ => Err(Error::away(format!("the server {base} is away"))),
            }
        }
    });
    for inventory in join_all(asked).await {
        inventories.push(inventory?);
    }
    Ok(inventories)
}

/// The server of slice 0 takes the record over first: from then on the collection is real.
async fn establish(node: &Arc<Node>, record: &Collection, inventories: &[Inventory]) -> Result<(), Error> {
    let first = record.slices.first().map(|slice| slice.partition);
    let host = inventories
        .iter()
        .find(|inventory| inventory.partitions.iter().any(|seen| Some(seen.uuid) == first))
        .ok_or_else(|| Error::away("the server of slice 0 is away"))?;
    if *host.base == *node.base {
        let (own, record) = (Arc::clone(node), record.clone());
        return blocking(move || own.establish(&record)).await;
    }
    node.link(&host.base)?.ask(Call::Establish { record: record.clone() }).await.map(drop)
}

async fn release(node: &Arc<Node>, collection: Uuid) {
    node.release(collection);
    let told = node.others().into_iter().filter(|other| other.alive).map(|other| async move {
        if let Ok(link) = node.link(&other.base) {
            let _ = link.ask(Call::Release { collection }).await;
        }
    });
    join_all(told).await;
}
