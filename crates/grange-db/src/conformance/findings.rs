//! What the findings and the keys of the log promise.

use std::time::Duration;

use grange_model::harvest::HarvestKind;
use grange_model::{AuditKind, AuditState, FindingKind, LogEvent, LogRecord, ReplicaKind};
use serde_json::json;

use super::archive::{adopted, name, three};
use super::{Bed, LONG, SHORT, anna, on_both_engines};
use crate::{JobReport, KeyVouch, LogKey, UnservableCopy};

on_both_engines! {
    a_missing_and_a_corrupt_copy_are_found_once_announced_once_and_closed,
    a_finding_is_announced_by_one_of_many_and_not_lost_with_it,
    thousands_of_missing_copies_are_one_finding,
    more_of_what_is_one_finding_are_announced_with_their_number_and_not_too_often,
    more_failed_files_than_are_named_are_counted,
    a_failed_audit_is_over_when_one_that_says_as_much_has_ended_well,
    a_finding_that_ends_within_its_patience_is_not_announced,
    a_copy_that_cannot_be_served_is_logged_once_however_many_read,
    a_node_without_heartbeat_and_a_replica_that_is_away_are_findings_until_they_are_back,
    a_failed_job_is_a_finding_until_it_is_rejected,
    a_harvest_that_was_taken_out_of_service_is_a_finding_until_a_person_decides,
    an_access_rule_that_came_back_is_a_finding_until_it_is_removed_again,
    closed_findings_are_forgotten,
    keys_are_announced_vouched_for_and_rotated,
}

/// A heartbeat so old that no test's node is lost.
pub(super) const NEVER: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

async fn execute(bed: &Bed, statement: &str) {
    let run = bed.db.write_one("change rows", statement.to_owned(), |tx, statement| {
        Box::pin(async move { tx.run(sqlx::query(sqlx::AssertSqlSafe(statement.clone()))).await })
    });
    run.await.unwrap();
}

pub(super) async fn open(bed: &Bed) -> Vec<String> {
    let found = bed.db.findings().list(false, 1000).await.unwrap();
    let mut shown: Vec<_> = found.iter().map(|one| format!("{} {}", one.kind, one.subject)).collect();
    shown.sort();
    shown
}

async fn announce(bed: &Bed) -> Vec<String> {
    let claimed = bed.db.findings().claim_unannounced("me", LONG).await.unwrap();
    let shown = claimed.iter().map(|one| format!("{} {}", one.kind, one.subject)).collect();
    bed.db.findings().announced("me", claimed.iter().map(|one| one.id).collect()).await.unwrap();
    shown
}

async fn a_missing_and_a_corrupt_copy_are_found_once_announced_once_and_closed(bed: &Bed) {
    let replicas = three(bed).await;
    adopted(bed, &replicas, 4, &[(1, 1, None), (2, 0, Some(9))]).await;
    bed.db.audits().vote_all().await.unwrap();
    let look = bed.db.findings().look(NEVER).await.unwrap();
    assert_eq!(
        (look.counts[&FindingKind::MissingCopy], look.counts[&FindingKind::CorruptCopy]),
        (1, 1),
        "{look:?}"
    );
    let expected = ["corrupt-copy f2 on one", "missing-copy f1 on two"];
    assert_eq!(open(bed).await, expected);
    for _ in 0..3 {
        let look = bed.db.findings().look(NEVER).await.unwrap();
        assert_eq!((look.changes.open.len(), look.changes.close.len()), (0, 0));
    }
    let mut announced = announce(bed).await;
    announced.sort();
    assert_eq!(announced, expected);
    assert_eq!(announce(bed).await, Vec::<String>::new());
    execute(bed, "UPDATE replica_files SET presence = 'ok', verdict = 'ok', state = 'upload_completed'")
        .await;
    let look = bed.db.findings().look(NEVER).await.unwrap();
    assert!(look.counts.values().all(|count| *count == 0), "{look:?}");
    assert_eq!(open(bed).await, Vec::<String>::new());
    assert_eq!(bed.db.findings().list(true, 10).await.unwrap().len(), 2);
    // The same again is a new finding.
    execute(bed, "UPDATE replica_files SET verdict = 'corrupt' WHERE file_id = 1 AND replica_id = 1").await;
    bed.db.findings().look(NEVER).await.unwrap();
    assert_eq!(announce(bed).await, ["corrupt-copy f0 on one"]);
}

