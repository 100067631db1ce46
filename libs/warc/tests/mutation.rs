//! Random damage never makes the reader panic or run on: the entry points of `fuzz/` with a fixed budget.

mod common;

use common::{arc_page, entry, filedesc, gzip, join, record, skippable, zstd};
use proptest::collection::vec;
use proptest::prelude::*;

/// Sound files to damage.
fn seeds() -> Vec<Vec<u8>> {
    let [a, b, c] = [1, 2, 3].map(record);
    let dictionary = b"WARC/1.1\r\nWARC-Type: response\r\n".repeat(9);
    vec![
        join(&[&a, &b, &c]),
        join(&[&gzip(&a), &gzip(&b), &gzip(&c)]),
        gzip(&join(&[&a, &b, &c])),
        join(&[&zstd(&a, &[]), &zstd(&b, &[])]),
        join(&[&skippable(13, &dictionary), &zstd(&a, &dictionary), &zstd(&b, &dictionary)]),
        join(&[&filedesc(), &arc_page(1), &arc_page(2)]),
        join(&[&gzip(&filedesc()), &gzip(&arc_page(1))]),
    ]
}

/// One change: where (in parts of the whole), what, and how much.
fn mutate(bytes: &mut Vec<u8>, changes: &[(f64, u8, u8)]) {
    for &(place, how, value) in changes {
        if bytes.is_empty() {
            return;
        }
        let at = ((bytes.len() as f64 * place) as usize).min(bytes.len() - 1);
        match how % 6 {
            0 => bytes[at] = value,
            1 => bytes[at] ^= 1 << (value % 8),
            2 => bytes.truncate(at),
            3 => drop(bytes.drain(at..(at + usize::from(value)).min(bytes.len()))),
            4 => {
                let piece = bytes[at..(at + usize::from(value) * 4).min(bytes.len())].to_vec();
                bytes.splice(at..at, piece);
            }
            _ => {
                bytes.splice(at..at, std::iter::repeat_n(value, usize::from(value)));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_files(seed in 0..7_usize, changes in vec((0.0..1.0, any::<u8>(), any::<u8>()), 1..5)) {
        let mut bytes = seeds().swap_remove(seed);
        mutate(&mut bytes, &changes);
        entry::reader(&bytes);
    }

    #[test]
    fn any_bytes(bytes in vec(any::<u8>(), 0..400)) {
        entry::reader(&bytes);
        entry::arc(&bytes);
        entry::http(&bytes);
        entry::chunked(&bytes);
    }

    #[test]
    fn any_text(text in "(WARC/1.0|http://a/ 1.2.3.4 20200101000000 x/y [0-9]{1,3}|Content-Length: [0-9]{1,3}|[a-z:; ]{0,9}|HTTP/1.1 200 OK|[0-9a-f]{1,3}|\r|\n|\r\n){0,40}") {
        entry::reader(text.as_bytes());
        entry::arc(text.as_bytes());
        entry::http(text.as_bytes());
        entry::chunked(text.as_bytes());
    }
}

/// Every place where a file can be cut off, and every byte that can go wrong, of small files.
#[test]
fn every_cut_and_every_byte() {
    for bytes in seeds() {
        for at in (0..bytes.len()).step_by(7) {
            entry::reader(&bytes[..at]);
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x55;
            entry::reader(&flipped);
        }
    }
}
