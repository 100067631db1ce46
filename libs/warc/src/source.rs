//! The stored bytes of a file, read in large pieces and looked at in place.

use std::fmt;
use std::io::{self, Read, Seek, SeekFrom};

/// The first read. Replay opens a file for one small record, so it starts low and doubles.
const READ_FIRST: usize = 64 << 10;
/// The largest read: large enough that the system call vanishes, small enough to stay in the cache.
const READ_MAX: usize = 1 << 20;

/// Something that can be read and positioned.
pub(crate) trait ReadSeek: Read + Seek + Send {}
impl<T: Read + Seek + Send> ReadSeek for T {}

enum Input {
    Stream(Box<dyn Read + Send>),
    Seekable(Box<dyn ReadSeek>),
    /// The buffer holds the whole file. The window grows over it as if it were read: limits on what is looked at hold.
    Memory,
}

/// A sliding window over the stored bytes.
pub(crate) struct Source {
    input: Input,
    buf: Vec<u8>,
    /// The window is `buf[pos..end]`.
    pos: usize,
    end: usize,
    /// The offset in the file of `buf[0]`.
    base: u64,
    eof: bool,
    read_size: usize,
    /// The length of the file, when it can be known without reading it.
    len: Option<u64>,
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source")
            .field("offset", &self.offset())
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

impl Source {
    pub(crate) fn stream(input: impl Read + Send + 'static) -> Source {
        Source::new(Input::Stream(Box::new(input)), None)
    }

    pub(crate) fn seekable(mut input: impl Read + Seek + Send + 'static) -> io::Result<Source> {
        let len = input.seek(SeekFrom::End(0))?;
        input.seek(SeekFrom::Start(0))?;
        Ok(Source::new(Input::Seekable(Box::new(input)), Some(len)))
    }

    /// A file that is in memory already: its bytes are the buffer.
    pub(crate) fn memory(buf: Vec<u8>) -> Source {
        let len = Some(buf.len() as u64);
        Source { buf, ..Source::new(Input::Memory, len) }
    }

    fn new(input: Input, len: Option<u64>) -> Source {
        Source { input, buf: Vec::new(), pos: 0, end: 0, base: 0, eof: false, read_size: READ_FIRST, len }
    }

    pub(crate) fn window(&self) -> &[u8] {
        &self.buf[self.pos..self.end]
    }

    /// The offset in the file of the first byte of the window.
    pub(crate) fn offset(&self) -> u64 {
        self.base + self.pos as u64
    }

    pub(crate) fn len(&self) -> Option<u64> {
        self.len
    }

    /// Whether the window reaches to the end of the file.
    pub(crate) fn at_eof(&self) -> bool {
        self.eof
    }

    /// Makes the window at least `want` long if the file is. `want` comes from constants of this library,
    /// never from the file: it bounds the memory.
    pub(crate) fn fill(&mut self, want: usize) -> io::Result<()> {
        if self.end - self.pos >= want || self.eof {
            return Ok(());
        }
        let input: &mut dyn Read = match &mut self.input {
            Input::Stream(input) => input,
            Input::Seekable(input) => input,
            Input::Memory => {
                self.fill_in_place(want);
                return Ok(());
            }
        };
        if self.pos > 0 {
            self.buf.copy_within(self.pos..self.end, 0);
            self.base += self.pos as u64;
            self.end -= self.pos;
            self.pos = 0;
        }
        while self.end < want && !self.eof {
            let room = (self.end + self.read_size).max(want);
            if self.buf.len() < room {
                self.buf.resize(room, 0);
            }
            match input.read(&mut self.buf[self.end..]) {
                Ok(0) => self.eof = true,
                Ok(n) => {
                    self.end += n;
                    self.read_size = (self.read_size * 2).min(READ_MAX);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn fill_in_place(&mut self, want: usize) {
        while self.end - self.pos < want && !self.eof {
            let step = self.read_size.min(self.buf.len() - self.end);
            self.end += step;
            self.eof = step == 0;
            self.read_size = (self.read_size * 2).min(READ_MAX);
        }
    }

    /// Gives up the first `n` bytes of the window.
    pub(crate) fn consume(&mut self, n: usize) {
        debug_assert!(n <= self.end - self.pos);
        self.pos = (self.pos + n).min(self.end);
    }

    /// Passes over up to `n` bytes, by seeking where that is possible. Answers how many there were.
    pub(crate) fn skip(&mut self, n: u64) -> io::Result<u64> {
        let mut left = n;
        loop {
            let step = left.min(self.window().len() as u64);
            self.consume(step as usize);
            left -= step;
            if left == 0 || self.eof {
                return Ok(n - left);
            }
            if let Some(len) = self.len
                && left > READ_MAX as u64
            {
                let step = left.min(len.saturating_sub(self.offset()));
                if step > 0 {
                    self.seek(self.offset() + step)?;
                    left -= step;
                }
            }
            self.fill(1)?;
        }
    }

    /// Goes to `offset`, inside the buffer if it still holds it.
    pub(crate) fn seek(&mut self, offset: u64) -> io::Result<()> {
        if offset >= self.base && offset <= self.base + self.end as u64 {
            self.pos = (offset - self.base) as usize;
            return Ok(());
        }
        let input = match &mut self.input {
            Input::Seekable(input) => input,
            Input::Memory => {
                let at = offset.min(self.buf.len() as u64) as usize;
                (self.pos, self.end, self.eof) = (at, at, false);
                self.read_size = READ_FIRST;
                return Ok(());
            }
            Input::Stream(_) => {
                return Err(io::Error::new(io::ErrorKind::Unsupported, "a stream cannot be positioned"));
            }
        };
        input.seek(SeekFrom::Start(offset))?;
        (self.pos, self.end, self.base, self.eof) = (0, 0, offset, false);
        self.read_size = READ_FIRST;
        Ok(())
    }

    /// Whether [`seek`](Source::seek) to `offset` would work.
    pub(crate) fn can_seek(&self, offset: u64) -> bool {
        matches!(self.input, Input::Seekable(_) | Input::Memory)
            || (offset >= self.base && offset <= self.base + self.end as u64)
    }
}
