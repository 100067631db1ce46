//! Originals of many revisits, held against a look through all captures for each.

use grange_index::{Index, Settings};
use proptest::prelude::*;

use super::super::original::first_originals;
use super::*;

const SURT: &str = "org,e)/";

fn value(number: usize) -> Option<String> {
    let one = |algorithm, text: &[u8]| warc::Digest::of(algorithm, text);
    Some(match number {
        0 => format!("sha1:{}", one(warc::Algorithm::Sha1, b"a").base32()),
        // The same in other spellings.
        1 => one(warc::Algorithm::Sha1, b"a").base32(),
        2 => format!("SHA1:{}", one(warc::Algorithm::Sha1, b"a").hex().to_uppercase()),
        3 => format!("sha1:{}", one(warc::Algorithm::Sha1, b"b").base32()),
        4 => format!("sha256:{}", one(warc::Algorithm::Sha256, b"a").hex()),
        5 => format!("md5:{}", one(warc::Algorithm::Md5, b"a").hex()),
        6 => "other:ABCDEF".to_owned(),
        7 => "another:abcdef".to_owned(),
        8 => "other:ABC".to_owned(),
        _ => return None,
    })
}

fn line(surt: &str, second: u32, mime: &str, status: u16, digest: usize, offset: usize) -> String {
    let digest = value(digest).map(|digest| format!("\"digest\": \"{digest}\", ")).unwrap_or_default();
    let mime = if mime.is_empty() { String::new() } else { format!("\"mime\": \"{mime}\", ") };
    format!(
        "{surt} {} {{\"url\": \"http://e.org/\", {mime}\"status\": \"{status}\", {digest}\"offset\": \"{offset}\", \
         \"filename\": \"a.warc.gz\"}}\n",
        20_200_101_000_000_u64 + u64::from(second)
    )
}

fn loaded(mut lines: Vec<String>) -> (tempfile::TempDir, std::sync::Arc<Snapshot>) {
    lines.sort();
    let folder = tempfile::tempdir().unwrap();
    let index = Index::open(folder.path(), Settings::default()).unwrap();
    index.load(lines.concat().as_bytes(), None).unwrap();
    (folder, index.snapshot())
}

fn captures(snapshot: &Snapshot) -> Vec<Capture> {
    let mut rows = snapshot.captures(SURT, Stamp::MIN).unwrap();
    let mut captures = Vec::new();
    while let Some(view) = rows.next().unwrap() {
        captures.push(view.to_capture());
    }
    captures
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// With few enough captures that the other way looks at all of them.
    #[test]
    fn it_finds_what_a_look_at_all_captures_finds(
        rows in proptest::collection::vec((0_u32..10, 0_usize..5, 0_usize..10), 0..9),
        others in proptest::collection::vec(0_usize..9, 0..2),
    ) {
        let own = rows.iter().enumerate().map(|(offset, (second, kind, digest))| {
            let (mime, status) =
                [("text/html", 200), ("video/mp4", 200), ("text/html", 304), ("", 200), ("warc/revisit", 200)][*kind];
            line(SURT, *second, mime, status, *digest, offset)
        });
        let others = others.iter().map(|digest| line("org,f)/", 5, "image/png", 200, *digest, 99));
        let (_folder, snapshot) = loaded(own.chain(others).collect());
        let (typed, any) = (OriginalFinder::new(true), OriginalFinder::new(false));
        let place = |capture: &Capture| (capture.surt.clone(), capture.time, capture.offset);
        for revisit in captures(&snapshot).iter().filter(|capture| capture.is_revisit()) {
            let all = first_originals(&snapshot, revisit).unwrap();
            let first = any.find(&snapshot, revisit).unwrap();
            prop_assert_eq!(first.as_ref().map(place), all.first().map(place), "{:?}", revisit);
            let of_type = all.into_iter().find_map(|original| original.mime);
            let first = typed.find(&snapshot, revisit).unwrap();
            prop_assert_eq!(first.and_then(|original| original.mime), of_type, "{:?}", revisit);
        }
    }
}

#[test]
fn the_captures_of_a_url_are_read_once_for_all_its_revisits() {
    // Of this content, of other content of this URL, of that of another URL, of none, and by date alone.
    let mut lines: Vec<String> = (0..1000_u32)
        .map(|second| line(SURT, second, "warc/revisit", 200, [0, 3, 4, 6, 9][second as usize % 5], 0))
        .collect();
    lines.extend(
        (0..1000).map(|second| line(SURT, second, "text/html", 200, [0, 1, 2][second as usize % 3], 1)),
    );
    lines.push(line("org,f)/", 0, "text/html", 200, 3, 2));
    let (_folder, snapshot) = loaded(lines);
    let finder = OriginalFinder::new(true);
    let revisits: Vec<Capture> = captures(&snapshot).into_iter().filter(Capture::is_revisit).collect();
    assert_eq!(revisits.len(), 1000);
    for revisit in &revisits {
        assert!(finder.find(&snapshot, revisit).unwrap().is_some(), "{revisit:?}");
    }
    assert_eq!(finder.urls_read(), 1);
}

#[test]
fn a_limit_ends_the_reading_for_good() {
    let mut lines: Vec<String> =
        (1..50).map(|second| line(SURT, second, "warc/revisit", 200, 0, second as usize)).collect();
    lines.push(line(SURT, 0, "text/html", 200, 0, 1000));
    let (_folder, snapshot) = loaded(lines);
    let revisit = captures(&snapshot).pop().unwrap();
    for (rows, found) in [(10, false), (49, false), (51, true)] {
        let mut finder = OriginalFinder::new(true);
        finder.limit(rows);
        for _ in 0..2 {
            assert_eq!(finder.find(&snapshot, &revisit).is_ok(), found, "{rows}");
            assert_eq!(finder.is_exhausted(), !found, "{rows}");
        }
        assert!(finder.clone().find(&snapshot, &revisit).unwrap().is_some(), "a clone has no limit");
    }
}
