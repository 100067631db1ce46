//! usage: peers MODE FILE; prints records, good digests, seconds of wall clock, seconds of processor.

use std::io::Read;
use std::time::Instant;

use fastwarc::warc::iter::{ArchiveIterator, ArchiveIteratorOptions};
use warc::{Reader, Which};

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let (mode, path) = (args[1].as_str(), args[2].as_str());
    let start = Instant::now();
    let (records, good) = match mode {
        "ours" => ours(path, false),
        "ours-digest" => ours(path, true),
        "fastwarc" => fastwarc(path, false),
        "fastwarc-digest" => fastwarc(path, true),
        _ => panic!("unknown mode {mode}"),
    };
    println!("{records} {good} {:.3} {:.2}", start.elapsed().as_secs_f64(), processor_seconds());
}

fn ours(path: &str, digest: bool) -> (u64, u64) {
    let mut reader = Reader::open(path).unwrap();
    let (mut records, mut good, mut statuses) = (0, 0, 0_u64);
    while let Some(mut record) = reader.next().unwrap() {
        records += 1;
        if let Some(http) = record.http().unwrap() {
            statuses += u64::from(http.status().unwrap_or(0));
        }
        if digest && record.check_digests(Which::Payload).unwrap().payload.is_good() {
            good += 1;
        }
    }
    std::hint::black_box(statuses);
    (records, good)
}

fn fastwarc(path: &str, digest: bool) -> (u64, u64) {
    let options = ArchiveIteratorOptions { parse_http: true, ..Default::default() };
    let (mut records, mut good) = (0, 0);
    for record in ArchiveIterator::from_path_with_options(path, options).unwrap() {
        let record = record.unwrap();
        records += 1;
        if digest && record.borrow_mut().verify_payload_digest(true).unwrap_or(false) {
            good += 1;
        }
    }
    (records, good)
}

/// User and system time of this process, in seconds.
fn processor_seconds() -> f64 {
    let mut stat = String::new();
    std::fs::File::open("/proc/self/stat").unwrap().read_to_string(&mut stat).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: f64 = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
    ticks / 100.0
}
