//! What a copy may be called, judged by the record and by nothing else: the rows after every act are those of the pure
//! vote, and no confirmation counts for anything but what was asked.

use grange_model::{
    Actor, AuditKind, Ballot, Checksums, LogEvent, LogRecord, Presence, RepairKind, RepairState, Sha512,
    UNREADABLE, UploadState, Verdict, vote,
};
use serde_json::json;

use super::archive::{adopted, change, claimed, name, new, record, seen, start, sums, three};
use super::{Bed, LONG, SHORT, anna, on_both_engines};
use crate::{
    Adopted, Amendment, AuditFilter, Begun, Confirmed, IfStored, NewFile, NewRepair, Page, RepairTurn, Votes,
    deciding,
};

on_both_engines! {
    an_answer_of_an_upload_replaces_no_newer_one,
    every_combination_of_answers_leaves_the_rows_of_the_pure_vote,
    a_copy_is_complete_only_with_the_checksum_that_is_recorded_now,
    a_copy_that_answers_otherwise_during_a_store_is_judged_at_once,
    a_deposit_of_a_stored_file_is_claimed_to_be_verified,
    a_confirmation_never_crosses_kinds,
    a_confirmation_never_crosses_checksums,
    a_file_without_a_row_for_a_replica_gets_one,
    a_vote_logs_each_corrupt_copy_and_each_doubt_once,
    a_check_of_one_replica_decides_about_the_copies_of_the_others,
    the_bytes_of_a_file_come_from_its_last_depositor_until_a_replica_has_them,
    a_repair_is_in_the_change_log_when_it_is_asked_for_and_when_it_is_confirmed,
}

/// What a replica can answer: the recorded checksum, two others, nothing readable, nothing at all.
const ANSWERS: [Option<&str>; 5] = [Some("0"), Some("1"), Some("2"), Some(UNREADABLE), None];

fn answer(index: usize) -> Option<String> {
    ANSWERS[index].map(|text| match text.parse() {
        Ok(byte) => deciding(&Checksums { sha512: Some(Sha512([byte; 64])), ..Checksums::default() }),
        Err(_) => text.to_owned(),
    })
}

async fn every_combination_of_answers_leaves_the_rows_of_the_pure_vote(bed: &Bed) {
    let rows = three(bed).await;
    let recorded = answer(0).unwrap();
    let combinations: Vec<[usize; 3]> = (0..125).map(|n| [n % 5, n / 5 % 5, n / 25]).collect();
    let file = |(n, combination): (usize, &[usize; 3])| Adopted {
        name: name(&format!("f{n:03}")),
        size: 10,
        checksums: recorded.parse().unwrap(),
        held: rows.iter().zip(combination).filter_map(|(row, one)| Some((row.id, answer(*one)?))).collect(),
        away: Vec::new(),
    };
    let all: Vec<_> = combinations.iter().enumerate().map(file).collect();
    bed.db.files().adopt(all, vec![]).await.unwrap();
    bed.db.audits().vote_all().await.unwrap();
    for (n, combination) in combinations.iter().enumerate() {
        let status = bed.db.files().get(&name(&format!("f{n:03}"))).await.unwrap().unwrap();
        let ballots: Vec<_> = rows
            .iter()
            .zip(combination)
            .map(|(row, one)| Ballot {
                replica: row.id,
                presence: if answer(*one).is_some() { Presence::Ok } else { Presence::Missing },
                checksum: answer(*one),
            })
            .collect();
        let outcome = vote(&recorded, &ballots);
        let check = |status: &crate::FileStatus, how: &str| {
            for holding in &status.holdings {
                let voted = outcome.verdicts.iter().find(|(replica, _)| *replica == holding.replica_id);
                let verdict = voted.map_or(Verdict::Unknown, |(_, verdict)| *verdict);
                let found = (holding.verdict, holding.state);
                assert_eq!(found, (verdict, verdict.upload_state()), "{how} {combination:?} {holding:?}");
            }
        };
        check(&status, "vote over all");
        // The same answers one file at a time.
        let answers = rows.iter().zip(combination).map(|(row, one)| (row.id, answer(*one))).collect();
        bed.db.audits().observe(status.file.id, bed.clock.now(), answers, "anna").await.unwrap();
        check(&bed.db.files().get(&status.file.name).await.unwrap().unwrap(), "observe");
    }
}

