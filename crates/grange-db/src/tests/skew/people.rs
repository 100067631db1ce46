//! Users, their passwords and their sessions.

use grange_model::{Role, User};

use super::{Barrier, act};
use crate::conformance::{Bed, LONG, anna, named};
use crate::{NewSession, NewUser};

fn new_user(name: &str) -> NewUser {
    NewUser { name: named(name), role: Role::Admin, password_hash: None }
}

fn session(bed: &Bed, user: &User) -> NewSession {
    let expires_at = bed.clock.now() + LONG;
    NewSession {
        user_id: user.id,
        user_edition: user.edition,
        hash: "cookie".into(),
        csrf_hash: "form".into(),
        expires_at,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_two_first_users_is_made_though_their_names_differ() {
    let Some(bed) = Bed::postgres().await else { return };
    let mut barrier = Barrier::before_the_log(&bed).await;
    let one = barrier.hold(1, act!(bed, |db| db.users().create_first(new_user("anna"), &anna()))).await;
    let two = barrier.hold(2, act!(bed, |db| db.users().create_first(new_user("bert"), &anna()))).await;
    barrier.open().await;
    let made = [one.await.unwrap().unwrap(), two.await.unwrap().unwrap()];
    assert_eq!(made.iter().flatten().count(), 1, "{made:?}");
    assert_eq!(bed.db.users().count().await.unwrap(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_password_before_starts_no_session_while_it_is_changed() {
    let Some(bed) = Bed::postgres().await else { return };
    // The old password was found right just before.
    let user = bed.user("bert", Role::Curator).await;
    let new = session(&bed, &user);
    let mut barrier = Barrier::before_the_log(&bed).await;
    let changed = barrier
        .hold(1, act!(bed, |db| db.users().set_password(&named("bert"), "$argon2id$new", &anna())))
        .await;
    let begun = barrier.hold(2, act!(bed, |db| db.sessions().create(new, &anna()))).await;
    barrier.open().await;
    changed.await.unwrap().unwrap();
    assert_eq!(begun.await.unwrap().map_err(|error| error.code()), Err("stale"));
    assert!(bed.db.sessions().authenticate("cookie").await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_begun_while_its_user_is_disabled_does_not_wake_with_the_user() {
    let Some(bed) = Bed::postgres().await else { return };
    let user = bed.user("bert", Role::Curator).await;
    let new = session(&bed, &user);
    let mut barrier = Barrier::before_the_log(&bed).await;
    let disabled =
        barrier.hold(1, act!(bed, |db| db.users().set_enabled(&named("bert"), false, 1, &anna()))).await;
    let begun = barrier.hold(2, act!(bed, |db| db.sessions().create(new, &anna()))).await;
    barrier.open().await;
    let disabled = disabled.await.unwrap().unwrap();
    let begun = begun.await.unwrap();
    bed.db.users().set_enabled(&named("bert"), true, disabled.edition, &anna()).await.unwrap();
    assert!(bed.db.sessions().authenticate("cookie").await.unwrap().is_none());
    assert_eq!(begun.map_err(|error| error.code()), Err("stale"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_admins_held_together_cannot_both_be_demoted() {
    let Some(bed) = Bed::postgres().await else { return };
    bed.user("anna", Role::Admin).await;
    bed.user("bert", Role::Admin).await;
    let mut barrier = Barrier::before_the_log(&bed).await;
    let one =
        barrier.hold(1, act!(bed, |db| db.users().set_role(&named("anna"), Role::Viewer, 1, &anna()))).await;
    let two =
        barrier.hold(2, act!(bed, |db| db.users().set_enabled(&named("bert"), false, 1, &anna()))).await;
    barrier.open().await;
    one.await.unwrap().unwrap();
    assert_eq!(two.await.unwrap().unwrap_err().code(), "last-admin");
}
