//! The demo's part on files: a page is found in a WARC file by its index, and a damaged copy is read all the same.

use std::path::Path;

use anyhow::{Context as _, ensure};
use cdx::{IndexOptions, index_file};
use urlkey::{Dialect, MatchType, search_range};
use warc::Reader;

use crate::story::Story;

/// Looks for `url` in the WARC file `path`; works in `folder`.
pub(super) fn tell(story: &mut Story, folder: &Path, path: &Path, url: &str) -> anyhow::Result<()> {
    let mut lines: Vec<Vec<u8>> = Vec::new();
    index_file(path, &IndexOptions::default(), 2, |line| {
        lines.push(line.to_vec());
        Ok(())
    })?;
    lines.sort_unstable();
    let range = search_range(url, MatchType::Exact, Dialect::Standard);
    let line = lines.iter().find(|line| range.contains(line)).context("the index must find the page")?;
    let entry = cdx::parse_line(line, None).entry().context("the line must be readable")?;
    let mut reader = Reader::open_at(path, entry.offset.context("the line has an offset")?)?;
    let mut record = reader.next()?.context("the record must be there")?;
    let mut page = Vec::new();
    std::io::Read::read_to_end(&mut record.payload()?, &mut page)?;
    ensure!(!page.is_empty(), "the record must hold the page");
    story
        .told("page found by index", format!("{} of {} lines: {} bytes", entry.key, lines.len(), page.len()));

    // Eight foreign bytes in the middle of a copy, as a bad disk leaves them.
    let offsets = offsets(path)?;
    let (bytes, middle) = (std::fs::read(path)?, offsets[offsets.len() / 2] as usize);
    let damaged = folder.join("damaged.warc.gz");
    std::fs::write(&damaged, [&bytes[..middle], b"8 bytes!", &bytes[middle..]].concat())?;
    let (records, problems) = read(&damaged)?;
    ensure!(
        records == offsets.len() && problems.len() == 1,
        "the damage must be named and cost no record: {records} of {}, {problems:?}",
        offsets.len()
    );
    story.told("damaged copy read", format!("all {records} records, problem named: {}", problems[0]));
    Ok(())
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
