//! What the sessions promise.

use std::time::Duration;

use grange_model::{Role, SessionId, UserId};

use super::{Bed, LONG, anna, on_both_engines};
use crate::{AuditFilter, NewSession};

on_both_engines! {
    a_cookie_names_its_user_until_it_is_over,
    old_sessions_are_deleted_and_counted,
    being_seen_is_noted_once_a_minute,
    login_and_logout_are_in_the_log,
}

fn new(bed: &Bed, user_id: UserId, hash: &str, length: Duration) -> NewSession {
    let expires_at = bed.clock.now() + length;
    NewSession {
        user_id,
        user_edition: 1,
        hash: hash.to_owned(),
        csrf_hash: format!("form of {hash}"),
        expires_at,
    }
}

async fn a_cookie_names_its_user_until_it_is_over(bed: &Bed) {
    let berta = bed.user("berta", Role::Viewer).await;
    let sessions = bed.db.sessions();
    let made = sessions.create(new(bed, berta.id, "h", LONG), &anna()).await.unwrap();
    let (user, session) = sessions.authenticate("h").await.unwrap().unwrap();
    assert_eq!((user, session.id, session.csrf_hash.as_str()), (berta.clone(), made.id, "form of h"));
    assert_eq!(sessions.authenticate("other").await.unwrap(), None);
    let taken = sessions.create(new(bed, berta.id, "h", LONG), &anna()).await.unwrap_err();
    assert_eq!(taken.code(), "exists");
    let nobody = sessions.create(new(bed, UserId::new(), "h2", LONG), &anna()).await.unwrap_err();
    assert_eq!(nobody.code(), "not-found");
    assert_eq!(sessions.list(berta.id).await.unwrap().len(), 1);
    bed.hand.advance(LONG);
    assert_eq!(sessions.authenticate("h").await.unwrap(), None);
    assert_eq!(sessions.list(berta.id).await.unwrap(), []);
}

async fn old_sessions_are_deleted_and_counted(bed: &Bed) {
    let berta = bed.user("berta", Role::Viewer).await;
    let sessions = bed.db.sessions();
    for (hash, seconds) in [("a", 10), ("b", 20), ("c", 30)] {
        sessions.create(new(bed, berta.id, hash, Duration::from_secs(seconds)), &anna()).await.unwrap();
    }
    assert_eq!(sessions.expire().await.unwrap(), 0);
    bed.hand.advance(Duration::from_secs(20));
    assert_eq!(sessions.expire().await.unwrap(), 2);
    assert_eq!(sessions.expire().await.unwrap(), 0);
    assert!(sessions.authenticate("c").await.unwrap().is_some());
}

async fn being_seen_is_noted_once_a_minute(bed: &Bed) {
    let berta = bed.user("berta", Role::Viewer).await;
    let sessions = bed.db.sessions();
    let made = sessions.create(new(bed, berta.id, "h", LONG), &anna()).await.unwrap();
    let seen = async || sessions.list(berta.id).await.unwrap()[0].last_seen_at;
    bed.hand.advance(Duration::from_secs(59));
    sessions.authenticate("h").await.unwrap();
    assert_eq!(seen().await, made.last_seen_at);
    bed.hand.advance(Duration::from_secs(1));
    sessions.authenticate("h").await.unwrap();
    assert!(seen().await > made.last_seen_at);
}

async fn login_and_logout_are_in_the_log(bed: &Bed) {
    let berta = bed.user("berta", Role::Viewer).await;
    let sessions = bed.db.sessions();
    let made = sessions.create(new(bed, berta.id, "h", LONG), &anna()).await.unwrap();
    assert!(sessions.end(made.id, &anna()).await.unwrap());
    assert!(!sessions.end(made.id, &anna()).await.unwrap());
    assert!(!sessions.end(SessionId::new(), &anna()).await.unwrap());
    assert_eq!(sessions.authenticate("h").await.unwrap(), None);
    let of_sessions = AuditFilter { act: Some("session.".into()), ..AuditFilter::default() };
    let log = bed.db.audit().list(&of_sessions).await.unwrap();
    let acts: Vec<_> = log.iter().map(|line| line.act.as_str()).collect();
    assert_eq!(acts, ["session.end", "session.start"]);
}
