//! Files one behind the other, read as one: the parts of a log whose chunks were closed.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;

/// Several files as one.
#[derive(Debug)]
pub(super) struct Joined {
    parts: Vec<(PathBuf, u64)>,
    length: u64,
    position: u64,
    /// The part that is open, and where its first byte stands among all.
    open: Option<(File, u64, u64)>,
}

impl Joined {
    /// Each file as long as it is now; what is appended meanwhile is not part of it.
    pub(super) fn new(paths: Vec<PathBuf>) -> io::Result<Joined> {
        let mut parts = Vec::with_capacity(paths.len());
        for path in paths {
            let length = path.metadata()?.len();
            parts.push((path, length));
        }
        let length = parts.iter().map(|(_, length)| length).sum();
        Ok(Joined { parts, length, position: 0, open: None })
    }

    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Opens the part that holds the position.
    fn part(&mut self) -> io::Result<Option<&mut (File, u64, u64)>> {
        let inside = |open: &(File, u64, u64)| (open.1..open.1 + open.2).contains(&self.position);
        if !self.open.as_ref().is_some_and(inside) {
            let mut start = 0;
            let holds = self.parts.iter().find_map(|(path, length)| {
                let begins = start;
                start += length;
                (begins..start).contains(&self.position).then_some((path, begins, *length))
            });
            let Some((path, begins, length)) = holds else { return Ok(None) };
            let mut file = File::open(path)?;
            file.seek(SeekFrom::Start(self.position - begins))?;
            self.open = Some((file, begins, length));
        }
        Ok(self.open.as_mut())
    }
}

impl Read for Joined {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let position = self.position;
        let Some((file, begins, length)) = self.part()? else { return Ok(0) };
        let left = (*begins + *length - position).min(buf.len() as u64) as usize;
        let n = file.read(&mut buf[..left])?;
        if n == 0 && left > 0 {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "a file became shorter while it was read",
            ));
        }
        self.position += n as u64;
        Ok(n)
    }
}

impl Seek for Joined {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::Current(by) => self.position.checked_add_signed(by),
            SeekFrom::End(by) => self.length.checked_add_signed(by),
        };
        let outside = || io::Error::new(io::ErrorKind::InvalidInput, "a position before the first byte");
        self.position = position.ok_or_else(outside)?;
        self.open = None;
        Ok(self.position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_read_as_one_from_any_position() {
        let folder = tempfile::tempdir().unwrap();
        let paths: Vec<_> = [("a", "abc"), ("b", ""), ("c", "defgh")]
            .map(|(name, text)| {
                let path = folder.path().join(name);
                std::fs::write(&path, text).unwrap();
                path
            })
            .to_vec();
        let mut joined = Joined::new(paths).unwrap();
        assert_eq!(joined.length(), 8);
        for (from, expected) in [(0, "abcdefgh"), (2, "cdefgh"), (3, "defgh"), (8, ""), (99, "")] {
            joined.seek(SeekFrom::Start(from)).unwrap();
            let mut text = String::new();
            joined.read_to_string(&mut text).unwrap();
            assert_eq!(text, expected, "from {from}");
        }
    }
}
