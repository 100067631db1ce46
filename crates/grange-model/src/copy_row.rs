//! The row of one copy and the two writes that change it. Pure: no clock, no IO.
//!
//! The SQL statements of `grange-db` are the same writes. Its conformance suite compares the two for every row and every
//! answer, on both engines, so the exploration of all states (`tests/state_space.rs`) speaks of the rows that exist.

use crate::{Presence, UploadState, Verdict};

/// What is known of one file on one replica. `C` is a checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyRow<C> {
    pub state: UploadState,
    pub presence: Presence,
    pub verdict: Verdict,
    /// The replica's own answer; absent when it was never asked.
    pub checksum: Option<C>,
}

/// What an audit of a replica found out about one copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditAnswer<C> {
    /// The replica does not list the file.
    Missing,
    /// It lists the file with the recorded size; nothing was read.
    Listed,
    /// It was read, or it has another size: that is an answer, too.
    Answered(C),
}

impl<C: PartialEq> CopyRow<C> {
    /// What a store keeps of a copy. Only the checksum that is recorded at that moment makes it complete: somebody may have
    /// corrected the record since the replica was asked.
    #[must_use]
    pub fn kept_under(self, recorded: &C) -> Self {
        let stale = self.checksum.as_ref() != Some(recorded);
        let state = match self.state {
            UploadState::UploadCompleted if stale => UploadState::UploadFailed,
            state => state,
        };
        let verdict = match self.verdict {
            Verdict::Ok if stale => Verdict::Unknown,
            verdict => verdict,
        };
        Self { state, verdict, ..self }
    }

    /// What an audit keeps of a copy, before the vote.
    #[must_use]
    pub fn after_audit(self, answer: AuditAnswer<C>, recorded: &C) -> Self {
        match answer {
            AuditAnswer::Missing => Self {
                state: UploadState::UploadFailed,
                presence: Presence::Missing,
                verdict: Verdict::Unknown,
                checksum: None,
            },
            AuditAnswer::Listed => Self { presence: Presence::Ok, ..self },
            AuditAnswer::Answered(checksum) if checksum == *recorded => Self {
                state: UploadState::UploadCompleted,
                presence: Presence::Ok,
                verdict: Verdict::Ok,
                checksum: Some(checksum),
            },
            AuditAnswer::Answered(checksum) => {
                Self { presence: Presence::Ok, checksum: Some(checksum), ..self }
            }
        }
    }

    /// Whether the copy contradicts the record, so that the file is voted on.
    pub fn contradicts(&self, recorded: &C) -> bool {
        self.presence == Presence::Ok && self.checksum.as_ref().is_some_and(|answer| answer != recorded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(
        state: UploadState,
        presence: Presence,
        verdict: Verdict,
        checksum: Option<char>,
    ) -> CopyRow<char> {
        CopyRow { state, presence, verdict, checksum }
    }

    /// The recorded checksum is `a`.
    #[test]
    fn a_copy_is_complete_and_good_only_with_the_recorded_checksum() {
        use UploadState::{UploadCompleted, UploadFailed, UploadStarted};
        for (state, verdict, checksum, expected) in [
            (UploadCompleted, Verdict::Ok, Some('a'), (UploadCompleted, Verdict::Ok)),
            (UploadCompleted, Verdict::Ok, Some('b'), (UploadFailed, Verdict::Unknown)),
            (UploadCompleted, Verdict::Ok, None, (UploadFailed, Verdict::Unknown)),
            (UploadCompleted, Verdict::Corrupt, Some('b'), (UploadFailed, Verdict::Corrupt)),
            (UploadStarted, Verdict::Unknown, None, (UploadStarted, Verdict::Unknown)),
            (UploadStarted, Verdict::Ok, Some('b'), (UploadStarted, Verdict::Unknown)),
        ] {
            let kept = row(state, Presence::Ok, verdict, checksum).kept_under(&'a');
            assert_eq!((kept.state, kept.verdict), expected, "{state} {verdict} {checksum:?}");
            assert_eq!((kept.presence, kept.checksum), (Presence::Ok, checksum));
        }
    }

    #[test]
    fn an_audit_keeps_what_it_was_answered() {
        use UploadState::{UploadCompleted, UploadFailed, UploadStarted};
        let before = row(UploadStarted, Presence::Unknown, Verdict::Corrupt, Some('c'));
        for (answer, expected) in [
            (AuditAnswer::Missing, row(UploadFailed, Presence::Missing, Verdict::Unknown, None)),
            (AuditAnswer::Listed, row(UploadStarted, Presence::Ok, Verdict::Corrupt, Some('c'))),
            (AuditAnswer::Answered('a'), row(UploadCompleted, Presence::Ok, Verdict::Ok, Some('a'))),
            (AuditAnswer::Answered('b'), row(UploadStarted, Presence::Ok, Verdict::Corrupt, Some('b'))),
        ] {
            assert_eq!(before.after_audit(answer, &'a'), expected, "{answer:?}");
        }
    }

    #[test]
    fn only_a_copy_that_is_there_and_was_read_contradicts_the_record() {
        for (presence, checksum, expected) in [
            (Presence::Ok, Some('b'), true),
            (Presence::Ok, Some('a'), false),
            (Presence::Ok, None, false),
            (Presence::Missing, Some('b'), false),
            (Presence::Unknown, Some('b'), false),
        ] {
            let one = row(UploadState::UploadFailed, presence, Verdict::Unknown, checksum);
            assert_eq!(one.contradicts(&'a'), expected, "{presence} {checksum:?}");
        }
    }
}
