//! A simulated year: harvests of every kind, two schedulers that die at any point, and each due run exactly once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use grange_base::worker::Step;
use grange_base::{Clock, TestClock};
use grange_db::{Db, HarvestChange, JobFilter, NewHarvest};
use grange_model::Actor;
use grange_model::harvest::{At, DomainName, Ends, Every, HarvestKind, Limits, Name, Schedule, Unit};
use grange_testkit::TestDatabase;
use jiff::Timestamp;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
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
        let dir = TempDir::new().unwrap();
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

    fn scheduler(&self, db: &Db, called: &str) -> Scheduler {
        Scheduler::new(db.clone(), self.clock.clone(), Settings::default(), called, None)
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

/// Every time a schedule is due in the year, by itself.
fn dates(schedule: &Schedule, made: Timestamp, end: Timestamp) -> Vec<Timestamp> {
    let mut dates = Vec::new();
    let mut at = schedule.first(made).unwrap();
    while let Some(due) = at.filter(|due| *due <= end) {
        dates.push(due);
        at = schedule.next(due, dates.len() as u64, due).unwrap().at;
    }
    dates
}

/// A year in steps shorter than any period. Two schedulers look at once; now and then one dies in the middle of a plan, or the
/// whole process is started anew.
async fn a_year(bed: Bed, harvests: usize, seed: u64, step: Duration) {
    let mut rng = StdRng::seed_from_u64(seed);
    let made = bed.clock.now();
    let end: Timestamp = "2027-01-01T00:00:00Z".parse().unwrap();
    let daily = |hour| Some(At { minute: 0, hour: Some(hour), weekday: None, day: None });
    let kinds = [
        (Every { count: 1, unit: Unit::Day }, daily(3), Ends::Forever),
        (Every { count: 1, unit: Unit::Week }, None, Ends::Forever),
        (Every { count: 1, unit: Unit::Month }, None, Ends::Forever),
        (Every { count: 2, unit: Unit::Day }, daily(2), Ends::Times(40)),
        (Every { count: 1, unit: Unit::Day }, None, Ends::Until("2026-06-30T12:00:00Z".parse().unwrap())),
    ];
    let mut schedules = Vec::new();
    for (n, (every, at, ends)) in kinds.into_iter().enumerate() {
        let schedule = Schedule {
            name: name(&format!("s{n}")),
            comments: String::new(),
            starts: None,
            ends,
            every,
            at,
            time_zone: "Europe/Copenhagen".to_owned(),
        };
        bed.db.schedules().save(schedule.clone(), None, &Actor::system()).await.unwrap();
        schedules.push(schedule);
    }
    // Few daily ones, many monthly: as in a library.
    let of = |n: usize| {
        if n.is_multiple_of(10) { [0, 3, 4][n / 10 % 3] } else { 1 + usize::from(!n.is_multiple_of(4)) }
    };
    for n in 0..harvests {
        bed.selective(&format!("h{n}"), &format!("s{}", of(n)), &["a.dk"]).await;
    }
    let mut dbs = [bed.db.clone(), Db::open(&bed.settings, bed.dir.path(), bed.clock.clone()).await.unwrap()];
    // Beyond the end, so that what is due just before it is planned, too.
    while bed.clock.now() <= end + Duration::from_hours(12) {
        if rng.random_ratio(1, 50) {
            // One dies with a harvest in its hands and a draft on the table.
            if let Some(due) = dbs[0]
                .planner()
                .claim(HarvestKind::Selective, "dead", Duration::from_millis(5), None)
                .await
                .unwrap()
            {
                let all = dbs[0].planner().candidates(&due.harvest, &[], Duration::ZERO, 0, 9).await.unwrap();
                let job = grange_db::NewJob {
                    template: all[0].template,
                    limits: Limits::NONE,
                    expected_objects: 1,
                    configurations: vec![(all[0].configuration, 1)],
                };
                dbs[0].planner().draft(&due, job).await.unwrap();
                // Its lease runs out by the server's clock on PostgreSQL, by ours on SQLite.
                bed.hand.advance(Duration::from_millis(6));
            }
        }
        if rng.random_ratio(1, 200) {
            dbs[1] = Db::open(&bed.settings, bed.dir.path(), bed.clock.clone()).await.unwrap();
        }
        let planning = dbs.iter().enumerate().map(|(n, db)| {
            let scheduler = bed.scheduler(db, &format!("scheduler {n}"));
            tokio::spawn(async move {
                while scheduler.plan_step(HarvestKind::Selective).await.unwrap() == Step::More {}
            })
        });
        for task in planning.collect::<Vec<_>>() {
            task.await.unwrap();
        }
        bed.hand.advance(step);
    }
    for n in 0..harvests {
        let expected = dates(&schedules[of(n)], made, end);
        let runs = bed.db.harvests().runs(&name(&format!("h{n}")), 1000).await.unwrap();
        let mut due: Vec<_> = runs.iter().map(|run| run.due_at).filter(|due| *due <= end).collect();
        due.reverse();
        assert_eq!(due, expected, "h{n}: {:?}", schedules[of(n)]);
        assert!(runs.iter().all(|run| run.jobs == 1 && run.skipped == 0), "h{n}");
        let numbers: Vec<_> = runs.iter().rev().map(|run| run.number).collect();
        assert_eq!(numbers, (1..=runs.len() as u64).collect::<Vec<_>>(), "h{n}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_year_each_due_run_is_planned_once_on_sqlite() {
    a_year(Bed::new(None).await, 25, 1, Duration::from_hours(4)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_year_each_due_run_is_planned_once_on_postgres() {
    if let Some(server) = TestDatabase::create().await {
        a_year(Bed::new(Some(server)).await, 11, 2, Duration::from_hours(12)).await;
    }
}

#[tokio::test]
async fn a_stand_still_is_skipped_and_told() {
    let bed = Bed::new(None).await;
    bed.selective("h", "daily", &["a.dk"]).await;
    let scheduler = bed.scheduler(&bed.db, "s");
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
    let scheduler = bed.scheduler(&bed.db, "s");
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
    let new = NewHarvest {
        name: name("s"),
        kind: HarvestKind::Snapshot,
        comments: String::new(),
        audience: String::new(),
        schedule: None,
        channel: None,
        limits: Limits::NONE,
        continues: None,
        traps: Vec::new(),
        fields: BTreeMap::new(),
    };
    let harvest = bed.db.harvests().create(new, &Actor::system()).await.unwrap();
    let mut settings = Settings::default();
    settings.splitting.config_chunk_size = 10;
    let preview = crate::preview(&bed.db, &settings, &harvest).await.unwrap();
    assert_eq!((preview.domains, preview.configurations, preview.jobs), (24, 24, 3));
    assert_eq!((preview.expected_objects, preview.left_out["no-seeds"]), (24 * 5000, 1));
    assert_eq!(preview.expected_bytes, 24 * 5000 * 38_000);
    let change = HarvestChange { comments: Some("x".to_owned()), ..HarvestChange::default() };
    bed.db.harvests().change(&name("s"), change, None, &Actor::system()).await.unwrap();
    bed.db.harvests().set_active(&name("s"), true, None, &Actor::system()).await.unwrap();
    let scheduler = Scheduler::new(bed.db.clone(), bed.clock.clone(), settings, "s", None);
    assert_eq!(scheduler.plan_step(HarvestKind::Snapshot).await.unwrap(), Step::More);
    let jobs = bed.db.jobs().list(&JobFilter { limit: 9, ..JobFilter::default() }).await.unwrap();
    assert_eq!(jobs.iter().map(|job| job.configurations).sum::<u64>(), 24);
    assert!(jobs.iter().all(|job| job.channel.as_str() == "snapshot" && job.snapshot));
    let runs = bed.db.harvests().runs(&name("s"), 1).await.unwrap();
    assert_eq!((runs[0].jobs, runs[0].configurations, runs[0].left_out["no-seeds"]), (3, 24, 1));
    let shared = Arc::new(scheduler);
    assert_eq!(shared.supervise_step().await.unwrap(), Step::Idle);
}
