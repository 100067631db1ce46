//! What the work promises to those who offer it and look at it, and to one claimer at a time.

use std::time::Duration;

use grange_model::WorkId;
use serde_json::json;

use super::{Bed, LONG, SHORT, anna, on_both_engines};
use crate::{AuditFilter, Counts, Error, Offer, State, WorkFilter};

on_both_engines! {
    offering_again_changes_nothing,
    many_offers_are_one_act,
    the_highest_priority_then_the_oldest_comes_first,
    work_is_not_handed_out_before_its_time,
    finished_work_stays_finished,
    failed_work_comes_back_until_the_last_attempt,
    work_without_a_limit_comes_back_for_ever,
    given_back_work_is_ready_and_the_attempt_not_counted,
    a_person_can_try_failed_work_again,
    what_there_is_can_be_listed_and_counted,
    old_finished_work_is_pruned,
    foreign_text_does_no_harm,
}

fn offer(key: &str) -> Offer {
    Offer::new("index", key, json!({ "file": key }))
}

async fn offering_again_changes_nothing(bed: &Bed) {
    let work = bed.db.work();
    let first = work.offer(offer("a").priority(3)).await.unwrap();
    assert!(first.new);
    let before = work.get(first.id).await.unwrap().unwrap();
    let again = Offer { payload: json!("other"), ..offer("a").priority(9) };
    let second = work.offer(again.clone()).await.unwrap();
    assert_eq!((second.id, second.new, second.state), (first.id, false, State::Ready));
    assert_eq!(work.get(first.id).await.unwrap().unwrap(), before);
    // The same key in another kind is other work.
    assert!(work.offer(Offer { kind: "store".into(), ..again.clone() }).await.unwrap().new);
    let claim = work.claim("index", "n1", LONG).await.unwrap().unwrap();
    work.finish(&claim).await.unwrap();
    let third = work.offer(again).await.unwrap();
    assert_eq!((third.id, third.new, third.state), (first.id, false, State::Done));
}

async fn many_offers_are_one_act(bed: &Bed) {
    let work = bed.db.work();
    work.offer(offer("b")).await.unwrap();
    let offered = work.offer_many(["a", "b", "c", "a"].map(offer).into()).await.unwrap();
    assert_eq!(offered.iter().map(|o| o.new).collect::<Vec<_>>(), [true, false, true, false]);
    assert_eq!(offered[0].id, offered[3].id);
    assert_eq!(work.offer_many(vec![]).await.unwrap(), []);
    assert_eq!(work.counts("index").await.unwrap().ready, 3);
}

async fn the_highest_priority_then_the_oldest_comes_first(bed: &Bed) {
    let work = bed.db.work();
    for (key, priority) in [("old", 0), ("urgent", 10), ("later", 0), ("never", -5), ("urgent too", 10)] {
        work.offer(offer(key).priority(priority)).await.unwrap();
        bed.hand.advance(Duration::from_millis(1));
    }
    work.offer(Offer::new("other", "x", json!(null)).priority(99)).await.unwrap();
    let first = work.claim("index", "n1", LONG).await.unwrap().unwrap();
    assert_eq!(
        (first.key.as_str(), first.attempt, &first.payload),
        ("urgent", 1, &json!({ "file": "urgent" }))
    );
    let rest = work.claim_many("index", "n1", LONG, 3).await.unwrap();
    let keys: Vec<_> = rest.iter().map(|claim| claim.key.as_str()).collect();
    assert_eq!(keys, ["urgent too", "old", "later"]);
    let last = work.claim_many("index", "n1", LONG, 10).await.unwrap();
    assert_eq!((last.len(), last[0].key.as_str()), (1, "never"));
    assert_eq!(work.claim("index", "n1", LONG).await.unwrap(), None);
    assert_eq!(work.claim("nothing", "n1", LONG).await.unwrap(), None);
    assert_eq!(work.claim_many("other", "n1", LONG, 0).await.unwrap(), []);
}

async fn work_is_not_handed_out_before_its_time(bed: &Bed) {
    let work = bed.db.work();
    let soon = bed.lease_now() + 50 * SHORT;
    work.offer(offer("soon").not_before(soon)).await.unwrap();
    work.offer(offer("far").not_before(bed.lease_now() + LONG)).await.unwrap();
    assert_eq!(work.claim("index", "n1", LONG).await.unwrap(), None);
    bed.pass(soon).await;
    assert_eq!(work.claim("index", "n1", LONG).await.unwrap().unwrap().key, "soon");
    assert_eq!(work.claim("index", "n1", LONG).await.unwrap(), None);
    let far = work.find("index", "far").await.unwrap().unwrap();
    assert_eq!((far.state, far.not_before.is_some(), far.lease_until), (State::Ready, true, None));
}

