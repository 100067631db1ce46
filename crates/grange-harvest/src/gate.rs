//! The disk gate: no job is taken while there is too little space, and jobs are taken again by themselves.

use std::sync::atomic::Ordering;

use grange_base::Size;
use grange_model::harvest::HarvesterState;

use crate::harvester::{Harvester, Parts};

impl Harvester {
    /// What is left for the folders of jobs; none where that cannot be told.
    pub(crate) fn free_bytes(&self) -> Option<u64> {
        let folder = &self.0.parts.folder;
        std::fs::create_dir_all(folder).ok()?;
        rustix::fs::statvfs(folder).ok().map(|stat| stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    /// Tells people when space runs out, and when there is some again.
    pub(crate) async fn mind_the_disk(&self, room: bool, free: Option<u64>) {
        let Parts { settings, name, folder, announcer, .. } = &self.0.parts;
        if self.0.full.swap(!room, Ordering::Relaxed) != room {
            return;
        }
        if room {
            tracing::info!(free_bytes = free, "there is space again; jobs are taken");
            return;
        }
        let word = format!(
            "the harvester {name} takes no jobs: {} are left for {}, {} are wanted; free some space, it goes on by itself{}",
            Size(free.unwrap_or_default()),
            folder.display(),
            settings.min_space_left,
            self.waiting_clause()
        );
        tracing::error!("{word}");
        if let Some(announcer) = announcer {
            announcer.report_error(name, &word).await;
        }
    }
}

/// What a harvester does, in one word.
pub(crate) fn state(room: bool, running: usize) -> HarvesterState {
    match (room, running) {
        (false, _) => HarvesterState::Full,
        (true, 0) => HarvesterState::Idle,
        (true, _) => HarvesterState::Busy,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_harvester_says_what_it_does() {
        for (room, running, says) in [
            (true, 0, HarvesterState::Idle),
            (true, 1, HarvesterState::Busy),
            (false, 0, HarvesterState::Full),
            (false, 1, HarvesterState::Full),
        ] {
            assert_eq!(state(room, running), says);
        }
    }
}
