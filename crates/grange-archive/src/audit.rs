//! Checks of a replica: page by page from where the last one stopped, at the pace that is allowed.

use std::collections::HashSet;
use std::time::Duration;

use futures_util::stream::{FuturesOrdered, StreamExt};
use grange_base::worker::Step;
use grange_base::{Chain, Retry, RetryPolicy, Shutdown};
use grange_db::{AUDIT_WORK, AuditRow, Claim, FileStatus, Found, Page, Seen, Votes, deciding};
use grange_model::{Actor, AuditId, AuditKind, AuditState, FileName};
use jiff::Timestamp;

use crate::archive::{Archive, fill_gaps};
use crate::error::Error;
use crate::replica::{Answer, Listed, Replica, UNREADABLE};
use crate::schedule::may_go_on_at;

/// Copies that are asked for at once: a node sums up four together on each of two cores.
const AT_ONCE: usize = 8;

/// How long a check rests that may not read now: outside its hours, or while the replica is away.
const REST: Duration = Duration::from_secs(5 * 60);

/// A check that a person asked for and that has got nowhere for so long, because its replica is away, ends as failed.
const AWAY_MOST: Duration = Duration::from_secs(60);

/// Files that no listing shows and that are named; more are only counted.
const UNLISTED_MAX: usize = 1000;

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
        if kind == AuditKind::Challenge && !self.can_be_challenged(replica) {
            let name = replica.name().to_owned();
            let has_bytes = replica.keeps_bytes();
            return Err(if has_bytes {
                Error::NoPeer { replica: name }
            } else {
                Error::NoBytes { replica: name }
            });
        }
        let row = self.0.db.audits().start(replica.row.id, kind, actor).await?;
        self.0.audit_hint.wake();
        Ok(row)
    }

    /// Checks all replicas and waits for the end, doing the work here unless another process does.
    pub async fn audit_all(&self, kind: AuditKind, actor: &Actor) -> Result<Vec<AuditRow>, Error> {
        let mut started = Vec::new();
        for replica in &self.0.replicas {
            if kind != AuditKind::Challenge || self.can_be_challenged(replica) {
                started.push(self.start_audit(replica.name(), kind, actor).await?);
            }
        }
        for row in &started {
            self.wait_audit(row.id).await?;
        }
        // Read when all are over: an audit may change what another one found.
        let mut ended = Vec::new();
        for row in started {
            ended.push(self.audit(row.id).await?);
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
            if self.audit_step(&Shutdown::never()).await? == Step::Idle {
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
        let (mut answers, asked_at) = (Vec::new(), self.0.clock.now());
        for replica in &self.0.replicas {
            let Some((algorithm, _)) = status.file.checksums.strongest() else { continue };
            match replica.checksum(name, algorithm).await {
                Ok(answer) => answers.push((replica.row.id, text(answer))),
                Err(error) => tracing::warn!(replica = replica.name(), error = %Chain(&error), "no answer"),
            }
        }
        self.0.db.audits().observe(status.file.id, asked_at, answers, by).await?;
        self.0.db.findings().look_at_copies().await?;
        self.file(name).await
    }

    /// Takes the check that is due first and goes on with it for a while: what it found is kept, and the next step may
    /// be another check's. When `stop` comes, the check is given back at once and goes on wherever there is a worker.
    pub async fn audit_step(&self, stop: &Shutdown) -> Result<Step, Error> {
        let lease = self.0.settings.lease.0;
        let Some(claim) = self.0.db.work().claim(AUDIT_WORK, &self.0.owner, lease).await? else {
            return Ok(Step::Idle);
        };
        // Boxed: a check is a large act.
        let ran = stop.or(self.held(&claim, Box::pin(self.run_audit(&claim)))).await;
        let left = match ran {
            None => self.0.db.work().release(&claim).await,
            Some(Ok(Progress::Ended)) => Ok(()),
            Some(Ok(Progress::More)) => self.0.db.work().release(&claim).await,
            Some(Ok(Progress::Rests { reason, wait })) => {
                self.0.db.work().fail(&claim, reason, wait).await.map(|_| ())
            }
            // Cancelled, or taken by another: nothing is ours to say.
            Some(Err(Error::Db(grange_db::Error::LeaseLost { .. } | grange_db::Error::NotFound { .. }))) => {
                Ok(())
            }
            Some(Err(error)) => return self.interrupted(&claim, &error).await.map(|()| Step::More),
        };
        match left {
            Ok(()) | Err(grange_db::Error::LeaseLost { .. } | grange_db::Error::NotFound { .. }) => {
                Ok(Step::More)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The replica is away: a check by the calendar waits for it and says why; one that a person asked for ends after a
    /// while, so that the person learns it.
    async fn interrupted(&self, claim: &Claim, error: &Error) -> Result<(), Error> {
        let reason = Chain(error).to_string();
        let Ok(id) = claim.key.parse::<AuditId>() else { return Ok(()) };
        let audit = self.audit(id).await?;
        // A replica that is away is a finding, which is announced once.
        tracing::warn!(replica = %audit.replica, check = claim.key, error = reason, "a check cannot go on");
        let settings = &self.0.settings;
        let policy = RetryPolicy {
            first: settings.retry_first.0.min(REST),
            most: settings.retry_most.0.min(REST),
            attempts: 0,
        };
        let wait = policy.wait(claim.attempt, Retry::Soon).unwrap_or(policy.most);
        let standing = self.0.clock.now().duration_since(audit.updated_at);
        let asked_by_person = audit.asked_by != Actor::system().who;
        let kept = if asked_by_person && Duration::try_from(standing).is_ok_and(|since| since >= AWAY_MOST) {
            self.0.db.audits().end(claim, id, AuditState::Failed, Some(reason), Vec::new()).await.map(|_| ())
        } else {
            self.0.db.audits().rest(claim, id, &reason, wait).await
        };
        match kept {
            Ok(()) | Err(grange_db::Error::LeaseLost { .. } | grange_db::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    async fn run_audit(&self, claim: &Claim) -> Result<Progress, Error> {
        let id: AuditId = claim.key.parse().map_err(|_| gone(&claim.key))?;
        let audit = self.audit(id).await?;
        let replica = self.replica_by_id(audit.replica_id).ok_or_else(|| gone(&claim.key))?;
        replica.verify().await?;
        if audit.kind == AuditKind::Challenge {
            return self.run_challenge(claim, &audit, replica).await.map(|()| Progress::Ended);
        }
        fill_gaps(&self.0.db).await?;
        let by_itself = audit.asked_by == Actor::system().who;
        let mut after: Option<String> = audit.position.clone();
        let (spread, mut read) = (self.0.settings.check_spread.0, audit.found.bytes);
        let spread = if by_itself && audit.kind == AuditKind::Checksum { spread } else { Duration::ZERO };
        let total = if spread.is_zero() { 0 } else { self.bytes_of(replica).await? };
        let mut budget = Budget::new(self.0.clock.now(), self.0.settings.check_bytes_per_second.0);
        loop {
            let go_on = may_go_on_at(audit.started_at, spread, read, total);
            if let (false, Ok(wait)) =
                (spread.is_zero(), Duration::try_from(go_on.duration_since(self.0.clock.now())))
                && !wait.is_zero()
                && (1..total).contains(&read)
            {
                let (reason, wait) = ("spread by archive.check_spread", wait.min(SPREAD_REST));
                return Ok(Progress::Rests { reason, wait });
            }
            let hour = self.0.clock.now().to_zoned(jiff::tz::TimeZone::UTC).hour();
            if by_itself && !self.0.settings.may_check(hour as u8) {
                return Ok(Progress::Rests { reason: "outside archive.check_hours", wait: REST });
            }
            if budget.spent(self.0.clock.now()) {
                return Ok(Progress::More);
            }
            let asked_at = self.0.clock.now();
            let from = after.as_ref().and_then(|name| name.parse::<FileName>().ok());
            let (listed, mut next) = replica.list(from.as_ref(), self.0.settings.check_page as usize).await?;
            let names = || listed.iter().map(|one| one.name.clone()).collect();
            // A list check reads only copies that were missing: nobody knows what they are now.
            let only = match audit.kind {
                AuditKind::Checksum => None,
                _ => Some(self.0.db.audits().reappeared(replica.row.id, names()).await?),
            };
            let seen = if only.as_ref().is_some_and(HashSet::is_empty) {
                listed.into_iter().map(|one| unread(one, None)).collect()
            } else {
                let (seen, upto) = self.summed(replica, listed, only.as_ref(), &mut budget).await?;
                next = upto.or(next);
                seen
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
        // Files in subfolders are in no list. They are counted with the strays.
        let found = match replica.unlisted(UNLISTED_MAX).await {
            Ok(unlisted) => {
                let paths = unlisted.paths.into_iter().map(|(path, size)| (shortened(path), size)).collect();
                self.0.db.strays().keep_unlisted(audit.replica_id, paths).await?;
                Found { extra: unlisted.count, ..Found::default() }
            }
            // The copies are checked all the same.
            Err(error) => {
                let (replica, error) = (replica.name(), Chain(&error).to_string());
                tracing::warn!(replica, error, "cannot list the subfolders of a replica");
                Found::default()
            }
        };
        // Before anything is repaired: findings are announced, also those that are over a moment later.
        self.0.db.findings().look_at_copies().await?;
        // Before the end, so that a stop in between finds the check where it was and comes back to this.
        if by_itself && self.0.settings.repair_missing {
            self.ask_for_missing(replica).await?;
        }
        self.0.db.audits().end_counted(claim, id, AuditState::Done, None, found, Vec::new()).await?;
        Ok(Progress::Ended)
    }

    async fn bytes_of(&self, replica: &Replica) -> Result<u64, Error> {
        let overview = self.overview().await?;
        Ok(overview.iter().find(|one| one.replica.id == replica.row.id).map_or(0, |one| one.bytes))
    }

    /// Has the replica read these copies, or those of them that are named, as many as the budget allows and at least one. The
    /// second value is the last one read where some were left.
    async fn summed(
        &self,
        replica: &Replica,
        listed: Vec<Listed>,
        only: Option<&HashSet<String>>,
        budget: &mut Budget,
    ) -> Result<(Vec<Seen>, Option<FileName>), Error> {
        let names = listed.iter().map(|one| one.name.clone()).collect();
        let recorded = self.0.db.files().recorded(names).await?;
        let strongest = self.0.settings.strongest();
        let is_read = |one: &Listed| only.is_none_or(|only| only.contains(one.name.as_str()));
        let ask = |one: Listed| {
            // What was recorded by another algorithm is compared by that.
            let known = recorded.get(one.name.as_str()).and_then(|text| text.split_once('=')?.0.parse().ok());
            let algorithm = known.unwrap_or(strongest);
            let read = is_read(&one);
            async move {
                if !read {
                    return Ok(Some(unread(one, None)));
                }
                self.0.throttle.take(one.size.unwrap_or_default()).await;
                let answer = text(replica.checksum(&one.name, algorithm).await?);
                // One that vanished since the list is for the next check to tell.
                Ok::<_, Error>(answer.map(|checksum| unread(one, Some(checksum))))
            }
        };
        let mut waiting = listed.into_iter().peekable();
        let (mut under_way, mut seen, mut last) = (FuturesOrdered::new(), Vec::new(), None);
        loop {
            // What was begun is read to its end: reading it again would cost more than waiting.
            while under_way.len() < AT_ONCE
                && (last.is_none() || !budget.spent(self.0.clock.now()))
                && let Some(one) = waiting.next()
            {
                budget.take(if is_read(&one) { one.size.unwrap_or_default() } else { 0 });
                last = Some(one.name.clone());
                under_way.push_back(ask(one));
            }
            match under_way.next().await {
                Some(answer) => seen.extend(answer?),
                None => break,
            }
        }
        let upto = waiting.peek().is_some().then_some(last).flatten();
        Ok((seen, upto))
    }
}

/// How far a step of a check came.
#[derive(Debug)]
enum Progress {
    /// The check is over.
    Ended,
    /// It has done its share for now.
    More,
    /// It may not read now.
    Rests { reason: &'static str, wait: Duration },
}

/// What one step of a check may read before it keeps what it found and lets another check have its turn: ten seconds,
/// or the bytes that a fast disk gives in ten seconds. A stop or a crash costs that much reading at most, and the files
/// under way.
#[derive(Debug)]
struct Budget {
    until: Timestamp,
    bytes: u64,
}

impl Budget {
    const LENGTH: Duration = Duration::from_secs(10);
    const BYTES: u64 = 4 << 30;

    /// `per_second`: the most bytes that may be read; 0 is no limit.
    fn new(now: Timestamp, per_second: u64) -> Self {
        let limit =
            if per_second == 0 { u64::MAX } else { per_second.saturating_mul(Self::LENGTH.as_secs()) };
        Self { until: now.checked_add(Self::LENGTH).unwrap_or(Timestamp::MAX), bytes: Self::BYTES.min(limit) }
    }

    fn take(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    fn spent(&self, now: Timestamp) -> bool {
        self.bytes == 0 || now >= self.until
    }
}

/// A copy as it was listed. One that cannot even be looked at is as good as one that cannot be read.
fn unread(one: Listed, checksum: Option<String>) -> Seen {
    let checksum = if one.size.is_none() { Some(UNREADABLE.to_owned()) } else { checksum };
    Seen { name: one.name, size: one.size.unwrap_or_default(), checksum }
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

/// A path as a row keeps it: PostgreSQL takes no key of more than some 2,700 bytes.
fn shortened(path: String) -> String {
    const CHARS_MAX: usize = 500;
    if path.chars().count() <= CHARS_MAX {
        path
    } else {
        path.chars().take(CHARS_MAX).chain(['…']).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_of_a_check_ends_after_ten_seconds_or_the_bytes_of_ten_seconds() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut free = Budget::new(at(0), 0);
        assert!(!free.spent(at(9)) && free.spent(at(10)));
        free.take(Budget::BYTES - 1);
        assert!(!free.spent(at(0)));
        free.take(1);
        assert!(free.spent(at(0)));
        let mut slow = Budget::new(at(0), 1000);
        slow.take(9_999);
        assert!(!slow.spent(at(0)));
        slow.take(5_000_000);
        assert!(slow.spent(at(0)));
    }
}
