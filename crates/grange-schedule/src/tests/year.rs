//! A simulated year: thousands of harvests of every kind, two schedulers that die at any point, and each due run
//! exactly once.
//!
//! The clock jumps from one due date to just behind the next, so a year costs what its runs cost.

use std::collections::BTreeSet;
use std::time::Duration;

use grange_base::worker::Step;
use grange_db::Db;
use grange_model::Actor;
use grange_model::harvest::{At, Ends, Every, HarvestKind, Limits, Schedule, Unit};
use grange_testkit::TestDatabase;
use jiff::Timestamp;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::{Bed, name};

/// Schedules of a library: few by the day, more by the week, most by the month, each at its own time.
fn schedules() -> Vec<Schedule> {
    let until: Timestamp = "2026-06-30T12:00:00Z".parse().unwrap();
    let mut kinds = Vec::new();
    let at = |n: u8, weekday, day| Some(At { minute: n * 7 % 60, hour: Some(n * 5 % 24), weekday, day });
    // The second hour is left out and repeated when clocks change; the third comes next.
    let night = |hour| Some(At { minute: 30, hour: Some(hour), weekday: None, day: None });
    for (every, at, ends) in
        [(1, night(2), Ends::Forever), (2, night(3), Ends::Times(40)), (1, None, Ends::Until(until))]
    {
        kinds.push((Every { count: every, unit: Unit::Day }, at, ends));
    }
    for n in 0..8 {
        let weekday = (n > 0).then_some(n);
        let time = weekday.and_then(|weekday| at(n, Some(weekday), None));
        kinds.push((Every { count: 1, unit: Unit::Week }, time, Ends::Forever));
    }
    // The 29th to the 31st are the last day of shorter months.
    for day in 1..=31 {
        kinds.push((Every { count: 1, unit: Unit::Month }, at(day, None, Some(day)), Ends::Forever));
    }
    for n in 0..20 {
        kinds.push((Every { count: 3, unit: Unit::Month }, at(n, None, Some(n + 1)), Ends::Forever));
    }
    let schedule = |(n, (every, at, ends))| Schedule {
        name: name(&format!("s{n}")),
        comments: String::new(),
        starts: None,
        ends,
        every,
        at,
        time_zone: "Europe/Copenhagen".to_owned(),
    };
    kinds.into_iter().enumerate().map(schedule).collect()
}

/// Which of them harvest number `n` has: by the day 1 in 100, by the week 1 in 30, by the month 1 in 10, else by the
/// quarter. Two thousand have some 16,000 runs.
fn schedule_of(n: usize) -> usize {
    match n {
        n if n.is_multiple_of(100) => n / 100 % 3,
        n if n % 30 == 1 => 3 + n / 30 % 8,
        n if n % 10 == 2 => 11 + n / 10 % 31,
        n => 42 + n % 20,
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

/// A scheduler dies with a harvest in its hands and a draft on the table.
async fn dies(db: &Db) -> bool {
    // Its lease is over at once, by anybody's clock.
    let claimed = db.planner().claim(HarvestKind::Selective, "dead", Duration::ZERO, None).await.unwrap();
    let Some(due) = claimed else { return false };
    let all = db.planner().candidates(&due.harvest, &[], Duration::ZERO, 0, 9).await.unwrap();
    let job = grange_db::NewJob {
        template: all[0].template,
        limits: Limits::NONE,
        expected_objects: 1,
        configurations: 1,
    };
    let job = db.planner().draft(&due, vec![job]).await.unwrap()[0];
    let member = grange_db::Member { configuration: all[0].configuration, job, expected_objects: 1 };
    db.planner().fill(&due, vec![member]).await.unwrap();
    true
}

/// Two schedulers look at once whenever something is due; now and then one dies in the middle of a plan, or a process
/// is started anew.
async fn a_year(bed: Bed, harvests: usize, seed: u64) {
    let mut rng = StdRng::seed_from_u64(seed);
    let made = bed.clock.now();
    let end: Timestamp = "2027-01-01T00:00:00Z".parse().unwrap();
    let schedules = schedules();
    for schedule in &schedules {
        bed.db.schedules().save(schedule.clone(), None, &Actor::system()).await.unwrap();
    }
    for n in 0..harvests {
        bed.selective(&format!("h{n}"), &format!("s{}", schedule_of(n)), &["a.dk"]).await;
    }
    let dates: Vec<_> = schedules.iter().map(|schedule| dates(schedule, made, end)).collect();
    let used: BTreeSet<_> = (0..harvests).map(schedule_of).collect();
    let mut due: BTreeSet<Timestamp> = used.iter().flat_map(|n| dates[*n].iter().copied()).collect();
    let mut dbs = [bed.db.clone(), bed.open().await];
    let (mut deaths, mut restarts) = (0, 0);
    while let Some(next) = due.pop_first() {
        // Some look late, but never later than the shortest period: nothing is missed.
        let late = Duration::from_secs(rng.random_range(0..3 * 3600));
        let now = next + late;
        bed.hand.advance(now.duration_since(bed.clock.now()).try_into().unwrap());
        due = due.split_off(&(now + Duration::from_nanos(1)));
        if rng.random_ratio(1, 20) {
            deaths += u64::from(dies(&dbs[0]).await);
        }
        if rng.random_ratio(1, 100) {
            dbs[1] = bed.open().await;
            restarts += 1;
        }
        let planning = dbs.iter().enumerate().map(|(n, db)| {
            let scheduler = super::scheduler(db, &format!("scheduler {n}"));
            tokio::spawn(async move {
                while scheduler.plan_step(HarvestKind::Selective).await.unwrap() == Step::More {}
            })
        });
        for task in planning.collect::<Vec<_>>() {
            task.await.unwrap();
        }
    }
    assert!(deaths > 5 && restarts > 1, "{deaths} died, {restarts} were started anew: nothing was tried");
    let mut planned = 0;
    for n in 0..harvests {
        let expected = &dates[schedule_of(n)];
        let runs = bed.db.harvests().runs(&name(&format!("h{n}")), 1000).await.unwrap();
        let mut found: Vec<_> = runs.iter().map(|run| run.due_at).collect();
        found.reverse();
        assert_eq!(&found, expected, "h{n}: {:?}", schedules[schedule_of(n)]);
        assert!(runs.iter().all(|run| run.jobs == 1 && run.skipped == 0), "h{n}");
        let numbers: Vec<_> = runs.iter().rev().map(|run| run.number).collect();
        assert_eq!(numbers, (1..=runs.len() as u64).collect::<Vec<_>>(), "h{n}");
        planned += runs.len();
    }
    println!("{harvests} harvests, {planned} runs, {deaths} deaths, {restarts} restarts");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_year_each_due_run_is_planned_once_on_sqlite() {
    a_year(Bed::new(None).await, 2000, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_year_each_due_run_is_planned_once_on_postgres() {
    if let Some(server) = TestDatabase::create().await {
        a_year(Bed::new(Some(server)).await, 200, 2).await;
    }
}
