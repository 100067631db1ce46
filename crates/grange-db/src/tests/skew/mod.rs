//! Acts that meet on PostgreSQL: each pair is held inside its transactions until both have read what they decide by,
//! and is then let go. Whatever they end with must be what some order of the two, one after the other, ends with.
//!
//! SQLite has one writer and no such pairs.

mod access;
mod channels;
mod checks;
mod collections;
mod copies;
mod domains;
mod jobs;
mod oai;
mod people;
mod plans;
mod queue;
mod shared_lists;
mod templates;

use std::future::Future;

use grange_testkit::until;
use sqlx::{AnyConnection, AssertSqlSafe, Connection, Row};
use tokio::task::JoinHandle;

use crate::conformance::Bed;

/// The key of the advisory lock that held acts wait for.
const GATE: i64 = 4711;

/// Where acts wait: a trigger that only the test's database has, on statements of one kind.
struct Barrier {
    /// Holds the lock that the trigger asks for.
    gate: AnyConnection,
    watch: AnyConnection,
}

impl Barrier {
    /// Holds every act before it writes its line of the change log: all else of it is done, and not committed.
    async fn before_the_log(bed: &Bed) -> Self {
        Self::at(bed, "BEFORE INSERT ON audit_log").await
    }

    /// Holds every act at statements of this kind, such as `AFTER INSERT ON work`.
    async fn at(bed: &Bed, statement: &str) -> Self {
        Self::with(bed, statement, "true").await
    }

    /// Holds the first act that comes to such a statement, and lets those after it pass.
    async fn for_the_first_at(bed: &Bed, statement: &str) -> Self {
        Self::with(bed, statement, "pg_try_advisory_xact_lock(4712)").await
    }

    async fn with(bed: &Bed, statement: &str, held: &str) -> Self {
        let url = &bed.server.as_ref().unwrap().url;
        let mut gate = AnyConnection::connect(url).await.unwrap();
        let function = format!(
            "CREATE FUNCTION held() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN IF {held} THEN PERFORM pg_advisory_xact_lock_shared({GATE}); END IF; RETURN NULL; END $$"
        );
        let trigger = format!("CREATE TRIGGER held {statement} FOR EACH STATEMENT EXECUTE FUNCTION held()");
        let lock = format!("SELECT pg_advisory_lock({GATE})");
        for sql in [function, trigger, lock] {
            sqlx::query(AssertSqlSafe(sql)).execute(&mut gate).await.unwrap();
        }
        Self { gate, watch: AnyConnection::connect(url).await.unwrap() }
    }

    /// Begins an act, and goes on when it waits as the `nth`, at the barrier or for an act that is held, or has ended.
    async fn hold<T: Send + 'static>(
        &mut self,
        nth: i64,
        act: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        let held = tokio::spawn(act);
        until("the act to wait or end", async || held.is_finished() || self.waiting().await == nth).await;
        held
    }

    /// How many acts wait for a lock.
    async fn waiting(&mut self) -> i64 {
        let waiting = "SELECT count(*) AS count FROM pg_stat_activity
                       WHERE datname = current_database() AND wait_event_type = 'Lock'";
        sqlx::query(waiting).fetch_one(&mut self.watch).await.unwrap().get("count")
    }

    /// Lets everybody go.
    async fn open(&mut self) {
        let unlock = format!("SELECT pg_advisory_unlock({GATE})");
        sqlx::query(AssertSqlSafe(unlock)).execute(&mut self.gate).await.unwrap();
    }
}

/// Runs a body with a clone of the handle, as an act that outlives its caller.
macro_rules! act {
    ($bed:expr, |$db:ident| $body:expr) => {{
        let $db = $bed.db.clone();
        async move { $body.await }
    }};
}
use act;
