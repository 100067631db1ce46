//! A PostgreSQL database of one's own per test, on the server that `scripts/with-services` started.

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection, Executor};

use crate::skipped;

/// An empty database; dropped with everything in it when the test ends.
#[derive(Debug)]
pub struct TestDatabase {
    server: String,
    name: String,
    /// Where to connect: `postgres://…/grange_test_…`.
    pub url: String,
}

impl TestDatabase {
    /// A fresh, empty database, or `None` (said loudly) when no server was given.
    pub async fn create() -> Option<Self> {
        let Ok(server) = std::env::var("GRANGE_TEST_POSTGRES_URL") else {
            skipped("PostgreSQL");
            return None;
        };
        let name = format!("grange_test_{}", uuid::Uuid::new_v4().simple());
        let mut connection = PgConnection::connect(&server).await.expect("the test PostgreSQL must answer");
        connection
            .execute(AssertSqlSafe(format!("CREATE DATABASE {name}")))
            .await
            .expect("a test database can be created");
        let (base, _) = server.rsplit_once('/').expect("the URL names a database");
        let url = format!("{base}/{name}");
        Some(Self { server, name, url })
    }

    /// Ends every connection to this database, as a restarting server would.
    pub async fn cut_connections(&self) {
        let mut connection =
            PgConnection::connect(&self.server).await.expect("the test PostgreSQL must answer");
        sqlx::query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1")
            .bind(&self.name)
            .execute(&mut connection)
            .await
            .expect("connections can be ended");
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let (server, name) = (self.server.clone(), self.name.clone());
        // A test's runtime is ending here, so the clean-up brings its own.
        let cleaner = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async {
                let mut connection = PgConnection::connect(&server).await?;
                let drop = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
                connection.execute(AssertSqlSafe(drop)).await?;
                Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
            })
        });
        // Whatever is left over goes with the server's temporary folder.
        let _ = cleaner.join();
    }
}
