//! Where a queued URL stands: its key on disk sorts as the queue is served.
//!
//! ```text
//! in line    queue u32 | class u8 (0..=250) | hops u8 | sequence u64          14 bytes, big endian
//! later      queue u32 | 0xFF | time u64 (ms since 1970) | sequence u64       21 bytes
//! ```
//!
//! Class 0 is for prerequisites. Sequence numbers are never used twice, so neither are keys.

/// A place in one queue. The order of its fields is the order of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Key {
    class: u8,
    /// Hops, or the time in milliseconds for what waits.
    rank: u64,
    sequence: u64,
}

const LATER: u8 = 0xFF;
const IN_LINE_BYTES: usize = 14;
const LATER_BYTES: usize = 21;

/// The longest key with its length; on the stack, since every URL needs a few.
#[derive(Clone, Copy)]
pub(super) struct KeyBytes {
    bytes: [u8; LATER_BYTES],
    len: usize,
}

impl AsRef<[u8]> for KeyBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl Key {
    /// Before every other of its queue.
    pub(super) const FIRST: Key = Key { class: 0, rank: 0, sequence: 0 };

    pub(super) fn in_line(class: u8, hops: u32, sequence: u64) -> Key {
        Key { class: class.min(250), rank: u64::from(hops.min(255)), sequence }
    }

    pub(super) fn later(millis: i64, sequence: u64) -> Key {
        Key { class: LATER, rank: millis.max(0).unsigned_abs(), sequence }
    }

    pub(super) fn is_prerequisite(self) -> bool {
        self.class == 0
    }

    /// When it may be tried again, for what waits.
    pub(super) fn waits_until(self) -> Option<i64> {
        (self.class == LATER).then(|| i64::try_from(self.rank).unwrap_or(i64::MAX))
    }

    pub(super) fn sequence(self) -> u64 {
        self.sequence
    }

    /// The next possible place.
    pub(super) fn after(self) -> Key {
        Key { sequence: self.sequence.saturating_add(1), ..self }
    }

    pub(super) fn bytes(self, queue: u32) -> KeyBytes {
        let mut bytes = [0; LATER_BYTES];
        bytes[..4].copy_from_slice(&queue.to_be_bytes());
        bytes[4] = self.class;
        let len = if self.class == LATER {
            bytes[5..13].copy_from_slice(&self.rank.to_be_bytes());
            bytes[13..21].copy_from_slice(&self.sequence.to_be_bytes());
            LATER_BYTES
        } else {
            bytes[5] = self.rank as u8;
            bytes[6..14].copy_from_slice(&self.sequence.to_be_bytes());
            IN_LINE_BYTES
        };
        KeyBytes { bytes, len }
    }

    pub(super) fn read(bytes: &[u8]) -> Option<(u32, Key)> {
        let number = |from: usize, to: usize| Some(u64::from_be_bytes(bytes.get(from..to)?.try_into().ok()?));
        let queue = u32::from_be_bytes(bytes.get(..4)?.try_into().ok()?);
        let class = *bytes.get(4)?;
        let key = match (class, bytes.len()) {
            (LATER, LATER_BYTES) => Key { class, rank: number(5, 13)?, sequence: number(13, 21)? },
            (0..=250, IN_LINE_BYTES) => Key { class, rank: u64::from(bytes[5]), sequence: number(6, 14)? },
            _ => return None,
        };
        Some((queue, key))
    }
}

/// All that stands in line in `queue` from `floor` on.
pub(super) fn in_line_from(queue: u32, floor: Key) -> (KeyBytes, [u8; 5]) {
    (floor.bytes(queue), later_start(queue))
}

/// All that waits in `queue`: from here up to the next queue.
pub(super) fn later_start(queue: u32) -> [u8; 5] {
    let [a, b, c, d] = queue.to_be_bytes();
    [a, b, c, d, LATER]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn keys() -> impl Strategy<Value = (u32, Key)> {
        let key = prop_oneof![
            (any::<u8>(), any::<u32>(), any::<u64>())
                .prop_map(|(class, hops, seq)| Key::in_line(class, hops, seq)),
            (0..i64::MAX, any::<u64>()).prop_map(|(millis, seq)| Key::later(millis, seq)),
        ];
        (any::<u32>(), key)
    }

    proptest! {
        #[test]
        fn bytes_sort_as_keys_do_and_are_read_back(a in keys(), b in keys()) {
            let (left, right) = (a.1.bytes(a.0), b.1.bytes(b.0));
            prop_assert_eq!(left.as_ref().cmp(right.as_ref()), a.cmp(&b));
            prop_assert_eq!(Key::read(left.as_ref()), Some(a));
        }

        #[test]
        fn other_bytes_are_no_key(bytes in proptest::collection::vec(any::<u8>(), 0..30)) {
            if let Some((queue, key)) = Key::read(&bytes) {
                let again = key.bytes(queue);
                prop_assert_eq!(again.as_ref(), &bytes[..]);
            }
        }
    }

    #[test]
    fn what_waits_stands_behind_what_is_in_line() {
        let (from, to) = in_line_from(7, Key::FIRST);
        let last = Key::in_line(255, 999, u64::MAX).bytes(7);
        assert!(from.as_ref() < last.as_ref() && last.as_ref() < &to[..]);
        assert!(&to[..] < Key::later(0, 0).bytes(7).as_ref());
        assert!(Key::later(i64::MAX, u64::MAX).bytes(7).as_ref() < Key::FIRST.bytes(8).as_ref());
    }
}
