//! The tasks of a harvester, each under a number of its own: the end of one task of a job leaves the entry of another.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use grange_model::harvest::JobId;

/// The state of a job on its harvester.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Takes one of `jobs_at_once` places.
    Crawling,
    /// The crawl has ended and its files are safe in the folder; they wait for the archive.
    Depositing,
}

#[derive(Debug)]
struct ActiveTask {
    job: JobId,
    /// None before there is a folder, and while the task waits for an earlier one of the job: then every folder of the job
    /// is its own.
    folder: Option<PathBuf>,
    phase: Phase,
}

/// The tasks of a harvester.
#[derive(Debug, Default)]
pub(crate) struct ActiveWork {
    tasks: BTreeMap<u64, ActiveTask>,
    last: u64,
}

impl ActiveWork {
    /// Adds a task; its number is higher than those of earlier ones.
    pub(crate) fn begin(&mut self, job: JobId, folder: Option<PathBuf>, phase: Phase) -> u64 {
        self.last += 1;
        self.tasks.insert(self.last, ActiveTask { job, folder, phase });
        self.last
    }

    pub(crate) fn end(&mut self, task: u64) {
        self.tasks.remove(&task);
    }

    /// The task has chosen its folder.
    pub(crate) fn set_folder(&mut self, task: u64, folder: &Path) {
        if let Some(task) = self.tasks.get_mut(&task) {
            task.folder = Some(folder.to_owned());
        }
    }

    /// The task leaves its folder for another one of the job.
    pub(crate) fn choose_again(&mut self, task: u64) {
        if let Some(task) = self.tasks.get_mut(&task) {
            (task.folder, task.phase) = (None, Phase::Crawling);
        }
    }

    /// The crawl in this folder has ended.
    pub(crate) fn set_depositing(&mut self, folder: &Path) {
        for task in self.tasks.values_mut().filter(|task| task.folder.as_deref() == Some(folder)) {
            task.phase = Phase::Depositing;
        }
    }

    /// Whether a task works in this folder of a job, or is to choose one of the job's folders.
    pub(crate) fn holds(&self, job: Option<JobId>, folder: &Path) -> bool {
        self.tasks.values().any(|task| match &task.folder {
            Some(own) => own == folder,
            None => Some(task.job) == job,
        })
    }

    /// Whether a task that began before `task` still works on the job.
    pub(crate) fn is_busy_before(&self, job: JobId, task: u64) -> bool {
        self.tasks.range(..task).any(|(_, earlier)| earlier.job == job)
    }

    pub(crate) fn running(&self) -> usize {
        self.tasks.len()
    }

    pub(crate) fn crawling(&self) -> usize {
        self.tasks.values().filter(|task| task.phase == Phase::Crawling).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_tasks_of_one_job_have_entries_of_their_own() {
        let (job, other) = (JobId(1), JobId(2));
        let [first, second, foreign] = ["1_a", "1_b", "2_a"].map(Path::new);
        let mut work = ActiveWork::default();
        let old = work.begin(job, Some(first.to_owned()), Phase::Crawling);
        let holds = |work: &ActiveWork| {
            [(job, first), (job, second), (other, foreign)].map(|(job, folder)| work.holds(Some(job), folder))
        };
        assert_eq!(holds(&work), [true, false, false]);
        let new = work.begin(job, None, Phase::Crawling);
        assert_eq!(holds(&work), [true, true, false]);
        assert!(work.is_busy_before(job, new) && !work.is_busy_before(job, old));
        assert!(!work.is_busy_before(other, new));
        work.set_depositing(first);
        assert_eq!((work.running(), work.crawling()), (2, 1));
        work.end(old);
        assert_eq!(holds(&work), [true, true, false], "the end of one task leaves the other");
        work.set_folder(new, second);
        assert_eq!(holds(&work), [false, true, false]);
        work.set_depositing(second);
        work.choose_again(new);
        assert_eq!((holds(&work), work.crawling()), ([true, true, false], 1));
        work.end(new);
        assert_eq!((work.running(), work.crawling()), (0, 0));
    }
}
