//! The scheduler on a real database: a year of it, and what it does when it is late, fails or is asked beforehand.

mod skew;
mod year;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use grange_base::worker::Step;
use grange_base::{Clock, TestClock};
use grange_db::{Db, HarvestChange, JobFilter, JobReport, NewHarvest};
use grange_model::Actor;
use grange_model::harvest::{DomainName, DomainReport, HarvestKind, Limits, Name, Schedule, StopReason};
use grange_testkit::TestDatabase;
use tempfile::TempDir;

use crate::{Scheduler, Settings};

struct Bed {
    db: Db,
    clock: Clock,
    hand: TestClock,
    settings: grange_db::Settings,
    dir: TempDir,
    _server: Option<TestDatabase>,
}

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

impl Bed {
    async fn new(server: Option<TestDatabase>) -> Self {
        let url = server.as_ref().map(|server| server.url.clone());
        let settings = grange_db::Settings::default();
        let settings = grange_db::Settings { url: url.unwrap_or(settings.url.clone()), ..settings };
        // In memory where there is such a place: what is tried here is not the disk.
        let dir = TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).unwrap();
        let (clock, hand) = Clock::test("2026-01-01T00:00:00Z".parse().unwrap());
        Db::migrate(&settings, dir.path(), &clock).await.unwrap();
        let db = Db::open(&settings, dir.path(), clock.clone()).await.unwrap();
        db.templates()
            .ship(vec![("default".parse().unwrap(), "name = \"default\"\n".to_owned())])
            .await
            .unwrap();
        db.schedules().ship(Schedule::shipped().to_vec()).await.unwrap();
        Self { db, clock, hand, settings, dir, _server: server }
    }

    /// The same database, as another process opens it.
    async fn open(&self) -> Db {
        Db::open(&self.settings, self.dir.path(), self.clock.clone()).await.unwrap()
    }

    async fn selective(&self, called: &str, schedule: &str, domains: &[&str]) {
        let new = NewHarvest {
            name: name(called),
            kind: HarvestKind::Selective,
            comments: String::new(),
            audience: String::new(),
            schedule: Some(name(schedule)),
            channel: None,
            limits: Limits::NONE,
            continues: None,
            traps: Vec::new(),
            fields: BTreeMap::new(),
        };
        let (harvests, system) = (self.db.harvests(), Actor::system());
        harvests.create(new, &system).await.unwrap();
        let wanted = domains.iter().map(|text| (text.parse::<DomainName>().unwrap(), None)).collect();
        harvests.add_domains(&name(called), wanted, true, &system).await.unwrap();
        harvests.set_active(&name(called), true, None, &system).await.unwrap();
    }
}

fn snapshot(called: &str, continues: Option<&str>) -> NewHarvest {
    NewHarvest {
        name: name(called),
        kind: HarvestKind::Snapshot,
        comments: String::new(),
        audience: String::new(),
        schedule: None,
        channel: None,
        limits: Limits::NONE,
        continues: continues.map(name),
        traps: Vec::new(),
        fields: BTreeMap::new(),
    }
}

fn scheduler(db: &Db, called: &str) -> Scheduler {
    Scheduler::new(db.clone(), Settings::default(), called, None)
}

#[tokio::test]
async fn a_stand_still_is_skipped_and_told() {
    let bed = Bed::new(None).await;
    bed.selective("h", "daily", &["a.dk"]).await;
    let scheduler = scheduler(&bed.db, "s");
    assert_eq!(scheduler.plan_step(HarvestKind::Selective).await.unwrap(), Step::More);
    bed.hand.advance(Duration::from_hours(24 * 10 + 1));
    assert_eq!(scheduler.plan_step(HarvestKind::Selective).await.unwrap(), Step::More);
    assert_eq!(scheduler.plan_step(HarvestKind::Selective).await.unwrap(), Step::Idle);
    let runs = bed.db.harvests().runs(&name("h"), 10).await.unwrap();
    assert_eq!(runs.iter().map(|run| (run.number, run.skipped)).collect::<Vec<_>>(), [(2, 9), (1, 0)]);
    let jobs = bed.db.planner().jobs_of(runs[0].harvest, Some(1)).await.unwrap();
    let second = bed.db.jobs().list(&JobFilter { limit: 1, ..JobFilter::default() }).await.unwrap();
    let spec = bed.db.jobs().spec(second[0].id, Duration::ZERO).await.unwrap();
    assert_eq!(spec.duplicate_reduction_jobs, jobs, "a run continues from the one before");
}

