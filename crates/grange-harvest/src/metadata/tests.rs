//! The papers of real crawls: every record at its address, readable by others, the same when made again.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use data_encoding::HEXLOWER;
use grange_base::{Clock, Size};
use grange_crawl::engine::Crawl;
use grange_crawl::record::NoOracle;
use grange_testkit::web::{Options, Profile, Web};
use md5::{Digest as _, Md5};
use warc::{Reader, RecordType};

use super::read::{Part, lines_of_file};
use super::{Address, Class, file_name, job_of, note_file, write};
use crate::test_bed::{crawl_job, folder, papers};

struct Read {
    kind: RecordType,
    uri: String,
    content_type: String,
    block: Vec<u8>,
}

fn records(path: &Path) -> Vec<Read> {
    let mut reader = Reader::open(path).unwrap();
    let mut found = Vec::new();
    while let Some(mut record) = reader.next().unwrap() {
        let text = |value: Option<&[u8]>| String::from_utf8(value.unwrap_or_default().to_vec()).unwrap();
        let (kind, uri, content_type) =
            (record.kind(), text(record.target_uri()), text(record.content_type()));
        let mut block = Vec::new();
        std::io::Read::read_to_end(&mut record.block(), &mut block).unwrap();
        found.push(Read { kind, uri, content_type, block });
    }
    assert_eq!(reader.problems(), []);
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn the_papers_of_a_crawl_say_all_and_say_it_again() {
    let base = tempfile::tempdir().unwrap();
    let web =
        Web::new(Options { hosts: 2, pages: 12, seed: 5, profile: Profile::Plain, ..Options::default() });
    let server = web.serve("127.0.0.1:0").await.unwrap();
    let papers = papers(42, &[7, 9]);
    let folder = folder(base.path(), &papers);
    let mut job = crawl_job(&server, web.seeds());
    job.template.write.roll_at = Size(20_000);
    job.template.write.chunk_size = Size(50_000);
    job.traps.global = vec![".*/trap/.*".to_owned()];
    let crawl = Crawl::start(job, &folder.crawl(), Arc::new(NoOracle), Clock::system()).unwrap();
    crawl.run().await.unwrap();
    server.stop().await;

    let mut warcs: Vec<_> =
        std::fs::read_dir(folder.warcs()).unwrap().map(|entry| entry.unwrap().path()).collect();
    warcs.sort();
    assert!(warcs.len() > 2 && std::fs::read_dir(folder.manifests()).unwrap().count() > 1, "{warcs:?}");
    // The first file has been stored and is gone; what is left of a try that was killed is in the way.
    note_file(&folder, &warcs[0]).unwrap();
    let kept = base.path().join("stored.warc.gz");
    std::fs::rename(&warcs[0], &kept).unwrap();
    let half = folder.metadata().join(format!("{}.open", file_name(papers.info.job.id, 1)));
    std::fs::write(&half, "half").unwrap();

    let path = write(&folder, &papers).unwrap();
    assert_eq!(path.file_name().unwrap(), "42-metadata-1.warc.gz");
    assert!(!half.exists());
    let found = records(&path);
    assert_eq!(found[0].kind, RecordType::Warcinfo);
    assert!(String::from_utf8_lossy(&found[0].block).contains("isPartOf: 42\r\n"));
    assert!(found[1..].iter().all(|record| record.kind == RecordType::Resource));
    let addresses: Vec<_> = found[1..].iter().map(|record| Address::parse(&record.uri).unwrap()).collect();
    let classes: Vec<_> = addresses[2..].iter().map(|address| address.class).collect();
    assert!(classes.is_sorted() && addresses.iter().all(|address| address.parameter("jobid") == Some("42")));
    let by_name: BTreeMap<_, _> =
        addresses.iter().zip(&found[1..]).map(|(address, record)| (address.name, record)).collect();
    for (name, content_type, text) in [
        ("aliases", "text/plain", "b.dk is an alias for a.dk\n"),
        ("duplicatereductionjobs", "text/plain", "7,9"),
        ("harvestInfo.xml", "text/xml", "<jobId>42</jobId>"),
        ("harvest-info.json", "application/json", "\"metadata_number\": 1"),
        ("seeds.txt", "text/plain", "http://"),
        ("traps.txt", "text/plain", ".*/trap/.*"),
        ("crawl-report.txt", "text/plain", "crawl status: Finished"),
        ("hosts-report.txt", "text/plain", "[#urls]"),
        ("archivefiles-report.txt", "text/plain", "[ARCHIVEFILE] [Closed] [Size]\n"),
        ("progress-statistics.log", "text/plain", ""),
        ("crawl.log", "text/plain", " text/html "),
    ] {
        let record = by_name.get(name).unwrap_or_else(|| panic!("no {name}"));
        assert_eq!(record.content_type, content_type, "{name}");
        assert!(String::from_utf8_lossy(&record.block).contains(text), "{name}");
    }
    assert_eq!(by_name["template.toml"].block, std::fs::read(folder.template()).unwrap());
    let everything: Vec<u8> = found.iter().flat_map(|record| record.block.clone()).collect();
    assert!(memchr::memmem::find(&everything, b"sesame").is_none(), "a password is in the papers");

    // Each log is one, in the order of its chunks.
    let mut parts: Vec<_> =
        std::fs::read_dir(folder.logs()).unwrap().map(|entry| entry.unwrap().path()).collect();
    parts.retain(|path| path.file_name().unwrap().to_string_lossy().starts_with("crawl.log"));
    parts.sort_by_key(|path| (path.extension().is_some_and(|suffix| suffix == "log"), path.clone()));
    let whole: Vec<u8> = parts.iter().flat_map(|path| std::fs::read(path).unwrap()).collect();
    assert!(parts.len() > 1 && by_name["crawl.log"].block == whole);

    // Each index line leads to its response.
    let index: Vec<_> =
        addresses.iter().zip(&found[1..]).filter(|(address, _)| address.class == Class::Index).collect();
    assert_eq!(index.len(), warcs.len());
    let mut responses = 0;
    for ((address, record), warc) in index.iter().zip(&warcs) {
        let name = warc.file_name().unwrap().to_str().unwrap();
        assert_eq!(
            (address.parameter("filename"), record.content_type.as_str()),
            (Some(name), "application/x-cdx")
        );
        let at = if warc == &warcs[0] { &kept } else { warc };
        for line in String::from_utf8(record.block.clone()).unwrap().lines() {
            let columns: Vec<_> = line.split(' ').collect();
            let [url, _ip, date, mime, length, file, offset, md5] = columns[..] else { panic!("{line}") };
            assert_eq!(file, name);
            let mut reader = Reader::open_at(at, offset.parse().unwrap()).unwrap();
            let mut response = reader.next().unwrap().unwrap();
            assert_eq!(response.target_uri(), Some(url.as_bytes()));
            assert_eq!(response.content_length(), length.parse().ok());
            assert_eq!(response.date().unwrap().digits14(), *date.as_bytes());
            let mut body = Vec::new();
            std::io::Read::read_to_end(&mut response.body().unwrap(), &mut body).unwrap();
            assert_eq!(HEXLOWER.encode(&Md5::digest(&body)), md5, "{line}");
            assert!(!mime.contains(';'));
            responses += 1;
        }
    }
    let mut seen = Vec::new();
    let tally = lines_of_file(&path, &[Part::CrawlLog, Part::Cdx], &mut |part, line| {
        seen.push((part, line.to_vec()));
        true
    })
    .unwrap();
    assert_eq!((tally.records, tally.cdx_lines), (found.len() as u64, responses));
    assert_eq!(tally.crawl_log_lines as usize, memchr::memchr_iter(b'\n', &whole).count());
    assert_eq!(seen.len() as u64, tally.crawl_log_lines + tally.cdx_lines);

    // Made again, it is the same; a file that is there is left alone.
    let first = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(write(&folder, &papers).unwrap(), path);
    assert_eq!(std::fs::read(&path).unwrap(), first);
    std::fs::write(&path, "stored").unwrap();
    write(&folder, &papers).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"stored");
    std::fs::write(&path, first).unwrap();
    judged(&path, found.len());
}

