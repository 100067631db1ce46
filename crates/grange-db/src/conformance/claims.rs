//! What the work promises when many want it, and when some of them die.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::json;
use tokio::sync::{Barrier, Mutex};

use super::{Bed, LONG, SHORT, on_both_engines};
use crate::{Counts, Offer, State};

on_both_engines! {
    two_hundred_claimers_never_get_the_same_row,
    a_dead_claimers_row_comes_back_after_its_lease,
    a_late_claimer_cannot_undo_the_next_ones_work,
    a_renewed_lease_holds_and_an_ended_one_that_nobody_took_still_counts,
    dead_leases_are_ended_and_counted,
    the_last_attempt_of_a_dead_claimer_is_a_failure,
    offers_and_claims_from_many_handles_lose_nothing,
}

async fn offer(bed: &Bed, count: usize) {
    let offers = (0..count).map(|n| Offer::new("job", format!("{n}"), json!(n))).collect();
    bed.db.work().offer_many(offers).await.unwrap();
}

async fn two_hundred_claimers_never_get_the_same_row(bed: &Bed) {
    const CLAIMERS: usize = 200;
    const ROWS: usize = 600;
    offer(bed, ROWS).await;
    let start = Arc::new(Barrier::new(CLAIMERS));
    let claimed: Arc<Mutex<HashMap<String, usize>>> = Arc::default();
    let claimers = (0..CLAIMERS).map(|n| {
        let (db, start, claimed) = (bed.db.clone(), Arc::clone(&start), Arc::clone(&claimed));
        tokio::spawn(async move {
            start.wait().await;
            // Every other one takes several at a time, and every third leaves its claims open.
            let many = if n % 2 == 0 { 1 } else { 3 };
            loop {
                let claims = db.work().claim_many("job", &format!("c{n}"), LONG, many).await.unwrap();
                if claims.is_empty() {
                    return;
                }
                for claim in claims {
                    *claimed.lock().await.entry(claim.key.clone()).or_default() += 1;
                    if n % 3 != 0 {
                        db.work().finish(&claim).await.unwrap();
                    }
                }
            }
        })
    });
    for claimer in claimers.collect::<Vec<_>>() {
        claimer.await.unwrap();
    }
    let claimed = claimed.lock().await;
    assert_eq!(claimed.len(), ROWS, "every row was claimed");
    assert!(claimed.values().all(|times| *times == 1), "none was claimed twice");
    let counts = bed.db.work().counts("job").await.unwrap();
    assert_eq!((counts.ready, counts.claimed + counts.done), (0, ROWS as u64));
}

async fn a_dead_claimers_row_comes_back_after_its_lease(bed: &Bed) {
    offer(bed, 1).await;
    let work = bed.db.work();
    let dead = work.claim("job", "dead", SHORT).await.unwrap().unwrap();
    bed.pass(dead.lease_until).await;
    let next = work.claim("job", "next", LONG).await.unwrap().unwrap();
    assert_eq!((next.id, next.attempt), (dead.id, 2));
    assert!(next.token > dead.token);
    assert_eq!(next.last_error.as_deref(), Some("the lease of dead ran out"));
    assert_eq!(work.claim("job", "third", LONG).await.unwrap(), None);
}

async fn a_late_claimer_cannot_undo_the_next_ones_work(bed: &Bed) {
    offer(bed, 1).await;
    let work = bed.db.work();
    let late = work.claim("job", "late", SHORT).await.unwrap().unwrap();
    bed.pass(late.lease_until).await;
    let next = work.claim("job", "next", LONG).await.unwrap().unwrap();
    for error in [
        work.renew(&late, LONG).await.unwrap_err(),
        work.finish(&late).await.unwrap_err(),
        work.fail(&late, "no", LONG).await.unwrap_err(),
        work.release(&late).await.unwrap_err(),
    ] {
        assert_eq!(error.code(), "lease-lost");
    }
    let item = work.get(next.id).await.unwrap().unwrap();
    assert_eq!((item.lease_owner.as_deref(), item.lease_until), (Some("next"), Some(next.lease_until)));
    work.finish(&next).await.unwrap();
}

