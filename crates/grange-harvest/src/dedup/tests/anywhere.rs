//! Payloads that were stored under another URL.

use std::path::Path;
use std::sync::Arc;

use grange_archive::ArchiveClient;
use grange_crawl::record::DedupBy;
use grange_model::harvest::JobId;
use grange_testkit::web::Rules;
use jiff::Timestamp;
use warc::write::{FileOptions, NewRecord, WarcFile};
use warc::{Algorithm, Date, Digest, Reader, RecordType};

use super::{crawled, foreign, web};
use crate::dedup::{By, oracle_for};
use crate::folder::JobFolder;
use crate::test_shelf::Shelf;

const OLD: &str = "http://old.dk/x.png";
const AT: &str = "2020-01-02T03:04:05.678Z";
const FILE: &str = "1-3-old.warc.gz";

/// Job 1, long ago: one picture under another URL, larger than what is read of its record. Gives where that lies.
fn job_one(store: &Path, payload: &Digest) -> u64 {
    let at: Timestamp = AT.parse().unwrap();
    let mut file = WarcFile::create(store.join(FILE), &FileOptions::default(), Date::from(at)).unwrap();
    let body: Vec<u8> = (0..200_000_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    let mut record = NewRecord::new(RecordType::Response, Date::from(at))
        .target_uri(OLD)
        .content_type("application/http; msgtype=response")
        .payload_digest(*payload)
        .block(&body);
    let offset = file.write(&mut record).unwrap().offset;
    file.close().unwrap();
    let log = format!(
        "2020-01-02T03:04:06.000Z   200         10 {OLD} E http://old.dk/ image/png #001 20200102030405678+5 {payload} \
         http://old.dk/ - {{\"warcFilename\":\"{FILE}\",\"warcFileOffset\":{offset}}}\n"
    );
    foreign(&store.join("1-metadata-1.warc.gz"), &log, "");
    offset
}

/// What the revisit of a URL refers to, if it is one.
fn refers(folder: &JobFolder, url: &str) -> Option<(String, String)> {
    for entry in std::fs::read_dir(folder.warcs()).unwrap() {
        let mut reader = Reader::open(entry.unwrap().path()).unwrap();
        while let Some(record) = reader.next().unwrap() {
            if record.kind() == RecordType::Revisit && record.target_uri() == Some(url.as_bytes()) {
                let field = |name| record.header().get_text(name).unwrap_or_default().into_owned();
                return Some((field("WARC-Refers-To-Target-URI"), field("WARC-Refers-To-Date")));
            }
        }
    }
    None
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payload_stored_under_another_url_is_a_revisit_of_that() {
    let base = tempfile::tempdir().unwrap();
    let store = base.path().join("store");
    std::fs::create_dir(&store).unwrap();
    let archive: Arc<dyn ArchiveClient> = Shelf::new(&store);
    let cache = base.path().join("cache");
    let expected = web(0).expected(&Rules::default());
    let (url, picture) = expected.iter().find(|(_, one)| one.mime == "image/png" && one.length > 0).unwrap();
    let payload = &Digest::parse(picture.payload_sha1.as_bytes()).unwrap();
    let offset = job_one(&store, payload);

    // Asked by URL nothing is known of it, and no index of payloads is made.
    let prepared = oracle_for(&archive, &cache, &[JobId(1)], By::Url).await.unwrap();
    assert_eq!((prepared.oracle.same_url(url, payload), prepared.oracle.same_payload(payload)), (None, None));
    assert!(!cache.join("1-payloads-cache").exists());

    for (job, before) in [(2, 1), (3, 2)] {
        let prepared = oracle_for(&archive, &cache, &[JobId(before)], By::Payload).await.unwrap();
        assert!(cache.join(format!("{before}-payloads-cache")).exists());
        let oracle = prepared.oracle.clone();
        let found = oracle.same_payload(payload).unwrap();
        assert_eq!((found.url.as_str(), found.file.as_str(), found.offset), (OLD, FILE, offset), "job {job}");
        assert_eq!(oracle.same_payload(payload), Some(found), "and again");
        assert_eq!(oracle.same_payload(&Digest::of(Algorithm::Sha1, b"other")), None);
        // What job 2 wrote as a revisit of another URL is no original of this one.
        assert_eq!(oracle.same_url(url, payload), None, "job {job}");
        let place = base.path().join(job.to_string());
        let folder = crawled(&place, &store, job, 0, prepared.oracle, DedupBy::Digest).await;
        let (of, date) = refers(&folder, url).unwrap();
        assert_eq!(
            (of.as_str(), date.parse::<Timestamp>().unwrap()),
            (OLD, AT.parse().unwrap()),
            "job {job}"
        );
    }
    // An original that cannot be read is none: the capture is stored in full.
    std::fs::remove_file(store.join(FILE)).unwrap();
    let prepared = oracle_for(&archive, &cache, &[JobId(1)], By::Payload).await.unwrap();
    assert_eq!(prepared.oracle.same_payload(payload), None);
}
