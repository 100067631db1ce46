//! Logs that do not say where their records lie (those of Heritrix and NetarchiveSuite) are joined with index lines of
//! the same URL.

use std::io;

use jiff::Timestamp;

use super::entry::{Entry, KEY_BYTES, Key};

/// Hash of the URL, kind, date, then what the kind brings: a key, or a place.
pub(super) const LOOSE_BYTES: usize = 16 + 1 + 8 + KEY_BYTES + 4 + 8;

/// Half of what is known of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loose {
    /// A line of an index: where a record lies.
    Placed { date_ms: u64, file: u32, offset: u64 },
    /// A line of a log: what was captured.
    Logged { date_ms: u64, key: Key },
}

fn url_hash(url: &str) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&blake3::hash(url.as_bytes()).as_bytes()[..16]);
    bytes
}

impl Loose {
    /// Sorts by URL, places before lines of logs.
    pub(super) fn to_bytes(self, url: &str) -> [u8; LOOSE_BYTES] {
        let mut bytes = [0; LOOSE_BYTES];
        bytes[..16].copy_from_slice(&url_hash(url));
        let date = match self {
            Loose::Placed { date_ms, file, offset } => {
                bytes[37..41].copy_from_slice(&file.to_be_bytes());
                bytes[41..49].copy_from_slice(&offset.to_be_bytes());
                date_ms
            }
            Loose::Logged { date_ms, key } => {
                bytes[16] = 1;
                bytes[25..37].copy_from_slice(&key.0);
                date_ms
            }
        };
        bytes[17..25].copy_from_slice(&date.to_be_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8; LOOSE_BYTES]) -> Loose {
        let number = |range: std::ops::Range<usize>| {
            bytes[range].iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte))
        };
        let date_ms = number(17..25);
        if bytes[16] == 0 {
            return Loose::Placed { date_ms, file: number(37..41) as u32, offset: number(41..49) };
        }
        let mut key = [0; KEY_BYTES];
        key.copy_from_slice(&bytes[25..37]);
        Loose::Logged { date_ms, key: Key(key) }
    }
}

/// Joins sorted rows: every line of a log with the place of the same second, else with the newest of its URL.
pub(super) fn join(
    rows: &[[u8; LOOSE_BYTES]],
    take: &mut dyn FnMut(Entry) -> io::Result<()>,
) -> io::Result<u64> {
    let mut unplaced = 0;
    for same_url in rows.chunk_by(|a, b| a[..16] == b[..16]) {
        let placed = same_url.partition_point(|row| row[16] == 0);
        let (places, logged) = same_url.split_at(placed);
        let places: Vec<_> = places.iter().map(Loose::from_bytes).collect();
        for row in logged {
            let Loose::Logged { date_ms, key } = Loose::from_bytes(row) else { continue };
            let second = |place: &&Loose| matches!(place, Loose::Placed { date_ms: at, .. } if at / 1000 == date_ms / 1000);
            let found = places.iter().find(second).or(places.last());
            let Some(Loose::Placed { date_ms: at, file, offset }) = found else {
                unplaced += 1;
                continue;
            };
            // Index lines know seconds; where they mean the same moment the log knows it better.
            let date_ms = if at / 1000 == date_ms / 1000 { date_ms } else { *at };
            let date = Timestamp::from_millisecond(date_ms as i64).unwrap_or_default();
            match Entry::new(key, *file, *offset, date) {
                Some(entry) => take(entry)?,
                None => unplaced += 1,
            }
        }
    }
    Ok(unplaced)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_finds_the_place_of_its_second_or_the_newest() {
        let key = |n| Key([n; KEY_BYTES]);
        let placed = |date_ms, file| Loose::Placed { date_ms, file, offset: 10 };
        let mut rows = vec![
            placed(1000, 1).to_bytes("a"),
            placed(5000, 2).to_bytes("a"),
            placed(9000, 3).to_bytes("a"),
            Loose::Logged { date_ms: 5432, key: key(1) }.to_bytes("a"),
            Loose::Logged { date_ms: 77_000, key: key(2) }.to_bytes("a"),
            Loose::Logged { date_ms: 1, key: key(3) }.to_bytes("nowhere"),
            placed(3000, 4).to_bytes("b"),
        ];
        rows.sort_unstable();
        let mut found = Vec::new();
        let unplaced = join(&rows, &mut |entry| {
            found.push((entry.key.0[0], entry.file, entry.date_ms));
            Ok(())
        });
        assert_eq!(unplaced.unwrap(), 1);
        assert_eq!(found, [(1, 2, 5432), (2, 3, 9000)]);
    }
}
