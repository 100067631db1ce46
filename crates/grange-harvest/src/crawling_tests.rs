use async_trait::async_trait;
use grange_base::{Period, Size, Trigger};
use grange_crawl::engine::Crawl;
use grange_crawl::politeness::Pace;
use grange_crawl::record::NoOracle;
use grange_crawl::template::NetworkSettings;
use grange_model::harvest::StopReason;
use grange_testkit::until;
use jiff::Timestamp;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::*;
use crate::crawl_job::Defaults;
use crate::engine::{ClosedFile, End, OracleHandle, Order};
use crate::folder::JobFolder;
use crate::native::Native;
use crate::test_bed;

/// An engine that does nothing but live, or not even that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Idler {
    /// Tells every second that it lives, and stops when told.
    Idle,
    /// The same, and finishes a document every second until it has ten.
    Busy,
    /// Says nothing and hears nothing.
    Dead,
}

#[derive(Debug)]
struct Fake(Idler, Clock);

#[async_trait]
impl Engine for Fake {
    fn name(&self) -> &'static str {
        "fake"
    }

    fn understands(&self, _: &str) -> bool {
        true
    }

    fn prepare(&self, _: &JobFolder, _: &Order) -> Result<(), EngineError> {
        Ok(())
    }

    async fn run(&self, mut run: Run) -> Result<Outcome, EngineError> {
        let ended = |end| Outcome {
            end,
            ended_at: self.1.now(),
            domains: Vec::new(),
            objects: 0,
            bytes: 0,
            login_troubles: Vec::new(),
        };
        for second in 0_u64.. {
            if self.0 == Idler::Dead {
                std::future::pending::<()>().await;
            }
            let finished = if self.0 == Idler::Busy { second } else { 0 };
            run.progress.send_replace(Some(sign(self.1.now(), finished)));
            if finished == 10 {
                return Ok(ended(End::Finished));
            }
            tokio::select! {
                () = self.1.sleep(Duration::from_secs(1)) => {}
                _ = run.wish.changed() => return Ok(ended(End::Stopped)),
            }
        }
        Ok(ended(End::Finished))
    }

    fn closed_files(&self, _: &JobFolder) -> std::io::Result<Vec<ClosedFile>> {
        Ok(Vec::new())
    }
}

fn sign(at: Timestamp, finished: u64) -> Sign {
    let progress = test_bed::progress(at);
    Sign { progress, finished, excused: false, orders: None }
}

/// Watches over a fake crawl while time passes; `heard` is told after three seconds. Gives a word for what became of it,
/// and after how many seconds.
async fn watched(idler: Idler, heard: Option<Heard>, shutdown_at: Option<u64>) -> (String, u64) {
    let (clock, hand) = Clock::test(Timestamp::UNIX_EPOCH);
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("1_x")).unwrap();
    let (trigger, engine) = (Trigger::new(), Fake(idler, clock.clone()));
    let shutdown = trigger.listener();
    let (progress, signs) = watch::channel(None);
    let (wish, wanted) = watch::channel(Wish::Run);
    let (tell, listen) = watch::channel(Heard::default());
    let (chunks, _closed) = mpsc::unbounded_channel();
    let run = Run {
        folder: JobFolder::at(folder.path().join("1_x")),
        oracle: OracleHandle(std::sync::Arc::new(NoOracle)),
        progress,
        chunks,
        wish: wanted,
        stop_within: Duration::from_secs(5),
    };
    let watch = Watch {
        clock: &clock,
        shutdown: &shutdown,
        patience: Patience { inactivity: Duration::from_secs(20), no_response: Duration::from_secs(40) },
        stop_within: Duration::from_secs(5),
        heard: Some(listen),
    };
    let mut over = std::pin::pin!(watch.over(&engine, run, wish, signs));
    for second in 0..200 {
        // Whoever waits for this second is woken, and everybody does what there is to do.
        for _ in 0..20 {
            tokio::select! {
                biased;
                ended = &mut over => {
                    let word = match ended {
                        Watched::Ended(outcome, cause) => format!("{:?} {cause:?}", outcome.end),
                        Watched::Broke(error, _) => error.to_string(),
                        Watched::CutOff(cause) => format!("cut off {cause:?}"),
                        Watched::Suspended => "suspended".to_owned(),
                    };
                    return (word, second);
                }
                () = tokio::task::yield_now() => {}
            }
        }
        if second == 3
            && let Some(heard) = heard
        {
            tell.send_replace(heard);
        }
        if shutdown_at == Some(second) {
            trigger.pull();
        }
        hand.advance(Duration::from_secs(1));
    }
    ("never ends".to_owned(), 200)
}

#[tokio::test]
async fn a_crawl_is_stopped_for_the_right_reason() {
    let cancelled = Some(Heard { stop_wanted: true, lost: false });
    let lost = Some(Heard { stop_wanted: false, lost: true });
    for (idler, heard, shutdown, word) in [
        (Idler::Busy, None, None, "Finished None"),
        (Idler::Idle, None, None, "Stopped Some(Inactive(20s))"),
        (Idler::Idle, cancelled, None, "Stopped Some(Cancelled)"),
        (Idler::Idle, lost, None, "Stopped Some(LeaseLost)"),
        (Idler::Dead, cancelled, None, "cut off Cancelled"),
        (Idler::Idle, None, Some(4), "suspended"),
        (Idler::Dead, None, Some(4), "suspended"),
    ] {
        assert_eq!(watched(idler, heard, shutdown).await.0, word, "{idler:?} {heard:?}");
    }
}

