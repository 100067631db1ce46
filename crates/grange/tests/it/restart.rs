//! `kill -9` at any moment, start again: what was acknowledged is there, exactly once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use grange_testkit::wait_for;

use crate::harness::Grange;

/// Kills in a row; each run adds users until the node dies under it.
const KILLS: usize = 5;

#[test]
fn killed_nodes_lose_no_acknowledged_row() {
    let grange = Arc::new(Grange::new());
    let mut acknowledged = vec!["admin".to_owned()];
    for round in 0..KILLS {
        let node = grange.up();
        let local = node.local();
        let (url, token) =
            (local["url"].as_str().unwrap().to_owned(), local["token"].as_str().unwrap().to_owned());
        let some = Arc::new(AtomicBool::new(false));
        let adding = std::thread::spawn({
            let some = Arc::clone(&some);
            move || add_until_it_dies(&url, &token, round, &some)
        });
        wait_for("a first user", || (some.load(Ordering::Acquire) || adding.is_finished()).then_some(()));
        node.kill();
        acknowledged.extend(adding.join().unwrap());
    }
    let node = grange.up();
    let users = grange.run(&["users", "list", "--json"]).ok().json();
    let mut there: Vec<String> =
        users.as_array().unwrap().iter().map(|user| user["name"].as_str().unwrap().to_owned()).collect();
    there.sort();
    let doubled = there.windows(2).filter(|pair| pair[0] == pair[1]).count();
    assert_eq!(doubled, 0);
    assert!(acknowledged.len() > KILLS, "something was acknowledged before each kill: {acknowledged:?}");
    let lost: Vec<_> = acknowledged.iter().filter(|name| there.binary_search(name).is_err()).collect();
    assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
    // At most the one request under way at each kill may have been done without an answer.
    assert!(there.len() <= acknowledged.len() + KILLS);
    assert_eq!(node.stop(), 0);
}

/// Adds users one by one and gives the names whose adding was answered.
fn add_until_it_dies(url: &str, token: &str, round: usize, some: &AtomicBool) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let mut names = Vec::new();
        for number in 0.. {
            let name = format!("user-{round}-{number}");
            let body = serde_json::json!({ "name": name, "role": "viewer", "password": "long enough to do" });
            let sent = http.post(format!("{url}/api/v1/users")).bearer_auth(token).json(&body).send().await;
            let Ok(answer) = sent else { break };
            assert_eq!(answer.status(), 201);
            names.push(name);
            some.store(true, Ordering::Release);
        }
        names
    })
}

#[test]
fn a_copy_made_while_running_opens_as_it_is() {
    let grange = Grange::new();
    let node = grange.up();
    grange.run(&["users", "add", "anna", "--role", "viewer"]).ok();
    let copy = grange.path("copy.db");
    grange.run(&["db", "backup", copy.to_str().unwrap()]).ok();
    grange.run(&["db", "backup", copy.to_str().unwrap()]).fails(4, &["never overwrites"]);
    grange.run(&["users", "add", "bo", "--role", "viewer"]).ok();
    assert_eq!(node.stop(), 0);
    let set = format!("db.url=sqlite:{}", copy.display());
    let users = grange.run(&["--set", &set, "users", "list", "--json"]).ok().json();
    let names: Vec<_> = users.as_array().unwrap().iter().map(|user| user["name"].clone()).collect();
    assert_eq!(names, ["admin", "anna"]);
}

/// Other programs look at the database of a running node: a backup script, a person with `sqlite3`, a virus scanner.
#[test]
fn programs_that_open_and_close_the_database_lose_no_later_row() {
    if std::process::Command::new("python3").arg("--version").output().is_err() {
        return grange_testkit::skipped("python3");
    }
    let grange = Grange::new();
    let node = grange.up();
    let file = grange.data().join("grange.db");
    let sqlite = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('select count(*) from users').fetchall(); c.close()";
    let scanner = "import sys; open(sys.argv[1], 'rb').read()";
    let mut expected = vec!["admin".to_owned()];
    let (linked, named) = (grange.path("linked.warc"), grange.path("named.warc"));
    std::fs::hard_link(&file, &linked).unwrap();
    std::os::unix::fs::symlink(&file, &named).unwrap();
    let readers: [&dyn Fn(); 5] = [
        &|| {
            grange.run(&["db", "backup", grange.path("copy.db").to_str().unwrap()]).ok();
        },
        &|| {
            grange.run(&["settings", "check"]).ok();
        },
        &|| {
            grange.run(&["db", "status"]).ok();
        },
        &|| {
            std::process::Command::new("python3").args(["-c", scanner]).arg(&file).status().unwrap();
        },
        // The node reads what a person names, and must not read this.
        &|| {
            let log = grange.data().join("grange.db-wal");
            for path in [&file, &log, &linked, &named] {
                grange.run(&["store", path.to_str().unwrap()]).fails(2, &["grange db backup COPY"]);
            }
            let import = ["collections", "import", "news", linked.to_str().unwrap()];
            grange.run(&[&import[..], &["--store"]].concat()).fails(5, &["grange db backup COPY"]);
            // In place it is entered, and not read.
            let shown = grange.run(&[&import[..], &["--json"]].concat());
            assert_eq!(shown.code, 5, "{shown:?}");
            assert!(shown.json().to_string().contains("grange db backup"), "{shown:?}");
        },
    ];
    for (number, read) in readers.iter().enumerate() {
        read();
        let status = std::process::Command::new("python3").args(["-c", sqlite]).arg(&file).status().unwrap();
        assert!(status.success());
        let name = format!("user-{number}");
        grange.run(&["users", "add", &name, "--role", "viewer"]).ok();
        expected.push(name);
    }
    node.kill();
    let _node = grange.up();
    let users = grange.run(&["users", "list", "--json"]).ok().json();
    let names: Vec<_> = users.as_array().unwrap().iter().map(|user| user["name"].clone()).collect();
    assert_eq!(names, expected);
}
