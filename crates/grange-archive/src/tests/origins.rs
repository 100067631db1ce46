//! Where the bytes of a copy come from: a depositor's file, a stream, another copy; and what a dry run says of it.

use std::sync::atomic::Ordering;

use grange_model::{AuditKind, RepairState};
use serde_json::json;

use super::bed::{Bed, anna, content, file, named, settings};
use crate::{Second, Settings, Store};

/// Loses every copy of a file that was stored, with the given source, and counts the copies that a repair creates.
async fn made_again_from(source: impl FnOnce(&Bed) -> String) -> u64 {
    let bed = Bed::new().await;
    bed.two.down.store(true, Ordering::SeqCst);
    assert!(!bed.store(&file(0), &content(0)).await.stored, "the row keeps its source");
    bed.two.down.store(false, Ordering::SeqCst);
    let status = bed.archive.status(&named(&file(0))).await.unwrap().unwrap();
    let new = grange_db::NewFile {
        name: named(&file(0)),
        size: status.file.size,
        checksums: status.file.checksums,
        source: Some(source(&bed)),
    };
    let files = bed.archive.db().files();
    let begun = files.begin(new, "test", std::time::Duration::ZERO, grange_db::IfStored::Skip).await.unwrap();
    assert!(matches!(begun, grange_db::Begun::Claimed(..)), "{begun:?}");
    std::fs::remove_file(bed.path("one", &file(0))).unwrap();
    bed.archive.audit_all(AuditKind::List, &anna()).await.unwrap();
    bed.repair().await.done
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_file_is_made_again_from_the_depositors_file_if_it_is_here_and_as_long() {
    let told = |node: &str, path: &std::path::Path| json!({ "node": node, "path": path }).to_string();
    for node in ["node1", "command"] {
        let made = made_again_from(|bed| told(node, &bed.source("original", &content(0)))).await;
        assert_eq!(made, 2, "from a file that {node} was given");
    }
    let made = made_again_from(|bed| told("node2", &bed.source("original", &content(0)))).await;
    assert_eq!(made, 0, "a path on another machine means nothing here");
    let made = made_again_from(|bed| told("node1", &bed.source("original", b"shorter"))).await;
    assert_eq!(made, 0, "a file of another length is another file");
    let made = made_again_from(|bed| told("node1", &bed.dir.path().join("gone"))).await;
    assert_eq!(made, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dry_run_counts_nothing_as_done_or_waiting_and_changes_nothing() {
    let bed = Bed::new().await;
    bed.fill(3).await;
    bed.damage("one", &file(0), |bytes| bytes[0] ^= 1);
    std::fs::remove_file(bed.path("two", &file(1))).unwrap();
    bed.archive.audit_all(AuditKind::Checksum, &anna()).await.unwrap();
    let dry = bed.archive.repair_all(&anna(), |_| Second::None, true).await.unwrap();
    assert_eq!((dry.dry_run, dry.copies.len()), (true, 2));
    assert_eq!((dry.done, dry.failed, dry.waiting), (0, 0, 0));
    assert!(dry.copies.iter().all(|copy| copy.repair.is_none() && copy.state == RepairState::Waiting));
    assert_eq!(bed.archive.repairs(None, 9).await.unwrap(), []);
    for _ in 0..2 {
        let report = bed.archive.repair_all(&anna(), |_| Second::None, false).await.unwrap();
        assert_eq!((report.dry_run, report.failed, report.waiting), (false, 0, 1));
    }
    assert_eq!(bed.archive.repairs(None, 9).await.unwrap().len(), 2, "asked for once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_from_a_stream_are_kept_exactly_while_no_replica_has_them() {
    let bed = Bed::new().await;
    let spooled = || std::fs::read_dir(bed.dir.path().join("spool")).map_or(0, Iterator::count);
    let store = |name: &str| Store::new(named(name), "anna");
    bed.two.down.store(true, Ordering::SeqCst);
    let outcome = bed.archive.store_reader(&b"bytes"[..], &store("a")).await.unwrap();
    assert!(!outcome.stored && outcome.unproven.len() == 1, "{outcome:?}");
    assert_eq!(spooled(), 0, "replica one has the bytes");
    bed.one.down.store(true, Ordering::SeqCst);
    let outcome = bed.archive.store_reader(&b"bytes"[..], &store("b")).await.unwrap();
    assert_eq!(outcome.unproven.len(), 2, "{outcome:?}");
    assert_eq!(spooled(), 1, "a checksum replica has no bytes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_announced_checksum_of_another_kind_is_compared_and_not_recorded() {
    let bed = Bed::with(Settings { checksums: vec![grange_model::Algorithm::Sha512], ..settings() }).await;
    let path = bed.source("a", b"truth");
    let (_, sums) = grange_blob::sum_path(&path, &[grange_model::Algorithm::Md5]).await.unwrap();
    let outcome = bed.archive.store(&path, &Store::new(named("a"), "anna").expecting(sums)).await.unwrap();
    assert!(outcome.stored && outcome.checksums.md5.is_none(), "{outcome:?}");
    let other = bed.source("b", b"other");
    let error = bed.archive.store(&other, &Store::new(named("b"), "anna").expecting(sums)).await.unwrap_err();
    assert_eq!(error.code(), "archive-wrong-checksum");
}
