//! Damage on the disk: found by checks, blamed on the right copy, never served, mended.

use std::sync::atomic::Ordering;

use grange_base::Shutdown;
use grange_db::Found;
use grange_model::{Actor, AuditKind, LogEvent, RepairState, Verdict};

use super::bed::{Bed, anna, content, file, named, settings};
use crate::{Second, Settings};

const FILES: usize = 12;

async fn check(bed: &Bed) -> Vec<(String, Found)> {
    let rows = bed.archive.audit_all(AuditKind::Checksum, &anna()).await.unwrap();
    rows.into_iter().map(|row| (row.replica.to_string(), row.found)).collect()
}

fn sums(found: &[(String, Found)]) -> (u64, u64, u64, u64) {
    found.iter().fold((0, 0, 0, 0), |(ok, missing, corrupt, undecided), (_, one)| {
        (ok + one.ok, missing + one.missing, corrupt + one.corrupt, undecided + one.undecided)
    })
}

/// On each of the two bitarchives: a flipped bit, a truncated file, a deleted one, a swapped pair, a grown one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_kind_of_damage_is_found_blamed_on_the_right_copy_and_mended() {
    for replica in ["one", "two"] {
        let bed = Bed::new().await;
        bed.fill(FILES).await;
        bed.damage(replica, &file(0), |bytes| bytes[500] ^= 4);
        bed.damage(replica, &file(1), |bytes| bytes.truncate(100));
        std::fs::remove_file(bed.path(replica, &file(2))).unwrap();
        let (a, b) = (bed.path(replica, &file(3)), bed.path(replica, &file(4)));
        let aside = bed.dir.path().join("aside");
        std::fs::rename(&a, &aside).unwrap();
        std::fs::rename(&b, &a).unwrap();
        std::fs::rename(&aside, &b).unwrap();
        bed.damage(replica, &file(5), |bytes| bytes.push(0));
        // Before any check a wrong copy is not served.
        for n in 0..FILES {
            assert_eq!(bed.got(&file(n)).await, content(n), "{replica} {n}");
        }
        let found = check(&bed).await;
        assert_eq!(sums(&found), (3 * FILES as u64 - 6, 1, 5, 0), "{replica}: {found:?}");
        for (name, one) in &found {
            let expected = if name == replica { (1, 5) } else { (0, 0) };
            assert_eq!((one.missing, one.corrupt), expected, "{name}");
        }
        assert_eq!(bed.events(LogEvent::Corrupt).await, 5);
        assert_eq!(bed.events(LogEvent::Missing).await, 1);
        let dry = bed.archive.repair_all(&anna(), |_| Second::None, true).await.unwrap();
        assert_eq!((dry.copies.len(), dry.done), (6, 0));
        let report = bed.repair().await;
        assert_eq!((report.done, report.failed, report.waiting), (6, 0, 0), "{report:?}");
        assert_eq!(bed.attic(replica), 5);
        let found = check(&bed).await;
        assert_eq!(sums(&found), (3 * FILES as u64, 0, 0, 0), "{found:?}");
        assert_eq!(bed.repair().await.copies.len(), 0);
        let report = bed.archive.verify_log().await.unwrap();
        assert!(report.ok, "{report:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_check_finds_what_is_missing_or_of_another_size_without_reading() {
    let bed = Bed::with(Settings { check_page: 3, ..settings() }).await;
    bed.fill(FILES).await;
    std::fs::remove_file(bed.path("one", &file(0))).unwrap();
    std::fs::remove_file(bed.path("one", &file(11))).unwrap();
    bed.damage("one", &file(5), |bytes| bytes.truncate(7));
    std::fs::write(bed.path("one", "stranger"), b"?").unwrap();
    let asked = bed.one.checksums.load(Ordering::SeqCst);
    let rows = bed.archive.audit_all(AuditKind::List, &anna()).await.unwrap();
    let one = rows.iter().find(|row| row.replica.as_str() == "one").unwrap().found;
    assert_eq!((one.files, one.ok, one.missing, one.corrupt, one.extra), (10, 9, 2, 1, 1));
    assert_eq!(bed.one.checksums.load(Ordering::SeqCst), asked);
    let overview = bed.archive.overview().await.unwrap();
    let one = overview.iter().find(|row| row.replica.name.as_str() == "one").unwrap();
    assert_eq!((one.completed, one.missing, one.corrupt), (9, 2, 1));
    assert!(one.replica.listed_at.is_some() && one.replica.checked_at.is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_short_page_is_not_the_end_of_a_list() {
    let bed = Bed::new().await;
    bed.fill(FILES).await;
    bed.one.page_most.store(5, Ordering::SeqCst);
    for kind in [AuditKind::List, AuditKind::Checksum] {
        let rows = bed.archive.audit_all(kind, &anna()).await.unwrap();
        for row in rows {
            assert_eq!((row.found.ok, row.found.missing), (FILES as u64, 0), "{row:?}");
        }
    }
    let rebuilt = bed.archive.rebuild("anna").await.unwrap();
    assert_eq!((rebuilt.found, rebuilt.entered), (FILES as u64, 0));
}

/// The edited line breaks the journal's chain; with the chain made anew nobody has a majority, and people are asked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_edited_together_with_its_journal_line_is_never_believed() {
    let bed = Bed::new().await;
    bed.fill(3).await;
    let name = file(1);
    bed.damage("one", &name, |bytes| bytes[0] ^= 1);
    let journal = bed.dir.path().join("replicas/three/checksums.journal");
    let before = std::fs::read_to_string(&journal).unwrap();
    let status = bed.archive.status(&named(&name)).await.unwrap().unwrap();
    let copy = bed.path("one", &name);
    let (_, forged) = grange_blob::sum_path(&copy, grange_model::Algorithm::ALL).await.unwrap();
    let mut text = before.clone();
    for algorithm in grange_model::Algorithm::ALL {
        let hex =
            |sums: &grange_model::Checksums| data_encoding::HEXLOWER.encode(sums.get(*algorithm).unwrap());
        text = text.replace(&hex(&status.file.checksums), &hex(&forged));
    }
    assert_ne!(text, before);
    std::fs::write(&journal, &text).unwrap();
    let found = check(&bed).await;
    assert_eq!(sums(&found), (7, 0, 2, 0), "the copy and the line are both blamed: {found:?}");
    assert_eq!(bed.got(&name).await, content(1));
    let report = bed.repair().await;
    assert_eq!((report.done, report.failed), (2, 0), "{report:?}");
    assert_eq!(sums(&check(&bed).await), (9, 0, 0, 0));

    // Now by somebody who writes the whole journal anew.
    bed.damage("one", &name, |bytes| bytes[0] ^= 1);
    std::fs::remove_file(&journal).unwrap();
    let fresh = crate::Journal::open(journal.parent().unwrap()).unwrap();
    for n in 0..3 {
        let status = bed.archive.status(&named(&file(n))).await.unwrap().unwrap();
        let checksums = if n == 1 { forged } else { status.file.checksums };
        let (name, at) = (named(&file(n)), status.file.created_at);
        fresh.append(&crate::Line { name, size: status.file.size, checksums, removed: false, at }).unwrap();
    }
    let found = check(&bed).await;
    // The first replica was judged by what the journal had said before; the journal's own turn takes that back.
    let (_, missing, corrupt, undecided) = sums(&found);
    assert_eq!((missing, corrupt, undecided), (0, 0, 2), "{found:?}");
    let status = bed.archive.status(&named(&name)).await.unwrap().unwrap();
    let verdicts: Vec<_> = status.holdings.iter().map(|one| (one.replica.as_str(), one.verdict)).collect();
    let (ok, unknown) = (Verdict::Ok, Verdict::Unknown);
    assert_eq!(verdicts, [("one", unknown), ("three", unknown), ("two", ok)]);
    assert_eq!(bed.got(&name).await, content(1), "the copy that fits what was recorded is served");
    let report = bed.repair().await;
    assert_eq!((report.done, report.failed), (0, 1), "nothing is mended by guess: {report:?}");
    assert!(report.copies[0].error.as_ref().unwrap().contains("grange repair decide"), "{report:?}");
    assert_eq!(bed.events(LogEvent::Undecided).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_check_that_is_cut_short_goes_on_where_it_was() {
    let bed = Bed::with(Settings { check_page: 4, ..settings() }).await;
    bed.fill(20).await;
    let before = bed.one.checksums.load(Ordering::SeqCst);
    bed.one.checksums_left.store(10, Ordering::SeqCst);
    let started = bed.archive.start_audit("one", AuditKind::Checksum, &anna()).await.unwrap();
    bed.archive.audit_step(&Shutdown::never()).await.unwrap();
    let cut = bed.archive.audit(started.id).await.unwrap();
    assert_eq!((cut.found.files, cut.position.as_deref()), (8, Some(file(7).as_str())));
    bed.one.down.store(false, Ordering::SeqCst);
    let row = bed.archive.wait_audit(started.id).await.unwrap();
    assert_eq!((row.found.files, row.found.ok), (20, 20));
    let read = bed.one.checksums.load(Ordering::SeqCst) - before;
    assert!((20..=24).contains(&read), "{read} copies were read for 20");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_corrupt_copy_leaves_its_place_only_with_two_pairs_of_eyes() {
    let bed = Bed::new().await;
    bed.fill(2).await;
    bed.damage("one", &file(0), |bytes| bytes[3] ^= 1);
    check(&bed).await;
    let report = bed.archive.repair_all(&anna(), |_| Second::None, false).await.unwrap();
    assert_eq!((report.done, report.waiting), (0, 1));
    let waiting = bed.archive.repairs(Some(RepairState::Waiting), 9).await.unwrap();
    let id = waiting[0].id;
    let error = bed.archive.confirm_repair(id, &anna()).await.unwrap_err();
    assert_eq!(error.code(), "archive-same-person");
    let wrong = Second::Credential("guess".to_owned());
    let name = named(&file(0));
    let bad =
        bed.archive.replica("one").unwrap().checksum(&name, grange_model::Algorithm::Sha512).await.unwrap();
    let crate::replica::Answer::Sums(bad) = bad else { panic!("{bad:?}") };
    let error = bed.archive.correct("one", &name, &bad, &wrong, &anna()).await.unwrap_err();
    assert_eq!((error.code(), bed.attic("one")), ("archive-credential", 0));
    let good = bed.archive.status(&name).await.unwrap().unwrap().file.checksums;
    let right = Second::Person("bert".to_owned());
    let error = bed.archive.correct("two", &name, &good, &right, &anna()).await.unwrap_err();
    assert_eq!(error.code(), "archive-copy-is-good");
    let row = bed.archive.confirm_repair(id, &Actor::new("bert", "web")).await.unwrap();
    assert_eq!((row.state, bed.attic("one")), (RepairState::Done, 1));
    assert_eq!(sums(&check(&bed).await), (6, 0, 0, 0));
    // The same by hand, and with the bytes handed over.
    bed.damage("two", &file(1), |bytes| bytes[3] ^= 1);
    let name = named(&file(1));
    let crate::replica::Answer::Sums(bad) =
        bed.archive.replica("two").unwrap().checksum(&name, grange_model::Algorithm::Sha512).await.unwrap()
    else {
        panic!("no answer")
    };
    let dest = bed.dir.path().join("evidence");
    std::fs::write(&dest, "another file").unwrap();
    let refused = bed.archive.remove_and_get("two", &name, &bad, &right, &dest, &anna()).await.unwrap_err();
    assert_eq!(refused.code(), "archive-io");
    assert_eq!(std::fs::read_to_string(&dest).unwrap(), "another file");
    std::fs::remove_file(&dest).unwrap();
    bed.archive.remove_and_get("two", &name, &bad, &right, &dest, &anna()).await.unwrap();
    assert_eq!(std::fs::read(&dest).unwrap().len(), content(1).len());
    assert_eq!((bed.attic("two"), bed.events(LogEvent::Removed).await), (1, 1));
    assert_eq!(bed.repair().await.done, 1);
    bed.damage("two", &file(1), |bytes| bytes[3] ^= 1);
    let status = bed.archive.correct("two", &name, &bad, &right, &anna()).await.unwrap();
    assert!(status.proven(), "{status:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_salted_challenge_finds_the_copy_that_is_not_read_any_more() {
    let bed = Bed::new().await;
    bed.fill(6).await;
    let rows = bed.archive.audit_all(AuditKind::Challenge, &anna()).await.unwrap();
    assert!(rows.len() == 2 && rows.iter().all(|row| row.last_error.is_none()), "{rows:?}");
    for n in 0..6 {
        bed.damage("one", &file(n), |bytes| bytes[9] ^= 9);
    }
    let mut found = 0;
    for _ in 0..20 {
        bed.archive.audit_all(AuditKind::Challenge, &anna()).await.unwrap();
        found = bed.archive.overview().await.unwrap().iter().map(|row| row.corrupt).sum();
        if found > 0 {
            break;
        }
    }
    assert!(found > 0, "a sample of random files meets one of six that are all damaged");
    assert!(bed.events(LogEvent::Challenged).await > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_calendar_finds_missing_is_made_again_and_a_corrupt_copy_waits() {
    for repair_missing in [true, false] {
        let bed = Bed::with(Settings { repair_missing, ..settings() }).await;
        bed.fill(FILES).await;
        for n in 0..3 {
            std::fs::remove_file(bed.path("one", &file(n))).unwrap();
        }
        bed.damage("one", &file(3), |bytes| bytes[0] ^= 1);
        let started = bed.archive.start_audit("one", AuditKind::List, &Actor::system()).await.unwrap();
        let row = bed.archive.wait_audit(started.id).await.unwrap();
        assert_eq!(row.found.missing, 3);
        bed.work().await;
        let present = (0..3).filter(|n| bed.path("one", &file(*n)).exists()).count();
        assert_eq!(present, if repair_missing { 3 } else { 0 });
        assert_eq!(bed.attic("one"), 0);
        let missing: u64 = bed.archive.overview().await.unwrap().iter().map(|row| row.missing).sum();
        assert_eq!(missing, if repair_missing { 0 } else { 3 });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_check_by_the_calendar_is_spread_and_gives_way_to_a_person() {
    let spread = grange_base::Period::from_secs(3600);
    let bed = Bed::with(Settings { check_page: 4, check_spread: spread, ..settings() }).await;
    bed.fill(FILES).await;
    let started = bed.archive.start_audit("one", AuditKind::Checksum, &Actor::system()).await.unwrap();
    bed.work().await;
    let resting = bed.archive.audit(started.id).await.unwrap();
    assert_eq!((resting.state, resting.found.files), (grange_model::AuditState::Running, 4));
    let asked = bed.archive.start_audit("one", AuditKind::Checksum, &anna()).await.unwrap();
    assert_ne!(asked.id, started.id);
    let row = bed.archive.wait_audit(asked.id).await.unwrap();
    assert_eq!((row.found.files, row.found.ok), (FILES as u64, FILES as u64));
    let given_up = bed.archive.audit(started.id).await.unwrap();
    assert_eq!(given_up.state, grange_model::AuditState::Cancelled);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_cannot_be_read_goes_to_the_attic_and_is_made_again() {
    let bed = Bed::new().await;
    bed.fill(3).await;
    *bed.one.unreadable.lock().unwrap() = Some(named(&file(1)));
    let found = check(&bed).await;
    assert_eq!(sums(&found), (8, 0, 1, 0), "{found:?}");
    let report = bed.repair().await;
    assert_eq!((report.done, report.failed, report.waiting), (1, 0, 0), "{report:?}");
    assert_eq!(bed.attic("one"), 1);
    assert_eq!(sums(&check(&bed).await), (9, 0, 0, 0));
    assert_eq!(bed.got(&file(1)).await, content(1));
}
