use proptest::prelude::*;

use super::*;

const NOW: &str = "20260101000000";

fn rule(prefix: &str, decision: Decision) -> Rule {
    Rule::new(prefix, decision)
}

fn block() -> Decision {
    Decision::Block { message: "no".to_owned() }
}

fn embargo(days: u64) -> Decision {
    Decision::Embargo { seconds: days * 86_400 }
}

fn networks(text: &str) -> Decision {
    Decision::Networks { networks: vec![text.to_owned()] }
}

fn users(name: &str) -> Decision {
    Decision::Users { users: vec![name.to_owned()] }
}

fn allow_for(prefix: &str, audience: &str) -> Rule {
    Rule { audience: vec![audience.parse().unwrap()], ..rule(prefix, Decision::Allow) }
}

fn facts(surt: &str) -> CaptureFacts<'_> {
    CaptureFacts {
        url: CapturedUrl::Unknown,
        collection: "news",
        surt: surt.as_bytes(),
        time: Stamp::parse("20200101000000").unwrap(),
        media_type: MediaType::Of(Some("text/html")),
    }
}

fn anna() -> Reader<'static> {
    Reader {
        address: Some("192.0.2.7".parse().unwrap()),
        user: Some("anna"),
        role: Some("curator"),
        staff: true,
        now: Stamp::parse(NOW).unwrap(),
    }
}

fn stranger() -> Reader<'static> {
    Reader { now: Stamp::parse(NOW).unwrap(), ..Reader::default() }
}

fn set(rules: &[Rule]) -> RuleSet {
    RuleSet::from(rules.to_vec())
}

fn sees(rules: &[Rule], facts: &CaptureFacts<'_>, reader: &Reader<'_>) -> bool {
    set(rules).judge(facts, reader, &LookupHint::default()).is_visible()
}

#[test]
fn without_rules_everything_is_visible_but_the_documentation_of_crawls() {
    for (key, expected) in [
        ("com,example)/", true),
        ("urn:text:http://example.com/", true),
        ("dns:example.com", true),
        ("metadata://netarkivet.dk/crawl/logs/crawl.log?jobid=7", false),
        ("filedesc:7-1.arc", false),
        ("metadata)/", true),
    ] {
        assert_eq!(sees(&[], &facts(key), &anna()), expected, "{key}");
    }
    let key = "metadata://netarkivet.dk/crawl/order.xml?jobid=7";
    for (rules, expected) in [
        (vec![rule("metadata:", Decision::Allow)], true),
        (vec![allow_for("metadata:", "staff")], true),
        (vec![allow_for("metadata:", "user:bo")], false),
        (vec![allow_for("", "staff")], false),
        (vec![allow_for("metadata:", "staff"), rule("metadata:", block())], true),
        (vec![rule("metadata:", Decision::Allow), rule("dk,netarkivet)", block())], false),
    ] {
        assert_eq!(sees(&rules, &facts(key), &anna()), expected, "{rules:?}");
    }
}

/// Indexes that are older than their file list documentation among the pages of the host that it names.
#[test]
fn documentation_is_hidden_under_any_key() {
    let other = [rule("org,other)", block())];
    for (url, expected) in [
        ("metadata://netarkivet.dk/crawl/logs/crawl.log?jobid=7", false),
        ("METADATA://netarkivet.dk/crawl/order.xml", false),
        ("filedesc://7-1.arc", false),
        ("http://netarkivet.dk/metadata:", true),
    ] {
        for surt in ["dk,netarkivet)/crawl", "-"] {
            let page = CaptureFacts { url: CapturedUrl::Text(url), ..facts(surt) };
            for rules in [&[][..], &other] {
                assert_eq!(sees(rules, &page, &anna()), expected, "{url} under {surt} {rules:?}");
            }
        }
    }
}

