//! Salted challenges: two replicas read the same file with a salt that neither has seen before. Who only remembers a
//! checksum cannot answer.

use data_encoding::HEXLOWER;
use grange_base::Chain;
use grange_db::{AuditRow, Claim, FileStatus};
use grange_model::{AuditState, LogEvent, UploadState};
use rand::RngExt as _;
use serde_json::json;

use crate::archive::Archive;
use crate::error::Error;
use crate::replica::Replica;

impl Archive {
    pub(crate) async fn run_challenge(
        &self,
        claim: &Claim,
        audit: &AuditRow,
        replica: &Replica,
    ) -> Result<(), Error> {
        let (seed, count) = (rand::rng().random_range(0..1_000_000), self.0.settings.challenge_files);
        let mut records = Vec::new();
        let mut failed = Vec::new();
        for status in self.0.db.files().sample(replica.row.id, seed, count).await? {
            let Some(peer) = self.peer(&status, replica) else { continue };
            let salt: [u8; 32] = rand::rng().random();
            self.0.throttle.take(status.file.size).await;
            let ours = replica.challenge(&status.file.name, &salt).await?;
            let theirs = match peer.challenge(&status.file.name, &salt).await {
                Ok(theirs) => theirs,
                Err(error) => {
                    // The one that is asked here is not to blame for the other's silence.
                    tracing::warn!(replica = peer.name(), error = %Chain(&error), "no answer to a challenge");
                    continue;
                }
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
            if !agree {
                failed.push(status.file.name.clone());
            }
        }
        for name in &failed {
            // Which of the two is wrong is for the vote to say.
            self.recheck(name, &audit.asked_by).await?;
        }
        let error =
            (!failed.is_empty()).then(|| format!("{} challenges were answered differently", failed.len()));
        self.0.db.audits().end(claim, audit.id, AuditState::Done, error, records).await?;
        Ok(())
    }

    /// Another replica that should have the same bytes.
    fn peer(&self, status: &FileStatus, replica: &Replica) -> Option<&Replica> {
        let other = status.holdings.iter().filter(|holding| {
            holding.replica_id != replica.row.id && holding.state == UploadState::UploadCompleted
        });
        let mut others = other.filter_map(|holding| self.replica_by_id(holding.replica_id));
        others.find(|other| other.keeps_bytes())
    }
}
