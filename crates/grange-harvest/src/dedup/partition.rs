//! Rows of a fixed size in 256 temporary files by their first byte, so that each can be sorted in memory.
//!
//! Ten million entries are a megabyte each; a thousand million, a hundred.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::sync::{Mutex, MutexGuard};

const PARTITIONS: usize = 256;
/// Bytes gathered before they are written: 16 MB in all.
const BUFFER_BYTES: usize = 64 << 10;

/// Rows of `N` bytes. May be pushed to from many threads.
#[derive(Debug)]
pub(super) struct Partitions<const N: usize> {
    parts: Vec<Mutex<Part>>,
    folder: std::path::PathBuf,
}

#[derive(Debug, Default)]
struct Part {
    file: Option<File>,
    buffer: Vec<u8>,
}

impl<const N: usize> Partitions<N> {
    /// Files are made in `folder`, without names: they are gone when they are closed, also by a crash.
    pub(super) fn new(folder: &Path) -> Self {
        let parts = (0..PARTITIONS).map(|_| Mutex::default()).collect();
        Self { parts, folder: folder.to_owned() }
    }

    pub(super) fn push(&self, row: &[u8; N]) -> io::Result<()> {
        let mut part = held(&self.parts[usize::from(row[0])]);
        part.buffer.extend_from_slice(row);
        if part.buffer.len() >= BUFFER_BYTES { part.spill(&self.folder) } else { Ok(()) }
    }

    /// The rows of one partition after another, each sorted. They are gone from here afterwards.
    pub(super) fn sorted(self) -> impl Iterator<Item = io::Result<Vec<[u8; N]>>> {
        self.parts.into_iter().map(|part| {
            let part = part.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
            let mut rows = part.rows()?;
            rows.sort_unstable();
            Ok(rows)
        })
    }
}

impl Part {
    fn spill(&mut self, folder: &Path) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(tempfile::tempfile_in(folder)?),
        };
        file.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    fn rows<const N: usize>(mut self) -> io::Result<Vec<[u8; N]>> {
        let mut rows = Vec::new();
        if let Some(file) = &mut self.file {
            rows.reserve_exact((file.stream_position()? as usize + self.buffer.len()) / N);
            file.seek(SeekFrom::Start(0))?;
            let mut reader = io::BufReader::with_capacity(1 << 20, file);
            let mut row = [0; N];
            loop {
                match reader.read_exact(&mut row) {
                    Ok(()) => rows.push(row),
                    Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
                    Err(error) => return Err(error),
                }
            }
        }
        rows.extend(self.buffer.chunks_exact(N).filter_map(|row| <[u8; N]>::try_from(row).ok()));
        Ok(rows)
    }
}

/// A thread that panicked while holding a part has left it whole: rows are appended in one step.
fn held(part: &Mutex<Part>) -> MutexGuard<'_, Part> {
    part.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