#[test]
fn a_row_under_a_key_of_another_kind_is_judged_by_its_url_too() {
    let block_of = |prefix: &str, exact| Rule { exact, ..rule(prefix, block()) };
    for (surt, url, rule, hidden) in [
        ("com,example,www2)/x", "http://www2.example.com/x", block_of("com,example)/", false), true),
        (
            "com,example)/Private/a",
            "http://example.com/Private/a",
            block_of("com,example)/private/", false),
            true,
        ),
        ("com,example:80)/private", "http://example.com:80/private", block_of("com,example)/", false), true),
        ("dk,netarkivet)/a.log", "metadata://netarkivet.dk/a.log", block_of("org,other)", false), true),
        (
            "dk,netarkivet)/a.log",
            "metadata://netarkivet.dk/a.log",
            Rule { collection: Some("x".into()), ..block_of("", false) },
            true,
        ),
        // A longer path is another page, and so is a body; but what is restricted of a page is restricted of its forms.
        ("com,example)/abc", "http://example.com/a", block_of("com,example)/a", true), true),
        ("com,example)/a?__wb_method=post", "http://example.com/a", block_of("com,example)/a", true), true),
        (
            "com,example)/a?__wb_method=post&b=1&x=2",
            "http://example.com/a?x=2",
            block_of("com,example)/a?x=2", true),
            true,
        ),
        (
            "com,example)/a?__wb_method=post&b=1",
            "http://example.com/a?__wb_method=post&b=1",
            block_of("com,example)/a", true),
            true,
        ),
        ("com,example)/a?b=1&__pywb_method=put", "", block_of("com,example)/a?b=1", true), true),
        ("com,example)/a?__wb_method=post", "http://example.com/a", block_of("com,example)/b", true), false),
        ("com,example)/a?b=1", "http://example.com/a", block_of("com,example)/a", true), false),
        ("com,example)/a", "http://example.com/a", block_of("com,example)/b", false), false),
        ("dns:example.com", "dns:example.com", block_of("com,other)", false), false),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let index = crate::Index::open(folder.path(), crate::Settings::default()).unwrap();
        let mut batch = crate::Batch::new();
        batch.add(&crate::Capture {
            surt: surt.to_owned(),
            url: (!url.is_empty()).then(|| url.to_owned()),
            time: Stamp::parse("20200101000000").unwrap(),
            file: "a.warc.gz".to_owned(),
            ..crate::Capture::default()
        });
        index.commit(batch).unwrap();
        let snapshot = index.snapshot();
        let mut rows = snapshot.ascending(crate::Position::default(), None);
        let view = rows.next().unwrap().unwrap();
        let seen =
            sees(std::slice::from_ref(&rule), &CaptureFacts::of_view("news", &view, &Vec::new), &anna());
        assert_eq!(!seen, hidden, "{surt} {url} {rule:?}");
    }
}

/// With a hundred thousand rules most rows have no rule at all: what they cost is what all answers cost.
#[test]
fn no_key_is_made_of_ordinary_rows() {
    let folder = tempfile::tempdir().unwrap();
    let index = crate::Index::open(folder.path(), crate::Settings::default()).unwrap();
    let line = |page: usize, url: &str, key: &str| {
        format!(
            "{key} 20200101000000 {{\"url\": \"{url}\", \"offset\": \"{page}\", \"filename\": \"a.warc.gz\"}}\n"
        )
    };
    let ordinary = |page: usize| match page % 4 {
        0 => (format!("https://www.h{page:05}.dk/"), format!("dk,h{page:05})/")),
        1 => (format!("http://h{page:05}.dk/a/"), format!("dk,h{page:05})/a")),
        2 => (format!("http://h{page:05}.dk/a.html?b=1&c=2"), format!("dk,h{page:05})/a.html?b=1&c=2")),
        _ => (format!("https://img.h{page:05}.dk/a-b/c_d.png"), format!("dk,h{page:05},img)/a-b/c_d.png")),
    };
    let mut lines: String = (0..10_000)
        .map(|page| {
            let (url, key) = ordinary(page);
            line(page, &url, &key)
        })
        .collect();
    lines.push_str(&line(1, "http://example.com/Private", "com,example)/private"));
    index.load(lines.as_bytes(), None).unwrap();
    let snapshot = index.snapshot();
    let set = RuleSet::from(vec![rule("com,other)", block())]);
    let (hint, before) = (LookupHint::default(), crate::key::LINE_KEYS.get());
    let (mut count, mut rows) = (0, snapshot.ascending(crate::Position::default(), None));
    while let Some(view) = rows.next().unwrap() {
        count += u64::from(
            set.judge(&CaptureFacts::of_view("news", &view, &Vec::new), &anna(), &hint).is_visible(),
        );
    }
    assert_eq!(count, 10_001);
    assert_eq!(crate::key::LINE_KEYS.get() - before, 1, "only of the one whose key has lost something");
}

