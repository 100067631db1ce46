//! The life of a collection as decisions: which record follows which, which server takes one over, when a name may be
//! given. Pure: the servers act by these functions, and `model` explores them exhaustively.
//!
//! ```text
//!            reslice            end of the move
//!   Stable ───────────▶ Moving ─────────────────▶ Stable
//!     │ ▲                 │
//!     │ │ reopen          │ removal with files       Gone is final.
//!     ▼ │                 ▼
//!   Closing ───────────▶ Gone
//!           found empty
//! ```

use std::num::NonZeroU32;

use crate::collection::Layout;

/// A record as far as decisions go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Standing {
    pub epoch: u64,
    pub layout: Layout,
}

/// A change to an existing collection, decided by the server of its slice 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    Reslice {
        to: NonZeroU32,
    },
    /// Of the move that began with this epoch.
    EndMove {
        epoch: u64,
    },
    /// Takes no more names, so that all slices can be found empty.
    Close,
    Reopen,
    /// Found empty while closed.
    RemoveEmpty {
        epoch: u64,
    },
    RemoveWithFiles,
}

/// Why a step is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StepRefused {
    Gone,
    Moving,
    Closing,
    SameNumber,
    /// The record changed since the step was considered.
    Overtaken,
}

/// The record after a step. `spent` is the highest epoch that was ever written down here: a record whose writing failed
/// halfway may be found on a disk later, so its epoch is not used again. One epoch names one record.
pub fn next(own: Standing, spent: u64, step: Step) -> Result<Standing, StepRefused> {
    use Layout::{Closing, Gone, Moving, Stable};
    let layout = match (step, own.layout) {
        (_, Gone) => return Err(StepRefused::Gone),
        (Step::EndMove { epoch } | Step::RemoveEmpty { epoch }, _) if epoch != own.epoch => {
            return Err(StepRefused::Overtaken);
        }
        (Step::RemoveWithFiles, _) | (Step::RemoveEmpty { .. }, Closing { .. }) => Gone,
        (Step::Reslice { to }, Stable { slices }) if to == slices => return Err(StepRefused::SameNumber),
        (Step::Reslice { to }, Stable { slices }) => Moving { from: slices, to },
        (Step::EndMove { .. }, Moving { to, .. }) => Stable { slices: to },
        (Step::Close, Stable { slices }) => Closing { slices },
        (Step::Reopen, Closing { slices }) => Stable { slices },
        (Step::Reslice { .. } | Step::Close, Moving { .. }) => return Err(StepRefused::Moving),
        (Step::Reslice { .. } | Step::Close, Closing { .. }) => return Err(StepRefused::Closing),
        (Step::EndMove { .. } | Step::Reopen | Step::RemoveEmpty { .. }, _) => {
            return Err(StepRefused::Overtaken);
        }
    };
    Ok(Standing { epoch: own.epoch.max(spent) + 1, layout })
}

/// What a server does with a record it hears of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Adoption {
    /// Not newer than its own, or of no concern to its partitions.
    Ignore,
    /// A removal of what is not here: kept in mind, so that an older record that is still under way comes too late.
    Remember,
    /// Another living collection here has the name, or one that overlaps: not before that one is gone.
    NameTaken,
    Take,
}

/// `own` is the record on our partitions, or the last one that we have heard of since the start and that left us.
/// `concerned`: a partition here has or had a slice. `name_taken`: by another living collection on our partitions.
pub fn adoption(own: Option<Standing>, offered: Standing, concerned: bool, name_taken: bool) -> Adoption {
    if own.is_some_and(|own| !replaces(offered, own)) {
        return Adoption::Ignore;
    }
    if !concerned {
        return if offered.layout == Layout::Gone { Adoption::Remember } else { Adoption::Ignore };
    }
    if name_taken && offered.layout != Layout::Gone {
        return Adoption::NameTaken;
    }
    Adoption::Take
}

/// Of two records of one collection: a removal is final, else the higher epoch holds.
pub fn replaces(offered: Standing, own: Standing) -> bool {
    match (offered.layout == Layout::Gone, own.layout == Layout::Gone) {
        (true, false) => true,
        (false, true) => false,
        _ => offered.epoch > own.epoch,
    }
}

/// Whether a server that works by epoch `gate` gives a name (to a file or a directory) to who read the record `by`.
pub fn gives_names(gate: u64, by: Standing) -> bool {
    gate == by.epoch && matches!(by.layout, Layout::Stable { .. } | Layout::Moving { .. })
}

