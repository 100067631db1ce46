//! RFC 9309 in tables, with the cases that Google's published tests cover, in our own words.

use grange_base::Period;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use super::*;
use crate::hops::{Hop, Hops};

/// Each row: the file, the paths that are allowed, the paths that are not. We are FooBot.
fn check(cases: &[(&str, &[&str], &[&str])]) {
    for (file, allowed, forbidden) in cases {
        let robots = Robots::parse(file.as_bytes(), "FooBot");
        for path in *allowed {
            assert!(robots.allows(path).allowed, "{file:?} should allow {path}");
        }
        for path in *forbidden {
            assert!(!robots.allows(path).allowed, "{file:?} should forbid {path}");
        }
    }
}

#[test]
fn groups_are_chosen_by_name_and_merged() {
    check(&[
        ("", &["/", "/x"], &[]),
        ("user-agent: FooBot\ndisallow: /", &[], &["/", "/x"]),
        // Rules before any name are nobody's.
        ("foo: FooBot\nbar: /\ndisallow: /x", &["/x"], &[]),
        ("disallow: /a\nuser-agent: foobot\ndisallow: /b", &["/a"], &["/b"]),
        // Names in a row share what follows, across blank lines and lines of other kinds.
        ("user-agent: BarBot\n\nuser-agent: FooBot\n\ndisallow: /x", &["/"], &["/x"]),
        ("user-agent: BarBot\nsitemap: /s\nuser-agent: FooBot\ndisallow: /x", &["/"], &["/x"]),
        ("user-agent: FooBot\nunknown: y\nuser-agent: BarBot\ndisallow: /x", &["/"], &["/x"]),
        // A rule ends the row.
        ("user-agent: FooBot\ndisallow: /a\nuser-agent: BarBot\ndisallow: /b", &["/b"], &["/a"]),
        ("user-agent: BarBot\ndisallow: /\nuser-agent: *\ndisallow: /s", &["/x"], &["/s"]),
        // Groups of one name are one group.
        (
            "user-agent: foobot\ndisallow: /a\nuser-agent: bar\ndisallow: /b\nuser-agent: FOOBOT\ndisallow: /c",
            &["/b"],
            &["/a", "/c"],
        ),
        // The named group replaces the one for anyone, wherever it stands.
        ("user-agent: *\ndisallow: /\nuser-agent: FooBot\ndisallow: /x", &["/y"], &["/x"]),
        ("user-agent: FooBot\nallow: /\nuser-agent: *\ndisallow: /", &["/y"], &[]),
        ("user-agent: FooBot\nuser-agent: *\ndisallow: /x", &["/y"], &["/x"]),
        // Being named and told nothing is being allowed everything.
        ("user-agent: *\ndisallow: /\nuser-agent: FooBot\ndisallow:", &["/y"], &[]),
        ("user-agent: *\ndisallow: /\nuser-agent: FooBot", &["/y"], &[]),
    ]);
}

#[test]
fn repeated_rules_take_no_memory_and_decide_as_one() {
    let many = "allow: /a\ndisallow: /a/b\n".repeat(20_000);
    let robots = Robots::parse(format!("user-agent: *\ndisallow: /\n{many}").as_bytes(), "FooBot");
    let rules: Vec<_> = robots.rules().iter().map(|rule| (rule.line, rule.pattern.as_str())).collect();
    assert_eq!(rules, [(2, "/"), (3, "/a"), (4, "/a/b")]);
    assert!(robots.memory() < 1_000, "{}", robots.memory());
    for (path, allowed) in [("/x", false), ("/a", true), ("/a/b", false)] {
        assert_eq!(robots.allows(path).allowed, allowed, "{path}");
    }
    let different: Vec<_> = (0..20_000).map(|n| format!("disallow: /{n}")).collect();
    let robots = Robots::parse(format!("user-agent: *\n{}", different.join("\n")).as_bytes(), "FooBot");
    assert_eq!(robots.rules().len(), 20_000);
    assert!(robots.memory() > 20_000 * 30, "{}", robots.memory());
}

