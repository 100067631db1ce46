//! Storing: replicas that are away, forget, refuse; senders that lie; clients that meet.

use std::sync::atomic::Ordering;

use grange_model::{Checksums, LogEvent, Sha512, UploadState};

use super::bed::{Bed, anna, content, database, file, named, parts, settings};
use crate::{Archive, Settings, Store};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_is_proven_on_every_replica_and_a_second_one_changes_nothing() {
    let bed = Bed::new().await;
    let first = bed.store("a.warc.gz", b"hello").await;
    assert!(first.stored && !first.already && first.unproven.is_empty());
    assert!(first.checksums.sha512.is_some() && first.checksums.md5.is_some());
    let second = bed.store("a.warc.gz", b"hello").await;
    assert!(second.stored && second.already);
    assert_eq!(bed.puts(), (1, 1));
    assert_eq!(bed.got("a.warc.gz").await, b"hello");
    assert_eq!(&bed.archive.read_at(&named("a.warc.gz"), 1, 3).await.unwrap()[..], b"ell");
    assert_eq!(bed.archive.read_at(&named("a.warc.gz"), 9, 3).await.unwrap().len(), 0);
    let status = bed.archive.status(&named("a.warc.gz")).await.unwrap().unwrap();
    assert!(
        status.holdings.iter().all(|one| one.state == UploadState::UploadCompleted)
            && status.holdings.len() == 3
    );
    assert_eq!(bed.events(LogEvent::Stored).await, 1);
    assert_eq!(bed.archive.status(&named("b")).await.unwrap(), None);
    let error = bed.archive.get(&named("b"), &bed.dir.path().join("b")).await.unwrap_err();
    assert_eq!(error.code(), "not-found");
    // What a reader gives goes the same way, and the spool is empty afterwards.
    let store = Store::new(named("b"), "anna");
    assert!(bed.archive.store_reader(&b"from a stream"[..], &store).await.unwrap().stored);
    assert_eq!(std::fs::read_dir(bed.dir.path().join("spool")).unwrap().count(), 0);
    assert!(bed.store("empty", b"").await.stored);
    assert_eq!(bed.got("empty").await, b"");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_is_away_heals_later_and_nothing_proven_is_sent_again() {
    let bed = Bed::new().await;
    bed.two.down.store(true, Ordering::SeqCst);
    for n in 0..5 {
        let outcome = bed.store(&file(n), &content(n)).await;
        let away: Vec<_> = outcome.unproven.iter().map(|one| (one.replica.as_str(), one.state)).collect();
        assert!(!outcome.stored);
        assert_eq!(away, [("two", UploadState::UploadFailed)]);
        assert!(outcome.unproven[0].reason.contains("down"), "{}", outcome.unproven[0].reason);
        assert_eq!(bed.got(&file(n)).await, content(n));
        // The sender's file goes away: the bytes come from the proven copy.
        std::fs::remove_file(bed.dir.path().join("incoming").join(file(n))).unwrap();
    }
    assert_eq!(bed.puts(), (5, 0));
    bed.two.down.store(false, Ordering::SeqCst);
    bed.work().await;
    assert_eq!(bed.puts(), (5, 5));
    for n in 0..5 {
        assert!(bed.archive.status(&named(&file(n))).await.unwrap().unwrap().proven());
    }
    assert_eq!(bed.events(LogEvent::Stored).await, 5);
    assert_eq!(
        bed.archive.db().work().counts(grange_db::STORE_WORK).await.unwrap(),
        grange_db::Counts::default()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_forgets_is_sent_the_file_once_more_and_not_for_ever() {
    let bed = Bed::new().await;
    bed.two.forgets.store(1, Ordering::SeqCst);
    assert!(bed.store("a", b"a").await.stored);
    assert_eq!(bed.puts(), (1, 2));
    bed.two.forgets.store(9, Ordering::SeqCst);
    let outcome = bed.store("b", b"b").await;
    assert!(!outcome.stored);
    assert_eq!(bed.puts(), (2, 4));
    bed.two.forgets.store(0, Ordering::SeqCst);
    assert!(bed.store("b", b"b").await.stored, "storing the same bytes again heals what is missing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lying_sender_and_other_bytes_under_a_known_name_are_refused() {
    let bed = Bed::new().await;
    let path = bed.source("a", b"truth");
    let lie = Checksums { sha512: Some(Sha512([7; 64])), ..Checksums::default() };
    let store = Store::new(named("a"), "anna").expecting(lie);
    assert_eq!(bed.archive.store(&path, &store).await.unwrap_err().code(), "archive-wrong-checksum");
    assert_eq!(bed.archive.status(&named("a")).await.unwrap(), None);
    assert!(bed.store("a", b"truth").await.stored);
    let other = bed.source("a", b"other");
    let error = bed.archive.store(&other, &Store::new(named("a"), "anna")).await.unwrap_err();
    assert_eq!(error.code(), "archive-other-bytes");
    assert_eq!(bed.got("a").await, b"truth");
    assert_eq!(bed.puts(), (1, 1));
    let reserved = Store::new(named("grange-witness-1"), "anna");
    assert_eq!(bed.archive.store(&path, &reserved).await.unwrap_err().code(), "archive-reserved-name");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_clients_that_store_one_name_at_once_one_content_wins_whole() {
    let bed = Bed::new().await;
    let (mut stored, mut refused) = (0, 0);
    for round in 0..10 {
        let name = format!("race-{round}");
        let clients = (0..6).map(|client| {
            let bytes = if client % 2 == 0 { b"even".to_vec() } else { b"odd!".to_vec() };
            let path = bed.source(&format!("{name}-{client}"), &bytes);
            let (archive, store) = (bed.archive.clone(), Store::new(named(&name), "anna"));
            tokio::spawn(async move { archive.store(&path, &store).await.map(|outcome| (outcome, bytes)) })
        });
        let mut winner = None;
        for client in clients.collect::<Vec<_>>() {
            match client.await.unwrap() {
                Ok((outcome, bytes)) => {
                    assert!(outcome.stored, "{outcome:?}");
                    assert_eq!(winner.get_or_insert(bytes.clone()), &bytes);
                    stored += 1;
                }
                Err(error) => {
                    assert_eq!(error.code(), "archive-other-bytes");
                    refused += 1;
                }
            }
        }
        assert_eq!(&bed.got(&name).await, winner.as_ref().unwrap());
    }
    assert_eq!((stored, refused), (30, 30));
    assert_eq!(bed.puts(), (10, 10));
    assert_eq!(bed.events(LogEvent::Stored).await, 10);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_the_settings_forgot_stops_the_start_and_a_new_one_is_filled() {
    let bed = Bed::new().await;
    bed.fill(3).await;
    let clock = grange_base::Clock::system();
    let db = database(bed.dir.path(), &clock).await;
    let mut fewer = Settings::default();
    fewer.replicas.remove(&"two".parse().unwrap());
    let error = Archive::open(parts(bed.dir.path(), db.clone(), &clock, fewer).await).await.unwrap_err();
    assert_eq!(error.code(), "archive-undeclared-replica");
    assert!(error.to_string().contains("two (bitarchive)"), "{error}");
    let mut more = settings();
    more.replicas.insert("four".parse().unwrap(), crate::ReplicaSettings::default());
    let archive = Archive::open(parts(bed.dir.path(), db, &clock, more).await).await.unwrap();
    let overview = archive.overview().await.unwrap();
    assert_eq!(
        (overview[3].replica.name.as_str(), overview[3].completed, overview[3].started),
        ("four", 0, 3)
    );
    for n in 0..3 {
        let path = bed.source(&file(n), &content(n));
        let outcome = archive.store(&path, &Store::new(named(&file(n)), anna().who)).await.unwrap();
        assert!(outcome.stored, "{outcome:?}");
    }
    assert_eq!(archive.overview().await.unwrap()[3].completed, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_a_regular_file_is_refused_before_it_is_read_and_leaves_no_row() {
    let bed = Bed::new().await;
    let pipe = bed.dir.path().join("pipe");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    for path in [pipe.as_path(), std::path::Path::new("/dev/zero"), bed.dir.path()] {
        let error = bed.archive.store(path, &Store::new(named("a"), "anna")).await.unwrap_err();
        assert_eq!(error.code(), "archive-not-regular-file", "{error}");
    }
    assert_eq!(bed.archive.status(&named("a")).await.unwrap(), None);
}
