//! The database is gone; the replicas are not.

use super::bed::{Bed, content, file, named, settings};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_are_made_again_from_the_replicas_and_contradictions_are_told() {
    let bed = Bed::new().await;
    bed.fill(8).await;
    bed.archive.write_witness().await.unwrap();
    let before = bed.archive.status(&named(&file(3))).await.unwrap().unwrap();
    bed.archive.db().close().await;
    let dir = bed.dir;
    drop(bed.archive);
    for name in ["grange.db", "grange.db-wal", "grange.db-shm"] {
        let _ = std::fs::remove_file(dir.path().join(name));
    }
    let at =
        |replica: &str, n: usize| dir.path().join("replicas").join(replica).join("filedir").join(file(n));
    let overwrite = |path: std::path::PathBuf, bytes: &[u8]| {
        std::fs::remove_file(&path).unwrap();
        std::fs::write(path, bytes).unwrap();
    };
    // Outvoted by two; missing on one; every copy different: no majority.
    overwrite(at("one", 0), b"damaged");
    std::fs::remove_file(at("two", 1)).unwrap();
    overwrite(at("one", 2), b"this");
    overwrite(at("two", 2), b"that");
    let bed = Bed::on(dir, settings()).await;
    let rebuilt = bed.archive.rebuild("anna").await.unwrap();
    assert_eq!((rebuilt.found, rebuilt.entered, rebuilt.incomplete), (8, 7, 2), "{rebuilt:?}");
    assert_eq!(rebuilt.conflicts.len(), 1);
    assert_eq!(
        (rebuilt.conflicts[0].name.as_str(), rebuilt.conflicts[0].answers.len()),
        (file(2).as_str(), 3)
    );
    assert_eq!(bed.archive.status(&named(&file(2))).await.unwrap(), None, "not guessed");
    let after = bed.archive.status(&named(&file(3))).await.unwrap().unwrap();
    assert_eq!((after.file.checksums, after.file.size), (before.file.checksums, before.file.size));
    assert!(after.proven());
    for n in (0..8).filter(|n| *n != 2) {
        assert_eq!(bed.got(&file(n)).await, content(n), "{n}");
    }
    let report = bed.repair().await;
    assert_eq!((report.done, report.failed), (2, 0), "{report:?}");
    // The old witnesses are known as those of a lost log; the new log holds.
    let report = bed.archive.verify_log().await.unwrap();
    assert!(report.ok && report.witnesses.len() == 3, "{report:?}");
    assert!(report.witnesses.iter().all(|one| one.of_lost_log));
    let again = bed.archive.rebuild("anna").await.unwrap();
    assert_eq!((again.entered, again.conflicts.len()), (0, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_whose_name_a_refused_deposit_took_is_named_and_entered_after_its_withdrawal() {
    let bed = Bed::new().await;
    bed.fill(2).await;
    bed.archive.db().close().await;
    let dir = bed.dir;
    drop(bed.archive);
    for name in ["grange.db", "grange.db-wal", "grange.db-shm"] {
        let _ = std::fs::remove_file(dir.path().join(name));
    }
    let bed = Bed::on(dir, settings()).await;
    assert!(!bed.store(&file(0), b"other bytes").await.stored);
    let rebuilt = bed.archive.rebuild("anna").await.unwrap();
    assert_eq!((rebuilt.found, rebuilt.entered), (2, 1), "{rebuilt:?}");
    assert_eq!(rebuilt.refused_deposits, [named(&file(0))]);
    bed.archive.withdraw_deposit(&named(&file(0)), &super::bed::anna()).await.unwrap();
    let rebuilt = bed.archive.rebuild("anna").await.unwrap();
    assert_eq!((rebuilt.entered, rebuilt.refused_deposits.len()), (1, 0), "{rebuilt:?}");
    assert_eq!(bed.got(&file(0)).await, content(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn copies_that_contradict_the_checksum_replica_are_not_believed_because_the_record_is_lost() {
    let bed = Bed::new().await;
    bed.fill(1).await;
    let before = bed.archive.status(&named(&file(0))).await.unwrap().unwrap();
    for replica in ["one", "two"] {
        bed.damage(replica, &file(0), |bytes| bytes[0] ^= 1);
    }
    bed.archive.db().close().await;
    let dir = bed.dir;
    drop(bed.archive);
    for name in ["grange.db", "grange.db-wal", "grange.db-shm"] {
        let _ = std::fs::remove_file(dir.path().join(name));
    }
    let bed = Bed::on(dir, settings()).await;
    assert_eq!(bed.archive.rebuild("anna").await.unwrap().entered, 1);
    let after = bed.archive.status(&named(&file(0))).await.unwrap().unwrap();
    assert_eq!(after.file.checksums, before.file.checksums, "what the depositor handed in");
    assert!(!after.proven());
    assert_eq!(bed.repair().await.done, 0, "two people must decide");
}

/// The node stops, its database is lost, and it starts with an empty one.
async fn without_database(bed: Bed) -> Bed {
    bed.archive.db().close().await;
    let dir = bed.dir;
    drop(bed.archive);
    for name in ["grange.db", "grange.db-wal", "grange.db-shm"] {
        let _ = std::fs::remove_file(dir.path().join(name));
    }
    Bed::on(dir, settings()).await
}

/// Steps after the loss of the database, in any order: the answer is about what happened and not about the order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_lost_database_the_log_is_verified_alike_whatever_was_done_before_the_rebuild() {
    for longer in [false, true] {
        for witnessed_again in [false, true] {
            let bed = Bed::new().await;
            bed.fill(3).await;
            bed.archive.write_witness().await.unwrap();
            let bed = without_database(bed).await;
            if longer {
                // The new log becomes longer than the old one was.
                for n in 0..6 {
                    bed.store(&format!("new-{n}"), b"new").await;
                }
            }
            if witnessed_again {
                bed.archive.checkpoint().await.unwrap();
            }
            let before = bed.archive.verify_log().await.unwrap();
            assert!(!before.ok, "the old log is gone, and nobody has said so");
            assert!(
                before.problems.iter().all(|problem| problem.contains("grange archive rebuild")),
                "{before:?}"
            );
            bed.archive.rebuild("anna").await.unwrap();
            let after = bed.archive.verify_log().await.unwrap();
            assert!(after.ok && after.witnesses.iter().all(|one| one.of_lost_log), "{longer}: {after:?}");
            let size = bed.archive.db().logbook().size().await.unwrap();
            bed.archive.rebuild("anna").await.unwrap();
            assert_eq!(bed.archive.db().logbook().size().await.unwrap(), size, "recorded once");
            assert!(bed.archive.verify_log().await.unwrap().ok);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_replaced_by_an_older_copy_is_told_from_a_log_that_was_rewritten() {
    let bed = Bed::new().await;
    bed.fill(2).await;
    let copy = bed.dir.path().join("older.db");
    bed.archive.db().backup_to(&copy).await.unwrap();
    bed.fill(6).await;
    bed.archive.write_witness().await.unwrap();
    bed.archive.db().close().await;
    let dir = bed.dir;
    drop(bed.archive);
    for name in ["grange.db-wal", "grange.db-shm"] {
        let _ = std::fs::remove_file(dir.path().join(name));
    }
    std::fs::rename(&copy, dir.path().join("grange.db")).unwrap();
    let bed = Bed::on(dir, settings()).await;
    for n in 0..9 {
        bed.store(&format!("new-{n}"), b"new").await;
    }
    let before = bed.archive.verify_log().await.unwrap();
    assert!(before.problems.iter().all(|problem| problem.contains("older copy")), "{before:?}");
    bed.archive.rebuild("anna").await.unwrap();
    let after = bed.archive.verify_log().await.unwrap();
    assert!(after.ok, "{after:?}");
    // A rebuild acknowledges the loss of a log and never that this one was rewritten.
    bed.archive.checkpoint().await.unwrap();
    for replica in ["one", "two"] {
        let folder = bed.dir.path().join("replicas").join(replica).join("filedir");
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.to_string_lossy().contains("grange-witness-") {
                std::fs::remove_file(path).unwrap();
            }
        }
    }
    bed.archive.write_witness().await.unwrap();
    let rewrite = "UPDATE log_leaves SET body = replace(body, 'anna', 'bert') WHERE number = 1;
                   DELETE FROM log_checkpoints";
    let path = bed.dir.path().join("grange.db");
    tokio::task::spawn_blocking(move || grange_testkit::sqlite::execute(&path, rewrite)).await.unwrap();
    bed.archive.rebuild("anna").await.unwrap();
    let report = bed.archive.verify_log().await.unwrap();
    assert!(report.problems.iter().any(|problem| problem.contains("it was rewritten since")), "{report:?}");
}