#[test]
fn names_are_compared_as_whole_tokens_without_case() {
    check(&[
        ("USER-AGENT: foobot\nDISALLOW: /", &[], &["/"]),
        ("User-Agent: FOOBOT/2.1\nDisAllow: /", &[], &["/"]),
        ("user-agent: FooBot 1.0\ndisallow: /", &[], &["/"]),
        ("user-agent: Foo\ndisallow: /", &["/"], &[]),
        ("user-agent: FooBotNews\ndisallow: /", &["/"], &[]),
        ("user-agent: FooBot-News\ndisallow: /", &["/"], &[]),
        ("user-agent: *\ndisallow: /", &[], &["/"]),
        ("user-agent: * baz\ndisallow: /", &[], &["/"]),
        ("user-agent: *baz\ndisallow: /", &["/"], &[]),
        ("user-agent:\ndisallow: /", &["/"], &[]),
    ]);
    let robots = Robots::parse(b"user-agent: grange\ndisallow: /", "Grange/1.0 (+https://example.org/bot)");
    assert!(!robots.allows("/").allowed);
    // Whoever has no name is anyone.
    let robots = Robots::parse(b"user-agent: x\ndisallow: /x\nuser-agent: *\ndisallow: /y", "");
    assert!(robots.allows("/x").allowed && !robots.allows("/y").allowed);
}

#[test]
fn the_longest_match_wins_and_of_equals_the_one_that_allows() {
    check(&[
        ("user-agent: *\ndisallow: /x/page.html\nallow: /x/", &["/x/", "/x/other"], &["/x/page.html"]),
        ("user-agent: *\nallow: /x/page.html\ndisallow: /x/", &["/x/page.html"], &["/x/", "/x/page"]),
        ("user-agent: *\ndisallow:\nallow:", &["/x"], &[]),
        ("user-agent: *\ndisallow: /\nallow: /", &["/x"], &[]),
        ("user-agent: *\ndisallow: /x\nallow: /x/", &["/x/", "/x/y"], &["/x", "/xy"]),
        ("user-agent: *\ndisallow: /x/page.html\nallow: /x/page.html", &["/x/page.html"], &[]),
        ("user-agent: *\nallow: /page\ndisallow: /*.html", &["/page"], &["/page.html", "/x.html"]),
        ("user-agent: *\nallow: /x/page.\ndisallow: /*.html", &["/x/page.html"], &["/x/y.html"]),
        ("user-agent: *\ndisallow: /x/\nallow: /x/page", &["/x/page1", "/x/page/2"], &["/x/other"]),
        // A rule between two prefixes hides neither.
        ("user-agent: *\ndisallow: /a\ndisallow: /ab", &["/b"], &["/a", "/ab", "/ac", "/abc", "/aa"]),
        ("user-agent: *\nallow: /a\ndisallow: /ab", &["/a", "/ac"], &["/ab", "/abc"]),
        // The front page is what it is, not its index file.
        ("user-agent: *\nallow: /index.html\ndisallow: /", &["/index.html"], &["/", "/x"]),
        ("user-agent: *\nallow: /$\ndisallow: /", &["/"], &["/x", "/?q"]),
        ("user-agent: *\ndisallow: /", &["/robots.txt"], &["/robots.txt.bak", "/x/robots.txt"]),
    ]);
}

