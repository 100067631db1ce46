//! Files into indexes and out again, with a real database, real indexes and a real archive's words.

mod healing;
mod hooked_blob;
mod meanwhile;
mod ownership;
mod watching;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use grange_archive::{ArchiveClient, Error, Got, Second, Store, StoreOutcome};
use grange_base::Clock;
use grange_base::worker::Step;
use grange_blob::{Blob, Buckets, Memory};
use grange_db::{CollectedState, Db, Enrolled, FileFilter, FileStatus, NewCollected, Which};
use grange_index::Settings;
use grange_index::query::{Keys, Next, Query};
use grange_model::{Actor, Checksums, FileName};

use super::{Feeder, Follower, Keeper, OpenArchive, Publisher, Shelf, open_all};
use crate::holdings::ArchiveFiles;
use crate::proxy::Proxy;

/// The bytes of files by name; nothing else of an archive is asked for here.
#[derive(Debug)]
struct Folder(PathBuf);

#[async_trait]
impl ArchiveClient for Folder {
    async fn read_at(&self, name: &FileName, offset: u64, len: u64) -> Result<Bytes, Error> {
        let bytes =
            std::fs::read(self.0.join(name.as_str())).map_err(|_| Error::NotFound { name: name.clone() })?;
        let at = (offset as usize).min(bytes.len());
        let end = (at + len as usize).min(bytes.len());
        Ok(Bytes::copy_from_slice(&bytes[at..end]))
    }

    async fn store(&self, _: &Path, _: &Store) -> Result<StoreOutcome, Error> {
        unreachable!("nothing is stored")
    }

    async fn get(&self, _: &FileName, _: &Path) -> Result<Got, Error> {
        unreachable!("nothing is copied")
    }

    async fn status(&self, _: &FileName) -> Result<Option<FileStatus>, Error> {
        Ok(None)
    }

    async fn list(&self, _: &FileFilter) -> Result<Vec<FileStatus>, Error> {
        Ok(Vec::new())
    }

    async fn correct(
        &self,
        _: &str,
        _: &FileName,
        _: &Checksums,
        _: &Second,
        _: &Actor,
    ) -> Result<FileStatus, Error> {
        unreachable!("nothing is corrected")
    }

    async fn remove_and_get(
        &self,
        _: &str,
        _: &FileName,
        _: &Checksums,
        _: &Second,
        _: &Path,
        _: &Actor,
    ) -> Result<FileStatus, Error> {
        unreachable!("nothing is removed")
    }
}

struct Bed {
    dir: tempfile::TempDir,
    db: Db,
    feeder: Feeder,
}

impl Bed {
    async fn new() -> Self {
        Self::with(&grange_db::Settings::default(), Clock::system()).await
    }

    async fn with(settings: &grange_db::Settings, clock: Clock) -> Self {
        let dir = tempfile::tempdir().unwrap();
        Db::migrate(settings, dir.path(), &clock).await.unwrap();
        let db = Db::open(settings, dir.path(), clock).await.unwrap();
        std::fs::create_dir(dir.path().join("files")).unwrap();
        let feeder = node(&db, dir.path(), dir.path(), "test", LEASE, None);
        Self { dir, db, feeder }
    }

    /// Another node on the same database, with a data folder of its own.
    fn node(&self, name: &str, lease: Duration, copies: Option<Arc<dyn Blob>>) -> Feeder {
        node(&self.db, self.dir.path(), &self.dir.path().join(name), name, lease, copies)
    }

