//! What comes back is what went in.

use grange_model::{Algorithm, Checksums};

use super::{Bench, file, noise, sums};
use crate::blob::{Source, Taking};
use crate::buffers::{BUFFER_BYTES, Buffers};
use crate::digest::Proving;

pub(super) async fn what_was_put_is_got_back_at_every_size(bench: &Bench) {
    for size in [0, 1, 4095, BUFFER_BYTES - 1, BUFFER_BYTES, BUFFER_BYTES + 1, 3_000_000, 20_000_000] {
        let (name, bytes) = (format!("{size}.warc"), noise(size, size as u64));
        // Once with the size and checksum told, once as a plain stream.
        for (name, source, expected) in [
            (name.clone(), Source::from(&bytes[..]), Some(sums(&bytes))),
            (format!("plain-{name}"), Source::new(&bytes[..]), None),
        ] {
            let stored = bench.blob.put(&file(&name), source, expected.as_ref()).await.unwrap();
            assert_eq!((stored.size, stored.checksums, stored.already), (size as u64, sums(&bytes), false));
            assert!(bench.read(&name).await == bytes, "{name}");
            assert_eq!(bench.blob.stat(&file(&name)).await.unwrap().unwrap().size, size as u64);
            assert_eq!(bench.blob.get(&file(&name)).await.unwrap().size, size as u64);
        }
    }
}

pub(super) async fn a_range_is_read_anywhere_and_ends_with_the_file(bench: &Bench) {
    let bytes = noise(600_000, 1);
    bench.put("a", &bytes).await.unwrap();
    for (offset, len) in [
        (0, 0),
        (0, 1),
        (0, 600_000),
        (599_999, 1),
        (599_999, 2),
        (600_000, 9),
        (900_000, 9),
        (300_000, 70_000),
    ] {
        let end = (offset + len).min(bytes.len());
        let wanted = bytes.get(offset..end).unwrap_or_default();
        let read = bench.blob.read_at(&file("a"), offset as u64, len).await.unwrap();
        assert!(read == wanted, "{offset} {len}: {} bytes", read.len());
    }
    assert!(bench.blob.read_at(&file("a"), u64::MAX, 10).await.unwrap().is_empty());
}

pub(super) async fn a_checksum_is_of_the_stored_bytes_and_only_as_asked(bench: &Bench) {
    let bytes = noise(700_000, 2);
    bench.put("a", &bytes).await.unwrap();
    let all = bench.blob.checksum(&file("a"), Algorithm::ALL).await.unwrap();
    assert_eq!(all, Some(sums(&bytes)));
    let one = bench.blob.checksum(&file("a"), &[Algorithm::Sha256]).await.unwrap();
    assert_eq!(one, Some(Checksums { sha512: None, md5: None, ..sums(&bytes) }));
}

pub(super) async fn a_challenge_is_answered_from_the_bytes(bench: &Bench) {
    let bytes = noise(400_000, 3);
    bench.put("a", &bytes).await.unwrap();
    for salt in [&b"one salt"[..], b"", &[0xff; 300]] {
        let wanted = Proving::of(salt, &bytes[..], &Buffers::default()).unwrap();
        assert_eq!(bench.blob.challenge(&file("a"), salt).await.unwrap(), Some(wanted));
    }
}

pub(super) async fn a_missing_file_is_an_answer(bench: &Bench) {
    let absent = file("absent");
    assert_eq!(bench.blob.get(&absent).await.unwrap_err().code(), "blob-not-found");
    assert_eq!(bench.blob.read_at(&absent, 0, 1).await.unwrap_err().code(), "blob-not-found");
    assert_eq!(bench.blob.stat(&absent).await.unwrap(), None);
    assert_eq!(bench.blob.checksum(&absent, Algorithm::ALL).await.unwrap(), None);
    assert_eq!(bench.blob.challenge(&absent, b"salt").await.unwrap(), None);
    let removed = bench.blob.remove_to_attic(&absent, &sums(b"")).await;
    assert_eq!(removed.unwrap_err().code(), "blob-not-found");
    assert!(bench.blob.list(None, 10).await.unwrap().is_empty());
}

