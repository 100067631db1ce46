//! Lines out of records.

mod draft;
mod options;
mod parallel;
mod report;
mod span;

pub use options::{ExtraField, Format, IndexOptions, Records};
pub use report::{IndexReport, Tally};

use crate::entry::Entry;
use crate::post::{body_query, url_with_body};
use draft::Draft;
use span::Span;
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use urlkey::Keyer;
use warc::{Algorithm, Hasher, Problem, Reader};

/// Indexes what `reader` reads, from where it stands to its end, and hands each line (with its line end) to
/// `sink` in the order of the file.
///
/// # Where lines differ from cdxj-indexer's
///
/// Lines equal those of PyPI `cdxj-indexer` 1.5.0 with [`Dialect::Ia`](urlkey::Dialect::Ia) and
/// [`Spelling::Python`](crate::Spelling::Python), except:
///
/// - Files that it gives up on (several records in a member, damage of any kind) are read to their end.
/// - Status and MIME type are taken from an HTTP head only. It takes the second word of whatever the block of
///   a response begins with for a status. A status that is no number is left out.
/// - With POST keys, a record without payload digest gets the digest of its payload; cdxj-indexer has read the
///   payload by then and writes that of nothing. Without a readable `Content-Length` the body counts as empty.
/// - The revisit of an answer to a POST gets the key of its request as the answer did; it leaves the body out.
/// - AMF bodies are written as base64, and multipart bodies that are broken too; it ends with an exception.
/// - Times with a zone are converted to UTC; it drops the zone. Short ARC dates are filled with zeros; it fills
///   them with the latest possible time. A date that cannot be read becomes `-`; it ends with an exception.
/// - In CDX columns an empty value is `-` and a space `%20`; it writes them as they are.
/// - Record types are matched in any case of letters, and ARC header lines that are short or transposed are put
///   right first.
/// - Lengths and digests of damaged blocks are those of what could be read.
/// - A request whose body went into the key gets no digest.
pub fn index(
    reader: &mut Reader,
    options: &IndexOptions,
    mut sink: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<IndexReport> {
    let mut indexer = Indexer::new(options, None);
    indexer.run(reader, Span::whole(), &mut sink)?;
    Ok(indexer.report)
}

/// Indexes a file with up to `threads` threads. A gzip file is split where members begin; other files and
/// small ones take one thread. The lines come in the order of the file either way.
pub fn index_file(
    path: impl AsRef<Path>,
    options: &IndexOptions,
    threads: usize,
    mut sink: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<IndexReport> {
    let path = path.as_ref();
    if threads > 1
        && let Some(report) = parallel::index(path, options, threads, &mut sink)?
    {
        return Ok(report);
    }
    let raw = if options.record_digests { Some(File::open(path)?) } else { None };
    let mut indexer = Indexer::new(options, raw);
    indexer.run(&mut Reader::open(path)?, Span::whole(), &mut sink)?;
    Ok(indexer.report)
}

/// Makes the lines of one run over one reader.
struct Indexer<'o> {
    options: &'o IndexOptions,
    keyer: Keyer,
    key: String,
    line: Vec<u8>,
    /// The file once more, for digests of stored bytes.
    raw: Option<File>,
    report: IndexReport,
}

type Sink<'s> = &'s mut dyn FnMut(&[u8]) -> io::Result<()>;

impl<'o> Indexer<'o> {
    fn new(options: &'o IndexOptions, raw: Option<File>) -> Self {
        let keyer = Keyer::new(options.dialect);
        Self { options, keyer, key: String::new(), line: Vec::new(), raw, report: IndexReport::default() }
    }

    /// Indexes the records that begin in `span`. Returns where the first record behind it begins.
    fn run(&mut self, reader: &mut Reader, span: Span, sink: Sink<'_>) -> io::Result<Option<u64>> {
        let plain = reader.container() == warc::Container::Plain;
        let (mut draft, mut last, mut pending) = (Draft::default(), Draft::default(), Draft::default());
        // Whether `last` is kept; its line is written when it is known where the next record begins.
        let mut last_kept = None;
        let next = loop {
            let Some(mut record) = reader.next()? else {
                break None;
            };
            let offset = record.place().offset;
            if let Some(kept) = last_kept.take() {
                if plain {
                    last.end_at(offset);
                }
                self.settle(&mut last, kept, &mut pending, sink)?;
            }
            if span.is_behind(offset) {
                // What is wrong between here and there was found on the way to it.
                let before: Vec<Problem> = record
                    .problems()
                    .iter()
                    .filter(|problem| !span.is_behind(problem.offset))
                    .cloned()
                    .collect();
                self.report.note(&before);
                break Some(offset);
            }
            self.report.records += 1;
            last_kept = Some(draft.fill(&mut record, self.options, plain)?);
            self.report.note(record.problems());
            std::mem::swap(&mut last, &mut draft);
        };
        if let Some(kept) = last_kept {
            self.settle(&mut last, kept, &mut pending, sink)?;
        }
        self.write_single(&pending, sink)?;
        if next.is_none() {
            self.report.note(reader.problems());
        }
        Ok(next)
    }

    /// Writes the line of a record, or keeps the record as `pending` where the next one may belong to it.
    fn settle(
        &mut self,
        last: &mut Draft,
        kept: bool,
        pending: &mut Draft,
        sink: Sink<'_>,
    ) -> io::Result<()> {
        if !self.options.pairs() {
            return if kept { self.write(last, None, sink) } else { Ok(()) };
        }
        if pending.pairs_with(last) {
            self.write_pair(pending, last, sink)?;
            pending.kind = None;
        } else {
            self.write_single(pending, sink)?;
            std::mem::swap(pending, last);
        }
        Ok(())
    }

    fn write_single(&mut self, draft: &Draft, sink: Sink<'_>) -> io::Result<()> {
        if draft.kind.is_none() {
            return Ok(());
        }
        self.write(draft, None, sink)
    }

    fn write_pair(&mut self, first: &Draft, second: &Draft, sink: Sink<'_>) -> io::Result<()> {
        let request = if first.request.present { first } else { second };
        self.write(first, Some(request), sink)?;
        self.write(second, Some(request), sink)
    }

    fn write(&mut self, draft: &Draft, request: Option<&Draft>, sink: Sink<'_>) -> io::Result<()> {
        if !draft.wanted {
            return Ok(());
        }
        let url = draft.url.get().unwrap_or("");
        let posted = request.filter(|request| self.options.post_append && request.request.has_body());
        let query = posted.map(|request| {
            body_query(&request.request.content_type, &request.request.body, self.options.spelling)
        });
        self.key.clear();
        match (posted, &query) {
            (Some(posted), Some(query)) => {
                let long = url_with_body(url, &posted.request.method, query);
                self.keyer.key_into(&long, &mut self.key);
            }
            _ => self.keyer.key_into(url, &mut self.key),
        }
        let mut entry = Entry {
            key: Cow::Borrowed(&self.key),
            timestamp: Cow::Borrowed(&draft.timestamp),
            url: draft.url.get().map(Cow::Borrowed),
            mime: draft.mime.get().map(Cow::Borrowed),
            status: draft.status,
            digest: draft.digest.get().map(Cow::Borrowed),
            length: draft.length,
            offset: Some(draft.offset),
            filename: Some(Cow::Borrowed(&self.options.filename)),
            ..Entry::default()
        };
        if let Some(raw) = &mut self.raw {
            entry.record_digest = stored_digest(raw, draft.offset, draft.length)?.map(Cow::Owned);
        }
        if !self.options.extra.is_empty() {
            entry.extra = extra_fields(self.options, draft, request);
        }
        // Only the response carries them; the request's line says what was sent by itself.
        if let (Some(posted), Some(query), false) = (posted, query, draft.request.present) {
            entry.request_body = Some(Cow::Owned(query));
            entry.extra.retain(|(name, _)| name != "method");
            entry.method = Some(Cow::Owned(posted.request.method.to_ascii_uppercase()));
        }
        self.line.clear();
        match &self.options.format {
            Format::Cdxj => entry.write_cdxj(&mut self.line),
            Format::Cdx(legend) => entry.write_cdx(legend, &mut self.line),
        }
        self.report.lines += 1;
        self.report.unseekable += u64::from(!draft.seekable);
        sink(&self.line)
    }
}

/// The extra fields in the order of the options.
fn extra_fields(
    options: &IndexOptions,
    draft: &Draft,
    request: Option<&Draft>,
) -> Vec<(Cow<'static, str>, serde_json::Value)> {
    // A request without its response is its own request.
    let own = draft.request.present.then_some(draft);
    let headers = request.or(own).map_or(&[][..], |request| &request.request.headers);
    let mut values: Vec<&(usize, String)> = draft.extra.iter().chain(headers).collect();
    values.sort_by_key(|(place, _)| *place);
    let field = |(place, value): &(usize, String)| {
        (Cow::Owned(options.extra[*place].name()), serde_json::Value::String(value.clone()))
    };
    values.into_iter().map(field).collect()
}

fn stored_digest(raw: &mut File, offset: u64, length: Option<u64>) -> io::Result<Option<String>> {
    let Some(length) = length else { return Ok(None) };
    raw.seek(SeekFrom::Start(offset))?;
    let mut left = length;
    let mut hasher = Hasher::new(Algorithm::Sha256);
    let mut buffer = vec![0; 64 << 10];
    while left > 0 {
        let want = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let len = raw.read(&mut buffer[..want])?;
        if len == 0 {
            break;
        }
        hasher.update(&buffer[..len]);
        left -= len as u64;
    }
    Ok(Some(format!("sha256:{}", hasher.finish().hex())))
}
