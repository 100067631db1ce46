//! What holds after a database was restored, made again or put under an archive that was there before.

use grange_model::harvest::{HarvestKind, JobId};
use grange_model::{
    Actor, AuditKind, Checksums, FileName, HighestNumbers, Presence, ReplicaKind, Sha512, UploadState,
    Verdict,
};
use serde_json::json;

use super::{Bed, LONG, SHORT, anna, on_both_engines};
use crate::{
    AUDIT_WORK, Adopted, Begun, CollectedState, DeadJobs, Declared, HoldingChange, IfStored, KeptRule,
    NewFile, Page, Policy, RemovedRule, ReplicaRow, Seen, StrayRange, WaitingDeposit, deciding,
};

on_both_engines! {
    numbers_in_names_of_adopted_files_are_never_given_again,
    numbers_in_names_of_stored_files_are_never_given_again,
    numbers_go_up_and_never_back,
    the_next_metadata_file_has_a_number_that_no_row_and_no_stray_has,
    an_audit_names_strays_until_they_have_rows,
    a_file_is_to_be_indexed_when_one_copy_with_bytes_is_verified,
    folders_that_wait_are_counted_and_shown_with_their_job,
    a_job_whose_files_wait_is_neither_crawled_again_nor_timed_out,
    files_of_an_earlier_harvester_hold_up_nobody,
    an_access_rule_that_was_lost_is_established_again_and_a_removed_one_is_not,
}

fn name(text: &str) -> FileName {
    text.parse().unwrap()
}

fn sums(byte: u8) -> Checksums {
    Checksums { sha512: Some(Sha512([byte; 64])), ..Checksums::default() }
}

async fn replicas(bed: &Bed) -> Vec<ReplicaRow> {
    let kinds = [
        ("one", ReplicaKind::Bitarchive),
        ("two", ReplicaKind::Bitarchive),
        ("three", ReplicaKind::Checksum),
    ];
    let wanted = kinds.iter().map(|(name, kind)| (name.parse().unwrap(), *kind)).collect();
    match bed.db.replicas().declare(wanted).await.unwrap() {
        Declared::Replicas(rows) => rows,
        Declared::Undeclared(rows) => panic!("{rows:?}"),
    }
}

fn adopted(text: &str, rows: &[ReplicaRow]) -> Adopted {
    let held = rows.iter().map(|row| (row.id, deciding(&sums(1)))).collect();
    Adopted { name: name(text), size: 10, checksums: sums(1), held, away: Vec::new() }
}

/// The number of the next job.
async fn next_job(bed: &Bed, called: &str) -> JobId {
    bed.selective(called, &["a.dk"]).await;
    assert_eq!(bed.plan(HarvestKind::Selective).await, 1);
    bed.db.jobs().claim(&["focused".parse().unwrap()], "h1", LONG).await.unwrap().unwrap().job
}

async fn numbers_in_names_of_adopted_files_are_never_given_again(bed: &Bed) {
    let rows = replicas(bed).await;
    bed.stocked(&["a.dk"]).await;
    let files = ["1-metadata-1.warc.gz", "40-7-20200101120000123-00000-h.warc.gz", "notes.txt"];
    let files = files.map(|text| adopted(text, &rows)).to_vec();
    bed.db.files().adopt(files, vec![]).await.unwrap();
    assert_eq!(next_job(bed, "h").await, JobId(41));
    let harvest = bed.db.harvests().list(None).await.unwrap().remove(0);
    assert_eq!(harvest.id.0, 8, "the number of a harvest is part of names too");
}

async fn numbers_in_names_of_stored_files_are_never_given_again(bed: &Bed) {
    replicas(bed).await;
    bed.stocked(&["a.dk"]).await;
    let new = |text: &str| NewFile { name: name(text), size: 1, checksums: sums(1), source: None };
    for text in ["3-metadata-1.warc.gz", "oai-9-20200101120000-00000.warc.gz"] {
        let begun = bed.db.files().begin(new(text), "me", LONG, IfStored::Skip).await.unwrap();
        assert!(matches!(begun, Begun::Claimed(..)), "{begun:?}");
    }
    assert_eq!(next_job(bed, "h").await, JobId(4));
}

