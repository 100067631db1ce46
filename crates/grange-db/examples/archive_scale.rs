//! Measures the archive's tables at size: the overview and the vote over all files.
//!
//! ```text
//! cargo run --release -p grange-db --example archive_scale -- [URL] [FILES]
//! ```
//!
//! The URL is `sqlite:PATH` or `postgres://…` of an empty database; the default is a SQLite file in a temporary
//! folder, with a million files on three replicas.

use std::time::{Duration, Instant};

use grange_base::Clock;
use grange_db::{Adopted, Db, Declared, FileFilter, ReplicaRow, Settings, Trouble, deciding};
use grange_model::{Checksums, Md5, ReplicaKind, Sha256, Sha512};

/// Rows entered in one act.
const AT_ONCE: usize = 5_000;
/// One file in so many has a copy that is wrong, and one in so many a copy that is missing.
const WRONG_EVERY: usize = 1_000;

fn sums(seed: usize) -> Checksums {
    let mut bytes = [0; 64];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = ((seed >> (8 * (at % 4))) ^ at) as u8;
    }
    let (mut sha256, mut md5) = ([0; 32], [0; 16]);
    sha256.copy_from_slice(&bytes[..32]);
    md5.copy_from_slice(&bytes[..16]);
    Checksums { sha512: Some(Sha512(bytes)), sha256: Some(Sha256(sha256)), md5: Some(Md5(md5)) }
}

fn file(n: usize, replicas: &[ReplicaRow]) -> Option<Adopted> {
    let held = replicas.iter().enumerate().filter_map(|(index, replica)| {
        let (wrong, missing) = (n % WRONG_EVERY == index, n % WRONG_EVERY == 10 + index);
        let seed = if wrong { usize::MAX - n } else { n };
        (!missing).then(|| (replica.id, deciding(&sums(seed))))
    });
    let name = format!("{n:07}-42-20260101000000-00001-crawler.example.org.warc.gz").parse().ok()?;
    Some(Adopted { name, size: 1_000_000_000, checksums: sums(n), held: held.collect(), away: Vec::new() })
}

fn least(times: &[Duration]) -> Duration {
    times.iter().copied().min().unwrap_or_default()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut given = std::env::args().skip(1);
    let dir = tempfile::tempdir()?;
    let url = given.next().unwrap_or_else(|| "sqlite:scale.db".to_owned());
    let files: usize = given.next().map_or(Ok(1_000_000), |text| text.parse())?;
    let (settings, clock) = (Settings { url, ..Settings::default() }, Clock::system());
    Db::migrate(&settings, dir.path(), &clock).await?;
    let db = Db::open(&settings, dir.path(), clock).await?;
    let kinds = [
        ("one", ReplicaKind::Bitarchive),
        ("two", ReplicaKind::Bitarchive),
        ("three", ReplicaKind::Checksum),
    ];
    let wanted = kinds.iter().map(|(name, kind)| Ok((name.parse()?, *kind)));
    let wanted = wanted.collect::<Result<Vec<_>, Box<dyn std::error::Error>>>()?;
    let Declared::Replicas(replicas) = db.replicas().declare(wanted).await? else {
        return Err("the database is not empty".into());
    };

    let start = Instant::now();
    let mut entered = 0;
    for first in (0..files).step_by(AT_ONCE) {
        let batch = (first..files.min(first + AT_ONCE)).filter_map(|n| file(n, &replicas));
        entered += db.files().adopt(batch.collect(), Vec::new()).await?;
    }
    let took = start.elapsed();
    println!("{}: {entered} files x {} replicas entered in {took:.1?}", db.place(), replicas.len());

    let start = Instant::now();
    let votes = db.audits().vote_all().await?;
    println!("the first vote over all:  {:>9.1?}   {votes:?}", start.elapsed());
    let start = Instant::now();
    let votes = db.audits().vote_all().await?;
    println!("the vote again:           {:>9.1?}   {votes:?}", start.elapsed());

    let (mut overviews, mut pages) = (Vec::new(), Vec::new());
    for _ in 0..10 {
        let start = Instant::now();
        let overview = db.replicas().overview().await?;
        overviews.push(start.elapsed());
        assert_eq!(overview.len(), replicas.len());
        let start = Instant::now();
        let filter = FileFilter { trouble: Some(Trouble::Corrupt), limit: 100, ..FileFilter::default() };
        db.files().list(&filter).await?;
        pages.push(start.elapsed());
    }
    println!("the overview:             {:>9.1?}", least(&overviews));
    println!("100 corrupt files listed: {:>9.1?}", least(&pages));
    for one in db.replicas().overview().await? {
        println!(
            "  {:<6} {:>8} files, {} completed, {} missing, {} corrupt",
            one.replica.name, one.files, one.completed, one.missing, one.corrupt
        );
    }
    db.close().await;
    Ok(())
}
