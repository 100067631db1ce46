use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::AtomicUsize;

use async_trait::async_trait;
use grange_base::{Size, TestClock, Trigger};
use grange_db::{Candidate, JobClaim, Member, NewHarvest, NewJob, Policy, RunPlan};
use grange_model::Actor;
use grange_model::harvest::{HarvestKind, Job, JobStatus, Limits, Name, Schedule};
use grange_testkit::until;
use tempfile::TempDir;
use tokio::sync::watch;

use super::*;
use crate::engine::{ClosedFile, End, EngineError, Order, Outcome, Run, Wish};
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

    async fn run(&self, mut run: Run) -> Result<Outcome, EngineError> {
        self.runs.lock().unwrap().push(run.folder.name());
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
        Ok(Outcome { end, ended_at: self.clock.now(), domains: Vec::new(), objects: 0, bytes: 0 })
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
    hand: TestClock,
    engine: Arc<Puppet>,
    harvester: Harvester,
    _end: Trigger,
    place: TempDir,
}

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn anna() -> Actor {
    Actor::new("anna", "cli")
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
        });
        let settings = Settings {
            min_space_left: Size(0),
            folders_every: grange_base::Period::from_secs(2),
            ..Settings::default()
        };
        let parts = Parts {
            db: db.clone(),
            archive: Shelf::answering(&place.path().join("archive"), &[Says::Stored; 9]),
            clock: clock.clone(),
            settings,
            engines: vec![engine.clone()],
            announcer: None,
            folder: place.path().join("harvest"),
            dedup_cache: place.path().join("dedup"),
            vault: place.path().join("vault"),
            name: "h1".to_owned(),
            host: "host1".to_owned(),
            software: "grange/0".to_owned(),
            alias_lifetime: LONG,
            hint: Hint::new(),
        };
        let end = Trigger::new();
        let harvester = Harvester::new(parts, end.listener());
        Bed { db, leases, hand, engine, harvester, _end: end, place }
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

    /// The lease of the job ends before its harvester says another word.
    async fn take_back(&self) {
        self.leases.advance(self.harvester.parts().settings.lease.0 + Duration::from_secs(1));
        let policy = Policy { takeovers_max: 9, job_timeout: Duration::from_hours(1000) };
        assert_eq!(self.db.jobs().supervise(policy).await.unwrap().taken_back.len(), 1);
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

    /// Another harvester has the job meanwhile, and is dead.
    async fn claimed_elsewhere(&self) -> JobClaim {
        let channels = &self.harvester.parts().settings.channels;
        self.db.jobs().claim(channels, "h2", LONG).await.unwrap().unwrap()
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
    assert_eq!((bed.harvester.running(), bed.harvester.crawling()), (0, 0));
}