#[tokio::test]
async fn a_crawl_that_is_silent_is_told_to_stop_and_then_cut_off() {
    let (word, second) = watched(Idler::Dead, None, None).await;
    assert_eq!(word, "cut off NoResponse(40s)");
    // It has 5 s to stop.
    assert!((45..=47).contains(&second), "{second}");
}

/// A server that answers every request with 503. Its address.
async fn overloaded() -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\n") {
                    request.push(stream.read_u8().await.ok()?);
                }
                let reply = b"HTTP/1.1 503 X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
                stream.write_all(reply).await.ok()
            });
        }
    });
    addr
}

/// A crawl of `http://a.dk/`, which is served at `addr`, on a harvester with the usual patience. Its outcome, the folder and
/// how long it took.
async fn crawl_of_one_host(
    addr: std::net::SocketAddr,
    base: &std::path::Path,
) -> (Outcome, JobFolder, Duration) {
    let (clock, hand) = Clock::test(Timestamp::from_second(1_700_000_000).unwrap());
    let folder = test_bed::folder(base, &test_bed::papers(1, &[]));
    let mut job = test_bed::crawl_job_to(addr, vec!["http://a.dk/".to_owned()]);
    job.template.robots.cache = grange_crawl::robots::Settings::default();
    job.template.frontier.pace = Pace::default();
    job.template.frontier.retry_delay = Period::from_secs(60);
    drop(Crawl::start(job, &folder.crawl(), std::sync::Arc::new(NoOracle), clock.clone()).unwrap());
    let engine = Native {
        clock: clock.clone(),
        defaults: Defaults { chunk_size: Size(0), chunk_age: Period::from_secs(0) },
        network: NetworkSettings { all_hosts_to: addr.to_string(), ..NetworkSettings::default() },
    };
    let trigger = Trigger::new();
    let shutdown = trigger.listener();
    let (progress, signs) = watch::channel(None);
    let (wish, wanted) = watch::channel(Wish::Run);
    let (chunks, _closed) = mpsc::unbounded_channel();
    let oracle = OracleHandle(std::sync::Arc::new(NoOracle));
    let stop_within = Duration::from_secs(600);
    let run = Run { folder: folder.clone(), oracle, progress, chunks, wish: wanted, stop_within };
    let patience = Patience { inactivity: Duration::from_secs(1800), no_response: Duration::from_secs(600) };
    let watch = Watch {
        clock: &clock,
        shutdown: &shutdown,
        patience,
        stop_within: Duration::from_secs(600),
        heard: None,
    };
    let start = clock.now();
    let has_ended = std::cell::Cell::new(false);
    let watched = async {
        let watched = watch.over(&engine, run, wish, signs.clone()).await;
        has_ended.set(true);
        watched
    };
    let time = until("the end of the crawl", async || {
        let seen = signs.borrow().as_ref().map_or(start, |sign| sign.progress.at);
        // Not far ahead of what the crawl has seen of it.
        if clock.now() < seen + Duration::from_secs(60) {
            hand.advance(Duration::from_secs(10));
        }
        has_ended.get()
    });
    let (outcome, ()) = tokio::join!(watched, time);
    let Watched::Ended(outcome, None) = outcome else { panic!("{outcome:?}") };
    (outcome, folder, Duration::try_from(clock.now().duration_since(start)).unwrap())
}

/// The crawler asks a robots.txt for half an hour, which is also how long a crawl may stand still.
#[tokio::test(flavor = "multi_thread")]
async fn a_crawl_that_waits_for_the_robots_txt_of_its_only_host_ends_by_itself() {
    let base = tempfile::tempdir().unwrap();
    let (outcome, folder, waited) = crawl_of_one_host(overloaded().await, base.path()).await;
    assert_eq!(outcome.end, End::Finished);
    assert!(waited > Duration::from_secs(1800), "it waited as long as it must");
    let log = std::fs::read_to_string(folder.logs().join("crawl.log")).unwrap();
    assert!(log.contains("robotsUnreachable"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_domain_that_cannot_be_reached_is_unfinished_and_holds_its_job_for_minutes_only() {
    // Nobody listens there.
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let base = tempfile::tempdir().unwrap();
    let (outcome, _folder, waited) = crawl_of_one_host(closed, base.path()).await;
    assert_eq!(outcome.end, End::Unreachable);
    assert!(waited < Duration::from_secs(900), "{waited:?}");
    let [domain] = &outcome.domains[..] else { panic!("{outcome:?}") };
    assert_eq!((domain.domain.as_str(), domain.objects, domain.stop), ("a.dk", 0, StopReason::Unfinished));
    let last = Some((domain.stop, domain.objects, domain.bytes));
    let limits = grange_model::harvest::Limits::default();
    assert!(grange_model::harvest::history::still_wanted(last, limits), "the next snapshot takes it up");
    // Nothing is wrong with the job.
    let ending = crate::report::Ending {
        domains: outcome.domains.clone(),
        outcome: Some(outcome),
        cause: None,
        error: None,
    };
    let report = crate::report::report(&ending, None, None, 0, &[]);
    assert_eq!(report.harvest_errors, None);
    assert!(report.harvest_error_details.is_some_and(|text| text.ends_with("unfinished domains: a.dk")));
}
