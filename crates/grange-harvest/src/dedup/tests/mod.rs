//! Indexes of made-up entries, of damaged files, of foreign logs, and of real crawls that build on one another.

mod anywhere;
mod stored;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use grange_archive::ArchiveClient;
use grange_base::{Clock, Size};
use grange_crawl::engine::Crawl;
use grange_crawl::record::{DedupBy, DuplicateOracle, NoOracle};
use grange_model::harvest::JobId;
use grange_testkit::web::{Options, Profile, Rules, Web};
use jiff::Timestamp;
use proptest::prelude::*;
use warc::write::{FileOptions, NewRecord, WarcFile};
use warc::{Algorithm, Date, Digest, Reader, RecordType};

use super::build::Built;
use super::entry::Key;
use super::{Builder, By, Cache, Entry, FileEvidence, Index, IndexError, Limits, feed, oracle_for, set_name};
use crate::folder::JobFolder;
use crate::metadata;
use crate::test_bed::{crawl_job, folder, papers};
use crate::test_shelf::Shelf;

fn entry(seed: u64, file: u32, date_ms: i64) -> Entry {
    let hash = blake3::hash(&seed.to_le_bytes());
    let key = Key(hash.as_bytes()[..12].try_into().unwrap());
    Entry::new(key, file, seed * 7, Timestamp::from_millisecond(date_ms).unwrap()).unwrap()
}

fn built(folder: &Path, entries: &[Entry], files: &[&str]) -> PathBuf {
    let builder = Builder::new(By::Url, folder);
    for name in files {
        builder.file(name).unwrap();
    }
    for entry in entries {
        builder.push(*entry).unwrap();
    }
    let path = folder.join("index");
    finished(builder, &path);
    path
}

/// Writes an index as if the archive had verified every file.
fn finished(builder: Builder, path: &Path) -> Built {
    let verified = |name| (name, FileEvidence::Verified("sha512=0".to_owned()));
    let evidence = builder.named_files().into_keys().map(verified).collect();
    builder.finish(path, &evidence).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]
    #[test]
    fn every_entry_is_found_and_nothing_else(
        seeds in proptest::collection::btree_set(0_u64..1_000_000, 0..3000), doubles in 0_usize..50,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let mut entries: Vec<_> = seeds.iter().map(|seed| entry(*seed, (seed % 3) as u32, 1_000_000)).collect();
        // Later captures of what is there: the oldest must stay.
        for seed in seeds.iter().take(doubles) {
            entries.insert(0, entry(*seed, 1, 2_000_000));
        }
        let index = Index::open(&built(folder.path(), &entries, &["a", "b", "c"])).unwrap();
        prop_assert_eq!(index.len(), seeds.len() as u64);
        index.verify().unwrap();
        for seed in 0..2000_u64 {
            let wanted = entry(seed, (seed % 3) as u32, 1_000_000);
            let found = index.entry(wanted.key).unwrap();
            prop_assert_eq!(found, seeds.contains(&seed).then_some(wanted));
        }
        for seed in &seeds {
            let wanted = entry(*seed, (seed % 3) as u32, 1_000_000);
            prop_assert_eq!(index.entry(wanted.key).unwrap(), Some(wanted));
            prop_assert_eq!(index.name(wanted.file).unwrap(), ["a", "b", "c"][wanted.file as usize]);
        }
    }
}

#[test]
fn damage_anywhere_is_named_and_never_believed() {
    let folder = tempfile::tempdir().unwrap();
    let entries: Vec<_> = (0..6000).map(|seed| entry(seed, 0, 5)).collect();
    let path = built(folder.path(), &entries, &["a.warc.gz"]);
    let sound = std::fs::read(&path).unwrap();
    let hurt = folder.path().join("hurt");
    let check = |bytes: &[u8], what: &str| {
        std::fs::write(&hurt, bytes).unwrap();
        let error = match Index::open(&hurt) {
            Ok(index) => {
                // What is found in a damaged file is right, or not told at all.
                for wanted in entries.iter().step_by(40) {
                    if let Ok(found) = index.entry(wanted.key) {
                        assert_eq!(found, Some(*wanted), "{what}");
                    }
                }
                index.verify().expect_err(what)
            }
            Err(error) => error,
        };
        assert!(matches!(&error, IndexError::Damaged { path, .. } if *path == hurt), "{what}: {error}");
        assert!(error.to_string().contains("hurt"), "{error}");
    };
    for at in (0..sound.len()).step_by(4001).chain([0, 8, 95, 96, 100, sound.len() - 1]) {
        let mut bytes = sound.clone();
        bytes[at] ^= 0x10;
        check(&bytes, &format!("byte {at}"));
    }
    for len in [0, 10, 96, 1000, sound.len() - 1] {
        check(&sound[..len], &format!("cut at {len}"));
    }
    let longer: Vec<u8> = sound.iter().copied().chain([0]).collect();
    check(&longer, "longer");
}

