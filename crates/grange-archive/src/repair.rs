//! Repairs: a missing copy is made again; a corrupt one is replaced, and a record that all copies contradict is put
//! right, when two have agreed.

use grange_base::Chain;
use grange_db::{Begun, Confirmed, FileFilter, FileStatus, NewRepair, RepairRow, Trouble};
use grange_model::{
    Actor, FileName, Presence, RepairId, RepairKind, RepairState, ReplicaKind, UploadState, Verdict,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::amend::outvoted_by;
use crate::archive::Archive;
use crate::error::Error;
use crate::remove::{Second, again};
use crate::replica::Replica;

/// What can be repaired, in this order: copies are made by what the records say.
const TROUBLES: [Trouble; 3] = [Trouble::Outvoted, Trouble::Missing, Trouble::Corrupt];

/// One copy in a repair of all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Repaired {
    pub name: FileName,
    pub replica: String,
    pub kind: RepairKind,
    /// Absent in a dry run.
    pub repair: Option<RepairId>,
    pub state: RepairState,
    pub error: Option<String>,
}

/// What a repair of all did, or would do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RepairReport {
    pub dry_run: bool,
    pub copies: Vec<Repaired>,
    pub done: u64,
    pub failed: u64,
    /// Want a second person's word.
    pub waiting: u64,
}

impl Archive {
    /// Repairs every copy that is missing or corrupt, and every record that all copies contradict; a dry run only says
    /// which. All but the missing ones wait unless `second` is given.
    pub async fn repair_all(
        &self,
        actor: &Actor,
        second: impl Fn(&Replica) -> Second,
        dry_run: bool,
    ) -> Result<RepairReport, Error> {
        let mut report = RepairReport { dry_run, ..RepairReport::default() };
        for trouble in TROUBLES {
            let mut filter = FileFilter { trouble: Some(trouble), limit: 500, ..FileFilter::default() };
            loop {
                let page = self.list(&filter).await?;
                let Some(last) = page.last() else { break };
                filter.after = Some(last.file.name.clone());
                for status in &page {
                    // One copy vouches for a record, whichever is first.
                    let most = if trouble == Trouble::Outvoted { 1 } else { usize::MAX };
                    for (replica, kind) in self.troubled(status, trouble).into_iter().take(most) {
                        let one = if dry_run {
                            let (name, replica) = (status.file.name.clone(), replica.name().to_owned());
                            Repaired {
                                name,
                                replica,
                                kind,
                                repair: None,
                                state: RepairState::Waiting,
                                error: None,
                            }
                        } else {
                            told(&self.repair(status, replica, kind, actor, &second(replica)).await?)
                        };
                        match one.state {
                            RepairState::Done => report.done += 1,
                            RepairState::Failed => report.failed += 1,
                            RepairState::Waiting | RepairState::Confirmed => {
                                report.waiting += u64::from(!dry_run);
                            }
                        }
                        report.copies.push(one);
                    }
                }
            }
        }
        Ok(report)
    }

    /// Makes the copies again that the replica was found to miss. What cannot be made now stays in the queue.
    pub(crate) async fn reestablish_missing(&self, replica: &Replica) -> Result<(), Error> {
        let (trouble, replica_id) = (Some(Trouble::Missing), Some(replica.row.id));
        let mut filter = FileFilter { trouble, replica: replica_id, limit: 500, ..FileFilter::default() };
        loop {
            let page = self.list(&filter).await?;
            let Some(last) = page.last() else { return Ok(()) };
            filter.after = Some(last.file.name.clone());
            for status in &page {
                let row = self
                    .repair(status, replica, RepairKind::Missing, &Actor::system(), &Second::None)
                    .await?;
                if let Some(error) = &row.last_error {
                    self.notify(row.name.as_str(), error).await;
                }
            }
        }
    }

    /// Repairs one copy, if it needs to be.
    pub async fn repair_one(
        &self,
        name: &FileName,
        replica: &str,
        actor: &Actor,
        second: &Second,
    ) -> Result<Option<RepairRow>, Error> {
        let replica = self.replica(replica)?;
        let status = self.recheck(name, &actor.who).await?;
        let mut troubles = TROUBLES.into_iter().flat_map(|one| self.troubled(&status, one));
        let Some((replica, kind)) = troubles.find(|(one, _)| one.row.id == replica.row.id) else {
            return Ok(None);
        };
        self.repair(&status, replica, kind, actor, second).await.map(Some)
    }

    /// The repairs that wait for a second person, or all.
    pub async fn repairs(&self, state: Option<RepairState>, limit: u32) -> Result<Vec<RepairRow>, Error> {
        Ok(self.0.db.repairs().list(state, limit).await?)
    }

