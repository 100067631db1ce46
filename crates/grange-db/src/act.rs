//! How an act runs: a plain function from a transaction and its input to an answer, the same on both engines.
//!
//! ```text
//! users().create(…) ── write ─┬─ SQLite: queued to the one writer, which commits many acts at once
//!                             └─ PostgreSQL: a transaction of its own, repeated when two met
//! users().list()    ── read ──── a connection of the pool (read-only on SQLite)
//! ```
//!
//! Acts are function pointers, not closures: their input is owned by the act, so that it can be run again.
//!
//! An act goes on to its end when its caller leaves (a request that is cut off, a time that is over). Dropped in the
//! midst, it could give its connection back with a transaction begun, and whatever came next on that connection would
//! be part of it: acknowledged, and never committed.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use grange_base::retry::jittered;
use grange_base::to_its_end;
use jiff::Timestamp;
use sqlx::any::{AnyArguments, AnyRow};
use sqlx::{Any, AnyConnection};
use tokio::sync::oneshot;

use crate::dialect::{Dialect, Sql};
use crate::error::{Error, Fail, met};
use crate::open::{Db, Engine};
use crate::row::micros;
use crate::target::Target;
use crate::writer::Job;

/// An act's body. What it wrote is kept if it gives `Ok`, and gone if it gives an error.
pub(crate) type Body<In, Out> = for<'a, 'c> fn(&'a mut Tx<'c>, &'a In) -> BoxFuture<'a, Result<Out, Fail>>;

pub(crate) type Query<'q> = sqlx::query::Query<'q, Any, AnyArguments>;

/// The inside of a transaction. It never leaves this crate.
pub(crate) struct Tx<'c> {
    conn: &'c mut AnyConnection,
    pub(crate) dialect: Dialect,
    /// The injected clock's time when the act began, in the precision that is stored.
    pub(crate) now: Timestamp,
}

impl<'c> Tx<'c> {
    pub(crate) fn new(conn: &'c mut AnyConnection, dialect: Dialect, now: Timestamp) -> Self {
        let now = Timestamp::from_microsecond(micros(now)).unwrap_or(now);
        Self { conn, dialect, now }
    }

    /// The statement in this engine's words.
    pub(crate) fn sql<'q>(&self, sql: &'static Sql) -> Query<'q> {
        sqlx::query(sql.on(self.dialect))
    }

    /// As [`Tx::sql`], for statements with `{now}`: binds the clock as `$1`.
    pub(crate) fn timed<'q>(&self, sql: &'static Sql) -> Query<'q> {
        self.sql(sql).bind(micros(self.now))
    }

    /// How many rows the statement touched.
    pub(crate) async fn run(&mut self, query: Query<'_>) -> Result<u64, Fail> {
        Ok(query.execute(&mut *self.conn).await?.rows_affected())
    }

    pub(crate) async fn rows(&mut self, query: Query<'_>) -> Result<Vec<AnyRow>, Fail> {
        Ok(query.fetch_all(&mut *self.conn).await?)
    }

    /// The first row. Reads to the end all the same: on PostgreSQL a statement outside a transaction has been
    /// committed only when its last answer was read.
    pub(crate) async fn row(&mut self, query: Query<'_>) -> Result<Option<AnyRow>, Fail> {
        Ok(self.rows(query).await?.into_iter().next())
    }
}

/// How often two transactions may meet before it is told: with eight writers on one row, three in a row is rare.
const CONFLICTS_MAX: u32 = 8;

impl Db {
    /// Runs an act that only reads.
    pub(crate) async fn read<In, Out>(
        &self,
        doing: &'static str,
        input: In,
        body: Body<In, Out>,
    ) -> Result<Out, Error>
    where
        In: Send + Sync + 'static,
        Out: Send + 'static,
    {
        let db = self.clone();
        self.to_its_end(doing, async move {
            let inner = &*db.0;
            let told = |fail: Fail| fail.tell(doing, &inner.target);
            let mut conn = inner.pool.acquire().await.map_err(|error| told(error.into()))?;
            let mut tx = Tx::new(&mut conn, inner.target.dialect(), inner.clocks.acts.now());
            body(&mut tx, &input).await.map_err(told)
        })
        .await
    }

