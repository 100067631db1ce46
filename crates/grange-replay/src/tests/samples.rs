//! Every capture of the shared samples, read by its place in the index and compared with reading its file from the start.

use std::collections::HashMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use grange_index::query::{Keys, Next, Query};

use super::Bed;
use crate::capture::{BodyError, NoPayload, Undo, load};
use crate::local;

/// The shared samples of these kinds; `None`, loudly, where they are not at hand.
pub(crate) fn samples(ends: &[&str]) -> Option<Vec<PathBuf>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/warc-samples");
    if !folder.join("README.tsv").exists() {
        grange_testkit::note_skipped("the corpus ../shared/warc-samples");
        return None;
    }
    let mut files = Vec::new();
    walk(&folder, ends, &mut files);
    files.sort();
    Some(files)
}

fn walk(folder: &Path, ends: &[&str], files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.to_string_lossy().into_owned();
        if path.is_dir() {
            walk(&path, ends, files);
        } else if ends.iter().any(|end| name.ends_with(end)) {
            files.push(path);
        }
    }
}

/// One sample unpacks to hundreds of megabytes; longer bodies than this are opened but not compared.
const COMPARED_BYTES_MAX: u64 = 16 << 20;

/// Offset, URL and time.
type Place = (u64, Vec<u8>, Vec<u8>);

/// Payloads by place, read one record after another. Records that share all three are left out.
fn sequential(path: &Path) -> HashMap<Place, Option<Vec<u8>>> {
    let mut payloads = HashMap::new();
    let mut reader = warc::Reader::open(path).unwrap();
    while let Some(mut record) = reader.next().unwrap() {
        let uri = record.target_uri().unwrap_or_default().to_vec();
        let time = record.date().map(|date| date.digits14().to_vec()).unwrap_or_default();
        let key = (record.place().offset, uri, time);
        record.http().unwrap();
        let mut payload = Vec::new();
        record.payload().unwrap().take(COMPARED_BYTES_MAX + 1).read_to_end(&mut payload).unwrap();
        let payload = Some(payload).filter(|payload| payload.len() as u64 <= COMPARED_BYTES_MAX);
        payloads.entry(key).and_modify(|known| *known = None).or_insert(payload);
    }
    payloads
}

#[tokio::test]
async fn every_capture_of_the_samples_is_read_by_its_place() {
    let kinds = [".warc", ".warc.gz", ".arc", ".arc.gz", ".warc.zst", ".wacz"];
    let Some(files) = samples(&kinds) else { return };
    let (mut read, mut compared, mut gone, mut failed) = (0, 0, 0, Vec::new());
    for path in files {
        let bed = Bed::new();
        if local::add(&path, &bed.collection.index, &bed.files).is_err() {
            continue;
        }
        let snapshot = bed.snapshot();
        let mut captures = Vec::new();
        Query::new(Keys::Range(String::new(), None))
            .run(&snapshot, |row| {
                captures.push(row.to_capture());
                Ok(Next::More)
            })
            .unwrap();
        let expected =
            if path.to_string_lossy().ends_with(".wacz") { HashMap::new() } else { sequential(&path) };
        for capture in captures {
            let loaded = load(&snapshot, &bed.collection, &capture, |_| Undo::Transfer, |_| true).await;
            let loaded = match loaded {
                Ok(loaded) => loaded,
                Err(NoPayload::OriginalGone { .. }) => {
                    gone += 1;
                    continue;
                }
                Err(error) => {
                    failed.push(format!(
                        "{} {:?} at {:?}: {error}",
                        path.display(),
                        capture.url,
                        capture.offset
                    ));
                    continue;
                }
            };
            let own = loaded.original.is_none() && !capture.is_revisit();
            read += 1;
            let body = match loaded.body.collect(COMPARED_BYTES_MAX as usize).await {
                Ok(body) => body,
                // Files that were cut off are among the samples.
                Err(BodyError::TooLarge { .. } | BodyError::Short { .. }) => continue,
                Err(error) => panic!("{} {:?}: {error}", path.display(), capture.url),
            };
            let uri = capture.url.clone().unwrap_or_default().into_bytes();
            let key =
                (capture.offset.unwrap(), uri, format!("{:014}", capture.time.leading(14)).into_bytes());
            if own && let Some(Some(payload)) = expected.get(&key) {
                if body != payload[..] {
                    let (is, was) = (body.len(), payload.len());
                    failed.push(format!("{} {:?}: {is} bytes, not {was}", path.display(), capture.url));
                }
                compared += 1;
            }
        }
    }
    eprintln!("{read} captures read, {compared} compared, {gone} without an original");
    assert!(failed.is_empty(), "{} of {read}:\n{}", failed.len(), failed.join("\n"));
    assert!(compared > 1000, "{compared}");
}
