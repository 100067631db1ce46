//! `grange warc …` and `grange cdx …` on files that the test writes with the library and then damages.

use std::path::{Path, PathBuf};

use serde_json::Value;
use warc::Date;
use warc::write::{Compression, FileOptions, NewRecord, WarcFile};

use crate::harness::{self, Ended};

fn grange(folder: &Path, args: &[&str]) -> Ended {
    harness::run(folder, args)
}

/// A sound file with a warcinfo record and `pages` responses.
fn pages(folder: &Path, name: &str, pages: usize) -> PathBuf {
    let date = Date::parse(b"2026-01-02T03:04:05Z").unwrap();
    let plain = Path::new(name).extension().is_some_and(|end| end == "warc");
    let compression = if plain { Compression::None } else { Compression::Gzip(6) };
    let options = FileOptions { compression, ..FileOptions::default() };
    let mut file = WarcFile::create(folder.join(name), &options, date).unwrap();
    for page in 0..pages {
        let body = format!("<p>page {page}</p>");
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n", body.len());
        let url = format!("http://www.example.org/{page}?b=2&a=1");
        file.write(&mut NewRecord::response(&url, date, head.as_bytes(), body.as_bytes())).unwrap();
    }
    file.close().unwrap()
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn every_record_is_listed_and_can_be_taken_out_by_its_offset() {
    let folder = tempfile::tempdir().unwrap();
    pages(folder.path(), "a.warc.gz", 3);
    let listed = lines(&grange(folder.path(), &["warc", "ls", "--json", "a.warc.gz"]).ok().stdout);
    let kinds: Vec<_> = listed.iter().map(|line| line["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["warcinfo", "response", "response", "response"]);
    for (number, line) in listed[1..].iter().enumerate() {
        for (key, value) in [("file", "a.warc.gz"), ("mime", "text/html"), ("date", "2026-01-02T03:04:05Z")] {
            assert_eq!(line[key], value);
        }
        assert_eq!(line["status"], 200);
        assert_eq!(line["url"], format!("http://www.example.org/{number}?b=2&a=1"));
        assert!(line["digest"].as_str().unwrap().starts_with("sha1:"));
        let offset = line["offset"].to_string();
        let page = grange(folder.path(), &["warc", "extract", "a.warc.gz", &offset, "--payload"]).ok().stdout;
        assert_eq!(page, format!("<p>page {number}</p>"));
        let whole = grange(folder.path(), &["warc", "extract", "a.warc.gz", &offset]).ok().stdout;
        assert!(whole.starts_with("WARC/1.1\r\n") && whole.ends_with(&page), "{whole}");
    }
    // The records fill the file without a gap.
    let size = std::fs::metadata(folder.path().join("a.warc.gz")).unwrap().len();
    let end: u64 = listed.iter().map(|line| line["length"].as_u64().unwrap()).sum();
    assert_eq!(end, size);
    grange(folder.path(), &["warc", "extract", "a.warc.gz", "7"])
        .fails(2, &["offset 7", "next one starts at"]);
}

#[test]
fn a_sound_file_passes_and_each_damage_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = pages(folder.path(), "a.warc.gz", 3);
    grange(folder.path(), &["warc", "check", "a.warc.gz"]).ok();
    let sound = std::fs::read(&path).unwrap();
    let second = lines(&grange(folder.path(), &["warc", "ls", "--json", "a.warc.gz"]).ok().stdout)[2].clone();
    let at = second["offset"].as_u64().unwrap() as usize;

    let mut flipped = sound.clone();
    flipped[at + 40] ^= 0xff;
    let cases = [
        ("junk.warc.gz", [&sound[..at], b"junk!", &sound[at..]].concat(), "junk-between-members", 4),
        ("cut.warc.gz", sound[..sound.len() - 10].to_vec(), "truncated-member", 4),
        ("flipped.warc.gz", flipped, "", 4),
        ("empty.warc.gz", Vec::new(), "not-an-archive", 0),
        ("text.warc.gz", b"hello\n".to_vec(), "not-an-archive", 0),
    ];
    for (name, bytes, problem, records) in cases {
        std::fs::write(folder.path().join(name), bytes).unwrap();
        let ended = grange(folder.path(), &["warc", "check", name]);
        assert_eq!(ended.code, 5, "{name}: {ended:?}");
        let mut columns = ended.stdout.lines().map(|line| line.split('\t').collect::<Vec<_>>());
        assert!(
            columns.clone().all(|line| line.len() == 4 && line[0] == name && line[1].parse::<u64>().is_ok())
        );
        assert!(columns.any(|line| line[2].contains(problem)), "{name}: {}", ended.stdout);
        let listed = lines(&grange(folder.path(), &["warc", "ls", "--json", name]).stdout);
        let found = listed.iter().filter(|line| line.get("type").is_some()).count();
        assert!(found + 1 >= records, "{name}: {found} records");
        let problems = listed.iter().filter(|line| line.get("problem").is_some()).count();
        assert!(problems > 0, "{name}: problems are objects too");
    }
    grange(folder.path(), &["warc", "check", "nowhere.warc.gz"]).fails(1, &["nowhere.warc.gz"]);
}

#[test]
fn a_file_packed_as_a_whole_becomes_seekable() {
    let folder = tempfile::tempdir().unwrap();
    pages(folder.path(), "a.warc", 3);
    let plain = std::fs::read(folder.path().join("a.warc")).unwrap();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut packed, &plain).unwrap();
    std::fs::write(folder.path().join("whole.warc.gz"), packed.finish().unwrap()).unwrap();
    grange(folder.path(), &["warc", "check", "whole.warc.gz"]).fails(5, &["4 records"]);
    for target in ["new.warc.gz", "new.warc.zst"] {
        let ended = grange(folder.path(), &["warc", "recompress", "whole.warc.gz", "-o", target]);
        assert_eq!(ended.code, 5, "what was wrong is said: {ended:?}");
        grange(folder.path(), &["warc", "check", target]).ok();
    }
    grange(folder.path(), &["warc", "recompress", "new.warc.zst", "-o", "back.warc"]).ok();
    assert_eq!(
        std::fs::read(folder.path().join("back.warc")).unwrap(),
        plain,
        "every byte of every record is kept"
    );
    let again = grange(folder.path(), &["warc", "recompress", "a.warc", "-o", "back.warc"]);
    again.fails(1, &["back.warc", "exists"]);
}

#[test]
fn an_arc_file_becomes_a_sound_warc_file() {
    let folder = tempfile::tempdir().unwrap();
    let reply = "HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n<p>old</p>";
    let about = "1 0 test\nURL IP-address Archive-date Content-type Archive-length\n";
    let arc = format!(
        "filedesc://old.arc 0.0.0.0 19991231235959 text/plain {}\n{about}\nhttp://example.org/ 192.0.2.1 20000101000000 text/html {}\n{reply}\ndns:example.org 192.0.2.53 20000101000001 text/dns 4\nabcd\n",
        about.len(),
        reply.len()
    );
    std::fs::write(folder.path().join("old.arc"), arc).unwrap();
    grange(folder.path(), &["warc", "convert", "old.arc", "-o", "new.warc.gz"]).ok();
    grange(folder.path(), &["warc", "check", "new.warc.gz"]).ok();
    let listed = lines(&grange(folder.path(), &["warc", "ls", "--json", "new.warc.gz"]).ok().stdout);
    let shown: Vec<_> =
        listed.iter().map(|line| format!("{} {} {}", line["type"], line["url"], line["mime"])).collect();
    assert_eq!(
        shown[1..],
        [
            "\"metadata\" \"filedesc://old.arc\" \"text/plain\"",
            "\"response\" \"http://example.org/\" \"text/html\"",
            "\"response\" \"dns:example.org\" \"text/dns\"",
        ]
    );
    let offset = listed[2]["offset"].to_string();
    let block = grange(folder.path(), &["warc", "extract", "new.warc.gz", &offset, "--block"]).ok().stdout;
    assert_eq!(block, reply);
    grange(folder.path(), &["warc", "convert", "new.warc.gz", "-o", "x.warc.gz"])
        .fails(2, &["holds WARC records"]);
    assert!(!folder.path().join("x.warc.gz.open").exists());
}

#[test]
fn an_index_finds_its_captures() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for (name, count) in [("a.warc.gz", 30), ("b.warc.gz", 20)] {
        pages(at, name, count);
    }
    let one = grange(at, &["cdx", "index", "a.warc.gz"]).ok().stdout;
    let two = grange(at, &["cdx", "index", "--threads", "2", "a.warc.gz"]).ok().stdout;
    assert_eq!(one, two, "threads change nothing");
    let first = one.lines().next().unwrap();
    assert!(first.starts_with("org,example)/0?a=1&b=2 20260102030405 {\"url\": "), "{first}");
    assert_eq!(one.lines().count(), 30);

    let both = grange(at, &["cdx", "index", "--sort", "a.warc.gz", "b.warc.gz"]).ok().stdout;
    let mut sorted: Vec<_> = both.lines().collect();
    sorted.sort_unstable();
    assert_eq!(both.lines().collect::<Vec<_>>(), sorted);
    std::fs::write(at.join("both.cdxj"), &both).unwrap();
    for file in ["a", "b"] {
        let name = format!("{file}.warc.gz");
        grange(at, &["cdx", "index", "--sort", &name, "-o", &format!("{file}.cdxj")]).ok();
    }
    assert_eq!(grange(at, &["cdx", "merge", "a.cdxj", "b.cdxj"]).ok().stdout, both);
    let reversed: Vec<_> = both.lines().rev().collect();
    std::fs::write(
        at.join("shuffled.cdxj"),
        reversed.join(
            "
",
        ),
    )
    .unwrap();
    assert_eq!(grange(at, &["cdx", "sort", "shuffled.cdxj", "--memory", "1KiB"]).ok().stdout, both);
    grange(at, &["cdx", "sort", "both.cdxj", "-o", "zip", "--zipnum", "7"]).ok();

    for index in ["both.cdxj", "zip.idx"] {
        let find = |url: &str, kind: &str| grange(at, &["cdx", "lookup", index, url, "--match", kind]);
        let found = find("https://example.org/7?a=1&b=2", "exact").ok().stdout;
        assert_eq!(found.lines().count(), 2, "{index}: {found}");
        assert_eq!(find("http://example.org/", "host").ok().stdout.lines().count(), 50, "{index}");
        assert_eq!(find("http://example.org/1", "prefix").ok().stdout.lines().count(), 22, "{index}");
        assert_eq!(find("http://example.org/nowhere", "exact").code, 3, "{index}");
    }
    let cdx = grange(at, &["cdx", "index", "--format", "cdx11", "a.warc.gz"]).ok().stdout;
    assert!(cdx.starts_with(" CDX N b a m s k r M S V g\n"), "{cdx}");
    assert_eq!(cdx.lines().nth(1).unwrap().split(' ').count(), 11);
}

#[test]
fn an_index_of_a_damaged_file_has_what_can_be_had() {
    let folder = tempfile::tempdir().unwrap();
    let path = pages(folder.path(), "a.warc.gz", 5);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.truncate(bytes.len() - 20);
    std::fs::write(&path, bytes).unwrap();
    let ended = grange(folder.path(), &["cdx", "index", "a.warc.gz"]);
    assert_eq!(ended.code, 5, "{ended:?}");
    assert!(ended.stdout.lines().count() >= 4 && ended.stderr.contains("truncated-member"), "{ended:?}");
}
