//! What every store method promises, checked on both engines.
//!
//! Each file holds plain functions over a [`Bed`]; the list at the end of it runs them on SQLite in a temporary
//! folder and on a PostgreSQL database of their own.

pub(crate) mod archive;
mod audit;
mod claims;
mod copy_rows;
mod domains;
mod editions;
mod findings;
mod fixity_audits;
pub(crate) mod harvest_bed;
mod indexing;
mod jobs;
mod leaving;
mod nodes;
pub(crate) mod oai;
mod oai_schedules;
mod places;
mod planning;
mod records;
mod recovery;
mod repairs;
mod sessions;
mod tokens;
mod users;
mod withdrawals;
mod work;

use std::time::Duration;

use grange_base::{Clock, Period, TestClock};
use grange_model::{Actor, Role, User, UserName};
use grange_testkit::{TestDatabase, until};
use jiff::Timestamp;
use tempfile::TempDir;

use crate::{Db, NewUser, Settings};

/// An open database with nothing in it, and a hand on its clock.
pub(crate) struct Bed {
    pub(crate) db: Db,
    pub(crate) settings: Settings,
    pub(crate) dir: TempDir,
    pub(crate) clock: Clock,
    pub(crate) hand: TestClock,
    pub(crate) server: Option<TestDatabase>,
}

impl Bed {
    pub(crate) async fn sqlite() -> Self {
        Self::new(Settings::default(), None).await
    }

    /// `None` when there is no server; the testkit has said so.
    pub(crate) async fn postgres() -> Option<Self> {
        let server = TestDatabase::create().await?;
        let settings = Settings { url: server.url.clone(), ..Settings::default() };
        Some(Self::new(settings, Some(server)).await)
    }

    async fn new(settings: Settings, server: Option<TestDatabase>) -> Self {
        // Two hundred claimers on a loaded machine wait their turn for a connection.
        let settings = Settings { connect_timeout: Period::from_secs(60), ..settings };
        let dir = TempDir::new().unwrap();
        let (clock, hand) = Clock::test("2026-01-01T00:00:00.123456789Z".parse().unwrap());
        Db::migrate(&settings, dir.path(), &clock).await.unwrap();
        let db = Db::open(&settings, dir.path(), clock.clone()).await.unwrap();
        Self { db, settings, dir, clock, hand, server }
    }

    /// Another handle to the same database, as another process would have.
    pub(crate) async fn again(&self) -> Db {
        Db::open(&self.settings, self.dir.path(), self.clock.clone()).await.unwrap()
    }

    /// Now, by the clock that leases are judged by.
    pub(crate) fn lease_now(&self) -> Timestamp {
        if self.server.is_some() { Timestamp::now() } else { self.clock.now() }
    }

    /// Lets that clock pass `time`: moved by hand on SQLite, waited for on PostgreSQL.
    pub(crate) async fn pass(&self, time: Timestamp) {
        if self.server.is_some() {
            until("the lease to end", async || Timestamp::now() > time).await;
        } else {
            self.hand.set(time.max(self.clock.now()) + Duration::from_millis(1));
        }
    }

    pub(crate) async fn user(&self, name: &str, role: Role) -> User {
        let new = NewUser { name: named(name), role, password_hash: Some(format!("$argon2id$of-{name}")) };
        self.db.users().create(new, &anna()).await.unwrap()
    }
}

pub(crate) fn named(name: &str) -> UserName {
    name.parse().unwrap()
}

/// Whoever acts in the tests.
pub(crate) fn anna() -> Actor {
    Actor::new("anna", "cli")
}

/// Long enough that no test outlives it.
pub(crate) const LONG: Duration = Duration::from_hours(1);
/// Short enough to wait for.
pub(crate) const SHORT: Duration = Duration::from_millis(40);

/// Runs the named functions of this file on both engines.
macro_rules! on_both_engines {
    ($($name:ident,)+) => {
        mod on_sqlite {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() {
                    super::$name(&$crate::conformance::Bed::sqlite().await).await;
                }
            )+
        }

        mod on_postgres {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() {
                    if let Some(bed) = $crate::conformance::Bed::postgres().await {
                        super::$name(&bed).await;
                    }
                }
            )+
        }
    };
}
pub(crate) use on_both_engines;
