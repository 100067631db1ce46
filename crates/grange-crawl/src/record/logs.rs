//! The log files of a crawl: appended to, renamed at the end of a chunk, cut back after a crash.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use super::files::digest_file;
use super::state::FileEntry;
use super::unsynced::UnsyncedLog;

/// The logs a crawl keeps, by name. All exist from the start: a tool that looks for one finds it, if empty.
pub const NAMES: [&str; 8] = [
    "crawl.log",
    "progress-statistics.log",
    "uri-errors.log",
    "nonfatal-errors.log",
    "runtime-errors.log",
    "alerts.log",
    "scope.log",
    "control.log",
];

/// All logs of the chunk being written.
#[derive(Debug)]
pub struct Logs {
    folder: PathBuf,
    files: BTreeMap<&'static str, LogFile>,
}

#[derive(Debug)]
struct LogFile {
    file: File,
    end: u64,
    pending: Vec<u8>,
    /// Written since the last sync: some seconds' worth.
    unsynced: Vec<u8>,
    sync_failed: bool,
}

impl Logs {
    /// Opens the logs in `folder`, each cut at its end in `ends`. A log that has no end there is cut at its
    /// last whole line.
    pub fn open(folder: &Path, ends: &BTreeMap<String, u64>) -> io::Result<Logs> {
        fs::create_dir_all(folder)?;
        let mut files = BTreeMap::new();
        for name in NAMES {
            files.insert(name, LogFile::open(&folder.join(name), ends.get(name).copied())?);
        }
        Ok(Logs { folder: folder.to_owned(), files })
    }

    /// Adds a line, its end included. It is in the file after the next [`Logs::write`].
    pub fn add(&mut self, name: &'static str, line: &[u8]) {
        if let Some(log) = self.files.get_mut(name) {
            log.pending.extend_from_slice(line);
        }
    }

    /// The buffer of a log, to format lines into.
    pub fn pending(&mut self, name: &'static str) -> Option<&mut Vec<u8>> {
        self.files.get_mut(name).map(|log| &mut log.pending)
    }

    /// Hands all lines to the system.
    pub fn write(&mut self) -> io::Result<()> {
        self.files.values_mut().try_for_each(LogFile::write)
    }

    /// Forces all lines to the disk. After a failure every later call fails too: the system may have dropped what it could
    /// not write, and a second sync would succeed without it.
    pub fn sync(&mut self) -> io::Result<()> {
        self.files.values_mut().try_for_each(LogFile::sync)
    }

    /// Whether lines may not be on the disk, whatever a later sync says.
    pub fn sync_failed(&self) -> bool {
        self.files.values().any(|log| log.sync_failed)
    }

    /// What is to be restored of every log after a failed sync.
    pub fn unsynced(&self) -> Vec<UnsyncedLog> {
        let logs = self.files.iter().map(|(name, log)| UnsyncedLog {
            name: (*name).to_owned(),
            synced: log.end - log.unsynced.len() as u64,
            tail: log.unsynced.clone(),
        });
        logs.collect()
    }

    /// Makes a sync of this log fail, as a broken disk does.
    #[cfg(test)]
    pub(super) fn break_sync(&mut self, name: &str) {
        self.files.get_mut(name).unwrap().sync_failed = true;
    }

    pub fn ends(&self) -> BTreeMap<String, u64> {
        self.files.iter().map(|(name, log)| ((*name).to_owned(), log.end)).collect()
    }

    /// Ends the logs of a chunk: each takes `.suffix` behind its name and an empty one takes its place.
    /// Without a suffix they keep their names, and nothing can be added any more. If it fails it can be tried again.
    pub fn rotate(&mut self, suffix: Option<&str>) -> io::Result<Vec<FileEntry>> {
        self.write()?;
        self.sync()?;
        let mut entries = Vec::new();
        for name in NAMES {
            let ended = ended_name(name, suffix);
            let path = self.folder.join(&ended);
            if ended != name {
                if !path.exists() {
                    fs::rename(self.folder.join(name), &path)?;
                }
                let begun = LogFile::open(&self.folder.join(name), None)?;
                self.files.insert(name, begun);
            }
            entries.push(describe(&path, ended)?);
        }
        File::open(&self.folder)?.sync_all()?;
        Ok(entries)
    }

    /// Finishes a rotation that a crash interrupted: logs without the suffix that were not renamed yet are.
    pub fn finish_rotation(
        folder: &Path,
        suffix: &str,
        ends: &BTreeMap<String, u64>,
    ) -> io::Result<Vec<FileEntry>> {
        let mut entries = Vec::new();
        for name in NAMES {
            let ended = ended_name(name, Some(suffix));
            let path = folder.join(&ended);
            if !path.exists() {
                let log = LogFile::open(&folder.join(name), ends.get(name).copied())?;
                log.file.sync_data()?;
                fs::rename(folder.join(name), &path)?;
            }
            entries.push(describe(&path, ended)?);
        }
        Ok(entries)
    }
}

