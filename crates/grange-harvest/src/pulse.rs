//! Signs of life: keeps the lease of a job, reports its progress and the orders given to its crawl, hears whether it is to
//! stop.

use std::time::Duration;

use grange_base::{Chain, Clock};
use grange_db::{Db, Heartbeat, JobClaim};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::engine::Sign;
use crate::settings::Settings;

/// What was heard from the database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Heard {
    /// A person wants the job to end.
    pub(crate) stop_wanted: bool,
    /// The job belongs to somebody else, or is over.
    pub(crate) lost: bool,
}

/// Keeps the lease of one job until it is dropped.
#[derive(Debug)]
pub(crate) struct Pulse {
    heard: watch::Receiver<Heard>,
    task: JoinHandle<()>,
}

impl Pulse {
    /// Tells what `signs` shows, or that the harvester lives while there is nothing to show.
    pub(crate) fn start(
        db: Db,
        clock: Clock,
        settings: &Settings,
        claim: JobClaim,
        signs: watch::Receiver<Option<Sign>>,
    ) -> Self {
        let (tell, heard) = watch::channel(Heard::default());
        let (lease, sample) = (settings.lease.0, settings.sample_every.0);
        // Whatever the settings say, a lease survives two lost words.
        let every = settings.progress_every.0.min(lease / 3);
        let task = tokio::spawn(async move {
            let mut kept_orders = None;
            loop {
                let said = word(&db, &claim, &signs, lease, sample).await;
                let orders = signs.borrow().as_ref().and_then(|sign| sign.orders.clone());
                if let Some(orders) = orders.filter(|orders| kept_orders.as_ref() != Some(orders)) {
                    match db.jobs().keep_orders(&claim, orders.to_string()).await {
                        Ok(()) => kept_orders = Some(orders),
                        // The next word tries again, and notices a lease that was lost.
                        Err(error) => {
                            tracing::warn!(job = %claim.job, error = %Chain(&error), "the orders to the crawl were not kept");
                        }
                    }
                }
                match said {
                    Ok(beat) => {
                        tell.send_if_modified(|heard| {
                            let changed = heard.stop_wanted != beat.stop_wanted;
                            heard.stop_wanted = beat.stop_wanted;
                            changed
                        });
                    }
                    Err(grange_db::Error::LeaseLost { .. }) => {
                        tell.send_modify(|heard| heard.lost = true);
                        return;
                    }
                    // The crawl goes on: the database may be back before anybody takes the job.
                    Err(error) => {
                        tracing::warn!(job = %claim.job, error = %Chain(&error), "the lease was not renewed");
                    }
                }
                clock.sleep(every).await;
            }
        });
        Self { heard, task }
    }

    /// What is heard from now on.
    pub(crate) fn listen(&self) -> watch::Receiver<Heard> {
        self.heard.clone()
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn word(
    db: &Db,
    claim: &JobClaim,
    signs: &watch::Receiver<Option<Sign>>,
    lease: Duration,
    sample: Duration,
) -> Result<Heartbeat, grange_db::Error> {
    let sign = signs.borrow().clone();
    match sign {
        Some(sign) => db.jobs().report_progress(claim, sign.progress, lease, sample).await,
        None => db.jobs().renew(claim, lease).await,
    }
}