async fn a_copy_is_complete_only_with_the_checksum_that_is_recorded_now(bed: &Bed) {
    let rows = three(bed).await;
    let (status, claim) = claimed(bed, "a", 1).await;
    let files = bed.db.files();
    for row in &rows[..2] {
        files
            .advance(&claim, status.file.id, vec![change(row.id, UploadState::UploadCompleted, 1)])
            .await
            .unwrap();
    }
    // Two people correct the record while the upload to the third replica goes on.
    let amendment = Amendment {
        file_id: status.file.id,
        was: deciding(&sums(1)),
        size: 10,
        checksums: sums(2),
        record: record(LogEvent::Amended, "a"),
    };
    assert!(files.amend(amendment).await.unwrap());
    files
        .advance(&claim, status.file.id, vec![change(rows[2].id, UploadState::UploadCompleted, 1)])
        .await
        .unwrap();
    let after = files.get(&name("a")).await.unwrap().unwrap();
    for holding in &after.holdings {
        assert_ne!(holding.state, UploadState::UploadCompleted, "{holding:?}");
        assert_ne!(holding.verdict, Verdict::Ok, "{holding:?}");
    }
    assert!(!files.settle(&claim, status.file.id, Some(record(LogEvent::Stored, "a"))).await.unwrap());
    assert_eq!(files.get(&name("a")).await.unwrap().unwrap().file.stored_at, None);
}

async fn a_copy_that_answers_otherwise_during_a_store_is_judged_at_once(bed: &Bed) {
    let rows = three(bed).await;
    let (status, claim) = claimed(bed, "a", 1).await;
    let files = bed.db.files();
    let other = |replica| crate::HoldingChange {
        verdict: Verdict::Unknown,
        last_error: None,
        ..change(replica, UploadState::UploadFailed, 9)
    };
    files.advance(&claim, status.file.id, vec![other(rows[0].id)]).await.unwrap();
    let verdict = async |n: usize| files.get(&name("a")).await.unwrap().unwrap().holdings[n].verdict;
    assert_eq!(verdict(0).await, Verdict::Unknown, "one copy against the record");
    let size = bed.db.logbook().size().await.unwrap();
    files.advance(&claim, status.file.id, vec![other(rows[0].id)]).await.unwrap();
    assert_eq!(bed.db.logbook().size().await.unwrap(), size, "the same answer again is not logged again");
    files
        .advance(&claim, status.file.id, vec![change(rows[1].id, UploadState::UploadCompleted, 1)])
        .await
        .unwrap();
    files.advance(&claim, status.file.id, vec![other(rows[0].id)]).await.unwrap();
    assert_eq!(verdict(0).await, Verdict::Corrupt, "the record has one voice more");
    assert_eq!(verdict(1).await, Verdict::Ok);
}

async fn a_deposit_of_a_stored_file_is_claimed_to_be_verified(bed: &Bed) {
    let rows = three(bed).await;
    adopted(bed, &rows, 2, &[]).await;
    let begun = bed.db.files().begin(new("f1", 1), "me", LONG, IfStored::Skip).await.unwrap();
    assert!(matches!(begun, Begun::Proven(_)), "{begun:?}");
    let begun = bed.db.files().begin(new("f1", 1), "me", LONG, IfStored::Verify).await.unwrap();
    assert!(matches!(begun, Begun::Claimed(..)), "{begun:?}");
}

fn repair(bed_file: i64, replica_id: i64, kind: RepairKind, confirmed_by: Option<&str>) -> NewRepair {
    NewRepair {
        file_id: bed_file,
        replica_id,
        kind,
        bad_checksum: None,
        new_checksum: None,
        confirmed_by: confirmed_by.map(str::to_owned),
    }
}

