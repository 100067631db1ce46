//! Loading index lines in bulk: sorted runs by several threads, then one merge. They appear all at once.

use std::io::BufRead;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use cdx::{Entry, Legend, Line, LineProblem, parse_line};

use crate::capture::Capture;
use crate::combine::combine;
use crate::error::{Error, Result};
use crate::folder::UnnamedFile;
use crate::manifest::{SegmentEntry, segment_name};
use crate::merge::Layer;
use crate::row::Parts;
use crate::run::Run;
use crate::segment::{Segment, SegmentOptions, SegmentWriter};
use crate::stamp::Stamp;
use crate::store::{Index, Inner};

/// What a load did.
#[derive(Debug, Default)]
pub struct LoadReport {
    /// Lines read.
    pub lines: u64,
    /// Captures written; the same capture told twice counts once.
    pub captures: u64,
    /// Lines about files that were not wanted.
    pub left_out: u64,
    /// Lines that gave no capture, or one with something wrong.
    pub problem_count: u64,
    /// The first [`PROBLEMS_MAX`](Self::PROBLEMS_MAX) of them.
    pub problems: Vec<LoadProblem>,
}

impl LoadReport {
    /// A file that is no index at all must not fill the memory.
    pub const PROBLEMS_MAX: usize = 100;

    fn note(&mut self, offset: u64, problem: Option<LineProblem>) {
        self.problem_count += 1;
        if self.problems.len() < Self::PROBLEMS_MAX {
            self.problems.push(LoadProblem { offset, problem });
        }
    }

    fn add(&mut self, other: Self) {
        self.lines += other.lines;
        self.left_out += other.left_out;
        self.problem_count += other.problem_count;
        let room = Self::PROBLEMS_MAX.saturating_sub(self.problems.len());
        self.problems.extend(other.problems.into_iter().take(room));
    }
}

/// A line that was not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadProblem {
    /// Where the line begins in the input.
    pub offset: u64,
    /// `None`: the line could not be read at all.
    pub problem: Option<LineProblem>,
}

/// Runs are read once and removed: what counts is the time to write them.
const RUN_LEVEL: i32 = 1;

/// A piece of the input, cut after a line.
struct Chunk {
    text: Vec<u8>,
    offset: u64,
    legend: Option<Legend>,
}

/// Under which job lines are kept, and about which files.
#[derive(Clone, Copy)]
struct LineUse<'a> {
    job: Option<&'a str>,
    wanted: &'a (dyn Fn(&str) -> bool + Sync),
}

impl Index {
    /// Adds every capture that the CDX or CDXJ lines of `input` tell of, sorted or not, under `job`. They appear
    /// together when all is read; after an error none has.
    pub fn load(&self, input: impl BufRead, job: Option<&str>) -> Result<LoadReport> {
        self.load_wanted(input, job, |_| true)
    }

    /// As [`load`](Self::load), without the lines about files that are not `wanted`.
    pub fn load_wanted(
        &self,
        input: impl BufRead,
        job: Option<&str>,
        wanted: impl Fn(&str) -> bool + Sync,
    ) -> Result<LoadReport> {
        self.inner.load(input, LineUse { job, wanted: &wanted })
    }
}