#[test]
fn sets_are_named_as_netarchivesuite_names_them() {
    for (jobs, name) in [
        (vec![], "empty-cache"),
        (vec![5], "5-cache"),
        (vec![10, 9, 10, 2, 30], "2-9-10-30-cache"),
        (vec![5, 4, 3, 2, 1], "1-2-3-4-601bcbd12379a3a03bcbad773954109d-cache"),
    ] {
        assert_eq!(set_name(&jobs.into_iter().map(JobId).collect::<Vec<_>>()), name);
    }
}

#[test]
fn the_cache_lets_go_of_the_old_and_the_too_much() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(folder.path()).unwrap();
    let now = SystemTime::now();
    let day = Duration::from_secs(24 * 3600);
    for (job, age, len) in [(1, 90, 10), (2, 5, 400), (3, 4, 400), (4, 3, 400), (5, 100, 10), (6, 80, 10)] {
        let path = cache.path(By::Url, &[JobId(job)]);
        std::fs::write(&path, vec![0; len]).unwrap();
        let file = std::fs::File::options().append(true).open(&path).unwrap();
        file.set_modified(now - day * age).unwrap();
    }
    // What a process left that died, and what one writes now.
    for (name, age) in [("papers-old", 4), ("papers-new", 1)] {
        let file = std::fs::File::create(folder.path().join(name)).unwrap();
        file.set_modified(now - day * age).unwrap();
    }
    let _working = cache.lock(&[JobId(6)]).unwrap();
    let limits = Limits { size: 900, age: day * 60 };
    let gone = cache.trim(limits, &[&cache.path(By::Url, &[JobId(5)])], now).unwrap();
    // 1 is old; 2 was used longest ago of those that are too much; 5 is wanted and 6 is being made.
    assert_eq!(gone, [cache.path(By::Url, &[JobId(1)]), cache.path(By::Url, &[JobId(2)])]);
    assert!([3, 4, 5, 6].iter().all(|job| cache.path(By::Url, &[JobId(*job)]).exists()));
    assert!(!folder.path().join("papers-old").exists() && folder.path().join("papers-new").exists());
    cache.touch(&cache.path(By::Url, &[JobId(5)]));
    assert_eq!(cache.trim(limits, &[], now).unwrap(), Vec::<PathBuf>::new());
}

/// A metadata file in NetarchiveSuite's manner: its log does not say where records lie.
fn foreign(path: &Path, log: &str, cdx: &str) {
    let date = Date::from(Timestamp::UNIX_EPOCH);
    let mut file = WarcFile::create(path, &FileOptions::default(), date).unwrap();
    for (address, mime, text) in [
        (
            "metadata://netarkivet.dk/crawl/logs/crawl.log?heritrixVersion=3.3.0&harvestid=1&jobid=1",
            "text/plain",
            log,
        ),
        (
            "metadata://netarkivet.dk/crawl/index/cdx?majorversion=2&minorversion=0&harvestid=1&jobid=1&filename=x",
            "application/x-cdx",
            cdx,
        ),
    ] {
        file.write(&mut NewRecord::resource(address, date, mime, text.as_bytes())).unwrap();
    }
    file.close().unwrap();
}