async fn a_confirmation_never_crosses_kinds(bed: &Bed) {
    let rows = three(bed).await;
    adopted(bed, &rows, 1, &[]).await;
    let file = bed.db.files().get(&name("f0")).await.unwrap().unwrap().file.id;
    let repairs = bed.db.repairs();
    let kinds = [RepairKind::Missing, RepairKind::Corrupt, RepairKind::Record];
    for first in kinds {
        for second in kinds.into_iter().filter(|second| *second != first) {
            let waiting = repairs.ask(repair(file, rows[0].id, first, None), &anna()).await.unwrap();
            let new = repair(file, rows[0].id, second, Some("not needed"));
            let confirmed = repairs.ask(new, &anna()).await.unwrap();
            assert_ne!(confirmed.id, waiting.id);
            assert_eq!((confirmed.kind, confirmed.state), (second, RepairState::Confirmed));
            let before = repairs.get(waiting.id).await.unwrap();
            assert_eq!((before.kind, before.state), (first, RepairState::Failed));
            assert_eq!(before.confirmed_by, None);
            assert!(before.last_error.unwrap().starts_with("superseded"));
            let Confirmed::Yes(late) = repairs.confirm(waiting.id, &Actor::new("bert", "web")).await.unwrap()
            else {
                panic!()
            };
            assert_eq!(late.state, RepairState::Failed, "what is over cannot be confirmed");
            let RepairTurn::Claimed(_, claim) = repairs.begin(confirmed.id, "me", LONG).await.unwrap() else {
                panic!()
            };
            repairs.end(&claim, confirmed.id, None, vec![]).await.unwrap();
        }
    }
}

async fn a_confirmation_never_crosses_checksums(bed: &Bed) {
    let rows = three(bed).await;
    adopted(bed, &rows, 1, &[]).await;
    let file = bed.db.files().get(&name("f0")).await.unwrap().unwrap().file.id;
    let ask = |checksum: u8| NewRepair {
        new_checksum: Some(deciding(&sums(checksum))),
        ..repair(file, rows[0].id, RepairKind::Record, None)
    };
    let first = bed.db.repairs().ask(ask(1), &anna()).await.unwrap();
    assert_eq!(bed.db.repairs().ask(ask(1), &anna()).await.unwrap().id, first.id);
    let second = bed.db.repairs().ask(ask(2), &anna()).await.unwrap();
    assert_ne!(second.id, first.id);
    assert_eq!(second.new_checksum, Some(deciding(&sums(2))));
    assert_eq!(bed.db.repairs().get(first.id).await.unwrap().state, RepairState::Failed);
}

async fn a_file_without_a_row_for_a_replica_gets_one(bed: &Bed) {
    let rows = three(bed).await;
    adopted(bed, &rows, 2, &[]).await;
    assert_eq!(bed.db.replicas().fill_gaps().await.unwrap(), 0);
    // As a version before the lock could leave it: the file is there, its rows are not.
    bed.db
        .write("enter a file without its rows", (), |tx, ()| {
            Box::pin(async move {
                let sql = "INSERT INTO files (name, size, checksum, checksums, created_at, stored_at)
                           VALUES ('lonely', 1, 'md5=00', '{}', 0, 0)";
                tx.run(sqlx::query(sql)).await
            })
        })
        .await
        .unwrap();
    assert_eq!(bed.db.replicas().fill_gaps().await.unwrap(), 3);
    let status = bed.db.files().get(&name("lonely")).await.unwrap().unwrap();
    assert_eq!(status.holdings.len(), 3);
    assert!(status.holdings.iter().all(|one| one.state == UploadState::Unknown));
    assert_eq!(bed.db.replicas().fill_gaps().await.unwrap(), 0);
}

