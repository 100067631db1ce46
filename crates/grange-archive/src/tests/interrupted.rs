//! Checks that meet a bad copy, a replica that is away, or the end of their process.

use std::sync::atomic::Ordering;

use grange_base::worker::Step;
use grange_base::{Clock, Shutdown, Size, Trigger};
use grange_db::{AUDIT_WORK, State};
use grange_model::{Actor, AuditKind, AuditState, Verdict};
use grange_testkit::until;
use tempfile::TempDir;

use super::bed::{Bed, anna, file, named, settings};
use crate::Settings;

const FILES: usize = 6;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_copy_that_cannot_be_read_is_a_ballot_and_all_others_are_checked() {
    for kind in [AuditKind::Checksum, AuditKind::Challenge] {
        let bed = Bed::new().await;
        bed.fill(FILES).await;
        *bed.one.refused.lock().unwrap() = Some(named(&file(2)));
        let mut found = None;
        // A challenge picks files by chance.
        for _ in 0..20 {
            let started = bed.archive.start_audit("one", kind, &anna()).await.unwrap();
            let row = bed.archive.wait_audit(started.id).await.unwrap();
            assert_eq!(row.state, AuditState::Done, "{row:?}");
            if kind == AuditKind::Checksum {
                assert_eq!((row.found.files, row.found.ok, row.found.corrupt), (6, 5, 1), "{row:?}");
            }
            let status = bed.archive.status(&named(&file(2))).await.unwrap().unwrap();
            let one = status.holdings.into_iter().find(|one| one.replica.as_str() == "one").unwrap();
            found = Some((one.verdict, one.checksum));
            if one.verdict == Verdict::Corrupt {
                break;
            }
        }
        assert_eq!(found, Some((Verdict::Corrupt, Some("unreadable".to_owned()))), "{kind}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_check_of_a_replica_that_is_away_says_why_and_ends_only_for_a_person() {
    for (actor, ended) in [(anna(), AuditState::Failed), (Actor::system(), AuditState::Running)] {
        let (clock, hand) = Clock::test("2026-01-01T12:00:00Z".parse().unwrap());
        let bed = Bed::at(TempDir::new().unwrap(), settings(), clock).await;
        bed.fill(FILES).await;
        bed.one.down.store(true, Ordering::SeqCst);
        let started = bed.archive.start_audit("one", AuditKind::Checksum, &actor).await.unwrap();
        bed.archive.audit_step(&Shutdown::never()).await.unwrap();
        let row = bed.archive.audit(started.id).await.unwrap();
        assert_eq!(row.state, AuditState::Running);
        assert!(row.last_error.as_ref().unwrap().contains("cannot reach gate"), "{row:?}");
        hand.advance(std::time::Duration::from_secs(61));
        bed.archive.audit_step(&Shutdown::never()).await.unwrap();
        let row = bed.archive.audit(started.id).await.unwrap();
        assert_eq!(row.state, ended);
        assert!(row.last_error.as_ref().unwrap().contains("cannot reach gate"), "{row:?}");
        let missing: u64 = bed.archive.overview().await.unwrap().iter().map(|one| one.missing).sum();
        assert_eq!(missing, 0, "nothing is said of copies that nobody could look at");
        if ended == AuditState::Running {
            bed.one.down.store(false, Ordering::SeqCst);
            let row = bed.archive.wait_audit(started.id).await.unwrap();
            assert_eq!((row.state, row.found.ok, row.last_error), (AuditState::Done, 6, None));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_gives_a_check_back_at_once_and_copies_never_wait_for_one() {
    let bed = Bed::new().await;
    bed.fill(FILES).await;
    bed.two.down.store(true, Ordering::SeqCst);
    assert!(!bed.store("late", b"late").await.stored);
    bed.one.stuck.store(true, Ordering::SeqCst);
    let started = bed.archive.start_audit("one", AuditKind::Checksum, &anna()).await.unwrap();
    let (archive, trigger) = (bed.archive.clone(), Trigger::new());
    let stop = trigger.listener();
    let before = bed.one.checksums.load(Ordering::SeqCst);
    let check = tokio::spawn(async move { archive.audit_step(&stop).await.unwrap() });
    until("the check reads", async || bed.one.checksums.load(Ordering::SeqCst) > before).await;
    // The other replica comes back while the check stands still.
    bed.two.down.store(false, Ordering::SeqCst);
    assert_eq!(bed.archive.store_step(&Shutdown::never()).await.unwrap(), Step::More);
    assert!(bed.archive.status(&named("late")).await.unwrap().unwrap().proven());
    trigger.pull();
    check.await.unwrap();
    let work = bed.archive.db().work().find(AUDIT_WORK, &started.id.to_string()).await.unwrap().unwrap();
    assert_eq!((work.state, work.attempts), (State::Ready, 0), "another process takes it up now");
    bed.one.stuck.store(false, Ordering::SeqCst);
    let row = bed.archive.wait_audit(started.id).await.unwrap();
    assert_eq!((row.state, row.found.ok), (AuditState::Done, 7));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_check_keeps_its_progress_by_bytes_and_lets_the_check_of_a_person_pass() {
    let (clock, hand) = Clock::test("2026-01-01T12:00:00Z".parse().unwrap());
    // Ten seconds are 3 kB here: two or three of the six files.
    let slow =
        Settings { check_bytes_per_second: Size(300), check_spread: "0s".parse().unwrap(), ..settings() };
    let bed = Bed::at(TempDir::new().unwrap(), slow, clock).await;
    bed.fill(FILES).await;
    let time = tokio::spawn(async move {
        loop {
            if hand.sleepers() > 0 {
                hand.advance(std::time::Duration::from_secs(1));
            }
            tokio::task::yield_now().await;
        }
    });
    let calendar = bed.archive.start_audit("one", AuditKind::Checksum, &Actor::system()).await.unwrap();
    bed.archive.audit_step(&Shutdown::never()).await.unwrap();
    let row = bed.archive.audit(calendar.id).await.unwrap();
    assert!((1..6).contains(&row.found.files) && row.position.is_some(), "{row:?}");
    let asked = bed.archive.start_audit("two", AuditKind::List, &anna()).await.unwrap();
    bed.archive.audit_step(&Shutdown::never()).await.unwrap();
    assert_eq!(bed.archive.audit(asked.id).await.unwrap().state, AuditState::Done);
    let row = bed.archive.wait_audit(calendar.id).await.unwrap();
    assert_eq!((row.found.files, row.found.ok), (6, 6));
    time.abort();
}

/// What the machine of a replica lacks for a moment is no fault of its copies.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_short_of_descriptors_has_no_corrupt_copies() {
    let bed = Bed::new().await;
    bed.fill(3).await;
    bed.one.short.store(4, Ordering::SeqCst);
    let started = bed.archive.start_audit("one", AuditKind::Checksum, &anna()).await.unwrap();
    bed.archive.audit_step(&Shutdown::never()).await.unwrap();
    let row = bed.archive.audit(started.id).await.unwrap();
    assert_eq!(row.state, AuditState::Running, "{row:?}");
    assert!(row.last_error.clone().unwrap().contains("too many open files"), "{row:?}");
    let row = bed.archive.wait_audit(started.id).await.unwrap();
    assert_eq!((row.state, row.found.ok, row.found.corrupt), (AuditState::Done, 3, 0), "{row:?}");
    assert_eq!(bed.archive.db().findings().list(true, 100).await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_cannot_even_be_looked_at_is_replaced() {
    let bed = Bed::new().await;
    bed.fill(2).await;
    *bed.one.refused.lock().unwrap() = Some(named(&file(1)));
    let started = bed.archive.start_audit("one", AuditKind::Checksum, &anna()).await.unwrap();
    assert_eq!(bed.archive.wait_audit(started.id).await.unwrap().found.corrupt, 1);
    let report = bed.repair().await;
    assert_eq!((report.done, report.failed), (1, 0), "{report:?}");
    assert_eq!(bed.attic("one"), 1);
    assert!(bed.archive.status(&named(&file(1))).await.unwrap().unwrap().proven());
}
