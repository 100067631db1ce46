//! What of the files counts after a crash, and how chunks are closed while captures are under way.

use std::path::Path;

use warc::write::{NewRecord, Press};
use warc::{Date, Reader};

use super::*;
use crate::hops::Hops;
use crate::record::parcel::Scratch;
use crate::record::settings::Write;
use crate::status::FetchStatus;

/// A crawl's folder, and the recorder of one run over it.
struct Run {
    recorder: Recorder,
    scratch: Scratch,
    press: Press,
}

impl Run {
    /// Goes on where `mark` says, in files that are full after one record.
    fn start(folder: &Path, mark: Option<(String, Vec<u8>)>) -> Run {
        let settings = Write { roll_at: grange_base::Size(1), ..Write::default() };
        let place = |name: &str| {
            let path = folder.join(name);
            std::fs::create_dir_all(&path).unwrap();
            path
        };
        let state = State::from_marks(&mark.into_iter().collect::<Vec<_>>()).unwrap();
        let serial = state.as_ref().map_or(1, |state| state.serial);
        let files =
            Files::new(&place("warcs"), &settings, Vec::new(), &[("job", "1"), ("host", "here")], serial);
        let places = Places { logs: place("logs"), manifests: place("manifests"), job: "1".to_owned() };
        let desk = Desk::new(files.unwrap(), 1);
        let (recorder, _) = Recorder::open(places, desk, state, Timestamp::UNIX_EPOCH).unwrap();
        let press = Press::new(settings.packing()).unwrap();
        Run { recorder, scratch: Scratch::open(&folder.join("scratch")).unwrap(), press }
    }

    fn ready(&mut self, url: &'static str, beside: Option<&Ready>) -> Ready {
        let now = Timestamp::UNIX_EPOCH;
        let beside = beside.and_then(|ready| ready.records.as_ref()).map(|(ticket, ..)| ticket);
        let ticket = self.recorder.desk().ticket(beside, now).unwrap();
        let mut parcel = Parcel::new(&self.scratch, ticket.warcinfo);
        let mut record = NewRecord::resource(url, Date::from(now), "text/plain", b"body");
        let written = parcel.add(&mut self.press, &mut record).unwrap();
        let packed = Packed { offset: written.offset, id: written.id };
        Ready {
            records: Some((ticket, parcel, packed)),
            line: line(url),
            extracted: Some(("extractorHtml", 3)),
        }
    }

    /// Ends the crawl as the committer does.
    fn finish(&mut self) -> Manifest {
        self.recorder.begin_rotation(Timestamp::UNIX_EPOCH).unwrap();
        self.recorder.finish().unwrap()
    }

    fn take(&mut self, mut ready: Ready) -> (String, Vec<u8>) {
        self.recorder.take(&mut ready, Timestamp::UNIX_EPOCH).unwrap();
        self.recorder.flush().unwrap()
    }
}

fn line(url: &'static str) -> CrawlLine<'static> {
    CrawlLine {
        logged: Timestamp::UNIX_EPOCH,
        status: FetchStatus(200),
        size: None,
        url: Cow::Borrowed(url),
        hops: Cow::Owned(Hops::default()),
        via: None,
        mime: Cow::Borrowed("text/plain"),
        worker: 1,
        fetched: None,
        digest: None,
        source: None,
        annotations: Cow::Borrowed(""),
        extra: None,
    }
}

/// The URLs in all files of a folder, sorted.
fn written(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder.join("warcs")).unwrap() {
        let mut reader = Reader::open(entry.unwrap().path()).unwrap();
        while let Some(record) = reader.next().unwrap() {
            found.extend(record.target_uri().map(|uri| String::from_utf8_lossy(uri).into_owned()));
        }
    }
    found.sort();
    found
}

