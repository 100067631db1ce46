//! Behaviour over days, with an injected clock: refreshes that fail, outages, long silences.

use jiff::{SignedDuration, Timestamp};

use super::{Answer, Extent, HostRobots, Policy, Settings, Standing, answer};

const GOOD: Answer<'static> = Answer::Http { status: 200, body: b"user-agent: *\ndisallow: /x" };
const BROKEN: Answer<'static> = Answer::Http { status: 503, body: b"" };

fn at(minutes: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000).unwrap() + SignedDuration::from_mins(minutes)
}

fn host(answers: &[(i64, Answer<'_>)]) -> HostRobots {
    let mut host = HostRobots::default();
    for (minute, answer) in answers {
        host.learn(*answer, "FooBot", at(*minute), &Settings::default());
    }
    host
}

/// What counts: rules, nothing (`Unknown`) or a prohibition.
fn word(standing: Standing<'_>) -> &'static str {
    match standing {
        Standing::Rules(_) => "rules",
        Standing::DisallowAll => "disallow all",
        Standing::Unknown => "unknown",
    }
}

const DAY: i64 = 24 * 60;

#[test]
fn the_file_is_asked_for_whenever_it_is_due() {
    /// Answers so far, minute; what counts then, whether to ask if robots.txt is obeyed, and if it is ignored.
    type Case = (&'static [(i64, Answer<'static>)], i64, &'static str, bool, bool);
    let cases: &[Case] = &[
        (&[], 0, "unknown", true, true),
        (&[(0, GOOD)], 1, "rules", false, false),
        (&[(0, GOOD)], DAY - 1, "rules", false, false),
        (&[(0, GOOD)], DAY, "unknown", true, true),
        // One refresh failed: the copy counts, and the file is asked for again after a minute, not after a day.
        (&[(0, GOOD), (DAY, BROKEN)], DAY, "rules", false, false),
        (&[(0, GOOD), (DAY, BROKEN)], DAY + 1, "rules", true, true),
        (&[(0, GOOD), (DAY, BROKEN)], 2 * DAY - 1, "rules", true, true),
        (&[(0, GOOD), (DAY, BROKEN)], 2 * DAY, "unknown", true, true),
        (&[(0, GOOD), (DAY, BROKEN)], 30 * DAY, "unknown", true, true),
        (&[(0, GOOD), (DAY, BROKEN), (DAY + 1, GOOD)], 2 * DAY, "rules", false, false),
        // A second failure long after the first is not an outage between them.
        (&[(0, GOOD), (DAY, BROKEN), (2 * DAY, BROKEN)], 2 * DAY, "unknown", true, false),
        (&[(0, GOOD), (DAY, BROKEN), (2 * DAY, BROKEN)], 2 * DAY + 1, "unknown", true, true),
        // An outage: forbidden after half an hour, but only until the next try is due.
        (&[(0, BROKEN)], 0, "unknown", true, false),
        (&[(0, BROKEN)], 29, "unknown", true, true),
        (
            &[(0, BROKEN), (1, BROKEN), (3, BROKEN), (7, BROKEN), (15, BROKEN), (31, BROKEN)],
            31,
            "disallow all",
            false,
            false,
        ),
        (
            &[(0, BROKEN), (1, BROKEN), (3, BROKEN), (7, BROKEN), (15, BROKEN), (31, BROKEN)],
            63,
            "disallow all",
            true,
            true,
        ),
        (
            &[(0, BROKEN), (1, BROKEN), (3, BROKEN), (7, BROKEN), (15, BROKEN), (31, BROKEN)],
            91,
            "unknown",
            true,
            true,
        ),
        (&[(0, BROKEN), (31, BROKEN), (63, GOOD)], 63, "rules", false, false),
    ];
    for (answers, minute, counts, obey, ignore) in cases {
        let (host, settings, now) = (host(answers), Settings::default(), at(*minute));
        let named = format!("{answers:?} at minute {minute}");
        assert_eq!(word(host.standing(now, &settings)), *counts, "{named}");
        assert_eq!(host.must_ask(now, &settings, Policy::Obey), *obey, "{named}");
        assert_eq!(host.must_ask(now, &settings, Policy::Ignore), *ignore, "{named}");
    }
}

/// A crawl that wants one page every `every` minutes for ten days, from a host whose robots.txt fails in `outages` (first
/// minute, and the first one after it).
/// Gives how many pages were forbidden, how many of them while the host was well, and how often the file was asked for.
fn crawl(every: i64, outages: &[(i64, i64)]) -> (u32, u32, u32) {
    let settings = Settings::default();
    let mut host = HostRobots::default();
    let (mut forbidden, mut forbidden_wrongly, mut asked) = (0, 0, 0);
    let mut minute = 0;
    while minute < 10 * DAY {
        let now = at(minute);
        let fails = outages.iter().any(|(from, to)| (*from..*to).contains(&minute));
        if host.must_ask(now, &settings, Policy::Obey) && host.ask_at(&settings) <= now {
            asked += 1;
            host.learn(if fails { BROKEN } else { GOOD }, "FooBot", now, &settings);
        }
        match host.standing(now, &settings) {
            // The queue waits for the file.
            Standing::Unknown => minute += 1,
            Standing::DisallowAll => {
                forbidden += 1;
                forbidden_wrongly += u32::from(!fails);
                minute += every;
            }
            Standing::Rules(_) => minute += every,
        }
    }
    (forbidden, forbidden_wrongly, asked)
}

#[test]
fn a_passing_fault_forbids_nothing_and_an_outage_only_while_it_lasts() {
    for every in [1, 7, 61, DAY, 3 * DAY] {
        let (forbidden, _, asked) = crawl(every, &[]);
        assert_eq!(forbidden, 0);
        assert!(asked <= 11, "once a day: {asked}");
        // The refresh of every day fails once, for a minute.
        let faults: Vec<_> = (1..10).map(|day| (day * DAY, day * DAY + 1)).collect();
        assert_eq!(crawl(every, &faults).0, 0, "a page every {every} minutes");
        // Down for a day and a half: forbidden when the copy is stale, allowed again within an hour.
        let (forbidden, wrongly, asked) = crawl(every, &[(DAY, 2 * DAY + DAY / 2)]);
        assert!(wrongly <= 60, "a page every {every} minutes: {wrongly} of {forbidden} forbidden afterwards");
        assert!(asked <= 60, "a page every {every} minutes: asked {asked} times");
    }
    assert!(crawl(1, &[(DAY, 2 * DAY + DAY / 2)]).0 > 0, "an outage is heeded");
}

#[test]
fn a_file_that_was_cut_off_is_no_file() {
    let http = |status, body: &'static [u8]| Answer::Http { status, body };
    for (status, extent, body, expected) in [
        (Some(200), Extent::Whole, &b"a\nb"[..], http(200, b"a\nb")),
        (Some(200), Extent::CutOff, b"a\nb", Answer::Unreachable),
        (Some(204), Extent::CutOff, b"", Answer::Unreachable),
        (Some(200), Extent::CutByOurLimit, b"a\nb", http(200, b"a\n")),
        (Some(200), Extent::CutByOurLimit, b"a\rb", http(200, b"a\r")),
        (Some(200), Extent::CutByOurLimit, b"ab", http(200, b"")),
        // The page of an error says nothing, cut or not.
        (Some(404), Extent::CutOff, b"a", http(404, b"a")),
        (Some(503), Extent::CutOff, b"a", http(503, b"a")),
        (None, Extent::CutOff, b"", Answer::Unreachable),
        (None, Extent::Whole, b"", Answer::Unreachable),
    ] {
        assert_eq!(answer(status, extent, body), expected, "{status:?} {extent:?} {body:?}");
    }
}

#[test]
fn what_waits_for_the_file_waits_until_it_is_due() {
    let settings = Settings::default();
    let minute = |host: &HostRobots, now, policy| {
        host.waits_until(at(now), &settings, policy).map(|time| time.duration_since(at(0)).as_mins())
    };
    for (answers, now, expected) in [
        (&[][..], 0, None),
        (&[(0, BROKEN)], 0, Some(1)),
        (&[(0, BROKEN)], 1, None),
        (&[(0, BROKEN), (1, BROKEN)], 1, Some(3)),
        (&[(0, GOOD)], 0, None),
        (&[(0, GOOD), (DAY, BROKEN)], DAY, None),
    ] {
        assert_eq!(minute(&host(answers), now, Policy::Obey), expected, "{answers:?} at {now}");
        assert_eq!(minute(&host(answers), now, Policy::Ignore), None, "{answers:?} at {now}");
    }
}

#[test]
fn a_name_without_an_address_is_waited_for_once() {
    let settings = Settings::default();
    let http = host(&[(0, BROKEN), (1, BROKEN), (3, BROKEN), (7, BROKEN), (15, BROKEN), (31, BROKEN)]);
    let mut https = HostRobots::default();
    https.share_failures(&http);
    assert_eq!(word(https.standing(at(31), &settings)), "disallow all");
    let mut known = host(&[(0, GOOD)]);
    known.share_failures(&http);
    assert_eq!(word(known.standing(at(31), &settings)), "rules", "an answer counts for more");
}
