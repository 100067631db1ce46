//! A full disk, played by SQLite's own limit on the size of the file.

use grange_base::Retry;
use serde_json::json;

use crate::conformance::{Bed, anna, named};
use crate::{AuditFilter, Db, NewUser, Offer};

/// Lets the file grow by `pages` and no more; `None` lifts the limit.
async fn limit(db: &Db, pages: Option<i64>) {
    db.write("limit the file", pages, |tx, pages| {
        Box::pin(async move {
            let size = crate::row::Columns::int(
                &tx.row(sqlx::query("PRAGMA page_count")).await?.unwrap(),
                "page_count",
            )?;
            let most = pages.map_or(1 << 30, |pages| size + pages);
            tx.run(sqlx::query(sqlx::AssertSqlSafe(format!("PRAGMA max_page_count = {most}")))).await
        })
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_is_told_and_leaves_nothing_half_written() {
    let bed = Bed::sqlite().await;
    limit(&bed.db, Some(0)).await;
    // Too long for the pages there are: the user's row may still fit, its line in the log does not.
    let long = grange_model::Actor::new("x".repeat(200_000), "cli");
    let new = NewUser { name: named("berta"), role: grange_model::Role::Viewer, password_hash: None };
    let error = bed.db.users().create(new.clone(), &long).await.unwrap_err();
    assert_eq!((error.code(), error.retry()), ("db-disk-full", Retry::Soon));
    assert!(error.to_string().contains("is full; free some space there and try again"), "{error}");
    assert_eq!(bed.db.users().count().await.unwrap(), 0);
    assert_eq!(bed.db.audit().list(&AuditFilter::default()).await.unwrap(), []);
    // With space again, the same handle goes on.
    limit(&bed.db, None).await;
    bed.db.users().create(new, &anna()).await.unwrap();
    assert_eq!(bed.again().await.users().count().await.unwrap(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_act_too_large_does_not_spoil_those_beside_it() {
    let bed = Bed::sqlite().await;
    limit(&bed.db, Some(60)).await;
    let acts: Vec<_> = (0..40)
        .map(|n| {
            let db = bed.db.clone();
            tokio::spawn(async move {
                let body = if n % 8 == 3 { "x".repeat(2_000_000) } else { String::new() };
                let offered = db.work().offer(Offer::new("job", n.to_string(), json!(body))).await;
                (n, offered)
            })
        })
        .collect();
    for act in acts {
        let (n, offered) = act.await.unwrap();
        match offered {
            Ok(offered) => assert!(offered.new && n % 8 != 3),
            Err(error) => assert_eq!((error.code(), n % 8), ("db-disk-full", 3)),
        }
    }
    assert_eq!(bed.db.work().counts("job").await.unwrap().ready, 35);
}
