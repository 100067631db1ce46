//! What waits for the archive, counted where people look: rows for `jobs` and `index status`, gauges for monitoring.

use grange_base::{Chain, Size};
use grange_db::WaitingDeposit;

use crate::folder::{HarvestInfo, JobFolder};
use crate::harvester::{Error, Harvester, Parts, lock};

impl Harvester {
    /// Notes what waits in a folder whose crawl has ended, and why. A database that is away is told the next time.
    pub(crate) async fn note_waiting(&self, folder: &JobFolder, info: &HarvestInfo, reason: Option<&str>) {
        let Parts { db, clock, name, .. } = self.parts();
        let job = info.job.id;
        let (files, bytes) = folder.files_left();
        lock(&self.0.waiting).insert(folder.name(), (files, bytes));
        self.count_waiting();
        let deposit = WaitingDeposit {
            harvester: name.clone(),
            folder: folder.name(),
            job,
            files,
            bytes,
            reason: reason.map(str::to_owned),
            since: clock.now(),
        };
        if let Err(error) = db.deposits().keep(deposit, info.claim_token).await {
            tracing::warn!(%job, error = %Chain(&error), "cannot note in the database that files of this job wait for the archive");
        }
    }

    /// The folder is gone.
    pub(crate) async fn forget_waiting(&self, folder: &JobFolder) -> Result<(), Error> {
        lock(&self.0.waiting).remove(&folder.name());
        self.count_waiting();
        let Parts { db, name, .. } = self.parts();
        Ok(db.deposits().forget(name, &folder.name()).await?)
    }

    fn waiting_sum(&self) -> (usize, u64, u64) {
        let waiting = lock(&self.0.waiting);
        let sum = |(files, bytes), (more, and): &(u64, u64)| (files + more, bytes + and);
        let (files, bytes) = waiting.values().fold((0, 0), sum);
        (waiting.len(), files, bytes)
    }

    fn count_waiting(&self) {
        let (folders, files, bytes) = self.waiting_sum();
        metrics::gauge!("grange_harvest_waiting_folders").set(folders as f64);
        metrics::gauge!("grange_harvest_waiting_files").set(files as f64);
        metrics::gauge!("grange_harvest_waiting_bytes").set(bytes as f64);
    }

    /// How much of a full disk is waiting deposits; empty if none is.
    pub(crate) fn waiting_clause(&self) -> String {
        let (folders, files, bytes) = self.waiting_sum();
        if files == 0 {
            return String::new();
        }
        format!(
            "; {files} files ({}) of {folders} jobs wait there for a replica: see `grange replicas`",
            Size(bytes)
        )
    }
}
