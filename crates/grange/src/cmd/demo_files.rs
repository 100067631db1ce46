//! The demo's part on files: a WARC file is written, damaged, read all the same, indexed and searched.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use cdx::{IndexOptions, index_file};
use urlkey::{Dialect, MatchType, search_range};
use warc::write::{FileOptions, NewRecord, WarcFile};
use warc::{Date, Reader};

use crate::story::Story;

/// Pages in the demo's file.
const PAGES: usize = 200;

/// Works in `folder` and gives the file it wrote.
pub(super) fn tell(story: &mut Story, folder: &Path) -> anyhow::Result<PathBuf> {
    let path = write(&folder.join("demo.warc.gz"))?;
    let bytes = std::fs::read(&path)?;
    story.told("WARC file written", format!("{PAGES} pages, {}", grange_base::Size(bytes.len() as u64)));

    // Eight foreign bytes in the middle of the file, as a bad copy leaves them.
    let offsets = offsets(&path)?;
    let middle = offsets[offsets.len() / 2] as usize;
    let damaged = folder.join("damaged.warc.gz");
    std::fs::write(&damaged, [&bytes[..middle], b"8 bytes!", &bytes[middle..]].concat())?;
    let (records, problems) = read(&damaged)?;
    ensure!(records == PAGES + 1 && problems.len() == 1, "the damage must be named and cost no record");
    story.told("damaged copy read", format!("all {records} records, problem named: {}", problems[0]));

    let options = IndexOptions { filename: "demo.warc.gz".to_owned(), ..IndexOptions::default() };
    let mut lines: Vec<Vec<u8>> = Vec::new();
    index_file(&path, &options, 2, |line| {
        lines.push(line.to_vec());
        Ok(())
    })?;
    lines.sort_unstable();
    let range = search_range("https://EXAMPLE.org/page/7", MatchType::Exact, Dialect::Standard);
    let line = lines.iter().find(|line| range.contains(line)).context("the index must find the page")?;
    let entry = cdx::parse_line(line, None).entry().context("the line must be readable")?;
    let mut reader = Reader::open_at(&path, entry.offset.context("the line has an offset")?)?;
    let mut record = reader.next()?.context("the record must be there")?;
    let mut page = String::new();
    std::io::Read::read_to_string(&mut record.payload()?, &mut page)?;
    ensure!(page.contains("page 7"), "the record must be the page");
    story.told("page found by index", format!("{} of {} lines: {}", entry.key, lines.len(), page.trim()));
    Ok(path)
}

fn write(path: &Path) -> anyhow::Result<PathBuf> {
    let date = Date::parse(b"2026-01-02T03:04:05Z").context("a date")?;
    let mut file = WarcFile::create(path, &FileOptions::default(), date)?;
    for number in 0..PAGES {
        let body = format!("<h1>This is page {number}</h1>\n");
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n", body.len());
        let url = format!("http://www.example.org/page/{number}");
        file.write(&mut NewRecord::response(&url, date, head.as_bytes(), body.as_bytes()))?;
    }
    Ok(file.close()?)
}

fn offsets(path: &Path) -> anyhow::Result<Vec<u64>> {
    let mut reader = Reader::open(path)?;
    let mut offsets = Vec::new();
    while let Some(record) = reader.next()? {
        offsets.push(record.place().offset);
    }
    Ok(offsets)
}

/// How many records a file gives, and the codes of its problems.
fn read(path: &Path) -> anyhow::Result<(usize, Vec<&'static str>)> {
    let mut reader = Reader::open(path)?;
    let (mut records, mut problems) = (0, Vec::new());
    while let Some(mut record) = reader.next()? {
        record.digest_check()?;
        record.finish()?;
        records += 1;
        problems.extend(record.problems().iter().map(|problem| problem.kind.code()));
    }
    problems.extend(reader.problems().iter().map(|problem| problem.kind.code()));
    Ok((records, problems))
}