#[test]
fn signs_match_as_the_standard_says() {
    check(&[
        (
            "user-agent: *\ndisallow: /fish",
            &["/Fish.asp", "/catfish", "/?id=fish"],
            &["/fish", "/fish.html", "/fish/a", "/fisheads", "/fish?id=1"],
        ),
        (
            "user-agent: *\ndisallow: /fish*",
            &["/Fish.asp", "/catfish"],
            &["/fish", "/fish.html", "/fishheads/y.html"],
        ),
        (
            "user-agent: *\ndisallow: /fish/",
            &["/fish", "/fish.html", "/animals/fish/"],
            &["/fish/", "/fish/?id=x", "/fish/salmon"],
        ),
        (
            "user-agent: *\ndisallow: /*.php",
            &["/", "/windows.PHP"],
            &["/f.php", "/a/f.php?x", "/f.php5", "/a.php/b"],
        ),
        (
            "user-agent: *\ndisallow: /*.php$",
            &["/f.php?x", "/f.php/", "/f.php5"],
            &["/f.php", "/a/b.php", "/a.php.php"],
        ),
        ("user-agent: *\ndisallow: /fish*.php", &["/Fish.PHP"], &["/fish.php", "/fishheads/catfish.php?x"]),
        ("user-agent: *\ndisallow: *", &[], &["/", "/x"]),
        ("user-agent: *\ndisallow: *.gif$", &["/a.gifs"], &["/a.gif"]),
        ("user-agent: *\ndisallow: /a**b***c", &["/ab", "/ac"], &["/abc", "/axbxcx"]),
        ("user-agent: *\ndisallow: /a*a$", &["/a", "/ab"], &["/aa", "/aba"]),
        ("user-agent: *\ndisallow: /*a*ab$", &["/ab", "/aba"], &["/aab", "/xaxabxab"]),
        // A dollar elsewhere is a dollar; a query is a part of the path.
        ("user-agent: *\ndisallow: /a$b", &["/a", "/ab"], &["/a$b", "/a$bc", "/a%24b"]),
        ("user-agent: *\ndisallow: /*?", &["/a"], &["/a?", "/a?b=c"]),
        ("user-agent: *\ndisallow: /*?sid=", &["/a?b", "/a?b&sid=1"], &["/a?sid=1"]),
        ("user-agent: *\ndisallow: /$", &["/x"], &["/"]),
        ("user-agent: *\ndisallow: $", &["/", "/x"], &[]),
        // Without a slash it matches nothing.
        ("user-agent: *\ndisallow: fish", &["/fish"], &[]),
        ("user-agent: *\ndisallow: http://h.org/fish", &["/fish"], &[]),
    ]);
}

#[test]
fn percent_codes_are_compared_in_one_form() {
    check(&[
        ("user-agent: *\ndisallow: /a%3cd.html", &["/a<d"], &["/a%3Cd.html", "/a%3cd.html"]),
        ("user-agent: *\ndisallow: /%7Ejoe/", &["/joe/"], &["/~joe/", "/%7ejoe/x"]),
        ("user-agent: *\ndisallow: /~joe/", &[], &["/%7Ejoe/"]),
        (
            "user-agent: *\ndisallow: /foo/bar/ツ",
            &["/foo/bar/"],
            &["/foo/bar/%E3%83%84", "/foo/bar/%e3%83%84", "/foo/bar/ツ"],
        ),
        ("user-agent: *\ndisallow: /foo/bar/%E3%83%84", &[], &["/foo/bar/ツ"]),
        ("user-agent: *\ndisallow: /foo/bar/%62%61%7A", &[], &["/foo/bar/baz"]),
        (
            "user-agent: *\ndisallow: /a/b?q=http://x.org",
            &["/a/b?q=http%3A%2F%2Fx.org"],
            &["/a/b?q=http://x.org"],
        ),
        ("user-agent: *\ndisallow: /a%2fb", &["/a/b"], &["/a%2Fb"]),
        // Written signs are not signs.
        (
            "user-agent: *\ndisallow: /path/file-with-a-%2A.html",
            &["/path/file-with-a-x.html"],
            &["/path/file-with-a-*.html", "/path/file-with-a-%2a.html"],
        ),
        ("user-agent: *\ndisallow: /path/foo-%24", &["/path/foo-"], &["/path/foo-$", "/path/foo-$x"]),
        // Broken codes stand for themselves.
        ("user-agent: *\ndisallow: /100%", &["/100"], &["/100%", "/100%zz"]),
    ]);
    let latin = Robots::parse(b"user-agent: *\ndisallow: /caf\xe9", "FooBot");
    assert!(!latin.allows("/caf%E9").allowed && latin.allows("/caf%C3%A9").allowed);
}

