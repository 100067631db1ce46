use super::*;
use crate::harvest::schedule::Every;

const COPENHAGEN: &str = "Europe/Copenhagen";

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn every(count: u32, unit: Unit, at: Option<At>, zone: &str) -> Schedule {
    let [hourly, ..] = Schedule::shipped();
    let schedule = Schedule { every: Every { count, unit }, at, time_zone: zone.to_owned(), ..hourly };
    schedule.check().unwrap();
    schedule
}

fn clock(hour: u8, minute: u8) -> At {
    At { minute, hour: Some(hour), weekday: None, day: None }
}

fn weekly(weekday: u8, hour: u8, minute: u8) -> At {
    At { minute, hour: Some(hour), weekday: Some(weekday), day: None }
}

fn monthly(day: u8, hour: u8, minute: u8) -> At {
    At { minute, hour: Some(hour), weekday: None, day: Some(day) }
}

/// The runs of a harvest made at `made`, none of them late, as many as asked.
fn runs(schedule: &Schedule, made: &str, count: usize) -> Vec<String> {
    let mut at = schedule.first(time(made)).unwrap();
    let mut runs = Vec::new();
    while let Some(due) = at.filter(|_| runs.len() < count) {
        runs.push(due.to_string());
        at = schedule.next(due, runs.len() as u64, due).unwrap().at;
    }
    runs
}

#[test]
fn the_first_run_is_the_first_time_that_fits() {
    let minute = |minute| Some(At { minute, hour: None, weekday: None, day: None });
    for (schedule, made, first) in [
        // Any time: at once, to the second.
        (every(1, Unit::Day, None, "UTC"), "2026-01-01T10:15:30.5Z", "2026-01-01T10:15:30Z"),
        (every(1, Unit::Hour, minute(20), "UTC"), "2026-01-01T10:15:30Z", "2026-01-01T10:20:30Z"),
        (every(1, Unit::Hour, minute(10), "UTC"), "2026-01-01T10:15:30Z", "2026-01-01T11:10:30Z"),
        (every(1, Unit::Day, Some(clock(10, 15)), "UTC"), "2026-01-01T10:15:30Z", "2026-01-01T10:15:30Z"),
        (every(1, Unit::Day, Some(clock(9, 0)), "UTC"), "2026-01-01T10:15:00Z", "2026-01-02T09:00:00Z"),
        // 2026-01-01 is a Thursday; weeks begin on Monday.
        (every(1, Unit::Week, Some(weekly(4, 11, 0)), "UTC"), "2026-01-01T10:00:00Z", "2026-01-01T11:00:00Z"),
        (every(1, Unit::Week, Some(weekly(3, 11, 0)), "UTC"), "2026-01-01T10:00:00Z", "2026-01-07T11:00:00Z"),
        (every(1, Unit::Week, Some(weekly(7, 11, 0)), "UTC"), "2026-01-01T10:00:00Z", "2026-01-04T11:00:00Z"),
        (
            every(1, Unit::Month, Some(monthly(31, 0, 0)), "UTC"),
            "2026-02-01T00:00:00Z",
            "2026-02-28T00:00:00Z",
        ),
        (
            every(1, Unit::Month, Some(monthly(31, 0, 0)), "UTC"),
            "2024-02-29T00:00:01Z",
            "2024-02-29T00:00:01Z",
        ),
        (
            every(1, Unit::Month, Some(monthly(31, 0, 0)), "UTC"),
            "2026-02-28T00:01:00Z",
            "2026-03-31T00:00:00Z",
        ),
        (
            every(1, Unit::Month, Some(monthly(1, 6, 0)), "UTC"),
            "2026-01-31T12:00:00Z",
            "2026-02-01T06:00:00Z",
        ),
    ] {
        assert_eq!(schedule.first(time(made)).unwrap(), Some(time(first)), "{schedule:?} {made}");
    }
}

