//! Sorting more lines than fit into memory, in the order of `LC_ALL=C sort`: by bytes.
//!
//! Lines are gathered in one buffer. When the budget is used up the buffer is sorted and written to a
//! temporary file (a run); at the end the runs are merged. Runs are merged in several passes when there are
//! more of them than read buffers fit into the budget, so memory stays bounded whatever the input.

use crate::merge::{Dedupe, Deduper, merge_readers};
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Seek, SeekFrom, Write};
use std::path::PathBuf;

/// How to sort.
#[derive(Debug, Clone)]
pub struct SortOptions {
    /// Bytes of memory for lines and for read buffers. A single longer line is still taken.
    pub memory_bytes: usize,
    /// Where runs are written; the system's temporary directory if `None`.
    pub temp_dir: Option<PathBuf>,
    /// What happens to doubles.
    pub dedupe: Dedupe,
}

impl Default for SortOptions {
    fn default() -> Self {
        // Half of what one file may cost (64 MB): the index of a file usually fits without a run.
        Self { memory_bytes: 32 << 20, temp_dir: None, dedupe: Dedupe::Lines }
    }
}

/// Read buffer of one run while merging; below this, seeking costs more than another pass.
const RUN_BUFFER_BYTES: usize = 64 << 10;

/// Below this budget there would be a run for every handful of lines.
const MEMORY_BYTES_MIN: usize = 4 * RUN_BUFFER_BYTES;

/// Takes lines in any order and gives them back sorted.
///
/// ```
/// let mut sorter = cdx::Sorter::new(cdx::SortOptions::default());
/// for line in ["b 1", "a 2", "b 1"] {
///     sorter.push(line.as_bytes())?;
/// }
/// let mut out = Vec::new();
/// sorter.finish(&mut out)?;
/// assert_eq!(out, b"a 2\nb 1\n");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Sorter {
    options: SortOptions,
    text: Vec<u8>,
    lines: Vec<Slot>,
    runs: Vec<File>,
}

/// A line in `text`. The first eight bytes decide most comparisons without a look at the text.
#[derive(Debug, Clone, Copy)]
struct Slot {
    head: u64,
    start: usize,
    len: usize,
}

impl Sorter {
    /// A sorter with nothing in it.
    #[must_use]
    pub fn new(mut options: SortOptions) -> Self {
        options.memory_bytes = options.memory_bytes.max(MEMORY_BYTES_MIN);
        Self { options, text: Vec::new(), lines: Vec::new(), runs: Vec::new() }
    }

    /// Takes a line; a line end at its end is not part of it. Fails only if a run cannot be written.
    pub fn push(&mut self, line: &[u8]) -> io::Result<()> {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let used = self.text.len() + self.lines.len() * size_of::<Slot>();
        if used + line.len() + size_of::<Slot>() > self.options.memory_bytes && !self.lines.is_empty() {
            self.spill()?;
        }
        self.lines.push(Slot { head: head(line), start: self.text.len(), len: line.len() });
        self.text.extend_from_slice(line);
        Ok(())
    }

    /// Takes every line of `input`.
    pub fn push_all(&mut self, mut input: impl BufRead) -> io::Result<()> {
        let mut line = Vec::new();
        while input.read_until(b'\n', &mut line)? > 0 {
            self.push(&line)?;
            line.clear();
        }
        Ok(())
    }

    /// How many runs were written to disk so far.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.runs.len()
    }

    /// Writes all lines, sorted, each with a line end. Returns how many were written.
    pub fn finish(mut self, out: &mut dyn Write) -> io::Result<u64> {
        if self.runs.is_empty() {
            self.sort();
            let lines = self.lines.iter().map(|slot| &self.text[slot.start..slot.start + slot.len]);
            return write_lines(lines, self.options.dedupe, out);
        }
        if !self.lines.is_empty() {
            self.spill()?;
        }
        self.text = Vec::new();
        self.lines = Vec::new();
        let fan_in = (self.options.memory_bytes / RUN_BUFFER_BYTES).max(2);
        while self.runs.len() > fan_in {
            let rest = self.runs.split_off(fan_in);
            let batch = std::mem::replace(&mut self.runs, rest);
            let merged = self.write_run(|options, out| merge_runs(batch, options, out).map(drop))?;
            self.runs.push(merged);
        }
        merge_runs(std::mem::take(&mut self.runs), &self.options, out)
    }

    fn sort(&mut self) {
        let text = &self.text;
        let line = |slot: &Slot| &text[slot.start..slot.start + slot.len];
        self.lines.sort_unstable_by(|a, b| a.head.cmp(&b.head).then_with(|| line(a).cmp(line(b))));
    }

    fn spill(&mut self) -> io::Result<()> {
        self.sort();
        let run = self.write_run(|options, out| {
            let lines = self.lines.iter().map(|slot| &self.text[slot.start..slot.start + slot.len]);
            write_lines(lines, options.dedupe, out).map(drop)
        })?;
        self.runs.push(run);
        self.text.clear();
        self.lines.clear();
        Ok(())
    }

    /// An unnamed file that the system removes when it is closed, also when the process dies.
    fn write_run(
        &self,
        fill: impl FnOnce(&SortOptions, &mut dyn Write) -> io::Result<()>,
    ) -> io::Result<File> {
        let file = match &self.options.temp_dir {
            Some(dir) => tempfile::tempfile_in(dir),
            None => tempfile::tempfile(),
        }?;
        let mut out = BufWriter::with_capacity(RUN_BUFFER_BYTES, file);
        fill(&self.options, &mut out)?;
        let mut file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.seek(SeekFrom::Start(0))?;
        Ok(file)
    }
}

fn merge_runs(runs: Vec<File>, options: &SortOptions, out: &mut dyn Write) -> io::Result<u64> {
    let readers = runs.into_iter().map(|run| BufReader::with_capacity(RUN_BUFFER_BYTES, run)).collect();
    merge_readers(readers, options.dedupe, out)
}

fn write_lines<'t>(
    lines: impl Iterator<Item = &'t [u8]>,
    dedupe: Dedupe,
    out: &mut dyn Write,
) -> io::Result<u64> {
    let mut written = 0;
    let mut seen = Deduper::new(dedupe);
    for line in lines {
        if !seen.admits(line) {
            continue;
        }
        out.write_all(line)?;
        out.write_all(b"\n")?;
        written += 1;
    }
    out.flush()?;
    Ok(written)
}

fn head(line: &[u8]) -> u64 {
    let mut head = [0; 8];
    let len = line.len().min(8);
    head[..len].copy_from_slice(&line[..len]);
    u64::from_be_bytes(head)
}
