//! How many objects a configuration is expected to yield, from its limits and its history.
//!
//! The rule is that of the documents (§7.2.3.2) in the reading of NetarchiveSuite's code, except that both error
//! factors are really used. Integer arithmetic throughout.

use grange_model::harvest::{Best, Limit, Limits};

use crate::settings::Expectation;

/// A harvest with fewer objects says little about how large an object is.
const TELLING_OBJECTS_MIN: u64 = 50;

/// Objects to expect of a configuration with these limits in a harvest with those.
pub fn expected_objects(
    settings: &Expectation,
    harvest: Limits,
    configuration: Limits,
    best: Option<Best>,
) -> u64 {
    let per_object = bytes_per_object(settings, best);
    let within = |limits: Limits| {
        let by_bytes = limits.bytes.get().map(|bytes| bytes.unsigned_abs() / per_object);
        let by_objects = limits.objects.get().map(i64::unsigned_abs);
        [by_bytes, by_objects].into_iter().flatten().min()
    };
    let maximum = within(harvest).or_else(|| within(configuration)).unwrap_or(settings.max_domain_size);
    // Nothing is divided by an error factor of 0: it is taken for 1, which expects all there is room for.
    let grown = |minimum: u64, factor: u64| minimum + maximum.saturating_sub(minimum) / factor.max(1);
    let expected = match best {
        Some(best) if best.complete => grown(best.objects, settings.error_factor_prev_result),
        Some(best) => grown(best.objects, settings.error_factor_best_guess),
        None => unknown(settings, configuration.objects),
    };
    let own = within(configuration).unwrap_or(u64::MAX);
    expected.min(maximum).min(own)
}

/// A configuration that was never harvested.
fn unknown(settings: &Expectation, objects: Limit) -> u64 {
    objects.get().map_or(settings.max_domain_size, |limit| settings.max_domain_size.min(limit.unsigned_abs()))
}

fn bytes_per_object(settings: &Expectation, best: Option<Best>) -> u64 {
    let average = settings.expected_average_bytes_per_object.max(1);
    match best.filter(|best| best.objects > 0) {
        None => average,
        Some(best) => {
            let seen = (best.bytes / best.objects).max(1);
            if seen < average && best.objects < TELLING_OBJECTS_MIN { average } else { seen }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(objects: i64, bytes: i64) -> Limits {
        Limits {
            objects: Limit::new(objects).unwrap(),
            bytes: Limit::new(bytes).unwrap(),
            running_s: Limit::NONE,
        }
    }

    fn best(objects: u64, bytes: u64, complete: bool) -> Best {
        Best { objects, bytes, complete }
    }

    #[test]
    fn expectations_follow_the_documents() {
        let settings = Expectation::default();
        let none = limits(-1, -1);
        for (harvest, own, history, expected, why) in [
            // Never harvested: the artificial limit, or the configuration's own.
            (none, none, None, 5000, "max_domain_size without any limit"),
            (none, limits(120, -1), None, 120, "the configuration's limit on objects"),
            (none, limits(9000, -1), None, 5000, "no more than max_domain_size"),
            (none, limits(-1, 1_000_000_000), None, 5000, "a gigabyte is 26,315 objects of 38,000 bytes"),
            (none, limits(-1, 38_000_000), None, 1000, "capped by the bytes: 38 MB are 1,000 objects"),
            (limits(-1, 3_800_000), limits(-1, 1_000_000_000), None, 100, "capped by the harvest's bytes"),
            (limits(50, -1), none, None, 50, "capped by the harvest's objects"),
            (none, limits(-1, 0), None, 0, "nothing may be fetched"),
            // Completed before: a tenth of the room is expected to be used.
            (none, none, Some(best(1000, 38_000_000, true)), 1400, "1000 + (5000-1000)/10"),
            (limits(11_000, -1), none, Some(best(1000, 38_000_000, true)), 2000, "1000 + (11000-1000)/10"),
            (
                none,
                limits(-1, 1_000_000_000),
                Some(best(1000, 10_000_000, true)),
                10_900,
                "objects of 10,000 bytes: 1000 + 99000/10",
            ),
            // Never completed: half of it.
            (none, none, Some(best(1000, 38_000_000, false)), 3000, "1000 + (5000-1000)/2"),
            (limits(11_000, -1), none, Some(best(1000, 38_000_000, false)), 6000, "1000 + (11000-1000)/2"),
            // Fewer than fifty objects do not make objects small, but may make them large.
            (limits(-1, 3_800_000), none, Some(best(49, 4900, false)), 74, "38,000 each: 49 + (100-49)/2"),
            (limits(-1, 3_800_000), none, Some(best(50, 5000, true)), 3845, "100 each: 50 + (38000-50)/10"),
            (
                limits(-1, 10_000_000),
                none,
                Some(best(2, 2_000_000, true)),
                2,
                "1,000,000 each: 2 + (10-2)/10",
            ),
            // The cap: limits were lowered since.
            (
                limits(500, -1),
                none,
                Some(best(1000, 38_000_000, true)),
                500,
                "no more than the harvest allows",
            ),
            (
                none,
                limits(300, -1),
                Some(best(1000, 38_000_000, true)),
                300,
                "no more than the configuration allows",
            ),
            (
                limits(5000, -1),
                limits(300, -1),
                Some(best(200, 7_600_000, true)),
                300,
                "the configuration's own is tighter",
            ),
            (
                limits(-1, 38_000_000),
                limits(-1, 3_800_000),
                Some(best(10, 380_000, false)),
                100,
                "own bytes are tighter",
            ),
            // Harvested before, and nothing was there.
            (none, none, Some(best(0, 0, true)), 500, "0 + 5000/10"),
            (none, none, Some(best(0, 0, false)), 2500, "0 + 5000/2"),
        ] {
            assert_eq!(expected_objects(&settings, harvest, own, history), expected, "{why}");
        }
    }

    #[test]
    fn every_named_setting_counts() {
        let none = limits(-1, -1);
        let change = |change: fn(&mut Expectation)| {
            let mut settings = Expectation::default();
            change(&mut settings);
            settings
        };
        let done = Some(best(1000, 38_000_000, true));
        let undone = Some(best(1000, 38_000_000, false));
        for (settings, harvest, history, expected) in [
            (change(|s| s.max_domain_size = 9000), none, None, 9000),
            (change(|s| s.expected_average_bytes_per_object = 1000), limits(-1, 38_000), None, 38),
            (change(|s| s.error_factor_prev_result = 4), none, done, 2000),
            (change(|s| s.error_factor_prev_result = 4), none, undone, 3000),
            (change(|s| s.error_factor_best_guess = 4), none, undone, 2000),
            (change(|s| s.error_factor_best_guess = 4), none, done, 1400),
            (change(|s| s.error_factor_best_guess = 0), none, undone, 5000),
            (change(|s| s.expected_average_bytes_per_object = 0), limits(-1, 38), None, 38),
        ] {
            assert_eq!(
                expected_objects(&settings, harvest, none, history),
                expected,
                "{settings:?} {history:?}"
            );
        }
    }
}
