use super::*;

const DAY: Duration = Duration::from_secs(86_400);

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// What follows from a visit to a server if none of the servers that are connected to thereafter responds.
fn note(
    state: &mut NetworkState,
    server: &str,
    (reached, responded_before): (bool, bool),
    active: u64,
    longest: Duration,
    second: i64,
) -> Finding {
    let url = Url::parse(server).unwrap();
    let status = if reached { FetchStatus(200) } else { FetchStatus::CONNECT_FAILED };
    let contact = NetworkContact { url: &url, server, status, reached, responded_before };
    match state.note(contact, || active, longest, at(second)) {
        Finding::Suspected => {
            state.begin_outage(at(second));
            Finding::Outage
        }
        finding => finding,
    }
}

const RESPONDS: (bool, bool) = (true, true);
const FAILS: (bool, bool) = (false, true);
const NEVER_RESPONDED: (bool, bool) = (false, false);

#[test]
fn an_outage_is_when_servers_that_responded_fail_and_none_responds_in_between() {
    use Finding::{Nothing, Outage, Over};
    let mut state = NetworkState::default();
    for (server, visit, active, finding) in [
        ("http://dead", NEVER_RESPONDED, 9, Nothing),
        ("http://gone", NEVER_RESPONDED, 9, Nothing),
        ("http://lost", NEVER_RESPONDED, 9, Nothing),
        ("http://a", FAILS, 9, Nothing),
        ("http://a", FAILS, 9, Nothing),
        ("http://b", FAILS, 9, Nothing),
        ("http://c", RESPONDS, 9, Nothing),
        ("http://a", FAILS, 9, Nothing),
        ("http://b", FAILS, 9, Nothing),
        // Two servers of one host are one host.
        ("https://b", FAILS, 9, Nothing),
        ("http://c", FAILS, 9, Outage),
        ("http://dead", NEVER_RESPONDED, 9, Outage),
        ("http://a", RESPONDS, 9, Over),
        ("http://a", FAILS, 2, Nothing),
        ("http://b", FAILS, 2, Outage),
    ] {
        let found = note(&mut state, server, visit, active, DAY, 0);
        assert_eq!(found, finding, "{server} {visit:?}");
    }
    let mut alone = NetworkState::default();
    assert_eq!(note(&mut alone, "http://a", FAILS, 1, DAY, 0), Nothing, "one host alone");
}

#[test]
fn a_scheme_that_never_responded_makes_no_outage_however_many_hosts_lack_it() {
    let mut state = NetworkState::default();
    for host in ["p1", "p2", "p3"] {
        note(&mut state, &format!("http://{host}"), RESPONDS, 3, DAY, 0);
    }
    for second in 1..100 {
        for host in ["p1", "p2", "p3"] {
            let found = note(&mut state, &format!("https://{host}"), NEVER_RESPONDED, 3, DAY, second);
            assert_eq!(found, Finding::Nothing, "{host} {second}");
        }
    }
}

#[test]
fn an_outage_that_lasts_too_long_is_given_up_until_a_host_answers() {
    let mut state = NetworkState::default();
    let mut fails = |server: &str, second| note(&mut state, server, FAILS, 9, DAY, second);
    assert_eq!(fails("http://a", 0), Finding::Nothing);
    assert_eq!(fails("http://b", 0), Finding::Nothing);
    assert_eq!(fails("http://c", 0), Finding::Outage);
    assert_eq!(fails("http://a", 86_399), Finding::Outage);
    assert_eq!(fails("http://a", 86_400), Finding::GaveUp);
    assert_eq!(fails("http://b", 86_401), Finding::Nothing);
    assert_eq!(note(&mut state, "http://a", RESPONDS, 2, DAY, 90_000), Finding::Nothing);
    let responded = VecDeque::from(["http://a".to_owned()]);
    assert_eq!(state, NetworkState { responded, responses: 1, ..NetworkState::default() });
}

