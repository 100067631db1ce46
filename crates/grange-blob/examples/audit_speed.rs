//! How fast stored files are read again and summed up, beside `openssl dgst -sha512` on the same files.
//!
//! `cargo run --release -p grange-blob --example audit_speed -- [FOLDER] [MIB] [FILES]`

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use futures_util::{StreamExt, stream};
use grange_base::{Clock, Size};
use grange_blob::{Blob, Disk, DiskSettings, Taking};
use grange_model::Algorithm;

/// As many as an audit asks for at once.
const AT_ONCE: usize = 8;

/// CPU seconds of this process and of the children it waited for. A tick is 10 ms on Linux.
fn cpu_seconds() -> (f64, f64) {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let fields: Vec<f64> = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split(' ')
        .filter_map(|field| field.parse().ok())
        .collect();
    // After the name and the state letter: utime is the 11th, then stime, cutime, cstime.
    ((fields[10] + fields[11]) / 100.0, (fields[12] + fields[13]) / 100.0)
}

struct Measured {
    wall: f64,
    cpu: f64,
}

impl Measured {
    fn print(&self, what: &str, mib: u64) {
        let (wall, cpu) = (mib as f64 / self.wall, mib as f64 / self.cpu);
        println!("{what:42} {wall:7.0} MiB/s, {cpu:7.0} MiB per CPU second");
    }
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let mib: u64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(2048);
    let files: u64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(8);
    let folder = folder.join(format!("grange-audit-{}", std::process::id()));
    let mut settings = DiskSettings::new([folder.clone()]);
    settings.min_space_left = Size(0);
    let disk = Disk::open(settings, Clock::system()).expect("a store");

    let start = Instant::now();
    let mut paths = Vec::new();
    for number in 0..files {
        let path = folder.join("source");
        fill(&path, (mib << 20) / files, number);
        let name = format!("{number}.warc").parse().expect("a name");
        disk.put_file(&name, &path, Taking::Move, None).await.expect("put");
        paths.push(folder.join("filedir").join(name.as_str()));
    }
    println!("made {mib} MiB in {files} files in {:.1} s", start.elapsed().as_secs_f64());

    for round in 1..=3 {
        println!("round {round}");
        warm(&paths);
        let openssl = measure(true, async || {
            let run = Command::new("openssl").args(["dgst", "-sha512"]).args(&paths).output();
            assert!(run.expect("openssl").status.success());
        })
        .await;
        openssl.print("openssl dgst -sha512, files in memory", mib);
        let audit = measure(false, async || sum_all(&disk).await).await;
        audit.print("audit, read from the disk", mib);
        let (wall, core) = (openssl.wall / audit.wall, openssl.cpu / audit.cpu);
        println!("ratio {wall:.2} by the clock, {core:.2} per core used");
    }
    std::fs::remove_dir_all(folder).expect("clean up");
}

/// As an audit does: several files are asked for at once.
async fn sum_all(disk: &Disk) {
    let listed = disk.list(None, usize::MAX).await.expect("a list");
    stream::iter(listed)
        .for_each_concurrent(AT_ONCE, async |listed| {
            let sums = disk.checksum(&listed.name, &[Algorithm::Sha512]).await.expect("a checksum");
            assert!(sums.is_some());
        })
        .await;
}

async fn measure(children: bool, act: impl AsyncFnOnce()) -> Measured {
    let pick = |(own, child): (f64, f64)| if children { child } else { own };
    let (start, before) = (Instant::now(), pick(cpu_seconds()));
    act().await;
    Measured { wall: start.elapsed().as_secs_f64(), cpu: pick(cpu_seconds()) - before }
}

fn warm(paths: &[PathBuf]) {
    for path in paths {
        std::io::copy(&mut std::fs::File::open(path).expect("a file"), &mut std::io::sink()).expect("a read");
        std::fs::read(path).expect("a read");
    }
}

fn fill(path: &Path, bytes: u64, seed: u64) {
    use std::io::Write;
    let mut file = std::io::BufWriter::with_capacity(1 << 20, std::fs::File::create(path).expect("a file"));
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for _ in 0..bytes / 8 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        file.write_all(&state.to_le_bytes()).expect("a write");
    }
    file.flush().expect("a write");
}
