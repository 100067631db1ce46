//! Salted challenges: two replicas read the same file with a salt that neither has seen before. Who only remembers a
//! checksum cannot answer.

use data_encoding::HEXLOWER;
use grange_base::Chain;
use grange_db::{AuditRow, Claim, FileStatus, Found};
use grange_model::{AuditState, LogEvent, Presence, Sha512, UploadState, Verdict};
use rand::RngExt as _;
use serde_json::json;

use crate::archive::Archive;
use crate::error::Error;
use crate::replica::Replica;

impl Archive {
    /// Whether there is another replica to compare it with.
    pub(crate) fn can_be_challenged(&self, replica: &Replica) -> bool {
        let is_other = |other: &Replica| other.row.id != replica.row.id && other.keeps_bytes();
        replica.keeps_bytes() && self.0.replicas.iter().any(is_other)
    }

    pub(crate) async fn run_challenge(
        &self,
        claim: &Claim,
        audit: &AuditRow,
        replica: &Replica,
    ) -> Result<(), Error> {
        let (seed, count) = (rand::rng().random_range(0..1_000_000), self.0.settings.challenge_files);
        let (mut records, mut found, mut unanswered) = (Vec::new(), Found::default(), 0u64);
        for status in self.0.db.files().sample(replica.row.id, seed, count).await? {
            let salt: [u8; 32] = rand::rng().random();
            self.0.throttle.take(status.file.size).await;
            let ours = replica.challenge(&status.file.name, &salt).await?;
            let Some((peer, theirs)) = self.peer_answer(&status, replica, &salt).await else {
                unanswered += 1;
                continue;
            };
            let agree = ours.is_some() && ours == theirs;
            let detail = json!({ "peer": peer.name(), "salt": HEXLOWER.encode(&salt), "agree": agree });
            records.push(self.record(
                LogEvent::Challenged,
                &status,
                Some(replica.name()),
                &audit.asked_by,
                detail,
            ));
            found.files += 1;
            found.bytes += status.file.size;
            if agree {
                found.ok += 1;
                continue;
            }
            // Which of the two is wrong is for the vote to say.
            let checked = self.recheck(&status.file.name, &audit.asked_by).await?;
            count_verdict(&mut found, &checked, replica);
        }
        let (state, error) = ending(found, unanswered);
        self.0.db.audits().end_counted(claim, audit.id, state, error, found, records).await?;
        Ok(())
    }

    /// The answer of another replica that should have the same bytes, and which: the first one that answers at all.
    async fn peer_answer(
        &self,
        status: &FileStatus,
        replica: &Replica,
        salt: &[u8],
    ) -> Option<(&Replica, Option<Sha512>)> {
        let others = status.holdings.iter().filter(|holding| {
            holding.replica_id != replica.row.id && holding.state == UploadState::UploadCompleted
        });
        let others = others.filter_map(|holding| self.replica_by_id(holding.replica_id));
        for peer in others.filter(|other| other.keeps_bytes()) {
            match peer.challenge(&status.file.name, salt).await {
                Ok(theirs) => return Some((peer, theirs)),
                // The one that is asked here is not to blame for the other's silence.
                Err(error) => {
                    tracing::warn!(replica = peer.name(), error = %Chain(&error), "a replica does not answer a challenge");
                }
            }
        }
        None
    }
}

/// Counts a copy that answered differently from another by what the vote then said of it.
fn count_verdict(found: &mut Found, status: &FileStatus, replica: &Replica) {
    let holding = status.holdings.iter().find(|holding| holding.replica_id == replica.row.id);
    match holding.map(|holding| (holding.presence, holding.verdict)) {
        Some((Presence::Missing, _)) => found.missing += 1,
        Some((_, Verdict::Corrupt)) => found.corrupt += 1,
        // The other one is wrong, and is found by its own challenge or the next check.
        Some((_, Verdict::Ok)) => found.ok += 1,
        Some((_, Verdict::Unknown)) | None => found.undecided += 1,
    }
}

/// How a challenge ends: it failed when files were chosen and no other replica answered for any of them.
fn ending(found: Found, unanswered: u64) -> (AuditState, Option<String>) {
    let wrong = found.files - found.ok;
    let mut reasons = Vec::new();
    if unanswered > 0 {
        reasons
            .push(format!("{unanswered} files could not be challenged: no other replica answers for them"));
    }
    if wrong > 0 {
        reasons.push(format!("{wrong} challenges were answered differently"));
    }
    let state = if found.files == 0 && unanswered > 0 { AuditState::Failed } else { AuditState::Done };
    (state, (!reasons.is_empty()).then(|| reasons.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_that_nobody_answered_failed_and_one_that_some_answered_says_how_many_did_not() {
        let of = |files, ok| Found { files, ok, ..Found::default() };
        let text = |found, unanswered| {
            let (state, error) = ending(found, unanswered);
            (state, error.unwrap_or_default())
        };
        assert_eq!(text(of(3, 3), 0), (AuditState::Done, String::new()));
        assert_eq!(text(of(0, 0), 0), (AuditState::Done, String::new()), "there are no files yet");
        assert_eq!(
            text(of(3, 2), 0),
            (AuditState::Done, "1 challenges were answered differently".to_owned())
        );
        assert_eq!(text(of(0, 0), 2).0, AuditState::Failed);
        let (state, error) = text(of(3, 3), 2);
        assert!(state == AuditState::Done && error.starts_with("2 files could not"), "{error}");
    }
}
