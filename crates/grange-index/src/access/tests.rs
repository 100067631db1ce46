use proptest::prelude::*;

use super::*;

fn rule(prefix: &str, decision: Decision) -> Rule {
    Rule {
        surt_prefix: prefix.to_owned(),
        exact: false,
        collection: None,
        mime: None,
        captured_from: None,
        captured_to: None,
        decision,
    }
}

fn block() -> Decision {
    Decision::Block { message: "no".to_owned() }
}

fn asked(surt: &str) -> Asked<'_> {
    let time = Stamp::parse("20200101000000").unwrap();
    Asked { collection: "news", surt: surt.as_bytes(), time, mime: Some("text/html") }
}

fn reader() -> Reader<'static> {
    Reader {
        address: Some("192.0.2.7".parse().unwrap()),
        user: Some("anna"),
        now: Stamp::parse("20260101000000").unwrap(),
    }
}

#[test]
fn the_most_specific_rule_decides() {
    let rules = [
        rule("", block()),
        rule("com,example", Decision::Allow),
        rule("com,example)/private", block()),
        Rule { exact: true, ..rule("com,example)/private", Decision::Allow) },
        Rule { mime: Some("video/*".to_owned()), ..rule("com,example", block()) },
        Rule { captured_to: Some("2019".to_owned()), ..rule("com,example", block()) },
        Rule { collection: Some("secret".to_owned()), ..rule("com,example", block()) },
    ];
    let see = |asked: Asked<'_>| judge(&rules, &asked, &reader()).is_visible();
    assert!(!see(asked("org,other)/")));
    assert!(see(asked("com,example)/")));
    assert!(see(asked("com,example)/private")));
    assert!(!see(asked("com,example)/private/x")));
    assert!(!see(Asked { mime: Some("video/mp4"), ..asked("com,example)/") }));
    assert!(!see(Asked { time: Stamp::parse("2019").unwrap(), ..asked("com,example)/") }));
    assert!(!see(Asked { collection: "secret", ..asked("com,example)/") }));
    assert!(judge(&[], &asked("com,example)/"), &reader()).is_visible());
}

#[test]
fn each_decision_looks_at_its_own_things() {
    let embargo = |years: u64| Decision::Embargo { seconds: years * 365 * 86_400 };
    let networks = |text: &str| Decision::Networks { networks: vec![text.to_owned()] };
    let users = |name: &str| Decision::Users { users: vec![name.to_owned()] };
    for (decision, shown) in [
        (Decision::Allow, true),
        (block(), false),
        (embargo(5), true),
        (embargo(7), false),
        (networks("192.0.2.0/24"), true),
        (networks("192.0.2.7"), true),
        (networks("192.0.3.0/24"), false),
        (networks("0.0.0.0/0"), true),
        (networks("::/0"), false),
        (networks("192.0.2.0/33"), false),
        (networks("library"), false),
        (users("anna"), true),
        (users("*"), true),
        (users("bo"), false),
    ] {
        assert_eq!(decision.shows(&asked("com,example)/"), &reader()), shown, "{decision:?}");
    }
    let stranger = Reader { address: None, user: None, ..reader() };
    assert!(!users("*").shows(&asked("x"), &stranger));
    assert!(!networks("0.0.0.0/0").shows(&asked("x"), &stranger));
}

fn decisions() -> impl Strategy<Value = Decision> {
    prop_oneof![
        Just(Decision::Allow),
        Just(block()),
        Just(Decision::Users { users: vec!["anna".to_owned()] }),
        Just(Decision::Embargo { seconds: 999_999_999_999 }),
    ]
}

fn rules() -> impl Strategy<Value = Vec<Rule>> {
    let prefix =
        prop_oneof![Just(""), Just("com,"), Just("com,example)/"), Just("com,example)/a"), Just("org,")];
    let one = (
        prefix,
        any::<bool>(),
        prop::option::of(prop_oneof![Just("text/*"), Just("text/html")]),
        decisions(),
    );
    let one = one.prop_map(|(prefix, exact, mime, decision)| Rule {
        exact,
        mime: mime.map(ToOwned::to_owned),
        ..rule(prefix, decision)
    });
    prop::collection::vec(one, 0..8)
}

