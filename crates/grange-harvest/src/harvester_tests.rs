use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::atomic::AtomicUsize;

use async_trait::async_trait;
use grange_base::{Size, TestClock, Trigger};
use grange_db::{Candidate, Member, NewHarvest, NewJob, Policy, RunPlan};
use grange_model::Actor;
use grange_model::harvest::{HarvestKind, Job, JobStatus, Limits, Name, Schedule};
use grange_testkit::until;
use tempfile::TempDir;
use tokio::sync::watch;

use super::*;
use crate::engine::{ClosedFile, End, EngineError, Order, Outcome, Run, Sign, StoredFiles, Wish};
use crate::test_bed;
use crate::test_shelf::{Says, Shelf};

/// Longer than any lease here.
const LONG: Duration = Duration::from_hours(1);

/// An engine whose crawls end when the test lets them.
#[derive(Debug)]
struct Puppet {
    clock: Clock,
    /// The folders of all runs, in their order.
    runs: Mutex<Vec<String>>,
    prepared: AtomicUsize,
    /// Runs go on until this is set.
    may_end: watch::Sender<bool>,
    stops_heard: AtomicUsize,
    /// The folder of jobs cannot be written.
    is_unwritable: AtomicBool,
    /// The errors of the next runs.
    refusals: Mutex<VecDeque<EngineError>>,
    /// How many folders of jobs there were at each import, and which orders it was given.
    imports: Mutex<Vec<(usize, Option<String>)>>,
    /// The orders of people to the crawl.
    orders: Mutex<Option<Arc<str>>>,
}

impl Puppet {
    fn runs(&self) -> Vec<String> {
        self.runs.lock().unwrap().clone()
    }
}