#[test]
fn restrictions_combine() {
    let inside = networks("192.0.2.0/24");
    let outside = Reader { address: Some("198.51.100.1".parse().unwrap()), ..anna() };
    let rules = [rule("", inside), rule("dk,h0001)", embargo(365))];
    let old = facts("dk,h0001)/");
    assert!(sees(&rules, &old, &anna()));
    assert!(!sees(&rules, &old, &outside), "the narrower rule does not replace the broader one");
    let fresh = CaptureFacts { time: Stamp::parse("20251231000000").unwrap(), ..old };
    assert!(!sees(&rules, &fresh, &anna()));
    assert!(!sees(&rules, &fresh, &outside));
}

#[test]
fn an_allow_lifts_restrictions_for_its_audience() {
    let fresh = CaptureFacts { time: Stamp::parse("20251231000000").unwrap(), ..facts("dk,h0001)/") };
    let outsider = Reader { address: Some("198.51.100.1".parse().unwrap()), ..stranger() };
    let restricted = [rule("", networks("192.0.2.0/24")), rule("dk,h0001)", embargo(365))];
    for (audience, reader, expected) in [
        ("staff", anna(), true),
        ("role:curator", anna(), true),
        ("role:operator", anna(), false),
        ("user:anna", anna(), true),
        ("user:Anna", anna(), true),
        ("user:*", anna(), true),
        ("user:bo", anna(), false),
        ("user:*", outsider, false),
        ("staff", outsider, false),
        ("network:192.0.2.0/24", anna(), true),
        ("network:192.0.2.0/24", outsider, false),
        ("network:198.51.100.0/24", outsider, true),
    ] {
        for prefix in ["", "dk,h0001)", "dk,h0001)/"] {
            let rules = [restricted.to_vec(), vec![allow_for(prefix, audience)]].concat();
            assert_eq!(sees(&rules, &fresh, &reader), expected, "{audience} on {prefix:?} {reader:?}");
        }
    }
}

#[test]
fn a_block_is_lifted_only_by_an_allow_that_is_as_narrow() {
    let page = facts("com,example)/private/x");
    for (allowed, audience, expected) in [
        ("", "staff", false),
        ("com,", "staff", false),
        ("com,example)/private", "staff", true),
        ("com,example)/private/x", "staff", true),
        ("com,example)/private", "", false),
        ("com,example)/private/x", "", true),
    ] {
        let mut allow = rule(allowed, Decision::Allow);
        allow.audience.extend(audience.parse::<Audience>());
        let rules = [rule("com,example)/private", block()), allow];
        assert_eq!(sees(&rules, &page, &anna()), expected, "{allowed} for {audience:?}");
    }
}

#[test]
fn a_restriction_for_an_audience_holds_for_nobody_else() {
    let only = Rule { audience: vec!["network:192.0.2.0/24".parse().unwrap()], ..rule("com,", block()) };
    assert!(!sees(std::slice::from_ref(&only), &facts("com,example)/"), &anna()));
    assert!(sees(&[only], &facts("com,example)/"), &stranger()));
}

#[test]
fn an_allow_for_everybody_opens_what_is_less_narrow() {
    let rules = [
        rule("", block()),
        rule("com,example", Decision::Allow),
        rule("com,example)/private", block()),
        Rule { exact: true, ..rule("com,example)/private", Decision::Allow) },
        Rule { mime: Some("video/*".to_owned()), ..rule("com,example", block()) },
        Rule { captured_to: Some("2019".to_owned()), ..rule("com,example", block()) },
        Rule { collection: Some("secret".to_owned()), ..rule("com,example", block()) },
    ];
    let see = |facts: CaptureFacts<'_>| sees(&rules, &facts, &anna());
    assert!(!see(facts("org,other)/")));
    assert!(see(facts("com,example)/")));
    assert!(see(facts("com,example)/private")));
    assert!(!see(facts("com,example)/private/x")));
    assert!(!see(CaptureFacts { media_type: MediaType::Of(Some("Video/mp4")), ..facts("com,example)/") }));
    assert!(!see(CaptureFacts { time: Stamp::parse("2019").unwrap(), ..facts("com,example)/") }));
    assert!(!see(CaptureFacts { collection: "secret", ..facts("com,example)/") }));
}

