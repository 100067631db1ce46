//! Opening PostgreSQL: one connection first, for a clear answer, then the pool.

use std::time::Duration;

use grange_base::{Clock, Period};
use jiff::Timestamp;
use sqlx::any::{AnyConnectOptions, AnyPoolOptions};
use sqlx::{AnyConnection, AnyPool, ConnectOptions, Connection};

use crate::clocks::{self, Measurement};
use crate::error::Error;
use crate::migrate::{self, Found, Step};
use crate::settings::Settings;
use crate::target::Target;

/// Two programs must not migrate at once: the key of the advisory lock they meet at ("grange" in ASCII).
const MIGRATING: i64 = 0x6772_616e_6765;

/// For a kind of work that the statistics do not know yet the planner expects a handful of rows, and then collects and
/// sorts all hundred thousand of them for every claim. Without bitmaps it walks the index in the order of claiming,
/// which is right for few rows and for many.
const NO_BITMAPS: &str = "SET enable_bitmapscan = off";

/// Connections that rested longer are asked whether they still live before they are used.
const PING_AFTER: Duration = Duration::from_secs(1);

/// One connection, with an answer in time: the pool would go on trying a server that refuses.
pub(crate) async fn connect(target: &Target, timeout: Duration) -> Result<AnyConnection, Error> {
    let sql = |error| Error::sql("connect", target, error);
    match tokio::time::timeout(timeout, AnyConnection::connect_with(&options(target)?)).await {
        Ok(connected) => connected.map_err(sql),
        Err(_) => Err(sql(sqlx::Error::Io(std::io::Error::new(
            std::io::ErrorKind::TimedOut,
            format!("no answer within {}", Period(timeout)),
        )))),
    }
}

/// Connects, refuses a database that is not at the newest step, and asks it for the time.
pub(crate) async fn open(
    target: &Target,
    settings: &Settings,
    machine: &Clock,
    steps: &[Step],
) -> Result<(AnyPool, Measurement), Error> {
    let mut conn = connect(target, settings.connect_timeout.0).await?;
    let found = match migrate::look(&mut conn, target, steps).await? {
        Found::Empty => 0,
        Found::At(number) => number,
    };
    let known = steps.last().map_or(0, |step| step.number);
    if found < known {
        return Err(Error::Unmigrated { target: target.clone(), found, known });
    }
    let measured = clocks::measure(&mut conn, target, machine).await?;
    let _ = conn.close().await;
    let pool = AnyPoolOptions::new()
        .max_connections(settings.connections_max.max(1))
        .acquire_timeout(settings.connect_timeout.0)
        .after_connect(|conn, _| {
            Box::pin(async move { sqlx::query(NO_BITMAPS).execute(conn).await.map(|_| ()) })
        })
        // A ping per act would cost a round trip; one after a pause finds the connections a restarted server cut.
        .test_before_acquire(false)
        .before_acquire(|conn, meta| {
            Box::pin(async move { Ok(meta.idle_for < PING_AFTER || conn.ping().await.is_ok()) })
        })
        .connect_lazy_with(options(target)?);
    Ok((pool, measured))
}

/// Takes the missing steps.
pub(crate) async fn migrate(
    target: &Target,
    settings: &Settings,
    now: Timestamp,
    steps: &[Step],
) -> Result<Vec<&'static str>, Error> {
    let mut conn = connect(target, settings.connect_timeout.0).await?;
    // Released with the connection, however it ends.
    sqlx::query("SELECT pg_advisory_lock($1)")
        .bind(MIGRATING)
        .execute(&mut conn)
        .await
        .map_err(|error| Error::sql("wait for other migrations", target, error))?;
    let found = migrate::look(&mut conn, target, steps).await?;
    let taken = migrate::apply(&mut conn, target, steps, found, now).await?;
    let _ = conn.close().await;
    Ok(taken)
}

fn options(target: &Target) -> Result<AnyConnectOptions, Error> {
    let sql = |error| Error::sql("connect", target, error);
    Ok(AnyConnectOptions::from_url(&target.driver_url("")).map_err(sql)?.disable_statement_logging())
}
