//! What the committer does when the disk takes nothing more.

use std::borrow::Cow;

use grange_base::Trigger;
use jiff::Timestamp;
use url::Url;
use warc::write::RecordId;

use super::*;
use crate::candidate::Candidate;
use crate::frontier::{Claim, Next, Outcome, Settings};
use crate::hops::Hops;
use crate::job::Budgets;
use crate::log::CrawlLine;
use crate::politeness::Visit;
use crate::record::capture::Packed;
use crate::record::files::{Files, Ticket};
use crate::record::parcel::{Parcel, Scratch};
use crate::record::recorder::{Desk, Places};
use crate::record::settings::Write;
use crate::status::FetchStatus;

fn claim(frontier: &Frontier, url: &str) -> Claim {
    frontier.add(&[Candidate::seed(Url::parse(url).unwrap())], Timestamp::now()).unwrap();
    match frontier.next(Timestamp::now()).unwrap() {
        Next::Uri(claim) => *claim,
        other => panic!("no URL but {other:?}"),
    }
}

fn delivery(claim: Claim, records: Option<(Arc<Ticket>, Parcel)>) -> Message {
    let line = CrawlLine {
        logged: Timestamp::now(),
        status: FetchStatus(200),
        size: None,
        url: Cow::Owned(claim.candidate.url.to_string()),
        hops: Cow::Owned(Hops::default()),
        via: None,
        mime: Cow::Borrowed("text/plain"),
        worker: 1,
        fetched: None,
        digest: None,
        source: None,
        annotations: Cow::Borrowed(""),
        extra: None,
    };
    let packed = Packed { offset: 0, id: RecordId::random() };
    let records = records.map(|(ticket, parcel)| (ticket, parcel, packed));
    let outcome = Outcome::Done(Visit::new(FetchStatus(200), 10, Duration::ZERO));
    Message::Delivery(Box::new(Delivery {
        captures: vec![Ready { records, line, extracted: None }],
        finished: Finished { claim, outcome, discovered: Vec::new() },
        lines: Vec::new(),
        marks: Vec::new(),
        permit: None,
    }))
}

/// A committer at work in a folder.
struct Bench {
    folder: tempfile::TempDir,
    scratch: Scratch,
    desk: Desk,
    frontier: Arc<Frontier>,
    give_up: Trigger,
    outbox: mpsc::Sender<Message>,
    running: std::thread::JoinHandle<Result<Option<Manifest>, CommitError>>,
    now: Timestamp,
}

impl Bench {
    fn start() -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(&path).unwrap();
            path
        };
        let now = Timestamp::now();
        let scratch = Scratch::open(&place("scratch")).unwrap();
        let names = [("job", "1"), ("host", "here")];
        let files = Files::new(&place("warcs"), &Write::default(), Vec::new(), &names, 1).unwrap();
        let desk = Desk::new(files, 1);
        let places = Places { logs: place("logs"), manifests: place("manifests"), job: "1".to_owned() };
        let (recorder, _) = Recorder::open(places, desk.clone(), None, now).unwrap();
        let (frontier, _) =
            Frontier::open(&place("frontier"), Settings::default(), Budgets::default(), now).unwrap();
        let frontier = Arc::new(frontier);
        let give_up = Trigger::new();
        let (outbox, inbox) = mpsc::channel(16);
        let committer = Committer {
            recorder,
            frontier: Arc::clone(&frontier),
            ledger: Ledger { statistics: Arc::default(), holds: Arc::default(), give_up: give_up.listener() },
            clock: Clock::system(),
            rhythm: Rhythm { chunk_size: 0, chunk_age: Duration::ZERO, sync_every: Duration::from_secs(60) },
            inbox,
            note: folder.path().join("unsynced.json"),
            disk: folder.path().to_owned(),
            held: Vec::new(),
            waiting_for_chunk: Vec::new(),
            left_out: 0,
        };
        let running = std::thread::spawn(move || committer.run());
        Bench { folder, scratch, desk, frontier, give_up, outbox, running, now }
    }

    fn deliver(&self, url: &str, records: Option<(Arc<Ticket>, Parcel)>) {
        self.outbox.blocking_send(delivery(claim(&self.frontier, url), records)).unwrap();
    }

    /// Has a chunk closed while `first` is a ticket of it. Returns once tickets name the next one.
    fn begin_rotation(&self, first: &Ticket) -> oneshot::Receiver<Option<Manifest>> {
        let (answer, manifest) = oneshot::channel();
        self.outbox.blocking_send(Message::Rotate(answer)).unwrap();
        while self.desk.ticket(None, self.now).unwrap().chunk == first.chunk {
            std::thread::yield_now();
        }
        manifest
    }
}

#[test]
fn a_chunk_whose_captures_could_not_be_written_is_never_closed() {
    let bench = Bench::start();
    bench.deliver("http://a.test/", None);
    // Somebody still works for the first chunk when it is to be closed, so what comes for the second is held.
    let first = bench.desk.ticket(None, bench.now).unwrap();
    let _manifest = bench.begin_rotation(&first);
    let second = bench.desk.ticket(None, bench.now).unwrap();
    let broken = Parcel::broken(&bench.scratch);
    bench.deliver("http://b.test/", Some((second, broken)));
    bench.give_up.pull();
    drop(first);
    bench.outbox.blocking_send(Message::Finish).unwrap();
    let manifest = bench.running.join().unwrap().unwrap();
    assert_eq!(manifest, None, "the frontier never heard of a capture");
    assert_eq!(bench.frontier.counts(bench.now).finished, 1);
    let closed = std::fs::read_dir(bench.folder.path().join("manifests")).unwrap().count();
    assert_eq!(closed, 1, "the first chunk alone");
}

#[test]
fn of_captures_that_wait_for_the_end_of_a_chunk_the_permits_come_back_with_their_commit() {
    let bench = Bench::start();
    let permits = Arc::new(tokio::sync::Semaphore::new(super::super::OUTBOX));
    bench.deliver("http://before.test/", None);
    let first = bench.desk.ticket(None, bench.now).unwrap();
    let manifest = bench.begin_rotation(&first);
    let mut sent = 0;
    // As workers do, who wait where there is none.
    while let Ok(permit) = Arc::clone(&permits).try_acquire_owned()
        && sent <= super::super::OUTBOX
    {
        let ticket = bench.desk.ticket(None, bench.now).unwrap();
        let records = Some((ticket, Parcel::new(&bench.scratch, None)));
        let mut message = delivery(claim(&bench.frontier, &format!("http://h{sent}.test/")), records);
        if let Message::Delivery(delivery) = &mut message {
            delivery.permit = Some(permit);
        }
        bench.outbox.blocking_send(message).unwrap();
        sent += 1;
    }
    // It is committed after all that was sent before it was looked at.
    bench.deliver("http://behind.test/", None);
    grange_testkit::wait_for("the one without records", || {
        (bench.frontier.counts(bench.now).finished >= 2).then_some(())
    });
    assert_eq!((sent, permits.available_permits()), (256, 0), "so many are held, and nobody packs more");
    assert_eq!(bench.frontier.counts(bench.now).finished, 2, "none that is held");
    drop(first);
    bench.deliver("http://wakes.test/", None);
    assert!(manifest.blocking_recv().unwrap().is_some());
    grange_testkit::wait_for("all that was held", || {
        (bench.frontier.counts(bench.now).finished == 256 + 3).then_some(())
    });
    bench.outbox.blocking_send(Message::Finish).unwrap();
    assert!(bench.running.join().unwrap().unwrap().is_some());
    assert_eq!(permits.available_permits(), super::super::OUTBOX);
}