/// Counts records with the URL they are asked for by; a digest that is not right ends it.
const COUNT: &str = "
import sys
from warcio.archiveiterator import ArchiveIterator
count = 0
for record in ArchiveIterator(open(sys.argv[1], 'rb'), check_digests='raise'):
    record.content_stream().read()
    uri = record.rec_headers.get_header('WARC-Target-URI')
    assert record.rec_type == 'warcinfo' or uri.startswith('metadata://example.org/crawl/'), uri
    count += 1
print(count)
";

/// `GRANGE_TEST_PYTHON` names a Python that has warcio installed.
fn judged(path: &Path, records: usize) {
    let Some(python) = std::env::var_os("GRANGE_TEST_PYTHON") else {
        return grange_testkit::skipped("the Python of the judges (GRANGE_TEST_PYTHON)");
    };
    let output = Command::new(&python).args(["-c", COUNT]).arg(path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), records.to_string());
    let check = Command::new(&python).args(["-m", "warcio.cli", "check", "-v"]).arg(path).output().unwrap();
    let text = String::from_utf8_lossy(&check.stdout).into_owned();
    assert!(check.status.success() && !text.contains("failed"), "warcio check: {text}");
}

#[test]
fn a_metadata_file_is_known_by_its_name() {
    for (name, job) in [
        ("42-metadata-1.warc.gz", Some(42)),
        ("42-metadata-1.warc", Some(42)),
        ("42-metadata-12.arc", Some(42)),
        ("42-3-metadata-1.warc", Some(42)),
        ("collection-42-3-metadata-1.warc.gz", Some(42)),
        ("42-3-20260101-00001-host.warc.gz", None),
        ("42-metadata-x.warc.gz", None),
        ("42-metadata-1.cdx", None),
    ] {
        assert_eq!(job_of(name).map(|job| job.0), job, "{name}");
    }
}
