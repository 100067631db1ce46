//! Measures harvests at the size of a country:
//! `cargo run --release -p grange-schedule --example harvest_scale -- <url> [--domains N] [--harvests N] [--harvesters N]`
//!
//! `sqlite:PATH` or `postgres://…`; the database must be empty, and is migrated. Domains are imported as
//! `grange domains import` does, given history by a first snapshot whose jobs all report, and a second snapshot is
//! planned over them; then harvests are put into service and the due check timed; then harvesters report progress
//! while jobs are claimed.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use grange_base::Clock;
use grange_base::worker::Step;
use grange_db::{Db, JobReport, NewHarvest};
use grange_model::Actor;
use grange_model::harvest::{
    ChannelName, CrawlState, DomainName, DomainReport, HarvestKind, HarvesterState, Limits, Name, Progress,
    Schedule, StopReason,
};
use grange_schedule::{Scheduler, Settings};

struct Plan {
    url: String,
    domains: usize,
    harvests: usize,
    harvesters: usize,
}

fn plan() -> anyhow::Result<Plan> {
    let mut plan = Plan { url: String::new(), domains: 1_100_000, harvests: 100_000, harvesters: 500 };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut number = || -> anyhow::Result<usize> {
            words.next().context("a number must follow")?.parse().context("that is not a number")
        };
        match word.as_str() {
            "--domains" => plan.domains = number()?,
            "--harvests" => plan.harvests = number()?,
            "--harvesters" => plan.harvesters = number()?,
            url if url.contains(':') => url.clone_into(&mut plan.url),
            other => bail!("what is \"{other}\"?"),
        }
    }
    ensure!(!plan.url.is_empty(), "usage: harvest_scale <url> [--domains N] [--harvests N] [--harvesters N]");
    Ok(plan)
}

/// What a phase took: seconds by the clock, of this process's processor time (a database server's own is not in it), and
/// megabytes written.
struct Watch(Instant, f64, u64);

impl Watch {
    fn start() -> Watch {
        let (cpu, written) = used();
        Watch(Instant::now(), cpu, written)
    }
}

impl std::fmt::Display for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (cpu, written) = used();
        let (seconds, cpu) = (self.0.elapsed().as_secs_f64(), cpu - self.1);
        write!(f, "{seconds:.1} s, {cpu:.1} s of processor time, {} MB written", written - self.2)
    }
}

fn used() -> (f64, u64) {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<_> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|text| text.parse::<f64>().ok()).unwrap_or_default();
    let io = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    let written = io.lines().find_map(|line| line.strip_prefix("write_bytes: ")).unwrap_or_default();
    ((ticks(11) + ticks(12)) / 100.0, written.parse::<u64>().unwrap_or_default() / 1_000_000)
}

/// The most memory this process ever held, in MB.
fn memory_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|kb| kb.parse::<u64>().ok()).unwrap_or_default() / 1000
}

fn harvest(name: &str, kind: HarvestKind) -> anyhow::Result<NewHarvest> {
    Ok(NewHarvest {
        name: name.parse()?,
        kind,
        comments: String::new(),
        audience: String::new(),
        schedule: if kind == HarvestKind::Selective { Some("daily".parse()?) } else { None },
        channel: None,
        limits: Limits::NONE,
        continues: None,
        traps: Vec::new(),
        fields: BTreeMap::new(),
    })
}

async fn snapshot(db: &Db, name: &str) -> anyhow::Result<Watch> {
    let system = Actor::system();
    db.harvests().create(harvest(name, HarvestKind::Snapshot)?, &system).await?;
    db.harvests().set_active(&name.parse::<Name>()?, true, None, &system).await?;
    let scheduler = Scheduler::new(db.clone(), Settings::default(), "bench", None);
    let watch = Watch::start();
    ensure!(scheduler.plan_step(HarvestKind::Snapshot).await? == Step::More, "nothing was due");
    Ok(watch)
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let plan = plan()?;
    let settings = grange_db::Settings { url: plan.url.clone(), ..grange_db::Settings::default() };
    Db::migrate(&settings, Path::new("."), &Clock::system()).await?;
    let db = Db::open(&settings, Path::new("."), Clock::system()).await?;
    db.templates().ship(vec![("default".parse()?, "name = \"default\"\n".to_owned())]).await?;
    db.schedules().ship(Schedule::shipped().to_vec()).await?;
    let system = Actor::system();

    let watch = Watch::start();
    for chunk in 0..plan.domains.div_ceil(2500) {
        let names = (chunk * 2500..plan.domains.min((chunk + 1) * 2500))
            .map(|n| format!("site-{n:07}.dk").parse::<DomainName>())
            .collect::<Result<Vec<_>, _>>()?;
        db.domains().import(names, &system).await?;
    }
    println!("{}: {} domains created in {watch}", db.place(), plan.domains);

    println!("first snapshot, without history: planned in {}", snapshot(&db, "first").await?);
    let lane: Vec<ChannelName> = vec!["snapshot".parse()?];
    let watch = Watch::start();
    let mut reported = 0;
    while let Some(claim) = db.jobs().claim(&lane, "bench", Duration::from_secs(60)).await? {
        db.jobs().start(&claim, Duration::from_secs(60)).await?;
        let domains =
            db.jobs().configurations(claim.job).await?.into_iter().enumerate().map(|(n, one)| DomainReport {
                domain: one.domain,
                objects: 20 + (n as u64 * 7919) % 4000,
                bytes: 40_000 * (20 + (n as u64 * 7919) % 4000),
                stop: if n % 10 == 0 { StopReason::Unfinished } else { StopReason::Complete },
            });
        let report = JobReport { domains: domains.collect(), ..JobReport::default() };
        reported += db.jobs().finish(&claim, report).await?.domains_kept;
    }
    println!("history of {reported} configurations kept in {watch}");
    let watch = snapshot(&db, "second").await?;
    println!("second snapshot, with history: planned in {watch}; {} MB of memory at most", memory_mb());

    let watch = Watch::start();
    harvests(&db, &plan).await?;
    println!("{} harvests put into service in {watch}", plan.harvests);
    let start = Instant::now();
    let due = db.due_harvests().await?;
    println!("{due} harvests are due: counted in {:.1} ms", start.elapsed().as_secs_f64() * 1000.0);
    let start = Instant::now();
    let first = db.planner().claim(HarvestKind::Selective, "bench", Duration::ZERO, None).await?;
    println!("the first of them taken in {:.1} ms", start.elapsed().as_secs_f64() * 1000.0);
    ensure!(first.is_some(), "no harvest is due");
    let scheduler = Scheduler::new(db.clone(), Settings::default(), "bench", None);
    let start = Instant::now();
    for _ in 0..plan.harvesters.min(plan.harvests) {
        scheduler.plan_step(HarvestKind::Selective).await?;
    }
    let each = start.elapsed().as_secs_f64() * 1000.0 / plan.harvesters as f64;
    println!("{} of them planned, {each:.1} ms each", plan.harvesters);

    claims(&db, &plan, &["focused".parse()?]).await?;
    db.close().await;
    Ok(())
}