proptest! {
    #[test]
    fn the_order_of_rules_never_matters(mut rules in rules(), turn in 0usize..8) {
        let before = judge(&rules, &asked("com,example)/a"), &reader()).is_visible();
        let turn = turn.min(rules.len());
        rules.rotate_left(turn);
        prop_assert_eq!(judge(&rules, &asked("com,example)/a"), &reader()).is_visible(), before);
        rules.reverse();
        prop_assert_eq!(judge(&rules, &asked("com,example)/a"), &reader()).is_visible(), before);
    }

    #[test]
    fn a_more_specific_rule_overrules_all_others(mut rules in rules(), decision in decisions()) {
        let shown = decision.shows(&asked("com,example)/abc"), &reader());
        rules.push(rule("com,example)/ab", decision));
        rules.retain(|rule| !rule.exact);
        prop_assert_eq!(judge(&rules, &asked("com,example)/abc"), &reader()).is_visible(), shown);
    }

    #[test]
    fn rules_that_do_not_apply_change_nothing(mut rules in rules(), decision in decisions()) {
        let before = judge(&rules, &asked("com,example)/a"), &reader()).is_visible();
        rules.push(rule("net,", decision));
        prop_assert_eq!(judge(&rules, &asked("com,example)/a"), &reader()).is_visible(), before);
    }
}

/// Whether `winner` decides against `loser`, whatever each says and in whichever order they are given.
fn overrules(winner: &Rule, loser: &Rule) -> bool {
    let with = |rule: &Rule, decision: &Decision| Rule { decision: decision.clone(), ..rule.clone() };
    [(Decision::Allow, block()), (block(), Decision::Allow)].iter().all(|(says, contrary)| {
        let visible = *says == Decision::Allow;
        let rules = [with(winner, says), with(loser, contrary)];
        let turned = [rules[1].clone(), rules[0].clone()];
        let see = |rules: &[Rule]| judge(rules, &asked("com,example)/a"), &reader()).is_visible();
        see(&rules) == visible && see(&turned) == visible
    })
}

fn of_mime(mime: &str) -> Rule {
    Rule { mime: Some(mime.to_owned()), ..rule("com,example)/a", Decision::Allow) }
}

fn captured(from: &str, to: &str) -> Rule {
    let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    Rule { captured_from: given(from), captured_to: given(to), ..rule("com,example)/a", Decision::Allow) }
}

#[test]
fn rules_rank_by_key_then_collection_then_mime_type_then_span_of_time() {
    let plain = rule("com,example)/a", Decision::Allow);
    let shorter = rule("com,example)", Decision::Allow);
    let of_collection = Rule { collection: Some("news".to_owned()), ..plain.clone() };
    for (name, winner, loser) in [
        ("an exact key before a prefix", Rule { exact: true, ..plain.clone() }, plain.clone()),
        ("a longer prefix before a shorter", plain.clone(), shorter.clone()),
        ("an exact key before everything else", Rule { exact: true, ..plain.clone() }, of_collection.clone()),
        ("a collection before all", of_collection.clone(), plain.clone()),
        (
            "a prefix before a collection",
            plain.clone(),
            Rule { surt_prefix: "com,".to_owned(), ..of_collection.clone() },
        ),
        ("a kind before all types", of_mime("text/*"), plain.clone()),
        ("a whole type before all types", of_mime("text/html"), plain.clone()),
        ("a whole type before a kind", of_mime("text/html"), of_mime("text/*")),
        ("a collection before a type", of_collection.clone(), of_mime("text/html")),
        ("a type before a span", of_mime("text/*"), captured("2020", "2020")),
        ("a span before all time", captured("2019", "2020"), plain.clone()),
        ("a short span before a long one", captured("20200101", "20200102"), captured("2000", "2020")),
        ("a span with two ends before one with a beginning", captured("2000", "2030"), captured("2019", "")),
        ("a span with two ends before one with an end", captured("2000", "2030"), captured("", "2021")),
        ("a beginning before all time", captured("2019", ""), plain.clone()),
        ("an end before all time", captured("", "2021"), plain.clone()),
    ] {
        assert!(overrules(&winner, &loser), "{name}");
        assert!(!overrules(&loser, &winner), "{name}");
    }
}

#[test]
fn spans_that_are_open_at_one_end_are_equally_specific() {
    for (one, other) in [
        (captured("2019", ""), captured("2000", "")),
        (captured("", "2021"), captured("", "2030")),
        (captured("2019", ""), captured("", "2021")),
    ] {
        assert!(!overrules(&one, &other) && !overrules(&other, &one), "{one:?} and {other:?}");
    }
}

