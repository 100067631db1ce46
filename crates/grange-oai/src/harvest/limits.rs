//! Where a harvest ends although its repository does not.

use std::time::Duration;

use super::position::Position;
use crate::settings::Settings;

/// A whole harvest in which more than this share of all records vanished is not believed.
const VANISHED_MAX: f64 = 0.2;

/// Which limit is reached, as a sentence.
pub(super) fn reached(settings: &Settings, position: &Position, lasted: Duration) -> Option<String> {
    let records = position.records;
    if position.bytes > settings.harvest_bytes_max.0 {
        Some(format!("the harvest was ended: more than {} were received", settings.harvest_bytes_max))
    } else if position.pages >= settings.pages_max {
        Some(format!("the harvest was ended: {} pages were taken", position.pages))
    } else if records >= settings.records_max {
        Some(format!("the harvest was ended: {records} records were taken"))
    } else if lasted > settings.harvest_time_max.0 {
        Some(format!("the harvest was ended: it lasted longer than {}", settings.harvest_time_max))
    } else {
        None
    }
}

/// Why a whole list is not believed to be all there is, where it brought so many of the active records that are held.
pub(super) fn unbelievable(active: u64, seen: u64) -> Option<String> {
    let missing = active.saturating_sub(seen);
    (missing as f64 > active as f64 * VANISHED_MAX)
        .then(|| format!("{seen} of {active} records came: too few to believe that the others are gone"))
}

#[cfg(test)]
mod tests {
    use grange_base::{Period, Size};
    use jiff::Timestamp;

    use super::super::position::Asked;
    use super::*;

    #[test]
    fn each_limit_ends_a_harvest_and_says_which() {
        let settings = Settings {
            harvest_bytes_max: Size(1_000),
            pages_max: 10,
            records_max: 100,
            harvest_time_max: Period::from_secs(60),
            ..Settings::default()
        };
        let start = Position::start(Asked::everything(), None, 1, Timestamp::UNIX_EPOCH);
        let minute = Duration::from_secs(60);
        assert_eq!(reached(&settings, &start, minute), None);
        for (position, lasted, word) in [
            (Position { bytes: 1_001, ..start.clone() }, minute, "received"),
            (Position { pages: 10, ..start.clone() }, minute, "pages"),
            (Position { records: 100, ..start.clone() }, minute, "records"),
            (start, Duration::from_secs(61), "longer"),
        ] {
            let told = reached(&settings, &position, lasted).unwrap();
            assert!(told.contains(word), "{told}");
        }
    }

    #[test]
    fn a_fifth_may_vanish_and_no_more() {
        for (active, seen, believed) in [
            (0, 0, true),
            (100, 100, true),
            (100, 80, true),
            (100, 79, false),
            (100, 0, false),
            (10, 99, true),
        ] {
            assert_eq!(unbelievable(active, seen).is_none(), believed, "{seen} of {active}");
        }
    }
}
