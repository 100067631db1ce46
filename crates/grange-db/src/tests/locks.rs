//! A node keeps its locks on its SQLite file: another program that opens and closes the file loses nobody's commits.
//!
//! SQLite's locks belong to the process. Closing any descriptor of the file drops them all, and the next program that
//! opens and closes the database then takes itself for the last user and deletes the write-ahead log.

use std::path::Path;
use std::process::Command;

use grange_base::Clock;
use grange_model::Role;
use tempfile::TempDir;

use crate::conformance::Bed;
use crate::{Db, Settings};

/// Another program, the way an operator's script or a curious person reads the database.
fn another_program_reads(path: &Path) {
    let script = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('select count(*) from users').fetchall(); c.close()";
    let status = Command::new("python3").args(["-c", script]).arg(path).status().unwrap();
    assert!(status.success());
}

/// The files as they would be found after `kill -9`: the process is still there, so they are copied.
async fn users_after_a_kill(dir: &Path) -> Vec<String> {
    let found = TempDir::new().unwrap();
    for name in ["grange.db", "grange.db-wal"] {
        if dir.join(name).exists() {
            // Read by another program, which a test cannot do in its own process without dropping the locks.
            assert!(Command::new("cp").arg(dir.join(name)).arg(found.path()).status().unwrap().success());
        }
    }
    let db = Db::open(&Settings::default(), found.path(), Clock::system()).await.unwrap();
    let users = db.users().list().await.unwrap();
    db.close().await;
    users.into_iter().map(|user| user.name.to_string()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_program_that_opens_and_closes_the_database_loses_no_later_commit() {
    if Command::new("python3").arg("--version").output().is_err() {
        return grange_testkit::skipped("python3");
    }
    let acts: [(&str, u8); 4] = [("nothing else", 0), ("status", 1), ("backup", 2), ("a second handle", 3)];
    for (doing, act) in acts {
        let bed = Bed::sqlite().await;
        let (dir, settings) = (bed.dir.path(), Settings::default());
        let path = dir.join("grange.db");
        bed.user("before", Role::Viewer).await;
        match act {
            1 => assert!(Db::status(&settings, dir).await.unwrap().pending.is_empty()),
            2 => bed.db.backup_to(&dir.join("copy.db")).await.unwrap(),
            3 => Db::open(&settings, dir, Clock::system()).await.unwrap().close().await,
            _ => {}
        }
        another_program_reads(&path);
        assert!(dir.join("grange.db-wal").exists(), "{doing}: the log of the running node was deleted");
        bed.user("after", Role::Viewer).await;
        another_program_reads(&path);
        bed.user("later", Role::Viewer).await;
        assert_eq!(users_after_a_kill(dir).await, ["after", "before", "later"], "{doing}");
    }
}