#[test]
fn each_decision_looks_at_its_own_things() {
    for (decision, shown) in [
        (Decision::Allow, true),
        (block(), false),
        (embargo(5 * 365), true),
        (embargo(7 * 365), false),
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
        let rules = [rule("com,", decision)];
        assert_eq!(sees(&rules, &facts("com,example)/"), &anna()), shown, "{rules:?}");
    }
    for decision in [users("*"), networks("0.0.0.0/0")] {
        assert!(!sees(&[rule("", decision)], &facts("com,example)/"), &stranger()));
    }
}

#[test]
fn an_embargo_ends_in_its_last_second_and_an_endless_one_never() {
    let now = Stamp::parse("20200101000100").unwrap();
    let shows = |seconds| {
        sees(&[rule("", Decision::Embargo { seconds })], &facts("com,e)/"), &Reader { now, ..stranger() })
    };
    assert!(shows(59) && shows(60));
    assert!(!shows(61) && !shows(u64::MAX));
}

#[test]
fn a_rule_is_about_a_capture_only_if_everything_that_it_names_fits() {
    let whole = Rule {
        collection: Some("news".to_owned()),
        mime: Some("TEXT/html".to_owned()),
        captured_from: Some("2019".to_owned()),
        captured_to: Some("2020".to_owned()),
        ..rule("com,example)/a", block())
    };
    let hides = |rule: &Rule, facts: CaptureFacts<'_>| !sees(std::slice::from_ref(rule), &facts, &anna());
    let fits = facts("com,example)/a");
    assert!(hides(&whole, fits));
    assert!(!hides(&whole, CaptureFacts { surt: b"com,example)/b", ..fits }));
    assert!(!hides(&whole, CaptureFacts { collection: "other", ..fits }));
    assert!(!hides(&whole, CaptureFacts { media_type: MediaType::Of(Some("text/plain")), ..fits }));
    assert!(!hides(&whole, CaptureFacts { media_type: MediaType::Of(None), ..fits }));
    assert!(hides(&whole, CaptureFacts { surt: b"com,example)/abc", ..fits }));
    assert!(!hides(
        &Rule { exact: true, ..whole.clone() },
        CaptureFacts { surt: b"com,example)/abc", ..fits }
    ));
    for (time, expected) in [
        ("20181231235959", false),
        ("20190101000000", true),
        ("20201231235959", true),
        ("20210101000000", false),
    ] {
        let at = CaptureFacts { time: Stamp::parse(time).unwrap(), ..fits };
        assert_eq!(hides(&whole, at), expected, "{time}");
    }
}

#[test]
fn a_rule_about_a_host_is_about_what_speaks_of_its_pages() {
    let rules = [rule("com,example)", block())];
    for key in ["urn:text:http://www.example.com/a", "dns:example.com", "screenshot:https://example.com/"] {
        assert!(!sees(&rules, &facts(key), &anna()), "{key}");
    }
    for key in ["urn:text:http://example.org/?u=http://example.com/", "dns:example.org", "urn:uuid:1"] {
        assert!(sees(&rules, &facts(key), &anna()), "{key}");
    }
}

#[test]
fn of_several_rules_that_hide_the_strictest_is_named() {
    let strict_first = [block(), embargo(99_999), networks("198.51.100.0/24"), users("bo")];
    for (index, stricter) in strict_first.iter().enumerate() {
        for laxer in &strict_first[index + 1..] {
            let mut rules = [rule("com,", stricter.clone()), rule("com,example)", laxer.clone())];
            for _ in 0..2 {
                let set = set(&rules);
                let Verdict::Hidden(named) =
                    set.judge(&facts("com,example)/"), &anna(), &LookupHint::default())
                else {
                    panic!("{rules:?}")
                };
                assert_eq!(&named.rule.decision, stricter, "beside {laxer:?}");
                rules.reverse();
            }
        }
    }
}

