//! PostgreSQL that cannot be reached, says no, or goes away.

use std::net::{Ipv4Addr, TcpListener};

use grange_base::{Clock, Period, Retry};
use grange_testkit::{ReservedPort, TestDatabase, until};
use serde_json::json;
use tempfile::TempDir;

use crate::conformance::Bed;
use crate::{Db, Error, Offer, Settings};

/// A timeout that a test waits for.
const SHORT: Period = Period::from_millis(500);
/// A timeout for servers that answer, on a busy machine.
const PATIENT: Period = Period::from_secs(60);

async fn refused(url: &str, connect_timeout: Period) -> Error {
    let settings = Settings { url: url.to_owned(), connect_timeout, ..Settings::default() };
    let dir = TempDir::new().unwrap();
    Db::open(&settings, dir.path(), Clock::system()).await.expect_err("must be refused")
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told_without_the_password() {
    let reserved = ReservedPort::new();
    let port = reserved.number();
    let error = refused(&format!("postgres://grange:hunter2@127.0.0.1:{port}/grange"), SHORT).await;
    assert_eq!((error.code(), error.retry()), ("db-unreachable", Retry::Soon));
    let text = error.to_string();
    assert!(
        text.starts_with(&format!("cannot reach PostgreSQL at postgres://grange@127.0.0.1:{port}/grange: "))
    );
    assert!(!format!("{text} {error:?}").contains("hunter2"));
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up() {
    // Accepts the connection and says nothing.
    let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = silent.local_addr().unwrap().port();
    let error = refused(&format!("postgres://grange@127.0.0.1:{port}/grange"), SHORT).await;
    assert_eq!(error.code(), "db-unreachable");
}

#[tokio::test]
async fn a_refused_login_and_a_missing_database_are_told_apart() {
    let Some(server) = TestDatabase::create().await else {
        return;
    };
    let stranger = server.url.replace("//grange@", "//stranger@");
    let error = refused(&stranger, PATIENT).await;
    assert_eq!((error.code(), error.retry()), ("db-denied", Retry::No));
    let error = refused(&format!("{}_not", server.url), PATIENT).await;
    assert_eq!(error.code(), "db-no-database");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cut_connection_is_an_error_that_says_soon_and_heals() {
    let Some(bed) = Bed::postgres().await else { return };
    let offer = |n: i32| Offer::new("job", n.to_string(), json!(n));
    bed.db.work().offer(offer(0)).await.unwrap();
    bed.server.as_ref().unwrap().cut_connections().await;
    until("the database to answer again", async || match bed.db.work().offer(offer(1)).await {
        Ok(_) => true,
        Err(error) => {
            assert_eq!(error.retry(), Retry::Soon, "{error}");
            false
        }
    })
    .await;
}

#[tokio::test]
async fn backups_are_the_servers_own_affair() {
    let Some(bed) = Bed::postgres().await else { return };
    let error = bed.db.backup_to(&bed.dir.path().join("copy.db")).await.unwrap_err();
    assert_eq!(error.code(), "backup-elsewhere");
    assert!(error.to_string().ends_with("use pg_dump"), "{error}");
    assert!(bed.db.is_shared() && bed.db.file().is_none());
}
