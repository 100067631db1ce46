//! What the audit log promises.

use std::time::Duration;

use grange_model::Actor;
use serde_json::json;

use super::{Bed, on_both_engines};
use crate::{AuditFilter, Record};

on_both_engines! {
    lines_come_back_as_written_newest_first,
    pages_follow_each_other_without_gap_or_overlap,
    each_filter_lets_through_what_it_says,
}

async fn write(bed: &Bed, who: &str, act: &'static str, subject: &str) {
    let record = Record { act, subject: subject.to_owned(), before: None, after: Some(json!({ "n": 1 })) };
    bed.db.audit().append(record, &Actor::new(who, "web")).await.unwrap();
}

async fn lines_come_back_as_written_newest_first(bed: &Bed) {
    write(bed, "anna", "login.refuse", "user:berta").await;
    bed.hand.advance(Duration::from_secs(1));
    let state = json!({ "text": "Ærø \u{0} \"x\"", "list": [1, 2.5, null] });
    let record = Record { act: "x.y", subject: "x:1".into(), before: Some(state.clone()), after: None };
    bed.db.audit().append(record, &Actor::system()).await.unwrap();
    let log = bed.db.audit().list(&AuditFilter::default()).await.unwrap();
    assert_eq!(log.len(), 2);
    assert_eq!((log[0].who.as_str(), log[0].via.as_str(), log[0].act.as_str()), ("grange", "node", "x.y"));
    assert_eq!((log[0].before.as_ref(), &log[0].after), (Some(&state), &None));
    assert!(log[0].number > log[1].number && log[0].at > log[1].at);
    assert_eq!(log[1].subject, "user:berta");
}

async fn pages_follow_each_other_without_gap_or_overlap(bed: &Bed) {
    for n in 0..25 {
        write(bed, "anna", "x.y", &format!("x:{n}")).await;
    }
    let mut subjects = Vec::new();
    let mut filter = AuditFilter { limit: 10, ..AuditFilter::default() };
    loop {
        let page = bed.db.audit().list(&filter).await.unwrap();
        let Some(last) = page.last() else { break };
        filter.before = Some(last.number);
        subjects.extend(page.into_iter().map(|line| line.subject));
    }
    let expected: Vec<_> = (0..25).rev().map(|n| format!("x:{n}")).collect();
    assert_eq!(subjects, expected);
}

async fn each_filter_lets_through_what_it_says(bed: &Bed) {
    let start = bed.clock.now();
    for (who, act, subject) in [
        ("anna", "user.create", "user:a"),
        ("anna", "user.disable", "user:b"),
        ("carl", "user_x.create", "user:a"),
        ("carl", "job.stop", "job:1"),
    ] {
        write(bed, who, act, subject).await;
        bed.hand.advance(Duration::from_secs(1));
    }
    let second = |n| Some(start + Duration::from_secs(n));
    let all = AuditFilter::default();
    for (filter, expected) in [
        (AuditFilter { who: Some("anna".into()), ..all.clone() }, "user.disable user.create"),
        (AuditFilter { act: Some("user.".into()), ..all.clone() }, "user.disable user.create"),
        (AuditFilter { act: Some("%".into()), ..all.clone() }, ""),
        (AuditFilter { subject: Some("user:a".into()), ..all.clone() }, "user_x.create user.create"),
        (AuditFilter { since: second(2), ..all.clone() }, "job.stop user_x.create"),
        (AuditFilter { until: second(1), ..all.clone() }, "user.create"),
        (
            AuditFilter { since: second(1), until: second(3), who: Some("carl".into()), ..all.clone() },
            "user_x.create",
        ),
        (AuditFilter { limit: 1, ..all.clone() }, "job.stop"),
        (AuditFilter { limit: 0, ..all.clone() }, ""),
    ] {
        let log = bed.db.audit().list(&filter).await.unwrap();
        let acts: Vec<_> = log.iter().map(|line| line.act.as_str()).collect();
        assert_eq!(acts.join(" "), expected, "{filter:?}");
    }
}