async fn a_finding_is_announced_by_one_of_many_and_not_lost_with_it(bed: &Bed) {
    let replicas = three(bed).await;
    adopted(bed, &replicas, 3, &[(0, 1, None), (1, 1, None), (2, 1, None)]).await;
    // Nodes that look at the same moment.
    let findings = bed.db.findings();
    let looks = tokio::join!(findings.look(NEVER), findings.look(NEVER), findings.look(NEVER));
    for look in [looks.0, looks.1, looks.2] {
        look.unwrap();
    }
    assert_eq!(open(bed).await.len(), 3);
    let claims = tokio::join!(
        findings.claim_unannounced("a", 25 * SHORT),
        findings.claim_unannounced("b", 25 * SHORT),
        findings.claim_unannounced("c", 25 * SHORT)
    );
    let claimed = claims.0.unwrap().len() + claims.1.unwrap().len() + claims.2.unwrap().len();
    assert_eq!(claimed, 3, "each by one");
    // All of them were killed before they wrote a line.
    bed.pass(bed.lease_now() + 25 * SHORT).await;
    let again = findings.claim_unannounced("d", LONG).await.unwrap();
    assert_eq!(again.len(), 3);
    let ids: Vec<_> = again.iter().map(|one| one.id).collect();
    // The ones that lost their lease say nothing any more.
    findings.announced("a", ids.clone()).await.unwrap();
    assert!(findings.list(false, 10).await.unwrap().iter().all(|one| one.announced_at.is_none()));
    findings.announced("d", ids).await.unwrap();
    assert!(findings.list(false, 10).await.unwrap().iter().all(|one| one.announced_at.is_some()));
    bed.pass(bed.lease_now() + SHORT).await;
    assert_eq!(findings.claim_unannounced("e", LONG).await.unwrap(), []);
}

async fn thousands_of_missing_copies_are_one_finding(bed: &Bed) {
    let replicas = three(bed).await;
    let none: Vec<_> = (0..120).map(|n| (n, 1, None)).collect();
    adopted(bed, &replicas, 120, &none).await;
    let look = bed.db.findings().look(NEVER).await.unwrap();
    assert_eq!(look.counts[&FindingKind::MissingCopy], 120);
    assert_eq!(open(bed).await, ["missing-copy many on two"]);
    assert_eq!(announce(bed).await, ["missing-copy many on two"]);
    execute(bed, "UPDATE replica_files SET presence = 'ok', verdict = 'ok' WHERE file_id > 60").await;
    bed.db.findings().look(NEVER).await.unwrap();
    assert_eq!(open(bed).await, ["missing-copy many on two"]);
    execute(bed, "UPDATE replica_files SET presence = 'ok', verdict = 'ok' WHERE file_id > 2").await;
    bed.db.findings().look(NEVER).await.unwrap();
    assert_eq!(open(bed).await, ["missing-copy f0 on two", "missing-copy f1 on two"], "the last by name");
    assert_eq!(announce(bed).await, Vec::<String>::new(), "they were announced with the others");
    let third = "UPDATE replica_files SET presence = 'missing', state = 'upload_failed'
                 WHERE replica_id = 2 AND file_id = 3";
    execute(bed, third).await;
    bed.db.findings().look(NEVER).await.unwrap();
    assert_eq!(announce(bed).await, ["missing-copy f2 on two"]);
    execute(bed, "UPDATE replica_files SET presence = 'ok', verdict = 'ok'").await;
    bed.db.findings().look(NEVER).await.unwrap();
    assert_eq!(open(bed).await, Vec::<String>::new());
}

