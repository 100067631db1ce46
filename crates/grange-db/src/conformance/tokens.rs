//! What the tokens promise.

use std::time::Duration;

use grange_model::{Role, TokenId, UserId};

use super::{Bed, LONG, anna, on_both_engines};
use crate::{AuditFilter, NewToken};

on_both_engines! {
    a_key_names_its_owner_until_it_is_revoked,
    a_key_expires_to_the_moment,
    use_is_noted_once_a_minute,
    what_cannot_be_is_refused,
}

fn new(user_id: UserId, hash: &str) -> NewToken {
    NewToken { user_id, name: format!("the {hash}"), hash: hash.to_owned(), expires_at: None }
}

async fn a_key_names_its_owner_until_it_is_revoked(bed: &Bed) {
    let (berta, carl) = (bed.user("berta", Role::Curator).await, bed.user("carl", Role::Viewer).await);
    let tokens = bed.db.tokens();
    let first = tokens.create(new(berta.id, "h1"), &anna()).await.unwrap();
    let second = tokens.create(new(carl.id, "h2"), &anna()).await.unwrap();
    let (user, token) = tokens.authenticate("h1").await.unwrap().unwrap();
    assert_eq!((user, token), (berta.clone(), first.clone()));
    assert_eq!(tokens.authenticate("h3").await.unwrap(), None);
    let revoked = tokens.revoke(first.id, &anna()).await.unwrap();
    assert!(revoked.revoked_at.is_some());
    assert_eq!(tokens.authenticate("h1").await.unwrap(), None);
    bed.hand.advance(LONG);
    assert_eq!(tokens.revoke(first.id, &anna()).await.unwrap().revoked_at, revoked.revoked_at);
    assert_eq!(tokens.list(Some(carl.id)).await.unwrap(), [second]);
    assert_eq!(tokens.list(None).await.unwrap().len(), 2);
    let of_tokens = AuditFilter { act: Some("token.".into()), ..AuditFilter::default() };
    let log = bed.db.audit().list(&of_tokens).await.unwrap();
    let acts: Vec<_> = log.iter().map(|line| format!("{} {}", line.act, line.subject)).collect();
    assert_eq!(acts, ["token.revoke user:berta", "token.create user:carl", "token.create user:berta"]);
    assert!(!serde_json::to_string(&log).unwrap().contains("\"h1\""));
}

async fn a_key_expires_to_the_moment(bed: &Bed) {
    let berta = bed.user("berta", Role::Viewer).await;
    let expires_at = Some(bed.clock.now() + Duration::from_secs(10));
    bed.db.tokens().create(NewToken { expires_at, ..new(berta.id, "h") }, &anna()).await.unwrap();
    bed.hand.advance(Duration::from_millis(9_999));
    assert!(bed.db.tokens().authenticate("h").await.unwrap().is_some());
    bed.hand.advance(Duration::from_millis(1));
    assert_eq!(bed.db.tokens().authenticate("h").await.unwrap(), None);
}

async fn use_is_noted_once_a_minute(bed: &Bed) {
    let berta = bed.user("berta", Role::Viewer).await;
    let tokens = bed.db.tokens();
    tokens.create(new(berta.id, "h"), &anna()).await.unwrap();
    let used = async || tokens.list(None).await.unwrap()[0].last_used_at;
    assert_eq!(used().await, None);
    tokens.authenticate("h").await.unwrap();
    let first = used().await;
    assert!(first.is_some());
    bed.hand.advance(Duration::from_secs(59));
    tokens.authenticate("h").await.unwrap();
    assert_eq!(used().await, first);
    bed.hand.advance(Duration::from_secs(1));
    tokens.authenticate("h").await.unwrap();
    assert!(used().await > first);
}

async fn what_cannot_be_is_refused(bed: &Bed) {
    let berta = bed.user("berta", Role::Viewer).await;
    let tokens = bed.db.tokens();
    assert_eq!(tokens.create(new(UserId::new(), "h"), &anna()).await.unwrap_err().code(), "not-found");
    assert_eq!(tokens.revoke(TokenId::new(), &anna()).await.unwrap_err().code(), "not-found");
    tokens.create(new(berta.id, "h"), &anna()).await.unwrap();
    assert_eq!(tokens.create(new(berta.id, "h"), &anna()).await.unwrap_err().code(), "exists");
    assert_eq!(tokens.list(None).await.unwrap().len(), 1);
}
