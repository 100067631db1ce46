//! What is a trap and what is a site with many pages.

use std::borrow::Cow;

use super::*;
use crate::hops::Hop;

/// The `n`th page of a site, as it was observed.
type Page = fn(&mut SessionPaths, usize) -> Observation;

const LIMIT: u32 = 10;

fn url(path: &str) -> Url {
    Url::parse("http://h.example/").unwrap().join(path).unwrap()
}

/// An id that is never the same, as a server makes them.
fn id(n: usize) -> String {
    blake3::hash(&n.to_le_bytes()).to_hex()[..16].to_owned()
}

fn observe(paths: &mut SessionPaths, at: &Url, content: Content<'_>) -> Observation {
    ShapeContent::of(at, content).map(|seen| paths.observe(seen)).unwrap_or_default()
}

/// A page with an anchor for each link, and an image for those with `!` before them.
fn page(paths: &mut SessionPaths, at: &str, text: &str, links: &[String]) -> Observation {
    let at = url(at);
    let mut body = text.to_owned();
    let mut found = Vec::new();
    for link in links {
        let (hop, reference) = match link.strip_prefix('!') {
            Some(rest) => (Hop::Embed, rest),
            None => (Hop::Link, link.as_str()),
        };
        body.extend([" ", reference]);
        found.push(Link { url: at.join(reference).unwrap(), hop, context: Cow::Borrowed("") });
    }
    observe(paths, &at, Content::Page { body: body.as_bytes(), links: &found })
}

/// The `n`th page of a visitor who is given a new session each time.
fn session_page(paths: &mut SessionPaths, n: usize) -> Observation {
    page(paths, &format!("/s/{}/home", id(n)), "Welcome", &[format!("/s/{}/home", id(n + 1_000_000))])
}

fn new() -> SessionPaths {
    SessionPaths::new(LIMIT, Vec::new())
}

/// Pages until a trap is found; none if there is none among `most`.
fn found_after(most: usize, mut observe: impl FnMut(usize) -> Observation) -> Option<usize> {
    (1..=most).find(|n| observe(*n).trap.is_some())
}

#[test]
fn the_same_page_under_ever_new_sessions_is_a_trap() {
    let mut paths = new();
    // The first of 20 contents weighs as much as 19 repetitions.
    assert_eq!(found_after(100, |n| session_page(&mut paths, n)), Some(20));
    let trap = url("/s/8f3a9c2177be21aa/home");
    let fetched: Vec<_> = (1..=100).filter(|_| !paths.leaves_alone(&trap).0).collect();
    assert_eq!(fetched, [1, 2, 4, 8, 16, 32, 64], "a few are fetched to see what they say");
    for other in ["/s/8f3a9c2177be21aa/about", "/t/8f3a9c2177be21aa/home", "/s/start/home", "/"] {
        assert!(!paths.leaves_alone(&url(other)).0, "{other}");
    }
    assert!(!paths.leaves_alone(&Url::parse("http://i.example/s/8f3a9c2177be21aa/home").unwrap()).0);
}

#[test]
fn the_trap_names_the_shape_and_the_count() {
    let mut paths = SessionPaths::new(40, Vec::new());
    let trap = (0..100).find_map(|n| session_page(&mut paths, n).trap);
    assert_eq!(trap, Some(("h.example/s/*/home".to_owned(), 40)));
}

