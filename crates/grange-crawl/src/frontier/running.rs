//! Running time: the time between start and now, pauses left out.

#[derive(Clone, Copy, Debug)]
pub(super) struct RunningTime {
    before: u64,
    since: Option<i64>,
}

impl RunningTime {
    /// Goes on after `before` milliseconds of earlier runs.
    pub(super) fn resumed(before: u64, now: i64) -> RunningTime {
        RunningTime { before, since: Some(now) }
    }

    pub(super) fn is_running(&self) -> bool {
        self.since.is_some()
    }

    /// Milliseconds run until `now`. A clock set back stands still.
    pub(super) fn ran(&self, now: i64) -> u64 {
        let current = self.since.map_or(0, |since| now.saturating_sub(since).max(0).unsigned_abs());
        self.before.saturating_add(current)
    }

    pub(super) fn set(&mut self, running: bool, now: i64) {
        if running != self.is_running() {
            *self = RunningTime { before: self.ran(now), since: running.then_some(now) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_do_not_count() {
        let mut time = RunningTime::resumed(100, 1000);
        assert_eq!(time.ran(1050), 150);
        time.set(false, 1100);
        time.set(false, 1500);
        assert_eq!((time.ran(9000), time.is_running()), (200, false));
        time.set(true, 9000);
        time.set(true, 9005);
        assert_eq!(time.ran(9010), 210);
        assert_eq!(time.ran(0), 200);
    }
}
