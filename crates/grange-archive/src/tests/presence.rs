//! Disks that are not mounted, were emptied, or are others: the replica is away, and nothing is judged or written there.

use std::path::PathBuf;

use grange_base::Shutdown;
use grange_model::{AuditKind, AuditState};
use tempfile::TempDir;

use super::bed::{Bed, anna, content, file, named, settings};
use crate::{Marker, Second, Settings};

const FILES: usize = 6;

fn folder(dir: &TempDir, replica: &str) -> PathBuf {
    dir.path().join("replicas").join(replica)
}

fn marker(dir: &TempDir, replica: &str) -> Marker {
    let text = std::fs::read(folder(dir, replica).join("grange-replica.json")).unwrap();
    serde_json::from_slice(&text).unwrap()
}

/// The node stops, `change` happens to its disks, and it starts again.
async fn restarted(bed: Bed, settings: Settings, change: impl FnOnce(&TempDir)) -> Bed {
    bed.archive.db().close().await;
    let dir = bed.dir;
    drop(bed.archive);
    change(&dir);
    Bed::on(dir, settings).await
}

fn empty(dir: &TempDir, replica: &str) {
    std::fs::rename(folder(dir, replica), dir.path().join("unmounted")).unwrap();
    std::fs::create_dir(folder(dir, replica)).unwrap();
}

fn mount(dir: &TempDir, replica: &str) {
    std::fs::remove_dir_all(folder(dir, replica)).unwrap();
    std::fs::rename(dir.path().join("unmounted"), folder(dir, replica)).unwrap();
}

async fn away(bed: &Bed) -> Vec<(String, String)> {
    let overview = bed.archive.overview().await.unwrap();
    let away = overview.into_iter().filter_map(|one| Some((one.replica.name.to_string(), one.replica.away?)));
    away.collect()
}