#[test]
fn of_equally_specific_rules_the_strictest_that_hides_is_named() {
    let strict_first = [
        block(),
        Decision::Embargo { seconds: 999_999_999_999 },
        Decision::Networks { networks: vec!["198.51.100.0/24".to_owned()] },
        Decision::Users { users: vec!["bo".to_owned()] },
        Decision::Allow,
    ];
    for (index, stricter) in strict_first.iter().enumerate() {
        for laxer in &strict_first[index + 1..] {
            let mut rules = [rule("com,", stricter.clone()), rule("com,", laxer.clone())];
            for _ in 0..2 {
                let named = match judge(&rules, &asked("com,example)/"), &reader()) {
                    Verdict::Hidden(rule) => Some(rule.decision.clone()),
                    Verdict::Visible => None,
                };
                assert_eq!(named.as_ref(), Some(stricter), "beside {laxer:?}");
                rules.reverse();
            }
        }
    }
    // Strict is not the same as hiding: the network lets this reader in, the list of users does not.
    let here = Decision::Networks { networks: vec!["192.0.2.0/24".to_owned()] };
    let others = Decision::Users { users: vec!["bo".to_owned()] };
    let rules = [rule("com,", here), rule("com,", others.clone())];
    assert_eq!(judge(&rules, &asked("com,example)/"), &reader()), Verdict::Hidden(&rule("com,", others)));
}

#[test]
fn a_span_includes_its_first_and_its_last_moment() {
    let applies = |rule: &Rule, time: &str| {
        rule.applies(&Asked { time: Stamp::parse(time).unwrap(), ..asked("com,example)/a") })
    };
    let span = captured("2019", "2020");
    for (time, expected) in [
        ("20181231235959", false),
        ("20190101000000", true),
        ("20201231235959", true),
        ("20210101000000", false),
    ] {
        assert_eq!(applies(&span, time), expected, "{time}");
        assert_eq!(applies(&captured("2019", ""), time), expected || time.starts_with("2021"), "{time}");
        assert_eq!(applies(&captured("", "2020"), time), expected || time.starts_with("2018"), "{time}");
    }
}

#[test]
fn a_rule_applies_only_if_everything_that_it_names_fits() {
    let whole = Rule {
        collection: Some("news".to_owned()),
        mime: Some("text/html".to_owned()),
        ..captured("2019", "2020")
    };
    let fits = asked("com,example)/a");
    assert!(whole.applies(&fits));
    assert!(!whole.applies(&Asked { surt: b"com,example)/b", ..fits }));
    assert!(!whole.applies(&Asked { collection: "other", ..fits }));
    assert!(!whole.applies(&Asked { mime: Some("text/plain"), ..fits }));
    assert!(!whole.applies(&Asked { mime: None, ..fits }));
    assert!(!whole.applies(&Asked { time: Stamp::parse("2018").unwrap(), ..fits }));
    assert!(!whole.applies(&Asked { time: Stamp::parse("2022").unwrap(), ..fits }));
    assert!(whole.applies(&Asked { surt: b"com,example)/abc", ..fits }));
    assert!(!Rule { exact: true, ..whole }.applies(&Asked { surt: b"com,example)/abc", ..fits }));
    assert!(of_mime("text/*").applies(&fits));
    assert!(!of_mime("video/*").applies(&fits));
    assert!(!of_mime("text/htm").applies(&fits), "a whole type is not a beginning of one");
}

#[test]
fn an_embargo_ends_in_its_last_second_and_an_endless_one_never() {
    let now = Stamp::parse("20200101000100").unwrap();
    let shows =
        |seconds| Decision::Embargo { seconds }.shows(&asked("com,example)/"), &Reader { now, ..reader() });
    assert!(shows(59) && shows(60));
    assert!(!shows(61) && !shows(u64::MAX));
}

#[test]
fn a_network_holds_the_addresses_that_share_its_leading_bits() {
    for (network, address, expected) in [
        ("192.0.2.128/25", "192.0.2.129", true),
        ("192.0.2.128/25", "192.0.2.127", false),
        ("192.0.2.7/32", "192.0.2.7", true),
        ("192.0.2.7/32", "192.0.2.6", false),
        ("192.0.2.6", "192.0.2.7", false),
        ("128.0.0.0/1", "127.0.0.1", false),
        ("2001:db8::/32", "2001:db8::1", true),
        ("2001:db8::/32", "2001:db9::1", false),
        ("2001:db8::1", "2001:db8::1", true),
        ("2001:db8::1/128", "2001:db8::2", false),
        ("::/0", "2001:db8::1", true),
        ("::/129", "2001:db8::1", false),
        ("0.0.0.0/0", "2001:db8::1", false),
        ("192.0.2.0/24", "::ffff:192.0.2.7", true),
        ("::ffff:192.0.2.0/24", "192.0.2.7", true),
        ("0.0.0.7/32", "::7", false),
        ("192.0.2.0/x", "192.0.2.0", false),
    ] {
        assert_eq!(contains(network, address.parse().unwrap()), expected, "{address} in {network}");
    }
}