async fn numbers_go_up_and_never_back(bed: &Bed) {
    bed.stocked(&["a.dk"]).await;
    let up_to = |job| HighestNumbers { job, ..HighestNumbers::default() };
    assert!(!bed.db.raise_numbers(up_to(0)).await.unwrap());
    assert!(bed.db.raise_numbers(up_to(10)).await.unwrap());
    assert!(!bed.db.raise_numbers(up_to(10)).await.unwrap());
    assert!(!bed.db.raise_numbers(up_to(4)).await.unwrap());
    assert_eq!(next_job(bed, "first").await, JobId(11));
    assert!(!bed.db.raise_numbers(up_to(11)).await.unwrap());
    assert_eq!(next_job(bed, "second").await, JobId(12));
    let both = HighestNumbers { oai_job: 5, oai_repository: 6, ..up_to(12) };
    assert!(bed.db.raise_numbers(both).await.unwrap());
    assert!(!bed.db.raise_numbers(both).await.unwrap());
}

async fn the_next_metadata_file_has_a_number_that_no_row_and_no_stray_has(bed: &Bed) {
    let rows = replicas(bed).await;
    let db = &bed.db;
    assert_eq!(db.highest_metadata_number(JobId(7)).await.unwrap(), 0);
    let known = ["7-metadata-2.warc.gz", "70-metadata-9.warc.gz", "7-metadata-x.warc.gz"];
    db.files().adopt(known.map(|text| adopted(text, &rows)).to_vec(), vec![]).await.unwrap();
    assert_eq!(db.highest_metadata_number(JobId(7)).await.unwrap(), 2);
    let found = vec![(name("7-metadata-11.warc.gz"), 1)];
    let range = StrayRange { replica_id: rows[1].id, after: None, upto: None, found };
    db.strays().keep(range).await.unwrap();
    assert_eq!(db.highest_metadata_number(JobId(7)).await.unwrap(), 11);
}

async fn an_audit_names_strays_until_they_have_rows(bed: &Bed) {
    let rows = replicas(bed).await;
    bed.stocked(&["a.dk"]).await;
    bed.db.files().adopt(vec![adopted("f", &rows)], vec![]).await.unwrap();
    let listed = async |upto: Option<&str>, seen: &[&str]| {
        let audit = bed.db.audits().start(rows[0].id, AuditKind::List, &anna()).await.unwrap();
        let claim = bed.db.work().claim(AUDIT_WORK, "me", LONG).await.unwrap().unwrap();
        let seen = seen.iter().map(|text| Seen { name: name(text), size: 10, checksum: None }).collect();
        let page = Page {
            audit: audit.id,
            replica_id: rows[0].id,
            replica: "one".to_owned(),
            kind: AuditKind::List,
            after: None,
            upto: upto.map(str::to_owned),
            seen,
            asked_at: bed.clock.now(),
            by: "anna".to_owned(),
        };
        let found = bed.db.audits().turn_page(&claim, page).await.unwrap().found;
        bed.db.audits().cancel(audit.id, &anna()).await.unwrap();
        found.extra
    };
    let strays = async || {
        let strays = bed.db.strays().list(None, 100).await.unwrap();
        assert_eq!(strays.len() as u64, bed.db.strays().count().await.unwrap());
        strays.into_iter().map(|one| format!("{} {}", one.replica, one.name)).collect::<Vec<_>>()
    };
    assert_eq!(listed(None, &["5-metadata-1.warc.gz", "f", "z"]).await, 2);
    assert_eq!(strays().await, ["one 5-metadata-1.warc.gz", "one z"]);
    // A stretch says nothing of names beyond it.
    assert_eq!(listed(Some("g"), &["f"]).await, 0);
    assert_eq!(strays().await, ["one z"]);
    bed.db.files().adopt(vec![adopted("z", &rows)], vec![]).await.unwrap();
    assert_eq!(strays().await, Vec::<String>::new());
    assert_eq!(next_job(bed, "h").await, JobId(6), "a number of a stray is not given again");
}

