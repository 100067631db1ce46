//! Hostile names: refused, or stored as they are; stated which.

use super::bed::{Bed, named};
use grange_model::FileName;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_names_are_refused_and_odd_ones_are_stored_safely() {
    let long = "x".repeat(300);
    let refused =
        ["..", ".", "../a", "a/b", "/etc/passwd", "a\\b", "a\0b", "a\nb", "", "A\u{30a}", " a", "a ", &long];
    let mut count = 0;
    for name in refused {
        assert!(name.parse::<FileName>().is_err(), "{name:?}");
        count += 1;
    }
    assert_eq!(count, 13);
    let bed = Bed::new().await;
    let full = "y".repeat(255);
    let stored = ["a..b", "a b", "Å.warc", "名前.warc", "a'b\"c;--", "%2e%2e", "{now}$1", "a&b<c>", &full];
    for (n, name) in stored.iter().enumerate() {
        let bytes = format!("content {n}");
        assert!(
            bed.archive
                .store_reader(bytes.as_bytes(), &crate::Store::new(named(name), "anna"))
                .await
                .unwrap()
                .stored
        );
        let dest = bed.dir.path().join(format!("dest-{n}"));
        bed.archive.get(&named(name), &dest).await.unwrap();
        assert_eq!(std::fs::read_to_string(dest).unwrap(), bytes, "{name}");
    }
    let rows = bed.archive.audit_all(grange_model::AuditKind::Checksum, &super::bed::anna()).await.unwrap();
    assert!(rows.iter().all(|row| row.found.ok == stored.len() as u64 && row.found.extra == 0), "{rows:?}");
    assert!(bed.archive.verify_log().await.unwrap().ok);
}