#[tokio::test]
async fn a_plan_that_fails_takes_the_harvest_out_of_service() {
    let bed = Bed::new(None).await;
    bed.selective("h", "daily", &["a.dk"]).await;
    // A time zone that an older version knew.
    let [mut broken, ..] = Schedule::shipped();
    (broken.name, broken.time_zone) = (name("daily"), "Mars/Phobos".to_owned());
    bed.db.schedules().save(broken, None, &Actor::system()).await.unwrap();
    let scheduler = scheduler(&bed.db, "s");
    assert_eq!(scheduler.plan_step(HarvestKind::Selective).await.unwrap(), Step::More);
    assert_eq!(scheduler.plan_step(HarvestKind::Selective).await.unwrap(), Step::Idle);
    let after = bed.db.harvests().get(&name("h")).await.unwrap().unwrap();
    assert!(!after.active && after.runs == 0);
    assert!(after.deactivated_because.unwrap().contains("Mars/Phobos"));
    assert!(bed.db.jobs().list(&JobFilter { limit: 9, ..JobFilter::default() }).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_snapshot_is_split_and_previewed_alike() {
    let bed = Bed::new(None).await;
    let names: Vec<DomainName> = (0..25).map(|n| format!("d{n}.dk").parse().unwrap()).collect();
    bed.db.domains().import(names, &Actor::system()).await.unwrap();
    let none = (name("defaultseeds"), "# none");
    let d0: DomainName = "d0.dk".parse().unwrap();
    bed.db.domains().save_seeds(&d0, &none.0, none.1, &[], "", None, &Actor::system()).await.unwrap();
    let harvest = bed.db.harvests().create(snapshot("s", None), &Actor::system()).await.unwrap();
    let mut settings = Settings::default();
    settings.splitting.config_chunk_size = 10;
    let preview = crate::preview(&bed.db, &settings, &harvest).await.unwrap();
    assert_eq!((preview.domains, preview.configurations, preview.jobs), (24, 24, 3));
    assert_eq!((preview.expected_objects, preview.left_out["no-seeds"]), (24 * 5000, 1));
    assert_eq!(preview.expected_bytes, 24 * 5000 * 38_000);
    let change = HarvestChange { comments: Some("x".to_owned()), ..HarvestChange::default() };
    bed.db.harvests().change(&name("s"), change, None, &Actor::system()).await.unwrap();
    bed.db.harvests().set_active(&name("s"), true, None, &Actor::system()).await.unwrap();
    let scheduler = Scheduler::new(bed.db.clone(), settings, "s", None);
    assert_eq!(scheduler.plan_step(HarvestKind::Snapshot).await.unwrap(), Step::More);
    let jobs = bed.db.jobs().list(&JobFilter { limit: 9, ..JobFilter::default() }).await.unwrap();
    assert_eq!(jobs.iter().map(|job| job.configurations).sum::<u64>(), 24);
    assert!(jobs.iter().all(|job| job.channel.as_str() == "snapshot" && job.snapshot));
    let runs = bed.db.harvests().runs(&name("s"), 1).await.unwrap();
    assert_eq!((runs[0].jobs, runs[0].configurations, runs[0].left_out["no-seeds"]), (3, 24, 1));
    let shared = Arc::new(scheduler);
    assert_eq!(shared.supervise_step().await.unwrap(), Step::Idle);
}

/// What is harvested from the seeds of a configuration counts for its domain, wherever the seeds are. The domain of the seeds
/// has no configuration.
#[tokio::test]
async fn a_continued_snapshot_leaves_out_a_domain_that_was_finished_although_its_seeds_are_elsewhere() {
    let bed = Bed::new(None).await;
    let (domains, system) = (bed.db.domains(), Actor::system());
    let domain = |text: &str| text.parse::<DomainName>().unwrap();
    domains.import(["done.dk", "limit.dk", "silent.dk"].map(domain).to_vec(), &system).await.unwrap();
    for held in ["done.dk", "limit.dk", "silent.dk"] {
        let seed = format!("http://elsewhere.dk/{held}");
        let (list, seeds) = (name("defaultseeds"), [seed.clone()]);
        domains.save_seeds(&domain(held), &list, &seed, &seeds, "", None, &system).await.unwrap();
    }
    let (harvests, jobs, scheduler) = (bed.db.harvests(), bed.db.jobs(), scheduler(&bed.db, "s"));
    // The configurations of the job that the next run makes, and its claim.
    let next_job = async |called: &str| {
        harvests.set_active(&name(called), true, None, &system).await.unwrap();
        assert_eq!(scheduler.plan_step(HarvestKind::Snapshot).await.unwrap(), Step::More);
        let lease = Duration::from_hours(1);
        let claim = jobs.claim(&["snapshot".parse().unwrap()], "h", lease).await.unwrap().unwrap();
        jobs.start(&claim, lease).await.unwrap();
        let spec = jobs.spec(claim.job, Duration::ZERO).await.unwrap();
        let mut held: Vec<_> = spec.configurations.iter().map(|one| one.domain.to_string()).collect();
        held.sort();
        (claim, held)
    };
    harvests.create(snapshot("first", None), &system).await.unwrap();
    let (claim, held) = next_job("first").await;
    assert_eq!(held, ["done.dk", "limit.dk", "silent.dk"]);
    let report = |of: &str, stop| DomainReport { domain: domain(of), objects: 9, bytes: 500, stop };
    let reports = vec![
        report("done.dk", StopReason::Complete),
        report("limit.dk", StopReason::TimeLimit),
        report("elsewhere.dk", StopReason::Complete),
    ];
    let reported = jobs.finish(&claim, JobReport { domains: reports, ..JobReport::default() }).await.unwrap();
    assert_eq!((reported.domains_kept, reported.domains_foreign), (2, 1));
    harvests.create(snapshot("second", Some("first")), &system).await.unwrap();
    let (claim, held) = next_job("second").await;
    assert_eq!(held, ["limit.dk", "silent.dk"]);
    let runs = harvests.runs(&name("second"), 1).await.unwrap();
    assert_eq!(runs[0].left_out["completed-before"], 1);
    // The whole chain counts, not only the snapshot before.
    let reports = vec![report("limit.dk", StopReason::Complete)];
    jobs.finish(&claim, JobReport { domains: reports, ..JobReport::default() }).await.unwrap();
    harvests.create(snapshot("third", Some("second")), &system).await.unwrap();
    assert_eq!(next_job("third").await.1, ["silent.dk"]);
}
