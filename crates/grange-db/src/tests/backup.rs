//! Backups: whole, consistent, never in place of something else.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;

use crate::conformance::Bed;
use crate::{Counts, Db, Offer, Settings, backup_due, list_backups, prune_backups};

async fn open(path: &Path) -> Db {
    let settings = Settings { url: format!("sqlite:{}", path.display()), ..Settings::default() };
    Db::open(&settings, Path::new("/"), grange_base::Clock::system()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_made_while_others_write_holds_one_moment() {
    let bed = Bed::sqlite().await;
    let stop = Arc::new(AtomicBool::new(false));
    // Every act offers a pair: a backup with half a pair would not be one moment.
    let writers: Vec<_> = (0..4)
        .map(|w| {
            let (db, stop) = (bed.db.clone(), Arc::clone(&stop));
            tokio::spawn(async move {
                let mut acknowledged = 0_u64;
                while !stop.load(Ordering::Relaxed) {
                    let pair = ["left", "right"]
                        .map(|side| Offer::new(side, format!("{w}-{acknowledged}"), json!("x".repeat(500))));
                    db.work().offer_many(pair.into()).await.unwrap();
                    acknowledged += 1;
                }
                acknowledged
            })
        })
        .collect();
    let mut copies = Vec::new();
    for n in 0..5 {
        let before = bed.db.work().counts("left").await.unwrap().ready;
        let path = bed.dir.path().join(format!("copy-{n}.db"));
        bed.db.backup_to(&path).await.unwrap();
        copies.push((before, path));
    }
    stop.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.unwrap();
    }
    for (before, path) in copies {
        let copy = open(&path).await;
        let (left, right) =
            (copy.work().counts("left").await.unwrap(), copy.work().counts("right").await.unwrap());
        assert_eq!(left, right);
        assert!(left.ready >= before, "what was acknowledged before is in it");
        copy.close().await;
    }
}

/// A database that is put back gives the numbers of rules again that were made since.
#[tokio::test]
async fn rules_made_after_a_restore_are_noticed() {
    let bed = Bed::sqlite().await;
    let rule = |prefix: &str| vec![json!({ "surt_prefix": prefix, "decision": "allow" })];
    let anna = grange_model::Actor::new("anna", "cli");
    bed.db.access_rules().add(rule("com,a)"), "", &anna).await.unwrap();
    let path = bed.dir.path().join("before.db");
    bed.db.backup_to(&path).await.unwrap();
    // Each goes on from the same state, at its own time.
    let copy = open(&path).await;
    let mut made = Vec::new();
    for (db, prefixes) in [(&bed.db, ["com,b)", "com,c)"]), (&copy, ["com,d)", "com,c)"])] {
        let mut ids = Vec::new();
        for prefix in prefixes {
            bed.hand.advance(Duration::from_millis(5));
            ids.extend(
                db.access_rules().add(rule(prefix), "", &anna).await.unwrap().iter().map(|row| row.id),
            );
        }
        made.push((ids, db.access_rules().mark().await.unwrap()));
    }
    assert_eq!(made[0].0, made[1].0, "the same numbers");
    assert_ne!(made[0].1, made[1].1, "other rules");
    copy.close().await;
}

#[tokio::test]
async fn a_backup_never_overwrites() {
    let bed = Bed::sqlite().await;
    let path = bed.dir.path().join("letter.txt");
    fs::write(&path, "dear").unwrap();
    let error = bed.db.backup_to(&path).await.unwrap_err();
    assert_eq!(error.code(), "backup-exists");
    assert_eq!(fs::read_to_string(&path).unwrap(), "dear");
    let error = bed.db.backup_to(&bed.dir.path().join("no/such/folder.db")).await.unwrap_err();
    assert_eq!(error.code(), "backup-failed");
    assert!(error.to_string().contains("no/such/folder.db"), "{error}");
    // What a crash left aside is in nobody's way.
    let path = bed.dir.path().join("copy.db");
    fs::write(bed.dir.path().join("copy.db.part"), "half a backup").unwrap();
    bed.db.backup_to(&path).await.unwrap();
    assert!(path.is_file() && !bed.dir.path().join("copy.db.part").exists());
    assert_eq!(open(&path).await.work().counts("x").await.unwrap(), Counts::default());
}

#[tokio::test]
async fn the_newest_are_kept_and_other_files_left_alone() {
    let bed = Bed::sqlite().await;
    let folder = bed.dir.path().join("backups");
    assert_eq!(list_backups(&folder).unwrap(), Vec::<std::path::PathBuf>::new());
    let mut made = Vec::new();
    for _ in 0..4 {
        made.push(bed.db.backup_into(&folder).await.unwrap());
        bed.hand.advance(Duration::from_millis(1));
    }
    for name in ["grange.db", "grange-notes.db", "grange-20260101T000000.123Z.db.part", "letter.txt"] {
        fs::write(folder.join(name), "mine").unwrap();
    }
    assert_eq!(list_backups(&folder).unwrap(), made);
    assert_eq!(prune_backups(&folder, 9).unwrap(), Vec::<std::path::PathBuf>::new());
    assert_eq!(prune_backups(&folder, 1).unwrap(), made[..3]);
    assert_eq!(list_backups(&folder).unwrap(), made[3..]);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 5);
}

#[tokio::test]
async fn a_backup_is_due_when_the_newest_is_old_enough() {
    let bed = Bed::sqlite().await;
    let folder = bed.dir.path().join("backups");
    let day = Duration::from_hours(24);
    assert!(backup_due(&folder, day, bed.clock.now()).unwrap());
    assert!(!backup_due(&folder, Duration::ZERO, bed.clock.now()).unwrap());
    bed.db.backup_into(&folder).await.unwrap();
    assert!(!backup_due(&folder, day, bed.clock.now()).unwrap());
    bed.hand.advance(Duration::from_millis(24 * 60 * 60 * 1000 - 1));
    assert!(!backup_due(&folder, day, bed.clock.now()).unwrap());
    bed.hand.advance(Duration::from_millis(1));
    assert!(backup_due(&folder, day, bed.clock.now()).unwrap());
    assert!(!backup_due(&folder, Duration::MAX, bed.clock.now()).unwrap());
    // Made while the clock was ahead: it neither suppresses the next ones nor demands one after the other.
    fs::write(folder.join("grange-29990101T000000.000Z.db"), "x").unwrap();
    assert!(backup_due(&folder, day, bed.clock.now()).unwrap());
    bed.db.backup_into(&folder).await.unwrap();
    assert!(!backup_due(&folder, day, bed.clock.now()).unwrap());
    bed.hand.advance(day);
    assert!(backup_due(&folder, day, bed.clock.now()).unwrap());
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_can_read_the_files() {
    use std::os::unix::fs::PermissionsExt as _;
    let bed = Bed::sqlite().await;
    bed.user("berta", grange_model::Role::Viewer).await;
    bed.db.backup_to(&bed.dir.path().join("copy.db")).await.unwrap();
    for entry in fs::read_dir(bed.dir.path()).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{}", entry.path().display());
    }
}