#[test]
fn every_rule_that_took_part_is_explained() {
    let rules = set(&[
        rule("", networks("192.0.2.0/24")),
        rule("com,example)", embargo(99_999)),
        allow_for("", "staff"),
        allow_for("", "user:bo"),
        rule("com,example)/private", block()),
        rule("org,", block()),
    ]);
    let told = |reader: &Reader<'_>| {
        let effects = rules.explain(&facts("com,example)/private"), reader);
        let name = |effect: &Effect<'_>| match effect {
            Effect::Hides => "hides".to_owned(),
            Effect::LiftedBy(by) => format!("lifted by {}", by.id.unwrap_or_default()),
            Effect::LetsThrough => "lets through".to_owned(),
            Effect::Allows => "allows".to_owned(),
            Effect::ForOthers => "for others".to_owned(),
        };
        effects
            .iter()
            .map(|one| format!("{} {}", one.rule.id.unwrap(), name(&one.effect)))
            .collect::<Vec<_>>()
    };
    assert_eq!(told(&anna()), ["5 hides", "2 lifted by 3", "1 lets through", "3 allows", "4 for others"]);
    assert_eq!(told(&stranger()), ["5 hides", "2 hides", "1 hides", "3 for others", "4 for others"]);
}

#[test]
fn stored_rules_are_read_and_written_without_what_they_do_not_say() {
    let old = r#"{"surt_prefix":"com,a)/","exact":false,"decision":{"block":{"message":"court"}}}"#;
    let read: Rule = serde_json::from_str(old).unwrap();
    assert!(read.audience.is_empty());
    assert_eq!(serde_json::to_string(&read).unwrap(), old);
    let new =
        r#"{"surt_prefix":"","exact":false,"decision":"allow","audience":["staff","network:10.0.0.0/8"]}"#;
    let read: Rule = serde_json::from_str(new).unwrap();
    assert_eq!(serde_json::to_string(&read).unwrap(), new);
    assert!(serde_json::from_str::<Rule>(&new.replace("staff", "moon")).is_err());
}

fn decisions() -> impl Strategy<Value = Decision> {
    prop_oneof![
        Just(Decision::Allow),
        Just(block()),
        Just(users("anna")),
        Just(networks("192.0.2.0/24")),
        Just(embargo(99_999)),
    ]
}

fn prefixes() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        Just(""),
        Just("c"),
        Just("com,"),
        Just("com,example"),
        Just("com,example)"),
        Just("com,example)/"),
        Just("com,example)/a"),
        Just("com,example)/ab"),
        Just("com,example,"),
        Just("org,"),
    ]
}

fn rules() -> impl Strategy<Value = Vec<Rule>> {
    let mime = prop::option::of(prop_oneof![Just("text/*"), Just("text/html"), Just("Video/*")]);
    let audience =
        prop::option::of(prop_oneof![Just("staff"), Just("user:bo"), Just("network:192.0.2.0/24")]);
    let one = (prefixes(), any::<bool>(), mime, decisions(), audience);
    let one = one.prop_map(|(prefix, exact, mime, decision, audience)| Rule {
        exact,
        mime: mime.map(ToOwned::to_owned),
        audience: audience.into_iter().map(|text| text.parse().unwrap()).collect(),
        ..rule(prefix, decision)
    });
    prop::collection::vec(one, 0..10)
}

fn readers() -> impl Strategy<Value = Reader<'static>> {
    prop_oneof![Just(anna()), Just(stranger()), Just(Reader { user: Some("bo"), ..stranger() })]
}

