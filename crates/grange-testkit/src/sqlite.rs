//! Reaching into a SQLite file behind Grange's back, to make it what it should not be.

use std::path::Path;

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Connection, Executor};

/// Runs one statement on the file.
pub fn execute(path: &Path, sql: &'static str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let options = SqliteConnectOptions::new().filename(path);
        let mut connection: SqliteConnection = options.connect().await.expect("the file opens");
        connection.execute(sql).await.expect("the statement runs");
        connection.close().await.expect("the file closes");
    });
}
