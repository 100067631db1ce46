//! A running crawl and its harvester: told to stop when it must, cut off when it does not.

use std::time::Duration;

use grange_base::{Clock, Shutdown};
use tokio::sync::watch;

use crate::engine::{Engine, EngineError, Outcome, Run, Sign, Wish};
use crate::pulse::Heard;
use crate::report::Cause;
use crate::watchdog::{Asleep, Patience, Watchdog};

/// How often a crawl is looked after.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Who watches over a crawl.
#[derive(Debug)]
pub(crate) struct Watch<'a> {
    pub(crate) clock: &'a Clock,
    pub(crate) shutdown: &'a Shutdown,
    pub(crate) patience: Patience,
    pub(crate) stop_within: Duration,
    /// What is heard of the job; none when it is only closed.
    pub(crate) heard: Option<watch::Receiver<Heard>>,
}

/// What became of a crawl.
#[derive(Debug)]
pub(crate) enum Watched {
    /// It ended, by itself or for this cause.
    Ended(Outcome, Option<Cause>),
    Broke(EngineError, Option<Cause>),
    /// It did not stop when told, and was cut off.
    CutOff(Cause),
    /// This process ends; the crawl goes on when the next one starts.
    Suspended,
}

impl Watch<'_> {
    /// Runs the engine to an end.
    pub(crate) async fn over(
        mut self,
        engine: &dyn Engine,
        run: Run,
        wish: watch::Sender<Wish>,
        signs: watch::Receiver<Option<Sign>>,
    ) -> Watched {
        let mut dog = Watchdog::new(self.patience, self.clock.now());
        let mut running = std::pin::pin!(engine.run(run));
        let mut cause = None;
        let mut deadline = None;
        loop {
            tokio::select! {
                ended = &mut running => return match ended {
                    Ok(outcome) => Watched::Ended(outcome, cause),
                    Err(error) => Watched::Broke(error, cause),
                },
                // Dropped in the middle it is as safe as after a crash, and nobody waits for slow servers.
                () = self.shutdown.wait() => return Watched::Suspended,
                () = self.clock.sleep(LOOK_EVERY) => {}
                heard = hear(&mut self.heard) => if cause.is_none() {
                    cause = cause_of(heard);
                },
            }
            let now = self.clock.now();
            if cause.is_none() {
                let sign = signs.borrow().clone();
                cause = dog.look(sign.as_ref(), now).map(|asleep| match asleep {
                    Asleep::Inactive => Cause::Inactive(self.patience.inactivity),
                    Asleep::NoResponse => Cause::NoResponse(self.patience.no_response),
                });
            }
            let Some(why) = &cause else { continue };
            let since = *deadline.get_or_insert_with(|| {
                tracing::warn!(?why, "the crawl is told to stop");
                wish.send_replace(Wish::Stop);
                now
            });
            if Duration::try_from(now.duration_since(since)).is_ok_and(|gone| gone >= self.stop_within) {
                return Watched::CutOff(why.clone());
            }
        }
    }
}

/// The next word that is heard; never comes when there is nobody to hear.
async fn hear(heard: &mut Option<watch::Receiver<Heard>>) -> Heard {
    if let Some(listener) = heard {
        if listener.changed().await.is_ok() {
            return *listener.borrow_and_update();
        }
        *heard = None;
    }
    std::future::pending().await
}

/// Why a job is to be let go of, by what is heard of it.
pub(crate) fn cause_of(heard: Heard) -> Option<Cause> {
    match heard {
        Heard { lost: true, .. } => Some(Cause::LeaseLost),
        Heard { stop_wanted: true, .. } => Some(Cause::Cancelled),
        _ => None,
    }
}

#[cfg(test)]
#[path = "crawling_tests.rs"]
mod tests;