/// Whether a name is free for a new collection on one server. `held_for_another`: this server is making another one of that
/// name real just now.
///
/// The server of slice 0 holds the name while it makes a collection real: it takes hold of it, then asks every other server,
/// then writes the record, all by this rule. Of two collections of one name, made at the same time, the one whose server took
/// hold later is refused by the other's server; so it needs no promise that would have to be kept, or to end.
pub fn name_is_free(name_taken: bool, held_for_another: bool, all_known_are_asked: bool) -> bool {
    !name_taken && !held_for_another && all_known_are_asked
}

#[cfg(test)]
mod tests {
    use super::*;

    fn n(n: u32) -> NonZeroU32 {
        NonZeroU32::new(n).unwrap()
    }

    #[test]
    fn every_step_from_every_state() {
        use Layout::{Closing, Gone, Moving, Stable};
        use StepRefused::{Closing as IsClosing, Gone as IsGone, Moving as IsMoving, Overtaken, SameNumber};
        let (stable, moving) = (Stable { slices: n(2) }, Moving { from: n(2), to: n(4) });
        let closing = Closing { slices: n(2) };
        let (to_four, end, empty) =
            (Step::Reslice { to: n(4) }, Step::EndMove { epoch: 5 }, Step::RemoveEmpty { epoch: 5 });
        for (layout, step, expected) in [
            (stable, to_four, Ok(moving)),
            (stable, Step::Reslice { to: n(2) }, Err(SameNumber)),
            (stable, end, Err(Overtaken)),
            (stable, Step::Close, Ok(closing)),
            (stable, Step::Reopen, Err(Overtaken)),
            (stable, empty, Err(Overtaken)),
            (stable, Step::RemoveWithFiles, Ok(Gone)),
            (moving, to_four, Err(IsMoving)),
            (moving, end, Ok(Stable { slices: n(4) })),
            (moving, Step::EndMove { epoch: 4 }, Err(Overtaken)),
            (moving, Step::Close, Err(IsMoving)),
            (moving, Step::Reopen, Err(Overtaken)),
            (moving, empty, Err(Overtaken)),
            (moving, Step::RemoveWithFiles, Ok(Gone)),
            (closing, to_four, Err(IsClosing)),
            (closing, end, Err(Overtaken)),
            (closing, Step::Close, Err(IsClosing)),
            (closing, Step::Reopen, Ok(stable)),
            (closing, empty, Ok(Gone)),
            (closing, Step::RemoveEmpty { epoch: 4 }, Err(Overtaken)),
            (closing, Step::RemoveWithFiles, Ok(Gone)),
            (Gone, Step::RemoveWithFiles, Err(IsGone)),
            (Gone, to_four, Err(IsGone)),
        ] {
            let own = Standing { epoch: 5, layout };
            for (spent, epoch) in [(0, 6), (5, 6), (8, 9)] {
                let expected = expected.map(|layout| Standing { epoch, layout });
                assert_eq!(next(own, spent, step), expected, "{layout:?} {step:?}");
            }
        }
    }

    #[test]
    fn a_removal_is_final_and_a_taken_name_waits() {
        let at = |epoch, layout| Standing { epoch, layout };
        let stable = Layout::Stable { slices: n(1) };
        let gone = at(3, Layout::Gone);
        assert_eq!(adoption(Some(at(9, stable)), gone, true, false), Adoption::Take);
        assert_eq!(adoption(Some(gone), at(9, stable), true, false), Adoption::Ignore);
        assert_eq!(adoption(None, at(1, stable), true, true), Adoption::NameTaken);
        assert_eq!(adoption(None, at(1, stable), false, true), Adoption::Ignore);
        assert_eq!(adoption(None, gone, true, true), Adoption::Take);
        assert_eq!(adoption(None, gone, false, true), Adoption::Remember);
        assert_eq!(adoption(Some(gone), at(1, stable), true, false), Adoption::Ignore, "late");
        assert_eq!(adoption(Some(at(1, stable)), at(1, stable), true, false), Adoption::Ignore);
        assert_eq!(adoption(Some(at(1, stable)), at(2, stable), true, false), Adoption::Take);
    }

    #[test]
    fn names_are_given_by_the_record_that_holds_and_only_while_it_is_open() {
        let open = [Layout::Stable { slices: n(1) }, Layout::Moving { from: n(1), to: n(2) }];
        for layout in open {
            assert!(gives_names(2, Standing { epoch: 2, layout }));
            assert!(!gives_names(3, Standing { epoch: 2, layout }));
        }
        for layout in [Layout::Closing { slices: n(1) }, Layout::Gone] {
            assert!(!gives_names(2, Standing { epoch: 2, layout }));
        }
    }
}
