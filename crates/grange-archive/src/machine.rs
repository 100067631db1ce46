//! The store state machine: what to do next about one file on one replica. Pure: no clock, no IO.
//!
//! ```text
//!            store asked          taken            equal
//!  unknown ─────────────▶ STARTED ───────▶ UPLOADED ──────▶ COMPLETED
//!                          ▲   │  refused      │ different, unanswered,
//!              missing and │   └──────────┐    │ missing with no tries left
//!              tries left  └──────────────┼────┤
//!                                         ▼    ▼
//!                          ◀───────────── FAILED      (store asked: the replica is asked first what it has)
//! ```
//!
//! Nothing is sent that may be there already: whoever comes back to a copy that is not proven asks for its checksum
//! before it sends again. So a crash, a repeated store and a replica that was away all heal the same way.

use grange_model::UploadState;
use grange_model::UploadState::{DataUploaded, Unknown, UploadCompleted, UploadFailed, UploadStarted};

/// One copy as the machine sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy {
    pub state: UploadState,
    /// Uploads tried again because the replica said it had nothing.
    pub attempts: u32,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Somebody wants the file stored: for the first time, again, or it is due to be healed.
    StoreAsked,
    /// The process came back after a crash and found the row.
    Resumed,
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
pub enum Action {
    Upload,
    AskChecksum,
}

/// How the store of a file stands over all replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every replica is proven.
    Stored,
    /// Some failed and none is on the way.
    NotStored,
    /// Some are on the way.
    Pending,
}

/// The next state and what to do.
pub fn step(copy: Copy, event: Event, upload_retries: u32) -> (Copy, Option<Action>) {
    let keep = |state| (Copy { state, ..copy }, None);
    let fresh = |state, action| (Copy { state, attempts: 0 }, Some(action));
    match (copy.state, event) {
        // A copy that is proven needs nothing, unless the replica itself says otherwise.
        (UploadCompleted, Event::Different | Event::Missing) => keep(UploadFailed),
        (UploadCompleted, _) => (copy, None),

        (Unknown, Event::StoreAsked | Event::Resumed) => fresh(UploadStarted, Action::Upload),
        (UploadFailed, Event::StoreAsked) => fresh(UploadStarted, Action::AskChecksum),
        (UploadStarted | DataUploaded, Event::StoreAsked) => fresh(copy.state, Action::AskChecksum),
        (UploadStarted | DataUploaded, Event::Resumed) => (copy, Some(Action::AskChecksum)),

        (UploadStarted, Event::Taken) => (Copy { state: DataUploaded, ..copy }, Some(Action::AskChecksum)),
        (UploadStarted, Event::Refused) => keep(UploadFailed),

        // Proof counts whenever it comes, also after the copy was given up.
        (_, Event::Equal) => keep(UploadCompleted),

        (UploadStarted | DataUploaded, Event::Missing) if copy.attempts < upload_retries => {
            (Copy { state: UploadStarted, attempts: copy.attempts + 1 }, Some(Action::Upload))
        }
        (UploadStarted | DataUploaded, Event::Missing | Event::Different | Event::Unanswered) => {
            keep(UploadFailed)
        }

        // Late or repeated words about what is over.
        (Unknown | UploadFailed | DataUploaded, _) => (copy, None),
    }
}

