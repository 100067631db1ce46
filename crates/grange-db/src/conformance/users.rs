//! What the users promise.

use grange_model::{Permission, Role, UserId};

use super::{Bed, anna, named, on_both_engines};
use crate::{AuditFilter, Error, NewSession, NewToken, NewUser};

on_both_engines! {
    a_created_user_is_found_again,
    a_taken_name_is_refused_and_changes_nothing,
    the_first_user_is_made_once_however_many_try,
    a_stale_save_is_refused_and_names_who_was_first,
    somebody_unknown_cannot_be_changed,
    the_last_admin_stays,
    two_admins_cannot_send_each_other_away,
    a_new_password_replaces_the_old_and_ends_the_sessions,
    a_disabled_user_has_no_way_in,
    every_change_leaves_its_line_and_no_secret,
}

async fn a_created_user_is_found_again(bed: &Bed) {
    let made = bed.user("Berta@kb.dk", Role::Curator).await;
    assert_eq!(made.edition, 1);
    assert!(made.enabled() && made.may(Permission::EditHarvests));
    let users = bed.db.users();
    assert_eq!(users.get(&named("berta@KB.dk")).await.unwrap(), Some(made.clone()));
    assert_eq!(users.by_id(made.id).await.unwrap(), Some(made.clone()));
    assert_eq!(users.by_id(UserId::new()).await.unwrap(), None);
    assert_eq!(users.get(&named("berta")).await.unwrap(), None);
    let (user, hash) = users.credentials(&made.name).await.unwrap().unwrap();
    assert_eq!((user, hash.as_deref()), (made.clone(), Some("$argon2id$of-Berta@kb.dk")));
    let other = bed.user("Åse", Role::Viewer).await;
    let zoe = bed.user("zoe", Role::Viewer).await;
    // Both engines sort by code point.
    assert_eq!(users.list().await.unwrap(), [made, zoe, other]);
    assert_eq!(users.count().await.unwrap(), 3);
}

async fn a_taken_name_is_refused_and_changes_nothing(bed: &Bed) {
    let made = bed.user("berta", Role::Viewer).await;
    let again = NewUser { name: named("BERTA"), role: Role::Admin, password_hash: None };
    let error = bed.db.users().create(again, &anna()).await.unwrap_err();
    assert_eq!((error.code(), error.to_string().as_str()), ("exists", "there already is a user berta"));
    assert_eq!(bed.db.users().list().await.unwrap(), [made]);
    assert_eq!(bed.db.audit().list(&AuditFilter::default()).await.unwrap().len(), 1);
}

async fn the_first_user_is_made_once_however_many_try(bed: &Bed) {
    let tries = (0..20).map(|_| {
        let db = bed.db.clone();
        tokio::spawn(async move {
            let new = NewUser { name: named("admin"), role: Role::Admin, password_hash: None };
            db.users().create_first(new, &anna()).await.unwrap().is_some()
        })
    });
    let made = futures_util::future::join_all(tries).await;
    assert_eq!(made.into_iter().filter(|made| *made.as_ref().unwrap()).count(), 1);
    assert_eq!(bed.db.users().count().await.unwrap(), 1);
}

async fn a_stale_save_is_refused_and_names_who_was_first(bed: &Bed) {
    let seen = bed.user("berta", Role::Viewer).await;
    let users = bed.db.users();
    let by_carl = grange_model::Actor::new("carl", "web");
    let saved = users.set_role(&seen.name, Role::Curator, seen.edition, &by_carl).await.unwrap();
    assert_eq!((saved.edition, saved.role), (2, Role::Curator));
    let stale = users.set_role(&seen.name, Role::Operator, seen.edition, &anna()).await.unwrap_err();
    let Error::Stale { by, edition, .. } = &stale else { panic!("{stale}") };
    assert_eq!((stale.code(), by.as_str(), *edition), ("stale", "carl", 2));
    let stale = users.set_enabled(&seen.name, false, seen.edition, &anna()).await.unwrap_err();
    assert_eq!(stale.code(), "stale");
    assert_eq!(users.get(&seen.name).await.unwrap(), Some(saved));
}

async fn somebody_unknown_cannot_be_changed(bed: &Bed) {
    let users = bed.db.users();
    let nobody = named("nobody");
    for error in [
        users.set_role(&nobody, Role::Admin, 1, &anna()).await.unwrap_err(),
        users.set_enabled(&nobody, true, 1, &anna()).await.unwrap_err(),
        users.set_password(&nobody, "$hash", &anna()).await.unwrap_err(),
    ] {
        assert_eq!((error.code(), error.to_string().as_str()), ("not-found", "there is no user nobody"));
    }
    assert_eq!(bed.db.audit().list(&AuditFilter::default()).await.unwrap(), []);
}

