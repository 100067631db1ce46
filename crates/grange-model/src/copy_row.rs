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
