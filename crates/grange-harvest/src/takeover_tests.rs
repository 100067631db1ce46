use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use grange_archive::Error as ArchiveError;
use jiff::Timestamp;

use super::*;
use crate::engine::{ClosedFile, Order, Outcome, Run};
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
async fn files_of_the_job_that_every_replica_had_at_some_time_are_imported() {
    let (_place, archive, folder) = bed(&[
        "1-3-a.warc.gz",
        "1-3-b.warc.gz",
        "1-3-c.warc.gz",
        "1-3-VIRAL-a.warc.gz",
        "1-33-a.warc.gz",
        "1-metadata-1.warc.gz",
    ]);
    let shelf = Shelf::new(&archive);
    shelf.unverified.lock().unwrap().insert("1-3-b.warc.gz".to_owned());
    // A replica was added since, or its copy is damaged: another has it.
    shelf.stored_before.lock().unwrap().insert("1-3-c.warc.gz".to_owned());
    let (clock, _hand) = Clock::test(Timestamp::UNIX_EPOCH);
    let never = Shutdown::never();
    let mut files = StoredWarcs::list(&*shelf, &clock, &never, &folder, "1-3").await.unwrap();
    assert_eq!(files.unverified, 1);
    assert_eq!(files.known(), 4, "names of files that are not proven are taken too");
    let first = files.next().await.unwrap();
    assert_eq!(name_of(first.as_ref()), Some("1-3-VIRAL-a.warc.gz"));
    let first = first.unwrap();
    assert!(first.exists() && folder.cdx().join("1-3-VIRAL-a.warc.gz.cdx").exists());
    assert_eq!(name_of(files.next().await.unwrap().as_ref()), Some("1-3-a.warc.gz"));
    assert!(!first.exists(), "one file is here at a time");
    assert_eq!(name_of(files.next().await.unwrap().as_ref()), Some("1-3-c.warc.gz"));
    assert_eq!(files.next().await.unwrap(), None);
    assert_eq!(std::fs::read_dir(folder.stored()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_file_that_no_replica_gives_is_passed_over_after_some_attempts() {
    let (_place, archive, folder) = bed(&["1-3-a.warc.gz", "1-3-b.warc.gz"]);
    let shelf = Shelf::new(&archive);
    let (clock, hand) = Clock::test(Timestamp::UNIX_EPOCH);
    let never = Shutdown::never();
    let mut files = StoredWarcs::list(&*shelf, &clock, &never, &folder, "1-3").await.unwrap();
    std::fs::remove_file(archive.join("1-3-a.warc.gz")).unwrap();
    let next = while_time_passes(&hand, files.next()).await.unwrap();
    assert_eq!(name_of(next.as_ref()), Some("1-3-b.warc.gz"));
    let fetched = shelf.fetched.load(Ordering::Relaxed);
    assert_eq!(fetched, ATTEMPTS as usize + 1);
    assert_eq!(files.next().await.unwrap(), None);
}

#[tokio::test]
async fn what_is_away_is_waited_for_and_no_file_is_passed_over() {
    let names = ["1-3-a.warc.gz", "1-3-b.warc.gz"];
    let (_place, archive, folder) = bed(&names);
    let shelf = Shelf::new(&archive);
    let (clock, hand) = Clock::test(Timestamp::UNIX_EPOCH);
    let never = Shutdown::never();
    let name = || names[0].parse::<FileName>().unwrap();
    let refusals: Vec<fn(FileName) -> ArchiveError> = vec![
        |_| ArchiveError::Away { replica: "one".to_owned(), reason: "it does not answer".to_owned() },
        |_| {
            let source = io::Error::from(io::ErrorKind::StorageFull);
            ArchiveError::Io { doing: "write", path: PathBuf::from("stored"), source }
        },
        |name| ArchiveError::NoCopy { name, reason: "one: it does not answer".to_owned(), away: true },
    ];
    for refusal in refusals {
        let mut files = StoredWarcs::list(&*shelf, &clock, &never, &folder, "1-3").await.unwrap();
        shelf.refusals.lock().unwrap().extend((0..10 * ATTEMPTS).map(|_| refusal(name())));
        for expected in names {
            let next = while_time_passes(&hand, files.next()).await.unwrap();
            assert_eq!(name_of(next.as_ref()), Some(expected));
        }
        assert_eq!(files.next().await.unwrap(), None);
    }
}

#[tokio::test]
async fn a_file_without_a_good_copy_is_passed_over_though_the_archive_was_away_meanwhile() {
    let (_place, archive, folder) = bed(&["1-3-a.warc.gz"]);
    let shelf = Shelf::new(&archive);
    let (clock, hand) = Clock::test(Timestamp::UNIX_EPOCH);
    let never = Shutdown::never();
    let mut files = StoredWarcs::list(&*shelf, &clock, &never, &folder, "1-3").await.unwrap();
    for away in [false, true, false, true, true, false] {
        let (name, reason) = ("1-3-a.warc.gz".parse().unwrap(), "one: another checksum".to_owned());
        shelf.refusals.lock().unwrap().push_back(ArchiveError::NoCopy { name, reason, away });
    }
    assert_eq!(while_time_passes(&hand, files.next()).await.unwrap(), None);
    assert!(shelf.refusals.lock().unwrap().is_empty());
}

/// Fails at so many imports, with a job that can never be imported in the end or not.
#[derive(Debug)]
struct Fails {
    times: u32,
    for_good: bool,
    asked: AtomicU32,
}

#[async_trait]
impl Engine for Fails {
    fn name(&self) -> &'static str {
        "fails"
    }

    fn understands(&self, _: &str) -> bool {
        true
    }

    fn prepare(&self, _: &JobFolder, _: &Order) -> Result<(), EngineError> {
        Ok(())
    }

    async fn take_over(&self, _: &JobFolder, _: &mut dyn StoredFiles) -> Result<(), EngineError> {
        if self.asked.fetch_add(1, Ordering::Relaxed) < self.times {
            return Err(EngineError::TakeOver("the disk is away".into()));
        }
        if self.for_good { Err(EngineError::Job("no such scope".to_owned())) } else { Ok(()) }
    }

    async fn run(&self, _: Run) -> Result<Outcome, EngineError> {
        unreachable!("nothing is crawled")
    }

    fn closed_files(&self, _: &JobFolder) -> io::Result<Vec<ClosedFile>> {
        Ok(Vec::new())
    }
}

/// An import into a new folder, told what is heard of its job; and how often the engine was asked.
async fn import(times: u32, for_good: bool, heard: Heard) -> (Result<(), GivenUp>, u32, bool) {
    let (_place, archive, folder) = bed(&[]);
    let shelf = Shelf::new(&archive);
    let (clock, hand) = Clock::test(Timestamp::UNIX_EPOCH);
    let info = HarvestInfo { earlier_attempts: true, ..folder.info().unwrap() };
    let engine = Fails { times, for_good, asked: AtomicU32::new(0) };
    let shutdown = Shutdown::never();
    let import = Import {
        archive: &*shelf,
        clock: &clock,
        shutdown: &shutdown,
        folder: &folder,
        info: &info,
        engine: &engine,
        orders: None,
    };
    let (_tell, heard) = watch::channel(heard);
    let ended = while_time_passes(&hand, import.run(heard)).await;
    (ended, engine.asked.into_inner(), folder.must_take_over(&info))
}

#[tokio::test]
async fn an_import_that_fails_is_repeated_under_the_same_claim() {
    let (ended, asked, left) = import(5, false, Heard::default()).await;
    assert!(ended.is_ok(), "{ended:?}");
    assert_eq!((asked, left), (6, false));
}

#[tokio::test]
async fn an_error_that_does_not_pass_ends_the_import_with_its_own_words() {
    let (ended, asked, left) = import(2, true, Heard::default()).await;
    assert!(
        matches!(&ended, Err(GivenUp::Broke(error)) if error.to_string() == "no such scope"),
        "{ended:?}"
    );
    assert_eq!((asked, left), (3, true));
}

#[tokio::test]
async fn an_import_ends_when_the_job_is_lost_or_cancelled() {
    for (heard, expected) in [
        (Heard { lost: true, stop_wanted: false }, Cause::LeaseLost),
        (Heard { lost: false, stop_wanted: true }, Cause::Cancelled),
    ] {
        let (ended, _, left) = import(u32::MAX, false, heard).await;
        assert!(matches!(&ended, Err(GivenUp::Told(cause)) if *cause == expected), "{ended:?}");
        assert!(left);
    }
}

/// Reads a file, and returns when the test lets it.
#[derive(Debug)]
struct Slow {
    may_end: watch::Sender<bool>,
    reading: watch::Sender<bool>,
    has_ended: std::sync::Arc<std::sync::atomic::AtomicBool>,
}

#[async_trait]
impl Engine for Slow {
    fn name(&self) -> &'static str {
        "slow"
    }

    fn understands(&self, _: &str) -> bool {
        true
    }

    fn prepare(&self, _: &JobFolder, _: &Order) -> Result<(), EngineError> {
        Ok(())
    }

    async fn take_over(&self, folder: &JobFolder, stored: &mut dyn StoredFiles) -> Result<(), EngineError> {
        let failed = |source| EngineError::Io { doing: "read", path: folder.stored(), source };
        while stored.next().await.map_err(failed)?.is_some() {
            let (mut may_end, has_ended) = (self.may_end.subscribe(), self.has_ended.clone());
            self.reading.send_replace(true);
            let work = tokio::spawn(async move {
                may_end.wait_for(|may| *may).await.unwrap();
                has_ended.store(true, Ordering::Relaxed);
            });
            work.await.unwrap();
        }
        Ok(())
    }

    async fn run(&self, _: Run) -> Result<Outcome, EngineError> {
        unreachable!("nothing is crawled")
    }

    fn closed_files(&self, _: &JobFolder) -> io::Result<Vec<ClosedFile>> {
        Ok(Vec::new())
    }
}

#[tokio::test]
async fn an_import_that_is_given_up_has_ended_when_the_job_goes_on() {
    let (_place, archive, folder) = bed(&["1-3-a.warc.gz", "1-3-b.warc.gz"]);
    std::fs::create_dir_all(folder.stored()).unwrap();
    let half = folder.stored().join("1-3-a.warc.gz.1234.part");
    std::fs::write(&half, b"killed meanwhile").unwrap();
    let shelf = Shelf::new(&archive);
    let (clock, _hand) = Clock::test(Timestamp::UNIX_EPOCH);
    let info = HarvestInfo { earlier_attempts: true, ..folder.info().unwrap() };
    let (may_end, has_ended) = (watch::Sender::new(false), std::sync::Arc::default());
    let engine = Slow { may_end, reading: watch::Sender::new(false), has_ended };
    let shutdown = Shutdown::never();
    let import = Import {
        archive: &*shelf,
        clock: &clock,
        shutdown: &shutdown,
        folder: &folder,
        info: &info,
        engine: &engine,
        orders: None,
    };
    let (tell, heard) = watch::channel(Heard::default());
    let mut reading = engine.reading.subscribe();
    let stopping = async {
        reading.wait_for(|reading| *reading).await.unwrap();
        assert!(!half.exists(), "what a killed import left takes no space");
        tell.send_replace(Heard { lost: true, stop_wanted: false });
        // Everybody does what there is to do.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert!(!engine.has_ended.load(Ordering::Relaxed));
        engine.may_end.send_replace(true);
    };
    let (ended, ()) = tokio::join!(import.run(heard), stopping);
    assert!(matches!(&ended, Err(GivenUp::Told(Cause::LeaseLost))), "{ended:?}");
    assert!(engine.has_ended.load(Ordering::Relaxed), "the file that was being read is read to its end");
    assert_eq!(shelf.fetched.load(Ordering::Relaxed), 1, "no other file is fetched");
}
