//! The gate behind jobs that could not be prepared: a folder that cannot be written fails every job alike, so none is taken
//! for a while, and longer after each further failure.

use std::time::Duration;

use jiff::Timestamp;

use crate::harvester::{Harvester, Parts, lock};

/// Soon enough when the cause was a moment's; a claim and its return are two writes and two lines of log.
const FIRST_WAIT: Duration = Duration::from_secs(30);
/// After a repair of the folder jobs are taken within this time.
const LONGEST_WAIT: Duration = Duration::from_secs(15 * 60);

/// Whether jobs are taken.
#[derive(Debug, Default)]
pub(crate) struct PrepareGate {
    /// Jobs in a row that could not be prepared.
    failures: u32,
    closed_until: Option<Timestamp>,
}

impl PrepareGate {
    pub(crate) fn is_open(&self, now: Timestamp) -> bool {
        self.closed_until.is_none_or(|until| now >= until)
    }

    /// A job could not be prepared: for how long none is taken.
    fn close(&mut self, now: Timestamp) -> Duration {
        let wait = FIRST_WAIT.saturating_mul(1 << self.failures.min(16)).min(LONGEST_WAIT);
        self.failures += 1;
        self.closed_until = Some(now.saturating_add(wait).unwrap_or(Timestamp::MAX));
        wait
    }

    /// A job was prepared. True if that ends a row of failures.
    fn open(&mut self) -> bool {
        let closed = self.failures > 0;
        *self = Self::default();
        closed
    }
}

impl Harvester {
    /// Takes no job for a while, and reports it with the first failure of a row.
    pub(crate) async fn close_gate(&self, reason: &str) {
        let Parts { clock, name, folder, announcer, .. } = self.parts();
        let (wait, first) = {
            let mut gate = lock(&self.0.gate);
            let first = gate.failures == 0;
            (gate.close(clock.now()), first)
        };
        let word = format!(
            "the harvester {name} takes no jobs for {} s: cannot prepare a job in {}: {reason}; check the folder and its \
             disk, jobs are taken again without a restart",
            wait.as_secs(),
            folder.display()
        );
        tracing::error!("{word}");
        if let Some(announcer) = announcer.as_ref().filter(|_| first) {
            announcer.report_error(name, &word).await;
        }
    }

    pub(crate) fn is_gate_open(&self) -> bool {
        lock(&self.0.gate).is_open(self.parts().clock.now())
    }

    pub(crate) fn open_gate(&self) {
        if lock(&self.0.gate).open() {
            tracing::info!("jobs can be prepared again; jobs are taken");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_cannot_be_written_costs_few_claims() {
        let mut gate = PrepareGate::default();
        let start = Timestamp::UNIX_EPOCH;
        // A second per look, for an hour, and every job that is taken fails.
        let mut claims = Vec::new();
        for second in 0..3600 {
            let now = start + Duration::from_secs(second);
            if gate.is_open(now) {
                claims.push(second);
                gate.close(now);
            }
        }
        assert_eq!(claims, [0, 30, 90, 210, 450, 930, 1830, 2730]);
        assert!(gate.open() && gate.is_open(start));
        assert!(!gate.open(), "only the end of a row is worth a line");
        let wait = gate.close(start);
        assert_eq!(wait, FIRST_WAIT);
    }
}
