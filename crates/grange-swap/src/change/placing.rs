//! Which partitions new slices are put on. Pure.

use std::collections::HashMap;

use uuid::Uuid;

use crate::collection::Collection;
use crate::view::Inventory;

/// A partition that could take a slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    partition: Uuid,
    server: String,
    free_bytes: u64,
    file_system: u64,
}

/// Partitions without a slice of the collection, on the kind of file system it lies on already.
pub(super) fn candidates(inventories: &[Inventory], of: Option<&Collection>) -> Vec<Candidate> {
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
pub(super) fn assign(candidates: &[Candidate], slices: usize, mixed: bool) -> Result<Vec<Uuid>, String> {
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
