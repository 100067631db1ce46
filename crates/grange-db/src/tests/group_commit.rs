//! SQLite's writer: acts share a commit, and nothing else.

use grange_model::Role;
use serde_json::json;

use crate::conformance::{Bed, anna, named};
use crate::{AuditFilter, NewUser, Offer};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_act_takes_nothing_with_it() {
    let bed = Bed::sqlite().await;
    // Four want each name: one gets it, three are refused, in whatever transactions they meet.
    let acts: Vec<_> = (0..200)
        .map(|n| {
            let db = bed.db.clone();
            tokio::spawn(async move {
                let name = named(&format!("user-{}", n / 4));
                db.users().create(NewUser { name, role: Role::Viewer, password_hash: None }, &anna()).await
            })
        })
        .collect();
    let (mut made, mut refused) = (0, 0);
    for act in acts {
        match act.await.unwrap() {
            Ok(_) => made += 1,
            Err(error) => {
                assert_eq!(error.code(), "exists");
                refused += 1;
            }
        }
    }
    assert_eq!((made, refused), (50, 150));
    assert_eq!(bed.db.users().count().await.unwrap(), 50);
    let log = AuditFilter { limit: 1000, ..AuditFilter::default() };
    assert_eq!(bed.db.audit().list(&log).await.unwrap().len(), 50);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_act_that_fails_half_way_is_undone() {
    let bed = Bed::sqlite().await;
    let acts: Vec<_> = (0..60)
        .map(|n| {
            let db = bed.db.clone();
            tokio::spawn(async move {
                // The second of the pair cannot be stored, so the first must not be either.
                let second = if n % 3 == 0 { "\0".to_owned() } else { format!("{n}-b") };
                let pair = [format!("{n}-a"), second];
                db.work().offer_many(pair.map(|key| Offer::new("job", key, json!(n))).into()).await.is_ok()
            })
        })
        .collect();
    let mut kept = 0;
    for act in acts {
        kept += u64::from(act.await.unwrap());
    }
    assert_eq!(kept, 40);
    assert_eq!(bed.db.work().counts("job").await.unwrap().ready, 80);
}

#[tokio::test]
async fn an_act_whose_caller_went_away_is_done_all_the_same() {
    let bed = Bed::sqlite().await;
    let db = bed.db.clone();
    let asked = tokio::spawn(async move { db.work().offer(Offer::new("job", "a", json!(1))).await });
    // On one thread: the task has queued its act when it first waits, and is then thrown away.
    tokio::task::yield_now().await;
    asked.abort();
    grange_testkit::until("the act to be done", async || {
        bed.db.work().counts("job").await.unwrap().ready == 1
    })
    .await;
}