async fn finished_work_stays_finished(bed: &Bed) {
    let work = bed.db.work();
    let id = work.offer(offer("a")).await.unwrap().id;
    let claim = work.claim("index", "n1", LONG).await.unwrap().unwrap();
    assert_eq!(claim.id, id);
    let held = work.get(id).await.unwrap().unwrap();
    assert_eq!((held.state, held.lease_owner.as_deref()), (State::Claimed, Some("n1")));
    assert_eq!(held.lease_until, Some(claim.lease_until));
    work.finish(&claim).await.unwrap();
    let done = work.get(id).await.unwrap().unwrap();
    assert_eq!((done.state, done.lease_owner, done.lease_until), (State::Done, None, None));
    assert_eq!(work.claim("index", "n2", LONG).await.unwrap(), None);
    // Whatever the claimer says afterwards comes too late.
    for error in [
        work.finish(&claim).await.unwrap_err(),
        work.renew(&claim, LONG).await.unwrap_err(),
        work.release(&claim).await.unwrap_err(),
        work.fail(&claim, "no", LONG).await.unwrap_err(),
    ] {
        assert_eq!(
            (error.code(), error.to_string().as_str()),
            ("lease-lost", "the lease on index a was lost to somebody else: stop working on it")
        );
    }
    assert_eq!(work.get(id).await.unwrap().unwrap().state, State::Done);
}

async fn failed_work_comes_back_until_the_last_attempt(bed: &Bed) {
    let work = bed.db.work();
    let id = work.offer(offer("a").attempts_max(2)).await.unwrap().id;
    let claim = work.claim("index", "n1", LONG).await.unwrap().unwrap();
    assert_eq!(work.fail(&claim, "disk full", SHORT).await.unwrap(), State::Ready);
    let back = work.get(id).await.unwrap().unwrap();
    assert_eq!((back.state, back.last_error.as_deref()), (State::Ready, Some("disk full")));
    bed.pass(back.not_before.unwrap()).await;
    let claim = work.claim("index", "n2", LONG).await.unwrap().unwrap();
    assert_eq!((claim.attempt, claim.last_error.as_deref()), (2, Some("disk full")));
    assert_eq!(work.fail(&claim, "still full", Duration::ZERO).await.unwrap(), State::Failed);
    let failed = work.get(id).await.unwrap().unwrap();
    assert_eq!(
        (failed.state, failed.attempts, failed.last_error.as_deref()),
        (State::Failed, 2, Some("still full"))
    );
    assert_eq!(work.claim("index", "n1", LONG).await.unwrap(), None);
}

async fn work_without_a_limit_comes_back_for_ever(bed: &Bed) {
    let work = bed.db.work();
    work.offer(offer("a").attempts_max(0)).await.unwrap();
    for attempt in 1..=12 {
        let claim = work.claim("index", "n1", LONG).await.unwrap().unwrap();
        assert_eq!(claim.attempt, attempt);
        assert_eq!(work.fail(&claim, "no", Duration::ZERO).await.unwrap(), State::Ready);
    }
}

async fn given_back_work_is_ready_and_the_attempt_not_counted(bed: &Bed) {
    let work = bed.db.work();
    work.offer(offer("a").attempts_max(1)).await.unwrap();
    for _ in 0..3 {
        let claim = work.claim("index", "n1", LONG).await.unwrap().unwrap();
        assert_eq!(claim.attempt, 1);
        work.release(&claim).await.unwrap();
        assert_eq!(work.finish(&claim).await.unwrap_err().code(), "lease-lost");
    }
}

async fn a_person_can_try_failed_work_again(bed: &Bed) {
    let work = bed.db.work();
    let id = work.offer(offer("a").attempts_max(1)).await.unwrap().id;
    assert_eq!(work.retry(id, &anna()).await.unwrap_err().code(), "not-found");
    let claim = work.claim("index", "n1", LONG).await.unwrap().unwrap();
    work.fail(&claim, "no", LONG).await.unwrap();
    let item = work.retry(id, &anna()).await.unwrap();
    assert_eq!((item.state, item.attempts), (State::Ready, 0));
    assert_eq!(work.claim("index", "n1", LONG).await.unwrap().unwrap().attempt, 1);
    assert_eq!(work.retry(WorkId::new(), &anna()).await.unwrap_err().code(), "not-found");
    let log = bed.db.audit().list(&AuditFilter::default()).await.unwrap();
    assert_eq!(log.len(), 1);
    assert_eq!((log[0].act.as_str(), log[0].subject.as_str()), ("work.retry", "work:index a"));
}