async fn more_of_what_is_one_finding_are_announced_with_their_number_and_not_too_often(bed: &Bed) {
    let replicas = three(bed).await;
    let none: Vec<_> = (0..120).map(|n| (n, 1, None)).collect();
    adopted(bed, &replicas, 130, &none).await;
    let missing = async |upto: u32| {
        let lost =
            "UPDATE replica_files SET presence = 'missing', state = 'upload_failed' WHERE replica_id = 2";
        execute(bed, &format!("{lost} AND file_id <= {upto}")).await;
        bed.db.findings().look(NEVER).await.unwrap();
    };
    let lines = async || -> Vec<String> {
        let claimed = bed.db.findings().claim_unannounced("me", LONG).await.unwrap();
        let ids = claimed.iter().map(|one| one.id).collect();
        bed.db.findings().announced("me", ids).await.unwrap();
        claimed.into_iter().map(|one| one.detail).collect()
    };
    missing(120).await;
    assert_eq!(lines().await, ["120 of them"]);
    missing(121).await;
    missing(125).await;
    assert_eq!(lines().await, Vec::<String>::new(), "not a line for each of them");
    execute(bed, "UPDATE findings SET due_at = due_at - 600000000").await;
    missing(126).await;
    assert_eq!(lines().await, ["126 of them"]);
    execute(bed, "UPDATE replica_files SET presence = 'ok', verdict = 'ok' WHERE file_id > 110").await;
    bed.db.findings().look(NEVER).await.unwrap();
    execute(bed, "UPDATE findings SET due_at = due_at - 600000000").await;
    assert_eq!(lines().await, Vec::<String>::new(), "fewer are no news");
    // Growth of the number while the old one is being announced is not lost with it.
    missing(111).await;
    execute(bed, "UPDATE findings SET due_at = due_at - 600000000").await;
    let claimed = bed.db.findings().claim_unannounced("me", LONG).await.unwrap();
    missing(130).await;
    bed.db.findings().announced("me", claimed.iter().map(|one| one.id).collect()).await.unwrap();
    assert_eq!((claimed[0].detail.as_str(), lines().await), ("111 of them", vec!["130 of them".to_owned()]));
}

/// Nobody works off a thousand failed files in a day: one more must be heard of.
async fn more_failed_files_than_are_named_are_counted(bed: &Bed) {
    let fail = async |from: u32, upto: u32| {
        let row = |n| format!("('archive', 'w{n}', 1, 'failed', 'torn', 0)");
        let rows: Vec<_> = (from..=upto).map(row).collect();
        let into = "INSERT INTO collection_files (collection, name, size, state, told, changed_at) VALUES";
        execute(bed, &format!("{into} {}", rows.join(", "))).await;
        let look = bed.db.findings().look(NEVER).await.unwrap();
        look.counts[&FindingKind::FailedIndexing]
    };
    assert_eq!(fail(1, 1500).await, 1500);
    assert_eq!(announce(bed).await, ["failed-indexing many"]);
    assert_eq!(fail(1501, 1501).await, 1501);
    let found = bed.db.findings().list(false, 10).await.unwrap();
    assert_eq!((found.len(), found[0].detail.as_str(), found[0].announced_at), (1, "1501 of them", None));
}

