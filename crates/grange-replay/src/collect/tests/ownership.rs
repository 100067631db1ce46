//! Several nodes on one database: each index is kept by one of them.

use grange_testkit::TestDatabase;

use super::*;

/// A node is not heard of any more, and its lease ends.
pub(super) async fn die(bed: &Bed, node: &Feeder) {
    let kept = bed.db.collections().keep_index("news", &node.owner, Duration::ZERO, true).await.unwrap();
    assert!(kept.is_some());
}

pub(super) async fn on_each_engine(test: impl AsyncFn(&Bed)) {
    test(&Bed::new().await).await;
    if let Some(server) = TestDatabase::create().await {
        let settings = grange_db::Settings { url: server.url.clone(), ..grange_db::Settings::default() };
        test(&Bed::with(&settings, Clock::system()).await).await;
    }
}

/// Every indexed row answers on the node that keeps the index, and no row that is out does.
pub(super) async fn check(bed: &Bed, keeper: &Feeder, collection: &str) {
    let found = captures(keeper, collection);
    let files: std::collections::BTreeSet<_> =
        found.iter().map(|line| line.split(' ').nth(1).unwrap()).collect();
    let indexed = bed.files(collection, CollectedState::Indexed).await;
    let expected: std::collections::BTreeSet<_> = indexed.iter().map(String::as_str).collect();
    assert_eq!(files, expected, "{found:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_feeders_on_one_database_keep_one_index_between_them() {
    on_each_engine(async |bed| {
        let blob: Arc<dyn Blob> = Arc::new(Memory::new(Clock::system()));
        let [one, two] = ["first", "second"].map(|name| bed.node(name, LEASE, Some(Arc::clone(&blob))));
        let (one, two) = (&one, &two);
        let [mut first_copies, mut second_copies] = [one, two].map(|node| {
            Publisher::new(bed.db.clone(), node.shelf.clone(), Arc::clone(&blob), node.clock.clone())
        });
        for number in 0..8 {
            let path = bed.write(&format!("x/{number}.warc"), &[&format!("http://e.com/{number}")]);
            bed.register("news", &path, false).await;
        }
        // Each takes what it can get.
        let mut both = async || loop {
            let (first, second) = tokio::join!(one.step(), two.step());
            let (first_copied, second_copied) = tokio::join!(first_copies.step(), second_copies.step());
            assert_eq!((first_copied.unwrap(), second_copied.unwrap()), (Step::Idle, Step::Idle));
            if (first.unwrap(), second.unwrap()) == (Step::Idle, Step::Idle) {
                break;
            }
        };
        both().await;
        assert_eq!(bed.files("news", CollectedState::Indexed).await.len(), 8);
        // Either may have been the first.
        let [keeper, other] = if one.shelf.kept("news").is_some() { [one, two] } else { [two, one] };
        check(bed, keeper, "news").await;
        assert!(other.shelf.kept("news").is_none() && !other.shelf.has_folder("news"));
        // The node that keeps nothing puts no copy: an empty one would be taken for the index.
        let identity = keeper.shelf.kept("news").unwrap().lease.identity;
        let copied = async || {
            let below = bed.dir.path().join("copies");
            let found = super::super::mirror::fetch("news", Some(&identity), &*blob, &below).await.unwrap();
            let copy = grange_index::Index::open_read_only(&found.folder, Settings::default()).unwrap();
            let names: std::collections::BTreeSet<String> =
                copy.snapshot().whole_files().map(ToOwned::to_owned).collect();
            names.into_iter().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(copied().await, "0.warc 1.warc 2.warc 3.warc 4.warc 5.warc 6.warc 7.warc");
        let files = bed.db.collections();
        for name in ["3.warc", "5.warc"] {
            files.roll_back("news", &Which::File(name.to_owned()), &anna()).await.unwrap();
        }
        both().await;
        assert_eq!(bed.files("news", CollectedState::Out).await, ["3.warc", "5.warc"]);
        check(bed, keeper, "news").await;
        assert_eq!(copied().await, "0.warc 1.warc 2.warc 4.warc 6.warc 7.warc");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_copies_an_index_moves_by_reading_its_files_again() {
    on_each_engine(async |bed| {
        let one = bed.node("one", LEASE, None);
        let two = bed.node("two", LEASE, None);
        for name in ["a", "b", "c"] {
            let path = bed.write(&format!("x/{name}.warc"), &[&format!("http://e.com/{name}")]);
            bed.register("news", &path, false).await;
        }
        feed(&one).await;
        bed.db.collections().roll_back("news", &Which::File("b.warc".to_owned()), &anna()).await.unwrap();
        feed(&one).await;
        check(bed, &one, "news").await;
        die(bed, &one).await;
        feed(&two).await;
        assert_eq!(bed.files("news", CollectedState::Indexed).await, ["a.warc", "c.warc"]);
        check(bed, &two, "news").await;
        // Meanwhile a file is replaced; the second node reads it, and goes too.
        bed.write("x/c.warc", &["http://e.com/other-than-before"]);
        bed.register("news", &bed.dir.path().join("files/x/c.warc"), false).await;
        feed(&two).await;
        die(bed, &two).await;
        // The first one comes back: what is in its folder is of another time.
        let late = captures(&one, "news");
        assert!(late.iter().any(|line| line.contains("com,e)/c ")), "{late:?}");
        feed(&one).await;
        check(bed, &one, "news").await;
        assert_eq!(captures(&one, "news"), ["com,e)/a a.warc -", "com,e)/other-than-before c.warc -"]);
        feed(&two).await;
        assert!(two.shelf.kept("news").is_none(), "it has let go");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_moves_with_its_newest_copy_and_only_later_changes_are_read_again() {
    let (clock, hand) = Clock::test("2026-01-01T00:00:00Z".parse().unwrap());
    let bed = Bed::with(&grange_db::Settings::default(), clock.clone()).await;
    let blob: Arc<dyn Blob> = Arc::new(Memory::new(clock.clone()));
    let node = |name| bed.node(name, LEASE, Some(Arc::clone(&blob)));
    let (one, two) = (node("one"), node("two"));
    let mut publisher = Publisher::new(bed.db.clone(), one.shelf.clone(), Arc::clone(&blob), clock.clone());
    let add = async |name: &str| {
        let path = bed.write(&format!("x/{name}.warc"), &[&format!("http://e.com/{name}")]);
        bed.register("news", &path, false).await;
        feed(&one).await;
    };
    for name in ["a", "b", "gone"] {
        add(name).await;
    }
    hand.advance(Duration::from_secs(1000));
    publisher.step().await.unwrap();
    // After the copy: one file more, one out, one replaced by another of its name.
    hand.advance(Duration::from_secs(1000));
    add("late").await;
    bed.db.collections().roll_back("news", &Which::File("gone.warc".to_owned()), &anna()).await.unwrap();
    bed.write("x/b.warc", &["http://e.com/another"]);
    bed.register("news", &bed.dir.path().join("files/x/b.warc"), false).await;
    feed(&one).await;
    hand.advance(LEASE + Duration::from_secs(1));
    // The file of the copy cannot be read again: it does not have to be.
    std::fs::remove_file(bed.dir.path().join("files/x/a.warc")).unwrap();
    feed(&two).await;
    check(&bed, &two, "news").await;
    assert_eq!(
        captures(&two, "news"),
        ["com,e)/a a.warc -", "com,e)/another b.warc -", "com,e)/late late.warc -"]
    );
    assert_eq!(bed.files("news", CollectedState::Out).await, ["gone.warc"]);
    // Copies that the first one puts now are older than any of the second.
    one.shelf
        .kept("news")
        .unwrap()
        .index
        .load(&b"com,e)/x 20260102030405 {\"filename\": \"x.warc\"}\n"[..], None)
        .unwrap();
    publisher.step().await.unwrap();
    let mut second = Publisher::new(bed.db.clone(), two.shelf.clone(), Arc::clone(&blob), clock.clone());
    second.step().await.unwrap();
    let before = blob.list(None, 1000).await.unwrap().len();
    hand.advance(Duration::from_secs(1));
    publisher.step().await.unwrap();
    second.step().await.unwrap();
    assert_eq!(blob.list(None, 1000).await.unwrap().len(), before, "neither has anything to say");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_shows_copies_of_the_indexes_that_others_keep() {
    let bed = Bed::new().await;
    let blob: Arc<dyn Blob> = Arc::new(Memory::new(Clock::system()));
    let one = bed.node("one", LEASE, Some(Arc::clone(&blob)));
    let two = bed.node("two", LEASE, Some(Arc::clone(&blob)));
    let path = bed.write("x/a.warc", &["http://e.com/a"]);
    bed.register("news", &path, false).await;
    feed(&one).await;
    feed(&two).await;
    let archive = Arc::new(ArchiveFiles::new(Arc::new(Folder(bed.dir.path().join("files")))));
    let follower = |of: &str| {
        let folder = bed.dir.path().join(of).join("index-copies");
        Follower::new(Arc::clone(&blob), folder, Settings::default(), Duration::ZERO, Clock::system())
    };
    let copies = Some(follower("two"));
    let (shown, mut watcher) =
        open_all(&bed.db, &two.shelf, archive.clone(), Buckets::default(), copies).await.unwrap();
    assert!(shown.get("news").is_none(), "nothing was copied yet");
    let (alone, _) = open_all(&bed.db, &two.shelf, archive, Buckets::default(), None).await.unwrap();
    assert!(alone.get("news").is_none(), "without copies there is nothing to show");
    let mut publisher = Publisher::new(bed.db.clone(), one.shelf.clone(), Arc::clone(&blob), Clock::system());
    publisher.step().await.unwrap();
    let has = |surt: &str| {
        let news = shown.get("news").unwrap();
        news.index.snapshot().closest(surt, grange_index::Stamp::MAX).unwrap().is_some()
    };
    watcher.step().await.unwrap();
    assert!(has("com,e)/a"));
    // It takes over, and shows its own from then on.
    die(&bed, &one).await;
    feed(&two).await;
    let more = bed.write("x/b.warc", &["http://e.com/b"]);
    bed.register("news", &more, false).await;
    feed(&two).await;
    watcher.step().await.unwrap();
    assert!(has("com,e)/a") && has("com,e)/b"));
    assert!(shown.get("news").unwrap().index.is_same(&two.shelf.kept("news").unwrap().index));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_is_told_which_node_keeps_the_index() {
    let bed = Bed::new().await;
    let path = bed.write("x/a.warc", &["http://e.com/a"]);
    bed.register("news", &path, false).await;
    bed.feed().await;
    let error = bed.node("second", LEASE, None).step_of(Some("news")).await.unwrap_err();
    assert!(matches!(error, crate::collect::FeedError::KeptElsewhere { .. }), "{error}");
    assert!(error.to_string().contains("news: test;"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_token_rises_above_copies_of_owners_that_a_restored_database_has_forgotten() {
    let bed = Bed::new().await;
    let blob: Arc<dyn Blob> = Arc::new(Memory::new(Clock::system()));
    let one = bed.node("one", LEASE, Some(Arc::clone(&blob)));
    let path = bed.write("x/a.warc", &["http://e.com/a"]);
    bed.register("news", &path, false).await;
    feed(&one).await;
    let token = || one.shelf.kept("news").unwrap().lease.token;
    assert_eq!(token(), 1);
    // The copy of a later owner.
    let identity = one.shelf.kept("news").unwrap().lease.identity;
    let owner = crate::collect::mirror::CopyOwner { name: "news", identity: &identity, token: 7 };
    let later = grange_index::Index::open(bed.dir.path().join("later"), Settings::default()).unwrap();
    let aside = bed.dir.path().join("aside");
    crate::collect::mirror::publish(&later, owner, &*blob, &aside, &Clock::system()).await.unwrap();
    // It starts again: nothing is read again, and what it publishes counts.
    for expected in [8, 8] {
        one.shelf.close("news");
        one.keeper.tend(None).await.unwrap();
        assert_eq!(token(), expected);
        assert_eq!(captures(&one, "news"), ["com,e)/a a.warc -"]);
        assert_eq!(bed.files("news", CollectedState::Indexed).await, ["a.warc"]);
    }
    let mut publisher = Publisher::new(bed.db.clone(), one.shelf.clone(), Arc::clone(&blob), Clock::system());
    publisher.step().await.unwrap();
    let there = bed.dir.path().join("there");
    let fetched = crate::collect::mirror::fetch("news", None, &*blob, &there).await.unwrap();
    let copy = grange_index::Index::open_read_only(&fetched.folder, Settings::default()).unwrap();
    assert_eq!(copy.snapshot().file_names().collect::<Vec<_>>(), ["a.warc"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_starts_waits_for_its_own_indexes_and_takes_others_over_later() {
    let bed = Bed::new().await;
    let (one, two) = (bed.node("one", LEASE, None), bed.node("two", LEASE, None));
    let path = bed.write("x/a.warc", &["http://e.com/a"]);
    bed.register("news", &path, false).await;
    feed(&one).await;
    die(&bed, &one).await;
    two.keeper.tend_own().await.unwrap();
    assert!(two.shelf.kept("news").is_none());
    one.shelf.close("news");
    one.keeper.tend_own().await.unwrap();
    assert_eq!(captures(&one, "news"), ["com,e)/a a.warc -"]);
    die(&bed, &one).await;
    two.keeper.tend(None).await.unwrap();
    assert!(two.shelf.kept("news").is_some());
    // What is in its folder is of another time.
    one.shelf.close("news");
    one.keeper.tend_own().await.unwrap();
    assert!(one.shelf.kept("news").is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_that_could_not_be_opened_once_after_a_restore_keeps_captures_of_its_own() {
    let (clock, hand) = Clock::test("2026-01-01T00:00:00Z".parse().unwrap());
    let bed = Bed::with(&grange_db::Settings::default(), clock.clone()).await;
    let blob: Arc<dyn Blob> = Arc::new(Memory::new(clock.clone()));
    let one = bed.node("one", LEASE, Some(Arc::clone(&blob)));
    let path = bed.write("x/a.warc", &["http://e.com/a"]);
    bed.register("news", &path, false).await;
    feed(&one).await;
    let kept = one.shelf.kept("news").unwrap();
    // No file has them.
    kept.index.load(&b"com,e)/posted 20260102030405 {\"filename\": \"x.warc\"}\n"[..], None).unwrap();
    let identity = kept.lease.identity.clone();
    drop(kept);
    let owner = crate::collect::mirror::CopyOwner { name: "news", identity: &identity, token: 7 };
    let later = grange_index::Index::open(bed.dir.path().join("later"), Settings::default()).unwrap();
    crate::collect::mirror::publish(&later, owner, &*blob, &bed.dir.path().join("aside"), &clock)
        .await
        .unwrap();
    one.shelf.close("news");
    let manifest = one.shelf.folder().join("news/MANIFEST");
    let whole = std::fs::read(&manifest).unwrap();
    std::fs::write(&manifest, "damaged").unwrap();
    one.keeper.tend(None).await.unwrap();
    assert!(one.shelf.kept("news").is_none());
    std::fs::write(&manifest, whole).unwrap();
    hand.advance(Duration::from_secs(60));
    // And after a restart, which reads what the folder says.
    for _ in 0..2 {
        one.keeper.tend(None).await.unwrap();
        assert_eq!(one.shelf.kept("news").unwrap().lease.token, 8);
        assert_eq!(captures(&one, "news"), ["com,e)/a a.warc -", "com,e)/posted x.warc -"]);
        one.shelf.close("news");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_store_that_is_away_is_not_asked_at_the_start_and_then_once_for_all_indexes() {
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
    let (clock, hand) = Clock::test("2026-01-01T00:00:00Z".parse().unwrap());
    let bed = Bed::with(&grange_db::Settings::default(), clock.clone()).await;
    let (lists, away) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicBool::new(false)));
    let (counted, is_away) = (Arc::clone(&lists), Arc::clone(&away));
    let blob = hooked_blob::HookedBlob::new(clock.clone(), move |_, _| {
        counted.fetch_add(1, Ordering::SeqCst);
        let gone = is_away.load(Ordering::SeqCst);
        let error = grange_blob::Error::Unreachable { place: "memory".to_owned(), source: "away".into() };
        Box::pin(async move { if gone { Err(error) } else { Ok(()) } })
    });
    let one = bed.node("one", LEASE, Some(Arc::new(blob)));
    let names = ["a", "b", "c"];
    for name in names {
        let path = bed.write(&format!("{name}/a.warc"), &["http://e.com/a"]);
        bed.register(name, &path, false).await;
    }
    feed(&one).await;
    for name in names {
        one.shelf.close(name);
    }
    away.store(true, Ordering::SeqCst);
    lists.store(0, Ordering::SeqCst);
    one.keeper.tend_own().await.unwrap();
    assert!(names.iter().all(|name| one.shelf.kept(name).is_some()));
    assert_eq!(lists.load(Ordering::SeqCst), 0, "the start");
    for (after, expected) in [(0, 1), (299, 1), (1, 2)] {
        hand.advance(Duration::from_secs(after));
        one.keeper.tend(None).await.unwrap();
        one.keeper.tend(None).await.unwrap();
        assert_eq!(lists.load(Ordering::SeqCst), expected, "after {after} s more");
    }
    // It comes back: each index is compared, once.
    away.store(false, Ordering::SeqCst);
    hand.advance(Duration::from_secs(300));
    one.keeper.tend(None).await.unwrap();
    let compared = lists.load(Ordering::SeqCst);
    assert!(compared >= 5, "{compared}");
    one.keeper.tend(None).await.unwrap();
    assert_eq!(lists.load(Ordering::SeqCst), compared);
}
