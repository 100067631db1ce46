//! What the frontier costs: CPU per finished URL with ten links, memory, and disk per URL seen.
//!
//! `cargo run --release -p grange-crawl --example frontier -- URLS HOSTS [FOLDER]`
//!
//! Every page names two URLs that are new, until there are enough, and else ones that are known; so half of all URLs
//! wait in queues in the middle of the run. The cost of making the pages is measured apart and left out.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use grange_crawl::candidate::Candidate;
use grange_crawl::frontier::{Finished, Frontier, Next, Outcome, Settings};
use grange_crawl::hops::{Hop, Hops};
use grange_crawl::job::Budgets;
use grange_crawl::politeness::{Pace, Visit};
use grange_crawl::status::FetchStatus;
use jiff::Timestamp;
use url::Url;

const LINKS: u64 = 10;
const NEW_LINKS: u64 = 2;
const BATCH: usize = 64;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let urls: u64 = args.next().map_or(Ok(1_000_000), |text| text.parse())?;
    let hosts: u64 = args.next().map_or(Ok(10_000), |text| text.parse())?;
    let own = std::env::temp_dir().join(format!("grange-frontier-{}", std::process::id()));
    let folder = args.next().map_or(own, PathBuf::from);
    let web = Web { urls, hosts };

    let start = cpu()?;
    let mut sum = 0;
    for page in 0..100_000 {
        sum += web.links(page, page).len();
    }
    let making = cpu()?.saturating_sub(start) / 100_000;
    println!("making a page     {making:?} ({sum} links)");

    let settings = Settings { pace: Pace::none(), ..Settings::default() };
    let (frontier, _) = Frontier::open(&folder, settings.clone(), Budgets::default(), Timestamp::now())?;
    let seeds: Vec<Candidate> = (0..hosts.min(urls)).map(|page| Candidate::seed(web.url(page))).collect();
    frontier.add(&seeds, Timestamp::now())?;
    let (wall, start) = (Instant::now(), cpu()?);
    let mut discovered = seeds.len() as u64;
    let mut done = 0_u64;
    let mut slowest = Duration::ZERO;
    loop {
        let now = Timestamp::now();
        let mut batch = Vec::with_capacity(BATCH);
        while batch.len() < BATCH
            && let Next::Uri(claim) = frontier.next(now)?
        {
            let links = web.links(done, discovered);
            discovered = (discovered + NEW_LINKS).min(urls);
            let visit = Visit::new(FetchStatus(200), 10_000, Duration::from_millis(1));
            batch.push(Finished { claim: *claim, outcome: Outcome::Done(visit), discovered: links });
            done += 1;
        }
        if batch.is_empty() {
            break;
        }
        let begun = Instant::now();
        frontier.finish(&batch, &[("warc".to_owned(), done.to_be_bytes().to_vec())], now)?;
        slowest = slowest.max(begun.elapsed());
        if done / (urls / 4).max(1) != (done - batch.len() as u64) / (urls / 4).max(1) {
            let used = cpu()?.saturating_sub(start).checked_div(done as u32).unwrap_or_default();
            println!("{done:>10} done, {:>9} queued, {used:?} CPU each, {}", discovered - done, memory()?);
        }
    }
    let used = cpu()?.saturating_sub(start).checked_div(done as u32).unwrap_or_default();
    println!("done              {done} of {urls}, slowest batch of {BATCH} {slowest:?}");
    println!(
        "frontier          {:?} CPU per URL, {:?} wall",
        used.saturating_sub(making),
        wall.elapsed() / done as u32
    );
    println!("memory            {}", memory()?);
    drop(frontier);
    let begun = Instant::now();
    let (frontier, resumed) = Frontier::open(&folder, settings, Budgets::default(), Timestamp::now())?;
    println!("opened again in   {:?}, {} done, {}", begun.elapsed(), resumed.counts.finished, memory()?);
    drop(frontier);
    println!("disk              {:.1} bytes per URL", disk(&folder)? as f64 / urls as f64);
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}

struct Web {
    urls: u64,
    hosts: u64,
}

impl Web {
    fn url(&self, page: u64) -> Url {
        let text = format!("http://www.host-{}.org/articles/2026/page-{page}.html", page % self.hosts);
        Url::parse(&text).unwrap_or_else(|error| unreachable!("{text}: {error}"))
    }

    fn links(&self, page: u64, discovered: u64) -> Vec<Candidate> {
        let via: Arc<str> = Arc::from(self.url(page).as_str());
        let source: Arc<str> = Arc::from("http://www.host-0.org/");
        let hops = Hops::seed().and(Hop::Link);
        (0..LINKS)
            .map(|link| {
                let is_new = link < NEW_LINKS && discovered + link < self.urls;
                let known = mix(page * LINKS + link) % discovered.max(1);
                Candidate {
                    url: self.url(if is_new { discovered + link } else { known }),
                    via: Some(Arc::clone(&via)),
                    hops: hops.clone(),
                    source: Some(Arc::clone(&source)),
                    force: false,
                }
            })
            .collect()
    }
}

/// Scatters numbers (SplitMix64).
fn mix(n: u64) -> u64 {
    let n = n.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let n = (n ^ (n >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    n ^ (n >> 31)
}

/// User and system time of all threads, by the kernel's ticks of 10 ms.
fn cpu() -> Result<Duration, Box<dyn Error>> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = fields[11].parse::<u64>()? + fields[12].parse::<u64>()?;
    Ok(Duration::from_millis(ticks * 10))
}

fn memory() -> Result<String, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let of = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).unwrap_or_default() / 1024
    };
    Ok(format!("{} MiB RSS, at most {}", of("VmRSS"), of("VmHWM")))
}

/// Blocks taken on disk: journals are sparse.
fn disk(folder: &Path) -> Result<u64, Box<dyn Error>> {
    use std::os::unix::fs::MetadataExt;
    let mut sum = 0;
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            sum += disk(&path)?;
        } else {
            let bytes = path.metadata()?.blocks() * 512;
            if bytes > 1 << 20 {
                println!("  {:>9} KiB {}", bytes / 1024, path.display());
            }
            sum += bytes;
        }
    }
    Ok(sum)
}
