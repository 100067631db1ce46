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

/// Joins sorted rows: a line of a log with the one place that index lines give for its URL and second. Where there is no
/// such place, or several places or payloads share that second, any place could be that of another payload: those lines
/// are counted and give no entry.
pub(super) fn join(
    rows: &[[u8; LOOSE_BYTES]],
    take: &mut dyn FnMut(Entry) -> io::Result<()>,
) -> io::Result<u64> {
    let mut unplaced = 0;
    for same_url in rows.chunk_by(|a, b| a[..16] == b[..16]) {
        let placed = same_url.partition_point(|row| row[16] == 0);
        let (places, logged) = same_url.split_at(placed);
        for lines in logged.chunk_by(|a, b| second_of(a) == second_of(b)) {
            let mut found: Vec<_> =
                places.iter().filter(|place| second_of(place) == second_of(&lines[0])).collect();
            // Metadata files of several attempts may list one file twice.
            found.dedup();
            let one_payload = lines.iter().all(|line| line[KEY_AT] == lines[0][KEY_AT]);
            let entry = match (&found[..], one_payload) {
                ([place], true) => entry_at(place, &lines[0]),
                _ => None,
            };
            match entry {
                Some(entry) => take(entry)?,
                None => unplaced += lines.len() as u64,
            }
        }
    }
    Ok(unplaced)
}

/// Where the key is in the row of a log line.
const KEY_AT: std::ops::Range<usize> = 25..25 + KEY_BYTES;

/// Index lines know seconds; so two captures are distinguished by the second.
fn second_of(row: &[u8; LOOSE_BYTES]) -> u64 {
    match Loose::from_bytes(row) {
        Loose::Placed { date_ms, .. } | Loose::Logged { date_ms, .. } => date_ms / 1000,
    }
}

/// The capture of a log line at this place; the log knows the moment best.
fn entry_at(place: &[u8; LOOSE_BYTES], line: &[u8; LOOSE_BYTES]) -> Option<Entry> {
    let (Loose::Placed { file, offset, .. }, Loose::Logged { date_ms, key }) =
        (Loose::from_bytes(place), Loose::from_bytes(line))
    else {
        return None;
    };
    Entry::new(key, file, offset, Timestamp::from_millisecond(date_ms as i64).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_finds_the_one_place_of_its_second_or_none() {
        let key = |n| Key([n; KEY_BYTES]);
        let placed = |date_ms, file| Loose::Placed { date_ms, file, offset: 10 };
        let logged = |date_ms, n| Loose::Logged { date_ms, key: key(n) };
        let mut rows = vec![
            placed(1000, 1).to_bytes("a"),
            placed(5000, 2).to_bytes("a"),
            placed(5000, 2).to_bytes("a"),
            placed(9000, 3).to_bytes("a"),
            logged(5432, 1).to_bytes("a"),
            // The newest place of this URL may be that of another payload.
            logged(77_000, 2).to_bytes("a"),
            logged(1, 3).to_bytes("nowhere"),
            placed(3000, 4).to_bytes("b"),
            // Two places or two payloads in one second: which belongs to which is not known.
            placed(1000, 5).to_bytes("two places"),
            placed(1000, 6).to_bytes("two places"),
            logged(1234, 4).to_bytes("two places"),
            placed(1000, 7).to_bytes("two payloads"),
            logged(1100, 5).to_bytes("two payloads"),
            logged(1900, 6).to_bytes("two payloads"),
            // One capture that two logs tell.
            placed(1000, 8).to_bytes("told twice"),
            logged(1100, 7).to_bytes("told twice"),
            logged(1100, 7).to_bytes("told twice"),
        ];
        rows.sort_unstable();
        let mut found = Vec::new();
        let unplaced = join(&rows, &mut |entry| {
            found.push((entry.key.0[0], entry.file, entry.date_ms));
            Ok(())
        });
        found.sort_unstable();
        assert_eq!(unplaced.unwrap(), 5);
        assert_eq!(found, [(1, 2, 5432), (7, 8, 1100)]);
    }
}
