//! Making, re-slicing and removing collections. One server decides each change: for a new collection the first of all
//! servers by name, for an existing one the server of its slice 0. So no two changes contradict each other, and there
//! is nothing to vote on. The decision is a record with the next epoch; every server with a partition in it takes it
//! over, told directly or, when it missed that, from the inventory of any other.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use futures_util::future::join_all;
use uuid::Uuid;

use crate::collection::{Collection, Layout, MAX_SLICES, Slice};
use crate::error::Error;
use crate::name::Namespace;
use crate::node::Node;
use crate::peer::call::{Answer, Call, Change};
use crate::peer::serve::blocking;
use crate::view::{Home, Inventory, Known};

/// Has a change decided by whom it takes.
pub(crate) async fn request(node: &Arc<Node>, change: Change) -> Result<Collection, Error> {
    let decider = match &change {
        Change::Create { namespace, .. } => {
            Namespace::new(namespace.as_str())?;
            all_here(node)?;
            let others = node.others().into_iter().map(|other| other.base);
            others.chain([Arc::clone(&node.base)]).min().filter(|first| *first != node.base)
        }
        Change::Reslice { collection, .. } | Change::Remove { collection, .. } => {
            match node.known(*collection)?.homes.first() {
                Some(Home::Here(_)) => None,
                Some(Home::There { base, .. }) => Some(Arc::clone(base)),
                _ => {
                    return Err(Error::away(
                        "the server of slice 0, which decides on this collection, is away",
                    ));
                }
            }
        }
    };
    match decider {
        None => decide(node, change).await,
        Some(base) => match node.link(&base)?.ask(Call::Change { change }).await? {
            Answer::Changed(record) => Ok(*record),
            _ => Err(Error::Foreign { place: base.to_string(), reason: "no record came".to_owned() }),
        },
    }
}

/// Decides a change here.
pub(crate) async fn decide(node: &Arc<Node>, change: Change) -> Result<Collection, Error> {
    let _one = node.deciding.lock().await;
    let record = match change {
        Change::Create { namespace, slices, public, mixed_disks } => {
            create(node, Namespace::new(namespace)?, slices, public, mixed_disks).await?
        }
        Change::Reslice { collection, slices, mixed_disks } => {
            reslice(node, &*node.known(collection)?, slices, mixed_disks).await?
        }
        Change::Remove { collection, with_files } => {
            remove(node, &*node.known(collection)?, with_files).await?
        }
    };
    install(node, &record).await?;
    Ok(record)
}

/// Every peer must be here when a name is given to a collection: one that is away might know the name.
fn all_here(node: &Node) -> Result<(), Error> {
    let mut away = node.unseen();
    away.extend(node.others().iter().filter(|other| !other.alive).map(|other| other.base.to_string()));
    match away.first() {
        None => Ok(()),
        Some(first) => Err(Error::away(format!("{first} is away, and might know a collection of that name"))),
    }
}

/// What every living server has just now.
pub(crate) async fn inventories(node: &Arc<Node>) -> Result<Vec<Inventory>, Error> {
    let own = Arc::clone(node);
    let mut all = vec![blocking(move || Ok(own.inventory())).await?];
    let asked = node.others().into_iter().filter(|other| other.alive).map(|other| async move {
        match node.link(&other.base)?.ask(Call::Watch { since: None }).await? {
            Answer::Inventory(inventory) => Ok(*inventory),
            _ => Err(Error::away(format!("the server {} is away", other.base))),
        }
    });
    for inventory in join_all(asked).await {
        all.push(inventory?);
    }
    Ok(all)
}

fn count(slices: u32) -> Result<NonZeroU32, Error> {
    let fits = NonZeroU32::new(slices).filter(|slices| slices.get() <= MAX_SLICES);
    fits.ok_or_else(|| Error::refused(format!("a collection has 1 to {MAX_SLICES} slices, not {slices}")))
}

async fn create(
    node: &Arc<Node>,
    namespace: Namespace,
    slices: u32,
    public: bool,
    mixed: bool,
) -> Result<Collection, Error> {
    all_here(node)?;
    let slices = count(slices)?;
    if let Some(other) = node.view().collections().find(|known| known.record.namespace.overlaps(&namespace)) {
        return Err(Error::Overlap { namespace, other: other.record.namespace.clone() });
    }
    let candidates = candidates(&inventories(node).await?, None);
    let chosen = assign(&candidates, slices.get() as usize, mixed).map_err(Error::refused)?;
    let slice = |partition| Slice { uuid: Uuid::new_v4(), partition };
    Ok(Collection {
        uuid: Uuid::new_v4(),
        namespace,
        epoch: 1,
        layout: Layout::Stable { slices },
        public,
        slices: chosen.into_iter().map(slice).collect(),
    })
}

/// All servers of a collection, as inventories; an error names the first that is away.
async fn hosts(node: &Arc<Node>, known: &Known) -> Result<Vec<Inventory>, Error> {
    for (slice, home) in known.homes.iter().enumerate() {
        if let Home::Nowhere | Home::There { alive: false, .. } = home {
            return Err(Error::away(format!("the server of slice {slice} is away")));
        }
    }
    inventories(node).await
}