/// What to tell whoever wants the file stored.
pub fn outcome(states: impl IntoIterator<Item = UploadState>) -> Outcome {
    let (mut failed, mut moving) = (false, false);
    for state in states {
        match state {
            UploadCompleted => {}
            UploadFailed | Unknown => failed = true,
            UploadStarted | DataUploaded => moving = true,
        }
    }
    match (failed, moving) {
        (_, true) => Outcome::Pending,
        (true, false) => Outcome::NotStored,
        (false, false) => Outcome::Stored,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const EVENTS: [Event; 8] = [
        Event::StoreAsked,
        Event::Resumed,
        Event::Taken,
        Event::Refused,
        Event::Equal,
        Event::Different,
        Event::Missing,
        Event::Unanswered,
    ];

    /// Every state with every event: the next state, and u(pload) or a(sk). `upload_retries` is 1, none were used.
    #[test]
    fn the_whole_table() {
        // The columns are EVENTS: asked, resumed, taken, refused, equal, different, missing, unanswered.
        let table = [
            (Unknown, ["S u", "S u", "N", "N", "C", "N", "N", "N"]),
            (UploadStarted, ["S a", "S a", "D a", "F", "C", "F", "S u", "F"]),
            (DataUploaded, ["D a", "D a", "D", "D", "C", "F", "S u", "F"]),
            (UploadCompleted, ["C", "C", "C", "C", "C", "F", "F", "C"]),
            (UploadFailed, ["S a", "F", "F", "F", "C", "F", "F", "F"]),
        ];
        for (state, row) in table {
            for (event, expected) in EVENTS.into_iter().zip(row) {
                let (next, action) = step(Copy { state, attempts: 0 }, event, 1);
                let letter = match next.state {
                    Unknown => "N",
                    UploadStarted => "S",
                    DataUploaded => "D",
                    UploadCompleted => "C",
                    UploadFailed => "F",
                };
                let told = match action {
                    None => letter.to_owned(),
                    Some(Action::Upload) => format!("{letter} u"),
                    Some(Action::AskChecksum) => format!("{letter} a"),
                };
                assert_eq!(told, expected, "{state} {event:?}");
            }
        }
    }

    #[test]
    fn a_missing_copy_is_sent_again_as_often_as_allowed_and_asking_anew_counts_anew() {
        let started = Copy { state: UploadStarted, attempts: 0 };
        let (again, action) = step(started, Event::Missing, 1);
        assert_eq!((again.attempts, action), (1, Some(Action::Upload)));
        let (failed, action) = step(Copy { state: DataUploaded, ..again }, Event::Missing, 1);
        assert_eq!((failed.state, action), (UploadFailed, None));
        let (asked, action) = step(failed, Event::StoreAsked, 1);
        assert_eq!((asked, action), (started, Some(Action::AskChecksum)));
        assert_eq!(step(started, Event::Missing, 0).0.state, UploadFailed);
    }

    #[test]
    fn the_answer_waits_for_whoever_is_on_the_way() {
        for (states, expected) in [
            (vec![], Outcome::Stored),
            (vec![UploadCompleted; 3], Outcome::Stored),
            (vec![UploadCompleted, UploadFailed], Outcome::NotStored),
            (vec![UploadCompleted, Unknown], Outcome::NotStored),
            (vec![UploadStarted, UploadFailed], Outcome::Pending),
            (vec![UploadCompleted, DataUploaded], Outcome::Pending),
        ] {
            assert_eq!(outcome(states.clone()), expected, "{states:?}");
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
            let (mut row, mut has) = (Copy { state: Unknown, attempts: 0 }, false);
            let mut todo = None;
            let mut turns = turns.into_iter();
            let mut quiet = 0;
            // After the faults: stores without fault until nothing is left to do, twice at most.
            while quiet < 2 || todo.is_some() {
                let Some(action) = todo else {
                    let (next, action) = step(row, Event::StoreAsked, retries);
                    row = next;
                    todo = action;
                    if turns.len() == 0 {
                        quiet += 1;
                    }
                    if action.is_none() && turns.len() > 0 {
                        // Proven: the only thing left to go wrong is that it vanishes, which a check tells.
                        if matches!(turns.next(), Some(Turn::Lost)) {
                            has = false;
                            row = step(row, Event::Missing, retries).0;
                        }
                    }
                    continue;
                };
                let turn = turns.next().unwrap_or(Turn::Well);
                if matches!(turn, Turn::Lost) {
                    has = false;
                }
                let event = match action {
                    Action::Upload => {
                        prop_assert!(row.state == UploadStarted);
                        if !matches!(turn, Turn::Away) {
                            has = true;
                        }
                        if matches!(turn, Turn::Away) { Event::Refused } else { Event::Taken }
                    }
                    Action::AskChecksum => match turn {
                        Turn::Away => Event::Unanswered,
                        _ if has => Event::Equal,
                        _ => Event::Missing,
                    },
                };
                if matches!(turn, Turn::Killed) {
                    // What became of the act is not written down; a new process finds the row as it was.
                    let (next, action) = step(row, Event::Resumed, retries);
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