#[test]
fn lines_are_taken_as_people_write_them() {
    check(&[
        ("user-agent: FooBot\rdisallow: /x", &["/"], &["/x"]),
        ("user-agent: FooBot\r\ndisallow: /x\r\n", &["/"], &["/x"]),
        ("\u{feff}user-agent: FooBot\ndisallow: /x", &["/"], &["/x"]),
        ("  user-agent :  FooBot  # us\n\tdisallow\t:\t/x\t# no", &["/"], &["/x"]),
        ("user-agent FooBot\ndisallow /x", &["/"], &["/x"]),
        ("user-agent: FooBot\ndisallow: /a b", &["/a"], &["/a%20b"]),
        ("user-agent: FooBot\ndisallow: /x#frag", &["/"], &["/x"]),
        ("user-agent: FooBot\n\n\n#c\nDisallow:/x", &["/"], &["/x"]),
        (
            "user-agent: FooBot\nnoindex: /y\ndisallow /x y z\n:\n:::\n=\nallow\ndisallow: /x",
            &["/y"],
            &["/x"],
        ),
        (
            "<!DOCTYPE html><html><head><title>Not found</title></head>\n<body>Disallow: /</body></html>",
            &["/"],
            &[],
        ),
        ("user-agent: FooBot\ndisallow: /x\0y", &["/x"], &["/x%00y"]),
    ]);
    let wide: Vec<u8> =
        "\u{feff}user-agent: *\ndisallow: /x".encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert!(!Robots::parse(&wide, "FooBot").allows("/x").allowed);
}

#[test]
fn a_verdict_names_its_rule_and_its_line() {
    let robots =
        Robots::parse(b"# us\r\nuser-agent: *\r\ndisallow: /private\r\nallow: /private/but", "FooBot");
    let verdict = robots.allows("/private/x");
    assert_eq!((verdict.allowed, verdict.rule.map(|rule| rule.line)), (false, Some(3)));
    let verdict = robots.allows("/private/but-this");
    assert_eq!((verdict.allowed, verdict.rule.map(|rule| rule.line)), (true, Some(4)));
    assert_eq!(robots.allows("/public").rule, None);
    let old = Robots::parse(b"user-agent: *\rdisallow: /a\rdisallow: /b", "FooBot");
    assert_eq!(old.rules().iter().map(|rule| rule.line).collect::<Vec<_>>(), [2, 3]);
}

#[test]
fn delays_and_sitemaps_are_told() {
    let delay =
        |file: &str| Robots::parse(file.as_bytes(), "FooBot").crawl_delay().map(|delay| delay.as_secs_f64());
    assert_eq!(delay("user-agent: *\ncrawl-delay: 2.5"), Some(2.5));
    assert_eq!(delay("user-agent: *\ncrawl-delay: 5\nuser-agent: foobot\ncrawl-delay: 1"), Some(1.0));
    assert_eq!(delay("user-agent: *\ncrawl-delay: 5\ndisallow: /\nuser-agent: foobot\ndisallow: /x"), None);
    assert_eq!(delay("user-agent: bar\ncrawl-delay: 5\nuser-agent: *\ndisallow: /x"), None);
    for nonsense in ["-1", "soon", "NaN", "inf", "", "1e400"] {
        assert_eq!(delay(&format!("user-agent: *\ncrawl-delay: {nonsense}")), None, "{nonsense}");
    }
    // Large numbers are numbers; the pace has its cap.
    assert_eq!(delay("user-agent: *\ncrawl-delay: 1000000"), Some(1e6));
    let robots = Robots::parse(b"Sitemap: http://h.org/1\nuser-agent: x\nSITEMAP : http://h.org/2", "FooBot");
    assert_eq!(robots.sitemaps(), ["http://h.org/1", "http://h.org/2"]);
}

#[test]
fn five_hundred_kibibytes_are_read_and_a_cut_rule_is_dropped() {
    let mut file = b"user-agent: *\ndisallow: /early\n".to_vec();
    while file.len() < READ_BYTES_MAX - 11 {
        file.extend_from_slice(b"#\n");
    }
    file.truncate(READ_BYTES_MAX - 12);
    file.extend_from_slice(b"\ndisallow: /secret\n");
    let robots = Robots::parse(&file, "FooBot");
    assert!(!robots.allows("/early").allowed);
    assert!(robots.allows("/secret").allowed && robots.allows("/").allowed);
}