#[test]
fn foreign_logs_find_their_places_in_the_index_lines() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("1-metadata-1.warc.gz");
    let digest = |text: &str| Digest::of(Algorithm::Sha1, text.as_bytes());
    let line = |url: &str, time: &str, text: &str, annotations: &str| {
        format!(
            "2020-01-01T00:00:09.000Z   200         10 {url} L http://e.dk/ image/png #001 {time}+5 {} http://e.dk/ {annotations}\n",
            digest(text)
        )
    };
    let log = [
        line("http://e.dk/a", "20200101000001234", "a", "-"),
        line("http://e.dk/dup", "20200101000002000", "d", "duplicate:\"0-0-old.arc,77,20190101000000\""),
        line("http://e.dk/dup2", "20200101000002000", "d", "duplicate:\"0-0-old.arc,99\",3t"),
        line("http://e.dk/unknown", "20200101000003000", "u", "duplicate:digest"),
        line("http://e.dk/nowhere", "20200101000004000", "n", "-"),
        "2020-01-01T00:00:09.000Z    -2          - http://e.dk/dead L - unknown #001 - - - -\n".to_owned(),
        line("dns:e.dk", "20200101000004000", "n", "-"),
        "rubbish\n".to_owned(),
    ]
    .concat();
    let cdx = "http://e.dk/a 1.2.3.4 20200101000001 image/png 10 1-1-x.arc.gz 555 abc\n\
               http://e.dk/a 1.2.3.4 20180101000001 image/png 10 1-1-x.arc.gz 111 abc\nrubbish\n";
    foreign(&path, &log, cdx);
    let builder = Builder::new(By::Url, folder.path());
    let fed = feed(&[&builder], &path).unwrap();
    assert_eq!((fed.lines, fed.entries, fed.loose, fed.unreadable), (8, 2, 2, 1));
    let built = finished(builder, &folder.path().join("index"));
    assert_eq!((built.entries, built.unplaced), (3, 1));
    let index = Index::open(&folder.path().join("index")).unwrap();
    for (url, text, expected) in [
        ("http://e.dk/a", "a", Some(("1-1-x.arc.gz", 555, "2020-01-01T00:00:01.234Z"))),
        ("http://e.dk/a", "b", None),
        ("http://e.dk/dup", "d", Some(("0-0-old.arc", 77, "2019-01-01T00:00:00Z"))),
        ("http://e.dk/dup2", "d", Some(("0-0-old.arc", 99, "2020-01-01T00:00:02Z"))),
        ("http://e.dk/unknown", "u", None),
        ("http://e.dk/nowhere", "n", None),
    ] {
        let found = index.find(url, &digest(text)).unwrap();
        let found = found.as_ref().map(|one| (one.file.as_str(), one.offset, one.date));
        assert_eq!(
            found,
            expected.map(|(file, offset, date)| (file, offset, date.parse().unwrap())),
            "{url} {text}"
        );
    }
}

fn web(generation: u32) -> Web {
    let options = Options { hosts: 3, pages: 20, seed: 11, profile: Profile::Plain, ..Options::default() };
    Web::new(Options { generation, ..options })
}

/// Crawls a state of the web as job number `job` and writes its papers into `store`.
async fn crawled(
    base: &Path,
    store: &Path,
    job: i64,
    generation: u32,
    oracle: Arc<dyn DuplicateOracle>,
    by: DedupBy,
) -> JobFolder {
    let web = web(generation);
    let server = web.serve("127.0.0.1:0").await.unwrap();
    let papers = papers(job, &[]);
    let folder = folder(base, &papers);
    let mut crawl = crawl_job(&server, web.seeds());
    crawl.template.write.prefix = format!("{job}-3");
    crawl.template.write.roll_at = Size(100_000);
    crawl.template.dedup.by = by;
    Crawl::start(crawl, &folder.crawl(), oracle, Clock::system()).unwrap().run().await.unwrap();
    server.stop().await;
    let path = metadata::write(&folder, &papers).unwrap();
    let warcs = std::fs::read_dir(folder.warcs()).unwrap().map(|entry| entry.unwrap().path());
    for path in warcs.chain([path]) {
        std::fs::copy(&path, store.join(path.file_name().unwrap())).unwrap();
    }
    folder
}