#[test]
fn sites_with_many_pages_are_no_trap() {
    let articles = |paths: &mut SessionPaths, n| {
        let next = vec![format!("/article/{}", id(n + 1))];
        page(paths, &format!("/article/{}", id(n)), &format!("Article {n}"), &next)
    };
    let viewer_with_folder = |paths: &mut SessionPaths, n| {
        // The image comes first: embeds are fetched before links.
        observe(
            paths,
            &url(&format!("/album/{}/photo.jpg", id(n))),
            Content::Other { digest: id(n).as_bytes() },
        );
        page(
            paths,
            &format!("/album/{}/", id(n)),
            "",
            &["!photo.jpg".to_owned(), format!("../{}/", id(n + 1))],
        )
    };
    // Sections look alike; only what they contain differs, and that is fetched later.
    let sections = |paths: &mut SessionPaths, n: usize| {
        let links = ["1.html".to_owned(), format!("../section{:04}/", n + 1)];
        if n > 100 {
            let at = url(&format!("/section{:04}/1.html", n - 100));
            observe(paths, &at, Content::Page { body: b"text", links: &[] });
        }
        page(paths, &format!("/section{n:04}/"), "", &links)
    };
    let viewer_with_address = |paths: &mut SessionPaths, n| {
        let links = [format!("!/media/{}.jpg", id(n + 500_000)), format!("/view/{}", id(n + 1))];
        page(paths, &format!("/view/{}", id(n)), "", &links)
    };
    let gone = |paths: &mut SessionPaths, n| {
        page(paths, &format!("/thread/{}", id(n)), "This thread was deleted.", &["/".to_owned()])
    };
    let days = |paths: &mut SessionPaths, n: usize| {
        let (day, next) = (20_250_000 + n, 20_250_001 + n);
        page(paths, &format!("/cal/{day}/"), "No events.", &[format!("/cal/{next}/")])
    };
    let pixels = |paths: &mut SessionPaths, n| {
        observe(paths, &url(&format!("/px/{}.gif", id(n))), Content::Other { digest: b"GIF89a" })
    };
    let empty = |paths: &mut SessionPaths, n| page(paths, &format!("/stub/{}", id(n)), "", &[]);
    // One of ten threads is there, and each page leads to others.
    let mostly_gone = |paths: &mut SessionPaths, n: usize| {
        let text = if n.is_multiple_of(10) { format!("Thread {n}") } else { "Deleted.".to_owned() };
        page(paths, &format!("/forum/{}", id(n)), &text, &[format!("/forum/{}", id(n + 1))])
    };
    let sites: [(&str, Page); 9] = [
        ("articles", articles),
        ("albums", viewer_with_folder),
        ("sections", sections),
        ("viewer", viewer_with_address),
        ("soft 404", gone),
        ("calendar", days),
        ("pixels", pixels),
        ("stubs", empty),
        ("mostly gone", mostly_gone),
    ];
    for (name, observe) in sites {
        // As many repetitions as weigh more than the first content.
        let mut paths = SessionPaths::new(LIMIT, Vec::new());
        let first = found_after(2000, |n| observe(&mut paths, n));
        assert_eq!(first, None, "{name}");
    }
}

#[test]
fn a_trap_whose_embeds_are_the_same_too_is_one() {
    let mut paths = new();
    let found = found_after(200, |n| {
        observe(&mut paths, &url(&format!("/a/{}/logo.png", id(n))), Content::Other { digest: b"logo" });
        page(
            &mut paths,
            &format!("/a/{}/", id(n)),
            "",
            &["!logo.png".to_owned(), format!("../{}/", id(n + 999))],
        )
    });
    assert_eq!(found, Some(20));
}

#[test]
fn a_shape_that_says_something_new_is_free_again() {
    let mut paths = new();
    assert_eq!(found_after(100, |n| session_page(&mut paths, n)), Some(20));
    let trap = url("/s/8f3a9c2177be21aa/home");
    for _ in 0..3 {
        paths.leaves_alone(&trap);
    }
    assert!(paths.leaves_alone(&trap).0 || paths.leaves_alone(&trap).0);
    let next = [format!("/s/{}/home", id(77))];
    page(&mut paths, "/s/8f3a9c2177be21bb/home", "Something else", &next);
    let left: Vec<_> = (0..50).filter(|_| paths.leaves_alone(&trap).0).collect();
    assert_eq!(left, Vec::<i32>::new());
}

#[test]
fn a_restart_counts_on() {
    let mut paths = new();
    let mut kept = HashMap::new();
    let mut trapped = None;
    for n in 1..=200 {
        let seen = session_page(&mut paths, n);
        kept.extend(seen.record);
        if seen.trap.is_some() {
            trapped = Some(n);
            break;
        }
        if n % 7 == 0 {
            // Killed.
            paths = SessionPaths::new(LIMIT, kept.clone());
        }
    }
    let trapped = trapped.expect("it is found all the same");
    assert!(trapped <= 20 + 2 * KEEP_EVERY as usize, "after {trapped}");
    let mut again = SessionPaths::new(LIMIT, kept.clone());
    let trap = url("/s/8f3a9c2177be21aa/home");
    let probes = |paths: &mut SessionPaths, kept: &mut HashMap<_, _>| {
        let mut fetched = 0;
        for _ in 0..50 {
            let (left, record) = paths.leaves_alone(&trap);
            kept.extend(record);
            fetched += u32::from(!left);
        }
        fetched
    };
    assert_eq!(probes(&mut again, &mut kept), 6);
    let mut third = SessionPaths::new(LIMIT, kept.clone());
    assert_eq!(probes(&mut third, &mut kept), 1, "64 is the next, 32 was kept");
}

#[test]
fn zero_switches_it_off() {
    let mut paths = SessionPaths::new(0, Vec::new());
    assert_eq!(found_after(500, |n| session_page(&mut paths, n)), None);
}