async fn missing(bed: &Bed) -> u64 {
    bed.archive.overview().await.unwrap().iter().map(|one| one.missing).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_replica_bears_the_marker_of_its_archive_from_its_first_day() {
    let bed = Bed::new().await;
    let id = bed.archive.db().places().archive_id().await.unwrap().unwrap();
    for replica in ["one", "two", "three"] {
        assert_eq!(marker(&bed.dir, replica), Marker::new(&id, &replica.parse().unwrap()));
    }
    let other = Bed::new().await;
    assert_ne!(marker(&other.dir, "one").archive, id);
    let path = bed.source("x", b"x");
    let store = crate::Store::new(named("grange-replica.json"), "anna");
    assert_eq!(bed.archive.store(&path, &store).await.unwrap_err().code(), "archive-reserved-name");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_empty_or_unmounted_folder_is_a_replica_that_is_away_and_is_never_filled() {
    for replica in ["one", "three"] {
        let bed = Bed::new().await;
        bed.fill(FILES).await;
        let bed = restarted(bed, settings(), |dir| empty(dir, replica)).await;
        let found = away(&bed).await;
        assert_eq!((found.len(), found[0].0.as_str()), (1, replica), "{found:?}");
        assert!(found[0].1.contains("mount the disk") && found[0].1.contains("replicas adopt"), "{found:?}");
        for kind in [AuditKind::List, AuditKind::Checksum] {
            let started = bed.archive.start_audit(replica, kind, &anna()).await.unwrap();
            bed.archive.audit_step(&Shutdown::never()).await.unwrap();
            let row = bed.archive.audit(started.id).await.unwrap();
            assert_eq!((row.state, row.found.missing), (AuditState::Running, 0), "{row:?}");
            assert!(row.last_error.unwrap().contains("is away"));
            bed.archive.cancel_audit(started.id, &anna()).await.unwrap();
        }
        let report = bed.archive.repair_all(&anna(), |_| Second::None, false).await.unwrap();
        assert!(report.copies.is_empty() && report.away == [replica], "{report:?}");
        let log = bed.archive.verify_log().await.unwrap();
        assert!(log.ok && log.away == [replica], "{log:?}");
        assert_eq!(bed.archive.rebuild("anna").await.unwrap().away, [replica]);
        // What is stored meanwhile waits, and one copy that is looked at again is not called missing.
        let outcome = bed.store("late", b"late").await;
        assert_eq!((outcome.stored, outcome.unproven[0].replica.as_str()), (false, replica));
        assert!(outcome.unproven[0].reason.contains("is away"), "{outcome:?}");
        bed.archive.recheck(&named(&file(0)), "anna").await.unwrap();
        assert_eq!(missing(&bed).await, 0);
        let made = std::fs::read_dir(folder(&bed.dir, replica)).unwrap().count();
        assert_eq!(made, 0, "nothing is made below a mount point");
        // Mounted again: all is as it was, and what waited comes.
        let bed = restarted(bed, settings(), |dir| mount(dir, replica)).await;
        assert_eq!(away(&bed).await, []);
        bed.work().await;
        let rows = bed.archive.audit_all(AuditKind::Checksum, &anna()).await.unwrap();
        let ok: u64 = rows.iter().map(|row| row.found.ok).sum();
        assert_eq!(ok, 3 * (FILES as u64 + 1), "{rows:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_makes_no_folder_in_the_place_of_a_replica_that_is_known() {
    for replica in ["one", "three"] {
        let bed = Bed::new().await;
        bed.fill(FILES).await;
        let unmount =
            |dir: &TempDir| std::fs::rename(folder(dir, replica), dir.path().join("unmounted")).unwrap();
        let bed = restarted(bed, settings(), unmount).await;
        assert_eq!(away(&bed).await.len(), 1);
        assert!(!bed.store("late", b"late").await.stored);
        bed.archive.rebuild("anna").await.unwrap();
        bed.archive.write_witness().await.unwrap();
        assert!(!folder(&bed.dir, replica).exists(), "{replica}");
        std::fs::create_dir(folder(&bed.dir, replica)).unwrap();
        mount(&bed.dir, replica);
        bed.archive.probe_replicas().await;
        bed.work().await;
        assert_eq!(away(&bed).await, []);
        assert!(bed.archive.status(&named("late")).await.unwrap().unwrap().proven());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_goes_while_the_node_runs_is_noticed() {
    let bed = Bed::new().await;
    bed.fill(FILES).await;
    empty(&bed.dir, "two");
    let started = bed.archive.start_audit("two", AuditKind::List, &anna()).await.unwrap();
    bed.archive.audit_step(&Shutdown::never()).await.unwrap();
    let row = bed.archive.audit(started.id).await.unwrap();
    assert_eq!((row.state, row.found.missing), (AuditState::Running, 0), "{row:?}");
    assert!(!bed.store("late", b"late").await.stored);
    assert_eq!((away(&bed).await.len(), missing(&bed).await), (1, 0));
    mount(&bed.dir, "two");
    bed.work().await;
    let row = bed.archive.wait_audit(started.id).await.unwrap();
    assert_eq!((row.state, row.found.ok, away(&bed).await), (AuditState::Done, FILES as u64 + 1, vec![]));
}

/// Below a mount point without its disk nothing is found, which says nothing about any copy.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_blames_no_copy_on_a_disk_that_is_not_mounted() {
    let bed = Bed::new().await;
    bed.fill(FILES).await;
    let leaves = bed.archive.db().logbook().size().await.unwrap();
    empty(&bed.dir, "one");
    let name = named(&file(2));
    assert_eq!(bed.got(&file(2)).await, content(2));
    assert_eq!(bed.archive.read_at(&name, 3, 5).await.unwrap(), content(2)[3..8]);
    let (_, got) = bed.archive.open_file(&name).await.unwrap();
    assert_eq!((got.replica.as_str(), got.passed_over.len()), ("two", 1));
    // With no disk left the file is not lost either, and a reader who can wait does so.
    let filedir = folder(&bed.dir, "two").join("filedir");
    std::fs::rename(&filedir, bed.dir.path().join("aside")).unwrap();
    let dest = bed.dir.path().join("dest");
    for error in [
        bed.archive.get(&name, &dest).await.unwrap_err(),
        bed.archive.read_at(&name, 3, 5).await.unwrap_err(),
        bed.archive.open_file(&name).await.unwrap_err(),
    ] {
        assert!(matches!(error, crate::Error::NoCopy { away: true, .. }), "{error:?}");
        assert_eq!(grange_base::Retry::Soon, error.retry());
    }
    assert_eq!(bed.archive.db().findings().list(true, 100).await.unwrap(), []);
    assert_eq!(
        bed.archive.db().logbook().size().await.unwrap(),
        leaves,
        "the log is not written for readers"
    );
    // Mounted again, a copy that is really gone is blamed, and no reader waits for it.
    std::fs::rename(bed.dir.path().join("aside"), &filedir).unwrap();
    mount(&bed.dir, "one");
    for replica in ["one", "two"] {
        std::fs::remove_file(bed.path(replica, &file(2))).unwrap();
    }
    let error = bed.archive.get(&name, &dest).await.unwrap_err();
    assert!(matches!(error, crate::Error::NoCopy { away: false, .. }), "{error:?}");
    assert_eq!(bed.archive.db().findings().list(false, 100).await.unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_emptied_replica_is_filled_again_once_a_person_adopts_it() {
    for replica in ["two", "three"] {
        let bed = Bed::new().await;
        bed.fill(FILES).await;
        let bed = restarted(bed, settings(), |dir| empty(dir, replica)).await;
        assert_eq!(away(&bed).await.len(), 1);
        let places = bed.archive.adopt_replica(replica, &anna()).await.unwrap();
        assert_eq!(places, [folder(&bed.dir, replica).display().to_string()]);
        assert_eq!(away(&bed).await, []);
        let rows = bed.archive.audit_all(AuditKind::List, &anna()).await.unwrap();
        assert_eq!(rows.iter().map(|row| row.found.missing).sum::<u64>(), FILES as u64);
        assert_eq!(bed.repair().await.done, FILES as u64);
        let rows = bed.archive.audit_all(AuditKind::Checksum, &anna()).await.unwrap();
        assert_eq!(rows.iter().map(|row| row.found.ok).sum::<u64>(), 3 * FILES as u64);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_disks_that_were_exchanged_are_both_away() {
    let bed = Bed::new().await;
    bed.fill(FILES).await;
    let bed = restarted(bed, settings(), |dir| {
        let aside = dir.path().join("aside");
        std::fs::rename(folder(dir, "one"), &aside).unwrap();
        std::fs::rename(folder(dir, "two"), folder(dir, "one")).unwrap();
        std::fs::rename(aside, folder(dir, "two")).unwrap();
    })
    .await;
    let found = away(&bed).await;
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].1.contains("is that of replica two"), "{found:?}");
}

/// No marker and no row says so: the files themselves prove a replica, an empty folder proves nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_archive_older_than_markers_gets_them_where_its_files_are() {
    let bed = Bed::new().await;
    bed.fill(FILES).await;
    for replica in bed.archive.replicas() {
        bed.archive.db().places().adopt(replica.row.id, Vec::new(), &anna()).await.unwrap();
    }
    let bed = restarted(bed, settings(), |dir| {
        for replica in ["one", "two", "three"] {
            std::fs::remove_file(folder(dir, replica).join("grange-replica.json")).unwrap();
        }
        empty(dir, "two");
    })
    .await;
    let found = away(&bed).await;
    assert_eq!((found.len(), found[0].0.as_str()), (1, "two"), "{found:?}");
    assert_eq!(marker(&bed.dir, "one").replica.as_str(), "one");
    assert_eq!(marker(&bed.dir, "three").replica.as_str(), "three");
    let bed = restarted(bed, settings(), |dir| mount(dir, "two")).await;
    assert_eq!((away(&bed).await, marker(&bed.dir, "two").replica.as_str()), (vec![], "two"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_more_is_taken_and_one_in_the_place_of_another_is_not() {
    let at = |url: String| grange_blob::Settings {
        url,
        min_space_left: grange_base::Size(0),
        ..Default::default()
    };
    let with = |url: String| {
        let mut settings = settings();
        settings.replicas.get_mut(&"one".parse().unwrap()).unwrap().at = vec![at(url)];
        settings
    };
    let bed = Bed::new().await;
    bed.fill(FILES).await;
    let bed = restarted(bed, with("file:replicas/one,more".to_owned()), |_| {}).await;
    assert_eq!(away(&bed).await, []);
    assert!(bed.dir.path().join("more/grange-replica.json").exists());
    let bed = restarted(bed, with("file:elsewhere".to_owned()), |_| {}).await;
    let found = away(&bed).await;
    assert!(found.len() == 1 && found[0].1.contains("elsewhere"), "{found:?}");
    // Moved with its files and its marker it is the same replica.
    let bed = restarted(bed, with("file:elsewhere".to_owned()), |dir| {
        assert!(!dir.path().join("elsewhere").exists());
        std::fs::rename(folder(dir, "one"), dir.path().join("elsewhere")).unwrap();
    })
    .await;
    assert_eq!(away(&bed).await, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_database_finds_its_replicas_again_by_their_markers() {
    let bed = Bed::new().await;
    bed.fill(FILES).await;
    let id = marker(&bed.dir, "one").archive;
    let bed = restarted(bed, settings(), |dir| {
        for name in ["grange.db", "grange.db-wal", "grange.db-shm"] {
            let _ = std::fs::remove_file(dir.path().join(name));
        }
    })
    .await;
    assert_eq!((away(&bed).await, bed.archive.db().places().archive_id().await.unwrap()), (vec![], Some(id)));
    assert_eq!(bed.archive.rebuild("anna").await.unwrap().entered, FILES as u64);
    assert_eq!(bed.got(&file(1)).await, content(1));
}

fn remove_database(dir: &TempDir) {
    for name in ["grange.db", "grange.db-wal", "grange.db-shm"] {
        let _ = std::fs::remove_file(dir.path().join(name));
    }
}

/// The database is lost while the disk of a replica is not mounted: nobody knows what lies on that disk.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_database_takes_no_unmounted_replica_for_a_new_one() {
    for replica in ["two", "three"] {
        let bed = Bed::new().await;
        bed.fill(FILES).await;
        let bed = restarted(bed, settings(), |dir| {
            remove_database(dir);
            empty(dir, replica);
        })
        .await;
        let found = away(&bed).await;
        assert_eq!((found.len(), found[0].0.as_str()), (1, replica), "{found:?}");
        assert!(found[0].1.contains("restored or made again") && found[0].1.contains("adopt"), "{found:?}");
        let made = || std::fs::read_dir(folder(&bed.dir, replica)).unwrap().count();
        assert_eq!(made(), 0, "no marker and no folder is made below a mount point");
        let rebuilt = bed.archive.rebuild("anna").await.unwrap();
        assert_eq!((rebuilt.away, rebuilt.entered), (vec![replica.to_owned()], FILES as u64));
        assert_eq!((missing(&bed).await, made()), (0, 0));
        bed.work().await;
        assert_eq!((bed.repair().await.done, made()), (0, 0), "nothing is filled there");
        // Mounted again it is what it was; after a rebuild that read every replica a new one needs nobody.
        let bed = restarted(bed, settings(), |dir| mount(dir, replica)).await;
        assert_eq!(away(&bed).await, []);
        assert_eq!(bed.archive.rebuild("anna").await.unwrap().away, Vec::<String>::new());
        let rows = bed.archive.audit_all(AuditKind::Checksum, &anna()).await.unwrap();
        assert_eq!(rows.iter().map(|row| row.found.ok).sum::<u64>(), 3 * FILES as u64, "{rows:?}");
        let bed = restarted(bed, four(), |_| {}).await;
        assert_eq!((away(&bed).await, marker(&bed.dir, "four").replica.as_str()), (vec![], "four"));
    }
}

fn four() -> Settings {
    let mut settings = settings();
    settings.replicas.insert("four".parse().unwrap(), crate::ReplicaSettings::default());
    settings
}

/// The only copy that can be asked is rotten. The good one is on the disk that is not mounted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_database_takes_no_rotten_copy_for_the_record_while_another_replica_is_away() {
    let bytes_only = || {
        let mut settings = settings();
        settings.replicas.retain(|name, _| name.as_str() != "three");
        settings
    };
    let bed = Bed::with(bytes_only()).await;
    bed.fill(1).await;
    bed.damage("one", &file(0), |bytes| bytes[0] ^= 1);
    let bed = restarted(bed, bytes_only(), |dir| {
        remove_database(dir);
        empty(dir, "two");
    })
    .await;
    let rebuilt = bed.archive.rebuild("anna").await.unwrap();
    assert_eq!((rebuilt.entered, rebuilt.conflicts.len()), (0, 1), "{rebuilt:?}");
    assert_eq!(rebuilt.away, ["two"]);
}

/// The backup is older than the declaration of a replica.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restored_database_takes_no_unmounted_replica_for_a_new_one() {
    let bed = Bed::new().await;
    bed.fill(FILES).await;
    let copy = bed.dir.path().join("copy.db");
    bed.archive.db().backup_to(&copy).await.unwrap();
    let bed = restarted(bed, four(), |_| {}).await;
    assert_eq!((away(&bed).await, marker(&bed.dir, "four").replica.as_str()), (vec![], "four"));
    let bed = restarted(bed, four(), |dir| {
        remove_database(dir);
        std::fs::copy(dir.path().join("copy.db"), dir.path().join("grange.db")).unwrap();
    })
    .await;
    bed.archive.db().settle_restored("copy.db", Vec::new(), &anna()).await.unwrap();
    assert_eq!(away(&bed).await, [], "its marker is there");
    let bed = restarted(bed, four(), |dir| empty(dir, "four")).await;
    let found = away(&bed).await;
    assert_eq!((found.len(), found[0].0.as_str()), (1, "four"), "{found:?}");
    // A person knows that it is new.
    bed.archive.adopt_replica("four", &anna()).await.unwrap();
    assert_eq!(away(&bed).await, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_marker_without_the_files_it_stands_for_is_a_replica_that_is_away_until_a_person_adopts_it() {
    for (replica, inside) in [("one", "filedir"), ("three", "checksums.journal")] {
        let bed = Bed::new().await;
        bed.fill(FILES).await;
        std::fs::rename(folder(&bed.dir, replica).join(inside), bed.dir.path().join("aside")).unwrap();
        let started = bed.archive.start_audit(replica, AuditKind::List, &anna()).await.unwrap();
        bed.archive.audit_step(&Shutdown::never()).await.unwrap();
        let row = bed.archive.audit(started.id).await.unwrap();
        assert_eq!((row.state, row.found.missing), (AuditState::Running, 0), "{replica}: {row:?}");
        bed.archive.cancel_audit(started.id, &anna()).await.unwrap();
        let found = away(&bed).await;
        assert_eq!((found.len(), found[0].0.as_str()), (1, replica), "{found:?}");
        assert!(found[0].1.contains(inside) && found[0].1.contains("replicas adopt"), "{found:?}");
        assert_eq!(
            (bed.archive.rebuild("anna").await.unwrap().away, missing(&bed).await),
            (vec![replica.to_owned()], 0)
        );
        assert!(!bed.store("late", b"late").await.stored);
        assert!(!folder(&bed.dir, replica).join(inside).exists(), "nothing is made in its place");
        // Put back, it is as it was.
        std::fs::rename(bed.dir.path().join("aside"), folder(&bed.dir, replica).join(inside)).unwrap();
        bed.archive.probe_replicas().await;
        assert_eq!(away(&bed).await, []);
        bed.work().await;
        // Lost for good, it is filled again.
        std::fs::rename(folder(&bed.dir, replica).join(inside), bed.dir.path().join("lost")).unwrap();
        bed.archive.probe_replicas().await;
        assert_eq!(away(&bed).await.len(), 1);
        bed.archive.adopt_replica(replica, &anna()).await.unwrap();
        assert_eq!(away(&bed).await, []);
        let rows = bed.archive.audit_all(AuditKind::List, &anna()).await.unwrap();
        assert_eq!(rows.iter().map(|row| row.found.missing).sum::<u64>(), FILES as u64 + 1);
        assert_eq!(bed.repair().await.done, FILES as u64 + 1);
    }
}
