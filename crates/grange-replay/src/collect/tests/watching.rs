//! Rules and copies that are served, while the database or the store fails.

use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::FutureExt;
use grange_blob::Error;
use grange_testkit::sqlite;

use super::hooked_blob::{BlobAct, HookedBlob};
use super::*;

/// Runs a statement on the database behind Grange's back.
async fn execute(bed: &Bed, sql: &'static str) {
    let path = bed.dir.path().join("grange.db");
    tokio::task::spawn_blocking(move || sqlite::execute(&path, sql)).await.unwrap();
}

fn archive(bed: &Bed) -> Arc<ArchiveFiles> {
    Arc::new(ArchiveFiles::new(Arc::new(Folder(bed.dir.path().join("nothing")))))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_are_in_force_after_a_look_that_failed_behind_them_and_after_the_next_one() {
    let bed = Bed::new().await;
    let path = bed.write("a.warc", &["http://e.com/"]);
    bed.register("news", &path, false).await;
    bed.feed().await;
    let (collections, mut watcher) =
        open_all(&bed.db, &bed.feeder.shelf, archive(&bed), Buckets::default(), None).await.unwrap();
    let rules = || collections.get("news").unwrap().rules().len();
    let add = async |prefix: &str| {
        let rule = serde_json::json!({ "surt_prefix": prefix, "decision": "allow" });
        bed.db.access_rules().add(vec![rule], "", &anna()).await.unwrap();
    };
    for (number, away, back, in_force) in [
        // The rules are read, and the accounts or the collections are not.
        (1, "ALTER TABLE users RENAME TO away", "ALTER TABLE away RENAME TO users", true),
        (2, "ALTER TABLE collections RENAME TO away", "ALTER TABLE away RENAME TO collections", true),
        // They cannot be read, and then they can: no other rule has to come.
        (3, "ALTER TABLE access_rules RENAME TO away", "ALTER TABLE away RENAME TO access_rules", false),
    ] {
        add("com,e)/").await;
        execute(&bed, away).await;
        assert!(watcher.step().await.is_err(), "{away}");
        assert_eq!(rules(), if in_force { number } else { number - 1 }, "{away}");
        execute(&bed, back).await;
        watcher.step().await.unwrap();
        assert_eq!(rules(), number, "{back}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_account_that_is_disabled_is_none_at_the_next_look() {
    let bed = Bed::new().await;
    let (collections, mut watcher) =
        open_all(&bed.db, &bed.feeder.shelf, archive(&bed), Buckets::default(), None).await.unwrap();
    let new = grange_db::NewUser {
        name: "bert".parse().unwrap(),
        role: grange_model::Role::Curator,
        password_hash: None,
    };
    let bert = bed.db.users().create(new, &anna()).await.unwrap();
    watcher.step().await.unwrap();
    let account = collections.account("Bert").unwrap();
    assert_eq!((account.role.as_str(), account.staff), ("curator", true));
    bed.db.users().set_enabled(&bert.name, false, bert.edition, &anna()).await.unwrap();
    watcher.step().await.unwrap();
    assert_eq!(collections.account("bert"), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_is_away_is_asked_seldom_about_a_damaged_copy() {
    let (clock, hand) = Clock::test("2026-01-01T00:00:00Z".parse().unwrap());
    let (asked, away) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (counted, gone) = (Arc::clone(&asked), Arc::clone(&away));
    let blob = HookedBlob::new(clock.clone(), move |act, _| {
        let refused = gone.load(Ordering::SeqCst) > 0 && act == BlobAct::List;
        counted.fetch_add(u64::from(refused), Ordering::SeqCst);
        let place = "memory".to_owned();
        let error = Error::Unreachable { place, source: "it is away".into() };
        async move { if refused { Err(error) } else { Ok(()) } }.boxed()
    });
    let blob: Arc<dyn Blob> = Arc::new(blob);
    let bed = Bed::with(&grange_db::Settings::default(), clock.clone()).await;
    let path = bed.write("a.warc", &["http://e.com/a"]);
    bed.register("news", &path, false).await;
    bed.feed().await;
    let mut publisher =
        Publisher::new(bed.db.clone(), bed.feeder.shelf.clone(), Arc::clone(&blob), clock.clone());
    publisher.step().await.unwrap();
    let there = bed.dir.path().join("elsewhere");
    let every = Duration::from_secs(60);
    let follower = Follower::new(Arc::clone(&blob), there.join("copies"), Settings::default(), every, clock);
    let nothing = Shelf::new(&there, Settings::default(), false);
    let (collections, mut watcher) =
        open_all(&bed.db, &nothing, archive(&bed), Buckets::default(), Some(follower)).await.unwrap();
    let pieces = std::fs::read_dir(there.join("copies/news/fetched")).unwrap();
    let mut pieces = pieces.map(|entry| entry.unwrap().path());
    let segment = pieces.find(|path| path.extension().is_some_and(|end| end == "seg")).unwrap();
    let mut bytes = std::fs::read(&segment).unwrap();
    bytes[40] ^= 1;
    let mut file = std::fs::OpenOptions::new().write(true).open(&segment).unwrap();
    std::io::Write::write_all(&mut file, &bytes).unwrap();
    let found = || {
        let news = collections.get("news").unwrap();
        news.index.snapshot().closest("com,e)/a", grange_index::Stamp::MAX)
    };
    assert!(found().is_err());
    away.store(1, Ordering::SeqCst);
    // Once for each of the two collections.
    for (pass, expected) in [(every, 2), (Duration::ZERO, 2), (Duration::ZERO, 2), (every, 4)] {
        hand.advance(pass);
        watcher.step().await.unwrap();
        assert_eq!(asked.load(Ordering::SeqCst), expected);
    }
    away.store(0, Ordering::SeqCst);
    hand.advance(every);
    watcher.step().await.unwrap();
    assert!(found().unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn copies_of_a_removed_collection_leave_the_disk_of_those_who_showed_it() {
    let bed = Bed::new().await;
    let blob: Arc<dyn Blob> = Arc::new(Memory::new(Clock::system()));
    for name in ["news", "other"] {
        let path = bed.write(&format!("{name}/a.warc"), &["http://e.com/a"]);
        bed.register(name, &path, false).await;
    }
    bed.feed().await;
    let mut publisher =
        Publisher::new(bed.db.clone(), bed.feeder.shelf.clone(), Arc::clone(&blob), Clock::system());
    publisher.step().await.unwrap();
    let there = bed.dir.path().join("elsewhere");
    let follower = || {
        let folder = there.join("copies");
        Follower::new(Arc::clone(&blob), folder, Settings::default(), Duration::ZERO, Clock::system())
    };
    let nothing = Shelf::new(&there, Settings::default(), false);
    let open = || open_all(&bed.db, &nothing, archive(&bed), Buckets::default(), Some(follower()));
    let (_, mut watcher) = open().await.unwrap();
    let left = || {
        let entries = std::fs::read_dir(there.join("copies")).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    assert_eq!(left(), ["archive", "news", "other"]);
    bed.db.collections().remove("news", &anna()).await.unwrap();
    watcher.step().await.unwrap();
    assert_eq!(left(), ["archive", "other"]);
    drop(watcher);
    // Removed while nobody looked.
    bed.db.collections().remove("other", &anna()).await.unwrap();
    bed.feed().await;
    drop(open().await.unwrap());
    assert_eq!(left(), ["archive"]);
}
