//! usage: peers MODE FILE
//!
//! Reading modes print records, good digests, seconds of wall clock, seconds of processor. The mode `write`
//! prints, for the responses of the file, megabytes per second of: libdeflate alone, zlib-rs alone, and our
//! writer with both digests; all at level 6.

use std::io::{Read, Write};
use std::time::Instant;

use fastwarc::warc::iter::{ArchiveIterator, ArchiveIteratorOptions};
use warc::write::{Compression, FileOptions, NewRecord, SyncPolicy, WarcFile};
use warc::{Date, Reader, RecordType, Which};

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let (mode, path) = (args[1].as_str(), args[2].as_str());
    let start = Instant::now();
    let (records, good) = match mode {
        "ours" => ours(path, false),
        "ours-digest" => ours(path, true),
        "fastwarc" => fastwarc(path, false),
        "fastwarc-digest" => fastwarc(path, true),
        "write" => return write(path),
        _ => panic!("unknown mode {mode}"),
    };
    println!(
        "{records} {good} {:.3} {:.2}",
        start.elapsed().as_secs_f64(),
        processor_seconds()
    );
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
    let options = ArchiveIteratorOptions {
        parse_http: true,
        ..Default::default()
    };
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

/// How much of the file's responses is written.
const WRITE_BYTES: usize = 200 << 20;

fn write(path: &str) {
    let mut reader = Reader::open(path).unwrap();
    let mut blocks: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    let mut total = 0;
    while let Some(mut record) = reader.next().unwrap() {
        if record.kind() != RecordType::Response || total > WRITE_BYTES {
            continue;
        }
        let Some(head) = record.http().unwrap().map(|http| http.raw().to_vec()) else {
            continue;
        };
        let mut body = Vec::new();
        record.body().unwrap().read_to_end(&mut body).unwrap();
        total += head.len() + body.len();
        blocks.push((head, body));
    }
    let speed = |seconds: f64| total as f64 / 1e6 / seconds;
    let out = std::env::temp_dir().join("grange-bench-write.warc.gz");
    let open = std::env::temp_dir().join("grange-bench-write.warc.gz.open");
    let ours = || {
        let _ = std::fs::remove_file(&open);
        let now = Date::parse(b"2026-01-02T03:04:05.678901Z").unwrap();
        let options = FileOptions {
            compression: Compression::Gzip(6),
            sync: SyncPolicy::Never,
            info: Vec::new(),
        };
        let mut file = WarcFile::create(&out, &options, now).unwrap();
        for (head, body) in &blocks {
            file.write(&mut NewRecord::response(
                "http://example.org/some/page",
                now,
                head,
                body,
            ))
            .unwrap();
        }
    };

    // The compressors alone get the very bytes that the writer packs: headers, blocks and line ends.
    ours();
    let mut plains = Vec::new();
    let mut reader = Reader::open(&open).unwrap();
    while let Some(mut record) = reader.next().unwrap() {
        let mut plain = record.header().raw().to_vec();
        record.block().read_to_end(&mut plain).unwrap();
        plain.extend_from_slice(b"\r\n\r\n");
        plains.push(plain);
    }

    let mut best = [f64::MAX; 3];
    let mut timed = |which: usize, work: &mut dyn FnMut()| {
        let start = processor_seconds();
        work();
        best[which] = best[which].min(processor_seconds() - start);
    };
    for _ in 0..5 {
        let mut packed = Vec::new();
        let mut deflate = libdeflater::Compressor::new(libdeflater::CompressionLvl::new(6).unwrap());
        timed(0, &mut || {
            for plain in &plains {
                packed.resize(deflate.gzip_compress_bound(plain.len()), 0);
                std::hint::black_box(deflate.gzip_compress(plain, &mut packed).unwrap());
            }
        });
        timed(1, &mut || {
            for plain in &plains {
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
                encoder.write_all(plain).unwrap();
                std::hint::black_box(encoder.finish().unwrap());
            }
        });
        timed(2, &mut || ours());
    }
    let _ = std::fs::remove_file(&open);
    println!(
        "{:.1} {:.1} {:.1}",
        speed(best[0]),
        speed(best[1]),
        speed(best[2])
    );
}

/// User and system time of this process, in seconds.
fn processor_seconds() -> f64 {
    let mut stat = String::new();
    std::fs::File::open("/proc/self/stat")
        .unwrap()
        .read_to_string(&mut stat)
        .unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: f64 = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
    ticks / 100.0
}