async fn reslice(node: &Arc<Node>, known: &Known, slices: u32, mixed: bool) -> Result<Collection, Error> {
    let record = &known.record;
    let to = count(slices)?;
    let Layout::Stable { slices: from } = record.layout else {
        return Err(Error::refused(format!(
            "{} is moving already: wait until that is done",
            record.namespace
        )));
    };
    if from == to {
        return Err(Error::refused(format!("{} has {from} slices already", record.namespace)));
    }
    let inventories = hosts(node, known).await?;
    let mut next = record.clone();
    next.epoch += 1;
    next.layout = Layout::Moving { from, to };
    if to > from {
        let candidates = candidates(&inventories, Some(record));
        let chosen = assign(&candidates, (to.get() - from.get()) as usize, mixed).map_err(Error::refused)?;
        next.slices.extend(chosen.into_iter().map(|partition| Slice { uuid: Uuid::new_v4(), partition }));
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

async fn remove(node: &Arc<Node>, known: &Known, with_files: bool) -> Result<Collection, Error> {
    let inventories = hosts(node, known).await?;
    let slices = inventories.iter().flat_map(|inventory| &inventory.slices);
    let files: u64 =
        slices.filter(|slice| slice.collection == known.record.uuid).map(|slice| slice.files).sum();
    if files > 0 && !with_files {
        let namespace = &known.record.namespace;
        return Err(Error::refused(format!(
            "{namespace} holds {files} files: remove them first, or ask for all of it"
        )));
    }
    Ok(Collection {
        epoch: known.record.epoch + 1,
        layout: Layout::Gone,
        slices: Vec::new(),
        ..known.record.clone()
    })
}

/// Tells everybody at once. Who is missed learns it from the inventories.
pub(crate) async fn install(node: &Arc<Node>, record: &Collection) -> Result<(), Error> {
    let (own, ours) = (Arc::clone(node), record.clone());
    blocking(move || own.adopt(&ours)).await?;
    let told = node.others().into_iter().filter(|other| other.alive).map(|other| async move {
        node.link(&other.base)?.ask(Call::Adopt { record: record.clone() }).await
    });
    let told = join_all(told).await;
    let adopted = node.view().by_uuid(record.uuid).is_some_and(|known| known.record.epoch == record.epoch);
    if adopted || told.iter().any(Result::is_ok) {
        return Ok(());
    }
    Err(told.into_iter().find_map(Result::err).unwrap_or_else(|| Error::away("nobody keeps a slice of it")))
}

/// A partition that could take a slice.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Candidate {
    partition: Uuid,
    server: String,
    free_bytes: u64,
    file_system: u64,
}

/// Partitions without a slice of the collection, on the kind of file system it lies on already.
fn candidates(inventories: &[Inventory], of: Option<&Collection>) -> Vec<Candidate> {
    let all = inventories
        .iter()
        .flat_map(|inventory| inventory.partitions.iter().map(move |seen| (inventory, seen)));
    let all: Vec<_> = all.collect();
    let taken = |partition| of.is_some_and(|record| record.slice_on(partition).is_some());
    let kind = all.iter().find(|(_, seen)| taken(seen.uuid)).map(|(_, seen)| seen.file_system);
    all.into_iter()
        .filter(|(_, seen)| !taken(seen.uuid) && kind.is_none_or(|kind| kind == seen.file_system))
        .map(|(inventory, seen)| Candidate {
            partition: seen.uuid,
            server: inventory.base.clone(),
            free_bytes: seen.free_bytes,
            file_system: seen.file_system,
        })
        .collect()
}

/// Chooses partitions for new slices: one kind of file system unless told otherwise, servers in turn, the emptiest
/// disk of each first.
fn assign(candidates: &[Candidate], slices: usize, mixed: bool) -> Result<Vec<Uuid>, String> {
    let mut kinds: HashMap<u64, usize> = HashMap::new();
    for candidate in candidates {
        *kinds.entry(candidate.file_system).or_default() += 1;
    }
    let largest = kinds.iter().max_by_key(|(kind, count)| (**count, **kind)).map(|(kind, _)| *kind);
    let mut left: Vec<_> =
        candidates.iter().filter(|candidate| mixed || Some(candidate.file_system) == largest).collect();
    if left.len() < slices {
        let mut text = format!(
            "{slices} partitions without a slice of this collection are needed and {} are there: \
             make more with grange swap init and serve them",
            left.len()
        );
        if candidates.len() >= slices {
            text += ", or allow partitions on different kinds of file system";
        }
        return Err(text);
    }
    let mut chosen: Vec<&Candidate> = Vec::new();
    while chosen.len() < slices {
        let load = |server: &str| chosen.iter().filter(|taken| taken.server == server).count();
        let best = left.iter().enumerate().min_by_key(|(_, candidate)| {
            (load(&candidate.server), std::cmp::Reverse(candidate.free_bytes), candidate.partition)
        });
        let Some((at, _)) = best else { break };
        chosen.push(left.swap_remove(at));
    }
    Ok(chosen.into_iter().map(|candidate| candidate.partition).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(id: u128, server: &str, free_bytes: u64, file_system: u64) -> Candidate {
        Candidate { partition: Uuid::from_u128(id), server: server.to_owned(), free_bytes, file_system }
    }

    #[test]
    fn slices_are_spread_over_servers_then_over_room() {
        let all = [
            candidate(1, "a", 10, 1),
            candidate(2, "a", 30, 1),
            candidate(3, "a", 20, 1),
            candidate(4, "b", 5, 1),
            candidate(5, "b", 6, 1),
            candidate(6, "c", 99, 2),
        ];
        let assigned = |slices, mixed| {
            assign(&all, slices, mixed).map(|ids| ids.iter().map(Uuid::as_u128).collect::<Vec<_>>())
        };
        assert_eq!(assigned(1, false).unwrap(), [2]);
        assert_eq!(assigned(4, false).unwrap(), [2, 5, 3, 4]);
        assert_eq!(assigned(3, true).unwrap(), [6, 2, 5]);
        let error = assigned(6, false).unwrap_err();
        assert!(error.contains("6 partitions") && error.contains("different kinds"), "{error}");
        assert!(assigned(7, true).unwrap_err().contains("grange swap init"));
        assert!(assign(&[], 1, false).is_err());
    }
}