proptest! {
    #[test]
    fn the_order_of_rules_never_matters(mut rules in rules(), turn in 0usize..8, reader in readers()) {
        let before = sees(&rules, &facts("com,example)/a"), &reader);
        let turn = turn.min(rules.len());
        rules.rotate_left(turn);
        prop_assert_eq!(sees(&rules, &facts("com,example)/a"), &reader), before);
        rules.reverse();
        prop_assert_eq!(sees(&rules, &facts("com,example)/a"), &reader), before);
    }

    #[test]
    fn adding_a_restriction_never_opens_anything(
        mut rules in rules(), added in rules(), key in prefixes(), reader in readers(),
    ) {
        let facts = facts(key);
        let before = sees(&rules, &facts, &reader);
        rules.extend(added.into_iter().filter(|rule| rule.decision != Decision::Allow));
        prop_assert!(before || !sees(&rules, &facts, &reader));
    }

    #[test]
    fn adding_an_allow_never_hides_anything(
        mut rules in rules(), added in rules(), key in prefixes(), reader in readers(),
    ) {
        let facts = facts(key);
        let before = sees(&rules, &facts, &reader);
        rules.extend(added.into_iter().filter(|rule| rule.decision == Decision::Allow));
        prop_assert!(!before || sees(&rules, &facts, &reader));
    }

    #[test]
    fn rules_are_found_by_key_as_by_looking_at_each(
        rules in rules(), keys in prop::collection::vec(prefixes(), 1..6), reader in readers(),
    ) {
        let all = set(&rules);
        let hint = LookupHint::default();
        for key in keys {
            let about: Vec<(i64, Rule)> = rules
                .iter()
                .zip(1..)
                .filter(|(rule, _)| if rule.exact { key == rule.surt_prefix } else { key.starts_with(&rule.surt_prefix) })
                .map(|(rule, id)| (id, rule.clone()))
                .collect();
            let few = RuleSet::new(about);
            let (found, expected) = (all.explain(&facts(key), &reader), few.explain(&facts(key), &reader));
            let ids = |effects: &[RuleEffect<'_>]| effects.iter().map(|one| one.rule.id).collect::<Vec<_>>();
            prop_assert_eq!(ids(&found), ids(&expected));
            let visible = all.judge(&facts(key), &reader, &hint).is_visible();
            prop_assert_eq!(visible, few.judge(&facts(key), &reader, &LookupHint::default()).is_visible());
            prop_assert_eq!(visible, !found.iter().any(|one| matches!(one.effect, Effect::Hides)));
        }
    }
}

/// Whether an allow for everybody opens what a block of the other's keys hides.
fn opens(allow: &Rule, blocked: &Rule) -> bool {
    let rules =
        [Rule { decision: Decision::Allow, ..allow.clone() }, Rule { decision: block(), ..blocked.clone() }];
    sees(&rules, &facts("com,example)/a"), &anna())
}

fn of_mime(mime: &str) -> Rule {
    Rule { mime: Some(mime.to_owned()), ..rule("com,example)/a", Decision::Allow) }
}

fn captured(from: &str, to: &str) -> Rule {
    let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    Rule { captured_from: given(from), captured_to: given(to), ..rule("com,example)/a", Decision::Allow) }
}

#[test]
fn rules_are_narrow_by_key_then_collection_then_mime_type_then_span_of_time() {
    let plain = rule("com,example)/a", Decision::Allow);
    let shorter = rule("com,example)", Decision::Allow);
    let of_collection = Rule { collection: Some("news".to_owned()), ..plain.clone() };
    for (name, narrow, broad) in [
        ("an exact key before a prefix", Rule { exact: true, ..plain.clone() }, plain.clone()),
        ("a longer prefix before a shorter", plain.clone(), shorter),
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
        ("a collection before a type", of_collection, of_mime("text/html")),
        ("a type before a span", of_mime("text/*"), captured("2020", "2020")),
        ("a span before all time", captured("2019", "2020"), plain.clone()),
        ("a short span before a long one", captured("20200101", "20200102"), captured("2000", "2020")),
        ("a span with two ends before one with a beginning", captured("2000", "2030"), captured("2019", "")),
        ("a span with two ends before one with an end", captured("2000", "2030"), captured("", "2021")),
        ("a beginning before all time", captured("2019", ""), plain.clone()),
        ("an end before all time", captured("", "2021"), plain),
    ] {
        assert!(opens(&narrow, &broad), "{name}");
        assert!(!opens(&broad, &narrow), "{name}");
    }
}

#[test]
fn spans_that_are_open_at_one_end_are_equally_narrow() {
    for (one, other) in [
        (captured("2019", ""), captured("2000", "")),
        (captured("", "2021"), captured("", "2030")),
        (captured("2019", ""), captured("", "2021")),
    ] {
        assert!(!opens(&one, &other) && !opens(&other, &one), "{one:?} and {other:?}");
    }
}
