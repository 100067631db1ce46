//! Sorting and merging.

use cdx::{Dedupe, SortOptions, Sorter, merge};
use proptest::prelude::*;
use std::io::BufRead;

fn sort(lines: &[Vec<u8>], memory_bytes: usize, dedupe: Dedupe) -> (Vec<u8>, usize) {
    let dir = tempfile::tempdir().unwrap();
    let options = SortOptions { memory_bytes, temp_dir: Some(dir.path().to_owned()), dedupe };
    let mut sorter = Sorter::new(options);
    for line in lines {
        sorter.push(line).unwrap();
    }
    let runs = sorter.runs();
    let mut out = Vec::new();
    let written = sorter.finish(&mut out).unwrap();
    assert_eq!(written, out.lines().count() as u64);
    (out, runs)
}

fn joined(lines: &[Vec<u8>]) -> Vec<u8> {
    lines.iter().flat_map(|line| [line.as_slice(), b"\n"].concat()).collect()
}

#[test]
fn more_lines_than_memory_are_sorted_in_several_passes() {
    // 256 KiB of memory hold four read buffers; 30,000 lines of 100 bytes make more than a dozen runs.
    let mut lines: Vec<Vec<u8>> = (0..30_000u64)
        .map(|n| {
            format!("com,example)/{:016x} {}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15), "x".repeat(70))
                .into_bytes()
        })
        .collect();
    let (out, runs) = sort(&lines, 0, Dedupe::Nothing);
    assert!(runs > 8, "{runs} runs");
    lines.sort();
    assert!(out == joined(&lines));
}

#[test]
fn doubles() {
    let line = |text: &str| text.as_bytes().to_vec();
    let a = line(r#"k 2026 {"url": "u", "offset": "5", "filename": "f"}"#);
    let same_record = line(r#"k 2026 {"url": "u", "offset": 5, "filename": "f"}"#);
    let other = line(r#"k 2026 {"url": "u", "offset": "6", "filename": "f"}"#);
    let legend = line(" CDX N b a m s k r V g");
    let lines = [&a, &legend, &other, &same_record, &a, &legend].map(Clone::clone);
    for (dedupe, want) in [(Dedupe::Nothing, 5), (Dedupe::Lines, 4), (Dedupe::Captures, 3)] {
        let (out, _) = sort(&lines, 0, dedupe);
        assert_eq!(out.lines().count(), want, "{dedupe:?} {}", String::from_utf8_lossy(&out));
    }
}

#[test]
fn the_order_is_that_of_bytes() {
    let lines: Vec<Vec<u8>> = ["b", "a b", "a", "a!b", "B", "é", "a,b", "", " CDX", "!meta"]
        .iter()
        .map(|s| s.as_bytes().to_vec())
        .collect();
    let (out, _) = sort(&lines, 0, Dedupe::Lines);
    assert_eq!(String::from_utf8(out).unwrap(), "\n CDX\n!meta\nB\na\na b\na!b\na,b\nb\né\n");
}

#[test]
fn merging_keeps_all_and_the_order_of_inputs() {
    let inputs = ["a 1\nc 1\n", "", "b 1\nc 1\nd 1", " CDX N b a\nz\n", " CDX N b a\ny\n"];
    let boxed =
        || inputs.iter().map(|text| Box::new(text.as_bytes()) as Box<dyn BufRead>).collect::<Vec<_>>();
    let mut out = Vec::new();
    assert_eq!(merge(boxed(), Dedupe::Nothing, &mut out).unwrap(), 8);
    assert_eq!(String::from_utf8(out).unwrap(), " CDX N b a\na 1\nb 1\nc 1\nc 1\nd 1\ny\nz\n");
    let mut out = Vec::new();
    assert_eq!(merge(boxed(), Dedupe::Lines, &mut out).unwrap(), 7);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sorting_is_sorting(mut lines in prop::collection::vec(prop::collection::vec(1..255u8, 0..12), 0..200)) {
        for line in &mut lines {
            line.retain(|b| *b != b'\n' && *b != b'\r');
        }
        let (out, _) = sort(&lines, 0, Dedupe::Lines);
        lines.sort();
        lines.dedup();
        prop_assert!(out == joined(&lines));
    }
}