async fn the_last_admin_stays(bed: &Bed) {
    let admin = bed.user("admin", Role::Admin).await;
    let second = bed.user("second", Role::Admin).await;
    let users = bed.db.users();
    let second = users.set_enabled(&second.name, false, second.edition, &anna()).await.unwrap();
    let refused = users.set_role(&admin.name, Role::Viewer, admin.edition, &anna()).await.unwrap_err();
    assert_eq!(refused.code(), "last-admin");
    let refused = users.set_enabled(&admin.name, false, admin.edition, &anna()).await.unwrap_err();
    assert_eq!(refused.to_string(), "admin is the last admin: make somebody else admin first");
    // A disabled admin may change role, and with a second admin the first may go.
    let second = users.set_enabled(&second.name, true, second.edition, &anna()).await.unwrap();
    assert!(second.enabled());
    users.set_role(&admin.name, Role::Viewer, admin.edition, &anna()).await.unwrap();
}

async fn two_admins_cannot_send_each_other_away(bed: &Bed) {
    let (a, b) = (bed.user("a", Role::Admin).await, bed.user("b", Role::Admin).await);
    let away = |user: grange_model::User| {
        let db = bed.db.clone();
        tokio::spawn(async move {
            db.users().set_role(&user.name, Role::Viewer, user.edition, &anna()).await.is_ok()
        })
    };
    let (a, b) = tokio::join!(away(a), away(b));
    assert_eq!(usize::from(a.unwrap()) + usize::from(b.unwrap()), 1);
}

async fn a_new_password_replaces_the_old_and_ends_the_sessions(bed: &Bed) {
    let user = bed.user("berta", Role::Viewer).await;
    let expires_at = bed.clock.now() + super::LONG;
    let new = NewSession {
        user_id: user.id,
        user_edition: user.edition,
        hash: "cookie".into(),
        csrf_hash: "form".into(),
        expires_at,
    };
    bed.db.sessions().create(new, &anna()).await.unwrap();
    let changed = bed.db.users().set_password(&user.name, "$argon2id$new", &anna()).await.unwrap();
    assert_eq!(changed.edition, 2);
    let (found, hash) = bed.db.users().credentials(&user.name).await.unwrap().unwrap();
    assert_eq!((found, hash.as_deref()), (changed, Some("$argon2id$new")));
    assert_eq!(bed.db.sessions().authenticate("cookie").await.unwrap(), None);
}

async fn a_disabled_user_has_no_way_in(bed: &Bed) {
    let user = bed.user("berta", Role::Viewer).await;
    let expires_at = bed.clock.now() + super::LONG;
    let session = NewSession {
        user_id: user.id,
        user_edition: user.edition,
        hash: "cookie".into(),
        csrf_hash: "form".into(),
        expires_at,
    };
    bed.db.sessions().create(session, &anna()).await.unwrap();
    let token = NewToken { user_id: user.id, name: "t".into(), hash: "key".into(), expires_at: None };
    bed.db.tokens().create(token, &anna()).await.unwrap();
    assert!(bed.db.tokens().authenticate("key").await.unwrap().is_some());
    let disabled = bed.db.users().set_enabled(&user.name, false, user.edition, &anna()).await.unwrap();
    assert!(disabled.disabled_at.is_some() && !disabled.may(Permission::View));
    assert_eq!(bed.db.tokens().authenticate("key").await.unwrap(), None);
    assert_eq!(bed.db.sessions().authenticate("cookie").await.unwrap(), None);
    // Let in again, the token works and the session is gone for good.
    bed.db.users().set_enabled(&user.name, true, disabled.edition, &anna()).await.unwrap();
    assert!(bed.db.tokens().authenticate("key").await.unwrap().is_some());
    assert_eq!(bed.db.sessions().authenticate("cookie").await.unwrap(), None);
}

async fn every_change_leaves_its_line_and_no_secret(bed: &Bed) {
    let user = bed.user("berta", Role::Viewer).await;
    let users = bed.db.users();
    let user = users.set_role(&user.name, Role::Curator, user.edition, &anna()).await.unwrap();
    let user = users.set_password(&user.name, "$argon2id$secret", &anna()).await.unwrap();
    let user = users.set_enabled(&user.name, false, user.edition, &anna()).await.unwrap();
    users.set_enabled(&user.name, true, user.edition, &anna()).await.unwrap();
    let mut log = bed.db.audit().list(&AuditFilter::default()).await.unwrap();
    log.reverse();
    let told: Vec<String> = log
        .iter()
        .map(|line| {
            let shown = |state: &Option<serde_json::Value>| match state {
                Some(state) => format!("{}/{}", state["role"].as_str().unwrap(), state["enabled"]),
                None => "-".to_owned(),
            };
            let AuditEntry { who, via, act, subject, .. } = line;
            format!("{who} {via} {act} {subject} {} {}", shown(&line.before), shown(&line.after))
        })
        .collect();
    assert_eq!(
        told,
        [
            "anna cli user.create user:berta - viewer/true",
            "anna cli user.set-role user:berta viewer/true curator/true",
            "anna cli user.set-password user:berta curator/true curator/true",
            "anna cli user.disable user:berta curator/true curator/false",
            "anna cli user.enable user:berta curator/false curator/true",
        ]
    );
    assert!(!serde_json::to_string(&log).unwrap().contains("argon2id"));
}

use grange_model::AuditEntry;