async fn logged(bed: &Bed, file: &str) -> Vec<LogRecord> {
    let leaves = bed.db.logbook().of_file(file).await.unwrap();
    leaves.iter().map(|leaf| serde_json::from_str(&leaf.body).unwrap()).collect()
}

async fn a_vote_logs_each_corrupt_copy_and_each_doubt_once(bed: &Bed) {
    let rows = three(bed).await;
    let answers = |byte: u8| deciding(&sums(byte));
    // f1 has one wrong copy; f2 has two, against one copy and the record.
    adopted(bed, &rows, 3, &[(1, 0, Some(90)), (2, 0, Some(90)), (2, 1, Some(90))]).await;
    for _ in 0..2 {
        bed.db.audits().vote_all().await.unwrap();
        assert_eq!(logged(bed, "f0").await, []);
        let told = logged(bed, "f1").await;
        let [corrupt] = &told[..] else { panic!("{told:?}") };
        assert_eq!((corrupt.event, corrupt.replica.as_deref()), (LogEvent::Corrupt, Some("one")));
        assert_eq!(corrupt.detail, json!({ "found": answers(90), "recorded": answers(1) }));
        let told = logged(bed, "f2").await;
        let [doubt] = &told[..] else { panic!("{told:?}") };
        assert_eq!((doubt.event, doubt.replica.as_deref()), (LogEvent::Undecided, None));
        let ballots = json!({ "one": answers(90), "two": answers(90), "three": answers(2) });
        assert_eq!(doubt.detail, json!({ "ballots": ballots }));
    }
    // The second copy of f1 answers the same as the corrupt one: nobody knows any more which is right.
    let file = bed.db.files().get(&name("f1")).await.unwrap().unwrap().file.id;
    for _ in 0..2 {
        let answer = vec![(rows[1].id, Some(answers(90)))];
        let votes = bed.db.audits().observe(file, bed.clock.now(), answer, "berta").await.unwrap();
        assert_eq!(votes, Votes { files: 1, undecided: 1, ..Votes::default() });
        let told = logged(bed, "f1").await;
        let [_, doubt] = &told[..] else { panic!("{told:?}") };
        assert_eq!((doubt.event, doubt.by.as_str()), (LogEvent::Undecided, "berta"));
    }
}

async fn a_check_of_one_replica_decides_about_the_copies_of_the_others(bed: &Bed) {
    let rows = three(bed).await;
    // Two copies against the third replica and the record.
    adopted(bed, &rows, 1, &[(0, 0, Some(90)), (0, 1, Some(90))]).await;
    bed.db.audits().vote_all().await.unwrap();
    let verdict = async || bed.db.files().get(&name("f0")).await.unwrap().unwrap().holdings[0].verdict;
    assert_eq!(verdict().await, Verdict::Unknown);
    let check = async |replica: usize, kind, seen| {
        let (page, claim) = start(bed, &rows[replica], kind).await;
        bed.db.audits().turn_page(&claim, Page { seen, ..page }).await.unwrap();
    };
    check(1, AuditKind::Checksum, vec![seen("f0", Some(0))]).await;
    assert_eq!(verdict().await, Verdict::Corrupt, "the record has one voice more");
    check(1, AuditKind::List, vec![]).await;
    assert_eq!(verdict().await, Verdict::Corrupt, "the record still has two voices against one");
    check(2, AuditKind::List, vec![]).await;
    assert_eq!(verdict().await, Verdict::Unknown, "the record has lost every voice but its own");
}

