//! From the lines of a metadata file to entries.

use std::io;
use std::path::Path;

use grange_crawl::log::{CrawlLine, Revisit, read_digits};
use jiff::Timestamp;
use warc::Digest;

use super::build::{Builder, By};
use super::entry::{Entry, Key};
use super::join::Loose;
use super::stored::{SAMPLES_MAX, SampleCapture};
use crate::metadata::read::{Part, lines_of_file};

/// What came of one metadata file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fed {
    /// Lines of the crawl log.
    pub lines: u64,
    /// Originals taken.
    pub entries: u64,
    /// Captures whose place must be looked up in index lines.
    pub loose: u64,
    /// Lines that are no lines of a crawl log.
    pub unreadable: u64,
    /// Things wrong with the file itself.
    pub problems: u64,
}

/// Reads a metadata file into the builders. Counts are those of the first.
pub fn feed(builders: &[&Builder], path: &Path) -> io::Result<Fed> {
    let feed = |builder| Feeder { builder, fed: Fed::default(), last: None };
    let mut feeders: Vec<_> = builders.iter().copied().map(feed).collect();
    let mut failed = None;
    let tally = lines_of_file(path, &[Part::CrawlLog, Part::Cdx], &mut |part, line| {
        let done = match part {
            Part::CrawlLog => {
                let parsed = std::str::from_utf8(line).ok().and_then(|line| CrawlLine::parse(line).ok());
                feeders.iter_mut().try_for_each(|feeder| feeder.logged(parsed.as_ref()))
            }
            Part::Cdx => feeders.iter_mut().try_for_each(|feeder| feeder.placed(line)),
        };
        failed = done.err();
        failed.is_none()
    })?;
    match (failed, feeders.first()) {
        (Some(error), _) => Err(error),
        (None, first) => {
            let fed = first.map(|feeder| feeder.fed).unwrap_or_default();
            Ok(Fed { problems: tally.problems + tally.long_lines, ..fed })
        }
    }
}

struct Feeder<'b> {
    builder: &'b Builder,
    fed: Fed,
    last: Option<LastFile>,
}

/// The file named last: lines name one file many times in a row.
struct LastFile {
    name: String,
    number: u32,
    /// Captures of this row of lines that were given as samples.
    samples: usize,
}

impl Feeder<'_> {
    fn logged(&mut self, line: Option<&CrawlLine<'_>>) -> io::Result<()> {
        self.fed.lines += 1;
        let Some(line) = line else {
            self.fed.unreadable += 1;
            return Ok(());
        };
        let Some((digest, date)) = captured(line) else { return Ok(()) };
        let key = self.builder.key(&line.url, &digest);
        if line.revisit().is_some() {
            let Some(origin) = line.original() else { return Ok(()) };
            // A record of another URL is no original of this one.
            let elsewhere = line.extra.as_ref().is_some_and(|extra| extra.original_url.is_some());
            if elsewhere && self.builder.by() == By::Url {
                return Ok(());
            }
            // Old deduplicators leave the date out; then that of this line stands for it.
            let date = read_digits(origin.timestamp).unwrap_or(date);
            let url =
                line.extra.as_ref().and_then(|extra| extra.original_url.as_deref()).unwrap_or(&line.url);
            return self.take(key, origin.file, origin.offset, date, (url, digest));
        }
        let place = line
            .extra
            .as_ref()
            .and_then(|extra| Some((extra.warc_filename.as_deref()?, extra.warc_file_offset?)));
        if let Some((file, offset)) = place {
            return self.take(key, file, offset, date, (&line.url, digest));
        }
        let Ok(date_ms) = u64::try_from(date.as_millisecond()) else { return Ok(()) };
        self.fed.loose += 1;
        self.builder.push_loose(&line.url, Loose::Logged { date_ms, key })
    }

    /// A line of an index, `A e b m n g v c`. Of use only for logs that do not tell places; ours come before their index.
    fn placed(&mut self, line: &[u8]) -> io::Result<()> {
        if self.fed.loose == 0 && self.fed.lines > 0 {
            return Ok(());
        }
        let Ok(line) = std::str::from_utf8(line) else { return Ok(()) };
        let columns: Vec<_> = line.split(' ').collect();
        let [url, _, date, _, _, file, offset, ..] = columns[..] else { return Ok(()) };
        let (Some(date), Ok(offset)) = (read_digits(date), offset.parse()) else { return Ok(()) };
        let Ok(date_ms) = u64::try_from(date.as_millisecond()) else { return Ok(()) };
        let Some(file) = self.file(file, || SampleCapture { offset, url: url.to_owned(), payload: None })
        else {
            return Ok(());
        };
        self.builder.push_loose(url, Loose::Placed { date_ms, file, offset })
    }

    fn take(
        &mut self,
        key: Key,
        file: &str,
        offset: u64,
        date: Timestamp,
        (url, payload): (&str, Digest),
    ) -> io::Result<()> {
        let sample = || SampleCapture { offset, url: url.to_owned(), payload: Some(payload) };
        let entry = self.file(file, sample).and_then(|file| Entry::new(key, file, offset, date));
        let Some(entry) = entry else { return Ok(()) };
        self.fed.entries += 1;
        self.builder.push(entry)
    }

    /// The number of a file's name. The capture is one that the file should hold.
    fn file(&mut self, name: &str, capture: impl FnOnce() -> SampleCapture) -> Option<u32> {
        if self.last.as_ref().is_none_or(|last| last.name != name) {
            let number = self.builder.file(name)?;
            self.last = Some(LastFile { name: name.to_owned(), number, samples: 0 });
        }
        let last = self.last.as_mut()?;
        if last.samples < SAMPLES_MAX {
            last.samples += 1;
            self.builder.sample(last.number, capture);
        }
        Some(last.number)
    }
}

/// What a line says was captured, if it may stand for later captures.
fn captured(line: &CrawlLine<'_>) -> Option<(Digest, Timestamp)> {
    let web = line.url.starts_with("http://") || line.url.starts_with("https://");
    // What the virus gate masked is no response that a revisit could refer to; a server's "not modified" is none either.
    let masked = line.annotations().any(|word| word.starts_with("stream:") || word.starts_with("unscanned:"));
    if !web || line.status.0 <= 0 || masked || line.revisit() == Some(Revisit::NotModified) {
        return None;
    }
    let digest = Digest::parse(line.digest.as_deref()?.as_bytes()).ok()?;
    Some((digest, line.fetched?.began))
}
