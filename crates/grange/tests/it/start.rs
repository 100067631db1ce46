//! Starting, and everything that can keep a node from starting: one clear sentence, nothing half-made.

use std::net::TcpListener;

use grange_testkit::{TestDatabase, until};

use crate::harness::Grange;

#[test]
fn the_first_start_makes_an_admin_and_the_second_does_not() {
    let grange = Grange::new();
    let node = grange.up();
    assert!(node.greeting.contains("log in  admin / "), "{}", node.greeting);
    assert_eq!(node.stop(), 0);
    let node = grange.up();
    assert!(!node.greeting.contains("log in"), "{}", node.greeting);
    assert_eq!(node.stop(), 0);
}

#[test]
fn a_port_in_use_is_told_with_the_setting_to_change() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let set = format!("web.listen={}", taken.local_addr().unwrap());
    let grange = Grange::with(&[&set]);
    grange.run(&["up"]).fails(1, &["another program has this port", "--set web.listen=ADDRESS:PORT"]);
    assert!(
        !grange.data().join("grange.db").exists(),
        "no database is made by a start that failed before it"
    );
}

#[test]
fn a_second_node_on_the_same_folder_is_refused() {
    let grange = Grange::new();
    let node = grange.up();
    grange.run(&["up"]).fails(1, &["another node already runs on", &format!("process {}", node.pid())]);
}

#[test]
fn a_role_that_is_not_there_is_refused_by_name() {
    let grange = Grange::new();
    grange.run(&["up", "--roles", "admni"]).fails(2, &["admni", "admin"]);
    grange.run(&["up", "--roles", "lifecycle"]).fails(1, &["does not have the role lifecycle yet"]);
}

#[test]
fn a_wrong_log_filter_is_wrong_use() {
    Grange::with(&["log.filter=grange=loudly"])
        .run(&["up"])
        .fails(2, &["grange=loudly", "info,grange_db=debug"]);
}

#[test]
fn a_file_that_is_no_database_is_left_alone() {
    let grange = Grange::new();
    std::fs::create_dir_all(grange.data()).unwrap();
    let path = grange.data().join("grange.db");
    let text = "this is my diary\n".repeat(100);
    std::fs::write(&path, &text).unwrap();
    grange.run(&["up"]).fails(1, &["grange.db", "not"]);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
}

#[test]
fn a_database_of_a_newer_version_is_refused() {
    let grange = Grange::new();
    grange.run(&["users", "add", "anna", "--role", "admin"]).ok();
    let path = grange.data().join("grange.db");
    let sql = "UPDATE grange_migrations SET number = number + 1000 WHERE number = (SELECT max(number) FROM grange_migrations)";
    grange_testkit::sqlite::execute(&path, sql);
    grange.run(&["up"]).fails(1, &["grange.db", "newer"]);
}

#[test]
fn a_folder_that_cannot_be_used_is_told() {
    let grange = Grange::new();
    grange.file("data", "a file in the way");
    grange.run(&["up"]).fails(1, &["cannot use the data folder", "choose another with --data"]);
}

#[tokio::test]
async fn services_that_are_away_are_told_without_secrets() {
    for (backend, set) in [
        ("database", ["db.url=postgres://grange:sesame@127.0.0.1:1/grange", "db.connect_timeout=2s"]),
        ("bus", ["bus.url=nats://me:sesame@127.0.0.1:1", "bus.connect_timeout=1s"]),
    ] {
        let grange = Grange::with(&set);
        let node = grange.up_waiting();
        let reason = format!("{backend}: cannot reach");
        until("the node says what it waits for", async || node.ready().await.1.to_string().contains(&reason))
            .await;
        let (status, body) = node.ready().await;
        assert_eq!(status, 503);
        let said = format!("{body}{}", node.log());
        assert!(said.contains("127.0.0.1:1") && !said.contains("sesame"), "{said}");
        assert_eq!(node.stop(), 0);
    }
}

#[tokio::test]
async fn postgresql_is_migrated_only_when_told_to() {
    let Some(database) = TestDatabase::create().await else { return };
    let grange = Grange::with(&[&format!("db.url={}", database.url)]);
    grange.run(&["up"]).fails(1, &["grange db migrate"]);
    let ended = grange.run(&["db", "migrate"]).ok();
    assert!(ended.stdout.contains("0001_nodes"), "{}", ended.stdout);
    assert!(grange.run(&["db", "migrate"]).ok().stdout.contains("already"));
    let node = grange.up();
    let status = grange.run(&["db", "status", "--json"]).ok().json();
    assert_eq!(status["engine"], "postgres");
    assert_eq!(status["schema_version"], status["newest_version"]);
    grange.run(&["db", "backup"]).fails(4, &["pg_dump"]);
    assert_eq!(node.stop(), 0);
}
