//! The chain as a whole.

use std::sync::{Arc, LazyLock};

use jiff::Timestamp;
use proptest::prelude::*;
use url::Url;

use super::*;
use crate::candidate::Candidate;

fn now() -> Timestamp {
    "2026-11-16T00:00:00Z".parse().unwrap()
}

fn scope(settings: &Settings) -> Scope {
    Scope::new(settings, &["http://www.example.com/"], &Traps::default(), now()).unwrap()
}

fn candidate(url: &str, hops: &str) -> Candidate {
    Candidate {
        url: Url::parse(url).unwrap(),
        via: Some(Arc::from("http://www.example.com/")),
        hops: hops.parse().unwrap(),
        source: Some(Arc::from("http://www.example.com/")),
        force: false,
    }
}

fn decide(scope: &Scope, url: &str, hops: &str) -> (bool, u8) {
    let decision = scope.decide(&candidate(url, hops), &mut Scratch::default());
    (decision.accept, decision.rule.number())
}

#[test]
fn the_last_rule_that_does_not_pass_wins() {
    let settings = Settings {
        reject_surts: vec!["http://(com,example,private,".to_owned()],
        reject_regexes: vec![".*logout.*".to_owned()],
        max_hops: 3,
        ..Settings::default()
    };
    let scope = scope(&settings);
    let far = format!("http://www.example.com/{}", "a/b/".repeat(12));
    let long = format!("http://www.example.com/{}", "a".repeat(2083));
    let many: Vec<String> = (0..31).map(|n| format!("a{n}")).collect();
    let many = format!("http://www.example.com/?{}", many.join("&"));
    for (url, hops, decision) in [
        ("http://other.example/", "L", (false, 1)),
        ("http://www.example.com/", "", (true, 2)),
        ("https://shop.example.com/x", "LLL", (true, 2)),
        ("https://shop.example.com/x", "LLLL", (false, 3)),
        ("http://cdn.example/x.png", "LLLLE", (true, 4)),
        ("http://www.example.com/x.png", "LE", (true, 4)),
        ("http://cdn.example/x.js", "LXX", (false, 1)),
        ("http://private.example.com/", "L", (false, 5)),
        ("http://private.example.com/a.png", "LE", (false, 5)),
        ("http://www.example.com/logout", "E", (false, 6)),
        ("http://other.example/logout", "L", (false, 6)),
        ("http://www.example.com/a/a/a/b", "L", (false, 7)),
        (&far, "L", (false, 8)),
        (&long, "L", (false, 9)),
        (&many, "L", (false, 10)),
        ("http://www.example.com/calendar/2050-01", "L", (false, 11)),
        ("http://private.example.com/robots.txt", "LP", (true, 12)),
        ("dns:other.example", "LLLLLLP", (true, 12)),
        ("ftp://www.example.com/x", "L", (false, 13)),
        ("ftp://www.example.com/x", "LP", (false, 13)),
        ("mailto:a@example.com", "L", (false, 13)),
        ("dns:www.example.com", "L", (false, 1)),
    ] {
        assert_eq!(decide(&scope, url, hops), decision, "{url} {hops}");
    }
}

/// The chain of Heritrix, written forwards and without haste: what the fast one must equal.
fn forwards(settings: &Settings, candidate: &Candidate) -> (bool, u8) {
    let url = &candidate.url;
    let surt = urlkey::scope_surt(url.as_str()).unwrap_or_default();
    let back: String = candidate.hops.to_string().chars().rev().take_while(|c| !"LSM".contains(*c)).collect();
    let counted = back.chars().filter(|c| *c != 'R').count() as u32;
    let guessed = back.matches('X').count() as u32;
    let mut last = (false, 1);
    let mut says = |condition: bool, accept: bool, number: u8| {
        if condition {
            last = (accept, number);
        }
    };
    says(surt.starts_with("http://(com,example,"), true, 2);
    says(candidate.hops.count() > settings.max_hops, false, 3);
    says(!back.is_empty() && counted <= 2 && guessed <= 1, true, 4);
    says(surt.starts_with("http://(com,example,private,"), false, 5);
    says(url.as_str().contains("logout"), false, 6);
    says(
        ["/a/a/a/", "/b/b/b/", "/c/c/c/", "/logout/logout/logout/"]
            .iter()
            .any(|part| url.as_str().contains(part)),
        false,
        7,
    );
    says(url.path().matches('/').count() > 4, false, 8);
    says(candidate.hops.to_string().ends_with('P'), true, 12);
    says(!["http", "https", "dns"].contains(&url.scheme()), false, 13);
    last
}

