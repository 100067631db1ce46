//! SQLite's one writer, with group commit.
//!
//! Acts that arrive while a commit is under way wait in the queue and are then run in one transaction, each in a
//! savepoint of its own where it needs one, with one commit for all. So the cost of reaching the disk is shared by whoever waits for it,
//! and a lone act does not wait for company. An answer is given only after the commit.

use std::sync::Arc;

use grange_base::{Clock, DatabaseInUse};
use sqlx::{AnyConnection, Connection};
use tokio::sync::{mpsc, oneshot};

use crate::act::{Queued, Shape, Tx};
use crate::dialect::Dialect;
use crate::opened_file::OpenedFile;
use crate::sqlite;
use crate::target::Target;

/// Acts that may wait for the writer; whoever comes then waits for room. A second's worth of work.
pub(crate) const QUEUE_MAX: usize = 4096;

/// Acts in one transaction: enough to share a commit well, few enough that the first does not wait for long.
const BATCH_MAX: usize = 256;

/// What the writer can be asked for.
pub(crate) enum Job {
    Act(Box<dyn Queued>),
    /// Finish what was queued before, close the file, and say so.
    Close(oneshot::Sender<()>),
}

/// The task that owns the write connection.
pub(crate) struct Writer {
    pub(crate) target: Target,
    pub(crate) busy_timeout: std::time::Duration,
    pub(crate) clock: Clock,
    pub(crate) opened: OpenedFile,
    /// Absent after it broke; the next batch opens it again.
    pub(crate) conn: Option<AnyConnection>,
    /// Given up after the connection.
    pub(crate) _in_use: Arc<DatabaseInUse>,
}

impl Writer {
    /// Runs until the last handle is gone or somebody closes the database.
    pub(crate) async fn run(mut self, mut queue: mpsc::Receiver<Job>) {
        let mut jobs = Vec::with_capacity(BATCH_MAX);
        let mut closing = None;
        while closing.is_none() && queue.recv_many(&mut jobs, BATCH_MAX).await > 0 {
            let mut acts = Vec::with_capacity(jobs.len());
            for job in jobs.drain(..) {
                match job {
                    // Acts behind the closing are dropped, and their callers told that it is closed.
                    Job::Act(act) if closing.is_none() => acts.push(act),
                    Job::Act(_) => {}
                    Job::Close(done) => closing = closing.or(Some(done)),
                }
            }
            self.batch(acts).await;
        }
        queue.close();
        if let Some(conn) = self.conn.take()
            && let Err(error) = conn.close().await
        {
            tracing::warn!(%error, "closing {} failed", self.target);
        }
        if let Some(done) = closing {
            let _ = done.send(());
        }
    }

    async fn batch(&mut self, mut acts: Vec<Box<dyn Queued>>) {
        if acts.len() > 1 {
            match self.together(&mut acts).await {
                Together::Committed => return acts.into_iter().for_each(|act| act.answer(Ok(()))),
                Together::Failed(error) => {
                    return acts.into_iter().for_each(|act| act.answer(Err(Arc::clone(&error))));
                }
                // One act took the whole transaction with it, as a full disk does. The others shall not suffer.
                Together::Broken => {}
            }
        }
        for mut act in acts {
            let committed = self.alone(&mut *act).await;
            act.answer(committed.map_err(Arc::new));
        }
    }

    /// All acts in one transaction.
    async fn together(&mut self, acts: &mut [Box<dyn Queued>]) -> Together {
        let clock = self.clock.clone();
        let conn = match self.begin().await {
            Ok(conn) => conn,
            Err(error) => return Together::Failed(Arc::new(error)),
        };
        for act in acts {
            if apart(conn, &mut **act, &clock).await.is_err() {
                self.roll_back().await;
                return Together::Broken;
            }
        }
        match execute(conn, "COMMIT").await {
            Ok(()) => Together::Committed,
            Err(error) => {
                self.roll_back().await;
                Together::Failed(Arc::new(error))
            }
        }
    }

    /// One act in a transaction of its own. The error is that of beginning or committing, not the act's.
    async fn alone(&mut self, act: &mut dyn Queued) -> Result<(), sqlx::Error> {
        let clock = self.clock.clone();
        let conn = self.begin().await?;
        let kept = act.run(&mut Tx::new(conn, Dialect::Sqlite, clock.now())).await;
        let ended = if kept { execute(conn, "COMMIT").await } else { Ok(()) };
        if !kept || ended.is_err() {
            self.roll_back().await;
        }
        ended
    }

    /// Takes the write lock before the first read, so that no act fails half-way for want of it.
    async fn begin(&mut self) -> Result<&mut AnyConnection, sqlx::Error> {
        // Before a connection: SQLite would create an empty database in the place of one that was removed.
        self.opened.is_there()?;
        let conn = match self.conn.take() {
            Some(conn) => conn,
            None => sqlite::connect_writer(&self.target, self.busy_timeout).await?,
        };
        let conn = self.conn.insert(conn);
        execute(conn, "BEGIN IMMEDIATE").await?;
        Ok(conn)
    }

    /// After this no transaction is open: SQLite may have ended it by itself, or the connection is given up.
    async fn roll_back(&mut self) {
        let Some(conn) = &mut self.conn else { return };
        let Err(error) = execute(conn, "ROLLBACK").await else {
            return;
        };
        if !error.to_string().contains("no transaction is active") {
            tracing::warn!(%error, "giving up the write connection to {}", self.target);
            self.conn = None;
        }
    }
}

/// Runs one act so that its failure takes nothing with it. An error: the transaction is over, for all of them.
async fn apart(conn: &mut AnyConnection, act: &mut dyn Queued, clock: &Clock) -> Result<(), sqlx::Error> {
    let whole = act.shape() == Shape::Transaction;
    if whole {
        execute(conn, "SAVEPOINT act").await?;
    }
    let kept = act.run(&mut Tx::new(conn, Dialect::Sqlite, clock.now())).await;
    if whole && !kept {
        execute(conn, "ROLLBACK TO act").await?;
    }
    if whole {
        execute(conn, "RELEASE act").await?;
    }
    if !whole && !kept {
        // A statement that fails undoes itself; but a full disk may have ended the transaction as well. It has not
        // if a second one is refused.
        return match execute(conn, "BEGIN").await {
            Err(_) => Ok(()),
            Ok(()) => Err(sqlx::Error::BeginFailed),
        };
    }
    Ok(())
}

/// How a transaction of several acts ended.
enum Together {
    Committed,
    /// Nothing was kept.
    Failed(Arc<sqlx::Error>),
    /// Nothing was kept, and the acts can be tried one by one.
    Broken,
}

async fn execute(conn: &mut AnyConnection, statement: &'static str) -> Result<(), sqlx::Error> {
    sqlx::query(statement).execute(conn).await.map(|_| ())
}