#[test]
fn an_answer_means_rules_freedom_or_patience() {
    let http = |status| meaning(Answer::Http { status, body: b"x" });
    for status in [200, 204, 299] {
        assert_eq!(http(status), Means::Rules(b"x"));
    }
    for status in [300, 304, 400, 401, 403, 404, 410, 451, 499] {
        assert_eq!(http(status), Means::AllowAll, "{status}");
    }
    for status in [429, 500, 502, 503, 504, 599, 600, 999, 100, 0] {
        assert_eq!(http(status), Means::TryLater, "{status}");
    }
    assert_eq!(meaning(Answer::LostInRedirects), Means::AllowAll);
    assert_eq!(meaning(Answer::Unreachable), Means::TryLater);
}

#[test]
fn a_copy_grows_old_and_a_silent_host_is_left_alone() {
    let settings = Settings::default();
    let start = Timestamp::from_second(1_700_000_000).unwrap();
    let at = |minutes: i64| start + SignedDuration::from_mins(minutes);
    let good = Answer::Http { status: 200, body: b"user-agent: *\ndisallow: /x" };
    let broken = Answer::Http { status: 503, body: b"" };
    let forbids = |standing: Standing<'_>| match standing {
        Standing::Rules(robots) => Some(!robots.allows("/x").allowed),
        _ => None,
    };

    // Never asked: ask now, fetch nothing.
    let mut host = HostRobots::default();
    assert_eq!(host.standing(at(0), &settings), Standing::Unknown);
    assert!(host.ask_at(&settings) < at(0));

    // It does not answer: wait one minute, then two, then four; after half an hour all is forbidden.
    host.learn(broken, "FooBot", at(0), &settings);
    assert_eq!((host.standing(at(0), &settings), host.ask_at(&settings)), (Standing::Unknown, at(1)));
    host.learn(Answer::Unreachable, "FooBot", at(1), &settings);
    assert_eq!((host.standing(at(1), &settings), host.ask_at(&settings)), (Standing::Unknown, at(3)));
    host.learn(broken, "FooBot", at(3), &settings);
    assert_eq!(host.ask_at(&settings), at(7));
    assert_eq!(host.standing(at(29), &settings), Standing::Unknown);
    assert_eq!(host.standing(at(30), &settings), Standing::DisallowAll);
    assert_eq!(host.standing(at(62), &settings), Standing::DisallowAll);
    assert_eq!(host.standing(at(63), &settings), Standing::Unknown, "nobody knows how it is after an hour");
    for minute in [30, 90, 150] {
        host.learn(broken, "FooBot", at(minute), &settings);
    }
    assert_eq!(host.ask_at(&settings), at(150 + 32));
    host.learn(broken, "FooBot", at(182), &settings);
    assert_eq!(host.ask_at(&settings), at(182 + 60), "never longer than an hour");

    // It answers: the rules count for a day.
    host.learn(good, "FooBot", at(200), &settings);
    assert_eq!(
        (forbids(host.standing(at(200), &settings)), host.ask_at(&settings)),
        (Some(true), at(200 + 1440))
    );
    assert_eq!(forbids(host.standing(at(200 + 1439), &settings)), Some(true));
    assert_eq!(host.standing(at(200 + 1440), &settings), Standing::Unknown);

    // It fails again: the good copy counts a day more, while it is asked again and again.
    host.learn(broken, "FooBot", at(200 + 1440), &settings);
    assert_eq!(forbids(host.standing(at(200 + 1440), &settings)), Some(true));
    assert_eq!(host.ask_at(&settings), at(200 + 1441));
    assert_eq!(forbids(host.standing(at(200 + 2879), &settings)), Some(true));
    assert_eq!(
        host.standing(at(200 + 2880), &settings),
        Standing::Unknown,
        "one failure a day ago says nothing"
    );

    // The file is gone: nothing is forbidden.
    host.learn(Answer::Http { status: 404, body: b"" }, "FooBot", at(5000), &settings);
    assert_eq!(forbids(host.standing(at(5000), &settings)), Some(false));

    // What is stored is what is read back.
    host.learn(good, "FooBot", at(6000), &settings);
    host.learn(broken, "FooBot", at(8000), &settings);
    let stored = serde_json::to_string(&host).unwrap();
    assert_eq!(serde_json::from_str::<HostRobots>(&stored).unwrap(), host);
}