#[async_trait]
impl Engine for Puppet {
    fn name(&self) -> &'static str {
        "puppet"
    }

    fn understands(&self, _: &str) -> bool {
        true
    }

    fn prepare(&self, folder: &JobFolder, _: &Order) -> Result<(), EngineError> {
        self.prepared.fetch_add(1, Ordering::Relaxed);
        if self.is_unwritable.load(Ordering::Relaxed) {
            let source = io::Error::from(io::ErrorKind::ReadOnlyFilesystem);
            return Err(EngineError::Io { doing: "prepare", path: folder.crawl(), source });
        }
        for place in [folder.warcs(), folder.logs(), folder.reports(), folder.manifests()] {
            std::fs::create_dir_all(place).unwrap();
        }
        std::fs::write(folder.logs().join("crawl.log"), b"").unwrap();
        Ok(())
    }

    async fn take_over(&self, folder: &JobFolder, stored: &mut dyn StoredFiles) -> Result<(), EngineError> {
        let folders = JobFolder::list(folder.root().parent().unwrap()).unwrap();
        self.imports.lock().unwrap().push((folders.len(), stored.orders().map(str::to_owned)));
        Ok(())
    }

    async fn run(&self, mut run: Run) -> Result<Outcome, EngineError> {
        self.runs.lock().unwrap().push(run.folder.name());
        if let Some(refusal) = self.refusals.lock().unwrap().pop_front() {
            return Err(refusal);
        }
        let (progress, orders) = (test_bed::progress(self.clock.now()), self.orders.lock().unwrap().clone());
        run.progress.send_replace(Some(Sign { progress, finished: 0, excused: true, orders }));
        let mut may_end = self.may_end.subscribe();
        let mut end = End::Finished;
        loop {
            if *may_end.borrow() {
                break;
            }
            tokio::select! {
                _ = may_end.changed() => {}
                Ok(_) = run.wish.wait_for(|wish| *wish == Wish::Stop), if end == End::Finished => {
                    end = End::Stopped;
                    self.stops_heard.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        Ok(Outcome {
            end,
            ended_at: self.clock.now(),
            domains: Vec::new(),
            objects: 0,
            bytes: 0,
            login_troubles: Vec::new(),
        })
    }

    fn closed_files(&self, _: &JobFolder) -> io::Result<Vec<ClosedFile>> {
        Ok(Vec::new())
    }
}

/// A harvester with a database of its own. The clock of the database is apart: leases end there while the harvester is
/// frozen.
struct Bed {
    db: Db,
    leases: TestClock,
    clock: Clock,
    hand: TestClock,
    engine: Arc<Puppet>,
    harvester: Harvester,
    end: Trigger,
    place: TempDir,
}

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn anna() -> Actor {
    Actor::new("anna", "cli")
}

fn parts(place: &Path, db: &Db, clock: &Clock, engine: &Arc<Puppet>) -> Parts {
    let settings = Settings {
        min_space_left: Size(0),
        folders_every: grange_base::Period::from_secs(2),
        ..Settings::default()
    };
    Parts {
        db: db.clone(),
        archive: Shelf::answering(&place.join("archive"), &[Says::Stored; 9]),
        clock: clock.clone(),
        settings,
        engines: vec![engine.clone()],
        announcer: None,
        folder: place.join("harvest"),
        dedup_cache: place.join("dedup"),
        vault: place.join("vault"),
        name: "h1".to_owned(),
        host: "host1".to_owned(),
        software: "grange/0".to_owned(),
        alias_lifetime: LONG,
        hint: Hint::new(),
    }
}

impl Bed {
    async fn new() -> Bed {
        let place = TempDir::new().unwrap();
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let (lease_clock, leases) = Clock::test(start);
        let (clock, hand) = Clock::test(start);
        let db = Db::open(&grange_db::Settings::default(), place.path(), lease_clock).await.unwrap();
        std::fs::create_dir(place.path().join("archive")).unwrap();
        let engine = Arc::new(Puppet {
            clock: clock.clone(),
            runs: Mutex::default(),
            prepared: AtomicUsize::new(0),
            may_end: watch::Sender::new(false),
            stops_heard: AtomicUsize::new(0),
            is_unwritable: AtomicBool::new(false),
            refusals: Mutex::default(),
            imports: Mutex::default(),
            orders: Mutex::default(),
        });
        let end = Trigger::new();
        let harvester = Harvester::new(parts(place.path(), &db, &clock, &engine), end.listener());
        Bed { db, leases, clock, hand, engine, harvester, end, place }
    }

    /// Ends the harvester in the middle of its work, and starts it again.
    async fn restart(&mut self) {
        self.end.pull();
        self.harvester.leave().await;
        self.end = Trigger::new();
        let parts = parts(self.place.path(), &self.db, &self.clock, &self.engine);
        self.harvester = Harvester::new(parts, self.end.listener());
    }

    /// Plans one job.
    async fn plan(&self) {
        self.db.templates().ship(vec![(name("default"), "name = \"default\"\n".to_owned())]).await.unwrap();
        self.db.schedules().ship(Schedule::shipped().to_vec()).await.unwrap();
        self.db.domains().import(vec!["a.dk".parse().unwrap()], &anna()).await.unwrap();
        let new = NewHarvest {
            name: name("news"),
            kind: HarvestKind::Selective,
            comments: String::new(),
            audience: String::new(),
            schedule: Some(name("daily")),
            channel: None,
            limits: Limits::NONE,
            continues: None,
            traps: Vec::new(),
            fields: BTreeMap::new(),
        };
        let harvests = self.db.harvests();
        harvests.create(new, &anna()).await.unwrap();
        let domains = vec![("a.dk".parse().unwrap(), None)];
        harvests.add_domains(&name("news"), domains, true, &anna()).await.unwrap();
        harvests.set_active(&name("news"), true, None, &anna()).await.unwrap();
        let planner = self.db.planner();
        let due = planner.claim(HarvestKind::Selective, "planner", LONG, None).await.unwrap().unwrap();
        let all = planner.candidates(&due.harvest, &[], LONG, 0, 10).await.unwrap();
        let job = NewJob {
            template: all[0].template,
            limits: due.harvest.limits,
            expected_objects: 1,
            configurations: 1,
        };
        let job = planner.draft(&due, vec![job]).await.unwrap()[0];
        let member = |one: &Candidate| Member { configuration: one.configuration, job, expected_objects: 1 };
        planner.fill(&due, all.iter().map(member).collect()).await.unwrap();
        assert_eq!(planner.commit(&due, RunPlan::default()).await.unwrap(), 1);
    }

    async fn job(&self) -> Job {
        self.db.jobs().get(JobId(1)).await.unwrap().unwrap()
    }

    /// The lease of the job ends before its harvester renews it. A renewal that was under way makes it last longer once.
    async fn take_back(&self) {
        let policy = Policy { takeovers_max: 9, job_timeout: Duration::from_hours(1000) };
        until("the job to be taken back", async || {
            self.leases.advance(self.harvester.parts().settings.lease.0 + Duration::from_secs(1));
            self.db.jobs().supervise(policy).await.unwrap().taken_back.len() == 1
        })
        .await;
    }

    /// Rounds of the harvester, a second each, until something has happened.
    async fn step_until(&self, what: &str, mut condition: impl AsyncFnMut() -> bool) {
        until(what, async || {
            self.harvester.step().await.unwrap();
            self.hand.advance(Duration::from_secs(1));
            condition().await
        })
        .await;
    }

    fn folders(&self) -> Vec<JobFolder> {
        JobFolder::list(&self.place.path().join("harvest")).unwrap()
    }

    /// Another harvester has the job for a while, and dies.
    async fn crawl_elsewhere(&self) {
        let channels = &self.harvester.parts().settings.channels;
        let jobs = self.db.jobs();
        let claim = jobs.claim(channels, "h2", Duration::from_secs(1)).await.unwrap().unwrap();
        jobs.start(&claim, Duration::from_secs(1)).await.unwrap();
        self.take_back().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_harvester_that_claims_its_own_lost_job_goes_on_in_the_same_folder_after_the_crawl_has_stopped() {
    let bed = Bed::new().await;
    bed.plan().await;
    bed.step_until("the crawl", async || bed.engine.runs().len() == 1).await;
    bed.take_back().await;
    bed.step_until("the second claim", async || bed.job().await.attempts == 2).await;
    // The crawl stops slowly; folders are looked at every two seconds meanwhile.
    bed.step_until("the order to stop", async || bed.engine.stops_heard.load(Ordering::Relaxed) == 1).await;
    for _ in 0..20 {
        bed.harvester.step().await.unwrap();
        bed.hand.advance(Duration::from_secs(1));
    }
    assert_eq!((bed.engine.runs().len(), bed.folders().len()), (1, 1), "one crawl of the job at a time");
    assert_eq!(bed.harvester.running(), 2, "the old crawl and the claim that waits for it");
    bed.engine.may_end.send_replace(true);
    bed.step_until("the end of the job", async || bed.job().await.status == JobStatus::Done).await;
    bed.step_until("the folder to go", async || bed.folders().is_empty()).await;
    let runs = bed.engine.runs();
    assert_eq!((runs.len(), &runs[0]), (2, &runs[1]), "the second goes on where the first ended");
    assert_eq!(bed.engine.prepared.load(Ordering::Relaxed), 1);
    // The folder goes before the attempt has ended.
    until("both attempts to end", async || (bed.harvester.running(), bed.harvester.crawling()) == (0, 0))
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crawl_that_cannot_begin_yet_keeps_its_job_until_it_can() {
    let bed = Bed::new().await;
    bed.plan().await;
    let reason = || Box::new(io::Error::from(io::ErrorKind::StorageFull));
    let refusals = [
        EngineError::NoSpace(reason()),
        EngineError::InUse(reason()),
        EngineError::NoSpace(reason()),
        EngineError::InUse(reason()),
    ];
    bed.engine.refusals.lock().unwrap().extend(refusals);
    bed.engine.may_end.send_replace(true);
    bed.step_until("the end of the job", async || bed.job().await.ended_at.is_some()).await;
    let job = bed.job().await;
    assert_eq!((job.status, job.attempts), (JobStatus::Done, 1), "{job:?}");
    assert_eq!(bed.engine.runs().len(), 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_of_a_crawl_that_broke_off_are_closed_when_nothing_writes_them_and_the_disk_has_space() {
    let bed = Bed::new().await;
    bed.plan().await;
    let reason = || Box::new(io::Error::other("no such scope"));
    let mut refusals = VecDeque::from([EngineError::Crawl(reason())]);
    refusals.extend((0..3).map(|_| EngineError::InUse(reason())));
    refusals.extend((0..2).map(|_| EngineError::NoSpace(reason())));
    *bed.engine.refusals.lock().unwrap() = refusals;
    bed.engine.may_end.send_replace(true);
    bed.step_until("the end of the job", async || bed.job().await.ended_at.is_some()).await;
    assert_eq!(bed.job().await.harvest_errors.as_deref(), Some("the crawl broke off"));
    assert_eq!(bed.engine.runs().len(), 7, "refused, asked five times to close, and closed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_ends_its_process_again_and_again_is_ended() {
    for (kills, expected) in [(4, JobStatus::Done), (5, JobStatus::Failed)] {
        let mut bed = Bed::new().await;
        bed.plan().await;
        bed.step_until("the crawl", async || bed.engine.runs().len() == 1).await;
        // A stop in order counts for nothing, however often.
        for _ in 0..6 {
            bed.restart().await;
            let runs = bed.engine.runs().len();
            bed.step_until("the crawl to go on", async || bed.engine.runs().len() > runs).await;
        }
        bed.restart().await;
        let (folder, now) = (&bed.folders()[0], bed.clock.now());
        // Longer ago than an hour: the machine was switched off now and then.
        let long_ago = now - jiff::SignedDuration::from_hours(2);
        for _ in 0..9 {
            folder.note_crawl_start(long_ago, long_ago).unwrap();
        }
        for _ in 0..kills {
            folder.note_crawl_start(now, long_ago).unwrap();
        }
        bed.engine.may_end.send_replace(true);
        bed.step_until("the end of the job", async || bed.job().await.ended_at.is_some()).await;
        let job = bed.job().await;
        assert_eq!(job.status, expected, "{kills} kills: {job:?}");
        if expected == JobStatus::Failed {
            let reason = job.harvest_error_details.unwrap();
            assert!(reason.contains("the node ended 5 times within an hour"), "{reason}");
        }
        bed.step_until("the folder to go", async || bed.folders().is_empty()).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_that_cannot_be_written_costs_its_job_no_attempt() {
    let mut bed = Bed::new().await;
    bed.plan().await;
    bed.step_until("the crawl", async || bed.engine.runs().len() == 1).await;
    bed.restart().await;
    bed.take_back().await;
    let obstacle = bed.folders()[0].root().join("harvest-info.json.tmp");
    std::fs::create_dir(&obstacle).unwrap();
    for _ in 0..100 {
        bed.harvester.step().await.unwrap();
        bed.hand.advance(Duration::from_secs(1));
        until("the attempt to end", async || bed.harvester.running() == 0).await;
    }
    let job = bed.job().await;
    assert_eq!((job.status, job.attempts), (JobStatus::New, 1));
    std::fs::remove_dir(&obstacle).unwrap();
    bed.engine.may_end.send_replace(true);
    bed.step_until("the end of the job", async || bed.job().await.status == JobStatus::Done).await;
    let runs = bed.engine.runs();
    assert_eq!((runs.len(), &runs[0], bed.job().await.attempts), (2, &runs[1], 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_that_was_left_while_another_harvester_had_the_job_is_stored_and_imported() {
    let mut bed = Bed::new().await;
    bed.plan().await;
    *bed.engine.orders.lock().unwrap() = Some("no calendars".into());
    bed.step_until("the crawl", async || bed.engine.runs().len() == 1).await;
    bed.step_until("the orders to be kept", async || {
        bed.db.jobs().orders_of(JobId(1)).await.unwrap().is_some()
    })
    .await;
    bed.restart().await;
    bed.take_back().await;
    bed.crawl_elsewhere().await;
    bed.engine.may_end.send_replace(true);
    bed.step_until("the end of the job", async || bed.job().await.status == JobStatus::Done).await;
    let runs = bed.engine.runs();
    assert_eq!((runs.len(), &runs[0]), (3, &runs[1]), "crawled, closed by the next process");
    assert_ne!(runs[1], runs[2]);
    // Once, after the old folder was stored, with what people had ordered of the first crawl.
    assert_eq!(*bed.engine.imports.lock().unwrap(), [(1, Some("no calendars".to_owned()))]);
    assert_eq!(bed.job().await.attempts, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_that_cannot_be_prepared_here_are_given_back_and_taken_after_the_repair() {
    let bed = Bed::new().await;
    bed.plan().await;
    let rounds = async |count: u32| {
        for _ in 0..count {
            bed.harvester.step().await.unwrap();
            bed.hand.advance(Duration::from_millis(100));
            until("the attempt to end", async || bed.harvester.running() == 0).await;
        }
    };
    bed.engine.is_unwritable.store(true, Ordering::Relaxed);
    rounds(100).await;
    assert_eq!(bed.engine.prepared.load(Ordering::Relaxed), 1, "ten seconds, one attempt");
    let job = bed.job().await;
    assert_eq!((job.status, job.attempts, bed.folders().len()), (JobStatus::New, 0, 0));
    bed.engine.is_unwritable.store(false, Ordering::Relaxed);
    // The folder of jobs is a file: it can be neither listed nor written.
    let base = bed.place.path().join("harvest");
    std::fs::remove_dir(&base).unwrap();
    std::fs::write(&base, b"").unwrap();
    rounds(1000).await;
    let job = bed.job().await;
    assert_eq!(
        (job.status, job.attempts, bed.engine.prepared.load(Ordering::Relaxed)),
        (JobStatus::New, 0, 1)
    );
    let known = bed.db.channels().harvesters(LONG).await.unwrap();
    assert_eq!((known.len(), known[0].alive), (1, true), "it says what it cannot do");
    std::fs::remove_file(&base).unwrap();
    bed.engine.may_end.send_replace(true);
    bed.step_until("the end of the job", async || bed.job().await.status == JobStatus::Done).await;
    assert_eq!(bed.job().await.attempts, 1);
}
