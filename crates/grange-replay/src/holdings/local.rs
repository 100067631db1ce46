//! Files of this machine, read in place: whole ones, and parts of others such as the WARCs inside a WACZ.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, IoSliceMut, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use bytes::Bytes;
use grange_base::named_file;
use quick_cache::sync::Cache;
use rustix::io::{Errno, ReadWriteFlags, preadv2};

use super::{Holdings, HoldingsError};

/// Files kept open. A tenth of what a process may open by default; reopening one costs some 10 µs.
const OPEN_FILES_MAX: usize = 100;

/// The most bytes given at once: several readers hold theirs in memory.
const READ_BYTES_MAX: u64 = 64 << 20;

/// A run of bytes in a file: all of it, or one member of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    pub path: PathBuf,
    /// Where it begins.
    pub offset: u64,
    pub len: u64,
}

impl Section {
    /// All of a file, as long as it is now.
    pub fn whole(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        let len = std::fs::metadata(&path)?.len();
        Ok(Self { path, offset: 0, len })
    }

    /// Reads it from its start.
    pub fn open(&self) -> io::Result<SectionReader> {
        Ok(SectionReader { file: named_file::open(&self.path)?, offset: self.offset, len: self.len, at: 0 })
    }
}

/// A reader that sees nothing of the file around its section.
#[derive(Debug)]
pub struct SectionReader {
    file: File,
    offset: u64,
    len: u64,
    at: u64,
}

impl Read for SectionReader {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let left = self.len.saturating_sub(self.at).min(buf.len() as u64) as usize;
        let read = self.file.read_at(&mut buf[..left], self.offset + self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl Seek for SectionReader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.len.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "before the start"))?;
        Ok(self.at)
    }
}

/// Files of this machine by the names an index gives them.
#[derive(Debug)]
pub struct LocalFiles {
    sections: RwLock<HashMap<String, Arc<Section>>>,
    /// Where files are looked for that were not registered, but that an index names.
    folders: RwLock<Vec<PathBuf>>,
    named: RwLock<HashSet<String>>,
    open: Cache<PathBuf, Arc<File>>,
}

impl Default for LocalFiles {
    fn default() -> Self {
        Self {
            sections: RwLock::default(),
            folders: RwLock::default(),
            named: RwLock::default(),
            open: Cache::new(OPEN_FILES_MAX),
        }
    }
}

impl LocalFiles {
    pub fn add(&self, name: &str, section: Section) {
        // The path may lead to another file than the one that is open.
        self.open.remove(&section.path);
        let mut sections = self.sections.write().unwrap_or_else(PoisonError::into_inner);
        sections.insert(name.to_owned(), Arc::new(section));
    }

    pub fn remove(&self, name: &str) -> bool {
        self.sections.write().unwrap_or_else(PoisonError::into_inner).remove(name).is_some()
    }

    /// Looks for files with these names in this folder too, by the last part of each. Whatever else lies there is nobody's
    /// business.
    pub fn add_folder<'n>(&self, folder: PathBuf, names: impl IntoIterator<Item = &'n str>) {
        let mut named = self.named.write().unwrap_or_else(PoisonError::into_inner);
        named.extend(names.into_iter().map(ToOwned::to_owned));
        let mut folders = self.folders.write().unwrap_or_else(PoisonError::into_inner);
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }

    pub fn get(&self, name: &str) -> Option<Arc<Section>> {
        let known = self.sections.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        known.or_else(|| self.look(name))
    }

    /// A foreign index may name any path; nothing outside the folders is ever opened for it.
    fn look(&self, name: &str) -> Option<Arc<Section>> {
        if !self.named.read().unwrap_or_else(PoisonError::into_inner).contains(name) {
            return None;
        }
        let last = Path::new(name).file_name()?;
        let folders = self.folders.read().unwrap_or_else(PoisonError::into_inner).clone();
        let found = folders.iter().map(|folder| folder.join(last)).find(|path| path.is_file())?;
        self.add(name, Section::whole(found).ok()?);
        self.sections.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    fn file(&self, path: &Path) -> io::Result<Arc<File>> {
        if let Some(file) = self.open.get(path) {
            return Ok(file);
        }
        let file = Arc::new(named_file::open(path)?);
        self.open.insert(path.to_owned(), Arc::clone(&file));
        Ok(file)
    }

    async fn read(&self, section: &Section, offset: u64, len: u64) -> io::Result<Bytes> {
        let len = len.min(READ_BYTES_MAX).min(section.len.saturating_sub(offset)) as usize;
        let file = self.file(&section.path)?;
        let start = section.offset + offset;
        let mut bytes = vec![0; len];
        // What the system has in memory is taken at once; only a wait for the disk is worth a thread.
        let ready = match preadv2(&*file, &mut [IoSliceMut::new(&mut bytes)], start, ReadWriteFlags::NOWAIT) {
            Ok(read) => read,
            Err(Errno::AGAIN | Errno::OPNOTSUPP | Errno::NOSYS) => 0,
            Err(error) => return Err(error.into()),
        };
        if ready == len {
            return Ok(bytes.into());
        }
        let read = tokio::task::spawn_blocking(move || {
            let mut at = ready;
            while at < len {
                match file.read_at(&mut bytes[at..], start + at as u64) {
                    Ok(0) => break,
                    Ok(read) => at += read,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            bytes.truncate(at);
            Ok(Bytes::from(bytes))
        });
        read.await.map_err(io::Error::other)?
    }
}

#[async_trait]
impl Holdings for LocalFiles {
    async fn read_at(&self, file: &str, offset: u64, len: u64) -> Result<Option<Bytes>, HoldingsError> {
        let Some(section) = self.get(file) else { return Ok(None) };
        match self.read(&section, offset, len).await {
            Ok(bytes) => Ok(Some(bytes)),
            // The file was moved away after it was registered.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => {
                Err(HoldingsError { file: section.path.display().to_string(), offset, source: error.into() })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_section_hides_the_file_around_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        std::fs::write(&path, b"before|inside|after").unwrap();
        let section = Section { path: path.clone(), offset: 7, len: 6 };
        let mut text = String::new();
        section.open().unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "inside");

        let files = LocalFiles::default();
        files.add("part", section);
        for (offset, len, expected) in
            [(0, 6, "inside"), (2, 2, "si"), (4, 100, "de"), (6, 1, ""), (99, 1, "")]
        {
            let read = files.read_at("part", offset, len).await.unwrap().unwrap();
            assert_eq!(read, expected, "{offset} {len}");
        }
        assert!(files.read_at("other", 0, 1).await.unwrap().is_none());
        files.add("gone", Section { path: folder.path().join("y"), offset: 0, len: 1 });
        assert!(files.read_at("gone", 0, 1).await.unwrap().is_none());
    }

    #[test]
    fn a_section_seeks_within_itself() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        std::fs::write(&path, b"0123456789").unwrap();
        let mut reader = Section { path, offset: 2, len: 5 }.open().unwrap();
        assert_eq!(reader.seek(SeekFrom::End(-2)).unwrap(), 3);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "56");
        assert!(reader.seek(SeekFrom::Current(-9)).is_err());
    }
}
