//! Entries name records that the archive holds, whatever crawl logs claim.

use std::path::Path;
use std::sync::Arc;

use grange_archive::ArchiveClient;
use grange_model::harvest::JobId;
use jiff::Timestamp;
use warc::write::{FileOptions, NewRecord, WarcFile};
use warc::{Algorithm, Date, Digest, RecordType};

use super::foreign;
use crate::dedup::layout::{HEADER_BYTES, VERSION};
use crate::dedup::{By, Cache, Index, IndexError, oracle_for};
use crate::test_shelf::Shelf;

const AT: &str = "2020-01-01T00:00:01.234Z";

fn payload(text: &str) -> Digest {
    Digest::of(Algorithm::Sha1, text.as_bytes())
}

fn url(path: &str) -> String {
    format!("http://e.dk/{path}")
}

/// Stores a WARC file with a response for each path, whose payload is the path, and returns the offset of each.
pub(super) fn stored(store: &Path, file: &str, paths: &[&str]) -> Vec<u64> {
    let date = Date::from(AT.parse::<Timestamp>().unwrap());
    let mut warc = WarcFile::create(store.join(file), &FileOptions::default(), date).unwrap();
    let offsets = paths.iter().map(|path| {
        let mut record = NewRecord::new(RecordType::Response, date)
            .target_uri(&url(path))
            .content_type("application/http; msgtype=response")
            .payload_digest(payload(path))
            .block(b"HTTP/1.1 200 OK\r\n\r\n");
        warc.write(&mut record).unwrap().offset
    });
    let offsets = offsets.collect();
    warc.close().unwrap();
    offsets
}

/// A line of a crawl log: the capture of a path in this file.
pub(super) fn captured(path: &str, file: &str, offset: u64) -> String {
    line(path, "-", &format!("{{\"warcFilename\":\"{file}\",\"warcFileOffset\":{offset}}}"))
}

/// A line of a crawl log: a revisit of a record in this file.
fn revisit(path: &str, file: &str, offset: u64) -> String {
    line(path, &format!("duplicate:\"{file},{offset},20200101000001234\""), "{}")
}

fn line(path: &str, annotations: &str, extra: &str) -> String {
    format!(
        "2020-01-01T00:00:09.000Z   200         10 {} L - image/png #001 20200101000001234+5 {} - {annotations} {extra}\n",
        url(path),
        payload(path)
    )
}

pub(super) fn metadata(store: &Path, job: i64, lines: &[String]) {
    foreign(&store.join(format!("{job}-metadata-1.warc.gz")), &lines.concat(), "");
}

/// The file that a job continuing from `jobs` would refer to for each path; `-` if it would store the path in full.
async fn originals(shelf: &Arc<Shelf>, cache: &Path, jobs: &[i64], paths: &[&str]) -> Vec<String> {
    let archive: Arc<dyn ArchiveClient> = shelf.clone();
    let jobs: Vec<_> = jobs.iter().map(|job| JobId(*job)).collect();
    let prepared = oracle_for(&archive, cache, &jobs, By::Url).await.unwrap();
    assert!(prepared.missing.is_empty(), "{prepared:?}");
    let found = |path: &&str| prepared.oracle.same_url(&url(path), &payload(path));
    paths.iter().map(|path| found(path).map_or_else(|| "-".to_owned(), |one| one.file)).collect()
}

#[tokio::test]
async fn captures_whose_file_is_not_verified_on_every_replica_are_stored_again() {
    let base = tempfile::tempdir().unwrap();
    let (store, cache) = (base.path().join("store"), base.path().join("cache"));
    std::fs::create_dir(&store).unwrap();
    let shelf = Shelf::new(&store);
    let a = stored(&store, "1-1-a.warc.gz", &["a", "a2"]);
    let b = stored(&store, "1-1-b.warc.gz", &["b"])[0];
    let old = stored(&store, "0-1-old.warc.gz", &["f"])[0];
    // The upload of d was refused because the archive holds other bytes under that name.
    stored(&store, "1-1-d.warc.gz", &["something else"]);
    shelf.unverified.lock().unwrap().insert("1-1-b.warc.gz".to_owned());
    let lines = [
        captured("a", "1-1-a.warc.gz", a[0]),
        captured("a2", "1-1-a.warc.gz", a[1]),
        captured("b", "1-1-b.warc.gz", b),
        captured("c", "1-1-never-stored.warc.gz", 500),
        captured("d", "1-1-d.warc.gz", b),
        revisit("e", "0-1-never-stored.warc.gz", 700),
        revisit("f", "0-1-old.warc.gz", old),
        captured("g", "no/name.warc.gz", 1),
    ];
    metadata(&store, 1, &lines);
    let paths = ["a", "a2", "b", "c", "d", "e", "f", "g"];
    let (first, third) = ("1-1-a.warc.gz", "0-1-old.warc.gz");
    assert_eq!(originals(&shelf, &cache, &[1], &paths).await, [first, first, "-", "-", "-", "-", third, "-"]);

    // Job 2 stored them again. The older lines of job 1 do not stand in the way of that.
    let again = stored(&store, "2-1-x.warc.gz", &["c", "d", "e"]);
    let lines = ["c", "d", "e"].iter().zip(again).map(|(path, at)| captured(path, "2-1-x.warc.gz", at));
    metadata(&store, 2, &lines.collect::<Vec<_>>());
    let second = "2-1-x.warc.gz";
    let found = originals(&shelf, &cache, &[1, 2], &paths).await;
    assert_eq!(found, [first, first, "-", second, second, second, third, "-"]);
}