impl Inner {
    fn load(&self, input: impl BufRead, lines: LineUse<'_>) -> Result<LoadReport> {
        let (send, receive) = sync_channel::<Chunk>(1);
        let receive = Mutex::new(receive);
        let (mut report, mut made) = (LoadReport::default(), Vec::new());
        let broken = || Error::Broken { path: self.folder.clone() };
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..self.settings.load_threads.max(1))
                .map(|_| scope.spawn(|| self.make_runs(&receive, lines)))
                .collect();
            let read = self.cut(input, |chunk| send.send(chunk).is_ok());
            drop(send);
            let mut failed = read.err();
            for worker in workers {
                let (runs, part, error) = worker.join().map_err(|_| broken())?;
                made.extend(runs);
                report.add(part);
                failed = error.or(failed);
            }
            failed.map_or(Ok(()), Err)
        })?;
        // Later lines count more than earlier ones, as in a batch.
        made.sort_by(|one: &UnnamedFile, other| one.path().cmp(other.path()));
        let mut layers = Vec::with_capacity(made.len());
        for run in made.iter().rev() {
            let segment = Arc::new(Segment::open(run.path(), self.cache.clone())?);
            layers.push(Layer { segment, dead: None });
        }
        if layers.is_empty() {
            return Ok(report);
        }
        let name = self.with_writer(|writer| Ok(segment_name(writer.manifest.take_name())))?;
        let file = UnnamedFile::new(self.folder.join(&name));
        let combined = combine(&layers, file.path(), true, &self.settings, |_| {})?;
        report.captures = combined.rows;
        let segment = Arc::new(Segment::open(file.path(), self.cache.clone())?);
        self.write(|inner, writer| {
            // What is in the head is older than what appears now.
            inner.flush(writer)?;
            let mut manifest = writer.manifest.clone();
            let change = manifest.take_change();
            manifest.segments.push(SegmentEntry { name, change, rows: combined.rows, bytes: combined.bytes });
            file.leave();
            writer.replace(manifest, |segments| segments.push(segment))
        })?;
        Ok(report)
    }

    /// Cuts the input into pieces of whole lines.
    fn cut(&self, mut input: impl BufRead, mut give: impl FnMut(Chunk) -> bool) -> Result<()> {
        let (mut offset, mut legend, mut rest) = (0, None, Vec::new());
        loop {
            let mut text = std::mem::take(&mut rest);
            let mut ended = false;
            while text.len() < self.settings.load_bytes {
                let buffer = input.fill_buf().map_err(Error::io("read lines for", &self.folder))?;
                if buffer.is_empty() {
                    ended = true;
                    break;
                }
                let len = buffer.len();
                text.extend_from_slice(buffer);
                input.consume(len);
            }
            if !ended {
                // A line longer than a whole piece is cut like one: it is no index line.
                let end = memchr::memrchr(b'\n', &text).map_or(text.len(), |at| at + 1);
                rest = text.split_off(end);
            }
            let chunk = Chunk { offset, legend: legend.clone(), text };
            offset += chunk.text.len() as u64;
            legend = last_legend(&chunk.text).or(legend);
            if !chunk.text.is_empty() && !give(chunk) {
                return Ok(());
            }
            if ended {
                return Ok(());
            }
        }
    }

    /// Makes a run of each piece that comes.
    fn make_runs(
        &self,
        chunks: &Mutex<Receiver<Chunk>>,
        lines: LineUse<'_>,
    ) -> (Vec<UnnamedFile>, LoadReport, Option<Error>) {
        let (mut made, mut report) = (Vec::new(), LoadReport::default());
        loop {
            // The name is taken with the piece, so that names are in the order of the input.
            let (chunk, name) = {
                let chunks = chunks.lock().unwrap_or_else(PoisonError::into_inner);
                let Ok(chunk) = chunks.recv() else { return (made, report, None) };
                match self.with_writer(|writer| Ok(segment_name(writer.manifest.take_name()))) {
                    Ok(name) => (chunk, name),
                    Err(error) => return (made, report, Some(error)),
                }
            };
            let file = UnnamedFile::new(self.folder.join(name));
            let run = make_run(chunk, lines, &mut report);
            let options = SegmentOptions {
                block_bytes: self.settings.block_bytes,
                level: Some(RUN_LEVEL),
                dictionary: None,
            };
            let written = SegmentWriter::create(file.path(), options)
                .and_then(|mut writer| run.write(&mut writer).and_then(|()| writer.finish()));
            made.push(file);
            if let Err(error) = written {
                return (made, report, Some(error));
            }
        }
    }
}