async fn a_file_is_to_be_indexed_when_one_copy_with_bytes_is_verified(bed: &Bed) {
    let rows = replicas(bed).await;
    let new = NewFile { name: name("a.warc.gz"), size: 10, checksums: sums(1), source: None };
    let Begun::Claimed(status, claim) = bed.db.files().begin(new, "me", LONG, IfStored::Skip).await.unwrap()
    else {
        panic!("not claimed")
    };
    let change = |row: &ReplicaRow, state| HoldingChange {
        replica_id: row.id,
        state,
        presence: Presence::Ok,
        verdict: Verdict::Ok,
        checksum: Some(deciding(&sums(1))),
        attempts: 1,
        last_error: None,
        asked_at: Some(jiff::Timestamp::MAX),
    };
    let waiting = async || {
        let files =
            bed.db.collections().files("archive", Some(CollectedState::Waiting), 0, 10).await.unwrap();
        files.into_iter().map(|file| (file.name, file.size)).collect::<Vec<_>>()
    };
    let advance = async |change| bed.db.files().advance(&claim, status.file.id, vec![change]).await.unwrap();
    advance(change(&rows[2], UploadState::UploadCompleted)).await;
    assert_eq!(waiting().await, [], "a checksum replica has nothing to read");
    advance(change(&rows[0], UploadState::DataUploaded)).await;
    assert_eq!(waiting().await, [], "not verified yet");
    advance(change(&rows[0], UploadState::UploadCompleted)).await;
    assert_eq!(waiting().await, [("a.warc.gz".to_owned(), 10)]);
    let counts = bed.db.deposits().counts().await.unwrap();
    assert_eq!((counts.unproven_files, counts.unproven_bytes), (1, 10), "it waits for the replica two");
    advance(change(&rows[1], UploadState::UploadCompleted)).await;
    let record = grange_model::LogRecord {
        at: bed.clock.now(),
        event: grange_model::LogEvent::Stored,
        name: None,
        checksum: None,
        size: None,
        replica: None,
        by: "me".to_owned(),
        detail: json!({}),
    };
    assert!(bed.db.files().settle(&claim, status.file.id, Some(record)).await.unwrap());
    assert_eq!(waiting().await.len(), 1, "once");
    assert_eq!(bed.db.deposits().counts().await.unwrap().unproven_files, 0);
}

async fn folders_that_wait_are_counted_and_shown_with_their_job(bed: &Bed) {
    bed.stocked(&["a.dk"]).await;
    let job = next_job(bed, "h").await;
    let deposit = |folder: &str, files, reason: Option<&str>| WaitingDeposit {
        harvester: "m1".to_owned(),
        folder: folder.to_owned(),
        job,
        files,
        bytes: files * 100,
        reason: reason.map(str::to_owned),
        since: bed.clock.now(),
    };
    let deposits = bed.db.deposits();
    deposits.keep(deposit("1_a", 3, None), 1).await.unwrap();
    deposits.keep(deposit("1_a", 2, Some("replica two: a\0way")), 1).await.unwrap();
    deposits.keep(deposit("1_b", 1, None), 1).await.unwrap();
    let shown = bed.db.jobs().get(job).await.unwrap().unwrap();
    assert_eq!((shown.waiting_files, shown.waiting_bytes), (3, 300));
    assert!(shown.waiting_reason.unwrap().starts_with("replica two"));
    let counts = deposits.counts().await.unwrap();
    assert_eq!((counts.folders, counts.files, counts.bytes), (2, 3, 300));
    assert_eq!(deposits.list(10).await.unwrap().len(), 2);
    deposits.forget("m1", "1_b").await.unwrap();
    deposits.retain("other", &[]).await.unwrap();
    deposits.retain("m1", &["1_a".to_owned()]).await.unwrap();
    assert_eq!(deposits.counts().await.unwrap().folders, 1);
    deposits.retain("m1", &[]).await.unwrap();
    assert_eq!(bed.db.jobs().get(job).await.unwrap().unwrap().waiting_files, 0);
}

async fn a_job_whose_files_wait_is_neither_crawled_again_nor_timed_out(bed: &Bed) {
    bed.stocked(&["a.dk"]).await;
    bed.selective("h", &["a.dk"]).await;
    bed.plan(HarvestKind::Selective).await;
    let jobs = bed.db.jobs();
    let claim = jobs.claim(&["focused".parse().unwrap()], "h1", SHORT).await.unwrap().unwrap();
    let beat = jobs.start(&claim, SHORT).await.unwrap();
    let deposit = WaitingDeposit {
        harvester: "h1".to_owned(),
        folder: "1_a".to_owned(),
        job: claim.job,
        files: 1,
        bytes: 1,
        reason: None,
        since: bed.clock.now(),
    };
    bed.db.deposits().keep(deposit, claim.token).await.unwrap();
    bed.pass(beat.lease_until).await;
    let policy = Policy { takeovers_max: 1, job_timeout: std::time::Duration::ZERO };
    assert_eq!(jobs.supervise(policy).await.unwrap(), DeadJobs::default());
    // The harvester comes back to its job.
    let beat = jobs.renew(&claim, SHORT).await.unwrap();
    // A person need not wait for a machine that never comes back.
    jobs.cancel(claim.job, &anna()).await.unwrap();
    bed.pass(beat.lease_until).await;
    assert_eq!(jobs.supervise(policy).await.unwrap().failed, [claim.job]);
}

