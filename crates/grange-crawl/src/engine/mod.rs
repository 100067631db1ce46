//! A crawl from its first seed to its last report.
//!
//! ```text
//! frontier ──claim──▶ workers (visit: robots, fetch, links, pack) ──delivery──▶ committer ──finish──▶ frontier
//!                                                                     │ WARC files, logs
//! ```
//! [`dispatch`] hands URLs out, [`visit`] works on one, [`commit`] writes; [`Handle`] takes orders meanwhile.

mod changes;
mod commit;
mod contacts;
mod cut_responses;
mod dispatch;
mod finish;
mod folder;
mod gate;
mod handle;
mod holds;
mod hosts;
mod kept_cookies;
mod lasting_orders;
mod links;
mod login;
mod login_session;
mod meter;
mod network;
mod order;
mod outage;
mod pack;
mod progress;
mod settings;
mod shared;
mod socket;
mod start;
mod stragglers;
mod takeover;
mod visit;
mod waits;

use std::sync::Arc;
use std::time::Duration;

use grange_base::Trigger;
use tokio::sync::{mpsc, watch};

pub use commit::CommitError;
pub use dispatch::End;
pub use finish::Outcome;
pub use folder::{Folder, FolderError};
pub use handle::Handle;
pub use lasting_orders::LastingOrders;
pub use login_session::LoginTrouble;
pub use meter::{HostRow, Phase, Snapshot};
pub use order::{Order, OrderError, Request};
pub use settings::Settings;
pub use shared::VisitError;
pub use socket::{AskError, ask};
pub use start::StartError;
pub use takeover::{TakeOver, TakeOverError, TakenOver};

use crate::job::StopReason;
use crate::record::chunk::Manifest;
use commit::{Committer, Message};
use shared::{Shared, Wish};

/// A crawl that is ready to run.
pub struct Crawl {
    shared: Arc<Shared>,
    folder: Folder,
    committer: Committer,
    give_up: Trigger,
    snapshots: watch::Sender<Snapshot>,
}

impl std::fmt::Debug for Crawl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Crawl").field("folder", &self.folder.root()).finish_non_exhaustive()
    }
}

/// Why a crawl did not come to its end. Its folder can be resumed.
#[derive(Debug, thiserror::Error)]
pub enum CrawlError {
    #[error(transparent)]
    Visit(#[from] VisitError),
    #[error(transparent)]
    Commit(#[from] CommitError),
    #[error("cannot write the reports into {0}; free some space, then resume")]
    Reports(std::path::PathBuf, #[source] std::io::Error),
    #[error("cannot listen for orders in {0}")]
    Socket(std::path::PathBuf, #[source] std::io::Error),
}

impl Crawl {
    /// The reins.
    pub fn handle(&self) -> Handle {
        Handle { crawl: Arc::downgrade(&self.shared), snapshots: self.snapshots.subscribe() }
    }

    /// Runs to the end: nothing left, a limit, or an order. Must be called in a multi-threaded runtime.
    pub async fn run(self) -> Result<Outcome, CrawlError> {
        let Crawl { shared, folder, committer, give_up, snapshots } = self;
        let handle = Handle { crawl: Arc::downgrade(&shared), snapshots: snapshots.subscribe() };
        let socket = socket::Socket::open(&folder.socket(), handle)
            .map_err(|error| CrawlError::Socket(folder.root().to_owned(), error))?;
        let outbox = shared.outbox.clone();
        progress::check_free_space(&shared, &folder.warcs());
        // The folder is in use until the last file is let go of, also when this call is dropped.
        let in_use = folder.clone();
        let mut writing = tokio::task::spawn_blocking(move || {
            let written = committer.run();
            drop(in_use);
            written
        });
        let progress = tokio::spawn(progress::watch(Arc::clone(&shared), folder.warcs(), snapshots.clone()));
        let RunGuard { give_up, .. } = &RunGuard { give_up, progress: progress.abort_handle() };
        let mut workers = dispatch::Workers::new();
        let ended = tokio::select! {
            ended = dispatch::dispatch(&shared, &mut workers) => Ok(ended),
            // It ends before it is told to only if it cannot write.
            written = &mut writing => Err(written),
        };
        drop(socket);
        // Awaited, because they hold the crawl and with it the lock of the folder.
        progress.abort();
        let _ = progress.await;
        workers.shutdown().await;
        let end = match ended {
            Ok(Ok(end)) => end,
            Err(written) => {
                return Err(match joined(written) {
                    Err(error) => error.into(),
                    Ok(_) => CommitError::Io(std::io::Error::other("the committer stopped")).into(),
                });
            }
            Ok(Err(error)) => {
                // What was delivered is still committed; the chunk stays open for a resume.
                give_up.pull();
                drop((outbox, shared));
                let _ = writing.await;
                return Err(error.into());
            }
        };
        if matches!(end, End::Stopped | End::Limit(StopReason::TimeLimit)) {
            // Nobody waits for a full disk any more. What it does not take stays in the frontier.
            give_up.pull();
        }
        let ending = async {
            progress::last(&shared, &snapshots, end).await;
            // Nobody else holds the receiving end up: the committer is there until it has read this.
            let _ = outbox.send(Message::Finish).await;
            writing.await
        };
        let manifest = joined(or_give_up(&shared, give_up, ending).await)?;
        finish::finish(&shared, &folder, end, manifest, &snapshots)
            .map_err(|error| CrawlError::Reports(folder.reports(), error))
    }
}

/// Ends with a run, however that ends, what it began and would go on: the committer on a full disk, and the picture.
struct RunGuard {
    give_up: Trigger,
    progress: tokio::task::AbortHandle,
}

impl Drop for RunGuard {
    fn drop(&mut self) {
        self.give_up.pull();
        self.progress.abort();
    }
}

/// Waits for the end of a crawl. A stop that is ordered meanwhile, and the end of its time, give up on a full disk.
async fn or_give_up<T>(shared: &Shared, give_up: &Trigger, ending: impl Future<Output = T>) -> T {
    tokio::pin!(ending);
    tokio::select! {
        ended = &mut ending => return ended,
        () = stopped_or_out_of_time(shared) => give_up.pull(),
    }
    ending.await
}

/// Waits for the order to stop, or for the end of the crawl's time, which an order may change.
async fn stopped_or_out_of_time(shared: &Shared) {
    let mut wish = shared.wish.subscribe();
    loop {
        let now = shared.clock.now();
        let ends = shared.frontier.time_ends(now);
        if ends.is_some_and(|end| end <= now) {
            return;
        }
        let wait = ends.map(|end| Duration::try_from(end.duration_since(now)).unwrap_or_default());
        tokio::select! {
            // The sender lives as long as the crawl.
            _ = wish.wait_for(|wish| *wish == Wish::Stop) => return,
            () = shared.frontier.changed() => {}
            () = shared.clock.sleep(wait.unwrap_or_default()), if wait.is_some() => {}
        }
    }
}

type Written = Result<Option<Manifest>, CommitError>;

fn joined(written: Result<Written, tokio::task::JoinError>) -> Written {
    match written {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Ok(None),
        },
    }
}

/// How many deliveries may wait for the committer, or for the end of a chunk. Each holds a packed capture; workers wait
/// when it is full.
const OUTBOX: usize = 256;

#[cfg(test)]
mod sync_tests;

fn channel() -> (mpsc::Sender<Message>, mpsc::Receiver<Message>) {
    mpsc::channel(OUTBOX)
}

fn wishes() -> watch::Sender<Wish> {
    watch::Sender::new(Wish::Run)
}
