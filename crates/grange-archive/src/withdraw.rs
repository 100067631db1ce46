//! Withdrawing a deposit: one that failed before any replica had its bytes keeps its name for ever otherwise.

use grange_base::Chain;
use grange_db::{Begun, Claim, FileStatus, HoldingChange, IfStored};
use grange_model::{Actor, FileName, Presence, UploadState, Verdict};

use crate::archive::Archive;
use crate::error::Error;
use crate::remove::again;
use crate::replica::{Answer, Replica};
use crate::store::LOOK_AGAIN;

/// How often the end of an upload is looked for before a withdrawal is refused: five seconds.
const LOOKS_MAX: u32 = 20;

impl Archive {
    /// Takes back a deposit of which no replica has the bytes, so that its name is free. Every replica is asked first. A file
    /// that was acknowledged once is never withdrawn, whatever became of its copies. Gives what was known of it.
    pub async fn withdraw_deposit(&self, name: &FileName, actor: &Actor) -> Result<FileStatus, Error> {
        let status = self.file(name).await?;
        let refuse = |reason: String| Err(Error::NotWithdrawable { name: name.clone(), reason });
        if status.file.stored_at.is_some() {
            return refuse("it was stored on every replica".to_owned());
        }
        // Claimed first: no worker uploads it while the replicas are asked.
        let (owner, lease) = (&self.0.owner, self.0.settings.lease.0);
        let mut looks = 0;
        let claim = loop {
            match self.0.db.files().begin(again(&status), owner, lease, IfStored::Verify).await? {
                Begun::Claimed(_, claim) => break claim,
                // A try that fails takes moments.
                Begun::Busy(_) if looks < LOOKS_MAX => {
                    looks += 1;
                    tokio::time::sleep(LOOK_AGAIN).await;
                }
                Begun::Busy(_) => {
                    return refuse("it is being uploaded now: try again when that has ended".to_owned());
                }
                Begun::Proven(_) | Begun::Refused(_) => {
                    return refuse("it changed meanwhile: look at it again".to_owned());
                }
            }
        };
        let prepared = self.held(&claim, self.prepare_withdrawal(&status, &claim)).await;
        let withdrawn = match prepared {
            Ok(None) => self.0.db.files().withdraw(&claim, actor).await,
            _ => Ok(false),
        };
        if let Ok(true) = withdrawn {
            self.drop_spooled(&status).await;
            return Ok(status);
        }
        self.0.db.work().release(&claim).await?;
        withdrawn?;
        let by_row = || {
            "by its row a replica has its bytes: run `grange audit run --wait`, then look again".to_owned()
        };
        refuse(prepared?.unwrap_or_else(by_row))
    }

    /// Asks every replica and gives why the deposit must stay: a replica has the bytes, or may have them. Otherwise checksum
    /// replicas strike its name out, and their rows say so before: if the withdrawal ends here, they get their line again.
    async fn prepare_withdrawal(&self, status: &FileStatus, claim: &Claim) -> Result<Option<String>, Error> {
        let file = &status.file;
        let Some((algorithm, _)) = file.checksums.strongest() else { return Ok(None) };
        let mut noted = Vec::new();
        for replica in &self.0.replicas {
            let held = match replica.checksum(&file.name, algorithm).await {
                Ok(Answer::Missing) => continue,
                Ok(Answer::Sums(sums)) if !sums.same_as(&file.checksums) => continue,
                Ok(Answer::Sums(_)) if !replica.keeps_bytes() => {
                    noted.push(replica);
                    continue;
                }
                Ok(Answer::Sums(_)) => "has its bytes: the other copies are made from them".to_owned(),
                Ok(Answer::Unreadable) => "has a copy that cannot be read: look at its disk".to_owned(),
                Err(error) => format!("cannot be asked ({}): try again when it answers", Chain(&error)),
            };
            return Ok(Some(format!("replica {} {held}", replica.name())));
        }
        let struck = noted.iter().map(|replica| struck(replica)).collect();
        self.0.db.files().advance(claim, file.id, struck).await?;
        for replica in noted {
            self.0.db.work().renew(claim, self.0.settings.lease.0).await?;
            replica.remove(&file.name, &file.checksums).await?;
        }
        Ok(None)
    }
}

/// What the row of a checksum replica says while the name is struck out there.
fn struck(replica: &Replica) -> HoldingChange {
    HoldingChange {
        replica_id: replica.row.id,
        state: UploadState::UploadFailed,
        presence: Presence::Unknown,
        verdict: Verdict::Unknown,
        checksum: None,
        attempts: 0,
        last_error: Some("its line was struck out by a withdrawal that did not end".to_owned()),
        asked_at: None,
    }
}
