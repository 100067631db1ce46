//! The handle, and how it is opened.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use grange_base::{Clock, DatabaseInUse};
use serde::Serialize;
use sqlx::{AnyPool, Connection};
use tokio::sync::{mpsc, oneshot};

use crate::clocks::Clocks;
use crate::error::Error;
use crate::migrate::{self, Found, STEPS, Step};
use crate::opened_file::OpenedFile;
use crate::settings::Settings;
use crate::target::Target;
use crate::writer::{Job, QUEUE_MAX, Writer};
use crate::{postgres, sqlite};

/// The facts. Cheap to clone; all clones are one database.
#[derive(Clone)]
pub struct Db(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) target: Target,
    pub(crate) clocks: Clocks,
    /// For everything on PostgreSQL, for reading on SQLite.
    pub(crate) pool: AnyPool,
    pub(crate) engine: Engine,
}

pub(crate) enum Engine {
    Sqlite {
        queue: mpsc::Sender<Job>,
        path: PathBuf,
        opened: OpenedFile,
        busy_timeout: Duration,
        /// Nothing else in this process opens the file meanwhile.
        _in_use: Arc<DatabaseInUse>,
    },
    Postgres,
}

/// How far a database is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Status {
    /// `sqlite` or `postgres`.
    pub engine: String,
    /// Where it is, without secrets.
    pub place: String,
    /// The newest step it has; 0 for an empty one.
    pub step: i64,
    /// The newest step this program knows.
    pub step_known: i64,
    /// The names of the steps still to be taken.
    pub pending: Vec<String>,
}

impl Db {
    /// Opens the database of the settings. SQLite is created and migrated as needed, after a backup copy of an older
    /// one; PostgreSQL must have been migrated with [`Db::migrate`].
    pub async fn open(settings: &Settings, base_dir: &Path, clock: Clock) -> Result<Self, Error> {
        Self::open_with(settings, base_dir, clock, STEPS).await
    }

    pub(crate) async fn open_with(
        settings: &Settings,
        base_dir: &Path,
        clock: Clock,
        steps: &[Step],
    ) -> Result<Self, Error> {
        sqlx::any::install_default_drivers();
        let target = Target::read(settings, base_dir)?;
        let (pool, engine, clocks) = match &target {
            Target::Sqlite { path } => {
                let in_use = Arc::new(DatabaseInUse::register(path));
                let (conn, _) = sqlite::open(&target, path, settings, &clock, steps).await?;
                let opened = OpenedFile::at(path)?;
                let pool = sqlite::readers(&target, settings)?;
                let (queue, jobs) = mpsc::channel(QUEUE_MAX);
                let busy_timeout = settings.busy_timeout.0;
                let writer = Writer {
                    target: target.clone(),
                    busy_timeout,
                    clock: clock.clone(),
                    opened: opened.clone(),
                    conn: Some(conn),
                    _in_use: Arc::clone(&in_use),
                };
                tokio::spawn(writer.run(jobs));
                let path = path.to_path_buf();
                let engine = Engine::Sqlite { queue, path, opened, busy_timeout, _in_use: in_use };
                (pool, engine, Clocks::of_machine(clock))
            }
            Target::Postgres { .. } => {
                let (pool, measured) = postgres::open(&target, settings, &clock, steps).await?;
                (pool, Engine::Postgres, Clocks::of_server(clock, measured))
            }
        };
        Ok(Self(Arc::new(Inner { target, clocks, pool, engine })))
    }

    /// Takes the missing steps and gives their names, none if the database is up to date.
    pub async fn migrate(settings: &Settings, base_dir: &Path, clock: &Clock) -> Result<Vec<String>, Error> {
        Self::migrate_with(settings, base_dir, clock, STEPS).await
    }

    pub(crate) async fn migrate_with(
        settings: &Settings,
        base_dir: &Path,
        clock: &Clock,
        steps: &[Step],
    ) -> Result<Vec<String>, Error> {
        sqlx::any::install_default_drivers();
        let target = Target::read(settings, base_dir)?;
        let taken = match &target {
            Target::Sqlite { path } => {
                let (conn, taken) = sqlite::open(&target, path, settings, clock, steps).await?;
                let _ = conn.close().await;
                taken
            }
            Target::Postgres { .. } => postgres::migrate(&target, settings, clock.now(), steps).await?,
        };
        Ok(taken.into_iter().map(str::to_owned).collect())
    }

    /// Looks how far the database is, and changes nothing.
    pub async fn status(settings: &Settings, base_dir: &Path) -> Result<Status, Error> {
        sqlx::any::install_default_drivers();
        let target = Target::read(settings, base_dir)?;
        let found = match &target {
            Target::Sqlite { path } => match sqlite::look(path)? {
                sqlite::Seen::Nothing => Found::Empty,
                sqlite::Seen::File(_) => {
                    let mut conn = sqlite::connect_reader(&target, settings.busy_timeout.0).await?;
                    let found = migrate::look(&mut conn, &target, STEPS).await?;
                    let _ = conn.close().await;
                    found
                }
            },
            Target::Postgres { .. } => {
                let mut conn = postgres::connect(&target, settings.connect_timeout.0).await?;
                let found = migrate::look(&mut conn, &target, STEPS).await?;
                let _ = conn.close().await;
                found
            }
        };
        let step = match found {
            Found::Empty => 0,
            Found::At(number) => number,
        };
        let pending = STEPS.iter().filter(|known| known.number > step).map(|known| known.name.to_owned());
        Ok(Status {
            engine: target.dialect().name().to_owned(),
            place: target.to_string(),
            step,
            step_known: STEPS.last().map_or(0, |known| known.number),
            pending: pending.collect(),
        })
    }

    /// Which database this is, for people; holds no secret.
    pub fn place(&self) -> String {
        self.0.target.to_string()
    }

    /// Whether several machines can share it.
    pub fn is_shared(&self) -> bool {
        matches!(self.0.engine, Engine::Postgres)
    }

    /// Whether the database answers now, and is still at its path: for `/readyz`.
    pub async fn ping(&self) -> Result<(), Error> {
        self.is_there("ask whether it answers")?;
        self.read("ask whether it answers", (), |tx, ()| {
            Box::pin(async move { tx.run(sqlx::query("SELECT 1")).await.map(|_| ()) })
        })
        .await
    }

    /// An error when the SQLite file was removed or replaced since it was opened. Writing acts ask by themselves.
    pub(crate) fn is_there(&self, doing: &'static str) -> Result<(), Error> {
        match &self.0.engine {
            Engine::Sqlite { opened, .. } => opened.is_there().map_err(|lost| lost.doing(doing)),
            Engine::Postgres => Ok(()),
        }
    }

    /// Finishes what was asked for before, then closes the connections. Later acts fail with [`Error::Closed`].
    pub async fn close(&self) {
        if let Engine::Sqlite { queue, .. } = &self.0.engine {
            let (done, closed) = oneshot::channel();
            if queue.send(Job::Close(done)).await.is_ok() {
                let _ = closed.await;
            }
        }
        self.0.pool.close().await;
    }
}

impl std::fmt::Debug for Db {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Db({})", self.0.target)
    }
}
