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

#[test]
fn a_chunk_whose_captures_could_not_be_written_is_never_closed() {
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

    outbox.blocking_send(delivery(claim(&frontier, "http://a.test/"), None)).unwrap();
    // Somebody still works for the first chunk when it is to be closed, so what comes for the second is held.
    let first = desk.ticket(None, now).unwrap();
    let (answer, _manifest) = oneshot::channel();
    outbox.blocking_send(Message::Rotate(answer)).unwrap();
    let second = loop {
        let ticket = desk.ticket(None, now).unwrap();
        if ticket.chunk > first.chunk {
            break ticket;
        }
        std::thread::yield_now();
    };
    let broken = Parcel::broken(&scratch);
    outbox.blocking_send(delivery(claim(&frontier, "http://b.test/"), Some((second, broken)))).unwrap();
    give_up.pull();
    drop(first);
    outbox.blocking_send(Message::Finish).unwrap();
    let manifest = running.join().unwrap().unwrap();
    assert_eq!(manifest, None, "the frontier never heard of a capture");
    assert_eq!(frontier.counts(now).finished, 1);
    let closed = std::fs::read_dir(place("manifests")).unwrap().count();
    assert_eq!(closed, 1, "the first chunk alone");
}
