use std::time::Duration;

use jiff::Timestamp;

use super::*;
use crate::test_bed;
use crate::test_shelf::Shelf;

/// Lets time pass until the work is done.
async fn while_time_passes<T>(hand: &grange_base::TestClock, work: impl Future<Output = T>) -> T {
    let mut work = std::pin::pin!(work);
    loop {
        tokio::select! {
            biased;
            done = &mut work => return done,
            () = tokio::task::yield_now() => hand.advance(Duration::from_secs(1)),
        }
    }
}

/// The archive with these files, and the folder of job 1 of harvest 3.
fn bed(names: &[&str]) -> (tempfile::TempDir, PathBuf, JobFolder) {
    let place = tempfile::tempdir().unwrap();
    let archive = place.path().join("archive");
    std::fs::create_dir(&archive).unwrap();
    for name in names {
        std::fs::write(archive.join(name), b"").unwrap();
    }
    let folder = test_bed::folder(place.path(), &test_bed::papers(1, &[]));
    (place, archive, folder)
}

fn name_of(path: Option<&PathBuf>) -> Option<&str> {
    path.and_then(|path| path.file_name()?.to_str())
}

#[tokio::test]
async fn only_whole_proven_files_of_the_job_are_imported() {
    let (_place, archive, folder) = bed(&[
        "1-3-a.warc.gz",
        "1-3-b.warc.gz",
        "1-3-VIRAL-a.warc.gz",
        "1-33-a.warc.gz",
        "1-metadata-1.warc.gz",
    ]);
    let shelf = Shelf::new(&archive);
    shelf.unverified.lock().unwrap().insert("1-3-b.warc.gz".to_owned());
    let (clock, _hand) = Clock::test(Timestamp::UNIX_EPOCH);
    let mut files = StoredWarcs::list(&*shelf, &clock, &folder, "1-3").await.unwrap();
    assert_eq!(files.known(), 3, "names of files that are not proven are taken too");
    let first = files.next().await.unwrap();
    assert_eq!(name_of(first.as_ref()), Some("1-3-VIRAL-a.warc.gz"));
    let first = first.unwrap();
    assert!(first.exists() && folder.cdx().join("1-3-VIRAL-a.warc.gz.cdx").exists());
    assert_eq!(name_of(files.next().await.unwrap().as_ref()), Some("1-3-a.warc.gz"));
    assert!(!first.exists(), "one file is here at a time");
    assert_eq!(files.next().await.unwrap(), None);
    assert_eq!(std::fs::read_dir(folder.stored()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_file_that_no_replica_gives_is_passed_over_after_some_attempts() {
    let (_place, archive, folder) = bed(&["1-3-a.warc.gz", "1-3-b.warc.gz"]);
    let shelf = Shelf::new(&archive);
    let (clock, hand) = Clock::test(Timestamp::UNIX_EPOCH);
    let mut files = StoredWarcs::list(&*shelf, &clock, &folder, "1-3").await.unwrap();
    std::fs::remove_file(archive.join("1-3-a.warc.gz")).unwrap();
    let next = while_time_passes(&hand, files.next()).await.unwrap();
    assert_eq!(name_of(next.as_ref()), Some("1-3-b.warc.gz"));
    let fetched = shelf.fetched.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(fetched, ATTEMPTS as usize + 1);
    assert_eq!(files.next().await.unwrap(), None);
}