#[test]
fn runs_follow_each_other_by_the_calendar() {
    for (schedule, made, expected) in [
        (
            every(30, Unit::Minute, None, "UTC"),
            "2026-01-01T23:45:00Z",
            ["2026-01-01T23:45:00Z", "2026-01-02T00:15:00Z", "2026-01-02T00:45:00Z"],
        ),
        (
            every(2, Unit::Week, Some(weekly(1, 8, 0)), "UTC"),
            "2026-01-01T00:00:00Z",
            ["2026-01-05T08:00:00Z", "2026-01-19T08:00:00Z", "2026-02-02T08:00:00Z"],
        ),
        // The 31st is the last day of shorter months, and the 31st again afterwards.
        (
            every(1, Unit::Month, Some(monthly(31, 12, 0)), "UTC"),
            "2026-01-15T00:00:00Z",
            ["2026-01-31T12:00:00Z", "2026-02-28T12:00:00Z", "2026-03-31T12:00:00Z"],
        ),
        // At any time the day of the month is whatever the last run's was.
        (
            every(1, Unit::Month, None, "UTC"),
            "2026-01-31T12:00:00Z",
            ["2026-01-31T12:00:00Z", "2026-02-28T12:00:00Z", "2026-03-28T12:00:00Z"],
        ),
        (
            every(12, Unit::Month, Some(monthly(29, 0, 0)), "UTC"),
            "2024-02-01T00:00:00Z",
            ["2024-02-29T00:00:00Z", "2025-02-28T00:00:00Z", "2026-02-28T00:00:00Z"],
        ),
    ] {
        assert_eq!(runs(&schedule, made, 3), expected, "{schedule:?}");
    }
}

