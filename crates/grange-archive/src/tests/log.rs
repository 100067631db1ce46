//! The log: nothing in it can be changed without being seen, and a third party can check a proof.

use grange_testkit::sqlite;

use super::bed::{Bed, content, file, named};
use crate::{Proof, Witness, check_proof};

async fn witnessed() -> Bed {
    let bed = Bed::new().await;
    bed.fill(4).await;
    bed.archive.checkpoint().await.unwrap();
    assert_eq!(bed.archive.write_witness().await.unwrap(), Vec::<String>::new());
    bed.store("later", b"later").await;
    bed
}

fn witness_of(bed: &Bed, replica: &str) -> std::path::PathBuf {
    let folder = bed.dir.path().join("replicas").join(replica);
    let folder = if replica == "three" { folder } else { folder.join("filedir") };
    let mut files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.find(|path| path.to_string_lossy().contains("grange-witness-")).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quiet_log_holds_and_its_witnesses_lie_on_every_replica() {
    let bed = witnessed().await;
    let report = bed.archive.verify_log().await.unwrap();
    assert!(report.ok, "{report:?}");
    assert_eq!((report.leaves, report.files, report.witnesses.len()), (5, 5, 3));
    assert!(report.witnesses.iter().all(|one| one.holds && !one.of_lost_log));
    // Once a day, however often it is asked for; and no witness is taken for a file.
    bed.archive.write_witness().await.unwrap();
    assert_eq!(bed.archive.verify_log().await.unwrap().witnesses.len(), 3);
    let rows = bed.archive.audit_all(grange_model::AuditKind::List, &super::bed::anna()).await.unwrap();
    assert!(rows.iter().all(|row| row.found.extra == 0 && row.found.ok == 5), "{rows:?}");
    let key = std::fs::metadata(bed.dir.path().join("secrets/log.key")).unwrap();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&key.permissions()) & 0o777, 0o600);
}

/// Each of these is what somebody with the database in hand could try.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_way_to_rewrite_the_database_is_seen() {
    let ways = [
        "UPDATE log_leaves SET body = replace(body, 'anna', 'bert') WHERE number = 1",
        "DELETE FROM log_leaves WHERE number = 1",
        "DELETE FROM log_leaves WHERE number >= 2; UPDATE log_head SET size = 2; DELETE FROM log_checkpoints",
        "UPDATE log_leaves SET number = number + 100 WHERE number = 0; UPDATE log_leaves SET number = 0 \
         WHERE number = 1; UPDATE log_leaves SET number = 1 WHERE number = 100",
        "UPDATE log_checkpoints SET root = 'ab' || substr(root, 3)",
        "UPDATE files SET checksum = 'sha512=00', checksums = '{\"md5\":\"00000000000000000000000000000000\"}' \
         WHERE id = 1",
        "UPDATE log_leaves SET body = replace(body, 'anna', 'bert'); DELETE FROM log_checkpoints",
    ];
    let mut seen = 0;
    for way in ways {
        let bed = witnessed().await;
        let path = bed.dir.path().join("grange.db");
        tokio::task::spawn_blocking(move || sqlite::execute(&path, way)).await.unwrap();
        let report = bed.archive.verify_log().await.unwrap();
        assert!(!report.ok && !report.problems.is_empty(), "{way}: {report:?}");
        seen += 1;
    }
    assert_eq!(seen, 7);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proof_can_be_checked_by_a_third_party_and_a_forged_one_cannot_pass() {
    let bed = witnessed().await;
    let proof = bed.archive.prove(&named(&file(2))).await.unwrap();
    let text = serde_json::to_string(&proof).unwrap();
    let read: Proof = serde_json::from_str(&text).unwrap();
    let key = bed.archive.checkpoint().await.unwrap().public_key;
    let witness: Witness =
        serde_json::from_slice(&std::fs::read(witness_of(&bed, "three")).unwrap()).unwrap();
    let records = check_proof(&read, Some(&key), Some(&witness)).unwrap();
    assert_eq!((records.len(), records[0].size), (1, Some(content(2).len() as u64)));
    // A byte changed anywhere in the proof, wherever it still can be read, is refused.
    let mut refused = 0;
    for at in (0..text.len()).step_by(3) {
        let mut bytes = text.clone().into_bytes();
        bytes[at] = if bytes[at] == b'0' { b'1' } else { b'0' };
        let Ok(forged) = serde_json::from_slice::<Proof>(&bytes) else { continue };
        if forged == read {
            continue;
        }
        assert!(check_proof(&forged, Some(&key), Some(&witness)).is_err(), "changed at {at}");
        refused += 1;
    }
    assert!(refused > 100, "{refused}");
    let mut other = read.clone();
    other.name = named(&file(1));
    assert!(check_proof(&other, Some(&key), None).is_err());
    assert!(check_proof(&read, Some(&"00".repeat(32)), None).is_err());
}

/// Between any two of its reads the log may grow and rows may change.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_that_grows_while_it_is_verified_holds() {
    let bed = witnessed().await;
    let (archive, dir) = (bed.archive.clone(), bed.dir.path().join("incoming"));
    let storing = tokio::spawn(async move {
        for n in 100..200 {
            let path = dir.join(file(n));
            std::fs::write(&path, content(n)).unwrap();
            let store = crate::Store::new(named(&file(n)), "anna");
            assert!(archive.store(&path, &store).await.unwrap().stored);
        }
    });
    let mut verified = 0;
    while !storing.is_finished() {
        let report = bed.archive.verify_log().await.unwrap();
        assert!(report.ok, "{report:?}");
        verified += 1;
    }
    storing.await.unwrap();
    assert!(verified > 1);
    let report = bed.archive.verify_log().await.unwrap();
    assert_eq!((report.ok, report.leaves, report.files), (true, 105, 105), "{report:?}");
}
