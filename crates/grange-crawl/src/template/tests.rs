use std::collections::HashSet;

use proptest::prelude::*;

use super::*;
use crate::scope::ScopeKind;

fn problems(text: &str) -> Vec<String> {
    parse(text).map_or_else(|error| error.0.iter().map(ToString::to_string).collect(), |_| Vec::new())
}

#[test]
fn the_nine_shipped_templates_are_sound_and_named_by_their_files() {
    let mut names = HashSet::new();
    for (name, text) in shipped() {
        let template = parse(text).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(template.name, name);
        assert!(template.description.ends_with('.'), "{name}");
        assert!(names.insert(name));
        let values = Values {
            job_id: "7".into(),
            contact_url: "https://library.example/crawl".into(),
            ..Values::default()
        };
        assert_eq!(template.fill(&values).unwrap().name, name);
    }
    assert_eq!(names.len(), 9);
}

#[test]
fn a_template_says_only_what_differs() {
    let template = parse("name = \"x\"\n[scope]\nkind = \"host\"\nmax_hops = 3\n").unwrap();
    assert_eq!((template.scope.kind, template.scope.max_hops), (ScopeKind::Host, 3));
    assert_eq!(template.scope.max_trans_hops, 2);
    assert_eq!(template.virus, virus::Settings::default());
}

#[test]
fn every_fault_is_told_with_its_place_and_what_was_meant() {
    for (text, told) in [
        ("name = ", "line 1, column 8: not TOML: "),
        (
            "name = \"x\"\n[scope]\n  max_hop = 3",
            "line 3, column 3: scope.max_hop: there is no such key; did you mean \"scope.max_hops\"?",
        ),
        (
            "name = \"x\"\nmax_hops = 3",
            "line 2, column 1: max_hops: there is no such key; did you mean \"scope.max_hops\"?",
        ),
        ("name = \"x\"\n[zzzzzzzzzzz]\na = 1", "line 2, column 2: zzzzzzzzzzz: there is no such key"),
        (
            "name = \"x\"\n[scope]\nmax_hops = \"3\"",
            "line 3, column 1: scope.max_hops: wrong kind of value: string \"3\", expected a whole number that is not negative",
        ),
        (
            "name = \"x\"\n[scope]\nmax_hops = -1",
            "line 3, column 1: scope.max_hops: unusable value: integer `-1`, expected a whole number that is not negative",
        ),
        (
            "name = \"x\"\n[scope]\nkind = \"hots\"",
            "line 3, column 1: scope.kind: unknown choice `hots`, expected one of `domain`, `host`, `path`, `page`, `seed`, `any`",
        ),
        (
            "name = \"x\"\n[scope]\nreject_regexes = [\n  \"ok\",\n  \"(?!x)\",\n]",
            "line 5, column 3: scope.reject_regexes[1]: the expression \"(?!x)\" cannot be used: look-around, including look-ahead and look-behind, is not supported",
        ),
        (
            "name = \"x\"\ndescription = \"by {opertor}\"",
            "line 2, column 1: description: {opertor} stands for nothing; did you mean \"{operator}\"?",
        ),
        (
            "name = \"x\"\n[virus]\nclamd = \"here\"",
            "line 3, column 1: virus.clamd: virus.clamd is \"here\"; write tcp:HOST:PORT or unix:/PATH, or nothing to scan nothing",
        ),
        (
            "name = \"x\"\n[virus]\ntimeout = \"30\"",
            "line 3, column 1: virus.timeout: \"30\" is not a length of time: write a number with a unit, such as 500ms, 30s, 5m, 1h 30m or 7d",
        ),
        (
            "[scope]\nschemes = []\nseeds_as_surt_prefixes = false",
            "name: a template needs a name of letters, digits, dashes, dots and underscores",
        ),
        (
            "name = \"x\"\nscope = 3",
            "line 2, column 1: scope: wrong kind of value: integer `3`, expected a table",
        ),
    ] {
        let problems = problems(text);
        assert!(problems.first().is_some_and(|first| first.starts_with(told)), "{text}\n{problems:#?}");
    }
}

#[test]
fn all_faults_are_told_at_once_in_the_order_of_the_text() {
    let told = problems("nam = \"x\"\ndescription = \"{x} {y}\"\n[scope]\nmax_hosp = 1\n[virsu]\n");
    assert_eq!(told.len(), 5, "{told:#?}");
    let lines: Vec<_> = told.iter().map(|problem| problem.split(',').next().unwrap()).collect();
    assert_eq!(lines, ["line 1", "line 2", "line 2", "line 4", "line 5"]);
    assert_eq!(problems("[scope]\nschemes = []\nseeds_as_surt_prefixes = false").len(), 3);
}

#[test]
fn placeholders_are_filled_for_each_job() {
    let template = parse(
        "name = \"x\"\ndescription = \"{harvest} by {operator}, {job_id}\"\n[scope]\nreject_regexes = ['.*{from}']",
    );
    // A brace in an expression is an expression's.
    let problems = template.as_ref().err().map(ToString::to_string);
    assert!(problems.is_some_and(|text| text.contains("scope.reject_regexes[0]")), "{template:?}");
    let template = parse("name = \"x\"\ndescription = \"{harvest} by {operator}, {job_id}\"").unwrap();
    let values = Values {
        job_id: "17".into(),
        harvest: "Weekly {from}".into(),
        operator: "Anna".into(),
        contact_url: "https://library.example/crawl".into(),
        ..Values::default()
    };
    let filled = template.fill(&values).unwrap();
    assert_eq!(filled.description, "Weekly {from} by Anna, 17");
    assert_eq!(filled.scope, template.scope);
}

#[test]
fn a_template_written_is_read_back_the_same() {
    for (_, text) in shipped() {
        let template = parse(text).unwrap();
        let again = toml::to_string(&template).unwrap();
        assert_eq!(parse(&again).unwrap(), template);
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "[\\PC\\n]{0,120}") {
        let _ = parse(&text);
    }

    #[test]
    fn no_damage_makes_the_reader_panic(which in 0_usize..9, at in any::<prop::sample::Index>(), junk in "\\PC{0,6}") {
        let mut text = shipped()[which].1.to_owned();
        let at = text.floor_char_boundary(at.index(text.len()));
        text.insert_str(at, &junk);
        let _ = parse(&text);
        let _ = parse(&text[..at]);
    }
}
