//! What audits promise: what a list or a read of a replica finds, how copies are voted on, and how a record is corrected.

use grange_model::{Actor, AuditKind, AuditState, Checksums, LogEvent, Presence, UploadState, Verdict};

use super::archive::{adopted, change, claimed, name, record, seen, start, sums, three};
use super::{Bed, LONG, SHORT, anna, on_both_engines};
use crate::{AUDIT_WORK, Adopted, Amendment, FileFilter, Found, Page, Seen, Trouble, Votes, deciding};

on_both_engines! {
    a_list_check_finds_missing_and_extra_files,
    a_checksum_check_votes_on_what_differs,
    a_check_of_a_replica_that_lost_everything_goes_on_in_stretches,
    one_check_of_a_kind_runs_at_a_time_and_ends_once,
    the_vote_over_all_decides_ties_and_absences,
    a_record_that_all_copies_contradict_is_put_right_once,
    a_copy_that_comes_back_is_read_by_the_list_check_that_finds_it,
    a_copy_that_is_being_uploaded_is_not_missing,
    an_answer_that_is_older_than_the_row_is_not_kept,
}

async fn a_list_check_finds_missing_and_extra_files(bed: &Bed) {
    let rows = three(bed).await;
    adopted(bed, &rows, 5, &[]).await;
    let (page, claim) = start(bed, &rows[0], AuditKind::List).await;
    let wrong = Seen { size: 9, ..seen("f2", None) };
    let first = Page {
        upto: Some("f2".to_owned()),
        seen: vec![seen("a", None), seen("f0", None), wrong],
        ..page.clone()
    };
    let turned = bed.db.audits().turn_page(&claim, first).await.unwrap();
    let found = Found { files: 2, bytes: 19, ok: 1, missing: 1, corrupt: 1, undecided: 0, extra: 1 };
    assert_eq!((turned.position.as_deref(), turned.found), (Some("f2"), found));
    let rest = Page { after: turned.position, seen: vec![seen("f3", None)], ..page.clone() };
    let turned = bed.db.audits().turn_page(&claim, rest).await.unwrap();
    assert_eq!((turned.position, turned.found.ok, turned.found.missing), (None, 1, 1));
    let ended = bed.db.audits().end(&claim, page.audit, AuditState::Done, None, vec![]).await.unwrap();
    assert_eq!((ended.found.missing, ended.found.corrupt, ended.found.extra), (2, 1, 1));
    assert_eq!(ended.position.as_deref(), Some("f2"));
    let f1 = bed.db.files().get(&name("f1")).await.unwrap().unwrap().holdings.remove(0);
    assert_eq!((f1.presence, f1.state, f1.checksum), (Presence::Missing, UploadState::UploadFailed, None));
    let f2 = bed.db.files().get(&name("f2")).await.unwrap().unwrap().holdings.remove(0);
    assert_eq!((f2.verdict, f2.checksum.as_deref()), (Verdict::Corrupt, Some("size=9")));
    assert!(bed.db.replicas().list().await.unwrap()[0].listed_at.is_some());
    // Missing once is told once.
    let (page, claim) = start(bed, &rows[0], AuditKind::List).await;
    bed.db.audits().turn_page(&claim, page).await.unwrap();
    let told = bed.db.logbook().of_file("f1").await.unwrap();
    assert_eq!(told.len(), 1, "{told:?}");
}