async fn a_failed_audit_is_over_when_one_that_says_as_much_has_ended_well(bed: &Bed) {
    let replicas = three(bed).await;
    let ended = async |kind, state| {
        bed.hand.advance(Duration::from_secs(1));
        let audit = bed.db.audits().start(replicas[1].id, kind, &anna()).await.unwrap();
        let claim = bed.db.work().claim(crate::AUDIT_WORK, "me", LONG).await.unwrap().unwrap();
        bed.hand.advance(Duration::from_secs(1));
        bed.db.audits().end(&claim, audit.id, state, None, Vec::new()).await.unwrap();
        bed.db.findings().look(NEVER).await.unwrap();
        open(bed).await
    };
    let (list, checksum, challenge) = (AuditKind::List, AuditKind::Checksum, AuditKind::Challenge);
    let none: Vec<String> = Vec::new();
    for (failed, then, is_over) in [
        (list, list, true),
        (list, checksum, true),
        (challenge, checksum, true),
        (checksum, checksum, true),
        (challenge, challenge, true),
        (checksum, list, false),
        (checksum, challenge, false),
    ] {
        let expected = vec![format!("failed-audit {failed} audit of two")];
        assert_eq!(ended(failed, AuditState::Failed).await, expected);
        let after = ended(then, AuditState::Done).await;
        assert_eq!(after, if is_over { none.clone() } else { expected }, "{failed} then {then}");
        ended(checksum, AuditState::Done).await;
    }
    // One that began before the other failed and ended well after it.
    let spread = bed.db.audits().start(replicas[1].id, checksum, &anna()).await.unwrap();
    let claim = bed.db.work().claim(crate::AUDIT_WORK, "me", LONG).await.unwrap().unwrap();
    ended(list, AuditState::Failed).await;
    bed.hand.advance(Duration::from_secs(1));
    bed.db.audits().end(&claim, spread.id, AuditState::Done, None, Vec::new()).await.unwrap();
    bed.db.findings().look(NEVER).await.unwrap();
    assert_eq!(open(bed).await, none);
}

async fn a_finding_that_ends_within_its_patience_is_not_announced(bed: &Bed) {
    let replicas = three(bed).await;
    adopted(bed, &replicas, 1, &[]).await;
    let refused =
        "UPDATE replica_files SET presence = 'unknown', state = 'upload_failed' WHERE replica_id = 2";
    execute(bed, refused).await;
    bed.db.findings().look(NEVER).await.unwrap();
    assert_eq!(open(bed).await, ["waiting-copies replica two"]);
    assert_eq!(announce(bed).await, Vec::<String>::new());
    execute(bed, "UPDATE replica_files SET presence = 'ok', state = 'upload_completed'").await;
    bed.db.findings().look(NEVER).await.unwrap();
    assert_eq!((open(bed).await.len(), announce(bed).await.len()), (0, 0));
    // One that lasts is announced when its time has come.
    execute(bed, refused).await;
    bed.db.findings().look(NEVER).await.unwrap();
    execute(bed, "UPDATE findings SET due_at = 0 WHERE closed_at IS NULL").await;
    assert_eq!(announce(bed).await, ["waiting-copies replica two"]);
}

pub(super) fn unservable(file_id: i64, text: &str) -> UnservableCopy {
    let record = LogRecord {
        at: jiff::Timestamp::UNIX_EPOCH,
        event: LogEvent::Unservable,
        name: Some(text.to_owned()),
        checksum: None,
        size: None,
        replica: Some("two".to_owned()),
        by: "grange".to_owned(),
        detail: json!({}),
    };
    let (replica_id, replica, reason) = (2, "two".to_owned(), "it is not there".to_owned());
    UnservableCopy { file_id, replica_id, replica, reason, record }
}

