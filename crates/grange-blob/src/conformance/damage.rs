//! What the port promises of bytes that change: on their way, and afterwards.

use grange_model::Algorithm;

use super::{Bench, file, noise, sums};
use crate::blob::{Source, Taking};

/// Small, of several buffers, and in several parts.
const SIZES: [usize; 3] = [10, 900_000, 9_000_000];

pub(super) async fn a_write_that_reads_back_differently_is_not_kept(bench: &Bench) {
    for size in SIZES {
        let bytes = noise(size, 1);
        for expected in [None, Some(sums(&bytes))] {
            bench.damage_next_write();
            let source = Source::from(&bytes[..]);
            let refused = bench.blob.put(&file("a"), source, expected.as_ref()).await.unwrap_err();
            // With an announced checksum a disk sums up only once, and cannot tell its own fault from the sender's.
            let codes = ["blob-read-back", "blob-wrong-checksum"];
            assert!(codes[..=usize::from(expected.is_some())].contains(&refused.code()), "{size} {refused}");
            assert_eq!(bench.blob.stat(&file("a")).await.unwrap(), None, "{size}");
            assert!(bench.names().await.is_empty(), "{size}");
        }
        let stored = bench.put("a", &bytes).await.unwrap();
        assert!(!stored.already && bench.read("a").await == bytes);
        bench.blob.remove_to_attic(&file("a"), &sums(&bytes)).await.unwrap();
    }
}

pub(super) async fn a_local_file_stays_when_its_copy_reads_back_differently(bench: &Bench) {
    for (taking, expected) in [(Taking::Copy, false), (Taking::Move, true)] {
        let (bytes, path) = (noise(900_000, 1), bench.path("local"));
        std::fs::write(&path, &bytes).unwrap();
        // A file that is taken over is changed itself; what is promised is that it is still there.
        let expected = expected.then(|| sums(&bytes));
        bench.damage_next_write();
        let refused = bench.blob.put_file(&file("a"), &path, taking, expected.as_ref()).await.unwrap_err();
        assert!(["blob-read-back", "blob-wrong-checksum"].contains(&refused.code()), "{refused}");
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 900_000);
        assert!(bench.names().await.is_empty());
        std::fs::remove_file(&path).unwrap();
    }
}

pub(super) async fn a_changed_byte_is_told_by_every_question_about_the_bytes(bench: &Bench) {
    for size in SIZES {
        let (bytes, name) = (noise(size, 2), format!("file-{size}"));
        bench.put(&name, &bytes).await.unwrap();
        let challenge = bench.blob.challenge(&file(&name), b"salt").await.unwrap();
        bench.damage(&name).await;
        let mut changed = bytes.clone();
        changed[0] ^= 1;
        for algorithms in [Algorithm::ALL, &[Algorithm::Sha512]] {
            let found = bench.blob.checksum(&file(&name), algorithms).await.unwrap().unwrap();
            assert_eq!(found, sums(&changed).only(algorithms));
        }
        assert_ne!(bench.blob.challenge(&file(&name), b"salt").await.unwrap(), challenge);
        // Neither the good bytes nor their checksum are taken for what lies there: they are refused, or the changed ones
        // go to the attic and the good ones are written again.
        for expected in [Some(sums(&bytes)), None] {
            match bench.blob.put(&file(&name), bytes[..].into(), expected.as_ref()).await {
                Err(refused) => assert_eq!(refused.code(), "blob-conflict", "{refused}"),
                Ok(stored) => {
                    assert!(!stored.already && bench.read(&name).await == bytes);
                    assert!(bench.attic().await.contains(&changed));
                    break;
                }
            }
        }
    }
}

pub(super) async fn changed_bytes_are_removed_by_their_own_checksum_only(bench: &Bench) {
    for size in SIZES {
        let (bytes, name) = (noise(size, 2), format!("file-{size}"));
        bench.put(&name, &bytes).await.unwrap();
        bench.damage(&name).await;
        let mut changed = bytes.clone();
        changed[0] ^= 1;
        let refused = bench.blob.remove_to_attic(&file(&name), &sums(&bytes)).await.unwrap_err();
        assert_eq!(refused.code(), "blob-other-bytes");
        let before = bench.attic().await.len();
        bench.blob.remove_to_attic(&file(&name), &sums(&changed)).await.unwrap();
        let attic = bench.attic().await;
        assert!(attic.len() == before + 1 && attic.contains(&changed), "{size}");
        bench.put(&name, &bytes).await.unwrap();
        assert!(bench.read(&name).await == bytes);
    }
}

#[cfg(feature = "s3")]
#[tokio::test]
async fn an_object_that_cannot_be_read_is_removed_without_a_checksum() {
    let bench = Bench::bucket().await.unwrap();
    let super::insides::Insides::Bucket(s3, bucket) = &bench.insides else { panic!() };
    bench.put("a", b"bytes").await.unwrap();
    *bucket.unreadable.lock().unwrap() = Some(s3.key(&["files", "a"]));
    let error = bench.blob.checksum(&file("a"), &[Algorithm::Sha512]).await.unwrap_err();
    assert_eq!(error.code(), "blob-remote");
    bench.blob.remove_to_attic(&file("a"), &grange_model::Checksums::default()).await.unwrap();
    assert_eq!((bench.names().await.len(), bench.attic().await), (0, vec![b"bytes".to_vec()]));
}

#[tokio::test]
async fn a_file_of_a_swap_network_that_cannot_be_read_is_removed_without_a_checksum() {
    let bench = Bench::swap().await.unwrap();
    let super::insides::Insides::Swap(swap) = &bench.insides else { panic!() };
    let nothing = grange_model::Checksums::default();
    for name in ["a", "b", "c"] {
        bench.put(name, b"bytes").await.unwrap();
        let refused = bench.blob.remove_to_attic(&file(name), &nothing).await.unwrap_err();
        assert_eq!(refused.code(), "blob-no-checksum", "it can be read");
        *swap.unreadable.lock().unwrap() = Some(file(name));
        assert!(bench.blob.checksum(&file(name), &[Algorithm::Sha512]).await.is_err());
        bench.blob.remove_to_attic(&file(name), &nothing).await.unwrap();
        let gone = bench.blob.remove_to_attic(&file(name), &nothing).await.unwrap_err();
        assert_eq!(gone.code(), "blob-not-found");
    }
    assert_eq!((bench.names().await.len(), bench.attic().await), (0, vec![b"bytes".to_vec(); 3]));
}
