//! Repairs: a missing copy is made again; a corrupt one is replaced when two have agreed; and where copies contradict the
//! record, two people decide which of them is wrong.

use grange_base::worker::Step;
use grange_base::{Chain, Shutdown};
use grange_db::{
    Begun, Claim, Confirmed, FileFilter, FileStatus, Holding, IfStored, NewRepair, RepairRow, RepairTurn,
    Trouble,
};
use grange_model::{
    Actor, Checksums, FileName, Presence, RepairChoice, RepairId, RepairKind, RepairState, UploadState,
    Verdict,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::amend::contradicted;
use crate::archive::Archive;
use crate::error::Error;
use crate::held_file::HeldFile;
use crate::remove::{NO_GOOD_COPY, Second, again, identified};
use crate::replica::Replica;
use crate::store::LOOK_AGAIN;

/// What can be repaired, in this order: copies are made by what the records say.
const TROUBLES: [Trouble; 3] = [Trouble::Undecided, Trouble::Missing, Trouble::Corrupt];

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
    /// Replicas that are away: nobody knows what they lack.
    #[serde(default)]
    pub away: Vec<String>,
}

impl Archive {
    /// Repairs every copy that is missing or corrupt; a dry run only says which, and which cannot be. Corrupt ones wait
    /// unless `second` is given. Where every copy contradicts the record a correction of the record is asked for, which
    /// always waits for a second person; where only some do, people must decide ([`Archive::decide`]).
    pub async fn repair_all(
        &self,
        actor: &Actor,
        second: impl Fn(&Replica) -> Second,
        dry_run: bool,
    ) -> Result<RepairReport, Error> {
        let mut report = RepairReport { dry_run, ..RepairReport::default() };
        for replica in &self.0.replicas {
            if replica.verify().await.is_err() {
                report.away.push(replica.name().to_owned());
            }
        }
        for trouble in TROUBLES {
            let mut filter = FileFilter { trouble: Some(trouble), limit: 500, ..FileFilter::default() };
            loop {
                let page = self.list(&filter).await?;
                let Some(last) = page.last() else { break };
                filter.after = Some(last.file.name.clone());
                // What people have asked for stays as they asked it.
                let open = match trouble {
                    Trouble::Undecided => {
                        let ids = page.iter().map(|status| status.file.id).collect();
                        self.0.db.repairs().waiting_for(ids).await?
                    }
                    Trouble::Missing | Trouble::Corrupt | Trouble::Unproven => Vec::new(),
                };
                for status in &page {
                    for (replica, kind) in self.troubled(status, trouble) {
                        let decided = |row: &&RepairRow| row.name == status.file.name;
                        if let Some(row) = open.iter().find(decided) {
                            report.waiting += u64::from(!dry_run);
                            report.copies.push(told(row));
                            continue;
                        }
                        let second = second(replica);
                        let obstacle = match self.approval(replica, kind, actor, &second) {
                            // Not an error of the whole run: copies that need no second person are repaired.
                            Err(error @ Error::Unidentified { .. }) => Some(error.to_string()),
                            _ => self.obstacle(status, replica, kind, trouble).await,
                        };
                        let one = match obstacle {
                            Some(reason) => {
                                unrepaired(status, replica, kind, RepairState::Failed, Some(reason))
                            }
                            None if dry_run => unrepaired(status, replica, kind, RepairState::Waiting, None),
                            None => told(&self.repair(status, replica, kind, actor, &second).await?),
                        };
                        match one.state {
                            RepairState::Done => report.done += 1,
                            RepairState::Failed => report.failed += 1,
                            RepairState::Waiting | RepairState::Confirmed => {
                                report.waiting += u64::from(!dry_run);
                            }
                            RepairState::Withdrawn => {}
                        }
                        report.copies.push(one);
                    }
                }
            }
        }
        Ok(report)
    }

    /// Asks for the copies that the replica was found to miss. The worker of the repairs makes them: a check does not wait
    /// for uploads.
    pub(crate) async fn ask_for_missing(&self, replica: &Replica) -> Result<(), Error> {
        let (trouble, replica_id) = (Some(Trouble::Missing), Some(replica.row.id));
        let mut filter = FileFilter { trouble, replica: replica_id, limit: 500, ..FileFilter::default() };
        loop {
            let page = self.list(&filter).await?;
            let Some(last) = page.last() else { return Ok(()) };
            filter.after = Some(last.file.name.clone());
            for status in &page {
                self.ask_for_repair(status, replica, RepairKind::Missing, &Actor::system(), &Second::None)
                    .await?;
            }
        }
    }