#[test]
fn times_without_end_do_not_overflow() {
    let long = Period(Duration::MAX);
    let settings = Settings { valid: long, stale: long, retry: long, retry_max: long, give_up: long };
    let mut host = HostRobots::default();
    host.learn(Answer::Unreachable, "FooBot", Timestamp::MAX, &settings);
    assert_eq!(host.ask_at(&settings), Timestamp::MAX);
    host.learn(Answer::LostInRedirects, "FooBot", Timestamp::MIN, &settings);
    assert!(matches!(host.standing(Timestamp::UNIX_EPOCH, &settings), Standing::Rules(_)));
}

#[test]
fn the_policy_decides_what_is_done_with_what_is_forbidden() {
    let no = Verdict { allowed: false, rule: None };
    let yes = Verdict { allowed: true, rule: None };
    let hops = |letters: &str| letters.parse::<Hops>().unwrap();
    for (policy, verdict, way, fetch, noted) in [
        (Policy::Obey, yes, "LE", true, false),
        (Policy::Obey, no, "LL", false, false),
        (Policy::Obey, no, "LE", false, false),
        (Policy::Obey, no, "LP", true, false),
        (Policy::Ignore, no, "", true, true),
        (Policy::Ignore, yes, "L", true, false),
        (Policy::ObeyExceptEmbeds, no, "LL", false, false),
        (Policy::ObeyExceptEmbeds, no, "", false, false),
        (Policy::ObeyExceptEmbeds, no, "LE", true, true),
        (Policy::ObeyExceptEmbeds, no, "LERR", true, true),
        (Policy::ObeyExceptEmbeds, no, "LR", false, false),
        (Policy::ObeyExceptEmbeds, no, "EX", false, false),
    ] {
        let decision = policy.decide(verdict, &hops(way));
        assert_eq!((decision.fetch, decision.annotation.is_some()), (fetch, noted), "{policy:?} {way}");
    }
    assert_eq!(hops("LP").last(), Some(Hop::Prerequisite));
}

/// The same question put the plain way: every place for every star.
fn slow_match(pattern: &[u8], path: &[u8]) -> bool {
    match pattern {
        [] => true,
        [b'$'] => path.is_empty(),
        [b'*', rest @ ..] => (0..=path.len()).any(|skip| slow_match(rest, &path[skip..])),
        [byte, rest @ ..] => path.first() == Some(byte) && slow_match(rest, &path[1..]),
    }
}

proptest! {
    #[test]
    fn any_bytes_are_a_file(text in prop::collection::vec(any::<u8>(), 0..200), path in ".{0,40}") {
        let robots = Robots::parse(&text, "FooBot");
        let _ = robots.allows(&path);
        let _ = robots.crawl_delay();
    }

    #[test]
    fn junk_lines_change_nothing(junk in "[^\r\n:# \t]{0,20}") {
        let file = format!("user-agent: *\n{junk}\ndisallow: /x\n{junk}");
        let robots = Robots::parse(file.as_bytes(), "FooBot");
        prop_assert!(!robots.allows("/x").allowed && robots.allows("/y").allowed);
    }

    #[test]
    fn patterns_match_as_the_plain_way_does(pattern in "/[ab*]{0,8}\\$?", path in "/[ab]{0,10}") {
        prop_assert_eq!(matches(&pattern, &path), slow_match(pattern.as_bytes(), path.as_bytes()));
    }

    #[test]
    fn the_normal_form_is_normal(path in "/[ -~é%]{0,20}") {
        let once = normal_path(&path).into_owned();
        prop_assert_eq!(normal_path(&once), once.as_str());
    }
}