async fn a_renewed_lease_holds_and_an_ended_one_that_nobody_took_still_counts(bed: &Bed) {
    offer(bed, 2).await;
    let work = bed.db.work();
    let renewed = work.claim("job", "a", SHORT).await.unwrap().unwrap();
    let until = work.renew(&renewed, LONG).await.unwrap();
    assert!(until > renewed.lease_until);
    let ended = work.claim("job", "b", SHORT).await.unwrap().unwrap();
    bed.pass(ended.lease_until).await;
    // It ended, but nobody took it: its claimer may go on.
    work.renew(&ended, LONG).await.unwrap();
    assert_eq!(work.expire().await.unwrap(), 0);
    assert_eq!(work.claim("job", "c", LONG).await.unwrap(), None);
    work.finish(&renewed).await.unwrap();
    work.finish(&ended).await.unwrap();
}

async fn dead_leases_are_ended_and_counted(bed: &Bed) {
    offer(bed, 5).await;
    let work = bed.db.work();
    // The living claim comes first: later, the short leases may be over already.
    let alive = work.claim("job", "alive", LONG).await.unwrap().unwrap();
    let dead = work.claim_many("job", "dead", SHORT, 3).await.unwrap();
    bed.pass(dead[2].lease_until).await;
    assert_eq!(work.expire().await.unwrap(), 3);
    assert_eq!(work.expire().await.unwrap(), 0);
    assert_eq!(work.counts("job").await.unwrap(), Counts { ready: 4, claimed: 1, ..Counts::default() });
    assert_eq!(work.finish(&dead[0]).await.unwrap_err().code(), "lease-lost");
    work.finish(&alive).await.unwrap();
}

async fn the_last_attempt_of_a_dead_claimer_is_a_failure(bed: &Bed) {
    let work = bed.db.work();
    let id = work.offer(Offer::new("job", "a", json!(1)).attempts_max(1)).await.unwrap().id;
    let dead = work.claim("job", "dead", SHORT).await.unwrap().unwrap();
    bed.pass(dead.lease_until).await;
    // Not handed out once more, even before anybody ended the lease.
    assert_eq!(work.claim("job", "next", LONG).await.unwrap(), None);
    assert_eq!(work.expire().await.unwrap(), 1);
    let item = work.get(id).await.unwrap().unwrap();
    assert_eq!((item.state, item.last_error.as_deref()), (State::Failed, Some("the lease of dead ran out")));
}

async fn offers_and_claims_from_many_handles_lose_nothing(bed: &Bed) {
    const EACH: usize = 40;
    let handles = [bed.db.clone(), bed.again().await, bed.again().await];
    let offering = handles.iter().enumerate().map(|(h, db)| {
        let db = db.clone();
        tokio::spawn(async move {
            for n in 0..EACH {
                // Two of three offer the same keys.
                db.work().offer(Offer::new("job", format!("{}-{n}", h % 2), json!(n))).await.unwrap();
            }
        })
    });
    let claiming = handles.iter().map(|db| {
        let db = db.clone();
        tokio::spawn(async move {
            let mut finished = 0;
            while finished < EACH {
                match db.work().claim("job", "c", LONG).await.unwrap() {
                    Some(claim) => {
                        db.work().finish(&claim).await.unwrap();
                        finished += 1;
                    }
                    // Others may have taken the rest; it is over when all is done.
                    None if db.work().counts("job").await.unwrap().done == 2 * EACH as u64 => break,
                    None => tokio::task::yield_now().await,
                }
            }
            finished
        })
    });
    let (offering, claiming): (Vec<_>, Vec<_>) = (offering.collect(), claiming.collect());
    for task in offering {
        task.await.unwrap();
    }
    let mut finished = 0;
    for task in claiming {
        finished += task.await.unwrap();
    }
    assert_eq!(finished, 2 * EACH);
}
