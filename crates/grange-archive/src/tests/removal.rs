//! Taking a copy out of its place: who may, and what must be true first.

use std::os::unix::fs::PermissionsExt;

use grange_model::{Actor, Algorithm, AuditKind, Checksums, RepairState};

use super::bed::{Bed, anna, bert, content, file, named, settings};
use crate::Second;
use crate::replica::Answer;

/// What a replica answers about a file now.
async fn answer(bed: &Bed, replica: &str, name: &str) -> Checksums {
    let replica = bed.archive.replica(replica).unwrap();
    match replica.checksum(&named(name), Algorithm::Sha512).await.unwrap() {
        Answer::Sums(sums) => sums,
        other => panic!("{other:?}"),
    }
}

fn person(name: &str) -> Second {
    Second::Person(name.to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_is_taken_out_only_by_two_and_only_if_it_is_the_copy_that_was_seen() {
    let bed = Bed::new().await;
    bed.fill(1).await;
    let name = file(0);
    let good = answer(&bed, "one", &name).await;
    bed.damage("one", &name, |bytes| bytes[0] ^= 1);
    let seen = answer(&bed, "one", &name).await;
    bed.damage("one", &name, |bytes| bytes[1] ^= 1);
    let bad = answer(&bed, "one", &name).await;
    let dest = bed.dir.path().join("evidence");
    for (copy, second, code) in [
        (&bad, person("anna"), "archive-same-person"),
        (&bad, Second::None, "archive-credential"),
        (&bad, Second::Credential("guess".to_owned()), "archive-credential"),
        (&seen, person("bert"), "archive-not-that-checksum"),
        (&good, person("bert"), "archive-not-that-checksum"),
    ] {
        let error = bed.archive.correct("one", &named(&name), copy, &second, &anna()).await.unwrap_err();
        assert_eq!(error.code(), code, "{second:?}");
        let taken = bed.archive.remove_and_get("one", &named(&name), copy, &second, &dest, &anna()).await;
        assert_eq!(taken.unwrap_err().code(), code, "{second:?}");
        assert!(bed.attic("one") == 0 && bed.path("one", &name).exists() && !dest.exists());
    }
    let credential = format!(" {}\n", bed.archive.credential("one").unwrap());
    let second = Second::Credential(credential);
    let status = bed.archive.correct("one", &named(&name), &bad, &second, &anna()).await.unwrap();
    assert!(status.proven(), "{status:?}");
    assert_eq!((bed.attic("one"), bed.got(&name).await), (1, content(0)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_who_may_be_anybody_asks_for_a_repair_that_another_confirms_or_confirms_one() {
    let bed = Bed::new().await;
    bed.fill(2).await;
    let anybody = Actor::new("unidentified:uid-1001", "local");
    let name = file(0);
    bed.damage("one", &name, |bytes| bytes[0] ^= 1);
    std::fs::remove_file(bed.path("two", &file(1))).unwrap();
    bed.archive.audit_all(AuditKind::Checksum, &anna()).await.unwrap();
    let bad = answer(&bed, "one", &name).await;
    let dest = bed.dir.path().join("evidence");
    for (actor, second) in [(anybody.clone(), person("bert")), (anna(), person("unidentified:uid-1001"))] {
        let error = bed.archive.correct("one", &named(&name), &bad, &second, &actor).await.unwrap_err();
        assert_eq!(error.code(), "archive-unidentified", "{second:?}");
        let taken = bed.archive.remove_and_get("one", &named(&name), &bad, &second, &dest, &actor).await;
        assert_eq!(taken.unwrap_err().code(), "archive-unidentified", "{second:?}");
    }
    // What needs no second person goes on; what does is not even asked for.
    for dry_run in [true, false] {
        let report = bed.archive.repair_all(&anybody, |_| Second::None, dry_run).await.unwrap();
        let done = u64::from(!dry_run);
        assert_eq!((report.done, report.failed, report.waiting), (done, 1, 0), "{report:?}");
        let refused = report.copies.iter().find_map(|copy| copy.error.as_ref()).unwrap();
        assert!(refused.contains("--token-file"), "{refused}");
    }
    assert_eq!(bed.archive.repairs(Some(RepairState::Waiting), 10).await.unwrap(), []);
    let report = bed.archive.repair_all(&anna(), |_| Second::None, false).await.unwrap();
    let id = report.copies[0].repair.unwrap();
    let error = bed.archive.confirm_repair(id, &anybody).await.unwrap_err();
    assert_eq!(error.code(), "archive-unidentified");
    assert_eq!(bed.archive.db().repairs().get(id).await.unwrap().state, RepairState::Waiting);
    // The replica's credential is a second pair of eyes for everybody.
    let known = bed.archive.credential("one").unwrap();
    let second = |_: &crate::Replica| Second::Credential(known.clone());
    let report = bed.archive.repair_all(&anybody, second, false).await.unwrap();
    assert_eq!((report.done, report.failed), (1, 0), "{report:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_stays_until_the_right_bytes_are_known_to_be_elsewhere() {
    let bed = Bed::new().await;
    bed.fill(1).await;
    let name = file(0);
    for (replica, byte) in [("one", 0), ("two", 1)] {
        bed.damage(replica, &name, |bytes| bytes[byte] ^= 1);
    }
    std::fs::remove_file(bed.dir.path().join("incoming").join(&name)).unwrap();
    let bad = answer(&bed, "one", &name).await;
    let correct = async || bed.archive.correct("one", &named(&name), &bad, &person("bert"), &anna()).await;
    assert_eq!(correct().await.unwrap_err().code(), "archive-no-copy");
    assert_eq!((bed.attic("one"), bed.attic("two")), (0, 0));
    // By its row, the other copy is still a good one; what it answers now decides.
    bed.damage("two", &name, |bytes| *bytes = content(0));
    let status = correct().await.unwrap();
    assert!(status.proven(), "{status:?}");
    assert_eq!((bed.attic("one"), bed.attic("two")), (1, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_look_that_finds_the_copy_good_ends_the_repair_well() {
    let bed = Bed::new().await;
    bed.fill(1).await;
    let name = file(0);
    bed.damage("one", &name, |bytes| bytes[0] ^= 1);
    bed.archive.audit_all(AuditKind::Checksum, &anna()).await.unwrap();
    bed.archive.repair_all(&anna(), |_| Second::None, false).await.unwrap();
    let waiting = bed.archive.repairs(Some(RepairState::Waiting), 9).await.unwrap();
    bed.damage("one", &name, |bytes| bytes[0] ^= 1);
    let row = bed.archive.confirm_repair(waiting[0].id, &bert()).await.unwrap();
    assert_eq!((row.state, row.last_error), (RepairState::Done, None));
    assert_eq!(bed.attic("one"), 0, "a good copy never leaves its place");
    assert!(bed.archive.status(&named(&name)).await.unwrap().unwrap().proven());
    let again = bed.archive.confirm_repair(waiting[0].id, &bert()).await.unwrap();
    assert_eq!(again.state, RepairState::Done, "a repair is done once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_credential_is_made_at_first_use_unless_the_settings_name_its_file() {
    let mut named_file = settings();
    let one = named_file.replicas.get_mut(&"one".parse().unwrap()).unwrap();
    one.credential_file = Some("keys/one".into());
    let bed = Bed::with(named_file).await;
    let made = bed.archive.credential("two").unwrap();
    assert_eq!(made.len(), 32);
    assert_eq!(bed.archive.credential("two").unwrap(), made);
    let path = bed.dir.path().join("secrets/replica-two.credential");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);

    assert_eq!(bed.archive.credential("one").unwrap_err().code(), "archive-io");
    let path = bed.dir.path().join("keys/one");
    assert!(!path.exists(), "a file that the settings name is the operator's to make");
    std::fs::create_dir(bed.dir.path().join("keys")).unwrap();
    std::fs::write(&path, "\nsecret\n").unwrap();
    assert_eq!(bed.archive.credential("one").unwrap_err().code(), "archive-key");
    std::fs::write(&path, " secret \nmore\n").unwrap();
    assert_eq!(bed.archive.credential("one").unwrap(), "secret");

    // What is there and cannot be read is not replaced.
    let path = bed.dir.path().join("secrets/replica-three.credential");
    std::fs::create_dir(&path).unwrap();
    assert_eq!(bed.archive.credential("three").unwrap_err().code(), "archive-io");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_who_use_a_credential_first_at_the_same_moment_get_the_same_one() {
    let bed = Bed::new().await;
    let path = bed.dir.path().join("secrets/replica-one.credential");
    for round in 0..100 {
        let start = std::sync::Barrier::new(4);
        let ask = || {
            start.wait();
            bed.archive.credential("one").unwrap()
        };
        let found: Vec<_> = std::thread::scope(|scope| {
            let asked: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
            asked.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert!(found.iter().all(|one| *one == found[0] && one.len() == 32), "round {round}: {found:?}");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::remove_file(&path).unwrap();
    }
    let secrets = std::fs::read_dir(path.parent().unwrap()).unwrap();
    let left =
        secrets.filter(|one| one.as_ref().unwrap().path().extension().is_some_and(|end| end == "part"));
    assert_eq!(left.count(), 0);
}