async fn a_copy_that_cannot_be_served_is_logged_once_however_many_read(bed: &Bed) {
    let replicas = three(bed).await;
    assert_eq!((replicas[1].id, replicas[1].kind), (2, ReplicaKind::Bitarchive));
    adopted(bed, &replicas, 110, &[]).await;
    let id = bed.db.files().get(&name("f0")).await.unwrap().unwrap().file.id;
    let findings = bed.db.findings();
    let readers =
        tokio::join!(findings.unservable(unservable(id, "f0")), findings.unservable(unservable(id, "f0")));
    assert_eq!(u8::from(readers.0.unwrap()) + u8::from(readers.1.unwrap()), 1);
    for _ in 0..20 {
        assert!(!findings.unservable(unservable(id, "f0")).await.unwrap());
    }
    let size = async || bed.db.logbook().size().await.unwrap();
    assert_eq!(size().await, 1);
    // A look keeps it open until a check has said something.
    findings.look(NEVER).await.unwrap();
    assert_eq!(open(bed).await, ["unservable-copy f0 on two"]);
    // A dead disk: the log does not grow with its files either.
    for number in 1..110 {
        findings.unservable(unservable(id + number, &format!("f{number}"))).await.unwrap();
    }
    assert_eq!(size().await, 101);
    assert!(!findings.unservable(unservable(id + 109, "f109")).await.unwrap());
    findings.look(NEVER).await.unwrap();
    assert_eq!(open(bed).await.len(), 101);
    // The check found all of them missing but one, which it found good.
    execute(
        bed,
        &format!("UPDATE replica_files SET presence = 'missing' WHERE replica_id = 2 AND file_id <> {id}"),
    )
    .await;
    execute(bed, "UPDATE replica_files SET checked_at = 9000000000000000 WHERE replica_id = 2").await;
    execute(bed, "UPDATE replicas SET checked_at = 9000000000000000 WHERE id = 2").await;
    findings.look(NEVER).await.unwrap();
    assert!(!open(bed).await.iter().any(|one| one.starts_with("unservable-copy")), "{:?}", open(bed).await);
}

async fn a_node_without_heartbeat_and_a_replica_that_is_away_are_findings_until_they_are_back(bed: &Bed) {
    let node = bed.db.nodes().register(super::nodes::new("a")).await.unwrap();
    let findings = bed.db.findings();
    let replicas = three(bed).await;
    bed.db.places().set_away(replicas[1].id, Some("no answer")).await.unwrap();
    bed.pass(node.seen_at + SHORT).await;
    findings.look(SHORT).await.unwrap();
    assert_eq!(
        open(bed).await,
        [format!("lost-node a ({})", node.id), "replica-away replica two".to_owned()]
    );
    bed.db.nodes().heartbeat(node.id, crate::NodeHeartbeat::default()).await.unwrap();
    bed.db.places().set_away(replicas[1].id, None).await.unwrap();
    findings.look(LONG).await.unwrap();
    assert_eq!(open(bed).await, Vec::<String>::new());
}

async fn a_failed_job_is_a_finding_until_it_is_rejected(bed: &Bed) {
    bed.stocked(&[]).await;
    bed.selective("h", &["a.dk"]).await;
    bed.plan(HarvestKind::Selective).await;
    let channels = ["focused".parse().unwrap()];
    let ours = bed.db.jobs().claim(&channels, "h1", LONG).await.unwrap().unwrap();
    let failed = JobReport { harvest_errors: Some("disk\0full".to_owned()), ..JobReport::default() };
    bed.db.jobs().finish(&ours, failed).await.unwrap();
    let job = ours.job;
    bed.db.findings().look(NEVER).await.unwrap();
    assert_eq!(open(bed).await, [format!("failed-job job {job}")]);
    bed.db.jobs().reject(job, true, &anna()).await.unwrap();
    bed.db.findings().look(NEVER).await.unwrap();
    assert_eq!(open(bed).await, Vec::<String>::new());
}