#[test]
fn what_was_not_committed_is_cut_off_also_when_it_filled_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = Run::start(folder.path(), None);
    let first = run.ready("http://e.org/1", None);
    let second = run.ready("http://e.org/2", Some(&first));
    let committed = run.take(first);
    run.recorder.close_full().unwrap();
    // Fills the file; and then the power of the process is gone, before the frontier hears of it.
    run.take(second);
    drop(run);
    let mut run = Run::start(folder.path(), Some(committed));
    assert_eq!(written(folder.path()), ["http://e.org/1"]);
    let again = run.ready("http://e.org/2", None);
    run.take(again);
    run.recorder.close_full().unwrap();
    let manifest = run.finish();
    assert_eq!(written(folder.path()), ["http://e.org/1", "http://e.org/2"]);
    assert_eq!(manifest.files.len(), std::fs::read_dir(folder.path().join("warcs")).unwrap().count());
}

#[test]
fn a_file_that_is_closed_and_not_yet_marked_so_is_told_of_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = Run::start(folder.path(), None);
    let first = run.ready("http://e.org/1", None);
    run.take(first);
    let second = run.ready("http://e.org/2", None);
    let committed = run.take(second);
    run.recorder.close_full().unwrap();
    drop(run);
    let mut run = Run::start(folder.path(), Some(committed));
    let manifest = run.finish();
    let mut names: Vec<_> = manifest.files.iter().map(|file| file.name.clone()).collect();
    names.sort();
    names.dedup();
    assert_eq!((names.len(), manifest.files.len()), (2, 2));
    assert_eq!(written(folder.path()), ["http://e.org/1", "http://e.org/2"]);
}

#[test]
fn captures_delivered_together_never_keep_a_chunk_from_closing() {
    let folder = tempfile::tempdir().unwrap();
    let now = Timestamp::UNIX_EPOCH;
    let mut run = Run::start(folder.path(), None);
    let name = run.ready("dns:e.org", None);
    run.recorder.begin_rotation(now).unwrap();
    let page = run.ready("http://e.org/", Some(&name));
    let other = run.ready("http://e.net/", None);
    assert!(!run.recorder.must_wait(&name) && !run.recorder.must_wait(&page), "one delivery, one chunk");
    assert!(run.recorder.must_wait(&other));
    assert!(run.recorder.finish_rotation(now).unwrap().is_none(), "they are under way");
    run.take(name);
    run.take(page);
    let manifest = run.recorder.finish_rotation(now).unwrap().expect("nothing is under way any more");
    assert_eq!((manifest.urls, manifest.files.len()), (2, 1));
    assert!(!run.recorder.must_wait(&other));
    run.take(other);
    assert_eq!(written(folder.path()), ["dns:e.org", "http://e.net/", "http://e.org/"]);
}

#[test]
fn the_last_chunk_has_one_manifest_however_often_its_end_is_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = Run::start(folder.path(), None);
    let first = run.ready("http://e.org/1", None);
    run.take(first);
    run.recorder.close_full().unwrap();
    let committed = run.recorder.begin_rotation(Timestamp::UNIX_EPOCH).unwrap();
    // The manifest is there, and the process is gone before the frontier hears that the crawl has ended.
    let manifest = run.recorder.finish().unwrap();
    drop(run);
    let mut run = Run::start(folder.path(), Some(committed));
    let second = run.ready("http://e.org/2", None);
    run.take(second);
    run.recorder.begin_rotation(Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_secs(5)).unwrap();
    run.recorder.finish().unwrap();
    let mut named = Vec::new();
    let mut chunks = Vec::new();
    for entry in std::fs::read_dir(folder.path().join("manifests")).unwrap() {
        let manifest = Manifest::load(&entry.unwrap().path()).unwrap();
        named.extend(manifest.files.into_iter().map(|file| file.name));
        chunks.push(manifest.chunk);
    }
    assert_eq!((chunks.len(), chunks.contains(&manifest.chunk)), (2, true), "{chunks:?}");
    named.sort();
    let before = named.len();
    named.dedup();
    assert_eq!((before, named.len()), (2, 2), "each file is named once: {named:?}");
    assert_eq!(written(folder.path()), ["http://e.org/1", "http://e.org/2"]);
}