#[test]
fn memory_is_bounded_and_a_trap_outlives_what_comes_once() {
    let mut paths = SessionPaths::remembering(100, LIMIT);
    assert_eq!(found_after(100, |n| session_page(&mut paths, n)), Some(20));
    for n in 0..1000 {
        observe(
            &mut paths,
            &url(&format!("/{}/slug-{}", id(n), "x".repeat(n % 300))),
            Content::Other { digest: b"" },
        );
    }
    assert!(paths.young.len() <= 101 && paths.old.len() <= 101 && paths.kept.len() <= KEPT_MAX);
    paths.leaves_alone(&url("/s/8f3a9c2177be21aa/home"));
    paths.leaves_alone(&url("/s/8f3a9c2177be21aa/home"));
    assert!(paths.leaves_alone(&url("/s/8f3a9c2177be21aa/home")).0);
}

/// A crawl of a forum: threads in the order of their queue, of which some are deleted and answer with the same list of
/// the latest threads. Those that were fetched.
fn crawl_forum(threads: usize, is_deleted: impl Fn(usize) -> bool) -> Vec<usize> {
    let mut paths = SessionPaths::new(50, Vec::new());
    let latest: Vec<_> = (0..5).map(|n| format!("/thread/{}", id(n + 9_000_000))).collect();
    let fetches = |n: &usize| {
        let at = format!("/thread/{}", id(*n));
        let left_alone = paths.leaves_alone(&url(&at)).0;
        if !left_alone {
            let text =
                if is_deleted(*n) { "Deleted. Latest threads:".to_owned() } else { format!("Thread {n}:") };
            page(&mut paths, &at, &text, &latest);
        }
        !left_alone
    };
    (0..threads).filter(fetches).collect()
}

#[test]
fn behind_a_block_of_deleted_pages_few_of_the_others_are_lost() {
    const LIVE: usize = 2000;
    for (dead, lost_max) in [(60, 64), (500, 64), (1060, 64), (5000, 128), (20_000, 512)] {
        let fetched = crawl_forum(dead + LIVE, |n| n < dead);
        let (of_dead, of_live) = (fetched.iter().filter(|n| **n < dead).count(), fetched.len());
        let lost = LIVE - (of_live - of_dead);
        assert!(lost <= lost_max, "{lost} of {LIVE} lost behind {dead}");
        assert!(of_dead <= 51 + 6 + 32 * 5, "{of_dead} of {dead} deleted ones were fetched");
    }
    // Block after block.
    let deleted = |n: usize| n % 1200 < 1000;
    let fetched = crawl_forum(12_000, deleted);
    let of_live = fetched.iter().filter(|n| !deleted(**n)).count();
    assert!(of_live >= 2000 - 10 * 64, "{of_live} of 2000");
}

/// Fetches of a trap whose every page leads to `links` others, until nothing is left. One page of `new_every` says
/// something new; none with 0.
fn fetches_of_endless_trap(links: usize, new_every: usize) -> usize {
    let mut paths = SessionPaths::new(50, Vec::new());
    let (mut queued, mut came, mut fetched) = (1_usize, 0_usize, 0_usize);
    while queued > 0 && fetched < 5000 {
        queued -= 1;
        came += 1;
        let at = format!("/s/{}/home", id(came));
        if paths.leaves_alone(&url(&at)).0 {
            continue;
        }
        fetched += 1;
        let is_new = new_every > 0 && fetched.is_multiple_of(new_every);
        let text = if is_new { format!("News {fetched}") } else { "Welcome".to_owned() };
        page(&mut paths, &at, &text, &[format!("/s/{}/home", id(came + 1_000_000))]);
        queued += links;
    }
    fetched
}

#[test]
fn an_endless_trap_ends() {
    for (links, new_every, most) in
        [(1, 0, 60), (3, 0, 70), (30, 0, 150), (100, 0, 220), (400, 0, 320), (3, 30, 150), (100, 30, 450)]
    {
        let fetched = fetches_of_endless_trap(links, new_every);
        assert!(fetched <= most, "{links} links, one new of {new_every}: {fetched} fetches");
        assert!(fetched > 50, "{links} links, one new of {new_every}: {fetched} fetches");
    }
}

#[test]
fn what_was_begun_and_put_back_is_neither_left_alone_nor_counted_again() {
    let mut paths = new();
    assert_eq!(found_after(100, |n| session_page(&mut paths, n)), Some(20));
    let at = |n| url(&format!("/s/{}/home", id(n)));
    let left_alone: Vec<_> = (1..=4).map(|n| paths.leaves_alone(&at(n)).0).collect();
    assert_eq!(left_alone, [false, false, true, false]);
    paths.put_back(&at(4));
    let left_alone: Vec<_> = [5, 6, 4, 7, 8].map(|n| paths.leaves_alone(&at(n)).0).to_vec();
    assert_eq!(left_alone, [true, true, false, true, false], "the eighth is the next");
    assert!(paths.leaves_alone(&at(4)).0, "once");
}
