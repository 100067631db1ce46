//! Where the bytes of a copy come from when it is made again: from every place that has them, one after the other.

use std::sync::atomic::Ordering;

use grange_model::{AuditKind, FindingKind, ReplicaKind, UploadState, Verdict};

use super::bed::{Bed, anna, content, file, named, with_replicas};

/// Three with bytes: a file is on two of them, and the third has to be filled. The depositor's file is gone.
async fn two_of_three() -> Bed {
    let (bytes, sums) = (ReplicaKind::Bitarchive, ReplicaKind::Checksum);
    let bed =
        Bed::with(with_replicas(&[("one", bytes), ("two", bytes), ("four", bytes), ("three", sums)])).await;
    bed.gates["four"].down.store(true, Ordering::SeqCst);
    assert!(!bed.store(&file(0), &content(0)).await.stored);
    std::fs::remove_file(bed.dir.path().join("incoming").join(file(0))).unwrap();
    bed.gates["four"].down.store(false, Ordering::SeqCst);
    bed
}

async fn state_of(bed: &Bed, replica: &str) -> (UploadState, Verdict) {
    let status = bed.archive.status(&named(&file(0))).await.unwrap().unwrap();
    let holding = status.holdings.iter().find(|one| one.replica.as_str() == replica).unwrap();
    (holding.state, holding.verdict)
}

const PROVEN: (UploadState, Verdict) = (UploadState::UploadCompleted, Verdict::Ok);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_is_made_from_the_next_proven_one_when_a_replica_is_away() {
    for away in ["one", "two"] {
        let bed = two_of_three().await;
        bed.gates[away].down.store(true, Ordering::SeqCst);
        bed.work().await;
        assert_eq!(state_of(&bed, "four").await, PROVEN, "{away} was away");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proven_copy_that_went_bad_is_passed_over_as_a_source_and_reported() {
    for (bad, change) in [("one", 0), ("two", 1), ("one", 2)] {
        let bed = two_of_three().await;
        match change {
            0 => bed.damage(bad, &file(0), |bytes| bytes[3] ^= 1),
            1 => bed.damage(bad, &file(0), |bytes| bytes.truncate(5)),
            _ => std::fs::remove_file(bed.path(bad, &file(0))).unwrap(),
        }
        bed.work().await;
        assert_eq!(state_of(&bed, "four").await, PROVEN, "{bad} {change}");
        assert_eq!(std::fs::read(bed.path("four", &file(0))).unwrap(), content(0));
        // Tried first, it is a finding; the other one was not asked for anything.
        let found = bed.archive.db().findings().list(false, 10).await.unwrap();
        let found: Vec<_> = found.iter().map(|one| (one.kind, one.subject.clone())).collect();
        let expected = (FindingKind::UnservableCopy, format!("{} on one", file(0)));
        assert_eq!(found, if bad == "one" { vec![expected] } else { vec![] }, "{bad} {change}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_copy_is_repaired_while_the_first_source_is_away() {
    let bed = two_of_three().await;
    bed.work().await;
    std::fs::remove_file(bed.path("four", &file(0))).unwrap();
    bed.archive.audit_all(AuditKind::List, &anna()).await.unwrap();
    bed.gates["one"].down.store(true, Ordering::SeqCst);
    let report = bed.repair().await;
    assert_eq!((report.done, report.failed), (1, 0), "{report:?}");
    assert_eq!(state_of(&bed, "four").await, PROVEN);
}
