//! Checks of a replica: page by page from where the last one stopped, at the pace that is allowed.

use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use grange_base::Chain;
use grange_base::worker::Step;
use grange_db::{AUDIT_WORK, AuditRow, Claim, FileStatus, Page, Seen, Votes, deciding};
use grange_model::{Actor, AuditId, AuditKind, AuditState, FileName};

use crate::archive::Archive;
use crate::error::Error;
use crate::replica::{Answer, Listed, Replica, UNREADABLE};
use crate::schedule::may_go_on_at;

/// Copies that are asked for at once: a node sums up four together on each of two cores.
const AT_ONCE: usize = 8;

/// How long a check rests that may not read now: outside its hours, or while the replica is away.
const REST: Duration = Duration::from_secs(5 * 60);

/// The longest rest of a check that is spread: so long a changed setting may go unnoticed.
const SPREAD_REST: Duration = Duration::from_secs(60 * 60);

impl Archive {
    /// Asks for a check of one replica. It runs in whatever process does the archive's work.
    pub async fn start_audit(
        &self,
        replica: &str,
        kind: AuditKind,
        actor: &Actor,
    ) -> Result<AuditRow, Error> {
        let replica = self.replica(replica)?;
        let row = self.0.db.audits().start(replica.row.id, kind, actor).await?;
        self.0.hint.wake();
        Ok(row)
    }

    /// Checks all replicas and waits for the end, doing the work here unless another process does.
    pub async fn audit_all(&self, kind: AuditKind, actor: &Actor) -> Result<Vec<AuditRow>, Error> {
        let mut started = Vec::new();
        for replica in &self.0.replicas {
            if kind != AuditKind::Challenge || replica.keeps_bytes() {
                started.push(self.start_audit(replica.name(), kind, actor).await?);
            }
        }
        let mut ended = Vec::new();
        for row in started {
            ended.push(self.wait_audit(row.id).await?);
        }
        Ok(ended)
    }

    /// Works until the check is over.
    pub async fn wait_audit(&self, id: AuditId) -> Result<AuditRow, Error> {
        loop {
            let row = self.audit(id).await?;
            if row.state != AuditState::Running {
                return Ok(row);
            }
            if self.audit_step().await? == Step::Idle {
                // Another process has it, or it rests.
                tokio::time::sleep(Duration::from_millis(25)).await;
            }
        }
    }

    pub async fn audit(&self, id: AuditId) -> Result<AuditRow, Error> {
        let row = self.0.db.audits().get(id).await?;
        row.ok_or_else(|| grange_db::Error::NotFound { what: format!("check {id}") }.into())
    }

    /// The newest checks first, with their progress.
    pub async fn audits(&self, limit: u32) -> Result<Vec<AuditRow>, Error> {
        Ok(self.0.db.audits().list(limit).await?)
    }

    pub async fn cancel_audit(&self, id: AuditId, actor: &Actor) -> Result<AuditRow, Error> {
        Ok(self.0.db.audits().cancel(id, actor).await?)
    }

    /// Decides on every file by what the replicas last answered.
    pub async fn vote_all(&self) -> Result<Votes, Error> {
        let votes = self.0.db.audits().vote_all().await?;
        self.0.db.findings().look_at_copies().await?;
        Ok(votes)
    }

    /// Asks every replica for its checksum of one file now, and votes.
    pub async fn recheck(&self, name: &FileName, by: &str) -> Result<FileStatus, Error> {
        let status = self.file(name).await?;
        let mut answers = Vec::new();
        for replica in &self.0.replicas {
            let Some((algorithm, _)) = status.file.checksums.strongest() else { continue };
            match replica.checksum(name, algorithm).await {
                Ok(answer) => answers.push((replica.row.id, text(answer))),
                Err(error) => tracing::warn!(replica = replica.name(), error = %Chain(&error), "no answer"),
            }
        }
        self.0.db.audits().observe(status.file.id, answers, by).await?;
        self.0.db.findings().look_at_copies().await?;
        self.file(name).await
    }