async fn what_there_is_can_be_listed_and_counted(bed: &Bed) {
    let work = bed.db.work();
    for n in 0..12 {
        work.offer(offer(&format!("{n:02}")).attempts_max(1)).await.unwrap();
    }
    work.offer(Offer::new("store", "x", json!(1))).await.unwrap();
    let mut claims = work.claim_many("index", "n1", LONG, 6).await.unwrap();
    work.finish(&claims.pop().unwrap()).await.unwrap();
    work.fail(&claims.pop().unwrap(), "no", LONG).await.unwrap();
    work.fail(&claims.pop().unwrap(), "no", LONG).await.unwrap();
    let counts = Counts { ready: 6, claimed: 3, done: 1, failed: 2 };
    assert_eq!(work.counts("index").await.unwrap(), counts);
    assert_eq!(work.counts("nothing").await.unwrap(), Counts::default());
    let keys = async |filter: WorkFilter| {
        let items = work.list(&filter).await.unwrap();
        items.iter().map(|item| item.key.clone()).collect::<Vec<_>>().join(" ")
    };
    let of = |state| WorkFilter { kind: Some("index".into()), state: Some(state), ..WorkFilter::default() };
    assert_eq!(keys(of(State::Failed)).await, "03 04");
    assert_eq!(keys(of(State::Claimed)).await, "00 01 02");
    assert_eq!(keys(WorkFilter { kind: Some("store".into()), ..WorkFilter::default() }).await, "x");
    let mut page = WorkFilter { limit: 5, ..WorkFilter::default() };
    let mut seen = 0;
    while let Some(last) = work.list(&page).await.unwrap().last() {
        seen += work.list(&page).await.unwrap().len();
        page.after = Some(last.id);
    }
    assert_eq!(seen, 13);
    assert_eq!(work.find("index", "nothing").await.unwrap(), None);
}

async fn old_finished_work_is_pruned(bed: &Bed) {
    let work = bed.db.work();
    for key in ["a", "b"] {
        work.offer(offer(key)).await.unwrap();
    }
    let claim = work.claim("index", "n1", LONG).await.unwrap().unwrap();
    work.finish(&claim).await.unwrap();
    assert_eq!(work.prune("index", LONG).await.unwrap(), 0);
    bed.pass(bed.lease_now() + SHORT).await;
    assert_eq!(work.prune("store", SHORT).await.unwrap(), 0);
    assert_eq!(work.prune("index", SHORT).await.unwrap(), 1);
    assert_eq!(work.counts("index").await.unwrap(), Counts { ready: 1, ..Counts::default() });
    assert!(work.offer(offer("a")).await.unwrap().new);
}

async fn foreign_text_does_no_harm(bed: &Bed) {
    let work = bed.db.work();
    let key = "http://example.org/'; DROP TABLE work; --?q=\u{1F33E}\u{202E}$1 {now}";
    let offered = work.offer(Offer::new("index", key, json!({ "nul": "\u{0}" }))).await.unwrap();
    let claim = work.claim("index", "n'1", LONG).await.unwrap().unwrap();
    assert_eq!((claim.id, claim.key.as_str(), &claim.payload), (offered.id, key, &json!({ "nul": "\u{0}" })));
    // PostgreSQL keeps no NUL in a text; an error message from the web may hold one all the same.
    work.fail(&claim, "got \u{0} bytes", Duration::ZERO).await.unwrap();
    let failed = work.get(offered.id).await.unwrap().unwrap();
    assert_eq!(failed.last_error.as_deref(), Some("got \u{fffd} bytes"));
    let longest = Duration::MAX;
    let claim = work.claim("index", "n1", longest).await.unwrap().unwrap();
    work.renew(&claim, longest).await.unwrap();
    let refused: Error = work.offer(Offer::new("index", "a\u{0}b", json!(1))).await.unwrap_err();
    assert_eq!(refused.code(), "bad-text");
}
