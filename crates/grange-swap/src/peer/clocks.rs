//! The clocks of servers, compared when they meet and every now and then: tickets of redirects are made by one and judged by
//! another.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// Between two comparisons with one peer.
pub(crate) const COMPARE_EVERY: Duration = Duration::from_secs(600);
/// Clocks that are set by the network differ by less. A ticket lasts 5 minutes.
const MOST: Duration = Duration::from_secs(5);

/// How far the clock of a peer is ahead of ours, at least: it was read between two moments of ours.
pub(crate) fn ahead(asked: Timestamp, theirs: Timestamp, answered: Timestamp) -> SignedDuration {
    if theirs > answered {
        theirs.duration_since(answered)
    } else if theirs < asked {
        theirs.duration_since(asked)
    } else {
        SignedDuration::ZERO
    }
}

pub(crate) fn report(peer: &str, ahead: SignedDuration) {
    if ahead.unsigned_abs() <= MOST {
        return;
    }
    let seconds = ahead.unsigned_abs().as_secs();
    let side = if ahead.is_negative() { "behind" } else { "ahead of" };
    tracing::warn!(
        peer,
        "the clock of this peer is {seconds} s {side} ours: set the clocks of both; redirected requests are refused from 300 s on"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_difference_that_the_way_does_not_explain_counts() {
        let at = |second| Timestamp::from_second(second).unwrap();
        for (asked, theirs, answered, expected) in [
            (100, 100, 100, 0),
            (100, 103, 106, 0),
            (100, 106, 106, 0),
            (100, 110, 106, 4),
            (100, 93, 106, -7),
            (100, 3700, 101, 3599),
        ] {
            assert_eq!(
                ahead(at(asked), at(theirs), at(answered)).as_secs(),
                expected,
                "{asked} {theirs} {answered}"
            );
        }
    }
}
