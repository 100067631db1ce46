//! Parts of a file together give every record exactly once, wherever it is divided.

mod common;

use std::io::Write as _;
use std::path::Path;

use common::{gzip, header, join, record};
use warc::Reader;

/// The offsets of all records that a part of the file holds.
fn offsets(path: &Path, start: u64, end: u64) -> Vec<(u64, u64)> {
    let mut reader = Reader::range(path, start, end).unwrap();
    let mut found = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        found.push((record.place().offset, record.place().inner));
    }
    found
}

/// A record whose body does not compress: it stands in the member as it is.
fn stored(number: u32, body: &[u8]) -> Vec<u8> {
    let head = b"HTTP/1.1 200 OK\r\nContent-Type: application/gzip\r\n\r\n";
    let length = (head.len() + body.len()).to_string();
    join(&[header(number, &length, "").as_bytes(), head, body, b"\r\n\r\n"])
}

fn noise(len: usize, seed: u32) -> Vec<u8> {
    let mut state = seed;
    (0..len)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        })
        .collect()
}

fn check(name: &str, file: &[u8], step: usize) {
    let mut temp = tempfile::NamedTempFile::new().unwrap();
    temp.write_all(file).unwrap();
    let path = temp.path();
    let len = file.len() as u64;
    let all = offsets(path, 0, len);
    assert!(!all.is_empty());
    for middle in (0..=len).step_by(step) {
        let (left, right) = (offsets(path, 0, middle), offsets(path, middle, len));
        assert_eq!([&left[..], &right[..]].concat(), all, "{name}: divided at {middle}");
    }
    let cuts: Vec<u64> = (0..=7).map(|n| len * n / 7).collect();
    let parts: Vec<_> = cuts.windows(2).flat_map(|cut| offsets(path, cut[0], cut[1])).collect();
    assert_eq!(parts, all, "{name}: divided by seven");
}

#[test]
fn every_record_comes_once() {
    let members: Vec<u8> = (0..400).flat_map(|n| gzip(&stored(n, &noise(900, n)))).collect();
    check("sound", &members, 40_009);

    // An archived archive: its members stand verbatim inside ours.
    let inner: Vec<u8> = (0..60).flat_map(|n| gzip(&record(n))).collect();
    let outer: Vec<u8> =
        (1000..1100).flat_map(|n| gzip(&stored(n, &join(&[&noise(3000, n), &inner])))).collect();
    check("archives inside", &outer, 60_013);

    // A nested member longer than what deflate stores in a row.
    let long = gzip(&stored(1, &noise(200_000, 7)));
    let outer: Vec<u8> = (2000..2006).flat_map(|n| gzip(&stored(n, &long))).collect();
    check("long members inside", &outer, 150_001);

    let damaged = join(&[&members[..100_000], b"junk", &members[150_000..]]);
    check("damaged", &damaged, 40_009);

    let whole = gzip(&(0..300).flat_map(|n| stored(n, &noise(900, n))).collect::<Vec<_>>());
    check("one member", &whole, 100_003);

    let plain: Vec<u8> = (0..50).flat_map(record).collect();
    check("plain", &plain, 1009);
}