    fn write(&self, name: &str, urls: &[&str]) -> PathBuf {
        let path = self.dir.path().join("files").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, urls.iter().map(|url| record(url)).collect::<String>()).unwrap();
        path
    }

    async fn register(&self, collection: &str, path: &Path, stored: bool) -> Enrolled {
        self.db.collections().ensure(collection, &anna()).await.unwrap();
        let about = std::fs::metadata(path).ok();
        let size = about.as_ref().map_or(0, std::fs::Metadata::len);
        let modified = about.and_then(|about| about.modified().ok()?.try_into().ok());
        let path = if stored { path.file_name().map(Path::new).unwrap() } else { path };
        let new = NewCollected { path: path.to_str().unwrap().to_owned(), size, modified, stored };
        self.db.collections().enrol(collection, vec![new], &anna()).await.unwrap()
    }

    async fn feed(&self) {
        feed(&self.feeder).await;
    }

    fn captures(&self, collection: &str) -> Vec<String> {
        captures(&self.feeder, collection)
    }

    /// The names of files in a state.
    async fn files(&self, collection: &str, state: CollectedState) -> Vec<String> {
        let files = self.db.collections().files(collection, Some(state), 0, 1000).await.unwrap();
        files.into_iter().map(|file| file.name).collect()
    }
}

/// A node that feeds indexes: its data folder, and the folder where files of the archive are.
fn node(
    db: &Db,
    files: &Path,
    data: &Path,
    name: &str,
    lease: Duration,
    copies: Option<Arc<dyn Blob>>,
) -> Feeder {
    let folder = files.join("files");
    let archive: OpenArchive = Arc::new(move || {
        let client: Arc<dyn ArchiveClient> = Arc::new(Folder(folder.clone()));
        Box::pin(async move { Ok(client) })
    });
    let (shelf, clock) = (Shelf::new(data, Settings::default(), true), db.clock());
    let keeper = Keeper::new(db.clone(), shelf.clone(), clock.clone(), name.to_owned(), lease, copies);
    let (db, owner) = (db.clone(), name.to_owned());
    Feeder { db, shelf, keeper, archive, clock, owner, buckets: Buckets::default() }
}

async fn feed(feeder: &Feeder) {
    while feeder.step().await.unwrap() == Step::More {}
}

fn captures(feeder: &Feeder, collection: &str) -> Vec<String> {
    {
        let index = feeder.shelf.kept(collection).unwrap().index;
        let mut found = Vec::new();
        let run = Query::new(Keys::Range(String::new(), None)).run(&index.snapshot(), |view| {
            found.push(format!("{} {} {}", view.surt(), view.file(), view.job().unwrap_or("-")));
            Ok(Next::More)
        });
        run.unwrap();
        found
    }
}

/// No test outlives it.
const LEASE: Duration = Duration::from_secs(3600);

fn anna() -> Actor {
    Actor::new("anna", "cli")
}

