//! One clock for all nodes of a shared database: the server's. Each node measures how far its machine's clock is from it.

use std::time::{Duration, Instant};

use grange_base::{Clock, LeadingTime};
use jiff::{SignedDuration, Timestamp};
use sqlx::AnyConnection;

use crate::error::Error;
use crate::open::Db;
use crate::row::Columns;
use crate::target::Target;

/// Beyond what a round trip leaves uncertain: a clock that is this close is not corrected.
const SLACK: Duration = Duration::from_millis(50);

/// The same value as `{now}` in a statement.
const SERVER_TIME: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now";

/// The server's time at a moment of this machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measurement {
    at: Instant,
    server: Timestamp,
    /// The machine's own clock at that moment.
    machine: Timestamp,
    /// Half of the round trip.
    uncertainty: Duration,
}

/// How far the machine's clock is from the database's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockSkew {
    /// Positive when the machine's clock is ahead.
    pub ahead: SignedDuration,
    pub machine: Timestamp,
    pub database: Timestamp,
}

/// Which clock the acts go by.
#[derive(Debug)]
pub(crate) struct Clocks {
    /// The machine's, or a test's.
    pub(crate) machine: Clock,
    /// What every act goes by: the server's time on PostgreSQL, the machine's on SQLite.
    pub(crate) acts: Clock,
    leading: Option<LeadingTime>,
}

impl Clocks {
    pub(crate) fn of_machine(machine: Clock) -> Self {
        Self { acts: machine.clone(), machine, leading: None }
    }

    pub(crate) fn of_server(machine: Clock, measured: Measurement) -> Self {
        match machine.following(measured.server) {
            Some((acts, leading)) => Self { machine, acts, leading: Some(leading) },
            None => Self::of_machine(machine),
        }
    }
}

impl Measurement {
    fn skew(self) -> ClockSkew {
        let ahead = self.machine.duration_since(self.server);
        // Less than the measurement can tell apart is no difference.
        let ahead = if ahead.unsigned_abs() <= self.uncertainty { SignedDuration::ZERO } else { ahead };
        ClockSkew { ahead, machine: self.machine, database: self.server }
    }
}

/// Asks the server for its time.
pub(crate) async fn measure(
    conn: &mut AnyConnection,
    target: &Target,
    machine: &Clock,
) -> Result<Measurement, Error> {
    let doing = "compare clocks";
    let asked = Instant::now();
    let row =
        sqlx::query(SERVER_TIME).fetch_one(conn).await.map_err(|error| Error::sql(doing, target, error))?;
    let round_trip = asked.elapsed();
    let answered = machine.now();
    let half = round_trip / 2;
    Ok(Measurement {
        at: asked + half,
        server: row.time("now").map_err(|fail| fail.tell(doing, target))?,
        machine: answered.checked_sub(half).unwrap_or(answered),
        uncertainty: half,
    })
}

impl Db {
    /// The clock that plans, leases and records go by: the database's on PostgreSQL, the machine's on SQLite.
    pub fn clock(&self) -> Clock {
        self.0.clocks.acts.clone()
    }

    /// Measures how far the machine's clock is from the database's, and corrects [`Db::clock`]. `None` on SQLite, which
    /// has no clock of its own.
    pub async fn compare_clocks(&self) -> Result<Option<ClockSkew>, Error> {
        let inner = &*self.0;
        let Some(leading) = &inner.clocks.leading else { return Ok(None) };
        let failed = |error| Error::sql("compare clocks", &inner.target, error);
        let mut conn = inner.pool.acquire().await.map_err(failed)?;
        let measured = measure(&mut conn, &inner.target, &inner.clocks.machine).await?;
        leading.measured(measured.at, measured.server, measured.uncertainty + SLACK);
        Ok(Some(measured.skew()))
    }
}