#[test]
fn the_clock_of_the_time_zone_counts_through_summer_time() {
    for (schedule, made, expected) in [
        // 2026-03-29: 02:00 becomes 03:00 in Copenhagen. 02:30 is not there that day and is 03:30.
        (
            every(1, Unit::Day, Some(clock(2, 30)), COPENHAGEN),
            "2026-03-27T22:00:00Z",
            vec!["2026-03-28T01:30:00Z", "2026-03-29T01:30:00Z", "2026-03-30T00:30:00Z"],
        ),
        // 2026-10-25: 03:00 becomes 02:00. 02:30 occurs twice and is taken once, the first time.
        (
            every(1, Unit::Day, Some(clock(2, 30)), COPENHAGEN),
            "2026-10-24T00:00:00Z",
            vec!["2026-10-24T00:30:00Z", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"],
        ),
        // Days are days of the clock, 23 or 25 hours long.
        (
            every(1, Unit::Day, None, COPENHAGEN),
            "2026-03-28T11:00:00Z",
            vec!["2026-03-28T11:00:00Z", "2026-03-29T10:00:00Z", "2026-03-30T10:00:00Z"],
        ),
        // Hours are hours, none left out and none doubled.
        (
            every(1, Unit::Hour, Some(At { minute: 5, hour: None, weekday: None, day: None }), COPENHAGEN),
            "2026-10-24T23:10:00Z",
            vec![
                "2026-10-25T00:05:00Z",
                "2026-10-25T01:05:00Z",
                "2026-10-25T02:05:00Z",
                "2026-10-25T03:05:00Z",
            ],
        ),
        (
            every(1, Unit::Week, Some(weekly(7, 2, 30)), COPENHAGEN),
            "2026-03-23T00:00:00Z",
            vec!["2026-03-29T01:30:00Z", "2026-04-05T00:30:00Z", "2026-04-12T00:30:00Z"],
        ),
        // Midnight that is not there (Beirut, 2026-03-29) is one o'clock.
        (
            every(1, Unit::Day, Some(clock(0, 0)), "Asia/Beirut"),
            "2026-03-28T00:00:00Z",
            vec!["2026-03-28T22:00:00Z", "2026-03-29T21:00:00Z"],
        ),
        // A day that is not there at all (Apia, 2011-12-30) is passed over.
        (
            every(1, Unit::Day, Some(clock(9, 0)), "Pacific/Apia"),
            "2011-12-29T10:00:00Z",
            vec!["2011-12-29T19:00:00Z", "2011-12-30T19:00:00Z", "2011-12-31T19:00:00Z"],
        ),
    ] {
        assert_eq!(runs(&schedule, made, expected.len()), expected, "{schedule:?}");
    }
}

#[test]
fn a_schedule_ends_by_date_or_by_count() {
    let daily = every(1, Unit::Day, Some(clock(12, 0)), "UTC");
    let until = |text: &str| Schedule { ends: Ends::Until(time(text)), ..daily.clone() };
    // A run exactly at the end still begins.
    assert_eq!(runs(&until("2026-01-03T12:00:00Z"), "2026-01-01T00:00:00Z", 9).len(), 3);
    assert_eq!(runs(&until("2026-01-03T11:59:59Z"), "2026-01-01T00:00:00Z", 9).len(), 2);
    // The first run looks at the end, too.
    assert_eq!(runs(&until("2026-01-01T11:00:00Z"), "2026-01-01T00:00:00Z", 9).len(), 0);
    let times = Schedule { ends: Ends::Times(3), ..daily.clone() };
    assert_eq!(runs(&times, "2026-01-01T00:00:00Z", 9).len(), 3);
    let later = Schedule { starts: Some(time("2027-01-01T00:00:00Z")), ..daily };
    assert_eq!(runs(&later, "2026-01-01T00:00:00Z", 1), ["2027-01-01T12:00:00Z"]);
    assert_eq!(runs(&later, "2028-01-01T00:00:00Z", 1), ["2028-01-01T12:00:00Z"]);
}

#[test]
fn missed_runs_are_skipped_and_counted() {
    let daily = every(1, Unit::Day, Some(clock(12, 0)), "UTC");
    let due = time("2026-01-01T12:00:00Z");
    for (now, at, skipped) in [
        ("2026-01-01T12:00:05Z", "2026-01-02T12:00:00Z", 0),
        ("2026-01-02T12:00:00Z", "2026-01-02T12:00:00Z", 0),
        ("2026-01-02T12:00:01Z", "2026-01-03T12:00:00Z", 1),
        ("2026-02-01T00:00:00Z", "2026-02-01T12:00:00Z", 30),
    ] {
        let next = daily.next(due, 1, time(now)).unwrap();
        assert_eq!(next, Next { at: Some(time(at)), skipped }, "{now}");
    }
    // Skipped runs do not count as runs.
    let twice = Schedule { ends: Ends::Times(2), ..daily.clone() };
    assert!(twice.next(due, 1, time("2026-02-01T00:00:00Z")).unwrap().at.is_some());
    assert_eq!(twice.next(due, 2, due).unwrap(), Next::default());
    let until = Schedule { ends: Ends::Until(time("2026-01-05T00:00:00Z")), ..daily };
    assert_eq!(until.next(due, 1, time("2026-02-01T00:00:00Z")).unwrap(), Next { at: None, skipped: 3 });
    // Decades of minutes are counted, not walked.
    let minutes = every(7, Unit::Minute, None, "UTC");
    let next = minutes.next(Timestamp::UNIX_EPOCH, 1, time("2026-01-01T00:00:00Z")).unwrap();
    let at = next.at.unwrap();
    assert!(at >= time("2026-01-01T00:00:00Z") && at < time("2026-01-01T00:07:00Z"), "{at}");
    assert_eq!(next.skipped, (at.as_second() / 420 - 1) as u64);
}

#[test]
fn a_date_set_by_hand_leads_back_to_the_clock() {
    let daily = every(1, Unit::Day, Some(clock(10, 0)), "UTC");
    let set = time("2026-01-01T14:37:00Z");
    // From the hand-set run on: the first time that fits, and one unit more.
    assert_eq!(daily.next(set, 1, set).unwrap().at, Some(time("2026-01-03T10:00:00Z")));
}

mod any_schedule {
    use proptest::prelude::*;

    use super::*;

    fn at(unit: Unit) -> impl Strategy<Value = Option<At>> {
        (any::<bool>(), 0..60u8, 0..24u8, 1..=7u8, 1..=31u8).prop_map(
            move |(fixed, minute, hour, weekday, day)| {
                let with = |hour, weekday, day| Some(At { minute, hour, weekday, day });
                match unit {
                    _ if !fixed => None,
                    Unit::Minute => None,
                    Unit::Hour => with(None, None, None),
                    Unit::Day => with(Some(hour), None, None),
                    Unit::Week => with(Some(hour), Some(weekday), None),
                    Unit::Month => with(Some(hour), None, Some(day)),
                }
            },
        )
    }

    fn schedules() -> impl Strategy<Value = Schedule> {
        let zones =
            ["UTC", COPENHAGEN, "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Apia"];
        (proptest::sample::select(Unit::ALL), 1..40u32, proptest::sample::select(zones.to_vec()))
            .prop_flat_map(|(unit, count, zone)| at(unit).prop_map(move |at| every(count, unit, at, zone)))
    }

    proptest! {
        #[test]
        fn the_next_run_is_later_than_the_last_and_not_before_now(
            schedule in schedules(), made in 0..4_000_000_000i64, late in 0..100_000_000i64,
        ) {
            let made = Timestamp::from_second(made).unwrap();
            let first = schedule.first(made).unwrap().unwrap();
            prop_assert!(first >= made);
            let now = Timestamp::from_second(first.as_second() + late).unwrap();
            let next = schedule.next(first, 1, now).unwrap().at.unwrap();
            prop_assert!(next > first && next >= now);
            // Nobody waits longer than one more period, a long month and an hour of summer time.
            let longest = Span::new().days(i64::from(schedule.every.count) * 31 + 32);
            let bound = now.to_zoned(TimeZone::UTC).checked_add(longest).unwrap().timestamp();
            prop_assert!(next <= bound, "{now} {next}");
        }
    }
}