fn record(url: &str) -> String {
    let block = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\nhello";
    format!(
        "WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:{}>\r\nWARC-Date: 2026-01-02T03:04:05Z\r\n\
         WARC-Target-URI: {url}\r\nContent-Type: application/http;msgtype=response\r\nContent-Length: {}\r\n\r\n{block}\r\n\r\n",
        url.len(),
        block.len()
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stored_files_are_indexed_once_with_their_job_and_can_be_taken_out() {
    let bed = Bed::new().await;
    let first = bed.write("7-1-a.warc", &["http://e.com/a", "http://e.com/b"]);
    let papers = bed.write("7-metadata-1.warc", &["metadata://e.com/crawl/order.xml?jobid=7"]);
    let other = bed.write("8-1-a.warc", &["http://e.com/a"]);
    for path in [&first, &papers, &other] {
        bed.register("papers", path, true).await;
    }
    bed.feed().await;
    let all = [
        "com,e)/a 7-1-a.warc 7",
        "com,e)/a 8-1-a.warc 8",
        "com,e)/b 7-1-a.warc 7",
        "metadata://e.com/crawl/order.xml?jobid=7 7-metadata-1.warc 7",
    ];
    assert_eq!(bed.captures("papers"), all);

    // The same file again, as after a crash between the commit and the mark, changes nothing.
    let files = bed.db.collections();
    files.roll_back("papers", &Which::File("8-1-a.warc".to_owned()), &anna()).await.unwrap();
    bed.feed().await;
    files.index_again("papers", &Which::All, &anna()).await.unwrap();
    bed.feed().await;
    let index = bed.feeder.shelf.index("papers").unwrap().unwrap();
    let mut batch = grange_index::Batch::new();
    let mut reader = warc::Reader::open(&first).unwrap();
    batch.add_records(&mut reader, "7-1-a.warc", Some("7")).unwrap();
    assert_eq!(index.commit(batch).unwrap().known, ["7-1-a.warc"]);

    files.roll_back("papers", &Which::Job("7".to_owned()), &anna()).await.unwrap();
    bed.feed().await;
    assert!(bed.captures("papers").iter().all(|line| line.ends_with(" 8")), "{:?}", bed.captures("papers"));
    assert_eq!(files.get("papers").await.unwrap().files.out, 2);
    files.index_again("papers", &Which::All, &anna()).await.unwrap();
    bed.feed().await;
    assert_eq!(bed.captures("papers").len(), 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_cannot_be_read_is_told_and_the_others_go_on() {
    let bed = Bed::new().await;
    let good = bed.write("x/good.warc", &["http://e.com/"]);
    let torn = bed.write("x/torn.warc", &["http://e.com/torn"]);
    std::fs::write(&torn, [std::fs::read(&torn).unwrap(), b"WARC/1.1\r\nbroken".to_vec()].concat()).unwrap();
    for path in [&bed.dir.path().join("files/none.warc"), &torn, &good] {
        bed.register("news", path, false).await;
    }
    bed.feed().await;
    let files = bed.db.collections().files("news", None, 0, 10).await.unwrap();
    let states: Vec<_> =
        files.iter().map(|file| (file.name.as_str(), file.state, file.problems > 0)).collect();
    assert_eq!(
        states,
        [
            ("none.warc", CollectedState::Failed, false),
            ("torn.warc", CollectedState::Indexed, true),
            ("good.warc", CollectedState::Indexed, false),
        ]
    );
    assert!(files[0].told[0].contains("cannot read"), "{:?}", files[0].told);
    assert_eq!(bed.captures("news").len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_has_grown_or_was_replaced_is_read_again_and_served_as_it_is() {
    let bed = Bed::new().await;
    let archive = Arc::new(ArchiveFiles::new(Arc::new(Folder(bed.dir.path().join("nothing")))));
    let path = bed.write("x/a.warc", &["http://e.com/a"]);
    let lines = bed.dir.path().join("files/x/index.cdxj");
    let line = |path: &str| {
        format!(
            "com,e)/{path} 20260102030405 {{\"url\": \"http://e.com/{path}\", \"offset\": \"0\", \"filename\": \"other.warc\"}}\n"
        )
    };
    std::fs::write(&lines, line("c1")).unwrap();
    bed.register("news", &path, false).await;
    bed.register("news", &lines, false).await;
    bed.feed().await;
    let (collections, mut watcher) =
        open_all(&bed.db, &bed.feeder.shelf, archive, Buckets::default(), None).await.unwrap();
    let surts = || bed.captures("news").into_iter().map(|line| line.split(' ').next().unwrap().to_owned());
    assert_eq!(surts().collect::<Vec<_>>(), ["com,e)/a", "com,e)/c1"]);
    assert_eq!(bed.register("news", &path, false).await, Enrolled { known: 1, ..Enrolled::default() });

    let first = std::fs::metadata(&path).unwrap().len();
    bed.write("x/a.warc", &["http://e.com/a", "http://e.com/b"]);
    std::fs::write(&lines, line("c22")).unwrap();
    assert_eq!(bed.register("news", &path, false).await, Enrolled { again: 1, ..Enrolled::default() });
    assert_eq!(bed.register("news", &lines, false).await, Enrolled { again: 1, ..Enrolled::default() });
    bed.feed().await;
    assert_eq!(surts().collect::<Vec<_>>(), ["com,e)/a", "com,e)/b", "com,e)/c22"]);
    watcher.step().await.unwrap();
    let news = collections.get("news").unwrap();
    let second = news.holdings.read_at("a.warc", first, 1 << 20).await.unwrap().unwrap();
    assert!(second.windows(14).any(|text| text == b"http://e.com/b"), "{second:?}");

    // Another file takes its place.
    std::fs::remove_file(&path).unwrap();
    bed.write("x/a.warc", &["http://e.com/other"]);
    bed.register("news", &path, false).await;
    bed.feed().await;
    watcher.step().await.unwrap();
    assert_eq!(surts().collect::<Vec<_>>(), ["com,e)/c22", "com,e)/other"]);
    let only = news.holdings.read_at("a.warc", 0, 1 << 20).await.unwrap().unwrap();
    assert!(only.windows(18).any(|text| text == b"http://e.com/other"), "{only:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lines_are_loaded_and_their_files_found_beside_them_and_nowhere_else() {
    let bed = Bed::new().await;
    let warc = bed.write("coll/archive/a.warc", &["http://e.com/"]);
    let lines = bed.dir.path().join("files/coll/indexes/index.cdxj");
    std::fs::create_dir_all(lines.parent().unwrap()).unwrap();
    let line = |file: &str| {
        format!(
            "com,e)/ 20260102030405 {{\"url\": \"http://e.com/\", \"offset\": \"0\", \"filename\": \"{file}\"}}\n"
        )
    };
    std::fs::write(&lines, [line("a.warc"), line("../../secret.warc"), "nonsense\n".to_owned()].concat())
        .unwrap();
    bed.write("secret.warc", &["http://secret/"]);
    // Beside them lies one that they do not name.
    bed.write("coll/archive/b.warc", &["http://secret/b"]);
    bed.register("news", &lines, false).await;
    bed.feed().await;
    let row = bed.db.collections().files("news", None, 0, 10).await.unwrap().remove(0);
    assert_eq!((row.state, row.captures, row.problems), (CollectedState::Indexed, 2, 1));
    let archive = Arc::new(ArchiveFiles::new(Arc::new(Folder(bed.dir.path().join("nothing")))));
    let (collections, mut watcher) =
        open_all(&bed.db, &bed.feeder.shelf, archive, Buckets::default(), None).await.unwrap();
    let news = collections.get("news").unwrap();
    let size = std::fs::metadata(&warc).unwrap().len();
    let read = news.holdings.read_at("a.warc", 0, 1 << 20).await.unwrap().unwrap();
    assert_eq!(read.len() as u64, size);
    assert_eq!(news.holdings.read_at("../../secret.warc", 0, 10).await.unwrap(), None);
    let secrets = bed.dir.path().join("secrets");
    let proxy = Proxy::open(collections.clone(), crate::cdx::Options::default(), &secrets).unwrap();
    for (file, status) in [("a.warc", 200), ("b.warc", 404)] {
        let asked = format!("http://viewerproxy.invalid/getFile?arcFile={file}");
        let given = crate::proxy::tests::response(&proxy, &asked, "01 Jan 2020 00:00:00 GMT").await;
        assert_eq!(given.status(), status, "{file}");
    }
    bed.db.collections().roll_back("news", &Which::All, &anna()).await.unwrap();
    bed.feed().await;
    assert_eq!(bed.captures("news"), Vec::<String>::new());
    watcher.step().await.unwrap();
    let gone = news.holdings.read_at("a.warc", 0, 10).await;
    assert!(!gone.is_ok_and(|read| read.is_some()), "nothing names it any more");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_served_follows_the_rows_and_the_folder() {
    let bed = Bed::new().await;
    // A reader of its own, as another process has one.
    let looking = Shelf::new(bed.dir.path(), Settings::default(), false);
    let archive = Arc::new(ArchiveFiles::new(Arc::new(Folder(bed.dir.path().join("files")))));
    let (collections, mut watcher) =
        open_all(&bed.db, &looking, archive, Buckets::default(), None).await.unwrap();
    assert!(collections.all().is_empty(), "nothing is indexed yet");
    let path = bed.write("a.warc", &["http://e.com/"]);
    bed.register("news", &path, false).await;
    bed.feed().await;
    watcher.step().await.unwrap();
    let news = collections.get("news").unwrap();
    assert!(news.holdings.read_at("a.warc", 0, 4).await.unwrap().is_some());
    let more = bed.write("b.warc", &["http://e.com/b"]);
    bed.register("news", &more, false).await;
    bed.feed().await;
    assert!(news.index.snapshot().closest("com,e)/b", grange_index::Stamp::MAX).unwrap().is_none());
    let rule = serde_json::json!({ "surt_prefix": "com,e)/", "decision": { "block": { "message": "no" } } });
    let made = bed.db.access_rules().add(vec![rule], "", &anna()).await.unwrap().remove(0);
    watcher.step().await.unwrap();
    assert!(news.index.snapshot().closest("com,e)/b", grange_index::Stamp::MAX).unwrap().is_some());
    assert!(news.holdings.read_at("b.warc", 0, 4).await.unwrap().is_some());
    assert_eq!(news.rules().len(), 1);
    bed.db.access_rules().remove(made.id, &anna()).await.unwrap();
    watcher.step().await.unwrap();
    assert_eq!(news.rules().len(), 0);
    bed.db.collections().remove("news", &anna()).await.unwrap();
    bed.feed().await;
    watcher.step().await.unwrap();
    assert!(collections.get("news").is_none());
    assert!(!bed.dir.path().join("index/news").exists());
    assert!(path.exists(), "files registered in place stay");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_without_the_folder_follows_the_copies() {
    let bed = Bed::new().await;
    let (clock, hand) = Clock::test("2026-01-01T00:00:00Z".parse().unwrap());
    let blob: Arc<dyn Blob> = Arc::new(Memory::new(clock.clone()));
    let mut publisher = Publisher::new(bed.db.clone(), bed.feeder.shelf.clone(), blob.clone(), clock.clone());
    let there = bed.dir.path().join("elsewhere");
    let every = Duration::from_secs(60);
    let follower = Follower::new(blob.clone(), there.join("copies"), Settings::default(), every, clock);
    let nothing = Shelf::new(&there, Settings::default(), false);
    let archive = Arc::new(ArchiveFiles::new(Arc::new(Folder(bed.dir.path().join("files")))));
    let path = bed.write("a.warc", &["http://e.com/a"]);
    bed.register("news", &path, false).await;
    bed.feed().await;
    publisher.step().await.unwrap();
    let (collections, mut watcher) =
        open_all(&bed.db, &nothing, archive, Buckets::default(), Some(follower)).await.unwrap();
    let has = |surt: &str| {
        let news = collections.get("news").unwrap();
        news.index.snapshot().closest(surt, grange_index::Stamp::MAX).unwrap().is_some()
    };
    assert!(has("com,e)/a"));
    let names = || async { blob.list(None, 1000).await.unwrap().len() };
    let before = names().await;
    publisher.step().await.unwrap();
    assert_eq!(names().await, before, "nothing changed, so nothing is copied");

    let more = bed.write("b.warc", &["http://e.com/b"]);
    bed.register("news", &more, false).await;
    bed.feed().await;
    hand.advance(Duration::from_secs(1));
    publisher.step().await.unwrap();
    watcher.step().await.unwrap();
    assert!(!has("com,e)/b"), "the store is not asked at every look");
    hand.advance(every);
    watcher.step().await.unwrap();
    assert!(has("com,e)/a") && has("com,e)/b"));
    let kept = std::fs::read_dir(there.join("copies/news")).unwrap().count();
    assert_eq!(kept, 2, "the copy in use and what it is made of");
    bed.db.collections().remove("news", &anna()).await.unwrap();
    bed.feed().await;
    watcher.step().await.unwrap();
    assert!(collections.get("news").is_none());
}
