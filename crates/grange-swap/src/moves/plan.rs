//! What a change of the number of slices means, without touching anything.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use crate::collection::Layout;
use crate::place::Point;

/// Where a name on a slice has to go; `None` when it may stay. A name that belongs to neither table is misplaced by
/// somebody's hand: it is left to `verify` and people.
pub(crate) fn destination(layout: Layout, slice: usize, point: Point) -> Option<usize> {
    let spot = layout.spot(point)?;
    (spot.before == Some(slice)).then_some(spot.slice)
}

/// How much a change would move, told before it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Estimate {
    pub from: u32,
    pub to: u32,
    /// Of a thousand files.
    pub moved_per_mille: u32,
    pub files: u64,
    pub bytes: u64,
    /// More partitions that this takes.
    pub new_partitions: u32,
}

/// An even spread is assumed, which MD5 gives. A file stays when both numbers put it on the same slice; that repeats
/// with every common multiple of the two.
pub fn estimate(from: NonZeroU32, to: NonZeroU32, files: u64, bytes: u64) -> Estimate {
    let (from, to) = (u64::from(from.get()), u64::from(to.get()));
    // Of each `from * to / gcd` consecutive values, the first `min` of every `lcm` stay.
    let lcm = from / gcd(from, to) * to;
    let stay = from.min(to);
    let share = |whole: u64| (u128::from(whole) * u128::from(lcm - stay) / u128::from(lcm)) as u64;
    Estimate {
        from: from as u32,
        to: to as u32,
        moved_per_mille: share(1000) as u32,
        files: share(files),
        bytes: share(bytes),
        new_partitions: to.saturating_sub(from) as u32,
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn n(n: u32) -> NonZeroU32 {
        NonZeroU32::new(n).unwrap()
    }

    #[test]
    fn shares_are_as_measured() {
        for (from, to, per_mille) in
            [(8, 16, 500), (16, 8, 500), (2, 3, 666), (4, 6, 666), (8, 9, 888), (1, 2, 500)]
        {
            let found = estimate(n(from), n(to), 1000, 10_000);
            assert_eq!(
                (found.moved_per_mille, found.files),
                (per_mille, u64::from(per_mille)),
                "{from} to {to}"
            );
            assert_eq!(found.new_partitions, to.saturating_sub(from));
        }
    }

    proptest! {
        #[test]
        fn a_file_moves_once_and_then_stays(value: u128, from in 1_u32..64, to in 1_u32..64) {
            let (point, layout) = (Point(value), Layout::Moving { from: n(from), to: n(to) });
            let (old, new) = (point.slice(n(from)) as usize, point.slice(n(to)) as usize);
            prop_assert_eq!(destination(layout, old, point), (old != new).then_some(new));
            prop_assert_eq!(destination(layout, new, point), None);
            prop_assert_eq!(destination(Layout::Stable { slices: n(to) }, new, point), None);
        }

        #[test]
        fn estimates_are_what_happens(from in 1_u32..20, to in 1_u32..20) {
            let lcm = from * to;
            let moved = (0..lcm).filter(|value| value % from != value % to).count() as u64;
            prop_assert_eq!(estimate(n(from), n(to), u64::from(lcm), 0).files, moved);
        }
    }
}
