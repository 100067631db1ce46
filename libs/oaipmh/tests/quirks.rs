//! One file per quirk of real repositories, named by it, and what must come out of each.
//!
//! `quirks/EXPECTED` holds a paragraph per file: what the page says, then each item and its problems. The
//! paragraphs were checked by eye; `QUIRKS_WRITE=1 cargo test -p oaipmh --test quirks` writes them anew.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use oaipmh::{Item, Limits, Page, PageReader, Problem};

fn codes(problems: &[Problem]) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for problem in problems {
        match counts.iter_mut().find(|(code, _)| *code == problem.kind.code()) {
            Some((_, count)) => *count += 1,
            None => counts.push((problem.kind.code(), 1)),
        }
    }
    counts.iter().fold(String::new(), |mut text, (code, count)| {
        _ = if *count == 1 { write!(text, " {code}") } else { write!(text, " {code}×{count}") };
        text
    })
}

fn describe(page: &Page<Item>) -> String {
    let mut out = String::new();
    let date = page.response_date.map_or("-".to_owned(), |date| date.to_string());
    let verb = page.verb.map_or("-", |verb| verb.as_str());
    let end = if page.complete { "complete" } else { "incomplete" };
    _ = writeln!(out, "{date} {verb} {end}{}", codes(&page.problems));
    for error in &page.errors {
        _ = writeln!(out, "error {error}");
    }
    for item in &page.items {
        match item {
            Item::Record(record) => {
                let header = &record.header;
                let date = header.datestamp.map_or("-".to_owned(), |date| date.to_string());
                let state = if header.deleted { "deleted" } else { "live" };
                _ = writeln!(
                    out,
                    "record {} {date} {state} {:?}{}",
                    header.identifier,
                    header.sets,
                    codes(&record.problems)
                );
                for xml in record.metadata.iter().chain(&record.about) {
                    roxmltree::Document::parse(xml).unwrap_or_else(|error| panic!("{error}: {xml}"));
                    // The records around the quirk are all alike.
                    let usual = format!(
                        "<dc:title>Title {}</dc:title></oai_dc:dc>",
                        header.identifier.trim_start_matches("oai:q:")
                    );
                    if !xml.ends_with(&usual) || !record.problems.is_empty() {
                        _ = writeln!(out, "  {}", xml.replace('\n', "\\n"));
                    }
                }
            }
            other => _ = writeln!(out, "{other:?}"),
        }
    }
    if let Some(token) = &page.token {
        _ = writeln!(out, "{token:?}");
    }
    out
}

#[test]
fn every_quirk_gives_what_is_expected_of_it_however_it_is_cut() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/quirks");
    let expected_path = folder.join("EXPECTED");
    let expected = std::fs::read_to_string(&expected_path).unwrap_or_default();
    let expected: BTreeMap<&str, &str> = expected
        .split_terminator("\n== ")
        .filter_map(|paragraph| paragraph.trim_start_matches("== ").split_once('\n'))
        .collect();
    let mut got = BTreeMap::new();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "xml") {
            continue;
        }
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let body = std::fs::read(&path).unwrap();
        let whole = PageReader::read(&body, Limits::default());
        for step in [1, 2, 3, 7, 64, 1000] {
            let mut reader = PageReader::new(Limits::default());
            let mut items = Vec::new();
            for chunk in body.chunks(step) {
                reader.push(chunk);
                items.extend(std::iter::from_fn(|| reader.next_item()));
            }
            let mut page = reader.finish();
            items.append(&mut page.items);
            page.items = items;
            assert_eq!(page, whole, "{name} by {step}");
        }
        got.insert(name, describe(&whole));
    }
    if std::env::var_os("QUIRKS_WRITE").is_some() {
        let text: Vec<_> = got.iter().map(|(name, page)| format!("== {name}\n{page}\n")).collect();
        let text = text.concat();
        std::fs::write(&expected_path, text.trim_end_matches('\n').to_owned() + "\n").unwrap();
        return;
    }
    assert_eq!(
        got.keys().map(String::as_str).collect::<Vec<_>>(),
        expected.keys().copied().collect::<Vec<_>>()
    );
    for (name, page) in &got {
        assert_eq!(page.trim_end(), expected[name.as_str()].trim_end(), "{name}");
    }
}