/// Puts harvests into service, all due at once; the first have a domain, so that there are jobs for the harvesters.
async fn harvests(db: &Db, plan: &Plan) -> anyhow::Result<()> {
    // Side by side, as many curators would: one after another each would wait for its own commit.
    const HANDS: usize = 64;
    let mut hands = tokio::task::JoinSet::new();
    for hand in 0..HANDS {
        let (db, harvests, jobs) = (db.clone(), plan.harvests, plan.harvesters);
        hands.spawn(async move {
            let system = Actor::system();
            for n in (hand..harvests).step_by(HANDS) {
                let name: Name = format!("h{n}").parse()?;
                db.harvests().create(harvest(name.as_str(), HarvestKind::Selective)?, &system).await?;
                if n < jobs + 2 * HANDS {
                    let domain = format!("site-{n:07}.dk").parse()?;
                    db.harvests().add_domains(&name, vec![(domain, None)], true, &system).await?;
                }
                db.harvests().set_active(&name, true, None, &system).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = hands.join_next().await {
        done??;
    }
    Ok(())
}

/// Harvesters report themselves and their progress every second; meanwhile jobs are taken and given back.
async fn claims(db: &Db, plan: &Plan, lane: &[ChannelName]) -> anyhow::Result<()> {
    let lease = Duration::from_secs(600);
    let mut running = Vec::new();
    while running.len() < plan.harvesters {
        let Some(claim) = db.jobs().claim(lane, &format!("h{}", running.len()), lease).await? else { break };
        running.push(claim);
    }
    // One job is left to be taken again and again.
    let Some(spare) = running.pop() else { bail!("there are no jobs to run") };
    db.jobs().release(&spare).await?;
    ensure!(!running.is_empty(), "there are too few jobs");
    let end = Instant::now() + Duration::from_secs(10);
    let reporting = (0..plan.harvesters).map(|n| {
        let (db, claim) = (db.clone(), running[n % running.len()].clone());
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(n as u64 * 2)).await;
            let harvester = format!("h{n}");
            while Instant::now() < end {
                let lane = ["focused".parse()?];
                db.channels().serve(&harvester, "bench", &lane, HarvesterState::Busy, None).await?;
                let progress = Progress {
                    at: jiff::Timestamp::now(),
                    state: CrawlState::Active,
                    elapsed_s: 1,
                    discovered: 1,
                    downloaded: 1,
                    queued: 1,
                    bytes: 1,
                    queues: 1,
                    queues_active: 1,
                    queues_retired: 0,
                    queues_exhausted: 0,
                    objects_per_s: 1.0,
                    objects_per_s_mean: 1.0,
                    bytes_per_s: 1.0,
                    bytes_per_s_mean: 1.0,
                    active: 1,
                    alerts: 0,
                    waits_for: None,
                };
                db.jobs().report_progress(&claim, progress, lease, Duration::from_secs(300)).await?;
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            anyhow::Ok(())
        })
    });
    let reporting: Vec<_> = reporting.collect();
    let mut took = Vec::new();
    while Instant::now() < end {
        let start = Instant::now();
        let claim = db.jobs().claim(lane, "bench", lease).await?.context("the spare job is gone")?;
        took.push(start.elapsed());
        db.jobs().release(&claim).await?;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    for task in reporting {
        task.await??;
    }
    took.sort_unstable();
    let ms = |percent: usize| took[(took.len() * percent / 100).min(took.len() - 1)].as_secs_f64() * 1000.0;
    println!(
        "{} harvesters reporting each second: {} claims, half of them within {:.1} ms, p99 {:.1} ms",
        plan.harvesters,
        took.len(),
        ms(50),
        ms(99)
    );
    Ok(())
}
