//! The lock between acts that rely on the archive's frame and acts that change it.
//!
//! The frame is which replicas there are and which checksum is recorded for a file. PostgreSQL shows every statement what
//! was committed before it began and nothing else, so without a lock two acts can miss each other: a file entered while
//! a replica is declared would get no row for it, and a copy compared with the old record would be called complete under
//! the new one. Acts that rely on the frame hold the lock together; the rare acts that change it hold it alone. It is
//! released with the transaction. SQLite has one writer and needs none.

use crate::act::Tx;
use crate::dialect::Dialect;
use crate::error::Fail;

/// The key of PostgreSQL's advisory lock ("frame" in ASCII).
const KEY: i64 = 0x66_72_61_6d_65;

/// Nobody changes the replicas or a record until this act ends.
pub(crate) async fn share(tx: &mut Tx<'_>) -> Result<(), Fail> {
    take(tx, "SELECT 1 WHERE pg_advisory_xact_lock_shared($1) IS NULL").await
}

/// Nobody relies on the replicas or a record until this act ends.
pub(crate) async fn alone(tx: &mut Tx<'_>) -> Result<(), Fail> {
    take(tx, "SELECT 1 WHERE pg_advisory_xact_lock($1) IS NULL").await
}

async fn take(tx: &mut Tx<'_>, sql: &'static str) -> Result<(), Fail> {
    match tx.dialect {
        Dialect::Sqlite => Ok(()),
        Dialect::Postgres => tx.run(sqlx::query(sql).bind(KEY)).await.map(|_| ()),
    }
}