    /// Waits for an act that goes on without being waited for.
    fn to_its_end<Out: Send + 'static>(
        &self,
        doing: &'static str,
        act: impl Future<Output = Result<Out, Error>> + Send + 'static,
    ) -> impl Future<Output = Result<Out, Error>> {
        let ended = to_its_end(act);
        let closed = move || Err(Error::Closed { doing, target: self.0.target.clone() });
        async move { ended.await.unwrap_or_else(closed) }
    }

    /// Runs an act in a transaction. After `Ok` it is on disk; after an error nothing of it is.
    pub(crate) async fn write<In, Out>(
        &self,
        doing: &'static str,
        input: In,
        body: Body<In, Out>,
    ) -> Result<Out, Error>
    where
        In: Send + Sync + 'static,
        Out: Send + 'static,
    {
        self.ask(doing, input, body, Shape::Transaction).await
    }

    /// As [`Db::write`], for an act of which one statement writes: that is whole or nothing by itself. Saves two of
    /// three round trips on PostgreSQL and the savepoint on SQLite.
    pub(crate) async fn write_one<In, Out>(
        &self,
        doing: &'static str,
        input: In,
        body: Body<In, Out>,
    ) -> Result<Out, Error>
    where
        In: Send + Sync + 'static,
        Out: Send + 'static,
    {
        self.ask(doing, input, body, Shape::Statement).await
    }

    async fn ask<In, Out>(
        &self,
        doing: &'static str,
        input: In,
        body: Body<In, Out>,
        shape: Shape,
    ) -> Result<Out, Error>
    where
        In: Send + Sync + 'static,
        Out: Send + 'static,
    {
        let Engine::Sqlite { queue, .. } = &self.0.engine else {
            let db = self.clone();
            let act = async move { db.repeated(doing, &input, body, shape).await };
            return self.to_its_end(doing, act).await;
        };
        let closed = || Error::Closed { doing, target: self.0.target.clone() };
        let (answer, answered) = oneshot::channel();
        let target = self.0.target.clone();
        let act = Act { doing, target, input, body, shape, outcome: None, answer };
        queue.send(Job::Act(Box::new(act))).await.map_err(|_| closed())?;
        answered.await.map_err(|_| closed())?
    }

    /// Runs the act on PostgreSQL, and again when two transactions met.
    async fn repeated<In, Out>(
        &self,
        doing: &'static str,
        input: &In,
        body: Body<In, Out>,
        shape: Shape,
    ) -> Result<Out, Error> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let outcome = match shape {
                Shape::Transaction => self.transaction(doing, input, body).await,
                Shape::Statement => self.statement(doing, input, body).await,
            };
            match outcome {
                Ok(out) => return Ok(out),
                Err(Fail::Sql(error)) if met(&error) && attempts < CONFLICTS_MAX => {
                    tracing::debug!(attempts, doing, "two transactions met, trying again");
                    tokio::time::sleep(jittered(Duration::from_millis(1 << attempts))).await;
                }
                Err(fail) => return Err(fail.tell(doing, &self.0.target)),
            }
        }
    }

    async fn transaction<In, Out>(
        &self,
        doing: &'static str,
        input: &In,
        body: Body<In, Out>,
    ) -> Result<Out, Fail> {
        let inner = &*self.0;
        let mut transaction = inner.pool.begin().await?;
        let mut tx = Tx::new(&mut transaction, inner.target.dialect(), inner.clocks.acts.now());
        // Dropping the transaction rolls it back.
        let out = body(&mut tx, input).await?;
        transaction.commit().await.map_err(|error| self.broken(doing, error.into()))?;
        Ok(out)
    }

    async fn statement<In, Out>(
        &self,
        doing: &'static str,
        input: &In,
        body: Body<In, Out>,
    ) -> Result<Out, Fail> {
        let inner = &*self.0;
        let mut conn = inner.pool.acquire().await?;
        let mut tx = Tx::new(&mut conn, inner.target.dialect(), inner.clocks.acts.now());
        body(&mut tx, input).await.map_err(|fail| self.broken(doing, fail))
    }

    /// A connection that breaks before the answer to a commit leaves open whether it was made.
    fn broken(&self, doing: &'static str, fail: Fail) -> Fail {
        match fail {
            Fail::Sql(error @ sqlx::Error::Io(_)) => {
                Error::Unsure { doing, target: self.0.target.clone(), source: error.into() }.into()
            }
            other => other,
        }
    }
}

/// Whether an act has to be held together, or is one statement.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Transaction,
    Statement,
}

/// One act in SQLite's queue: what to do, and whom to tell.
struct Act<In, Out> {
    doing: &'static str,
    target: Target,
    input: In,
    body: Body<In, Out>,
    shape: Shape,
    outcome: Option<Result<Out, Error>>,
    answer: oneshot::Sender<Result<Out, Error>>,
}

/// An act without its types, for the queue.
pub(crate) trait Queued: Send {
    fn shape(&self) -> Shape;

    /// Runs the body and keeps its outcome; may be called again if the transaction broke. False: it failed.
    fn run<'a>(&'a mut self, tx: &'a mut Tx<'_>) -> BoxFuture<'a, bool>;

    /// Tells the caller the outcome, or why it could not be committed.
    fn answer(self: Box<Self>, committed: Result<(), Arc<sqlx::Error>>);
}

impl<In: Send + Sync, Out: Send> Queued for Act<In, Out> {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn run<'a>(&'a mut self, tx: &'a mut Tx<'_>) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let outcome = (self.body)(tx, &self.input).await;
            let outcome = outcome.map_err(|fail| fail.tell(self.doing, &self.target));
            self.outcome.insert(outcome).is_ok()
        })
    }

    fn answer(self: Box<Self>, committed: Result<(), Arc<sqlx::Error>>) {
        let outcome = match (committed, self.outcome) {
            // An act that failed by itself keeps its own reason.
            (_, Some(Err(error))) => Err(error),
            (Ok(()), Some(Ok(out))) => Ok(out),
            (Err(error), _) => Err(Error::sql(self.doing, &self.target, error)),
            (Ok(()), None) => Err(Error::Closed { doing: self.doing, target: self.target }),
        };
        // A caller that went away does not want to know.
        let _ = self.answer.send(outcome);
    }
}