    /// The repairs that wait for a second person, or all.
    pub async fn repairs(&self, state: Option<RepairState>, limit: u32) -> Result<Vec<RepairRow>, Error> {
        Ok(self.0.db.repairs().list(state, limit).await?)
    }

    /// A second person says yes, and the repair is done.
    pub async fn confirm_repair(&self, id: RepairId, actor: &Actor) -> Result<RepairRow, Error> {
        identified(actor, "confirm a repair")?;
        match self.0.db.repairs().confirm(id, actor).await? {
            Confirmed::SamePerson(_) => Err(Error::SamePerson { who: actor.who.clone() }),
            Confirmed::Yes(row) => self.perform(row.id, &actor.who).await,
        }
    }

    /// A person takes back a repair that waits for a second one.
    pub async fn withdraw_repair(&self, id: RepairId, actor: &Actor) -> Result<RepairRow, Error> {
        let row = self.0.db.repairs().withdraw(id, actor).await?;
        if row.state == RepairState::Withdrawn {
            Ok(row)
        } else {
            Err(Error::NotWaiting { id, state: row.state })
        }
    }

    /// Asks for the repairs by which a contested file is put right. They wait for a second person, always.
    pub async fn decide(
        &self,
        name: &FileName,
        keep: RepairChoice,
        actor: &Actor,
    ) -> Result<Vec<RepairRow>, Error> {
        let status = self.recheck(name, &actor.who).await?;
        let undecided: Vec<_> = status
            .holdings
            .iter()
            .filter(|holding| is_undecided(&status, holding))
            .filter_map(|holding| self.replica_by_id(holding.replica_id))
            .collect();
        if undecided.is_empty() {
            return Err(Error::NotUndecided { name: name.clone() });
        }
        let asked: Vec<(&Replica, RepairKind)> = match keep {
            RepairChoice::Record => undecided.iter().map(|replica| (*replica, RepairKind::Corrupt)).collect(),
            RepairChoice::Copies => {
                let witness = undecided.iter().find(|replica| replica.keeps_bytes());
                let agreed = contradicted(&status).and(witness);
                let Some(witness) = agreed else {
                    let reason = "the copies do not all say the same".to_owned();
                    return Err(Error::NotOutvoted { name: name.clone(), reason });
                };
                vec![(*witness, RepairKind::Record)]
            }
        };
        let mut rows = Vec::new();
        for (replica, kind) in asked {
            rows.push(self.repair(&status, replica, kind, actor, &Second::None).await?);
        }
        Ok(rows)
    }