async fn files_of_an_earlier_harvester_hold_up_nobody(bed: &Bed) {
    bed.stocked(&["a.dk"]).await;
    bed.selective("h", &["a.dk"]).await;
    bed.plan(HarvestKind::Selective).await;
    let jobs = bed.db.jobs();
    let policy = Policy { takeovers_max: 9, job_timeout: std::time::Duration::from_hours(1000) };
    // Each case: who takes the job after m1, which comes back and deposits what it has.
    for second in ["m2", "m1"] {
        let claim = async |harvester: &str| {
            let claim = jobs.claim(&["focused".parse().unwrap()], harvester, SHORT).await.unwrap().unwrap();
            (jobs.start(&claim, SHORT).await.unwrap().lease_until, claim)
        };
        let (lease_until, first) = claim("m1").await;
        bed.pass(lease_until).await;
        assert_eq!(jobs.supervise(policy).await.unwrap().taken_back.len(), 1);
        let (lease_until, later) = claim(second).await;
        let deposit = WaitingDeposit {
            harvester: "m1".to_owned(),
            folder: "1_a".to_owned(),
            job: first.job,
            files: 1,
            bytes: 1,
            reason: Some("the name is taken by other bytes".to_owned()),
            since: bed.clock.now(),
        };
        bed.db.deposits().keep(deposit, first.token).await.unwrap();
        bed.pass(lease_until).await;
        assert_eq!(jobs.supervise(policy).await.unwrap().taken_back.len(), 1, "{second}");
        // Nor is the crawl of any harvester without an end.
        let (_, last) = claim(second).await;
        assert_eq!(last.job, later.job);
        let timed = Policy { job_timeout: std::time::Duration::ZERO, ..policy };
        if second == "m1" {
            // Alive, so that only the limit of time can end it.
            jobs.renew(&last, LONG).await.unwrap();
            bed.pass(bed.lease_now()).await;
            assert_eq!(jobs.supervise(timed).await.unwrap().failed, [last.job]);
        } else {
            bed.pass(bed.lease_now() + SHORT).await;
            assert_eq!(jobs.supervise(policy).await.unwrap().taken_back.len(), 1);
        }
    }
}

async fn an_access_rule_that_was_lost_is_established_again_and_a_removed_one_is_not(bed: &Bed) {
    let rules = bed.db.access_rules();
    let made = rules.add(vec![json!({ "a": 1 }), json!({ "b": 2 })], "court", &anna()).await.unwrap();
    let before = rules.state().await.unwrap();
    assert_eq!((before.rules.len(), before.removed.len()), (2, 0));
    rules.remove(made[0].id, &anna()).await.unwrap();
    let after = rules.state().await.unwrap();
    assert_eq!((after.rules.len(), after.removed.len()), (1, 1));
    assert_eq!(after.removed[0].key, before.rules[0].key);
    let lost = KeptRule { key: "lost".to_owned(), created_by: "berta".to_owned(), ..before.rules[0].clone() };
    let again = rules.reestablish(vec![lost.clone(), before.rules[0].clone(), before.rules[1].clone()]).await;
    let again = again.unwrap();
    assert_eq!(again.len(), 1, "one is in force and one was removed: {again:?}");
    assert_eq!((again[0].created_by.as_str(), again[0].key.as_deref()), ("berta", Some("lost")));
    assert_eq!(rules.reestablish(vec![lost]).await.unwrap(), []);
    let removed =
        RemovedRule { key: "far".to_owned(), removed_at: bed.clock.now(), removed_by: Actor::system().who };
    rules.note_removed(vec![removed.clone(), removed]).await.unwrap();
    assert_eq!(rules.state().await.unwrap().removed.len(), 2);
}
