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
