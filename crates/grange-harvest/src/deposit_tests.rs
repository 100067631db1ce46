use jiff::Timestamp;
use warc::write::{FileOptions, WarcFile};

use super::*;
use crate::test_bed;
use crate::test_shelf::{Says, Shelf};

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
        let archive = Shelf::answering(base.path(), script);
        let depositor = Depositor {
            archive: &*archive,
            clock: &clock,
            folder: &folder,
            by: "h".to_owned(),
            waiting: None,
        };
        let files = [closed(path.clone())];
        let failures = while_time_passes(&hand, depositor.all(&files, attempts)).await;
        assert_eq!(archive.answers.lock().unwrap().len(), 0, "{script:?}: given up too soon");
        assert_eq!(failures.len(), usize::from(why.is_some()), "{script:?}");
        assert_eq!(path.exists(), why.is_some(), "{script:?}: gone before it was proven, or left");
        if let Some(why) = why {
            assert!(failures[0].reason.contains(why), "{}", failures[0].reason);
        }
    }
}