    /// Takes a check that is due and goes on with it.
    pub async fn audit_step(&self) -> Result<Step, Error> {
        let lease = self.0.settings.lease.0;
        let Some(claim) = self.0.db.work().claim(AUDIT_WORK, &self.0.owner, lease).await? else {
            return Ok(Step::Idle);
        };
        match self.held(&claim, self.run_audit(&claim)).await {
            Ok(()) => {}
            // Cancelled, or taken by another: nothing is ours to say.
            Err(Error::Db(grange_db::Error::LeaseLost { .. } | grange_db::Error::NotFound { .. })) => {}
            Err(error) => {
                let text = Chain(&error).to_string();
                tracing::warn!(check = claim.key, error = text, "the check rests");
                let rest = self.0.settings.retry_first.0.min(REST);
                match self.0.db.work().fail(&claim, &text, rest).await {
                    Ok(_) | Err(grange_db::Error::LeaseLost { .. }) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(Step::More)
    }

    async fn run_audit(&self, claim: &Claim) -> Result<(), Error> {
        let id: AuditId = claim.key.parse().map_err(|_| gone(&claim.key))?;
        let audit = self.audit(id).await?;
        let replica = self.replica_by_id(audit.replica_id).ok_or_else(|| gone(&claim.key))?;
        if audit.kind == AuditKind::Challenge {
            return self.run_challenge(claim, &audit, replica).await;
        }
        let by_itself = audit.asked_by == Actor::system().who;
        let mut after: Option<String> = audit.position.clone();
        let (spread, mut read) = (self.0.settings.check_spread.0, audit.found.bytes);
        let spread = if by_itself && audit.kind == AuditKind::Checksum { spread } else { Duration::ZERO };
        let total = if spread.is_zero() { 0 } else { self.bytes_of(replica).await? };
        loop {
            let go_on = may_go_on_at(audit.started_at, spread, read, total);
            if let (false, Ok(wait)) =
                (spread.is_zero(), Duration::try_from(go_on.duration_since(self.0.clock.now())))
                && !wait.is_zero()
                && read > 0
            {
                self.0.db.work().fail(claim, "spread by archive.check_spread", wait.min(SPREAD_REST)).await?;
                return Ok(());
            }
            let hour = self.0.clock.now().to_zoned(jiff::tz::TimeZone::UTC).hour();
            if by_itself && !self.0.settings.may_check(hour as u8) {
                self.0.db.work().fail(claim, "outside archive.check_hours", REST).await?;
                return Ok(());
            }
            let asked_at = self.0.clock.now();
            let from = after.as_ref().and_then(|name| name.parse::<FileName>().ok());
            let (listed, next) = replica.list(from.as_ref(), self.0.settings.check_page as usize).await?;
            let seen = match audit.kind {
                AuditKind::Checksum => self.summed(replica, listed).await?,
                _ => listed
                    .into_iter()
                    .map(|one| Seen { name: one.name, size: one.size, checksum: None })
                    .collect(),
            };
            read += seen.iter().map(|one| one.size).sum::<u64>();
            let page = Page {
                audit: id,
                replica_id: audit.replica_id,
                replica: replica.name().to_owned(),
                kind: audit.kind,
                after,
                upto: next.map(|name| name.to_string()),
                seen,
                asked_at,
                by: audit.asked_by.clone(),
            };
            let turned = self.0.db.audits().turn_page(claim, page).await?;
            match turned.position {
                Some(position) => after = Some(position),
                None => break,
            }
        }
        self.0.db.audits().end(claim, id, AuditState::Done, None, Vec::new()).await?;
        // Before anything is repaired: what was wrong is announced, also when it is right again a moment later.
        self.0.db.findings().look_at_copies().await?;
        if audit.kind == AuditKind::Checksum {
            self.0.db.findings().look_for_outvoted_records().await?;
        }
        if by_itself && self.0.settings.repair_missing {
            // Boxed: a repair is a large act, and most checks need none.
            Box::pin(self.reestablish_missing(replica)).await?;
        }
        Ok(())
    }

    async fn bytes_of(&self, replica: &Replica) -> Result<u64, Error> {
        let overview = self.overview().await?;
        Ok(overview.iter().find(|one| one.replica.id == replica.row.id).map_or(0, |one| one.bytes))
    }

    /// Has the replica read every one of these copies.
    async fn summed(&self, replica: &Replica, listed: Vec<Listed>) -> Result<Vec<Seen>, Error> {
        let names = listed.iter().map(|one| one.name.clone()).collect();
        let recorded = self.0.db.files().recorded(names).await?;
        let strongest = self.0.settings.strongest();
        let asked = listed.into_iter().map(|one| {
            // What was recorded by another algorithm is compared by that.
            let known = recorded.get(one.name.as_str()).and_then(|text| text.split_once('=')?.0.parse().ok());
            let algorithm = known.unwrap_or(strongest);
            async move {
                self.0.throttle.take(one.size).await;
                let answer = replica.checksum(&one.name, algorithm).await?;
                // One that vanished since the list is for the next check to tell.
                Ok::<_, Error>(text(answer).map(|checksum| Seen {
                    name: one.name,
                    size: one.size,
                    checksum: Some(checksum),
                }))
            }
        });
        let answers: Vec<_> = stream::iter(asked).buffered(AT_ONCE).collect().await;
        answers.into_iter().filter_map(Result::transpose).collect()
    }
}

fn gone(key: &str) -> Error {
    grange_db::Error::NotFound { what: format!("check {key}") }.into()
}

/// An answer as it is kept.
pub(crate) fn text(answer: Answer) -> Option<String> {
    match answer {
        Answer::Sums(sums) => Some(deciding(&sums)),
        Answer::Unreadable => Some(UNREADABLE.to_owned()),
        Answer::Missing => None,
    }
}