async fn the_bytes_of_a_file_come_from_its_last_depositor_until_a_replica_has_them(bed: &Bed) {
    let rows = three(bed).await;
    let files = bed.db.files();
    let (mut claim, mut file) = (None, 0);
    for (given, kept) in [(Some("here"), "here"), (None, "here"), (Some("there"), "there")] {
        if let Some(claim) = claim.take() {
            bed.db.work().release(&claim).await.unwrap();
        }
        let deposit = NewFile { source: given.map(ToOwned::to_owned), ..new("a", 1) };
        let begun = files.begin(deposit, "me", LONG, IfStored::Skip).await.unwrap();
        let Begun::Claimed(status, held) = begun else { panic!("{begun:?}") };
        (claim, file) = (Some(held), status.file.id);
        let status = files.get(&name("a")).await.unwrap().unwrap();
        assert_eq!(status.file.source.as_deref(), Some(kept), "a deposit from {given:?}");
    }
    let claim = claim.unwrap();
    assert_eq!(files.needed_sources().await.unwrap(), ["there"]);
    // A checksum replica has no bytes.
    let done = |replica| vec![change(replica, UploadState::UploadCompleted, 1)];
    files.advance(&claim, file, done(rows[2].id)).await.unwrap();
    assert_eq!(files.needed_sources().await.unwrap(), ["there"]);
    files.advance(&claim, file, done(rows[0].id)).await.unwrap();
    assert!(files.needed_sources().await.unwrap().is_empty());
}

async fn a_repair_is_in_the_change_log_when_it_is_asked_for_and_when_it_is_confirmed(bed: &Bed) {
    let rows = three(bed).await;
    adopted(bed, &rows, 1, &[]).await;
    let file = bed.db.files().get(&name("f0")).await.unwrap().unwrap().file.id;
    let repairs = bed.db.repairs();
    let ask = repair(file, rows[0].id, RepairKind::Corrupt, None);
    let row = repairs.ask(ask.clone(), &anna()).await.unwrap();
    repairs.ask(ask, &Actor::new("carl", "web")).await.unwrap();
    for who in ["bert", "dora"] {
        let Confirmed::Yes(row) = repairs.confirm(row.id, &Actor::new(who, "web")).await.unwrap() else {
            panic!()
        };
        assert_eq!(row.confirmed_by.as_deref(), Some("bert"), "one second person is enough");
    }
    let entries = bed.db.audit().list(&AuditFilter::default()).await.unwrap();
    let told: Vec<_> = entries
        .iter()
        .filter(|entry| entry.subject == "file:f0")
        .map(|entry| (entry.act.as_str(), entry.who.as_str()))
        .collect();
    assert_eq!(told, [("repair.confirm", "bert"), ("repair.ask", "anna")]);
}

async fn an_answer_of_an_upload_replaces_no_newer_one(bed: &Bed) {
    let rows = three(bed).await;
    adopted(bed, &rows, 1, &[]).await;
    let Begun::Claimed(status, claim) =
        bed.db.files().begin(new("f0", 0), "me", LONG, IfStored::Verify).await.unwrap()
    else {
        panic!("not claimed")
    };
    bed.hand.advance(SHORT);
    let asked_at = bed.clock.now();
    bed.hand.advance(SHORT);
    // A person looks at the copy, and it is gone.
    let gone = vec![(rows[0].id, None)];
    bed.db.audits().observe(status.file.id, bed.clock.now(), gone, "anna").await.unwrap();
    let equal = |row: usize, asked_at| crate::HoldingChange {
        asked_at: Some(asked_at),
        ..change(rows[row].id, UploadState::UploadCompleted, 0)
    };
    let files = bed.db.files();
    let late = vec![equal(0, asked_at), equal(1, asked_at)];
    assert_eq!(files.advance(&claim, status.file.id, late).await.unwrap(), [rows[0].id]);
    let presence = async || -> Vec<Presence> {
        let status = files.get(&name("f0")).await.unwrap().unwrap();
        status.holdings.iter().map(|holding| holding.presence).collect()
    };
    assert_eq!(presence().await, [Presence::Missing, Presence::Ok, Presence::Ok]);
    assert!(!files.settle(&claim, status.file.id, None).await.unwrap(), "it is not stored everywhere");
    // Asked again it has the copy.
    bed.hand.advance(SHORT);
    let again = vec![equal(0, bed.clock.now())];
    assert_eq!(files.advance(&claim, status.file.id, again).await.unwrap(), Vec::<i64>::new());
    assert_eq!(presence().await, [Presence::Ok; 3]);
}
