//! Measures claim + finish per second:
//! `cargo run --release -p grange-db --example claim_throughput -- <url> [--workers N] [--seconds S] [--batch N]`
//!
//! `sqlite:PATH` or `postgres://…`; the database must be empty or a former one of this program, and is migrated.
//! Every claim and every finish is a durable act of its own; `--batch` claims several at once. Offering is measured
//! first, and not part of the figure.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use grange_base::Clock;
use grange_db::{Db, Offer, Settings};
use serde_json::json;

struct Plan {
    url: String,
    workers: usize,
    seconds: u64,
    batch: u32,
}

fn plan() -> anyhow::Result<Plan> {
    let mut plan = Plan { url: String::new(), workers: 8, seconds: 10, batch: 1 };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut number = || -> anyhow::Result<u64> {
            words.next().context("a number must follow")?.parse().context("that is not a number")
        };
        match word.as_str() {
            "--workers" => plan.workers = number()? as usize,
            "--seconds" => plan.seconds = number()?,
            "--batch" => plan.batch = number()? as u32,
            url if url.contains(':') => url.clone_into(&mut plan.url),
            other => bail!("what is \"{other}\"?"),
        }
    }
    if plan.url.is_empty() {
        bail!("usage: claim_throughput <url> [--workers N] [--seconds S] [--batch N]");
    }
    Ok(plan)
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let plan = plan()?;
    let settings =
        Settings { url: plan.url.clone(), connections_max: plan.workers as u32 + 2, ..Settings::default() };
    Db::migrate(&settings, Path::new("."), &Clock::system()).await?;
    let db = Db::open(&settings, Path::new("."), Clock::system()).await?;
    let kind = format!("bench-{}", std::process::id());

    // More than can be claimed in the time, so that no worker runs dry.
    let rows = (plan.seconds * 12_000).max(20_000) as usize;
    let start = Instant::now();
    for chunk in 0..rows.div_ceil(1000) {
        let body = json!({ "file": "20261011-harvest-00042.warc.gz", "note": "x".repeat(180) });
        let offers = (0..1000).map(|n| Offer::new(&kind, format!("{chunk}-{n}"), body.clone()));
        db.work().offer_many(offers.collect()).await?;
    }
    println!("offered {rows} rows, 1000 per act: {:.0}/s", rows as f64 / start.elapsed().as_secs_f64());

    let done = Arc::new(AtomicU64::new(0));
    let start = Instant::now();
    let end = start + Duration::from_secs(plan.seconds);
    let workers = (0..plan.workers).map(|n| {
        let (db, kind, done) = (db.clone(), kind.clone(), Arc::clone(&done));
        tokio::spawn(async move {
            while Instant::now() < end {
                let lease = Duration::from_mins(1);
                for claim in db.work().claim_many(&kind, &format!("w{n}"), lease, plan.batch).await? {
                    db.work().finish(&claim).await?;
                    done.fetch_add(1, Ordering::Relaxed);
                }
            }
            Ok::<_, grange_db::Error>(())
        })
    });
    for worker in workers.collect::<Vec<_>>() {
        worker.await??;
    }
    let took = start.elapsed().as_secs_f64();
    let done = done.load(Ordering::Relaxed);
    let counts = db.work().counts(&kind).await?;
    anyhow::ensure!(counts.done == done, "counted {done}, found {counts:?}");
    println!(
        "{}: {} workers, batch {}: {done} claimed and finished in {took:.1} s = {:.0}/s",
        db.place(),
        plan.workers,
        plan.batch,
        done as f64 / took
    );
    db.close().await;
    Ok(())
}
