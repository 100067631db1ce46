//! Checks that read more than they are named for, or find what no list shows.

use std::sync::atomic::Ordering;

use grange_base::Period;
use grange_model::{AuditKind, AuditState, FindingKind, ReplicaKind, UploadState, Verdict};

use super::bed::{Bed, anna, content, file, named, settings, with_replicas};
use crate::Settings;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_comes_back_is_read_by_the_next_list_check() {
    let bed = Bed::new().await;
    bed.fill(4).await;
    let aside = |n: usize| bed.dir.path().join(format!("aside-{n}"));
    for n in [1, 2] {
        std::fs::rename(bed.path("two", &file(n)), aside(n)).unwrap();
    }
    let list = async || {
        let started = bed.archive.start_audit("two", AuditKind::List, &anna()).await.unwrap();
        bed.archive.wait_audit(started.id).await.unwrap().found
    };
    assert_eq!(list().await.missing, 2);
    let read = bed.two.checksums.load(Ordering::SeqCst);
    std::fs::rename(aside(1), bed.path("two", &file(1))).unwrap();
    let mut bytes = content(2);
    bytes[7] ^= 1;
    std::fs::write(bed.path("two", &file(2)), bytes).unwrap();
    let found = list().await;
    assert_eq!((found.missing, found.ok, found.corrupt), (0, 3, 1), "{found:?}");
    assert_eq!(bed.two.checksums.load(Ordering::SeqCst) - read, 2, "the others are not read");
    let on_two = async |n: usize| {
        let status = bed.archive.status(&named(&file(n))).await.unwrap().unwrap();
        let holding = status.holdings.iter().find(|one| one.replica.as_str() == "two").unwrap().clone();
        (holding.state, holding.verdict)
    };
    assert_eq!(on_two(1).await, (UploadState::UploadCompleted, Verdict::Ok));
    assert_eq!(on_two(2).await.1, Verdict::Corrupt);
    bed.archive.db().findings().look(std::time::Duration::MAX / 2).await.unwrap();
    let open = bed.archive.db().findings().list(false, 9).await.unwrap();
    let open: Vec<_> = open.iter().map(|one| one.kind).collect();
    assert_eq!(open, [FindingKind::CorruptCopy], "no finding of a missing copy is left");
    assert_eq!(list().await.corrupt, 1);
    assert_eq!(bed.two.checksums.load(Ordering::SeqCst) - read, 2, "once is enough");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_challenge_counts_what_was_compared_and_what_differed() {
    let bed = Bed::new().await;
    bed.fill(5).await;
    let challenged = async || {
        let rows = bed.archive.audit_all(AuditKind::Challenge, &anna()).await.unwrap();
        rows.iter().map(|row| (row.found.files, row.found.ok, row.found.corrupt)).collect::<Vec<_>>()
    };
    // Chosen by chance: from some file on, in their order.
    for (files, ok, corrupt) in challenged().await {
        assert!((1..=5).contains(&files) && files == ok && corrupt == 0, "{files} {ok} {corrupt}");
    }
    bed.damage("one", &file(4), |bytes| bytes[0] ^= 1);
    let found = challenged().await;
    assert_eq!(
        (found[0].2, found[0].0 - found[0].1),
        (1, 1),
        "the last file is among those chosen: {found:?}"
    );
    let refused = bed.archive.start_audit("three", AuditKind::Challenge, &anna()).await.unwrap_err();
    assert_eq!(refused.code(), "archive-no-bytes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_challenge_without_another_replica_is_refused_and_one_that_nobody_answers_fails() {
    let alone = with_replicas(&[("one", ReplicaKind::Bitarchive), ("three", ReplicaKind::Checksum)]);
    let bed = Bed::with(Settings { challenge_every: Period::from_secs(1), ..alone }).await;
    bed.fill(1).await;
    let refused = bed.archive.start_audit("one", AuditKind::Challenge, &anna()).await.unwrap_err();
    assert!(
        refused.code() == "archive-no-peer" && refused.to_string().contains("--kind checksum"),
        "{refused}"
    );
    bed.archive.tick().await.unwrap();

    let bed = Bed::new().await;
    bed.fill(2).await;
    bed.two.down.store(true, Ordering::SeqCst);
    let started = bed.archive.start_audit("one", AuditKind::Challenge, &anna()).await.unwrap();
    let row = bed.archive.wait_audit(started.id).await.unwrap();
    assert_eq!((row.state, row.found.files), (AuditState::Failed, 0));
    assert!(row.last_error.unwrap().contains("no other replica answers"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_challenge_is_answered_by_another_replica_when_the_first_is_away() {
    let (bytes, sums) = (ReplicaKind::Bitarchive, ReplicaKind::Checksum);
    let bed =
        Bed::with(with_replicas(&[("one", bytes), ("two", bytes), ("four", bytes), ("three", sums)])).await;
    bed.fill(1).await;
    for away in ["two", "four"] {
        bed.gates[away].down.store(true, Ordering::SeqCst);
        let started = bed.archive.start_audit("one", AuditKind::Challenge, &anna()).await.unwrap();
        let row = bed.archive.wait_audit(started.id).await.unwrap();
        assert_eq!((row.state, row.found.ok), (AuditState::Done, 1), "{row:?}");
        bed.gates[away].down.store(false, Ordering::SeqCst);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_in_a_subfolder_is_a_stray_until_it_is_gone() {
    let bed = Bed::with(Settings { check_page: 1, ..settings() }).await;
    bed.fill(2).await;
    let folder = bed.dir.path().join("replicas/one/filedir/2019");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("old.warc.gz"), b"old").unwrap();
    for kind in [AuditKind::List, AuditKind::Checksum] {
        let rows = bed.archive.audit_all(kind, &anna()).await.unwrap();
        let extra: Vec<_> =
            rows.iter().map(|row| (row.replica.as_str(), row.found.extra, row.found.ok)).collect();
        assert_eq!(extra, [("one", 1, 2), ("three", 0, 2), ("two", 0, 2)], "{kind}");
    }
    let strays = bed.archive.db().strays().list(None, 9).await.unwrap();
    assert_eq!(strays.len(), 1);
    assert_eq!(
        (strays[0].name.clone(), strays[0].size),
        (folder.join("old.warc.gz").display().to_string(), 3)
    );
    // The comparison of names at a start does not forget it.
    bed.archive.look_for_strays().await.unwrap();
    assert_eq!(bed.archive.db().strays().count().await.unwrap(), 1);
    let findings = async || {
        bed.archive.db().findings().look(std::time::Duration::MAX / 2).await.unwrap();
        let open = bed.archive.db().findings().list(false, 9).await.unwrap();
        open.iter().map(|one| one.kind).collect::<Vec<_>>()
    };
    assert_eq!(findings().await, [FindingKind::StrayFiles]);
    std::fs::rename(folder.join("old.warc.gz"), bed.dir.path().join("replicas/one/filedir/old.warc.gz"))
        .unwrap();
    std::fs::remove_dir(&folder).unwrap();
    bed.archive.rebuild("anna").await.unwrap();
    bed.archive.audit_all(AuditKind::List, &anna()).await.unwrap();
    assert_eq!(bed.archive.db().strays().count().await.unwrap(), 0);
    assert!(!findings().await.contains(&FindingKind::StrayFiles));
    assert_eq!(bed.got("old.warc.gz").await, b"old");
}