/// The name of a log once its chunk is closed.
fn ended_name(name: &str, suffix: Option<&str>) -> String {
    suffix.map_or_else(|| name.to_owned(), |suffix| format!("{name}.{suffix}"))
}

fn describe(path: &Path, name: String) -> io::Result<FileEntry> {
    let (size, sha512, md5) = digest_file(path)?;
    let mut lines = 0;
    let mut file = File::open(path)?;
    let mut buf = vec![0; 64 << 10];
    loop {
        let n = file.read(&mut buf)?;
        if n == 0 {
            break;
        }
        lines += memchr::memchr_iter(b'\n', &buf[..n]).count() as u64;
    }
    Ok(FileEntry { name, size, sha512, md5, records: lines, first: None, last: None, viral: false })
}

impl LogFile {
    fn open(path: &Path, end: Option<u64>) -> io::Result<LogFile> {
        let mut file = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path)?;
        let size = file.metadata()?.len();
        let end = match end {
            Some(end) if end <= size => end,
            _ => whole_lines(&mut file, size)?,
        };
        if end < size {
            file.set_len(end)?;
        }
        file.seek(SeekFrom::Start(end))?;
        // An earlier run may not have come to it.
        file.sync_data()?;
        Ok(LogFile { file, end, pending: Vec::new(), unsynced: Vec::new(), sync_failed: false })
    }

    fn sync(&mut self) -> io::Result<()> {
        if !self.sync_failed {
            let synced = self.file.sync_data();
            self.sync_failed = synced.is_err();
            synced?;
            self.unsynced.clear();
            return Ok(());
        }
        Err(io::Error::other("the disk did not take what was written to logs"))
    }

    fn write(&mut self) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        if let Err(error) = self.file.write_all(&self.pending) {
            // Half a line must not be followed by a whole one.
            self.file.set_len(self.end)?;
            self.file.seek(SeekFrom::Start(self.end))?;
            return Err(error);
        }
        self.end += self.pending.len() as u64;
        self.unsynced.append(&mut self.pending);
        Ok(())
    }
}

/// Where the last whole line of a file ends.
fn whole_lines(file: &mut File, size: u64) -> io::Result<u64> {
    // A line is far shorter than this; a file whose last stretch has no line end is cut there.
    const STRETCH: u64 = 1 << 20;
    let from = size.saturating_sub(STRETCH);
    file.seek(SeekFrom::Start(from))?;
    let mut tail = Vec::new();
    file.take(STRETCH).read_to_end(&mut tail)?;
    let end = memchr::memrchr(b'\n', &tail).map_or(0, |at| at as u64 + 1);
    Ok(from + end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_are_cut_renamed_and_begun_anew() {
        let folder = tempfile::tempdir().unwrap();
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        let mut logs = Logs::open(folder.path(), &BTreeMap::new()).unwrap();
        logs.add("crawl.log", b"one\n");
        logs.write().unwrap();
        let ends = logs.ends();
        logs.add("crawl.log", b"two\n");
        logs.add("uri-errors.log", b"bad\nha");
        logs.write().unwrap();
        drop(logs);
        // The frontier knew of one line only.
        let mut logs = Logs::open(folder.path(), &ends).unwrap();
        assert_eq!(read("crawl.log"), "one\n");
        logs.add("crawl.log", b"three\n");
        let entries = logs.rotate(Some("cp00001")).unwrap();
        assert_eq!(
            (entries.len(), entries[0].name.as_str(), entries[0].records),
            (8, "crawl.log.cp00001", 2)
        );
        assert_eq!(read("crawl.log.cp00001"), "one\nthree\n");
        assert_eq!(read("crawl.log"), "");
        // Without ends a log is cut at its last whole line.
        fs::write(folder.path().join("alerts.log"), "whole\nhalf").unwrap();
        Logs::open(folder.path(), &BTreeMap::new()).unwrap();
        assert_eq!(read("alerts.log"), "whole\n");
    }

    #[test]
    fn an_interrupted_rotation_is_finished_once() {
        let folder = tempfile::tempdir().unwrap();
        for name in NAMES {
            fs::write(folder.path().join(name), "a\nb\n").unwrap();
        }
        fs::rename(folder.path().join("crawl.log"), folder.path().join("crawl.log.cp00001")).unwrap();
        let ends = BTreeMap::from([("uri-errors.log".to_owned(), 2)]);
        let first = Logs::finish_rotation(folder.path(), "cp00001", &ends).unwrap();
        let again = Logs::finish_rotation(folder.path(), "cp00001", &ends).unwrap();
        assert_eq!(first, again);
        assert_eq!(first.iter().map(|entry| entry.records).collect::<Vec<_>>(), [2, 2, 1, 2, 2, 2, 2, 2]);
    }
}