async fn a_checksum_check_votes_on_what_differs(bed: &Bed) {
    let rows = three(bed).await;
    adopted(bed, &rows, 3, &[]).await;
    let (page, claim) = start(bed, &rows[1], AuditKind::Checksum).await;
    let all = vec![seen("f0", Some(0)), seen("f1", Some(50)), seen("f2", Some(2))];
    let turned = bed.db.audits().turn_page(&claim, Page { seen: all, ..page.clone() }).await.unwrap();
    assert_eq!((turned.found.ok, turned.found.corrupt), (2, 1));
    bed.db.audits().end(&claim, page.audit, AuditState::Done, None, vec![]).await.unwrap();
    let f1 = bed.db.files().get(&name("f1")).await.unwrap().unwrap();
    let verdicts: Vec<_> = f1.holdings.iter().map(|one| one.verdict).collect();
    assert_eq!(verdicts, [Verdict::Ok, Verdict::Corrupt, Verdict::Ok]);
    // The checksum replica says the same as the bad copy: two against two.
    bed.db
        .audits()
        .observe(f1.file.id, bed.clock.now(), vec![(rows[2].id, Some(deciding(&sums(50))))], "anna")
        .await
        .unwrap();
    let f1 = bed.db.files().get(&name("f1")).await.unwrap().unwrap();
    let verdicts: Vec<_> = f1.holdings.iter().map(|one| (one.verdict, one.state)).collect();
    let undecided = (Verdict::Unknown, UploadState::UploadFailed);
    assert_eq!(verdicts, [(Verdict::Ok, UploadState::UploadCompleted), undecided, undecided]);
    let back = vec![(rows[1].id, Some(deciding(&sums(1)))), (rows[2].id, None)];
    let votes = bed.db.audits().observe(f1.file.id, bed.clock.now(), back, "anna").await.unwrap();
    assert_eq!((votes.corrupt, votes.undecided), (0, 0));
    let f1 = bed.db.files().get(&name("f1")).await.unwrap().unwrap();
    let states: Vec<_> = f1.holdings.iter().map(|one| (one.state, one.presence)).collect();
    let good = (UploadState::UploadCompleted, Presence::Ok);
    assert_eq!(states, [good, good, (UploadState::UploadFailed, Presence::Missing)]);
}

async fn a_check_of_a_replica_that_lost_everything_goes_on_in_stretches(bed: &Bed) {
    let rows = three(bed).await;
    let many = (0..5_200_u32).map(|n| Adopted {
        name: name(&format!("g{n:05}")),
        size: 1,
        checksums: sums(1),
        held: vec![(rows[0].id, deciding(&sums(1)))],
        away: Vec::new(),
    });
    assert_eq!(bed.db.files().adopt(many.collect(), vec![]).await.unwrap(), 5_200);
    let (page, claim) = start(bed, &rows[0], AuditKind::Checksum).await;
    let last = Seen { size: 1, ..seen("g05199", Some(1)) };
    let turned =
        bed.db.audits().turn_page(&claim, Page { seen: vec![last.clone()], ..page.clone() }).await.unwrap();
    assert_eq!(
        (turned.position.as_deref(), turned.found.missing, turned.found.ok),
        (Some("g04999"), 5_000, 0)
    );
    let rest = Page { after: turned.position, seen: vec![last], ..page };
    let turned = bed.db.audits().turn_page(&claim, rest).await.unwrap();
    assert_eq!((turned.position, turned.found.missing, turned.found.ok), (None, 199, 1));
    assert_eq!(bed.db.logbook().size().await.unwrap(), 5_199 + 2);
}

async fn one_check_of_a_kind_runs_at_a_time_and_ends_once(bed: &Bed) {
    let rows = three(bed).await;
    let (page, claim) = start(bed, &rows[0], AuditKind::List).await;
    let same = bed.db.audits().start(rows[0].id, AuditKind::List, &anna()).await.unwrap();
    assert_eq!(same.id, page.audit);
    let other = bed.db.audits().start(rows[0].id, AuditKind::Checksum, &anna()).await.unwrap();
    assert_ne!(other.id, page.audit);
    let cancelled = bed.db.audits().cancel(page.audit, &anna()).await.unwrap();
    assert_eq!(cancelled.state, AuditState::Cancelled);
    let error = bed.db.audits().turn_page(&claim, page.clone()).await.unwrap_err();
    assert_eq!(error.code(), "lease-lost");
    assert_eq!(bed.db.audits().cancel(page.audit, &anna()).await.unwrap_err().code(), "not-found");
    assert_eq!(bed.db.audits().list(9).await.unwrap().len(), 2);
    assert!(
        bed.db.audits().last_start(rows[0].id, AuditKind::Checksum, bed.clock.now()).await.unwrap().is_some()
    );
    let before = bed.clock.now() - LONG;
    let ahead = bed.db.audits().last_start(rows[0].id, AuditKind::Checksum, before).await.unwrap();
    assert_eq!(ahead, None, "begun while the clock was ahead");
    let last = bed.db.audits().last_start(rows[0].id, AuditKind::List, bed.clock.now()).await.unwrap();
    assert_eq!(last, None, "a cancelled check does not put off the next");
    assert_eq!(bed.db.audits().last_start(rows[1].id, AuditKind::List, bed.clock.now()).await.unwrap(), None);
    // A check by the calendar gives way to a person's, and never the other way round.
    let system = Actor::system();
    let calendar = bed.db.audits().start(rows[1].id, AuditKind::Checksum, &system).await.unwrap();
    let asked = bed.db.audits().start(rows[1].id, AuditKind::Checksum, &anna()).await.unwrap();
    let given_up = bed.db.audits().get(calendar.id).await.unwrap().unwrap();
    assert_eq!((given_up.state, asked.state), (AuditState::Cancelled, AuditState::Running));
    let again = bed.db.audits().start(rows[1].id, AuditKind::Checksum, &system).await.unwrap();
    assert_eq!(again.id, asked.id);
}

