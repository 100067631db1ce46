//! Measures the index of duplicates: `cargo run --release -p grange-harvest --example dedup_scale -- [--entries N]`
//!
//! Metadata files of ten jobs are made (not measured), with crawl logs as a crawl writes them; then the index is built
//! from them on two threads, opened, and asked for what it holds and for what it does not, by one thread.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::io::{BufWriter, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, ensure};
use grange_harvest::dedup::{Builder, By, FileEvidence, Index, feed};
use warc::write::{Compression, FileOptions, NewRecord, WarcFile};
use warc::{Algorithm, Date, Digest};

const JOBS: usize = 10;

fn url(n: usize) -> String {
    let mut hasher = DefaultHasher::new();
    n.hash(&mut hasher);
    format!("https://www.site-{}.dk/media/{:x}/picture-{n}.jpg?size=large", n % 5000, hasher.finish())
}

fn digest(n: usize) -> Digest {
    Digest::of(Algorithm::Sha1, &n.to_le_bytes())
}

fn warc_name(job: usize, number: usize) -> String {
    format!("{job}-3-20260102030405678-{number:05}-crawler1.warc.gz")
}

/// The metadata file of one job with a crawl log of these lines.
fn papers(folder: &Path, job: usize, lines: std::ops::Range<usize>) -> anyhow::Result<PathBuf> {
    let mut log = BufWriter::new(tempfile::tempfile_in(folder)?);
    let mut length = 0;
    for n in lines {
        let (second, ms) = (n / 1000 % 86_400, n % 1000);
        let line = format!(
            "2026-01-02T03:04:05.678Z   200      51234 {} LLE https://www.site-{}.dk/ image/jpeg #0{} \
             20260102{:02}{:02}{:02}{ms:03}+81 {} https://www.site-{}.dk/ - \
             {{\"contentSize\":51634,\"warcFilename\":\"{}\",\
             \"warcFileOffset\":{}}}\n",
            url(n),
            n % 5000,
            n % 90 + 10,
            second / 3600,
            second / 60 % 60,
            second % 60,
            digest(n),
            n % 5000,
            warc_name(job, n / 20_000),
            n % 20_000 * 50_000,
        );
        length += line.len() as u64;
        log.write_all(line.as_bytes())?;
    }
    let mut log = log.into_inner().map_err(std::io::IntoInnerError::into_error)?;
    log.rewind()?;
    let path = folder.join(format!("{job}-metadata-1.warc.gz"));
    let date = Date::from(jiff::Timestamp::UNIX_EPOCH);
    let options = FileOptions { compression: Compression::Gzip(6), ..FileOptions::default() };
    let mut file = WarcFile::create(&path, &options, date)?;
    let address =
        format!("metadata://example.org/crawl/logs/crawl.log?heritrixVersion=x&harvestid=3&jobid={job}");
    file.write(&mut NewRecord::resource(&address, date, "text/plain", &[]).stream(&[], &mut log, length))?;
    file.close()?;
    Ok(path)
}

/// Seconds of processor time that this process has used, and the most memory it held, in MB.
fn used() -> (f64, u64) {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<_> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|text| text.parse::<f64>().ok()).unwrap_or_default();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    let kb = line.split_whitespace().next().and_then(|kb| kb.parse::<u64>().ok()).unwrap_or_default();
    ((ticks(11) + ticks(12)) / 100.0, kb / 1000)
}

fn main() -> anyhow::Result<()> {
    let words: Vec<_> = std::env::args().skip(1).collect();
    let entries = match words.iter().position(|word| word == "--entries") {
        Some(at) => words.get(at + 1).context("a number must follow --entries")?.parse()?,
        None => 10_000_000_usize,
    };
    let folder = tempfile::tempdir()?;
    let each = entries.div_ceil(JOBS);
    let files = (0..JOBS)
        .map(|job| papers(folder.path(), job, job * each..entries.min((job + 1) * each)))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let bytes: u64 = files.iter().filter_map(|path| path.metadata().ok()).map(|file| file.len()).sum();
    println!("{entries} lines in {JOBS} metadata files, {} MB packed", bytes / 1_000_000);

    let (cpu, _) = used();
    let start = Instant::now();
    let builder = Builder::new(By::Url, folder.path());
    let (one, two) = files.split_at(JOBS / 2);
    let feed_all =
        |files: &[PathBuf]| files.iter().map(|path| feed(&[&builder], path)).collect::<Result<Vec<_>, _>>();
    let fed = std::thread::scope(|scope| {
        let other = scope.spawn(|| feed_all(two));
        let mut fed = feed_all(one)?;
        fed.extend(other.join().map_err(|_| anyhow::anyhow!("a reader panicked"))??);
        anyhow::Ok(fed)
    })?;
    let read = start.elapsed();
    ensure!(fed.iter().map(|one| one.entries).sum::<u64>() == entries as u64, "lines were lost");
    let path = folder.path().join("index");
    let verified = |name| (name, FileEvidence::Verified("sha512=".to_owned() + &"0".repeat(128)));
    let names = (0..JOBS).flat_map(|job| (0..=entries / 20_000).map(move |n| warc_name(job, n)));
    let built = builder.finish(&path, &names.map(verified).collect())?;
    let took = start.elapsed();
    let (after, memory) = used();
    println!(
        "built in {:.1} s ({:.1} s to read), {:.1} s of processor time, {memory} MB of memory at most",
        took.as_secs_f64(),
        read.as_secs_f64(),
        after - cpu
    );
    println!("{} entries, {:.2} bytes each", built.entries, built.size as f64 / built.entries as f64);

    let start = Instant::now();
    let index = Index::open(&path)?;
    println!("opened in {:.2} ms", start.elapsed().as_secs_f64() * 1000.0);
    let asked = entries.min(2_000_000);
    // Made before, so that only lookups are measured; far apart, as a crawl asks.
    let questions: Vec<_> =
        (0..asked).map(|n| n.wrapping_mul(7_919) % entries).map(|n| (url(n), digest(n))).collect();
    for round in ["first", "again"] {
        let (cpu, start) = (used().0, Instant::now());
        for (url, digest) in &questions {
            let found = index.find(url, digest)?.context("an entry is not found")?;
            std::hint::black_box(found);
        }
        report(round, "there", asked, start, cpu);
    }
    let (cpu, start) = (used().0, Instant::now());
    let other = Digest::of(Algorithm::Sha1, b"another");
    for (url, _) in &questions {
        ensure!(index.find(url, &other)?.is_none(), "something is found that is not there");
    }
    report("again", "absent", asked, start, cpu);
    Ok(())
}

fn report(round: &str, what: &str, asked: usize, start: Instant, cpu: f64) {
    let (wall, cpu) = (start.elapsed().as_secs_f64(), used().0 - cpu);
    let rate = |seconds: f64| asked as f64 / seconds.max(0.001) / 1e6;
    println!(
        "{asked} lookups of what is {what}, {round}: {:.2} M/s, {:.2} M per processor second",
        rate(wall),
        rate(cpu)
    );
}