/// Records of a kind by URL: date and what a revisit refers to.
fn records(
    folder: &JobFolder,
    kind: RecordType,
) -> BTreeMap<String, (Timestamp, String, u64, Option<String>)> {
    let mut found = BTreeMap::new();
    for path in std::fs::read_dir(folder.warcs()).unwrap().map(|entry| entry.unwrap().path()) {
        let mut reader = Reader::open(&path).unwrap();
        while let Some(record) = reader.next().unwrap() {
            let url = String::from_utf8_lossy(record.target_uri().unwrap_or_default()).into_owned();
            if record.kind() == kind && url.starts_with("http") {
                let file = path.file_name().unwrap().to_string_lossy().into_owned();
                let refers =
                    record.header().get_text("WARC-Refers-To-Date").map(std::borrow::Cow::into_owned);
                found.insert(url, (record.date().unwrap().timestamp(), file, record.place().offset, refers));
            }
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn crawls_build_on_one_another_and_every_revisit_leads_to_the_first_record() {
    let base = tempfile::tempdir().unwrap();
    let store = base.path().join("store");
    std::fs::create_dir(&store).unwrap();
    let archive: Arc<dyn ArchiveClient> = Shelf::new(&store);
    let cache = base.path().join("cache");
    let first = crawled(&base.path().join("1"), &store, 1, 0, Arc::new(NoOracle), DedupBy::Url).await;
    let originals = records(&first, RecordType::Response);
    let expected = web(0).expected(&Rules::default());
    let pictures: BTreeSet<_> = expected
        .iter()
        .filter(|(_, one)| !one.mime.starts_with("text/") && one.length > 0)
        .map(|(url, _)| url.clone())
        .collect();
    assert!(pictures.len() > 3);

    // The second job knows the first, the third only the second; nothing has changed meanwhile.
    for (job, before) in [(2, 1), (3, 2)] {
        let prepared = oracle_for(&archive, &cache, &[JobId(before)], By::Url).await.unwrap();
        assert_eq!((prepared.jobs, prepared.missing), (vec![JobId(before)], vec![]));
        assert!(cache.join(format!("{before}-cache")).exists());
        for url in &pictures {
            let digest = Digest::parse(expected[url].payload_sha1.as_bytes()).unwrap();
            let found = prepared.oracle.same_url(url, &digest).unwrap();
            let (date, file, offset, _) = &originals[url];
            assert_eq!(
                (&found.url, found.date, &found.file, found.offset),
                (url, *date, file, *offset),
                "job {job}"
            );
            assert_eq!(prepared.oracle.same_url(url, &Digest::of(Algorithm::Sha1, b"other")), None);
        }
        let folder =
            crawled(&base.path().join(job.to_string()), &store, job, 0, prepared.oracle, DedupBy::Url).await;
        let revisits = records(&folder, RecordType::Revisit);
        // Text is stored in full: the template says so, though the index knows it.
        assert_eq!(revisits.keys().cloned().collect::<BTreeSet<_>>(), pictures);
        for (url, (_, _, _, refers)) in &revisits {
            let date = Date::parse(refers.as_ref().unwrap().as_bytes()).unwrap().timestamp();
            assert_eq!(date, originals[url].0, "{url}");
        }
    }

    // Job 9 has no papers: the index over the others is used and that is told.
    let jobs = [JobId(9), JobId(2), JobId(1)];
    let prepared = oracle_for(&archive, &cache, &jobs, By::Url).await.unwrap();
    assert_eq!((prepared.jobs, prepared.missing), (vec![JobId(1), JobId(2)], vec![JobId(9)]));
    assert!(cache.join("1-2-cache").exists() && !cache.join("1-2-9-cache").exists());
    // A damaged index is made anew; papers that cannot be read are as good as none.
    std::fs::write(cache.join("1-2-cache"), "rubbish").unwrap();
    let prepared = oracle_for(&archive, &cache, &jobs, By::Url).await.unwrap();
    assert_eq!(prepared.jobs, [JobId(1), JobId(2)]);
    Index::open(&cache.join("1-2-cache")).unwrap().verify().unwrap();
    let nothing = oracle_for(&archive, &cache, &[], By::Url).await.unwrap();
    assert!(nothing.jobs.is_empty() && nothing.missing.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn several_that_want_the_same_index_make_it_once() {
    let store = tempfile::tempdir().unwrap();
    let offset = stored::stored(store.path(), "1-1-x.warc.gz", &["a"])[0];
    stored::metadata(store.path(), 1, &[stored::captured("a", "1-1-x.warc.gz", offset)]);
    let digest = Digest::of(Algorithm::Sha1, b"a");
    let shelf = Shelf::new(store.path());
    let cache = store.path().join("cache");
    let wanting = (0..8).map(|_| {
        let (archive, cache): (Arc<dyn ArchiveClient>, _) = (shelf.clone(), cache.clone());
        tokio::spawn(async move { oracle_for(&archive, &cache, &[JobId(1)], By::Url).await.unwrap() })
    });
    for prepared in wanting.collect::<Vec<_>>() {
        let found = prepared.await.unwrap().oracle.same_url("http://e.dk/a", &digest).unwrap();
        assert_eq!((found.file.as_str(), found.offset), ("1-1-x.warc.gz", offset));
    }
    assert_eq!(shelf.fetched.load(std::sync::atomic::Ordering::Relaxed), 1);
}
