//! The database's clock is the one that counts, whatever the machine's says.

use grange_base::Clock;
use grange_model::Actor;
use grange_model::account::Role;
use grange_testkit::TestDatabase;
use jiff::{SignedDuration, Timestamp};

use crate::{Db, NewUser, Settings};

async fn open_ahead(server: &TestDatabase, hours: i64) -> Db {
    let settings = Settings { url: server.url.clone(), ..Settings::default() };
    let clock = Clock::shifted(SignedDuration::from_hours(hours));
    Db::migrate(&settings, std::path::Path::new("."), &clock).await.unwrap();
    Db::open(&settings, std::path::Path::new("."), clock).await.unwrap()
}

#[tokio::test]
async fn acts_of_a_machine_whose_clock_is_wrong_carry_the_databases_time() {
    let Some(server) = TestDatabase::create().await else { return };
    let minute = SignedDuration::from_mins(1);
    for hours in [5, -5] {
        let db = open_ahead(&server, hours).await;
        let off = db.clock().now().duration_since(Timestamp::now()).abs();
        assert!(off < minute, "{hours} h ahead: {off:?}");
        let new =
            NewUser { name: format!("u{hours}").parse().unwrap(), role: Role::Viewer, password_hash: None };
        let user = db.users().create(new, &Actor::system()).await.unwrap();
        assert!(user.created_at.duration_since(Timestamp::now()).abs() < minute, "{}", user.created_at);
        let skew = db.compare_clocks().await.unwrap().unwrap();
        assert!((skew.ahead - SignedDuration::from_hours(hours)).abs() < minute, "{skew:?}");
        assert_eq!(skew.machine.duration_since(skew.database), skew.ahead);
        db.close().await;
    }
}

#[tokio::test]
async fn sqlite_goes_by_the_machines_clock_and_has_none_to_compare() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(&Settings::default(), folder.path(), Clock::shifted(SignedDuration::from_hours(5)))
        .await
        .unwrap();
    assert!(db.clock().now().duration_since(Timestamp::now()) > SignedDuration::from_hours(4));
    assert_eq!(db.compare_clocks().await.unwrap(), None);
}
