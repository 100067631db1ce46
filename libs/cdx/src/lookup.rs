//! Lines of a range out of a sorted plain file, by binary search.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use urlkey::KeyRange;

/// A sorted file of lines that is searched where it lies.
#[derive(Debug)]
pub struct SortedFile<F = File> {
    input: BufReader<F>,
    bytes: u64,
}

/// Once the search has come this close it reads on: one disk block and its read-ahead.
const SCAN_BYTES: u64 = 32 << 10;

impl SortedFile {
    /// Opens a file.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        Self::new(File::open(path)?)
    }
}

impl<F: Read + Seek> SortedFile<F> {
    /// Searches anything that seeks.
    pub fn new(mut input: F) -> io::Result<Self> {
        let bytes = input.seek(SeekFrom::End(0))?;
        Ok(Self { input: BufReader::with_capacity(SCAN_BYTES as usize, input), bytes })
    }

    /// The bytes of the file.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The lines from `range.start` to before `range.end`. Reading stops at the first line past the range.
    ///
    /// Legend and `!meta` lines sort before every key, so they are never among them.
    pub fn lines_in<'f>(&'f mut self, range: &KeyRange) -> io::Result<RangeLines<'f, F>> {
        self.seek_to(range.start.as_bytes())?;
        Ok(RangeLines { input: &mut self.input, end: range.end.clone().into_bytes(), done: false })
    }

    /// Places the reader at the first line that is not less than `target`; returns its offset.
    pub fn seek_to(&mut self, target: &[u8]) -> io::Result<u64> {
        // Every line that begins before `low` is less than the target; the first that is not begins by `high`.
        let (mut low, mut high) = (0, self.bytes);
        let mut line = Vec::new();
        while high - low > SCAN_BYTES {
            let middle = low + (high - low) / 2;
            let start = self.line_start_after(middle)?;
            if start >= high {
                high = middle;
                continue;
            }
            line.clear();
            self.input.read_until(b'\n', &mut line)?;
            if without_end(&line) < target {
                low = start + line.len() as u64;
            } else {
                high = middle;
            }
        }
        let mut at =
            if low == 0 { self.input.seek(SeekFrom::Start(0))? } else { self.line_start_after(low - 1)? };
        loop {
            line.clear();
            let len = self.input.read_until(b'\n', &mut line)? as u64;
            if len == 0 || without_end(&line) >= target {
                self.input.seek(SeekFrom::Start(at))?;
                return Ok(at);
            }
            at += len;
        }
    }

    /// Seeks to the first line that begins after `offset` and returns its offset.
    fn line_start_after(&mut self, offset: u64) -> io::Result<u64> {
        self.input.seek(SeekFrom::Start(offset))?;
        let skipped = self.input.skip_until(b'\n')?;
        Ok(offset + skipped as u64)
    }
}

fn without_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// The lines of a range, one after another, without their line ends.
#[derive(Debug)]
pub struct RangeLines<'f, F> {
    input: &'f mut BufReader<F>,
    end: Vec<u8>,
    done: bool,
}

impl<F: Read> RangeLines<'_, F> {
    /// Reads the next line into `line`, which is emptied first; false when the range is over.
    pub fn next_into(&mut self, line: &mut Vec<u8>) -> io::Result<bool> {
        line.clear();
        if self.done || self.input.read_until(b'\n', line)? == 0 {
            self.done = true;
            return Ok(false);
        }
        line.truncate(without_end(line).len());
        if line.as_slice() >= self.end.as_slice() {
            self.done = true;
            line.clear();
        }
        Ok(!self.done)
    }
}

impl<F: Read> Iterator for RangeLines<'_, F> {
    type Item = io::Result<Vec<u8>>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut line = Vec::new();
        match self.next_into(&mut line) {
            Ok(true) => Some(Ok(line)),
            Ok(false) => None,
            Err(error) => Some(Err(error)),
        }
    }
}
