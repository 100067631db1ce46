//! What is due: checks by the calendar, checkpoints, the witness of the day.

use std::sync::PoisonError;
use std::time::Duration;

use grange_base::worker::Step;
use grange_model::{Actor, AuditKind};
use jiff::Timestamp;

use crate::archive::Archive;
use crate::error::Error;

/// How often the access rules are compared with those beside the bits. A change of rules does not wait for it.
const ACCESS_RULES_EVERY: Duration = Duration::from_secs(60 * 60);
/// How often all of those beside the bits are read, for damage. There may be thousands, on replicas far away.
const ACCESS_RULES_READ_EVERY: Duration = Duration::from_hours(24);
/// How often left-overs of killed processes are looked for. They cost space only; the first look is at the start.
const SWEEP_EVERY: Duration = Duration::from_hours(1);

/// Whether something that should happen every so often is due. `every` of zero never is. A time that has not come yet, noted
/// while the clock was ahead, says nothing: until it comes nothing would be checked.
fn due(last: Option<Timestamp>, every: Duration, now: Timestamp) -> bool {
    let is_over = |last: Timestamp| last > now || last.checked_add(every).is_ok_and(|next| next <= now);
    !every.is_zero() && last.is_none_or(is_over)
}

/// When a check that is spread over a while may read on, having read `done` of `total` bytes.
pub(crate) fn may_go_on_at(start: Timestamp, spread: Duration, done: u64, total: u64) -> Timestamp {
    let part = if total == 0 { 1.0 } else { (done as f64 / total as f64).min(1.0) };
    start.checked_add(spread.mul_f64(part)).unwrap_or(Timestamp::MAX)
}

impl Archive {
    /// Starts the checks that the calendar asks for, signs the log and writes the witness of the day. Call it every
    /// minute or so; two processes that do both get the same.
    pub async fn tick(&self) -> Result<Step, Error> {
        let (settings, now) = (&self.0.settings, self.0.clock.now());
        for replica in &self.0.replicas {
            for (kind, every) in [
                (AuditKind::List, settings.list_every),
                (AuditKind::Checksum, settings.check_every),
                (AuditKind::Challenge, settings.challenge_every),
            ] {
                if kind == AuditKind::Challenge && !self.can_be_challenged(replica) {
                    continue;
                }
                // A replica that was never checked is as old as its row.
                let last = self.0.db.audits().last_start(replica.row.id, kind, now).await?;
                if due(last.or(Some(replica.row.created_at)), every.0, now) {
                    self.start_audit(replica.name(), kind, &Actor::system()).await?;
                }
            }
        }
        self.seal().await?;
        self.keep_access_rules_when_due().await?;
        self.count_waiting().await?;
        self.vouch_for_others().await?;
        self.probe_replicas().await;
        self.sweep_when_due(now).await;
        Ok(Step::Idle)
    }

    /// Compares the access rules with those beside the bits when that was not done for a while, or not everywhere.
    async fn keep_access_rules_when_due(&self) -> Result<(), Error> {
        let now = self.0.clock.now();
        let last = *self.0.access_rules_kept.lock().await;
        if due(last, ACCESS_RULES_EVERY, now) {
            let last_read = *self.0.access_rules_read.lock().await;
            let read_all = due(last_read, ACCESS_RULES_READ_EVERY, now);
            let report = if read_all {
                self.keep_access_rules().await?
            } else {
                self.keep_changed_access_rules().await?
            };
            let everywhere = report.away.is_empty().then_some(now);
            *self.0.access_rules_kept.lock().await = everywhere;
            if read_all {
                *self.0.access_rules_read.lock().await = everywhere;
            }
        }
        Ok(())
    }

    /// Asks every replica whether it is there. One that is not is a finding until it is.
    pub async fn probe_replicas(&self) {
        for replica in &self.0.replicas {
            replica.report_presence().await;
        }
    }

    /// Shows to monitoring how many files wait for a replica and how many are unknown to the database.
    async fn count_waiting(&self) -> Result<(), Error> {
        let (waiting, strays) = (self.0.db.deposits().counts().await?, self.0.db.strays().count().await?);
        metrics::gauge!("grange_archive_waiting_files").set(waiting.unproven_files as f64);
        metrics::gauge!("grange_archive_waiting_bytes").set(waiting.unproven_bytes as f64);
        metrics::gauge!("grange_archive_stray_files").set(strays as f64);
        Ok(())
    }

    async fn sweep_when_due(&self, now: Timestamp) {
        let last = *self.0.swept.lock().unwrap_or_else(PoisonError::into_inner);
        if due(last, SWEEP_EVERY, now) {
            *self.0.swept.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
            self.sweep_leftovers().await;
        }
    }

    /// Signs the log when that is due and writes the witness of the day.
    pub async fn seal(&self) -> Result<(), Error> {
        let (settings, now) = (&self.0.settings, self.0.clock.now());
        let checkpoints = self.0.db.logbook().checkpoints().await?;
        let last = checkpoints.last();
        let size = self.0.db.logbook().size().await?;
        let grew = size > last.map_or(0, |last| last.size);
        if grew && due(last.map(|last| last.at), settings.checkpoint_every.0, now) {
            self.checkpoint().await?;
        }
        if size > 0 {
            self.write_witness().await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_is_spread_by_the_bytes_it_has_read() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let spread = Duration::from_secs(1000);
        for (done, total, expected) in
            [(0, 10, 0), (5, 10, 500), (10, 10, 1000), (30, 10, 1000), (0, 0, 1000)]
        {
            assert_eq!(may_go_on_at(at(0), spread, done, total), at(expected), "{done} of {total}");
        }
        assert_eq!(may_go_on_at(at(7), Duration::ZERO, 5, 10), at(7));
    }

    #[test]
    fn due_is_when_the_time_has_passed_and_never_when_never_was_asked_for() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let hour = Duration::from_secs(3600);
        for (last, every, now, expected) in [
            (None, hour, 0, true),
            (None, Duration::ZERO, 0, false),
            (Some(at(0)), hour, 3599, false),
            (Some(at(0)), hour, 3600, true),
            (Some(at(9000)), hour, 3600, true),
            (Some(at(9000)), Duration::ZERO, 3600, false),
            (Some(at(3601)), hour, 3600, true),
            (Some(at(3600)), hour, 3600, false),
            (Some(at(0)), Duration::MAX, 3600, false),
        ] {
            assert_eq!(due(last, every, at(now)), expected, "{last:?} {every:?} {now}");
        }
    }
}