/// Made once for all cases.
static STRICT: LazyLock<(Settings, Scope)> = LazyLock::new(|| {
    let settings = Settings {
        reject_surts: vec!["http://(com,example,private,".to_owned()],
        reject_regexes: vec![".*logout.*".to_owned()],
        max_hops: 3,
        max_path_depth: 4,
        ..Settings::default()
    };
    let scope = scope(&settings);
    (settings, scope)
});

proptest! {
    #[test]
    fn walking_from_the_end_equals_walking_from_the_start(
        scheme in "(http|https|ftp)",
        host in "(www\\.|private\\.|)(example\\.com|other\\.example)",
        path in "(/(a|b|logout|c)){0,5}/?",
        hops in "[LERXPIMS]{0,6}",
    ) {
        let (settings, scope) = &*STRICT;
        let candidate = candidate(&format!("{scheme}://{host}{path}"), &hops);
        let decision = scope.decide(&candidate, &mut Scratch::default());
        prop_assert_eq!((decision.accept, decision.rule.number()), forwards(settings, &candidate));
    }

    #[test]
    fn no_url_makes_it_panic(url in "(http://|https://|dns:|x:|)\\PC{0,80}", hops in "[LERXPIMS]{0,9}") {
        if Url::parse(&url).is_ok() {
            decide(&STRICT.1, &url, &hops);
        }
    }
}

#[test]
fn front_pages_come_with_their_parts_and_nothing_else() {
    let scope = scope(&Settings { max_hops: 0, ..Settings::default() });
    for (url, hops, accept) in [
        ("http://www.example.com/", "", true),
        ("http://www.example.com/start", "R", true),
        ("http://cdn.example/a.png", "E", true),
        ("http://cdn.example/b.png", "REE", true),
        ("http://www.example.com/about", "L", false),
    ] {
        assert_eq!(decide(&scope, url, hops).0, accept, "{url} {hops}");
    }
}

#[test]
fn scope_can_be_changed_while_it_is_used() {
    let live = LiveScope::new(scope(&Settings::default()));
    let before = live.current();
    live.change(|scope| scope.with_seeds(&["http://new.example/"])).unwrap();
    live.change(|scope| scope.with_reject_regex(".*/secret/.*")).unwrap();
    assert!(live.change(|scope| scope.with_reject_regex("(")).is_err());
    let third = live.change(|scope| scope.with_seeds(&["http://third.example/", "::"]));
    assert!(matches!(third, Err(ScopeError::Seed(_))));
    let after = live.current();
    for (url, old, new) in [
        ("http://new.example/a", false, true),
        ("http://www.example.com/secret/x", true, false),
        ("http://third.example/", false, false),
        ("http://www.example.com/", true, true),
    ] {
        assert_eq!((decide(&before, url, "L").0, decide(&after, url, "L").0), (old, new), "{url}");
    }
    let secret = after.decide(&candidate("http://www.example.com/secret/x", "L"), &mut Scratch::default());
    let (text, origin) = secret.pattern.and_then(|index| after.pattern(index)).unwrap();
    assert_eq!((text, origin), (".*/secret/.*", &PatternOrigin::Operator));
}

#[test]
fn redirected_seeds_count_inside_their_domain() {
    for (setting, same, other) in [
        (RedirectedSeeds::Never, false, false),
        (RedirectedSeeds::SameDomain, true, false),
        (RedirectedSeeds::Always, true, true),
    ] {
        let scope = scope(&Settings { redirected_seeds: setting, ..Settings::default() });
        let takes = |from: &str, to: &str| {
            scope.takes_redirected_seed(&Url::parse(from).unwrap(), &Url::parse(to).unwrap())
        };
        assert_eq!(takes("http://example.com/", "https://www.example.com/a"), same);
        assert_eq!(takes("http://127.0.0.1/", "http://127.0.0.1:80/a"), same);
        assert_eq!(takes("http://example.com/", "https://seller.example/"), other);
    }
}

