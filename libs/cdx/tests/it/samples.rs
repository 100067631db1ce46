//! Real files, when they are at hand: what other tools made of them.

use cdx::zipnum::Cluster;
use cdx::{Format, IndexOptions, Legend, Line, LineProblem, SortedFile, Spelling, index_file, parse_line};
use std::path::{Path, PathBuf};
use urlkey::{Dialect, MatchType, search_range};

#[path = "../../../skipped.rs"]
mod skipped;

const GOLDEN: &str = include_str!("../golden/cdxj-indexer.txt");

fn samples() -> Option<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/warc-samples");
    if dir.is_dir() {
        return Some(dir);
    }
    skipped::note_skipped("the corpus ../shared/warc-samples");
    None
}

#[test]
fn lines_equal_those_of_cdxj_indexer() {
    let Some(dir) = samples() else { return };
    let mut sections = 0;
    for section in GOLDEN.split("\n== ").skip(1) {
        let section = format!("{section}\n");
        let (title, want) = section.split_once('\n').unwrap();
        let (name, flags) = title.split_once(' ').unwrap_or((title, ""));
        let path = dir.join(name);
        let mut options = IndexOptions {
            dialect: Dialect::Ia,
            spelling: Spelling::Python,
            filename: path.file_name().unwrap().to_string_lossy().into_owned(),
            post_append: flags == "-p",
            ..IndexOptions::default()
        };
        let mut out = Vec::new();
        if flags == "-11" {
            out.extend_from_slice((Legend::cdx11().line() + "\n").as_bytes());
            options.format = Format::Cdx(Legend::cdx11());
        }
        index_file(&path, &options, 2, |line| {
            out.extend_from_slice(line);
            Ok(())
        })
        .unwrap();
        assert_eq!(String::from_utf8(out).unwrap().trim_end(), want.trim_end(), "{title}");
        sections += 1;
    }
    assert!(sections > 20);
}

#[test]
fn indexes_of_other_tools_are_read_without_problems() {
    let Some(dir) = samples() else { return };
    let mut files: Vec<PathBuf> =
        ["iana.cdx", "iana.cdxj", "dupes.cdx", "dupes.cdxj", "post-test.cdx", "post-test.cdxj"]
            .map(|name| dir.join("pywb").join(name))
            .to_vec();
    let expected = std::fs::read_dir(dir.join("expected-cdx")).unwrap();
    files.extend(expected.map(|file| file.unwrap().path()));
    let mut entries = 0;
    for path in files {
        let bytes = std::fs::read(&path).unwrap();
        let mut legend: Option<Legend> = None;
        for line in bytes.split(|b| *b == b'\n') {
            match parse_line(line, legend.as_ref()) {
                Line::Legend(found) => legend = Some(found),
                Line::Entry(entry, problems) => {
                    let known = |problem: &LineProblem| *problem == LineProblem::NotUtf8;
                    let problems: Vec<LineProblem> =
                        problems.into_iter().filter(|problem| !known(problem)).collect();
                    assert_eq!(problems, [], "{} {}", path.display(), String::from_utf8_lossy(line));
                    assert!(entry.offset.is_some() && entry.filename.is_some());
                    entries += 1;
                }
                Line::Blank | Line::Meta(_) => {}
                Line::Unreadable => panic!("{} {}", path.display(), String::from_utf8_lossy(line)),
            }
        }
    }
    assert!(entries > 400, "{entries}");
}

#[test]
fn pywbs_zipnum_sample_answers() {
    let Some(dir) = samples() else { return };
    let cluster = Cluster::open(dir.join("pywb/zipnum-sample.idx")).unwrap();
    assert!(cluster.summary().bad_lines.is_empty());
    let count = |url, kind| {
        let range = search_range(url, kind, Dialect::Ia);
        cluster.lines_in(&range).map(|line| line.unwrap()).filter(|line| range.contains(line)).count()
    };
    let all = count("org", MatchType::Domain);
    assert!(count("http://iana.org/", MatchType::Exact) > 0);
    assert!(count("iana.org", MatchType::Domain) >= count("iana.org", MatchType::Host));
    assert_eq!(all, count("iana.org", MatchType::Domain));
    let bad = Cluster::open(dir.join("pywb/zipnum-bad.idx")).unwrap();
    assert!(bad.lines_in(&search_range("org", MatchType::Domain, Dialect::Ia)).any(|line| line.is_err()));
}

#[test]
fn a_real_index_is_searched() {
    let Some(dir) = samples() else { return };
    let text = std::fs::read_to_string(dir.join("pywb/iana.cdxj")).unwrap();
    let mut file = SortedFile::open(dir.join("pywb/iana.cdxj")).unwrap();
    for url in ["http://iana.org/", "http://www.iana.org/_css/2013.1/screen.css", "http://nowhere.example/"] {
        let range = search_range(url, MatchType::Exact, Dialect::Ia);
        let got = file.lines_in(&range).unwrap().count();
        assert_eq!(got, text.lines().filter(|line| range.contains(line)).count(), "{url}");
    }
}
