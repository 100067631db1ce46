//! Originals of revisits, held against a look through all captures for each.

use proptest::prelude::*;

use crate::original::OriginalFinder;
use crate::{Capture, Snapshot, Stamp};

const SURT: &str = "com,example)/";

/// The nearest earlier capture with the digest, else the first later one, else one of another URL.
fn expected(snapshot: &Snapshot, revisit: &Capture) -> Option<Capture> {
    let mut captures = snapshot.captures(SURT, Stamp::MIN).unwrap();
    let (mut earlier, mut later) = (None, None);
    while let Some(view) = captures.next().unwrap() {
        let capture = view.to_capture();
        let fits = !capture.is_revisit() && capture.digest == revisit.digest;
        if fits && capture.time <= revisit.time {
            earlier = Some(capture);
        } else if fits && later.is_none() {
            later = Some(capture);
        }
    }
    let elsewhere = || {
        let known = snapshot.digest(revisit.digest.as_deref().unwrap_or_default()).unwrap();
        known.map(|known| known.first).filter(|first| !first.is_revisit())
    };
    earlier.or(later).or_else(elsewhere)
}

fn line(key: &str, second: u32, mime: &str, digest: Option<&str>, offset: usize) -> String {
    let digest = digest.map(|digest| format!("\"digest\": \"sha1:{}\", ", digest.repeat(32)));
    format!(
        "{key} {} {{\"url\": \"http://example.com{}\", \"mime\": \"{mime}\", \"status\": \"200\", {}\"offset\": \"{offset}\", \
         \"filename\": \"a.warc.gz\"}}\n",
        20_140_101_000_000_u64 + u64::from(second),
        key.trim_start_matches("com,example)"),
        digest.unwrap_or_default()
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_original_of_each_revisit_is_found(
        rows in proptest::collection::vec((0_u32..12, any::<bool>(), 0_usize..4), 0..16),
        others in proptest::collection::vec(0_usize..4, 0..2),
    ) {
        let digest = |number: usize| [Some("A"), Some("B"), Some("C"), None][number];
        let own = rows.iter().enumerate().map(|(offset, (second, revisit, number))| {
            line(SURT, *second, if *revisit { "warc/revisit" } else { "text/html" }, digest(*number), offset)
        });
        let others =
            others.iter().map(|number| line("com,example)/other", 30, "text/html", digest(*number), 100));
        let mut lines: Vec<String> = own.chain(others).collect();
        lines.sort();
        let (_folder, snapshot) = super::loaded(&lines.concat());
        let mut finder = OriginalFinder::new(&snapshot, None);
        let mut captures = snapshot.captures(SURT, Stamp::MIN).unwrap();
        while let Some(view) = captures.next().unwrap() {
            let revisit = view.to_capture();
            if revisit.is_revisit() {
                let expected = expected(&snapshot, &revisit).filter(|_| revisit.digest.is_some());
                prop_assert_eq!(finder.find(&view).unwrap(), expected, "{:?}", revisit);
            }
        }
    }
}

#[test]
fn the_captures_of_a_url_are_read_once_for_all_its_revisits() {
    let mut lines: Vec<String> = (0..500_u32)
        .map(|second| {
            // Some find one here, some elsewhere, some nowhere.
            let digest = ["A", "B", "C"][second as usize % 3];
            line(SURT, second, "warc/revisit", Some(digest), second as usize)
        })
        .collect();
    lines.push(line(SURT, 0, "text/html", Some("A"), 1000));
    lines.push(line("com,example)/other", 0, "text/html", Some("B"), 1001));
    lines.sort();
    let (_folder, snapshot) = super::loaded(&lines.concat());
    let mut finder = OriginalFinder::new(&snapshot, None);
    let mut captures = snapshot.captures(SURT, Stamp::MIN).unwrap();
    let mut found = 0;
    while let Some(view) = captures.next().unwrap() {
        if view.is_revisit() {
            found += usize::from(finder.find(&view).unwrap().is_some());
        }
    }
    assert_eq!((found, finder.urls_read), (334, 1));
}

#[test]
fn rows_read_for_originals_count_as_rows_of_the_answer() {
    let mut lines: Vec<String> =
        (1..50).map(|second| line(SURT, second, "warc/revisit", Some("A"), second as usize)).collect();
    lines.push(line(SURT, 0, "text/html", Some("A"), 1000));
    lines.sort();
    let (_folder, snapshot) = super::loaded(&lines.concat());
    // One row is asked for, and all fifty of the URL are looked at.
    let mut params =
        crate::dialect::Params::parse("url=example.com&limit=1&sort=reverse&resolveRevisits=true");
    for (most, finished) in [(2, false), (49, false), (50, true)] {
        params.rows_most = Some(most);
        let answer = crate::dialect::pywb(&snapshot, &params, "", &|_| true, &mut Vec::new());
        assert_eq!(answer.is_ok(), finished, "{most}: {answer:?}");
    }
}
