use std::collections::VecDeque;
use std::sync::Mutex;

use async_trait::async_trait;
use bytes::Bytes;
use grange_archive::{Error as ArchiveError, Got, Second, StoreOutcome, Unproven};
use grange_db::{FileFilter, FileStatus};
use grange_model::{Actor, UploadState};
use jiff::Timestamp;
use warc::write::{FileOptions, WarcFile};

use super::*;
use crate::test_bed;

/// What an archive answers to a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Says {
    Stored,
    /// A replica is not proven.
    Unproven,
    /// The archiver cannot be reached.
    Away,
    /// The name is taken by other bytes.
    Taken,
}

/// Answers stores one after another as it was told to.
#[derive(Debug)]
struct Scripted(Mutex<VecDeque<Says>>);

#[async_trait]
impl ArchiveClient for Scripted {
    async fn store(&self, path: &Path, store: &Store) -> Result<StoreOutcome, ArchiveError> {
        let says = self.0.lock().unwrap().pop_front().expect("nothing was to be stored any more");
        let (name, checksums) = (store.name.clone(), Checksums::default());
        let unproven = match says {
            Says::Stored => Vec::new(),
            Says::Unproven => {
                let (state, reason) = (UploadState::UploadFailed, "it is full".to_owned());
                vec![Unproven { replica: "two".to_owned(), state, reason }]
            }
            Says::Away => {
                let source = std::io::Error::other("nobody answers");
                return Err(ArchiveError::Io { doing: "send", path: path.to_owned(), source });
            }
            Says::Taken => {
                return Err(ArchiveError::OtherBytes { name, known: checksums, given: checksums });
            }
        };
        let stored = unproven.is_empty();
        Ok(StoreOutcome { name, size: 1, checksums, stored, already: false, unproven })
    }

    async fn get(&self, _: &FileName, _: &Path) -> Result<Got, ArchiveError> {
        unreachable!("nothing is read")
    }

    async fn read_at(&self, _: &FileName, _: u64, _: u64) -> Result<Bytes, ArchiveError> {
        unreachable!("nothing is read")
    }

    async fn status(&self, _: &FileName) -> Result<Option<FileStatus>, ArchiveError> {
        unreachable!("nothing is asked")
    }

    async fn list(&self, _: &FileFilter) -> Result<Vec<FileStatus>, ArchiveError> {
        unreachable!("nothing is asked")
    }

    async fn correct(
        &self,
        _: &str,
        _: &FileName,
        _: &Checksums,
        _: &Second,
        _: &Actor,
    ) -> Result<FileStatus, ArchiveError> {
        unreachable!("nothing is repaired")
    }

    async fn remove_and_get(
        &self,
        _: &str,
        _: &FileName,
        _: &Checksums,
        _: &Second,
        _: &Path,
        _: &Actor,
    ) -> Result<FileStatus, ArchiveError> {
        unreachable!("nothing is removed")
    }
}

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

#[tokio::test]
async fn a_file_is_tried_again_unless_it_is_refused_for_good_and_goes_when_it_is_proven() {
    use Says::{Away, Stored, Taken, Unproven};
    for (script, attempts, why) in [
        (&[Stored][..], 3, None),
        (&[Unproven, Away, Stored], 3, None),
        (&[Away, Unproven], 2, Some("replica two: it is full")),
        (&[Unproven, Unproven, Away], 3, Some("nobody answers")),
        // Whoever asks again hears the same again; a job does not wait for that.
        (&[Taken], 20, Some("the archive has other bytes")),
        (&[Away, Taken], 20, Some("the archive has other bytes")),
        // At least once.
        (&[Away], 0, Some("nobody answers")),
    ] {
        let base = tempfile::tempdir().unwrap();
        let papers = test_bed::papers(7, &[]);
        let folder = test_bed::folder(base.path(), &papers);
        std::fs::create_dir_all(folder.warcs()).unwrap();
        let path = folder.warcs().join("7-3-x.warc.gz");
        let date = warc::Date::from(papers.at);
        WarcFile::create(&path, &FileOptions::default(), date).unwrap().close().unwrap();
        let (clock, hand) = Clock::test(Timestamp::UNIX_EPOCH);
        let archive = Scripted(Mutex::new(script.iter().copied().collect()));
        let depositor = Depositor { archive: &archive, clock: &clock, folder: &folder, by: "h".to_owned() };
        let files = [closed(path.clone())];
        let failures = while_time_passes(&hand, depositor.all(&files, attempts)).await;
        assert_eq!(archive.0.lock().unwrap().len(), 0, "{script:?}: given up too soon");
        assert_eq!(failures.len(), usize::from(why.is_some()), "{script:?}");
        assert_eq!(path.exists(), why.is_some(), "{script:?}: gone before it was proven, or left");
        if let Some(why) = why {
            assert!(failures[0].reason.contains(why), "{}", failures[0].reason);
        }
    }
}