pub(super) async fn a_local_file_is_copied_or_moved(bench: &Bench) {
    for (taking, size) in [
        (Taking::Copy, 0),
        (Taking::Copy, 2_000_000),
        (Taking::Move, 0),
        (Taking::Move, 10),
        (Taking::Move, 2_000_000),
    ] {
        let (name, bytes) = (format!("{taking:?}-{size}"), noise(size, 4));
        let path = bench.path(&name);
        // The second time it is known; a file to be moved is gone then as well.
        for already in [false, true] {
            std::fs::write(&path, &bytes).unwrap();
            let expected = Some(sums(&bytes)).filter(|_| already);
            let stored = bench.blob.put_file(&file(&name), &path, taking, expected.as_ref()).await.unwrap();
            assert_eq!((stored.checksums, stored.already), (sums(&bytes), already), "{name}");
            assert_eq!(path.exists(), taking == Taking::Copy, "{name}");
            assert!(bench.read(&name).await == bytes, "{name}");
        }
    }
}

pub(super) async fn a_local_file_that_is_not_what_is_stored_stays(bench: &Bench) {
    bench.put("a", b"stored").await.unwrap();
    let path = bench.path("other");
    std::fs::write(&path, b"other!").unwrap();
    // The announced checksum is that of the stored bytes: a put may believe it, a deletion must not.
    let expected = sums(b"stored");
    for expected in [None, Some(&expected)] {
        let refused = bench.blob.put_file(&file("a"), &path, Taking::Move, expected).await;
        let code = refused.unwrap_err().code();
        assert!(["blob-conflict", "blob-wrong-checksum"].contains(&code), "{code}");
        assert_eq!(std::fs::read(&path).unwrap(), b"other!");
    }
    let lying = bench.blob.put_file(&file("new"), &path, Taking::Move, Some(&expected)).await;
    assert_eq!(lying.unwrap_err().code(), "blob-wrong-checksum");
    assert_eq!(std::fs::read(&path).unwrap(), b"other!");
    assert_eq!(bench.names().await, ["a"]);
}

pub(super) async fn names_of_every_kind_are_kept_apart(bench: &Bench) {
    let long = "l".repeat(255);
    let names = ["a", "A", "a b", "a%20b", "a+b", "a?b=c&d", "a#b", "æøå-名前.warc", "a..b", "~", "*", &long];
    for name in names {
        bench.put(name, name.as_bytes()).await.unwrap();
    }
    for name in names {
        assert_eq!(bench.read(name).await, name.as_bytes());
        assert_eq!(bench.blob.read_at(&file(name), 0, 1).await.unwrap(), name.as_bytes()[..1]);
    }
    let mut sorted = names.map(str::to_owned);
    sorted.sort_unstable();
    assert_eq!(bench.names().await, sorted);
}

pub(super) async fn removed_files_are_in_the_attic_and_may_come_again(bench: &Bench) {
    assert!(bench.attic().await.is_empty());
    let large = noise(9_000_000, 5);
    let files = [&b"first"[..], b"other", b"first", b"", &large];
    for bytes in files {
        bench.put("a", bytes).await.unwrap();
        bench.blob.remove_to_attic(&file("a"), &sums(bytes)).await.unwrap();
        assert_eq!(bench.blob.stat(&file("a")).await.unwrap(), None);
        assert!(bench.names().await.is_empty());
    }
    let mut removed = files.map(<[u8]>::to_vec);
    removed.sort();
    assert!(bench.attic().await == removed, "each of them, byte by byte");
    bench.put("a", b"last").await.unwrap();
    assert_eq!(bench.read("a").await, b"last");
}

pub(super) async fn there_is_room_and_it_is_told(bench: &Bench) {
    let room = bench.blob.free().await.unwrap();
    assert!(room.largest_bytes > 1_000_000, "{room:?}");
    assert_eq!(room.free_bytes.is_some(), room.total_bytes.is_some());
    assert!(room.free_bytes <= room.total_bytes, "{room:?}");
    assert!(!bench.blob.place().is_empty());
}

pub(super) async fn a_marker_lies_beside_the_files_and_can_be_replaced(bench: &Bench) {
    let parts = bench.blob.markers().await.unwrap();
    assert!(!parts.is_empty() && parts.iter().all(|part| part.marker.is_none() && part.empty), "{parts:?}");
    bench.put("a", b"bytes").await.unwrap();
    let parts = bench.blob.markers().await.unwrap();
    assert_eq!(parts.iter().filter(|part| !part.empty).count(), 1, "{parts:?}");
    for text in ["one\n", "another, and longer"] {
        for part in &parts {
            bench.blob.mark(&part.part, text).await.unwrap();
        }
        let marked = bench.blob.markers().await.unwrap();
        assert!(marked.iter().all(|part| part.marker.as_deref() == Some(text)), "{marked:?}");
    }
    assert_eq!(bench.names().await, ["a"]);
}
