//! Faults of indexes, rows and places, and their repair.

use std::fs;

use super::*;
use crate::collect::foreign::ForeignFiles;
use crate::collect::taking::packed;
use crate::holdings::{Holdings, Section, wacz};

fn archive(bed: &Bed) -> Arc<ArchiveFiles> {
    Arc::new(ArchiveFiles::new(Arc::new(Folder(bed.dir.path().join("nothing")))))
}

/// A package whose members are not compressed.
pub(super) fn package(members: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    for (name, content) in members {
        let at = bytes.len() as u32;
        let common = |out: &mut Vec<u8>| {
            out.extend([20, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
            out.extend(crc32fast::hash(content).to_le_bytes());
            out.extend([(content.len() as u32).to_le_bytes(); 2].concat());
            out.extend((name.len() as u16).to_le_bytes());
            out.extend([0, 0]);
        };
        bytes.extend(b"PK\x03\x04");
        common(&mut bytes);
        bytes.extend(name.as_bytes());
        bytes.extend(*content);
        directory.extend(b"PK\x01\x02\x14\0");
        common(&mut directory);
        directory.extend([0; 10]);
        directory.extend(at.to_le_bytes());
        directory.extend(name.as_bytes());
    }
    let (at, many) = (bytes.len() as u32, members.len() as u16);
    bytes.extend(&directory);
    bytes.extend(b"PK\x05\x06\0\0\0\0");
    bytes.extend([many.to_le_bytes(); 2].concat());
    bytes.extend((directory.len() as u32).to_le_bytes());
    bytes.extend(at.to_le_bytes());
    bytes.extend([0, 0]);
    bytes
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_that_is_lost_is_made_again_from_its_rows() {
    let bed = Bed::new().await;
    let files = bed.dir.path().join("files/x");
    let paths = [
        bed.write("x/a.warc", &["http://e.com/a"]),
        bed.write("x/b.warc", &["http://e.com/b"]),
        files.join("empty.warc"),
        files.join("c.cdxj"),
        files.join("d.wacz"),
    ];
    let info = "WARC/1.1\r\nWARC-Type: warcinfo\r\nWARC-Record-ID: <urn:uuid:1>\r\nWARC-Date: 2026-01-02T03:04:05Z\r\n\
         Content-Type: application/warc-fields\r\nContent-Length: 0\r\n\r\n\r\n\r\n";
    fs::write(&paths[2], info).unwrap();
    fs::write(&paths[3], "com,e)/c 20260102030405 {\"offset\": \"0\", \"filename\": \"c.warc\"}\n").unwrap();
    fs::write(&paths[4], package(&[("archive/d.warc", record("http://e.com/d").as_bytes())])).unwrap();
    for path in &paths {
        bed.register("news", path, false).await;
    }
    bed.feed().await;
    let (whole, indexed) = (bed.captures("news"), bed.files("news", CollectedState::Indexed).await);
    assert_eq!((whole.len(), indexed.len()), (4, 5), "{whole:?}");
    let out = Which::File("b.warc".to_owned());
    let Bed { dir, db, feeder } = bed;
    // A node that starts again reads nothing that its index has.
    drop(feeder);
    let feeder = node(&db, dir.path(), dir.path(), "test", LEASE, None);
    feeder.keeper.tend(None).await.unwrap();
    let bed = Bed { dir, db, feeder };
    assert_eq!(bed.files("news", CollectedState::Waiting).await, Vec::<String>::new());
    bed.db.collections().roll_back("news", &out, &anna()).await.unwrap();
    bed.feed().await;
    let left = bed.captures("news");
    let Bed { dir, db, feeder } = bed;
    drop(feeder);
    fs::remove_dir_all(dir.path().join("index/news")).unwrap();
    let feeder = node(&db, dir.path(), dir.path(), "test", LEASE, None);
    feeder.keeper.tend(None).await.unwrap();
    let bed = Bed { dir, db, feeder };
    assert_eq!(bed.files("news", CollectedState::Waiting).await.len(), 4);
    bed.feed().await;
    assert_eq!(bed.captures("news"), left);
    assert_eq!(bed.files("news", CollectedState::Out).await, ["b.warc"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_lines_name_is_indexed_as_a_file() {
    let bed = Bed::new().await;
    let lines = bed.dir.path().join("files/x/a.cdxj");
    let pages: Vec<String> = (0..5).map(|page| format!("http://e.com/p{page}")).collect();
    let pages: Vec<&str> = pages.iter().map(String::as_str).collect();
    let warc = bed.write("x/a.warc", &pages);
    fs::write(&lines, "com,e)/p0 20260102030405 {\"offset\": \"0\", \"filename\": \"a.warc\"}\n").unwrap();
    bed.register("news", &lines, false).await;
    bed.feed().await;
    bed.register("news", &warc, false).await;
    bed.feed().await;
    assert_eq!(bed.captures("news").len(), 5);
    // The lines go, and what the file told stays.
    bed.db.collections().roll_back("news", &Which::File("a.cdxj".to_owned()), &anna()).await.unwrap();
    bed.feed().await;
    assert_eq!(bed.captures("news").len(), 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_index_that_cannot_be_opened_stops_no_other() {
    let bed = Bed::new().await;
    for name in ["bad", "good"] {
        let path = bed.write(&format!("{name}/a.warc"), &["http://e.com/a"]);
        bed.register(name, &path, false).await;
    }
    bed.feed().await;
    let Bed { dir, db, feeder } = bed;
    drop(feeder);
    fs::write(dir.path().join("index/bad/MANIFEST"), "nonsense").unwrap();
    let feeder = node(&db, dir.path(), dir.path(), "test", LEASE, None);
    let bed = Bed { dir, db, feeder };
    let more = bed.write("good/b.warc", &["http://e.com/b"]);
    let waits = bed.write("bad/b.warc", &["http://e.com/b"]);
    bed.register("bad", &waits, false).await;
    bed.register("good", &more, false).await;
    bed.feed().await;
    assert_eq!(bed.captures("good").len(), 2);
    assert!(bed.feeder.shelf.kept("bad").is_none());
    assert_eq!(bed.files("bad", CollectedState::Waiting).await, ["b.warc"], "it waits for its index");
    let blob: Arc<dyn Blob> = Arc::new(Memory::new(Clock::system()));
    let mut publisher =
        Publisher::new(bed.db.clone(), bed.feeder.shelf.clone(), Arc::clone(&blob), Clock::system());
    publisher.step().await.unwrap();
    let copied = |names: Vec<grange_blob::Listed>, of: &str| {
        names.iter().filter(|listed| listed.name.as_str().starts_with(&format!("index-{of}."))).count()
    };
    assert!(copied(blob.list(None, 100).await.unwrap(), "good") > 0);
    // A withdrawal reaches the copies as well.
    let out = Which::File("a.warc".to_owned());
    bed.db.collections().roll_back("good", &out, &anna()).await.unwrap();
    bed.feed().await;
    publisher.step().await.unwrap();
    let fetched = crate::collect::mirror::fetch("good", None, &*blob, &bed.dir.path().join("there")).await;
    let copy = grange_index::Index::open_read_only(&fetched.unwrap().folder, Settings::default()).unwrap();
    assert_eq!(copy.snapshot().file_names().collect::<Vec<_>>(), ["b.warc"]);
    assert!(bed.feeder.shelf.kept("bad").is_none());
    // One that cannot be copied comes before one that can.
    let last = bed.write("last/a.warc", &["http://e.com/a"]);
    bed.register("last", &last, false).await;
    bed.feed().await;
    bed.feeder.shelf.kept("good").unwrap().index.flush().unwrap();
    for entry in fs::read_dir(bed.dir.path().join("index/good")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "seg") {
            fs::remove_file(path).unwrap();
        }
    }
    let mut publisher =
        Publisher::new(bed.db.clone(), bed.feeder.shelf.clone(), Arc::clone(&blob), Clock::system());
    assert!(publisher.step().await.is_err());
    assert!(copied(blob.list(None, 100).await.unwrap(), "last") > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_copy_is_fetched_again() {
    let bed = Bed::new().await;
    let blob: Arc<dyn Blob> = Arc::new(Memory::new(Clock::system()));
    let path = bed.write("a.warc", &["http://e.com/a", "http://e.com/b"]);
    bed.register("news", &path, false).await;
    bed.feed().await;
    let mut publisher =
        Publisher::new(bed.db.clone(), bed.feeder.shelf.clone(), Arc::clone(&blob), Clock::system());
    publisher.step().await.unwrap();
    let there = bed.dir.path().join("elsewhere");
    let follower = || {
        Follower::new(
            Arc::clone(&blob),
            there.join("copies"),
            Settings::default(),
            Duration::ZERO,
            Clock::system(),
        )
    };
    let nothing = Shelf::new(&there, Settings::default(), false);
    let open = || open_all(&bed.db, &nothing, archive(&bed), Buckets::default(), Some(follower()));
    drop(open().await.unwrap());
    let pieces =
        || fs::read_dir(there.join("copies/news/fetched")).unwrap().map(|entry| entry.unwrap().path());
    let segment = pieces().find(|path| path.extension().is_some_and(|end| end == "seg")).unwrap();
    let whole = fs::read(&segment).unwrap();
    // Where a start sees it, and where only a reader does.
    for at in [whole.len() - 20, 40] {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        let mut file = fs::OpenOptions::new().write(true).open(&segment).unwrap();
        std::io::Write::write_all(&mut file, &bytes).unwrap();
        let (collections, mut watcher) = open().await.unwrap();
        let found = || {
            let news = collections.get("news")?;
            news.index.snapshot().closest("com,e)/a", grange_index::Stamp::MAX).ok()?
        };
        assert!(found().is_none(), "byte {at}");
        for _ in 0..2 {
            watcher.step().await.unwrap();
        }
        assert!(found().is_some(), "byte {at}");
        assert!(fs::read(&segment).unwrap() == whole, "byte {at}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collection_made_again_between_two_looks_serves_nothing_of_the_one_before() {
    let bed = Bed::new().await;
    let path = bed.write("x/a.warc", &["http://e.com/secret"]);
    bed.register("news", &path, false).await;
    bed.feed().await;
    let (collections, mut watcher) =
        open_all(&bed.db, &bed.feeder.shelf, archive(&bed), Buckets::default(), None).await.unwrap();
    let surts = || {
        let index = Arc::clone(&collections.get("news").unwrap().index);
        let mut found = Vec::new();
        Query::new(Keys::Range(String::new(), None))
            .run(&index.snapshot(), |view| {
                found.push(view.surt().into_owned());
                Ok(Next::More)
            })
            .unwrap();
        found
    };
    assert_eq!(surts(), ["com,e)/secret"]);
    let first = collections.get("news").unwrap().identity.clone();
    bed.db.collections().remove("news", &anna()).await.unwrap();
    bed.feed().await;
    let path = bed.write("x/b.warc", &["http://e.com/open"]);
    bed.register("news", &path, false).await;
    bed.feed().await;
    watcher.step().await.unwrap();
    assert_eq!(surts(), ["com,e)/open"]);
    assert_ne!(collections.get("news").unwrap().identity, first);
    let holdings = Arc::clone(&collections.get("news").unwrap().holdings);
    assert!(holdings.read_at("b.warc", 0, 4).await.unwrap().is_some());
    let before = holdings.read_at("a.warc", 0, 4).await;
    assert!(!before.is_ok_and(|read| read.is_some()), "its files are not known any more");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_whose_row_was_not_seen_is_looked_up_before_it_is_not_here() {
    let bed = Bed::new().await;
    let path = bed.write("x/a.warc", &["http://e.com/a"]);
    let packed = bed.dir.path().join("files/x/d.wacz");
    fs::write(&packed, package(&[("archive/d.warc", record("http://e.com/d").as_bytes())])).unwrap();
    bed.register("news", &path, false).await;
    bed.register("news", &packed, false).await;
    let files = ForeignFiles::new(bed.db.clone(), "news", Buckets::default(), archive(&bed));
    for (name, there) in [("a.warc", true), ("d.wacz/archive/d.warc", true), ("none.warc", false)] {
        let read = files.read_at(name, 0, 4).await;
        assert_eq!(
            read.is_ok_and(|read| read.is_some_and(|bytes| bytes.as_ref() == b"WARC")),
            there,
            "{name}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_package_that_was_away_is_read_when_it_is_there() {
    let bed = Bed::new().await;
    let path = bed.dir.path().join("files/disk/d.wacz");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, package(&[("archive/d.warc", record("http://e.com/d").as_bytes())])).unwrap();
    bed.register("news", &path, false).await;
    bed.feed().await;
    let aside = path.with_extension("aside");
    fs::rename(&path, &aside).unwrap();
    let (collections, _watcher) =
        open_all(&bed.db, &bed.feeder.shelf, archive(&bed), Buckets::default(), None).await.unwrap();
    let news = collections.get("news").unwrap();
    let read = async || news.holdings.read_at("d.wacz/archive/d.warc", 0, 4).await;
    assert!(!read().await.is_ok_and(|read| read.is_some()));
    fs::rename(&aside, &path).unwrap();
    assert_eq!(&read().await.unwrap().unwrap()[..], b"WARC");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_is_away_for_hours_fails_nothing_for_good() {
    let (clock, hand) = Clock::test("2026-01-01T00:00:00Z".parse().unwrap());
    let bed = Bed::with(&grange_db::Settings::default(), clock).await;
    let path = bed.write("disk/a.warc", &["http://e.com/a"]);
    bed.register("news", &path, false).await;
    let (disk, aside) = (bed.dir.path().join("files/disk"), bed.dir.path().join("files/unplugged"));
    fs::rename(&disk, &aside).unwrap();
    for _ in 0..8 {
        bed.feed().await;
        assert_eq!(bed.files("news", CollectedState::Failed).await, ["a.warc"], "people see it");
        hand.advance(Duration::from_secs(3600));
    }
    fs::rename(&aside, &disk).unwrap();
    for _ in 0..8 {
        hand.advance(Duration::from_secs(3600));
        bed.feed().await;
    }
    assert_eq!(bed.files("news", CollectedState::Indexed).await, ["a.warc"]);
    assert_eq!(bed.captures("news").len(), 1);
}

#[test]
fn a_package_becomes_part_of_the_index_as_a_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let index = grange_index::Index::open(folder.path().join("index"), Settings::default()).unwrap();
    let path = folder.path().join("d.wacz");
    let (one, two) = (record("http://e.com/1"), record("http://e.com/2"));
    fs::write(&path, package(&[("archive/1.warc", one.as_bytes()), ("archive/2.warc", two.as_bytes())]))
        .unwrap();
    let members: Vec<wacz::Member> = wacz::members(&path).unwrap();
    let read = |away: &str| {
        packed(&index, "d.wacz", &path, &members, |name, section: &Section| {
            if name.ends_with(away) {
                return Err(std::io::ErrorKind::TimedOut.into());
            }
            warc::Reader::seekable(section.open()?)
        })
    };
    assert!(read("2.warc").is_err());
    assert_eq!(index.snapshot().stats().files, 0);
    assert_eq!(read("none").unwrap().captures, 2);
    assert_eq!(index.snapshot().stats().files, 2);
}
