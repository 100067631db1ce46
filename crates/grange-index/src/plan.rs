//! Which segments to merge next.

use std::ops::Range;

/// Fewer are not worth rewriting.
const RUNS_MIN: usize = 4;

/// Every lookup asks each segment's filter; beyond this many it shows.
const SEGMENTS_MAX: usize = 12;

/// The segments to merge, given their sizes from old to new; `None` if all is well.
///
/// Neighbours only, so that newer stays newer. From the newest back, a segment joins as long as it is not larger than
/// all that joined before it together: each capture is rewritten about once per doubling of the index.
pub(crate) fn plan(bytes: &[u64]) -> Option<Range<usize>> {
    let mut from = bytes.len();
    let mut joined = 0;
    while let Some(older) = from.checked_sub(1) {
        if joined > 0 && bytes[older] > joined {
            break;
        }
        joined += bytes[older];
        from = older;
    }
    let many = bytes.len() - from;
    if many >= RUNS_MIN {
        return Some(from..bytes.len());
    }
    if bytes.len() > SEGMENTS_MAX {
        return Some(bytes.len() - RUNS_MIN.max(many)..bytes.len());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equals_are_merged_and_giants_left_alone() {
        for (bytes, merged) in [
            (&[][..], None),
            (&[5], None),
            (&[5, 5, 5], None),
            (&[5, 5, 5, 5], Some(0..4)),
            (&[1000, 5, 5, 5], None),
            (&[1000, 5, 5, 5, 5], Some(1..5)),
            (&[1000, 20, 5, 5, 5, 5], Some(1..6)),
            (&[1000, 40, 5, 5, 5, 5], Some(2..6)),
            (&[9000, 4000, 2000, 900, 400, 190, 90, 40, 19, 9, 4, 2, 1], Some(9..13)),
        ] {
            assert_eq!(plan(bytes), merged, "{bytes:?}");
        }
    }

    #[test]
    fn many_small_ones_are_rewritten_a_few_times_each() {
        let (mut segments, mut written) = (Vec::new(), 0);
        for _ in 0..10_000 {
            segments.extend([1]);
            while let Some(range) = plan(&segments) {
                let sum: u64 = segments[range.clone()].iter().sum();
                segments.splice(range, [sum]);
                written += sum;
            }
        }
        assert!(segments.len() <= SEGMENTS_MAX, "{segments:?}");
        assert!(written < 10_000 * 12, "{written}");
    }
}
