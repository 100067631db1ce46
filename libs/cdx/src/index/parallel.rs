//! One gzip file, several threads, lines in the order of the file.
//!
//! The file is cut into chunks of equal size; a chunk's span begins at the first member in it that starts a
//! record. Threads take chunks in order and gather their lines; the caller's thread hands them on in order.
//! A thread reads on to the first record behind its span. If that is not where the next span begins, the
//! latter began at something that merely looked like a record, and is indexed anew from the right place.

use super::span::{Span, find_start};
use super::{IndexOptions, IndexReport, Indexer, Sink};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::{Condvar, Mutex, OnceLock, PoisonError, mpsc};
use warc::{Container, Reader};

/// Large enough that finding its start costs nothing.
const CHUNK_BYTES_MIN: u64 = 4 << 20;
/// Small enough that the lines of a few chunks fit into memory.
const CHUNK_BYTES_MAX: u64 = 32 << 20;
/// So many that the threads end at about the same time.
const CHUNKS_PER_THREAD: u64 = 12;

struct Job<'j> {
    path: &'j Path,
    options: &'j IndexOptions,
    bytes: u64,
    chunk_bytes: u64,
    chunks: usize,
    /// Where each chunk's span begins; `None` if no record begins in the chunk.
    starts: Vec<OnceLock<Option<u64>>>,
    queue: Mutex<Queue>,
    moved: Condvar,
    /// Chunks that may be taken beyond the one that is handed on next.
    ahead: usize,
}

struct Queue {
    taken: usize,
    delivered: usize,
    stopped: bool,
}

/// The lines of one chunk.
struct Part {
    span: Option<Span>,
    lines: Vec<u8>,
    report: IndexReport,
    /// Where the first record behind the span begins; `None` at the end of the file.
    next: Option<u64>,
}

/// Indexes in parallel, or returns `None` if the file is not worth it.
pub(super) fn index(
    path: &Path,
    options: &IndexOptions,
    threads: usize,
    sink: Sink<'_>,
) -> io::Result<Option<IndexReport>> {
    let bytes = std::fs::metadata(path)?.len();
    let chunk_bytes = (bytes / (threads as u64 * CHUNKS_PER_THREAD)).clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX);
    let chunks = usize::try_from(bytes.div_ceil(chunk_bytes)).unwrap_or(usize::MAX);
    if chunks < 2 || Reader::open(path)?.container() != Container::Gzip {
        return Ok(None);
    }
    let job = Job {
        path,
        options,
        bytes,
        chunk_bytes,
        chunks,
        starts: (0..chunks).map(|_| OnceLock::new()).collect(),
        queue: Mutex::new(Queue { taken: 0, delivered: 0, stopped: false }),
        moved: Condvar::new(),
        ahead: threads * 2,
    };
    std::thread::scope(|scope| {
        let (send, parts) = mpsc::channel();
        for _ in 0..threads.min(chunks) {
            let send = send.clone();
            let job = &job;
            scope.spawn(move || {
                while let Some(chunk) = job.take() {
                    if send.send((chunk, job.index_chunk(chunk))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(send);
        let report = job.deliver(&parts, sink);
        job.stop();
        report.map(Some)
    })
}

impl Job<'_> {
    /// The next chunk, once it is not too far ahead.
    fn take(&self) -> Option<usize> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if queue.stopped || queue.taken == self.chunks {
                return None;
            }
            if queue.taken < queue.delivered + self.ahead {
                queue.taken += 1;
                return Some(queue.taken - 1);
            }
            queue = self.moved.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn change(&self, change: impl FnOnce(&mut Queue)) {
        change(&mut self.queue.lock().unwrap_or_else(PoisonError::into_inner));
        self.moved.notify_all();
    }

    fn stop(&self) {
        self.change(|queue| queue.stopped = true);
    }

    /// Hands the parts on in order; each must begin where the one before it ended.
    fn deliver(
        &self,
        parts: &mpsc::Receiver<(usize, io::Result<Part>)>,
        sink: Sink<'_>,
    ) -> io::Result<IndexReport> {
        let mut report = IndexReport::default();
        let mut early = BTreeMap::new();
        let mut expected = Some(0);
        for chunk in 0..self.chunks {
            let part = loop {
                if let Some(part) = early.remove(&chunk) {
                    break part;
                }
                let Ok((number, part)) = parts.recv() else {
                    return Err(io::Error::other("an indexing thread ended early"));
                };
                early.insert(number, part);
            };
            let mut part: Part = part?;
            if let Some(span) = part.span {
                match expected {
                    Some(start) if start == span.start => {}
                    // The one before has read all of this span, or more: nothing of it is left to say.
                    Some(start) if span.is_behind(start) => {
                        part = Part { next: Some(start), ..Part::empty() }
                    }
                    Some(start) => part = self.index_span(Span { start, end: span.end })?,
                    None => part = Part::empty(),
                }
                expected = part.next;
                for line in part.lines.split_inclusive(|b| *b == b'\n') {
                    sink(line)?;
                }
                report.add(&part.report);
            }
            self.change(|queue| queue.delivered += 1);
        }
        Ok(report)
    }

    fn index_chunk(&self, chunk: usize) -> io::Result<Part> {
        let Some(start) = self.start_of(chunk)? else {
            return Ok(Part::empty());
        };
        let mut end = u64::MAX;
        for later in chunk + 1..self.chunks {
            if let Some(start) = self.start_of(later)? {
                end = start;
                break;
            }
        }
        self.index_span(Span { start, end })
    }

    fn start_of(&self, chunk: usize) -> io::Result<Option<u64>> {
        if chunk == 0 {
            return Ok(Some(0));
        }
        if let Some(start) = self.starts[chunk].get() {
            return Ok(*start);
        }
        let start = chunk as u64 * self.chunk_bytes;
        let end = (start + self.chunk_bytes).min(self.bytes);
        let found = find_start(self.path, self.options, Span { start, end })?;
        Ok(*self.starts[chunk].get_or_init(|| found))
    }

    fn index_span(&self, span: Span) -> io::Result<Part> {
        let raw = if self.options.record_digests { Some(File::open(self.path)?) } else { None };
        let mut indexer = Indexer::new(self.options, raw);
        let mut lines = Vec::new();
        let next = indexer.run(&mut Reader::open_at(self.path, span.start)?, span, &mut |line| {
            lines.extend_from_slice(line);
            Ok(())
        })?;
        Ok(Part { span: Some(span), lines, report: indexer.report, next })
    }
}

impl Part {
    fn empty() -> Self {
        Self { span: None, lines: Vec::new(), report: IndexReport::default(), next: None }
    }
}
