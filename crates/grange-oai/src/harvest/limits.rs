//! Where a harvest ends although its repository does not.

use std::time::Duration;

use grange_base::Clock;
use jiff::Timestamp;

use super::position::Position;
use crate::settings::Settings;

/// At most one in this number of active records vanishes unless a person accepts more.
const VANISHED_ONE_IN: u64 = 5;

/// Held records that are asked for one by one, at most: an hour at three in a second.
const QUESTIONS_MAX: u64 = 10_000;

/// How long a harvest lasts.
pub(super) fn lasted(clock: &Clock, began: Timestamp) -> Duration {
    Duration::try_from(clock.now().duration_since(began)).unwrap_or_default()
}

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

/// Why records that a list lacks are not deleted: `unseen` of the `active` ones that are held.
pub(super) fn implausible_deletions(active: u64, unseen: u64) -> Option<String> {
    (unseen > active / VANISHED_ONE_IN).then(|| {
        format!(
            "the list lacks {unseen} of {active} records that are held, more than a fifth: none was deleted; if they \
             are gone, harvest again with --accept-deletions"
        )
    })
}

/// Why the repository is not asked for each of the `unseen` records.
pub(super) fn too_many_questions(unseen: u64) -> Option<String> {
    (unseen > QUESTIONS_MAX).then(|| format!("more than {QUESTIONS_MAX} are not asked for one by one"))
}

/// The warning of records whose existence is not known: `unseen` held ones did not come and were asked for in vain, for the
/// reason `why`.
pub(super) fn unknown_existence(unseen: u64, why: &str) -> String {
    format!(
        "{unseen} records that are held did not come, the repository does not say whether they exist, and none of them \
         was deleted: {why}; if they are gone, harvest again with --accept-deletions"
    )
}

/// The warning of lists that lack records for the reason `why`.
pub(super) fn start_stays(why: &str) -> String {
    format!("{why}; the start of --incremental stays where it was, once")
}

/// The warning of a list that is complete and doubtful: `unseen` held records did not come and may exist, for the reason
/// `doubt`. `accepted`: a person says that they are gone.
pub(super) fn doubtful_deletions(unseen: u64, doubt: &str, accepted: bool) -> String {
    if accepted {
        format!(
            "{unseen} records that are held did not come and are deleted, as --accept-deletions says; some of them may \
             still exist: {doubt}"
        )
    } else {
        format!(
            "{unseen} records that are held did not come, and none was deleted: {doubt}; if they are gone, harvest again \
             with --accept-deletions"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::position::Asked;
    use super::*;
    use grange_base::{Period, Size};

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
        for (active, unseen, plausible) in [
            (0, 0, true),
            (100, 0, true),
            (100, 20, true),
            (100, 21, false),
            (100, 100, false),
            (5, 1, true),
            (4, 1, false),
            (u64::MAX, u64::MAX / 2, false),
        ] {
            assert_eq!(implausible_deletions(active, unseen).is_none(), plausible, "{unseen} of {active}");
        }
    }
}
