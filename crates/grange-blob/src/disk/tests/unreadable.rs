//! A file on a worn-out part of the disk: the others are listed and read as ever.

use grange_model::{Algorithm, Checksums};

use crate::blob::Blob;
use crate::conformance::{disk, file, noise, sums};
use crate::disk::base::Fault;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_file_that_cannot_be_looked_at_is_listed_and_named_unreadable_and_the_others_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let disk = disk(&folder, &["one", "two"]);
    // The second is large enough to be summed up beside others.
    let large = noise(2_000_000, 7);
    for (name, bytes) in [("a", &b"first"[..]), ("b", &large), ("c", b"third")] {
        disk.put(&file(name), bytes.into(), None).await.unwrap();
    }
    disk.faults().add(Fault::Unreadable(file("b")));
    let listed = disk.list(None, 10).await.unwrap();
    let sizes: Vec<_> = listed.iter().map(|one| (one.name.as_str(), one.size)).collect();
    assert_eq!(sizes, [("a", Some(5)), ("b", None), ("c", Some(5))]);
    for algorithms in [&[Algorithm::Sha512][..], &[Algorithm::Md5]] {
        let error = disk.checksum(&file("b"), algorithms).await.unwrap_err();
        assert_eq!(error.code(), "blob-unreadable", "{error}");
        assert!(error.to_string().contains("needs cleaning"), "{error}");
        assert!(disk.checksum(&file("c"), algorithms).await.unwrap().is_some());
    }
    assert_eq!(disk.challenge(&file("b"), b"salt").await.unwrap_err().code(), "blob-unreadable");
    // It goes to the attic without a checksum, and only it does.
    let none = Checksums::default();
    assert_eq!(disk.remove_to_attic(&file("c"), &none).await.unwrap_err().code(), "blob-no-checksum");
    disk.remove_to_attic(&file("b"), &none).await.unwrap();
    assert_eq!(disk.list(None, 10).await.unwrap().len(), 2);
    assert_eq!(disk.checksum(&file("c"), Algorithm::ALL).await.unwrap(), Some(sums(b"third")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_whose_name_was_not_synced_is_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    let disk = disk(&folder, &["one"]);
    disk.faults().add(Fault::FolderSync);
    let error = disk.put(&file("a"), b"bytes"[..].into(), None).await.unwrap_err();
    assert_eq!(error.code(), "blob-io");
    assert_eq!(disk.stat(&file("a")).await.unwrap(), None);
    assert_eq!(std::fs::read_dir(folder.path().join("one/tempdir")).unwrap().count(), 0);
    let again = disk.put(&file("a"), b"bytes"[..].into(), None).await.unwrap();
    assert!(!again.already, "it is written again, not believed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_cannot_be_read_is_removed_from_the_disk_that_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let disk = disk(&folder, &["one", "two"]);
    let none = Checksums::default();
    for (base, name) in [("two", "a"), ("one", "b")] {
        let path = folder.path().join(base).join("filedir").join(name);
        std::fs::write(&path, b"bytes").unwrap();
        assert_eq!(disk.remove_to_attic(&file(name), &none).await.unwrap_err().code(), "blob-no-checksum");
        disk.faults().add(Fault::Unreadable(file(name)));
        disk.remove_to_attic(&file(name), &none).await.unwrap();
        assert!(!path.exists());
        assert_eq!(std::fs::read_dir(folder.path().join(base).join("atticdir")).unwrap().count(), 1);
    }
    assert_eq!(disk.remove_to_attic(&file("c"), &none).await.unwrap_err().code(), "blob-not-found");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_without_free_descriptors_calls_no_file_unreadable() {
    let folder = tempfile::tempdir().unwrap();
    let disk = disk(&folder, &["one"]);
    let large = noise(2_000_000, 7);
    for (name, bytes) in [("a", &b"bytes"[..]), ("b", &large)] {
        disk.put(&file(name), bytes.into(), None).await.unwrap();
        disk.faults().add(Fault::NoDescriptor);
        let error = disk.checksum(&file(name), &[Algorithm::Sha512]).await.unwrap_err();
        assert_eq!((error.code(), error.retry()), ("blob-shortage", grange_base::Retry::Soon), "{error}");
        disk.faults().add(Fault::NoDescriptor);
        assert_eq!(disk.challenge(&file(name), b"salt").await.unwrap_err().code(), "blob-shortage");
        disk.faults().add(Fault::NoDescriptor);
        let removed = disk.remove_to_attic(&file(name), &Checksums::default()).await;
        assert_eq!(removed.unwrap_err().code(), "blob-shortage", "it is not unreadable");
        assert_eq!(disk.checksum(&file(name), Algorithm::ALL).await.unwrap(), Some(sums(bytes)));
    }
}

/// A killed process may have given a file its name and not synced it; the next one acknowledges that file.
#[test]
fn names_that_a_killed_process_left_are_synced_before_they_count() {
    let folder = tempfile::tempdir().unwrap();
    drop(disk(&folder, &["one"]));
    let base = folder.path().join("one");
    crate::disk::base::SYNCED.lock().unwrap().retain(|path| !path.starts_with(&base));
    let _disk = disk(&folder, &["one"]);
    let synced = crate::disk::base::SYNCED.lock().unwrap().clone();
    for name in ["filedir", "atticdir"] {
        assert!(synced.contains(&base.join(name)), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_was_replaced_while_it_was_read_stays() {
    let folder = tempfile::tempdir().unwrap();
    let disk = disk(&folder, &["one"]);
    disk.put(&file("a"), b"wrong"[..].into(), None).await.unwrap();
    disk.faults().add(Fault::Replaced(b"right".to_vec()));
    let refused = disk.remove_to_attic(&file("a"), &sums(b"wrong")).await.unwrap_err();
    assert_eq!(refused.code(), "blob-io", "{refused}");
    assert_eq!(disk.checksum(&file("a"), Algorithm::ALL).await.unwrap(), Some(sums(b"right")));
}