#[test]
fn a_crawl_that_reaches_no_host_at_its_start_waits_a_quarter_of_an_hour() {
    let mut state = NetworkState::default();
    let mut fails = |server: &str, second| note(&mut state, server, NEVER_RESPONDED, 4, DAY, second);
    assert_eq!(fails("http://a", 0), Finding::Nothing);
    assert_eq!(fails("http://b", 1), Finding::Nothing);
    assert_eq!(fails("http://c", 2), Finding::Nothing, "one is not tried yet");
    assert_eq!(fails("http://d", 3), Finding::Outage);
    assert_eq!(fails("http://a", 902), Finding::Outage);
    assert_eq!(fails("http://a", 903), Finding::GaveUp);
    assert_eq!(fails("http://b", 904), Finding::Nothing);
    assert_eq!(note(&mut state, "http://a", (true, false), 4, DAY, 905), Finding::Nothing);
    for host in ["b", "c", "d"] {
        let found = note(&mut state, &format!("http://{host}"), NEVER_RESPONDED, 3, DAY, 906);
        assert_eq!(found, Finding::Nothing, "one answered: {host} is gone");
    }
    let mut two = NetworkState::default();
    for server in ["http://a", "http://b", "https://b"] {
        let found = note(&mut two, server, NEVER_RESPONDED, 2, DAY, 0);
        assert_eq!(found, Finding::Nothing, "two hosts may both be gone");
    }
}

#[test]
fn two_hosts_alone_are_waited_for_a_quarter_of_an_hour() {
    for longest in [Duration::ZERO, DAY] {
        let mut state = NetworkState::default();
        let mut fails = |server: &str, second| note(&mut state, server, FAILS, 2, longest, second);
        assert_eq!(fails("http://a", 0), Finding::Nothing);
        assert_eq!(fails("http://b", 0), Finding::Outage);
        assert_eq!(fails("http://a", 899), Finding::Outage);
        assert_eq!(fails("http://a", 900), Finding::GaveUp);
    }
}

#[test]
fn a_response_to_a_probe_ends_an_outage_and_a_suspicion() {
    let mut state = NetworkState::default();
    assert_eq!(state.note_response("http://a"), Finding::Nothing);
    state.begin_outage(at(0));
    assert!(state.is_away());
    assert_eq!(state.still_away(DAY, at(1)), Finding::Outage);
    let before = state.responses();
    assert_eq!(state.note_response("http://b"), Finding::Over);
    assert!(!state.is_away() && state.responses() > before);
    assert_eq!(state.still_away(DAY, at(2)), Finding::Nothing);
}

#[test]
fn servers_that_responded_are_probed_first_and_all_in_turn() {
    let mut state = NetworkState::default();
    for n in 0..20 {
        note(&mut state, &format!("http://h{n}"), RESPONDS, 99, DAY, 0);
    }
    assert_eq!(state.responded.len(), RESPONDED_MAX);
    for server in ["http://h19", "https://h1", "http://h18"] {
        note(&mut state, server, FAILS, 99, DAY, 0);
    }
    let rounds: Vec<_> = (0..5).flat_map(|_| state.probes()).collect();
    assert_eq!(rounds[..4], ["http://h17", "http://h16", "http://h15", "http://h14"]);
    for n in 4..18 {
        assert!(rounds.contains(&format!("http://h{n}")), "{n}: {rounds:?}");
    }
    // With nothing else, the other scheme of those that fail and then they themselves.
    for (responded, failing, expected) in [
        (&[][..], &["https://a", "https://b:8443"][..], &["http://a"][..]),
        (&["https://a"], &["https://a", "https://b"], &["http://a", "http://b", "https://a"]),
        (&["http://a"], &["https://a"], &["http://a"]),
    ] {
        let mut state = NetworkState::default();
        for server in responded {
            note(&mut state, server, RESPONDS, 99, DAY, 0);
        }
        for server in failing {
            note(&mut state, server, FAILS, 99, DAY, 0);
        }
        assert_eq!(state.probes(), expected, "{responded:?} {failing:?}");
    }
}

#[test]
fn names_that_are_not_found_are_not_disproved_by_known_addresses() {
    let mut state = NetworkState::default();
    state.note_response("http://a");
    let url = Url::parse("http://b").unwrap();
    let contact = |status| NetworkContact {
        url: &url,
        server: "http://b",
        status,
        reached: false,
        responded_before: true,
    };
    state.note(contact(FetchStatus::DNS_FAILED), || 9, DAY, at(0));
    assert_eq!(state.probes(), Vec::<String>::new());
    state.note(contact(FetchStatus::CONNECT_FAILED), || 9, DAY, at(0));
    assert_eq!(state.probes(), ["http://a", "https://b"]);
}
