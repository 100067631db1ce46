//! What is refused leaves everything as it was.

use grange_model::{Checksums, Md5};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{Bench, breaking, file, noise, sums};
use crate::blob::{Source, Taking};

pub(super) async fn the_same_bytes_again_change_nothing(bench: &Bench) {
    for bytes in [noise(0, 1), noise(900_000, 1)] {
        let name = bytes.len().to_string();
        bench.put(&name, &bytes).await.unwrap();
        let before = bench.blob.stat(&file(&name)).await.unwrap();
        for expected in [None, Some(sums(&bytes))] {
            let again = bench.blob.put(&file(&name), bytes[..].into(), expected.as_ref()).await.unwrap();
            assert_eq!(
                (again.size, again.checksums, again.already),
                (bytes.len() as u64, sums(&bytes), true)
            );
        }
        assert_eq!(bench.blob.stat(&file(&name)).await.unwrap(), before);
        assert!(bench.read(&name).await == bytes);
    }
}

pub(super) async fn the_bytes_of_a_file_that_is_known_are_not_read_again(bench: &Bench) {
    let bytes = noise(900_000, 3);
    bench.put("a", &bytes).await.unwrap();
    // A sender that has nothing to give.
    let stored = bench.blob.put(&file("a"), breaking(b""), Some(&sums(&bytes))).await.unwrap();
    assert_eq!((stored.size, stored.checksums.sha512, stored.already), (900_000, sums(&bytes).sha512, true));
}

pub(super) async fn other_bytes_under_a_known_name_are_refused(bench: &Bench) {
    let (known, other) = (noise(500_000, 1), noise(500_000, 2));
    bench.put("a", &known).await.unwrap();
    for expected in [None, Some(sums(&other))] {
        let refused = bench.blob.put(&file("a"), other[..].into(), expected.as_ref()).await.unwrap_err();
        assert_eq!(refused.code(), "blob-conflict");
    }
    let longer = [&known[..], b"!"].concat();
    assert_eq!(bench.put("a", &longer).await.unwrap_err().code(), "blob-conflict");
    assert!(bench.read("a").await == known);
}

/// Each of the three must be right, though the strongest alone decides between known files.
fn wrong_sums(bytes: &[u8]) -> [Checksums; 3] {
    let right = sums(bytes);
    [
        Checksums { sha512: sums(b"x").sha512, ..right },
        Checksums { sha256: sums(b"x").sha256, ..right },
        Checksums { md5: Some(Md5([1; 16])), sha512: None, sha256: None },
    ]
}

pub(super) async fn a_local_file_with_a_wrong_checksum_is_refused_and_stays(bench: &Bench) {
    for (taking, size) in
        [(Taking::Copy, 10), (Taking::Copy, 900_000), (Taking::Move, 10), (Taking::Move, 900_000)]
    {
        let (path, bytes) = (bench.path("local"), noise(size, 1));
        std::fs::write(&path, &bytes).unwrap();
        for wrong in wrong_sums(&bytes) {
            let refused = bench.blob.put_file(&file("a"), &path, taking, Some(&wrong)).await.unwrap_err();
            assert_eq!(refused.code(), "blob-wrong-checksum", "{taking:?} {size}");
            assert_eq!(bench.blob.stat(&file("a")).await.unwrap(), None);
            assert!(std::fs::read(&path).unwrap() == bytes, "{taking:?} {size}");
        }
    }
    assert!(bench.names().await.is_empty());
}

pub(super) async fn a_sender_with_a_wrong_checksum_is_refused_and_leaves_nothing(bench: &Bench) {
    for bytes in [noise(0, 1), noise(10, 1), noise(900_000, 1)] {
        for wrong in wrong_sums(&bytes) {
            let refused = bench.blob.put(&file("a"), bytes[..].into(), Some(&wrong)).await.unwrap_err();
            assert_eq!(refused.code(), "blob-wrong-checksum");
            assert_eq!(bench.blob.stat(&file("a")).await.unwrap(), None);
        }
    }
    assert!(bench.names().await.is_empty());
    bench.put("a", b"right").await.unwrap();
}