async fn a_harvest_that_was_taken_out_of_service_is_a_finding_until_a_person_decides(bed: &Bed) {
    bed.stocked(&[]).await;
    for active in [true, false] {
        let harvest = format!("h{active}");
        bed.selective(&harvest, &["a.dk"]).await;
        let due = bed.due(HarvestKind::Selective).await.unwrap();
        bed.db.planner().give_up(&due, "no \0 luck").await.unwrap();
        let look = bed.db.findings().look(NEVER).await.unwrap();
        assert_eq!(look.counts[&FindingKind::DeactivatedHarvest], 1);
        assert_eq!(announce(bed).await, [format!("deactivated-harvest harvest {harvest}")]);
        let name: grange_model::harvest::Name = harvest.parse().unwrap();
        bed.db.harvests().set_active(&name, active, None, &anna()).await.unwrap();
        bed.db.findings().look(NEVER).await.unwrap();
        assert_eq!(open(bed).await, Vec::<String>::new(), "{active}");
        bed.db.harvests().set_active(&name, false, None, &anna()).await.unwrap();
    }
}

async fn an_access_rule_that_came_back_is_a_finding_until_it_is_removed_again(bed: &Bed) {
    let rules = bed.db.access_rules();
    let made = rules.add(vec![json!({ "a": 1 }), json!({ "b": 2 })], "", &anna()).await.unwrap();
    let removed = crate::RemovedRule {
        key: made[0].key.clone().unwrap(),
        removed_at: bed.clock.now(),
        removed_by: "bert".to_owned(),
    };
    bed.db.findings().look(NEVER).await.unwrap();
    assert_eq!(open(bed).await, Vec::<String>::new());
    rules.note_removed(vec![removed]).await.unwrap();
    let look = bed.db.findings().look(NEVER).await.unwrap();
    assert_eq!(look.counts[&FindingKind::ReturnedAccessRule], 1);
    assert_eq!(announce(bed).await, [format!("returned-access-rule access rule {}", made[0].id)]);
    rules.remove(made[0].id, &anna()).await.unwrap();
    bed.db.findings().look(NEVER).await.unwrap();
    assert_eq!(open(bed).await, Vec::<String>::new());
}

async fn closed_findings_are_forgotten(bed: &Bed) {
    let findings = bed.db.findings();
    let kind = FindingKind::FailedLogVerification;
    findings.observe(kind, "log", Some("leaf 3 is missing".to_owned())).await.unwrap();
    findings.look(NEVER).await.unwrap();
    assert_eq!(findings.forget(Duration::ZERO).await.unwrap(), 0, "open ones stay");
    findings.observe(kind, "log", None).await.unwrap();
    assert_eq!(findings.forget(LONG).await.unwrap(), 0);
    bed.pass(bed.lease_now() + SHORT).await;
    assert_eq!(findings.forget(Duration::ZERO).await.unwrap(), 1);
}

async fn keys_are_announced_vouched_for_and_rotated(bed: &Bed) {
    let log = bed.db.logbook();
    log.announce_key("aa", "node1", None).await.unwrap();
    log.announce_key("aa", "node1", Some("proof".to_owned())).await.unwrap();
    log.announce_key("aa", "node1", None).await.unwrap();
    let keys = log.keys().await.unwrap();
    assert_eq!((keys.len(), keys[0].proof.as_deref(), keys[0].retired_at), (1, Some("proof"), None));
    bed.hand.set(bed.clock.now() + SHORT);
    let at = keys[0].since + SHORT;
    let vouch = KeyVouch { by_key: "aa".to_owned(), at, signature: "signed".to_owned() };
    let new = LogKey {
        public_key: "bb".to_owned(),
        node: "node1".to_owned(),
        since: at,
        retired_at: None,
        proof: None,
        vouches: vec![],
    };
    log.rotate_key("aa", new, vouch.clone(), &anna()).await.unwrap();
    let keys = log.keys().await.unwrap();
    assert_eq!((keys[0].public_key.as_str(), keys[0].retired_at), ("aa", Some(at)));
    assert_eq!((keys[1].public_key.as_str(), &keys[1].vouches), ("bb", &vec![vouch]));
    // Its node starts with it again after a restore: it stays retired.
    log.announce_key("aa", "node1", Some("other".to_owned())).await.unwrap();
    assert_eq!(log.keys().await.unwrap()[0].retired_at, Some(at));
}