#[test]
fn what_cannot_be_a_scope_is_refused() {
    let new =
        |settings: &Settings, seeds: &[&str]| Scope::new(settings, seeds, &Traps::default(), now()).err();
    assert_eq!(
        new(&Settings::default(), &["mailto:a@b"]).unwrap().to_string(),
        "the seed \"mailto:a@b\" is not a URL with a host; write http://example.com/ or https://example.com/"
    );
    let off = Settings { seeds_as_surt_prefixes: false, ..Settings::default() };
    assert_eq!(new(&off, &["http://a.example/"]), Some(ScopeError::Nothing));
    let listed = Settings { accept_surts: vec!["com,example,".to_owned()], ..off };
    assert_eq!(new(&listed, &[]), None);
    let bad = Settings { reject_regexes: vec!["(?=x)".to_owned()], ..Settings::default() };
    assert!(new(&bad, &[]).unwrap().to_string().contains("look-around"));
}

#[test]
fn the_log_tells_why_then_samples_then_sums_up() {
    let scope = scope(&Settings { reject_regexes: vec![".*x".to_owned()], ..Settings::default() });
    let mut log = ScopeLog::new();
    let mut out = Vec::new();
    let mut note = |log: &mut ScopeLog, url: &str| {
        let candidate = candidate(url, "L");
        let decision = scope.decide(&candidate, &mut Scratch::default());
        log.note(now(), &scope, decision, &candidate, &mut out);
    };
    note(&mut log, "http://www.example.com/fine");
    note(&mut log, "http://www.example.com/x");
    for n in 0..1000 {
        note(&mut log, &format!("http://b.example/{n}"));
    }
    log.close(now(), &mut out);
    let text = String::from_utf8(out).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[0],
        "2026-11-16T00:00:00.000Z 6 MatchesListRegexDecideRule REJECT http://www.example.com/x {\"hopPath\":\"L\",\"via\":\
         \"http://www.example.com/\",\"seed\":\"http://www.example.com/\",\"host\":\"www.example.com\",\"regex\":\".*x\"}"
    );
    assert_eq!(lines.len(), 1 + 20 + 10 + 2);
    assert_eq!(
        lines[lines.len() - 2..],
        [
            "2026-11-16T00:00:00.000Z 1 RejectDecideRule REJECT - {\"rejected\":1000,\"logged\":30}",
            "2026-11-16T00:00:00.000Z 6 MatchesListRegexDecideRule REJECT - {\"rejected\":1,\"logged\":1}",
        ]
    );
    assert_eq!(log.rejected().map(|(_, count)| count).sum::<u64>(), 1001);
}

#[test]
fn numbers_are_places_in_the_chain() {
    for (index, rule) in Rule::ALL.into_iter().enumerate() {
        assert_eq!(usize::from(rule.number()), index + 1);
    }
}

#[test]
fn hosts_of_seed_domains_and_of_listed_surts_are_the_crawls_own() {
    use super::ScopeKind::{Any, Host, Page};
    for (kind, surts, host, own) in [
        (Host, &[][..], "www.example.co.uk", true),
        (Host, &[], "img.example.co.uk", true),
        (Page, &[], "example.co.uk", true),
        (Host, &[], "example2.co.uk", false),
        (Host, &["http://(com,a,"], "x.a.com", true),
        (Host, &["http://(com,a,"], "b.com", false),
        (Host, &["https://b.com/only/this/"], "b.com", true),
        (Host, &["https://b.com/only/this/"], "x.b.com", false),
        (Any, &[], "anything.example", true),
    ] {
        let accept_surts = surts.iter().map(|surt| (*surt).to_owned()).collect();
        let settings = Settings { kind, accept_surts, ..Settings::default() };
        let seeds = ["http://www.example.co.uk/a"];
        let scope = Scope::new(&settings, &seeds, &Traps::default(), Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(scope.is_own_host(host), own, "{kind:?} {surts:?} {host}");
        assert!(scope.with_seeds(&[format!("http://{host}/")]).unwrap().is_own_host(host), "{host}");
    }
}
