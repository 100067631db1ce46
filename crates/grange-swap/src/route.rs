//! Who answers for a name: here, somebody else, or nobody just now. Pure; the paper's "one hop" and its bounds.
//!
//! Every redirect carries how many there were and the epoch it was decided by. Two servers with the same epoch have
//! the same table, so a request that was redirected to a server which does not keep the slice means that they
//! disagree: it is answered with 508 and never sent on. Different epochs only mean that one has not heard of a change
//! yet: the newer one knows better and may send on.

use std::sync::Arc;

use crate::collection::Spot;
use crate::place::Point;
use crate::view::{Home, Known};

/// Redirects that may lie behind a request, while a collection moves and servers learn of it one after the other.
const MAX_HOPS: u8 = 5;

/// The marks a redirect leaves in the query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hops {
    pub count: u8,
    pub epoch: Option<u64>,
    /// Look where the file lay before the move.
    pub before: bool,
}

/// The decision.
#[derive(Debug)]
pub enum Route {
    /// The slice is here. `before` is where the file may still be.
    Here {
        slice: usize,
        before: Option<usize>,
    },
    /// Look at the slice the file is moving away from; when it is not there, it has moved on.
    HereBefore {
        slice: usize,
        moved_on_to: usize,
    },
    /// Another server keeps it.
    There {
        base: Arc<str>,
        hops: Hops,
    },
    /// The server that keeps it cannot be reached, or nobody ever said to keep it.
    Down {
        slice: usize,
    },
    /// Whoever sent this knows of a newer table than we do.
    Behind,
    /// The tables contradict each other.
    Disagreement,
    Gone,
}

pub fn route(known: &Known, point: Point, hops: Hops) -> Route {
    let Some(Spot { slice, before }) = known.record.layout.spot(point) else { return Route::Gone };
    if hops.count > MAX_HOPS {
        return Route::Disagreement;
    }
    if hops.before
        && let Some(before) = before
        && let Home::Here(_) = known.homes[before]
    {
        return Route::HereBefore { slice: before, moved_on_to: slice };
    }
    match &known.homes[slice] {
        // The third answer of a chain is final: it has looked at the new place, the old one, and the new one again.
        Home::Here(_) => Route::Here { slice, before: before.filter(|_| hops.count < 3) },
        Home::There { base, alive: true } => {
            let epoch = known.record.epoch;
            match (hops.count, hops.epoch) {
                (1.., None) => Route::Disagreement,
                (1.., Some(sent)) if sent > epoch => Route::Behind,
                (1.., Some(sent)) if sent == epoch && !hops.before => Route::Disagreement,
                (count, _) => {
                    let hops = Hops { count: count + 1, epoch: Some(epoch), before: false };
                    Route::There { base: Arc::clone(base), hops }
                }
            }
        }
        Home::There { alive: false, .. } | Home::Nowhere => Route::Down { slice },
    }
}

/// Where to go on after a miss at the new place: the old one.
pub fn to_before(known: &Known, before: usize, hops: Hops) -> Route {
    match &known.homes[before] {
        Home::Here(_) => Route::Here { slice: before, before: None },
        Home::There { base, alive: true } => {
            let hops = Hops { count: hops.count + 1, epoch: Some(known.record.epoch), before: true };
            Route::There { base: Arc::clone(base), hops }
        }
        Home::There { .. } | Home::Nowhere => Route::Down { slice: before },
    }
}

/// Where to go on after a miss at the old place: it was moved meanwhile, or is nowhere.
pub fn moved_on(known: &Known, slice: usize, hops: Hops) -> Route {
    match &known.homes[slice] {
        Home::Here(_) => Route::Here { slice, before: None },
        Home::There { base, alive: true } => {
            let hops = Hops { count: hops.count.max(2) + 1, epoch: Some(known.record.epoch), before: false };
            Route::There { base: Arc::clone(base), hops }
        }
        Home::There { .. } | Home::Nowhere => Route::Down { slice },
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use uuid::Uuid;

    use super::*;
    use crate::collection::{Collection, Layout, Slice};
    use crate::name::Namespace;

    fn known(layout: Layout, homes: Vec<Home>) -> Known {
        let slice = Slice { uuid: Uuid::nil(), partition: Uuid::nil() };
        let record = Collection {
            uuid: Uuid::nil(),
            namespace: Namespace::new("c").unwrap(),
            epoch: 4,
            layout,
            public: true,
            slices: vec![slice; homes.len()],
        };
        Known::for_tests(record, homes)
    }

    fn there(alive: bool) -> Home {
        Home::There { base: "http://other".into(), alive }
    }

    fn n(n: u32) -> NonZeroU32 {
        NonZeroU32::new(n).unwrap()
    }

    #[test]
    fn one_hop_and_no_more() {
        let stable = known(Layout::Stable { slices: n(2) }, vec![there(true), there(false)]);
        let hops = |count, epoch| Hops { count, epoch, before: false };
        let Route::There { hops: marked, .. } = route(&stable, Point(0), Hops::default()) else { panic!() };
        assert_eq!(marked, hops(1, Some(4)));
        assert!(matches!(route(&stable, Point(1), Hops::default()), Route::Down { slice: 1 }));
        // The same table and still not ours.
        assert!(matches!(route(&stable, Point(0), hops(1, Some(4))), Route::Disagreement));
        assert!(matches!(route(&stable, Point(0), hops(1, None)), Route::Disagreement));
        // The sender had an older table: we know better. It had a newer one: we wait.
        assert!(matches!(route(&stable, Point(0), hops(1, Some(3))), Route::There { .. }));
        assert!(matches!(route(&stable, Point(0), hops(1, Some(5))), Route::Behind));
        assert!(matches!(route(&stable, Point(0), hops(6, Some(3))), Route::Disagreement));
        let gone = known(Layout::Gone, vec![]);
        assert!(matches!(route(&gone, Point(0), Hops::default()), Route::Gone));
    }

    #[test]
    fn a_miss_at_the_new_place_leads_to_the_old_and_back_at_most_once() {
        let moving = Layout::Moving { from: n(1), to: n(2) };
        let asked = known(moving, vec![there(true), there(true)]);
        let Route::There { hops, .. } = route(&asked, Point(1), Hops::default()) else { panic!() };
        assert_eq!((hops.count, hops.before), (1, false));
        // At old the file was just moved on; back at new the answer is final.
        let Route::There { hops, .. } = to_before(&asked, 0, hops) else { panic!() };
        assert_eq!((hops.count, hops.before), (2, true));
        let Route::There { hops, .. } = moved_on(&asked, 1, hops) else { panic!() };
        assert_eq!((hops.count, hops.before), (3, false));
        // A server that already finished the move sends the late visitor to where the file is.
        let stable = known(Layout::Stable { slices: n(2) }, vec![there(true), there(true)]);
        let late = Hops { count: 2, epoch: Some(3), before: true };
        assert!(matches!(route(&stable, Point(1), late), Route::There { hops, .. } if hops.count == 3));
    }
}