#[tokio::test]
async fn a_kept_index_follows_what_becomes_of_its_files() {
    let base = tempfile::tempdir().unwrap();
    let (store, cache) = (base.path().join("store"), base.path().join("cache"));
    std::fs::create_dir(&store).unwrap();
    let shelf = Shelf::new(&store);
    let (name_a, name_b) = ("1-1-a.warc.gz", "1-1-b.warc.gz");
    let a = stored(&store, name_a, &["a"])[0];
    let b = stored(&store, name_b, &["b"])[0];
    metadata(&store, 1, &[captured("a", name_a, a), captured("b", name_b, b)]);
    let condemn = |name: &str| shelf.unverified.lock().unwrap().insert(name.to_owned());
    let heal = |name: &str| shelf.unverified.lock().unwrap().remove(name);
    let fetched = || shelf.fetched.load(std::sync::atomic::Ordering::Relaxed);

    assert_eq!(originals(&shelf, &cache, &[1], &["a", "b"]).await, [name_a, name_b]);
    assert_eq!(originals(&shelf, &cache, &[1], &["a", "b"]).await, [name_a, name_b]);
    assert_eq!(fetched(), 1, "nothing has changed: the index is not built again");
    condemn(name_a);
    assert_eq!(originals(&shelf, &cache, &[1], &["a", "b"]).await, ["-", name_b]);
    heal(name_a);
    assert_eq!(originals(&shelf, &cache, &[1], &["a", "b"]).await, [name_a, name_b]);
    std::fs::remove_file(store.join(name_b)).unwrap();
    assert_eq!(originals(&shelf, &cache, &[1], &["a", "b"]).await, [name_a, "-"]);
    // Other bytes under the name of a file that was removed are another file.
    let first = std::fs::read(store.join(name_a)).unwrap();
    std::fs::remove_file(store.join(name_a)).unwrap();
    stored(&store, name_a, &["other", "a"]);
    assert_eq!(originals(&shelf, &cache, &[1], &["a", "b"]).await, ["-", "-"]);
    // Also where the record lies a little further on.
    std::fs::write(store.join(name_a), [&b"x"[..], &first[..]].concat()).unwrap();
    assert_eq!(originals(&shelf, &cache, &[1], &["a", "b"]).await, ["-", "-"]);
    let built = fetched();
    assert_eq!(originals(&shelf, &cache, &[1], &["a", "b"]).await, ["-", "-"]);
    assert_eq!(fetched(), built, "nothing has changed: the index is not built again");
}

#[tokio::test]
async fn an_index_with_a_file_that_cannot_be_read_is_built_again_only_when_that_file_can_be_read() {
    let base = tempfile::tempdir().unwrap();
    let (store, cache) = (base.path().join("store"), base.path().join("cache"));
    std::fs::create_dir(&store).unwrap();
    let shelf = Shelf::new(&store);
    let (name_a, name_b) = ("1-1-a.warc.gz", "1-1-b.warc.gz");
    let a = stored(&store, name_a, &["a"])[0];
    let b = stored(&store, name_b, &["other", "b"])[1];
    metadata(&store, 1, &[captured("a", name_a, a), captured("b", name_b, b)]);
    let unreadable = || shelf.unreadable.lock().unwrap();
    let unverified = || shelf.unverified.lock().unwrap();
    let fetched = || shelf.fetched.load(std::sync::atomic::Ordering::Relaxed);

    unreadable().insert(name_b.to_owned());
    for _ in 0..2 {
        assert_eq!(originals(&shelf, &cache, &[1], &["a", "b"]).await, [name_a, "-"]);
        assert_eq!(fetched(), 1, "another index would say the same");
    }
    // No longer verified, which says more; and then as before.
    unverified().insert(name_b.to_owned());
    for _ in 0..2 {
        assert_eq!(originals(&shelf, &cache, &[1], &["a", "b"]).await, [name_a, "-"]);
        assert_eq!(fetched(), 2);
    }
    unverified().remove(name_b);
    for _ in 0..2 {
        assert_eq!(originals(&shelf, &cache, &[1], &["a", "b"]).await, [name_a, "-"]);
        assert_eq!(fetched(), 3);
    }
    unreadable().remove(name_b);
    for _ in 0..2 {
        assert_eq!(originals(&shelf, &cache, &[1], &["a", "b"]).await, [name_a, name_b]);
        assert_eq!(fetched(), 4);
    }
}

#[tokio::test]
async fn an_index_of_an_older_version_is_built_again() {
    let base = tempfile::tempdir().unwrap();
    let (store, cache) = (base.path().join("store"), base.path().join("cache"));
    std::fs::create_dir(&store).unwrap();
    let shelf = Shelf::new(&store);
    let a = stored(&store, "1-1-a.warc.gz", &["a"])[0];
    metadata(&store, 1, &[captured("a", "1-1-a.warc.gz", a)]);
    assert_eq!(originals(&shelf, &cache, &[1], &["a"]).await, ["1-1-a.warc.gz"]);
    let path = Cache::open(&cache).unwrap().path(By::Url, &[JobId(1)]);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[8..12].copy_from_slice(&(VERSION - 1).to_le_bytes());
    let crc = crc32c::crc32c(&bytes[..HEADER_BYTES - 4]);
    bytes[HEADER_BYTES - 4..HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
    std::fs::write(&path, bytes).unwrap();
    assert!(matches!(Index::open(&path), Err(IndexError::OtherVersion { .. })));
    assert_eq!(originals(&shelf, &cache, &[1], &["a"]).await, ["1-1-a.warc.gz"]);
    assert_eq!(shelf.fetched.load(std::sync::atomic::Ordering::Relaxed), 2);
}
