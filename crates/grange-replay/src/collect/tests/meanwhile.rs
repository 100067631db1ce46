//! Changes of an index, its rows and its owner while something else goes on, or was cut off.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};

use futures_util::FutureExt;
use grange_index::{Batch, Index};

use super::healing::package;
use super::hooked_blob::{BlobAct, HookedBlob};
use super::ownership::{check, die, on_each_engine};
use super::*;

/// The node starts again on the same folder, as after a kill.
fn restarted(bed: Bed) -> Bed {
    let Bed { dir, db, feeder } = bed;
    drop(feeder);
    let feeder = node(&db, dir.path(), dir.path(), "test", LEASE, None);
    Bed { dir, db, feeder }
}

/// A line of an index file.
fn line(page: &str, file: &str) -> String {
    format!(
        "com,e)/{page} 20260102030405 {{\"url\": \"http://e.com/{page}\", \"offset\": \"0\", \"filename\": \"{file}\"}}\n"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_made_while_a_copy_is_put_is_in_the_next_copy() {
    let bed = Bed::new().await;
    let (clock, hand) = Clock::test("2026-01-01T00:00:00Z".parse().unwrap());
    let index: Arc<OnceLock<Index>> = Arc::default();
    let of = Arc::clone(&index);
    // As the feeder does while the first piece is put.
    let blob = HookedBlob::new(clock.clone(), move |act, name| {
        if act == BlobAct::Put
            && name.starts_with("index-news")
            && let Some(index) = of.get()
            && index.holds_file("gone.warc")
        {
            index.remove_file("gone.warc").unwrap();
            index.load(line("late", "late.warc").as_bytes(), None).unwrap();
        }
        async { Ok(()) }.boxed()
    });
    let blob: Arc<dyn Blob> = Arc::new(blob);
    for name in ["gone.warc", "stays.warc"] {
        let path = bed.write(&format!("x/{name}"), &[&format!("http://e.com/{name}")]);
        bed.register("news", &path, false).await;
    }
    bed.feed().await;
    assert!(index.set(bed.feeder.shelf.kept("news").unwrap().index).is_ok());
    let mut publisher =
        Publisher::new(bed.db.clone(), bed.feeder.shelf.clone(), Arc::clone(&blob), clock.clone());
    let copied = async || {
        let folder = tempfile::tempdir().unwrap();
        let fetched = super::super::mirror::fetch("news", None, &*blob, folder.path()).await.unwrap();
        let copy = Index::open_read_only(&fetched.folder, Settings::default()).unwrap();
        let mut names: Vec<String> = copy.snapshot().file_names().map(ToOwned::to_owned).collect();
        names.sort();
        names
    };
    publisher.step().await.unwrap();
    assert_eq!(copied().await, ["gone.warc", "stays.warc"], "as it was when the copy began");
    hand.advance(Duration::from_secs(60));
    publisher.step().await.unwrap();
    assert_eq!(copied().await, ["late.warc", "stays.warc"]);
}

/// Whether all leases of indexes last until then.
async fn prolonged(db: &Db, until: jiff::Timestamp) -> bool {
    let rows = db.collections().indexes().await.unwrap();
    let owners = rows.into_iter().filter(|row| row.name != "archive").filter_map(|row| row.owner);
    owners.into_iter().all(|owner| owner.until >= until)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_whose_copy_takes_long_to_fetch_changes_hands_once() {
    const SHORT: Duration = Duration::from_secs(600);
    let (clock, hand) = Clock::test("2026-01-01T00:00:00Z".parse().unwrap());
    let bed = Bed::with(&grange_db::Settings::default(), clock.clone()).await;
    // Fetching a piece takes half an hour, in which the third node looks again and again.
    let third: Arc<OnceLock<Feeder>> = Arc::default();
    let (of, db, hand_of) = (Arc::clone(&third), bed.db.clone(), hand.clone());
    let blob = HookedBlob::new(clock.clone(), move |act, name| {
        let (third, db, hand, clock) = (of.get().cloned(), db.clone(), hand_of.clone(), clock.clone());
        async move {
            let Some(third) = third.filter(|_| act == BlobAct::Get && name.contains(".seg")) else {
                return Ok(());
            };
            for _ in 0..60 {
                hand.advance(Duration::from_secs(30));
                while !prolonged(&db, clock.now() + SHORT / 2 - Duration::from_secs(60)).await {}
                third.keeper.tend(None).await.unwrap();
            }
            // Files of another index are taken meanwhile.
            while db.collections().get("kept").await.unwrap().files.indexed < 2 {}
            Ok(())
        }
        .boxed()
    });
    let blob: Arc<dyn Blob> = Arc::new(blob);
    let node = |name| bed.node(name, SHORT, Some(Arc::clone(&blob)));
    let (one, two) = (node("one"), node("two"));
    for collection in ["kept", "news"] {
        let path = bed.write(&format!("{collection}/a.warc"), &["http://e.com/a"]);
        bed.register(collection, &path, false).await;
    }
    // The second keeps an index already.
    while two.step_of(Some("kept")).await.unwrap() == Step::More {}
    feed(&one).await;
    // Long enough ago that the copy is believed.
    hand.advance(Duration::from_secs(400));
    let mut publisher = Publisher::new(bed.db.clone(), one.shelf.clone(), Arc::clone(&blob), bed.db.clock());
    publisher.step().await.unwrap();
    die(&bed, &one).await;
    assert!(third.set(node("three")).is_ok());
    let path = bed.write("kept/b.warc", &["http://e.com/b"]);
    bed.register("kept", &path, false).await;
    let taken_over = async {
        while two.shelf.kept("news").is_none() {
            two.step().await.unwrap();
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(150), taken_over).await;
    waited.expect("the index did not change hands while other work went on");
    let rows = bed.db.collections().indexes().await.unwrap();
    let owners = rows.iter().filter(|row| row.name != "archive").map(|row| {
        let owner = row.owner.as_ref().unwrap();
        (row.name.as_str(), owner.node.as_str(), owner.token)
    });
    assert_eq!(owners.collect::<Vec<_>>(), [("kept", "two", 1), ("news", "two", 2)]);
    assert_eq!(captures(&two, "news"), ["com,e)/a a.warc -"]);
    assert!(!bed.dir.path().join("two/index/.fetch-news").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_was_rolled_back_stays_out_whatever_lines_name_it() {
    let bed = Bed::new().await;
    let lines = bed.dir.path().join("files/x/a.cdxj");
    let warc = bed.write("x/a.warc", &["http://e.com/a", "http://e.com/b"]);
    let packed = bed.dir.path().join("files/x/d.wacz");
    fs::write(&packed, package(&[("archive/d.warc", record("http://e.com/d").as_bytes())])).unwrap();
    let lost = bed.dir.path().join("files/x/lost.warc");
    let text = [("a", "a.warc"), ("d", "d.wacz/archive/d.warc"), ("l", "lost.warc"), ("o", "other.warc")];
    fs::write(&lines, text.map(|(page, file)| line(page, file)).concat()).unwrap();
    for path in [&lines, &warc, &packed, &lost] {
        bed.register("news", path, false).await;
    }
    bed.feed().await;
    let files = bed.db.collections();
    for name in ["a.warc", "d.wacz"] {
        files.roll_back("news", &Which::File(name.to_owned()), &anna()).await.unwrap();
    }
    bed.feed().await;
    let only = ["com,e)/o other.warc lines of a.cdxj"];
    assert_eq!(bed.captures("news"), only);
    // The index file is read again: because a person asks for it, and because the index was lost.
    let again = Which::File("a.cdxj".to_owned());
    files.roll_back("news", &again, &anna()).await.unwrap();
    bed.feed().await;
    files.index_again("news", &again, &anna()).await.unwrap();
    bed.feed().await;
    assert_eq!(bed.captures("news"), only);
    let row = files.file_named("news", "a.cdxj").await.unwrap().unwrap();
    assert_eq!((row.captures, row.problems, row.told.len()), (1, 0, 1), "{row:?}");
    assert!(row.told[0].starts_with("3 lines left out"), "{row:?}");
    let bed = restarted(bed);
    fs::remove_dir_all(bed.dir.path().join("index/news")).unwrap();
    bed.feed().await;
    assert_eq!(bed.captures("news"), only);
    // Lines that an earlier version let in go when the index is next made ready.
    let index = bed.feeder.shelf.kept("news").unwrap().index;
    index.load(line("a", "a.warc").as_bytes(), Some("lines of a.cdxj")).unwrap();
    drop(index);
    assert_eq!(bed.captures("news").len(), 2);
    let bed = restarted(bed);
    bed.feed().await;
    assert_eq!(bed.captures("news"), only);
    // The file itself comes back when a person asks for it, and the index file has nothing to add.
    bed.db.collections().index_again("news", &Which::File("a.warc".to_owned()), &anna()).await.unwrap();
    bed.feed().await;
    assert_eq!(bed.captures("news").len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_file_about_files_that_are_out_is_not_read_at_every_start() {
    let bed = Bed::new().await;
    let lines = bed.dir.path().join("files/x/a.cdxj");
    let warc = bed.write("x/a.warc", &["http://e.com/a"]);
    fs::write(&lines, line("a", "a.warc")).unwrap();
    for path in [&lines, &warc] {
        bed.register("news", path, false).await;
    }
    bed.feed().await;
    bed.db.collections().roll_back("news", &Which::File("a.warc".to_owned()), &anna()).await.unwrap();
    bed.feed().await;
    let mut bed = bed;
    for (start, waiting) in [(1, 1), (2, 0), (3, 0)] {
        bed = restarted(bed);
        bed.feeder.keeper.tend(None).await.unwrap();
        assert_eq!(bed.files("news", CollectedState::Waiting).await.len(), waiting, "start {start}");
        bed.feed().await;
        assert_eq!(bed.captures("news"), Vec::<String>::new(), "start {start}");
        assert_eq!(bed.files("news", CollectedState::Out).await, ["a.warc"], "start {start}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rollback_takes_out_what_the_index_has_whatever_the_state_of_the_row() {
    on_each_engine(async |bed| {
        let files = bed.db.collections();
        let paths: Vec<PathBuf> = (0..4)
            .map(|number| bed.write(&format!("x/{number}.warc"), &[&format!("http://e.com/{number}")]))
            .collect();
        for path in &paths {
            bed.register("news", path, false).await;
        }
        bed.feed().await;
        // 0: indexed. 1: it grew and waits to be read again. 2: a kill came between commit and mark. 3: lines name it.
        let which = [2, 3].map(|number| Which::File(format!("{number}.warc")));
        for which in &which {
            files.roll_back("news", which, &anna()).await.unwrap();
        }
        bed.feed().await;
        for which in &which {
            files.index_again("news", which, &anna()).await.unwrap();
        }
        bed.write("x/1.warc", &["http://e.com/1", "http://e.com/more"]);
        bed.register("news", &paths[1], false).await;
        let index = bed.feeder.shelf.kept("news").unwrap().index;
        let mut batch = Batch::new();
        batch.add_records(&mut warc::Reader::open(&paths[2]).unwrap(), "2.warc", None).unwrap();
        index.commit(batch).unwrap();
        index.load(line("lines", "3.warc").as_bytes(), None).unwrap();
        assert_eq!(bed.captures("news").len(), 4);
        for number in 0..4 {
            files.roll_back("news", &Which::File(format!("{number}.warc")), &anna()).await.unwrap();
        }
        bed.feed().await;
        check(bed, &bed.feeder, "news").await;
        assert_eq!(bed.captures("news"), Vec::<String>::new());
        assert_eq!(bed.files("news", CollectedState::Out).await.len(), 4);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_replaced_after_a_kill_between_commit_and_mark_is_served_as_it_is() {
    let bed = Bed::new().await;
    let (warc, packed, lines) = ("x/a.warc", "x/d.wacz", "x/c.cdxj");
    let at = |name: &str| bed.dir.path().join("files").join(name);
    let write = |page: &str| {
        bed.write(warc, &[&format!("http://e.com/{page}-a")]);
        let inner = record(&format!("http://e.com/{page}-d"));
        fs::write(at(packed), package(&[("archive/d.warc", inner.as_bytes())])).unwrap();
        fs::write(at(lines), line(&format!("{page}-c"), "other.warc")).unwrap();
    };
    write("old");
    for name in [warc, packed, lines] {
        bed.register("news", &at(name), false).await;
    }
    bed.feeder.keeper.tend(None).await.unwrap();
    let index = bed.feeder.shelf.kept("news").unwrap().index;
    // Committed, and the kill came before the marks: the rows wait as if nothing had happened.
    let mut batch = Batch::new();
    batch.add_records(&mut warc::Reader::open(at(warc)).unwrap(), "a.warc", None).unwrap();
    let inner = bed.write("x/inner.warc", &["http://e.com/old-d"]);
    batch.add_records(&mut warc::Reader::open(inner).unwrap(), "d.wacz/archive/d.warc", None).unwrap();
    index.commit(batch).unwrap();
    index.load(line("old-c", "other.warc").as_bytes(), Some("lines of c.cdxj")).unwrap();
    write("new-and-longer");
    bed.feed().await;
    let surts = bed.captures("news").into_iter().map(|line| line.split(' ').next().unwrap().to_owned());
    let expected = ["a", "c", "d"].map(|page| format!("com,e)/new-and-longer-{page}"));
    assert_eq!(surts.collect::<Vec<_>>(), expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_folder_that_cannot_be_removed_holds_up_no_other_collection() {
    let (clock, hand) = Clock::test("2026-01-01T00:00:00Z".parse().unwrap());
    let bed = Bed::with(&grange_db::Settings::default(), clock).await;
    for name in ["old", "older"] {
        let path = bed.write(&format!("{name}/a.warc"), &["http://e.com/a"]);
        bed.register(name, &path, false).await;
    }
    bed.feed().await;
    let (index, aside) = (bed.dir.path().join("index/old"), bed.dir.path().join("aside"));
    fs::rename(&index, &aside).unwrap();
    // No folder can be removed here.
    fs::write(&index, "in the way").unwrap();
    for name in ["old", "older"] {
        bed.db.collections().remove(name, &anna()).await.unwrap();
    }
    let path = bed.write("news/a.warc", &["http://e.com/a"]);
    bed.register("news", &path, false).await;
    bed.feed().await;
    assert_eq!(bed.captures("news").len(), 1);
    let listed = async || {
        let rows = bed.db.collections().indexes().await.unwrap();
        rows.into_iter().map(|row| row.name).collect::<Vec<_>>()
    };
    assert_eq!(listed().await, ["archive", "news", "old"]);
    fs::remove_file(&index).unwrap();
    hand.advance(Duration::from_secs(60));
    bed.feed().await;
    assert_eq!(listed().await, ["archive", "news"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fetch_that_was_cut_off_continues_with_the_pieces_that_are_missing() {
    let (clock, hand) = Clock::test("2026-01-01T00:00:00Z".parse().unwrap());
    let bed = Bed::with(&grange_db::Settings::default(), clock.clone()).await;
    let fetched: Arc<Mutex<Vec<String>>> = Arc::default();
    let (got, cut) = (Arc::clone(&fetched), AtomicBool::new(true));
    let blob = HookedBlob::new(clock.clone(), move |act, name| {
        // The list and the first piece come, and then the line is cut.
        let mut got = got.lock().unwrap();
        let is_piece = act == BlobAct::Get && !name.contains(".state") && name.starts_with("index-news");
        let fails = is_piece && got.len() == 1 && cut.swap(false, Ordering::SeqCst);
        if is_piece && !fails {
            got.push(name);
        }
        let error = grange_blob::Error::Unreachable { place: "memory".to_owned(), source: "cut".into() };
        async move { if fails { Err(error) } else { Ok(()) } }.boxed()
    });
    let blob: Arc<dyn Blob> = Arc::new(blob);
    let (one, two) =
        (bed.node("one", LEASE, Some(Arc::clone(&blob))), bed.node("two", LEASE, Some(Arc::clone(&blob))));
    let path = bed.write("x/a.warc", &["http://e.com/a"]);
    bed.register("news", &path, false).await;
    feed(&one).await;
    hand.advance(Duration::from_secs(400));
    let mut publisher = Publisher::new(bed.db.clone(), one.shelf.clone(), Arc::clone(&blob), clock);
    publisher.step().await.unwrap();
    die(&bed, &one).await;
    two.keeper.tend(None).await.unwrap();
    assert!(two.shelf.kept("news").is_none());
    assert_eq!(fetched.lock().unwrap().len(), 1);
    hand.advance(Duration::from_secs(60));
    two.keeper.tend(None).await.unwrap();
    assert_eq!(captures(&two, "news"), ["com,e)/a a.warc -"]);
    let mut names = fetched.lock().unwrap().clone();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), fetched.lock().unwrap().len(), "{names:?}");
    assert!(names.len() > 2 && !bed.dir.path().join("two/index/.fetch-news").exists(), "{names:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_indexes_are_taken_over_a_few_at_a_time_and_hold_nothing_up() {
    use std::sync::atomic::AtomicUsize;
    let bed = Bed::new().await;
    // Pieces come when they are let through.
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (open, opened) = tokio::sync::watch::channel(false);
    let (now, top) = (Arc::clone(&running), Arc::clone(&most));
    let blob = HookedBlob::new(Clock::system(), move |act, name| {
        let (now, top, mut opened) = (Arc::clone(&now), Arc::clone(&top), opened.clone());
        async move {
            if act == BlobAct::Get && Path::new(&name).extension().is_some_and(|end| end == "state") {
                top.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                opened.wait_for(|open| *open).await.unwrap();
                now.fetch_sub(1, Ordering::SeqCst);
            }
            Ok(())
        }
        .boxed()
    });
    let blob: Arc<dyn Blob> = Arc::new(blob);
    let (one, two) =
        (bed.node("one", LEASE, Some(Arc::clone(&blob))), bed.node("two", LEASE, Some(Arc::clone(&blob))));
    let names = ["a", "b", "c", "d", "e", "f"];
    for name in names {
        let path = bed.write(&format!("{name}/a.warc"), &["http://e.com/a"]);
        bed.register(name, &path, false).await;
    }
    feed(&one).await;
    let mut publisher = Publisher::new(bed.db.clone(), one.shelf.clone(), Arc::clone(&blob), Clock::system());
    publisher.step().await.unwrap();
    for name in names {
        let left = bed.db.collections().keep_index(name, "one", Duration::ZERO, true).await.unwrap();
        assert!(left.is_some());
    }
    let looked = tokio::time::timeout(Duration::from_secs(25), two.keeper.tend(None)).await;
    looked.expect("each copy was waited for").unwrap();
    let wait = async |done: &dyn Fn() -> bool| {
        let until = async {
            while !done() {
                two.keeper.tend(None).await.unwrap();
            }
        };
        tokio::time::timeout(Duration::from_secs(60), until).await.unwrap();
    };
    wait(&|| running.load(Ordering::SeqCst) == 4).await;
    open.send(true).unwrap();
    wait(&|| names.iter().all(|name| two.shelf.kept(name).is_some())).await;
    assert_eq!(most.load(Ordering::SeqCst), 4);
}
