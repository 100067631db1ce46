//! The store state machine: what to do next about one file on one replica. Pure: no clock, no IO.
//!
//! ```text
//!         deposit, due            taken            equal
//!  unknown ─────────────▶ STARTED ───────▶ UPLOADED ──────▶ COMPLETED ─┐ deposit: the replica is
//!                          ▲   │  refused      │ different, unanswered,│ asked for its checksum again
//!              missing and │   └──────────┐    │ missing, no tries left│
//!              tries left  └──────────────┼────┤                       │
//!                                         ▼    ▼      different        │
//!                          ◀───────────── FAILED ◀─────────────────────┘
//!                deposit, due: the replica is asked first what it has
//! ```
//!
//! Nothing is sent that may be there already: a copy that is not complete is asked for its checksum before it is sent
//! again. So a crash, a repeated store and a replica that was away all heal the same way.
//!
//! A deposit is acknowledged only if every replica answered the depositor's checksum during this very deposit
//! ([`acknowledged`]). Rows may be old: of a restored database, or from before a disk went bad.

use crate::UploadState;
use crate::UploadState::{DataUploaded, Unknown, UploadCompleted, UploadFailed, UploadStarted};

/// One copy as the state machine sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyState {
    pub state: UploadState,
    /// Uploads tried again because the replica said it had nothing.
    pub attempts: u32,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreEvent {
    /// A depositor hands in the file: for the first time or again.
    Deposit,
    /// The file is due to be completed without a depositor: after a crash, or where a replica was away.
    Due,
    /// The replica took the bytes.
    Taken,
    /// It did not.
    Refused,
    /// The replica's own checksum is the file's.
    Equal,
    /// It is another.
    Different,
    /// The replica has no such file.
    Missing,
    /// The replica could not be asked.
    Unanswered,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreAction {
    Upload,
    AskChecksum,
}

/// The next state and what to do.
pub fn step(copy: CopyState, event: StoreEvent, upload_retries: u32) -> (CopyState, Option<StoreAction>) {
    let keep = |state| (CopyState { state, ..copy }, None);
    let fresh = |state, action| (CopyState { state, attempts: 0 }, Some(action));
    match (copy.state, event) {
        // A deposit is acknowledged by what the replica answers now.
        (UploadCompleted, StoreEvent::Deposit) => fresh(UploadCompleted, StoreAction::AskChecksum),
        (UploadCompleted, StoreEvent::Missing) if copy.attempts < upload_retries => {
            (CopyState { state: UploadStarted, attempts: copy.attempts + 1 }, Some(StoreAction::Upload))
        }
        // A copy that is complete stays so, unless the replica itself says otherwise.
        (UploadCompleted, StoreEvent::Different | StoreEvent::Missing) => keep(UploadFailed),
        (UploadCompleted, _) => (copy, None),

        (Unknown, StoreEvent::Deposit | StoreEvent::Due) => fresh(UploadStarted, StoreAction::Upload),
        (UploadFailed, StoreEvent::Deposit | StoreEvent::Due) => {
            fresh(UploadStarted, StoreAction::AskChecksum)
        }
        (UploadStarted | DataUploaded, StoreEvent::Deposit) => fresh(copy.state, StoreAction::AskChecksum),
        (UploadStarted | DataUploaded, StoreEvent::Due) => (copy, Some(StoreAction::AskChecksum)),

        (UploadStarted, StoreEvent::Taken) => {
            (CopyState { state: DataUploaded, ..copy }, Some(StoreAction::AskChecksum))
        }
        (UploadStarted, StoreEvent::Refused) => keep(UploadFailed),

        // Proof counts whenever it comes, also after the copy was given up.
        (_, StoreEvent::Equal) => keep(UploadCompleted),

        (UploadStarted | DataUploaded, StoreEvent::Missing) if copy.attempts < upload_retries => {
            (CopyState { state: UploadStarted, attempts: copy.attempts + 1 }, Some(StoreAction::Upload))
        }
        (
            UploadStarted | DataUploaded,
            StoreEvent::Missing | StoreEvent::Different | StoreEvent::Unanswered,
        ) => keep(UploadFailed),

        // Late or repeated words about what is over.
        (Unknown | UploadFailed | DataUploaded, _) => (copy, None),
    }
}

/// Whether a deposit may be acknowledged. `answered_equal` holds, for every replica, whether it answered the depositor's
/// checksum during this deposit; what rows say from before does not count.
pub fn acknowledged(answered_equal: impl IntoIterator<Item = bool>) -> bool {
    let mut replicas = answered_equal.into_iter().peekable();
    replicas.peek().is_some() && replicas.all(|equal| equal)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const EVENTS: [StoreEvent; 8] = [
        StoreEvent::Deposit,
        StoreEvent::Due,
        StoreEvent::Taken,
        StoreEvent::Refused,
        StoreEvent::Equal,
        StoreEvent::Different,
        StoreEvent::Missing,
        StoreEvent::Unanswered,
    ];

    /// Every state with every event: the next state, and u(pload) or a(sk). `upload_retries` is 1, none were used.
    #[test]
    fn the_whole_table() {
        // The columns are EVENTS: deposit, due, taken, refused, equal, different, missing, unanswered.
        let table = [
            (Unknown, ["S u", "S u", "N", "N", "C", "N", "N", "N"]),
            (UploadStarted, ["S a", "S a", "D a", "F", "C", "F", "S u", "F"]),
            (DataUploaded, ["D a", "D a", "D", "D", "C", "F", "S u", "F"]),
            (UploadCompleted, ["C a", "C", "C", "C", "C", "F", "S u", "C"]),
            (UploadFailed, ["S a", "S a", "F", "F", "C", "F", "F", "F"]),
        ];
        for (state, row) in table {
            for (event, expected) in EVENTS.into_iter().zip(row) {
                let (next, action) = step(CopyState { state, attempts: 0 }, event, 1);
                let letter = match next.state {
                    Unknown => "N",
                    UploadStarted => "S",
                    DataUploaded => "D",
                    UploadCompleted => "C",
                    UploadFailed => "F",
                };
                let told = match action {
                    None => letter.to_owned(),
                    Some(StoreAction::Upload) => format!("{letter} u"),
                    Some(StoreAction::AskChecksum) => format!("{letter} a"),
                };
                assert_eq!(told, expected, "{state} {event:?}");
            }
        }
    }

    #[test]
    fn a_missing_copy_is_sent_again_as_often_as_allowed_and_asking_anew_counts_anew() {
        let started = CopyState { state: UploadStarted, attempts: 0 };
        let (again, action) = step(started, StoreEvent::Missing, 1);
        assert_eq!((again.attempts, action), (1, Some(StoreAction::Upload)));
        let (failed, action) = step(CopyState { state: DataUploaded, ..again }, StoreEvent::Missing, 1);
        assert_eq!((failed.state, action), (UploadFailed, None));
        let (asked, action) = step(failed, StoreEvent::Deposit, 1);
        assert_eq!((asked, action), (started, Some(StoreAction::AskChecksum)));
        assert_eq!(step(started, StoreEvent::Missing, 0).0.state, UploadFailed);
    }

    #[test]
    fn a_complete_copy_that_is_missing_is_sent_again_as_often_as_allowed_and_then_failed() {
        let complete = |attempts| CopyState { state: UploadCompleted, attempts };
        for (attempts, retries, expected) in [
            (0, 0, (CopyState { state: UploadFailed, attempts: 0 }, None)),
            (0, 2, (CopyState { state: UploadStarted, attempts: 1 }, Some(StoreAction::Upload))),
            (1, 2, (CopyState { state: UploadStarted, attempts: 2 }, Some(StoreAction::Upload))),
            (2, 2, (CopyState { state: UploadFailed, attempts: 2 }, None)),
            (3, 2, (CopyState { state: UploadFailed, attempts: 3 }, None)),
        ] {
            assert_eq!(
                step(complete(attempts), StoreEvent::Missing, retries),
                expected,
                "{attempts} of {retries}"
            );
        }
    }

    #[test]
    fn a_deposit_is_acknowledged_only_if_every_replica_answered_equal_now() {
        for (answers, expected) in
            [(vec![], false), (vec![true; 3], true), (vec![true, false], false), (vec![false], false)]
        {
            assert_eq!(acknowledged(answers.clone()), expected, "{answers:?}");
        }
    }

    /// A replica as it really is, driven by the machine. `what` of each turn says what goes wrong.
    #[derive(Clone, Copy, Debug)]
    enum Turn {
        Well,
        /// The answer, or the act, is lost.
        Away,
        /// Killed after acting and before the state was written; only the row is left.
        Killed,
        /// The copy vanishes from the disk.
        Lost,
    }

    fn turns() -> impl Strategy<Value = Vec<Turn>> {
        let turn = prop_oneof![4 => Just(Turn::Well), 2 => Just(Turn::Away), 2 => Just(Turn::Killed), 1 => Just(Turn::Lost)];
        prop::collection::vec(turn, 0..40)
    }

    proptest! {
        /// Whatever goes wrong in whatever order: a copy is only called proven if the replica had it when asked, what
        /// is proven is never sent again, and one quiet store at the end proves it.
        #[test]
        fn any_order_of_faults_heals(turns in turns(), retries in 0_u32..3) {
            let (mut row, mut has) = (CopyState { state: Unknown, attempts: 0 }, false);
            let mut todo = None;
            let mut turns = turns.into_iter();
            let mut quiet = 0;
            // After the faults: stores without fault until nothing is left to do, twice at most.
            while quiet < 2 || todo.is_some() {
                let Some(action) = todo else {
                    let (next, action) = step(row, StoreEvent::Deposit, retries);
                    row = next;
                    todo = action;
                    if turns.len() == 0 {
                        quiet += 1;
                    }
                    if action.is_none() && turns.len() > 0 {
                        // Proven: the only thing left to go wrong is that it vanishes, which a check tells.
                        if matches!(turns.next(), Some(Turn::Lost)) {
                            has = false;
                            row = step(row, StoreEvent::Missing, retries).0;
                        }
                    }
                    continue;
                };
                let turn = turns.next().unwrap_or(Turn::Well);
                if matches!(turn, Turn::Lost) {
                    has = false;
                }
                let event = match action {
                    StoreAction::Upload => {
                        prop_assert!(row.state == UploadStarted);
                        if !matches!(turn, Turn::Away) {
                            has = true;
                        }
                        if matches!(turn, Turn::Away) { StoreEvent::Refused } else { StoreEvent::Taken }
                    }
                    StoreAction::AskChecksum => match turn {
                        Turn::Away => StoreEvent::Unanswered,
                        _ if has => StoreEvent::Equal,
                        _ => StoreEvent::Missing,
                    },
                };
                if matches!(turn, Turn::Killed) {
                    // What became of the act is not written down; a new process finds the row as it was.
                    let (next, action) = step(row, StoreEvent::Due, retries);
                    row = next;
                    todo = action;
                    continue;
                }
                let (next, action) = step(row, event, retries);
                prop_assert!(next.state != UploadCompleted || has, "called proven without a copy");
                row = next;
                todo = action;
            }
            // With no retries allowed, one more store sends what was found missing.
            if retries > 0 {
                prop_assert_eq!(row.state, UploadCompleted);
                prop_assert!(has);
            }
        }
    }
}