    fn troubled<'a>(&'a self, status: &'a FileStatus, trouble: Trouble) -> Vec<(&'a Replica, RepairKind)> {
        let wrong = status.holdings.iter().filter(move |holding| match trouble {
            Trouble::Missing => holding.presence == Presence::Missing,
            Trouble::Corrupt => holding.verdict == Verdict::Corrupt && holding.presence == Presence::Ok,
            Trouble::Unproven => holding.state != UploadState::UploadCompleted,
            Trouble::Undecided => is_undecided(status, holding),
        });
        let kind = match trouble {
            Trouble::Missing => RepairKind::Missing,
            Trouble::Undecided => RepairKind::Record,
            Trouble::Corrupt | Trouble::Unproven => RepairKind::Corrupt,
        };
        let mut found: Vec<_> =
            wrong.filter_map(|holding| Some((self.replica_by_id(holding.replica_id)?, kind))).collect();
        if trouble == Trouble::Undecided {
            // One copy vouches for a record: the first with bytes, which can be read for every checksum.
            found.sort_by_key(|(replica, _)| !replica.keeps_bytes());
            found.truncate(1);
        }
        found
    }

    /// Why the copy cannot be repaired now; what no repair would change is not called repairable.
    async fn obstacle(
        &self,
        status: &FileStatus,
        replica: &Replica,
        kind: RepairKind,
        trouble: Trouble,
    ) -> Option<String> {
        if trouble == Trouble::Undecided {
            return match contradicted(status) {
                Some((_, false)) => None,
                _ => Some(format!(
                    "copies contradict the record and nobody can tell which is wrong: compare them, then run \
                     `grange repair decide {} --keep record` or `--keep copies`",
                    status.file.name
                )),
            };
        }
        let source = match kind {
            RepairKind::Record => return None,
            RepairKind::Missing | RepairKind::Corrupt => self.has_source_for(status, replica).await,
        };
        (!source).then(|| NO_GOOD_COPY.to_owned())
    }

    /// Who stands for the second pair of eyes; `None` when a person is still to say yes.
    fn approval(
        &self,
        replica: &Replica,
        kind: RepairKind,
        actor: &Actor,
        second: &Second,
    ) -> Result<Option<String>, Error> {
        match kind {
            // Nothing leaves its place, so one pair of eyes will do.
            RepairKind::Missing => Ok(Some("not needed".to_owned())),
            RepairKind::Corrupt => self.seconded(replica, actor, second),
            // Against what a depositor said only people can decide, and no credential stands for one.
            RepairKind::Record => match second {
                Second::Person(_) => self.seconded(replica, actor, second),
                Second::None | Second::Credential(_) => self.seconded(replica, actor, &Second::None),
            },
        }
    }

    async fn repair(
        &self,
        status: &FileStatus,
        replica: &Replica,
        kind: RepairKind,
        actor: &Actor,
        second: &Second,
    ) -> Result<RepairRow, Error> {
        let row = self.ask_for_repair(status, replica, kind, actor, second).await?;
        self.perform(row.id, &actor.who).await
    }

    async fn ask_for_repair(
        &self,
        status: &FileStatus,
        replica: &Replica,
        kind: RepairKind,
        actor: &Actor,
        second: &Second,
    ) -> Result<RepairRow, Error> {
        let confirmed_by = self.approval(replica, kind, actor, second)?;
        let holding = status.holdings.iter().find(|holding| holding.replica_id == replica.row.id);
        let bad_checksum = match kind {
            RepairKind::Record => Some(grange_db::deciding(&status.file.checksums)),
            _ => holding.and_then(|holding| holding.checksum.clone()),
        };
        let new_checksum = match kind {
            RepairKind::Record => contradicted(status).map(|(checksum, _)| checksum),
            RepairKind::Missing | RepairKind::Corrupt => None,
        };
        let new = NewRepair {
            file_id: status.file.id,
            replica_id: replica.row.id,
            kind,
            bad_checksum,
            new_checksum,
            confirmed_by,
        };
        Ok(self.0.db.repairs().ask(new, actor).await?)
    }

    /// Performs a repair that is confirmed, or waits for the end when somebody else does: of two confirmations at once, one
    /// performs it. One that is not confirmed is given as it is.
    async fn perform(&self, id: RepairId, by: &str) -> Result<RepairRow, Error> {
        loop {
            let (owner, lease) = (&self.0.owner, self.0.settings.lease.0);
            match self.0.db.repairs().begin(id, owner, lease).await? {
                RepairTurn::NotDue(row) => return Ok(row),
                RepairTurn::Busy(_) => tokio::time::sleep(LOOK_AGAIN).await,
                RepairTurn::Claimed(row, claim) => {
                    let file = HeldFile::default();
                    let ended = self.perform_claimed(&row, &claim, by, &file).await;
                    self.give_back(&file).await;
                    match ended {
                        // Somebody took over from us, who were too slow: how it ends is theirs to say.
                        Err(Error::Db(grange_db::Error::LeaseLost { .. })) => {}
                        ended => return ended,
                    }
                }
            }
        }
    }

    /// Completes a repair that was confirmed and that nobody performs: its node was killed. When `stop` comes, the repair and
    /// its file are given back at once, and it is completed wherever there is a worker.
    pub async fn repair_step(&self, stop: &Shutdown) -> Result<Step, Error> {
        let (owner, lease) = (&self.0.owner, self.0.settings.lease.0);
        let Some((row, claim)) = self.0.db.repairs().claim(owner, lease).await? else {
            return Ok(Step::Idle);
        };
        // Boxed: a repair is a large act, and most steps need none.
        let file = HeldFile::default();
        let ended = stop.or(Box::pin(self.perform_claimed(&row, &claim, &row.asked_by, &file))).await;
        self.give_back(&file).await;
        match ended {
            None => match self.0.db.work().release(&claim).await {
                Ok(()) | Err(grange_db::Error::LeaseLost { .. }) => Ok(Step::More),
                Err(error) => Err(error.into()),
            },
            Some(Ok(ended)) => {
                if let Some(error) = &ended.last_error {
                    self.notify(ended.name.as_str(), error).await;
                }
                Ok(Step::More)
            }
            Some(Err(Error::Db(grange_db::Error::LeaseLost { .. }))) => Ok(Step::More),
            Some(Err(error)) => Err(error),
        }
    }

    async fn perform_claimed(
        &self,
        row: &RepairRow,
        claim: &Claim,
        by: &str,
        file: &HeldFile,
    ) -> Result<RepairRow, Error> {
        let (status, replica) = match (self.file(&row.name).await, self.replica(row.replica.as_str())) {
            (Ok(status), Ok(replica)) => (status, replica),
            // Taken out of the settings since it was confirmed: it ends, for nobody else could perform it.
            (Err(error @ Error::NotFound { .. }), _) | (_, Err(error)) => {
                let reason = Some(Chain(&error).to_string());
                return Ok(self.0.db.repairs().end(claim, row.id, reason, Vec::new()).await?);
            }
            (Err(error), _) => return Err(error),
        };
        let error = self.held(claim, Box::pin(self.carry_out(row, &status, replica, by, file))).await?;
        Ok(self.0.db.repairs().end(claim, row.id, error, Vec::new()).await?)
    }

    /// Does what the repair asks for. Gives why it did not succeed.
    async fn carry_out(
        &self,
        row: &RepairRow,
        status: &FileStatus,
        replica: &Replica,
        by: &str,
        file: &HeldFile,
    ) -> Result<Option<String>, Error> {
        let outcome = match row.kind {
            RepairKind::Missing => self.reestablish(status, by, file).await,
            // The copy that was seen: a size or an unreadable copy says too little to compare.
            RepairKind::Corrupt => {
                let seen: Option<Checksums> = row.bad_checksum.as_deref().and_then(|text| text.parse().ok());
                self.replace(replica, status, seen.as_ref(), by, file).await
            }
            // Corrected by a node that was killed before it could say so.
            RepairKind::Record if row.new_checksum == Some(grange_db::deciding(&status.file.checksums)) => {
                Ok(status.clone())
            }
            RepairKind::Record => {
                let confirmed_by = row.confirmed_by.as_deref();
                self.amend(status, replica, row.new_checksum.as_deref(), by, confirmed_by).await
            }
        };
        Ok(match outcome {
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
        })
    }

    /// Makes what is missing again from a proven copy.
    async fn reestablish(&self, status: &FileStatus, by: &str, file: &HeldFile) -> Result<FileStatus, Error> {
        loop {
            let (owner, lease) = (&self.0.owner, self.0.settings.lease.0);
            let begun = self.0.db.files().begin(again(status), owner, lease, IfStored::Skip).await?;
            match begun {
                Begun::Claimed(fresh, claim) => {
                    self.settling(file, &claim, self.drive(&fresh, &claim, None, by)).await?;
                    return self.file(&status.file.name).await;
                }
                Begun::Busy(_) => tokio::time::sleep(LOOK_AGAIN).await,
                Begun::Proven(fresh) => return Ok(fresh),
                Begun::Refused(known) => {
                    let (name, given) = (status.file.name.clone(), status.file.checksums);
                    return Err(Error::OtherBytes { name, known: known.checksums, given });
                }
            }
        }
    }
}

/// The copy contradicts the record, and the vote could not say which of them is wrong.
pub(crate) fn is_undecided(status: &FileStatus, holding: &Holding) -> bool {
    let recorded = grange_db::deciding(&status.file.checksums);
    holding.presence == Presence::Ok
        && holding.verdict == Verdict::Unknown
        && holding.checksum.as_ref().is_some_and(|checksum| *checksum != recorded)
}

fn unrepaired(
    status: &FileStatus,
    replica: &Replica,
    kind: RepairKind,
    state: RepairState,
    error: Option<String>,
) -> Repaired {
    let (name, replica) = (status.file.name.clone(), replica.name().to_owned());
    Repaired { name, replica, kind, repair: None, state, error }
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