async fn the_vote_over_all_decides_ties_and_absences(bed: &Bed) {
    let rows = three(bed).await;
    let other = [
        (1, 0, Some(90)), // corrupt
        (2, 0, Some(90)),
        (2, 1, Some(90)), // two against two
        (3, 0, None),
        (3, 1, None),
        (3, 2, None),
        (4, 0, Some(90)),
        (4, 1, Some(90)),
        (4, 2, Some(90)), // every copy contradicts the record
    ];
    adopted(bed, &rows, 6, &other).await;
    let votes = bed.db.audits().vote_all().await.unwrap();
    assert_eq!(votes, Votes { files: 6, decided: 1, undecided: 2, nowhere: 1, corrupt: 1 });
    // Voting again finds the same and tells nothing new.
    let size = bed.db.logbook().size().await.unwrap();
    assert_eq!(bed.db.audits().vote_all().await.unwrap(), votes);
    assert_eq!(bed.db.logbook().size().await.unwrap(), size);
    let corrupt = FileFilter { trouble: Some(Trouble::Corrupt), ..FileFilter::default() };
    let names: Vec<_> =
        bed.db.files().list(&corrupt).await.unwrap().iter().map(|one| one.file.name.to_string()).collect();
    assert_eq!(names, ["f1"]);
}

async fn a_record_that_all_copies_contradict_is_put_right_once(bed: &Bed) {
    let rows = three(bed).await;
    adopted(bed, &rows, 3, &[(1, 0, Some(90)), (1, 1, Some(90)), (1, 2, Some(90)), (2, 0, Some(90))]).await;
    bed.db.audits().vote_all().await.unwrap();
    let undecided = FileFilter { trouble: Some(Trouble::Undecided), ..FileFilter::default() };
    let listed = bed.db.files().list(&undecided).await.unwrap();
    let [status] = &listed[..] else { panic!("{listed:?}") };
    assert_eq!(status.file.name.as_str(), "f1");
    let checksums: Checksums = status.holdings[0].checksum.as_deref().unwrap().parse().unwrap();
    let amendment = Amendment {
        file_id: status.file.id,
        was: deciding(&status.file.checksums),
        size: 4711,
        checksums,
        record: record(LogEvent::Amended, "f1"),
    };
    let size = bed.db.logbook().size().await.unwrap();
    assert!(bed.db.files().amend(amendment.clone()).await.unwrap());
    assert!(!bed.db.files().amend(amendment).await.unwrap(), "the row says something else by now");
    assert_eq!(bed.db.logbook().size().await.unwrap(), size + 1);
    let after = bed.db.files().get(&name("f1")).await.unwrap().unwrap();
    assert_eq!((after.file.size, after.file.checksums), (4711, checksums));
    assert!(after.proven(), "{after:?}");
    assert_eq!(bed.db.files().list(&undecided).await.unwrap(), []);
    assert_eq!(
        bed.db.audits().vote_all().await.unwrap().decided,
        1,
        "the other file's copy is still corrupt"
    );
}