    /// A second person says yes, and the repair is done.
    pub async fn confirm_repair(&self, id: RepairId, actor: &Actor) -> Result<RepairRow, Error> {
        match self.0.db.repairs().confirm(id, actor).await? {
            Confirmed::SamePerson(_) => Err(Error::SamePerson { who: actor.who.clone() }),
            Confirmed::Yes(row) if row.state == RepairState::Confirmed => {
                let status = self.file(&row.name).await?;
                let replica = self.replica(row.replica.as_str())?;
                self.perform(row, &status, replica, &actor.who).await
            }
            Confirmed::Yes(row) => Ok(row),
        }
    }

    fn troubled<'a>(&'a self, status: &'a FileStatus, trouble: Trouble) -> Vec<(&'a Replica, RepairKind)> {
        let wrong = status.holdings.iter().filter(move |holding| match trouble {
            Trouble::Missing => holding.presence == Presence::Missing,
            Trouble::Corrupt => holding.verdict == Verdict::Corrupt && holding.presence == Presence::Ok,
            Trouble::Unproven => holding.state != UploadState::UploadCompleted,
            Trouble::Outvoted => holding.kind == ReplicaKind::Bitarchive && outvoted_by(status).is_some(),
        });
        let kind = match trouble {
            Trouble::Missing => RepairKind::Missing,
            Trouble::Outvoted => RepairKind::Record,
            Trouble::Corrupt | Trouble::Unproven => RepairKind::Corrupt,
        };
        wrong.filter_map(|holding| Some((self.replica_by_id(holding.replica_id)?, kind))).collect()
    }

    async fn repair(
        &self,
        status: &FileStatus,
        replica: &Replica,
        kind: RepairKind,
        actor: &Actor,
        second: &Second,
    ) -> Result<RepairRow, Error> {
        let confirmed_by = match kind {
            // Nothing leaves its place, so one pair of eyes will do.
            RepairKind::Missing => Some("not needed".to_owned()),
            RepairKind::Corrupt | RepairKind::Record => self.seconded(replica, &actor.who, second)?,
        };
        let holding = status.holdings.iter().find(|holding| holding.replica_id == replica.row.id);
        let bad_checksum = match kind {
            RepairKind::Record => Some(grange_db::deciding(&status.file.checksums)),
            _ => holding.and_then(|holding| holding.checksum.clone()),
        };
        let new = NewRepair {
            file_id: status.file.id,
            replica_id: replica.row.id,
            kind,
            bad_checksum,
            confirmed_by,
        };
        let row = self.0.db.repairs().ask(new, actor).await?;
        if row.state != RepairState::Confirmed {
            return Ok(row);
        }
        self.perform(row, status, replica, &actor.who).await
    }

    async fn perform(
        &self,
        row: RepairRow,
        status: &FileStatus,
        replica: &Replica,
        by: &str,
    ) -> Result<RepairRow, Error> {
        let outcome = match row.kind {
            RepairKind::Missing => self.reestablish(status, by).await,
            RepairKind::Corrupt => self.replace(replica, status, None, by).await,
            RepairKind::Record => self.amend(status, replica, by, row.confirmed_by.as_deref()).await,
        };
        let error = match outcome {
            Ok(after) => {
                let holding = after.holdings.iter().find(|holding| holding.replica_id == replica.row.id);
                let proven = holding.is_some_and(|holding| holding.state == UploadState::UploadCompleted);
                let reason = holding.and_then(|holding| holding.last_error.clone());
                (!proven).then(|| reason.unwrap_or_else(|| "the copy is not proven".to_owned()))
            }
            // The answer changed since: it is good by now, and nothing was to be done.
            Err(Error::IsGood { .. }) => {
                self.recheck(&status.file.name, by).await?;
                None
            }
            Err(error) => Some(Chain(&error).to_string()),
        };
        Ok(self.0.db.repairs().end(row.id, error, Vec::new()).await?)
    }

    /// Makes what is missing again from a proven copy.
    async fn reestablish(&self, status: &FileStatus, by: &str) -> Result<FileStatus, Error> {
        loop {
            let begun =
                self.0.db.files().begin(again(status), &self.0.owner, self.0.settings.lease.0).await?;
            match begun {
                Begun::Claimed(fresh, claim) => {
                    self.held(&claim, self.drive(&fresh, &claim, None, by)).await?;
                    return self.file(&status.file.name).await;
                }
                Begun::Busy(_) => tokio::time::sleep(std::time::Duration::from_millis(25)).await,
                Begun::Proven(fresh) => return Ok(fresh),
                Begun::Refused(known) => {
                    let (name, given) = (status.file.name.clone(), status.file.checksums);
                    return Err(Error::OtherBytes { name, known: known.checksums, given });
                }
            }
        }
    }
}

fn told(row: &RepairRow) -> Repaired {
    Repaired {
        name: row.name.clone(),
        replica: row.replica.to_string(),
        kind: row.kind,
        repair: Some(row.id),
        state: row.state,
        error: row.last_error.clone(),
    }
}
