//! Which earlier jobs a job continues from: what they captured need not be stored again.

use std::collections::HashSet;

use grange_model::harvest::HarvestId;
use jiff::Timestamp;

/// A snapshot harvest among the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    pub id: HarvestId,
    pub created_at: Timestamp,
    pub continues: Option<HarvestId>,
}

/// The harvests all of whose jobs a snapshot continues from: those on its chain of earlier ones, then the snapshot
/// made last before the first of the chain, with its own chain. Every harvest is named once, also if chains were ever
/// to form a ring.
pub fn continued_by(snapshot: HarvestId, all: &[Snapshot]) -> Vec<HarvestId> {
    let find = |id: HarvestId| all.iter().find(|one| one.id == id);
    let mut seen = HashSet::from([snapshot]);
    let mut found = Vec::new();
    let mut walk = |from: Option<HarvestId>| {
        let (mut at, mut last) = (from.and_then(find), None);
        while let Some(one) = at.filter(|one| seen.insert(one.id)) {
            found.push(one.id);
            last = Some(one);
            at = one.continues.and_then(find);
        }
        last
    };
    let Some(own) = find(snapshot) else { return Vec::new() };
    let first = walk(own.continues).unwrap_or(own);
    let older = |one: &&Snapshot| (one.created_at, one.id) < (first.created_at, first.id);
    if let Some(before) = all.iter().filter(older).max_by_key(|one| (one.created_at, one.id)) {
        walk(Some(before.id));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshots(all: &[(i64, Option<i64>)]) -> Vec<Snapshot> {
        let one = |(id, continues): &(i64, Option<i64>)| Snapshot {
            id: HarvestId(*id),
            created_at: Timestamp::from_second(*id).unwrap(),
            continues: continues.map(HarvestId),
        };
        all.iter().map(one).collect()
    }

    #[test]
    fn a_snapshot_continues_its_chain_and_the_snapshot_before_it() {
        // Two rounds: 1 ← 2 ← 3 and 4 ← 5; 6 stands alone.
        let all = snapshots(&[(1, None), (2, Some(1)), (3, Some(2)), (4, None), (5, Some(4)), (6, None)]);
        for (of, expected) in [
            (1, vec![]),
            (2, vec![1]),
            (3, vec![2, 1]),
            (4, vec![3, 2, 1]),
            (5, vec![4, 3, 2, 1]),
            (6, vec![5, 4]),
            (99, vec![]),
        ] {
            let found: Vec<_> = continued_by(HarvestId(of), &all).iter().map(|id| id.0).collect();
            assert_eq!(found, expected, "of {of}");
        }
    }

    #[test]
    fn a_ring_is_walked_once() {
        let all = snapshots(&[(1, Some(2)), (2, Some(1)), (3, Some(3))]);
        assert_eq!(continued_by(HarvestId(1), &all), [HarvestId(2)]);
        assert_eq!(continued_by(HarvestId(3), &all).len(), 2);
    }
}
