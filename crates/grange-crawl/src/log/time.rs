//! Times as logs write them: ISO 8601 in UTC, and the 17 digits of the fetch column.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;

/// `2026-11-16T00:51:01.123Z`.
pub(crate) fn push_millis(out: &mut Vec<u8>, time: Timestamp) {
    let at = Offset::UTC.to_datetime(time);
    push_iso(out, at);
    out.push(b'.');
    push_digits(out, u32::from(at.millisecond().unsigned_abs()), 3);
    out.push(b'Z');
}

/// `2026-11-16T00:51:01Z`.
pub(crate) fn push_seconds(out: &mut Vec<u8>, time: Timestamp) {
    push_iso(out, Offset::UTC.to_datetime(time));
    out.push(b'Z');
}

/// `20261116005101123`.
pub(super) fn push_seventeen(out: &mut Vec<u8>, time: Timestamp) {
    let at = Offset::UTC.to_datetime(time);
    for (number, width) in fields(at) {
        push_digits(out, number, width);
    }
    push_digits(out, u32::from(at.millisecond().unsigned_abs()), 3);
}

/// Reads the 17 digits; also the 14 of older logs.
pub fn seventeen(text: &str) -> Option<Timestamp> {
    let digits = |range: std::ops::Range<usize>| -> Option<i16> {
        let part = text.get(range)?;
        part.bytes().all(|b| b.is_ascii_digit()).then(|| part.parse().ok())?
    };
    let small = |range| digits(range).and_then(|n| i8::try_from(n).ok());
    let millis = match text.len() {
        14 => 0,
        17 => digits(14..17)?,
        _ => return None,
    };
    let at = DateTime::new(
        digits(0..4)?,
        small(4..6)?,
        small(6..8)?,
        small(8..10)?,
        small(10..12)?,
        small(12..14)?,
        i32::from(millis) * 1_000_000,
    )
    .ok()?;
    Offset::UTC.to_timestamp(at).ok()
}

fn push_iso(out: &mut Vec<u8>, at: DateTime) {
    for ((number, width), after) in fields(at).into_iter().zip(["-", "-", "T", ":", ":", ""]) {
        push_digits(out, number, width);
        out.extend_from_slice(after.as_bytes());
    }
}

fn fields(at: DateTime) -> [(u32, u32); 6] {
    let small = |n: i8| u32::from(n.unsigned_abs());
    [
        // No crawl happened before the year 0; the sign would be a fifth column.
        (u32::from(at.year().unsigned_abs()), 4),
        (small(at.month()), 2),
        (small(at.day()), 2),
        (small(at.hour()), 2),
        (small(at.minute()), 2),
        (small(at.second()), 2),
    ]
}

fn push_digits(out: &mut Vec<u8>, number: u32, width: u32) {
    for place in (0..width).rev() {
        out.push(b'0' + (number / 10_u32.pow(place) % 10) as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_to_the_millisecond() {
        let time: Timestamp = "2026-01-02T03:04:05.006789Z".parse().unwrap();
        let mut out = Vec::new();
        push_millis(&mut out, time);
        out.push(b' ');
        push_seconds(&mut out, time);
        out.push(b' ');
        push_seventeen(&mut out, time);
        assert_eq!(out, b"2026-01-02T03:04:05.006Z 2026-01-02T03:04:05Z 20260102030405006");
        assert_eq!(seventeen("20260102030405006"), "2026-01-02T03:04:05.006Z".parse().ok());
        assert_eq!(seventeen("20260102030405"), "2026-01-02T03:04:05Z".parse().ok());
    }

    #[test]
    fn what_is_no_time_is_none() {
        for text in
            ["", "2026", "2026010203040500x", "20261302030405006", "+0260102030405006", "2026010203040500æ"]
        {
            assert_eq!(seventeen(text), None, "{text}");
        }
    }
}
