//! A file that is entered while a replica is declared has a row for it: both acts held at a barrier on PostgreSQL.

use grange_model::{Checksums, Md5, ReplicaKind};
use grange_testkit::until;
use sqlx::postgres::PgConnection;
use sqlx::{Connection, Executor};

use crate::conformance::{Bed, LONG};
use crate::{Begun, Declared, IfStored, NewFile};

fn replicas(names: &[&str]) -> Vec<(grange_model::ReplicaName, ReplicaKind)> {
    names.iter().map(|name| (name.parse().unwrap(), ReplicaKind::Bitarchive)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_entered_while_a_replica_is_declared_has_a_row_for_it() {
    let Some(bed) = Bed::postgres().await else { return };
    bed.db.replicas().declare(replicas(&["one", "two"])).await.unwrap();
    let url = &bed.server.as_ref().unwrap().url;
    // Holds back the act that enters the file at its last statement: the claim on its name is another's.
    let mut barrier = PgConnection::connect(url).await.unwrap();
    barrier.execute("BEGIN").await.unwrap();
    let claim =
        "INSERT INTO work (id, kind, key, payload, priority, due_at, attempts_max, created_at, updated_at)
                 VALUES ('barrier', 'archive.store', 'a', '{}', 0, 0, 0, 0, 0)";
    barrier.execute(claim).await.unwrap();
    let mut watcher = PgConnection::connect(url).await.unwrap();
    let waiting = "SELECT count(*) FROM pg_stat_activity
                   WHERE datname = current_database() AND wait_event_type = 'Lock'";

    let checksums = Checksums { md5: Some(Md5([1; 16])), ..Checksums::default() };
    let new = NewFile { name: "a".parse().unwrap(), size: 1, checksums, source: None };
    let db = bed.db.clone();
    let entering = tokio::spawn(async move { db.files().begin(new, "me", LONG, IfStored::Verify).await });
    until("the file to be entered and not committed", async || {
        sqlx::query_scalar::<_, i64>(waiting).fetch_one(&mut watcher).await.unwrap() == 1
    })
    .await;
    let db = bed.again().await;
    let declaring =
        tokio::spawn(async move { db.replicas().declare(replicas(&["one", "two", "three"])).await });
    until("the replica to be declared, or to wait for the file", async || {
        declaring.is_finished()
            || sqlx::query_scalar::<_, i64>(waiting).fetch_one(&mut watcher).await.unwrap() == 2
    })
    .await;
    barrier.execute("ROLLBACK").await.unwrap();
    assert!(matches!(entering.await.unwrap().unwrap(), Begun::Claimed(..)));
    assert!(matches!(declaring.await.unwrap().unwrap(), Declared::Replicas(rows) if rows.len() == 3));
    let status = bed.db.files().get(&"a".parse().unwrap()).await.unwrap().unwrap();
    let names: Vec<_> = status.holdings.iter().map(|holding| holding.replica.to_string()).collect();
    assert_eq!(names, ["one", "two", "three"]);
}
