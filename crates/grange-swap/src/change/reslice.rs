//! Another number of slices.

use std::num::NonZeroU32;
use std::sync::Arc;

use super::placing::{assign, candidates};
use super::{Decision, count, hosts};
use crate::collection::{Collection, Slice};
use crate::error::Error;
use crate::lifecycle::Step;
use crate::node::Node;
use crate::simulation;
use crate::view::Inventory;

pub(super) async fn reslice(
    node: &Arc<Node>,
    decision: &Decision,
    slices: u32,
    mixed: bool,
) -> Result<Collection, Error> {
    let to = count(slices)?;
    let record = &decision.own;
    let next = decision.next(Step::Reslice { to })?;
    let inventories = hosts(node, &decision.known).await?;
    let mut next = Collection { epoch: next.epoch, layout: next.layout, ..record.clone() };
    let from = record.slices.len();
    if to.get() as usize > from {
        let candidates = candidates(&inventories, Some(record));
        let chosen = assign(&candidates, to.get() as usize - from, mixed).map_err(Error::refused)?;
        let slice = |partition| Slice { uuid: simulation::new_id(), partition };
        next.slices.extend(chosen.into_iter().map(slice));
    } else {
        room_to_shrink(record, to, &inventories, node.settings.min_space_left.0).map_err(Error::refused)?;
    }
    Ok(next)
}

/// Whether the slices that stay have room for an even share of those that go.
fn room_to_shrink(
    record: &Collection,
    to: NonZeroU32,
    inventories: &[Inventory],
    spare: u64,
) -> Result<(), String> {
    let slices = inventories.iter().flat_map(|inventory| &inventory.slices);
    let going = slices.filter(|slice| slice.collection == record.uuid && slice.index >= to.get());
    let share = going.map(|slice| slice.bytes).sum::<u64>() / u64::from(to.get());
    for slice in &record.slices[..to.get() as usize] {
        let mut partitions = inventories.iter().flat_map(|inventory| &inventory.partitions);
        let Some(partition) = partitions.find(|partition| partition.uuid == slice.partition) else {
            continue;
        };
        if partition.free_bytes < share.saturating_add(spare) {
            let (path, free) = (&partition.path, partition.free_bytes);
            return Err(format!(
                "{path} has {free} bytes free, and about {share} would move there: free some space"
            ));
        }
    }
    Ok(())
}
