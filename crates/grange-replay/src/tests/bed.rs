//! WARC files of a few records, indexed, in a folder that goes away with the test.

use std::io::Write;
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;
use grange_index::access::{Decision, Rule};
use grange_index::{Batch, Capture, Index, Settings, Snapshot, Stamp};

use crate::collection::Collection;
use crate::holdings::{Holdings, LocalFiles, Section};

/// A collection made of files that a test writes.
#[derive(Debug)]
pub(crate) struct Bed {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) collection: Arc<Collection>,
    pub(crate) files: Arc<LocalFiles>,
}

impl Bed {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let index = Arc::new(Index::open(folder.path().join("index"), Settings::default()).unwrap());
        let files = Arc::new(LocalFiles::default());
        let holdings: Arc<dyn Holdings> = files.clone();
        let collection = Arc::new(Collection::new("local", index, holdings));
        Self { folder, collection, files }
    }

    /// Writes a file and indexes it.
    pub(crate) fn add(&self, name: &str, bytes: &[u8]) -> &Self {
        let path = self.folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        self.register(name)
    }

    /// Indexes a file that is already there.
    pub(crate) fn register(&self, name: &str) -> &Self {
        let section = Section::whole(self.folder.path().join(name)).unwrap();
        let mut reader = warc::Reader::seekable(section.open().unwrap()).unwrap();
        let mut batch = Batch::new();
        batch.add_records(&mut reader, name, None).unwrap();
        self.collection.index.commit(batch).unwrap();
        self.files.add(name, section);
        self
    }

    /// Gzip members, one per record.
    pub(crate) fn add_gz(&self, name: &str, records: &[Vec<u8>]) -> &Self {
        let bytes: Vec<u8> = records.iter().flat_map(|record| gzip(record)).collect();
        self.add(name, &bytes)
    }

    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.collection.index.snapshot()
    }

    /// The captures of a URL, in the order of their times.
    pub(crate) fn captures(&self, url: &str) -> Vec<Capture> {
        let snapshot = self.snapshot();
        let mut rows = snapshot.captures(&grange_index::key(url), Stamp::MIN).unwrap();
        let mut captures = Vec::new();
        while let Some(view) = rows.next().unwrap() {
            captures.push(view.to_capture());
        }
        captures
    }
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A record. `date` is as WARC writes it.
pub(crate) fn record(kind: &str, url: &str, date: &str, fields: &str, block: &[u8]) -> Vec<u8> {
    let head = format!(
        "WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:uuid:{:032x}>\r\nWARC-Date: {date}\r\n\
         WARC-Target-URI: {url}\r\n{fields}Content-Length: {}\r\n\r\n",
        block.len() * 31 + url.len(),
        block.len()
    );
    [head.as_bytes(), block, b"\r\n\r\n"].concat()
}

/// A response record with a digest of its body.
pub(crate) fn http(url: &str, date: &str, head: &str, body: &[u8]) -> Vec<u8> {
    let digest = warc::Digest::of(warc::Algorithm::Sha1, body);
    let fields = format!(
        "Content-Type: application/http; msgtype=response\r\nWARC-Payload-Digest: sha1:{}\r\n",
        digest.base32()
    );
    record("response", url, date, &fields, &[head.as_bytes(), b"\r\n\r\n", body].concat())
}

/// A revisit record of that body.
pub(crate) fn revisit(url: &str, date: &str, head: &str, body: &[u8], fields: &str) -> Vec<u8> {
    let digest = warc::Digest::of(warc::Algorithm::Sha1, body);
    let fields = format!(
        "Content-Type: application/http; msgtype=response\r\nWARC-Payload-Digest: sha1:{}\r\n\
         WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest\r\n{fields}",
        digest.base32()
    );
    let head = if head.is_empty() { String::new() } else { format!("{head}\r\n\r\n") };
    record("revisit", url, date, &fields, head.as_bytes())
}

/// Captures of one URL: more than are looked at on the threads that answer requests.
pub(crate) const MANY: u32 = 3000;

/// Adds URLs with many captures. Of `many.org` the rules given back hide all but the last; `again.org` ends with a revisit
/// whose original is its first capture.
pub(crate) fn add_many(bed: &Bed) -> Vec<Rule> {
    const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/html";
    let (many, again) = ("http://many.org/", "http://again.org/");
    bed.add_gz(
        "many.warc.gz",
        &[
            http(many, "2020-01-01T00:00:00Z", HEAD, b"the last of many"),
            http(again, "2019-01-01T00:00:00Z", HEAD, b"said again"),
            revisit(again, "2020-01-01T00:00:00Z", HEAD, b"said again", ""),
        ],
    );
    let mut batch = Batch::new();
    for url in [many, again] {
        let of = bed.captures(url)[0].clone();
        for number in 1..MANY {
            let (day, hour, minute) = (1 + number / 1440, number / 60 % 24, number % 60);
            let time = Stamp::parse(format!("201902{day:02}{hour:02}{minute:02}00")).unwrap();
            let digest = Some(format!("sha1:{number:032}"));
            batch.add(&Capture { time, digest, file: "gone.warc.gz".to_owned(), ..of.clone() });
        }
    }
    bed.collection.index.commit(batch).unwrap();
    let rule = Rule::new("org,many)/", Decision::Block { message: "Blocked.".into() });
    vec![Rule { captured_to: Some("20191231235959".to_owned()), ..rule }]
}