pub(super) async fn a_sender_with_a_wrong_size_is_refused_and_leaves_nothing(bench: &Bench) {
    let bytes = noise(900_000, 1);
    for announced in [0, 1, 899_999, 900_001, 10_000_000] {
        let source = Source::new(&bytes[..]).of_size(announced);
        let refused = bench.blob.put(&file("a"), source, None).await.unwrap_err();
        assert_eq!(refused.code(), "blob-wrong-size", "{announced}");
    }
    assert!(bench.names().await.is_empty());
}

pub(super) async fn a_sender_that_breaks_off_leaves_nothing(bench: &Bench) {
    for len in [0, 10, 900_000] {
        let refused = bench.blob.put(&file("a"), breaking(&noise(len, 1)), None).await.unwrap_err();
        assert_eq!(refused.code(), "blob-source", "{len}");
        assert_eq!(bench.blob.stat(&file("a")).await.unwrap(), None);
        assert!(bench.names().await.is_empty());
    }
    bench.put("a", b"whole").await.unwrap();
    assert_eq!(bench.read("a").await, b"whole");
}

pub(super) async fn nobody_sees_a_part_of_a_file_that_is_being_written(bench: &Bench) {
    // More than one part of an upload in parts, in two halves.
    let bytes = noise(20_000_000, 6);
    let (mut writer, reader) = tokio::io::duplex(64 << 10);
    let sending = tokio::spawn({
        let blob = bench.blob.clone();
        async move { blob.put(&file("a"), Source::new(reader).of_size(20_000_000), None).await }
    });
    for half in bytes.chunks(bytes.len() / 2) {
        assert_eq!(bench.blob.stat(&file("a")).await.unwrap(), None);
        assert_eq!(bench.blob.get(&file("a")).await.unwrap_err().code(), "blob-not-found");
        assert_eq!(bench.blob.checksum(&file("a"), &[]).await.unwrap(), None);
        assert!(bench.names().await.is_empty());
        writer.write_all(half).await.unwrap();
    }
    drop(writer);
    assert_eq!(sending.await.unwrap().unwrap().size, 20_000_000);
    assert!(bench.read("a").await == bytes);
}

pub(super) async fn two_writers_of_one_name_leave_one_of_them_whole(bench: &Bench) {
    // The last rounds with files that travel in several parts.
    for (round, size) in [0, 1, 400_000, 400_000, 400_000, 9_000_000, 9_000_000].into_iter().enumerate() {
        let name = file(&format!("round-{round}"));
        let files = [noise(size, 1), noise(size + 1, 2)];
        let put = |bytes: Vec<u8>| {
            let (blob, name) = (bench.blob.clone(), name.clone());
            tokio::spawn(async move { blob.put(&name, bytes[..].into(), None).await })
        };
        let puts = [put(files[0].clone()), put(files[1].clone()), put(files[0].clone())];
        let mut kept = Vec::new();
        for (number, put) in puts.into_iter().enumerate() {
            match put.await.unwrap() {
                Ok(stored) => kept.push((number % 2, stored)),
                Err(error) => assert_eq!(error.code(), "blob-conflict", "{error}"),
            }
        }
        let winner = kept[0].0;
        assert!(kept.iter().all(|(number, _)| *number == winner), "both were told to be stored");
        assert_eq!(kept.iter().filter(|(_, stored)| !stored.already).count(), 1);
        let mut read = Vec::new();
        bench.blob.get(&name).await.unwrap().read_to_end(&mut read).await.unwrap();
        assert!(read == files[winner]);
    }
}

pub(super) async fn removing_needs_the_right_checksum(bench: &Bench) {
    bench.put("a", b"bytes").await.unwrap();
    let other = bench.blob.remove_to_attic(&file("a"), &sums(b"other")).await.unwrap_err();
    assert_eq!(other.code(), "blob-other-bytes");
    let none = bench.blob.remove_to_attic(&file("a"), &Checksums::default()).await.unwrap_err();
    assert_eq!(none.code(), "blob-no-checksum");
    assert_eq!(bench.read("a").await, b"bytes");
    // An old archive may know only the MD5.
    let md5 = Checksums { sha512: None, sha256: None, ..sums(b"bytes") };
    bench.blob.remove_to_attic(&file("a"), &md5).await.unwrap();
    assert!(bench.names().await.is_empty());
}
