//! The model alone: what follows from what.

use std::collections::{BTreeMap, BTreeSet};

use crate::web::{Expected, Options, Place, Profile, Robots, RobotsPolicy, Rules, Scope, Sub, Web};

fn web(hosts: usize, pages: usize) -> Web {
    Web::new(Options { hosts, pages, ..Options::default() })
}

fn digests(expected: &BTreeMap<String, Expected>) -> BTreeMap<&str, &str> {
    expected.iter().map(|(url, expected)| (url.as_str(), expected.payload_sha1.as_str())).collect()
}

#[test]
fn the_same_seed_gives_the_same_web_and_another_one_another() {
    let rules = Rules::default();
    let first = web(3, 20).expected(&rules);
    assert_eq!(first, web(3, 20).expected(&rules));
    let other = Web::new(Options { hosts: 3, pages: 20, seed: 2, ..Options::default() }).expected(&rules);
    assert_eq!(first.keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>());
    assert_ne!(first, other);
}

#[test]
fn a_generation_changes_exactly_its_share() {
    let at = |generation| Web::new(Options { hosts: 2, pages: 50, generation, ..Options::default() });
    let rules = Rules { robots: RobotsPolicy::Ignore, ..Rules::default() };
    let (old, new) = (at(0).expected(&rules), at(1).expected(&rules));
    let (old, new) = (digests(&old), digests(&new));
    let differing: BTreeSet<String> =
        new.iter().filter(|(url, digest)| old[*url] != **digest).map(|(url, _)| (*url).to_owned()).collect();
    assert_eq!(differing, at(1).changed_since(0));
    assert_eq!(differing.len(), 2 * 50 / 5);
    assert_eq!(old.len(), new.len());
    assert!(at(1).changed_since(1).is_empty());
    assert!(at(3).changed_since(0).len() > at(3).changed_since(2).len());
}

#[test]
fn every_place_has_a_link_in_it() {
    let rules = Rules {
        robots: RobotsPolicy::Ignore,
        credentials: true,
        favicons: true,
        seeds: vec!["http://h0000.test/".into()],
        ..Rules::default()
    };
    let found: BTreeSet<Place> = web(2, 3).expected(&rules).values().map(|expected| expected.place).collect();
    let missing: Vec<_> = Place::ALL.iter().filter(|place| !found.contains(place)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn no_decoy_is_expected_and_every_site_has_some() {
    let web = web(4, 3);
    let rules = Rules { robots: RobotsPolicy::Ignore, credentials: true, favicons: true, ..Rules::default() };
    let expected = web.expected(&rules);
    let decoys = web.decoys();
    assert!(decoys.len() >= 4 * 10);
    let wrong: Vec<_> = decoys.iter().filter(|url| expected.contains_key(*url)).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn crawlers_that_fold_addresses_find_the_same_set() {
    let expected = web(2, 3).expected(&Rules { robots: RobotsPolicy::Ignore, ..Rules::default() });
    let fold = |url: &str| url.to_lowercase().replace("//www.", "//").trim_end_matches('/').to_owned();
    // Each host has its robots.txt, also those that a fold makes one.
    let urls = || expected.keys().filter(|url| !url.ends_with("/robots.txt"));
    let folded: BTreeSet<String> = urls().map(|url| fold(url)).collect();
    assert_eq!(folded.len(), urls().count());
}

#[test]
fn rules_decide_what_is_expected() {
    let web = web(12, 3);
    let urls = |rules: Rules| -> BTreeSet<String> { web.expected(&rules).into_keys().collect() };
    let on = |site: Robots, path: &str| {
        let index = Robots::ALL.iter().position(|kind| *kind == site).unwrap();
        web.url(index, Sub::Bare, path)
    };
    let obey = urls(Rules::default());
    let ignore = urls(Rules { robots: RobotsPolicy::Ignore, ..Rules::default() });
    let embeds = urls(Rules { robots: RobotsPolicy::ExceptEmbeds, ..Rules::default() });
    let cases = [
        (Robots::AllowAll, "/private/plan.pdf", [true, true, true]),
        (Robots::Some, "/private/plan.pdf", [false, true, false]),
        (Robots::Some, "/private/open/page.html", [true, true, true]),
        (Robots::Some, "/private/picture.png", [false, true, true]),
        (Robots::Wildcards, "/private/plan.pdf", [false, true, false]),
        (Robots::Wildcards, "/private/plan.pdf.html", [true, true, true]),
        (Robots::Redirecting, "/robots-moved.txt", [true, true, true]),
        (Robots::Html, "/private/plan.html", [true, true, true]),
        (Robots::DisallowAll, "/", [false, true, false]),
        (Robots::DisallowAll, "/robots.txt", [true, true, true]),
        (Robots::Unavailable, "/p/0.html", [false, true, false]),
        (Robots::AllowAll, "/robots/beyond-meta.html", [false, true, false]),
        (Robots::AllowAll, "/sitemap/three.html", [true, true, true]),
    ];
    for (kind, path, wanted) in cases {
        let url = on(kind, path);
        assert_eq!([&obey, &ignore, &embeds].map(|set| set.contains(&url)), wanted, "{url}");
    }
    let no_maps = urls(Rules { sitemaps: false, ..Rules::default() });
    assert!(!no_maps.contains(&on(Robots::AllowAll, "/sitemap.xml")));
    let front: BTreeSet<_> =
        urls(Rules { max_hops: Some(0), robots: RobotsPolicy::Ignore, ..Rules::default() })
            .into_iter()
            .filter(|url| !url.contains("robots"))
            .collect();
    assert_eq!(front, web.seeds().into_iter().collect());
}

#[test]
fn out_of_scope_only_embeds_and_redirects_are_taken() {
    let web = web(2, 3);
    let seeds = vec!["http://h0000.test/".to_owned()];
    let abroad = |embed_hops, scope| -> Vec<String> {
        let rules = Rules { seeds: seeds.clone(), embed_hops, scope, ..Rules::default() };
        let all = web.expected(&rules).into_keys();
        all.filter(|url| !url.starts_with("http://h0000.test/") && !url.contains(".h0000.")).collect()
    };
    let one = ["/robots.txt", "/shared/frame.html", "/shared/landing.html", "/shared/pixel.gif"];
    let full =
        |paths: &[&str]| paths.iter().map(|path| format!("http://h0001.test{path}")).collect::<Vec<_>>();
    assert_eq!(abroad(1, Scope::Domains), full(&one));
    assert_eq!(abroad(0, Scope::Domains), full(&["/robots.txt", "/shared/landing.html"]));
    let two = [
        "/robots.txt",
        "/shared/frame.html",
        "/shared/inner.png",
        "/shared/landing.html",
        "/shared/pixel.gif",
    ];
    assert_eq!(abroad(2, Scope::Domains), full(&two));
    assert!(abroad(1, Scope::Everything).len() > 100);
}

#[test]
fn a_wild_web_has_an_end_where_one_can_be_known() {
    let rules = Rules::default();
    let tame = web(2, 3).expected(&rules);
    let wild = Web::new(Options { hosts: 2, pages: 3, profile: Profile::Wild, ..Options::default() });
    let more: BTreeSet<_> = wild.expected(&rules).into_keys().filter(|url| !tame.contains_key(url)).collect();
    assert_eq!(more, ["http://h0000.test/wild/".to_owned(), "http://h0001.test/wild/".to_owned()].into());
}