async fn a_copy_that_comes_back_is_read_by_the_list_check_that_finds_it(bed: &Bed) {
    let rows = three(bed).await;
    adopted(bed, &rows, 3, &[(0, 1, None), (1, 1, None)]).await;
    let names: Vec<_> = ["f0", "f1", "f2"].iter().map(|text| name(text)).collect();
    let two = rows[1].id;
    let mut found: Vec<_> =
        bed.db.audits().reappeared(two, names.clone()).await.unwrap().into_iter().collect();
    found.sort();
    assert_eq!(found, ["f0", "f1"], "what was never missing is not read again");
    bed.hand.advance(SHORT);
    let audit = bed.db.audits().start(two, AuditKind::List, &anna()).await.unwrap();
    let claim = bed.db.work().claim(AUDIT_WORK, "me", LONG).await.unwrap().unwrap();
    let seen = |text: &str, checksum: Option<Checksums>| Seen {
        name: name(text),
        size: 10,
        checksum: checksum.as_ref().map(deciding),
    };
    let page = Page {
        audit: audit.id,
        replica_id: two,
        replica: "two".to_owned(),
        kind: AuditKind::List,
        after: None,
        upto: None,
        seen: vec![seen("f0", Some(sums(0))), seen("f1", Some(sums(9))), seen("f2", None)],
        asked_at: bed.clock.now(),
        by: "anna".to_owned(),
    };
    let found = bed.db.audits().turn_page(&claim, page).await.unwrap().found;
    assert_eq!((found.files, found.ok, found.corrupt, found.undecided), (3, 2, 1, 0), "{found:?}");
    let holding = async |text: &str| {
        let status = bed.db.files().get(&name(text)).await.unwrap().unwrap();
        (status.holdings[1].state, status.holdings[1].verdict)
    };
    assert_eq!(holding("f0").await, (UploadState::UploadCompleted, Verdict::Ok));
    assert_eq!(holding("f1").await, (UploadState::UploadFailed, Verdict::Corrupt));
    assert!(bed.db.audits().reappeared(two, names).await.unwrap().is_empty(), "all are read");
}

async fn a_copy_that_is_being_uploaded_is_not_missing(bed: &Bed) {
    let rows = three(bed).await;
    let (status, claim) = claimed(bed, "f0", 0).await;
    let sent = crate::HoldingChange {
        presence: Presence::Unknown,
        verdict: Verdict::Unknown,
        checksum: None,
        asked_at: None,
        ..change(rows[0].id, UploadState::UploadStarted, 0)
    };
    bed.db.files().advance(&claim, status.file.id, vec![sent]).await.unwrap();
    // The upload takes longer than the list.
    bed.hand.advance(SHORT);
    let check = async |bed: &Bed, copies: Vec<Seen>| {
        let (page, check) = start(bed, &rows[0], AuditKind::List).await;
        let page = Page { seen: copies, asked_at: bed.clock.now(), ..page };
        let audit = page.audit;
        let found = bed.db.audits().turn_page(&check, page).await.unwrap().found;
        bed.db.audits().end(&check, audit, AuditState::Done, None, vec![]).await.unwrap();
        (found.files, found.missing, found.extra)
    };
    let state =
        async |bed: &Bed| bed.db.files().get(&name("f0")).await.unwrap().unwrap().holdings.remove(0).state;
    assert_eq!(check(bed, vec![]).await, (0, 0, 0));
    assert_eq!(check(bed, vec![seen("f0", None)]).await, (0, 0, 0), "it came just now");
    assert_eq!(state(bed).await, UploadState::UploadStarted);
    assert_eq!(bed.db.logbook().of_file("f0").await.unwrap(), []);
    // Nobody sends it any more.
    bed.db.work().release(&claim).await.unwrap();
    bed.hand.advance(SHORT);
    assert_eq!(check(bed, vec![]).await, (0, 1, 0));
    assert_eq!(state(bed).await, UploadState::UploadFailed);
}

async fn an_answer_that_is_older_than_the_row_is_not_kept(bed: &Bed) {
    let rows = three(bed).await;
    adopted(bed, &rows, 1, &[]).await;
    let file = bed.db.files().get(&name("f0")).await.unwrap().unwrap().file.id;
    let audits = bed.db.audits();
    let one = async || bed.db.files().get(&name("f0")).await.unwrap().unwrap().holdings.remove(0);
    bed.hand.advance(SHORT);
    let before = bed.clock.now();
    bed.hand.advance(SHORT);
    // A check found the copy corrupt while somebody read it for long; what he read before says nothing.
    let wrong = vec![(rows[0].id, Some(deciding(&sums(9))))];
    audits.observe(file, bed.clock.now(), wrong, "anna").await.unwrap();
    for old in [Some(deciding(&sums(0))), None] {
        audits.observe(file, before, vec![(rows[0].id, old)], "bert").await.unwrap();
        assert_eq!((one().await.presence, one().await.verdict), (Presence::Ok, Verdict::Corrupt));
    }
    let right = vec![(rows[0].id, Some(deciding(&sums(0))))];
    audits.observe(file, bed.clock.now(), right, "bert").await.unwrap();
    assert_eq!((one().await.state, one().await.verdict), (UploadState::UploadCompleted, Verdict::Ok));
}