fn last_legend(text: &[u8]) -> Option<Legend> {
    let at = memchr::memmem::rfind(text, b" CDX ")?;
    let start = memchr::memrchr(b'\n', &text[..at]).map_or(0, |at| at + 1);
    let end = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |len| at + len);
    Legend::parse(&text[start..end])
}

fn make_run(chunk: Chunk, lines: LineUse<'_>, report: &mut LoadReport) -> Run {
    let mut run = Run::default();
    let mut legend = chunk.legend;
    let mut at = 0;
    for end in memchr::memchr_iter(b'\n', &chunk.text).chain([chunk.text.len()]) {
        let line = &chunk.text[at..end];
        let offset = chunk.offset + at as u64;
        at = (end + 1).min(chunk.text.len());
        if line.is_empty() {
            continue;
        }
        report.lines += 1;
        match parse_line(line, legend.as_ref()) {
            Line::Entry(mut entry, problems) => {
                if let Some(problem) = problems.first() {
                    report.note(offset, Some(*problem));
                }
                // Without time and file there is nothing that could ever be shown.
                if entry.filename.is_none() && problems.contains(&LineProblem::BadTimestamp) {
                    continue;
                }
                if entry.filename.as_deref().is_some_and(|file| !(lines.wanted)(file)) {
                    report.left_out += 1;
                    continue;
                }
                if let Some(key) = key_of(&entry) {
                    entry.key = key.into();
                }
                push_entry(&mut run, entry, lines.job);
            }
            Line::Legend(found) => legend = Some(found),
            Line::Meta(_) | Line::Blank => {}
            Line::Unreadable => report.note(offset, None),
        }
    }
    run
}

/// The key of the URL of a line that has another one: programs that keep `www.`, letter case or session ids write such lines,
/// and neither a question about the URL nor a rule about it would meet them. A body in the key is kept.
fn key_of(entry: &Entry<'_>) -> Option<String> {
    let url = entry.url.as_deref()?;
    let key = crate::key::line_key(url);
    let has_body = match entry.method.as_deref() {
        Some(method) => !method.eq_ignore_ascii_case("get"),
        None => entry.request_body.is_some(),
    };
    let keep = has_body || crate::key::has_body(&entry.key) || adds_arguments(&entry.key, &key, url);
    (!keep && !key.is_empty() && key != *entry.key).then_some(key)
}

/// Whether a key has arguments besides those of its URL: older programs put the fields of a form there.
fn adds_arguments(line_key: &str, key: &str, url: &str) -> bool {
    let Some(more) = line_key.strip_prefix(key).and_then(|more| more.strip_prefix(['?', '&'])) else {
        return false;
    };
    // What the URL has itself, such as a session id, is no field of a form.
    let url = url.to_ascii_lowercase();
    more.split('&').any(|one| !url.contains(&one.to_ascii_lowercase()))
}

pub(crate) fn push_entry(run: &mut Run, entry: Entry<'_>, job: Option<&str>) {
    let plain = entry.redirect.is_none()
        && entry.robots.is_none()
        && entry.record_digest.is_none()
        && entry.request_body.is_none()
        && entry.method.is_none()
        && entry.original.is_none()
        && entry.extra.is_empty()
        && !entry.key.contains('\0')
        && !entry.filename.as_ref().is_some_and(|file| file.contains('\0'));
    if plain {
        run.push(&Parts {
            surt: &entry.key,
            time: Stamp::parse(entry.timestamp.as_bytes()).unwrap_or_default(),
            url: entry.url.as_deref(),
            mime: entry.mime.as_deref(),
            status: entry.status,
            digest: entry.digest.as_deref(),
            length: entry.length,
            offset: entry.offset,
            file: entry.filename.as_deref().unwrap_or_default(),
            job,
            extra: "",
            deleted: false,
            whole: false,
        });
    } else {
        let mut capture = Capture::from_entry(entry);
        capture.job = job.map(ToOwned::to_owned);
        run.push_capture(&capture, false);
    }
}
