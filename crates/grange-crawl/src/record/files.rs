//! The open WARC files of a crawl.
//!
//! A worker takes a [`Ticket`] for a file, packs its records for it, and hands both to the committer. A file
//! that has grown enough takes no new tickets; it is closed when the last one has come back. So records always
//! name the warcinfo record of the very file they are in, and no one waits for anyone.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use warc::write::{FileOptions, NameError, NameTemplate, OPEN_SUFFIX, RecordId, SyncPolicy, WarcFile};
use warc::{Algorithm, Date, Hasher};

use super::parcel::Parcel;
use super::settings::Write;
use super::state::{FileEntry, OpenMark};
use super::unsynced::UnsyncedFile;

/// Which kind of file a capture goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lane {
    /// One of the ordinary files written side by side.
    Main(u8),
    /// The file of infected payloads.
    Viral,
}

/// The right to add to a file. The file stays open while one is out.
#[derive(Debug)]
pub struct Ticket {
    pub lane: Lane,
    pub chunk: u32,
    pub warcinfo: Option<RecordId>,
    number: u64,
}

/// Where a parcel came to lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The final name of the file, without a folder.
    pub file: Arc<str>,
    pub offset: u64,
}

/// All open WARC files.
#[derive(Debug)]
pub struct Files {
    folder: PathBuf,
    roll_at: u64,
    names: [NameTemplate; 2],
    options: FileOptions,
    serial: u64,
    /// The newest chunk that was left: its files take no tickets of their own accord.
    left: u32,
    open: Vec<OpenFile>,
    /// What was to be forced to the disk may not be there.
    sync_failed: bool,
    /// Makes the next sync fail, as a broken disk does.
    #[cfg(test)]
    pub(super) fault: bool,
}

#[derive(Debug)]
struct OpenFile {
    warc: WarcFile,
    name: Arc<str>,
    ticket: Arc<Ticket>,
    /// Takes new tickets.
    current: bool,
    sha512: Hasher,
    md5: Hasher,
    first: Option<Timestamp>,
    last: Option<Timestamp>,
}

impl Files {
    /// Files in `folder`, numbered from `serial`. `info` are the lines of the warcinfo records; `values` fill
    /// the name template.
    pub fn new(
        folder: &Path,
        settings: &Write,
        info: Vec<(String, String)>,
        values: &[(&str, &str)],
        serial: u64,
    ) -> Result<Files, NameError> {
        let viral = format!("{}-VIRAL", settings.prefix);
        let template = |prefix: &str| {
            let mut values = values.to_vec();
            values.push(("prefix", prefix));
            NameTemplate::new(&settings.name, &values)
        };
        Ok(Files {
            folder: folder.to_owned(),
            roll_at: settings.roll_at.0.max(1),
            names: [template(&settings.prefix)?, template(&viral)?],
            // The committer forces bytes to the disk itself, before it syncs the frontier.
            options: FileOptions {
                compression: settings.packing(),
                sync: SyncPolicy::OnClose,
                info,
                id: None,
            },
            serial,
            left: 0,
            open: Vec::new(),
            sync_failed: false,
            #[cfg(test)]
            fault: false,
        })
    }

    /// A ticket for the file of `lane` in `chunk`; opens one if none takes tickets.
    pub fn ticket(&mut self, lane: Lane, chunk: u32, now: Timestamp) -> io::Result<Arc<Ticket>> {
        let takes =
            |file: &&mut OpenFile| file.current && file.ticket.lane == lane && file.ticket.chunk == chunk;
        if let Some(file) = self.open.iter_mut().find(takes) {
            if file.warc.size() < self.roll_at {
                return Ok(Arc::clone(&file.ticket));
            }
            file.current = false;
        }
        let name = loop {
            let template = &self.names[usize::from(lane == Lane::Viral)];
            let name = template.name(Date::from(now), self.serial) + self.options.compression.suffix();
            self.serial += 1;
            let path = self.folder.join(&name);
            if !path.exists() && !open_path(&path).exists() {
                break name;
            }
        };
        let path = self.folder.join(&name);
        let warc = WarcFile::create(&path, &self.options, Date::from(now))?;
        let ticket = Ticket { lane, chunk, warcinfo: warc.warcinfo(), number: self.serial };
        let mut file = OpenFile::new(warc, &name, ticket);
        file.hash_so_far(&open_path(&path))?;
        file.current = chunk > self.left;
        let ticket = Arc::clone(&file.ticket);
        self.open.push(file);
        Ok(ticket)
    }

    /// Appends a parcel that was packed for this ticket's file.
    pub fn append(&mut self, ticket: &Ticket, parcel: &mut Parcel, now: Timestamp) -> io::Result<Placed> {
        let file = self.open.iter_mut().find(|file| file.ticket.number == ticket.number);
        let Some(file) = file else {
            return Err(io::Error::other("a parcel for a file that is closed"));
        };
        let (length, records) = (parcel.length(), parcel.records());
        let (sha512, md5) = (file.sha512.clone(), file.md5.clone());
        let mut reader = Hashing { inner: parcel.reader()?, sha512: &mut file.sha512, md5: &mut file.md5 };
        match file.warc.append_packed(&mut reader, length, records) {
            Ok(offset) => {
                file.first = file.first.or(Some(now));
                file.last = Some(now);
                Ok(Placed { file: Arc::clone(&file.name), offset })
            }
            Err(error) => {
                (file.sha512, file.md5) = (sha512, md5);
                Err(error)
            }
        }
    }

    /// No file of a chunk up to `chunk` takes tickets any more.
    pub fn retire(&mut self, chunk: u32) {
        self.left = self.left.max(chunk);
        for file in self.open.iter_mut().filter(|file| file.ticket.chunk <= chunk) {
            file.current = false;
        }
    }

    /// Closes the files that take no tickets and have none out, and tells of them in `closed`. What is in them must be
    /// committed: a closed file is never cut again. If it fails it cannot be tried again: see [`Files::unsynced`].
    pub fn close_retired(&mut self, closed: &mut Vec<FileEntry>) -> io::Result<()> {
        let mut at = 0;
        while at < self.open.len() {
            let file = &mut self.open[at];
            if file.current || Arc::strong_count(&file.ticket) > 1 {
                at += 1;
                continue;
            }
            // Before it is ours no more: what a file system refuses as late as this is noted with its name.
            self.sync_failed |= file.warc.sync().is_err();
            if self.sync_failed {
                return Err(sync_failure());
            }
            let entry = self.open.swap_remove(at).close();
            self.sync_failed |= entry.is_err();
            closed.push(entry?);
        }
        Ok(())
    }

    /// Whether bytes of an open file may not be on the disk, whatever a later sync says.
    pub fn sync_failed(&self) -> bool {
        self.sync_failed
    }

    /// What is to be restored of every open file after a failed sync, at the latest when the crawl is resumed.
    pub fn unsynced(&self) -> Vec<UnsyncedFile> {
        let describe = |file: &OpenFile| UnsyncedFile {
            name: file.name.to_string(),
            size: file.warc.size(),
            sha512: file.sha512.clone().finish().hex(),
            synced: file.warc.synced(),
        };
        self.open.iter().map(describe).collect()
    }

    /// Whether a file of a chunk up to `chunk` is still open.
    pub fn has_open(&self, chunk: u32) -> bool {
        self.open.iter().any(|file| file.ticket.chunk <= chunk)
    }

    pub fn marks(&self) -> Vec<OpenMark> {
        let mark = |file: &OpenFile| OpenMark {
            name: file.name.to_string(),
            lane: file.ticket.lane,
            chunk: file.ticket.chunk,
            end: file.warc.size(),
            records: file.warc.records(),
            first: file.first,
            last: file.last,
        };
        self.open.iter().map(mark).collect()
    }

    pub fn serial(&self) -> u64 {
        self.serial
    }

    /// Bytes in the open files.
    pub fn open_bytes(&self) -> u64 {
        self.open.iter().map(|file| file.warc.size()).sum()
    }

    pub fn sync(&mut self) -> io::Result<()> {
        #[cfg(test)]
        if self.fault {
            self.sync_failed = true;
            return Err(sync_failure());
        }
        for file in &mut self.open {
            self.sync_failed |= file.warc.sync().is_err();
        }
        if self.sync_failed { Err(sync_failure()) } else { Ok(()) }
    }

    /// Goes on with a file of an earlier run, cut at its mark. Answers how many bytes the mark promised that
    /// are not there (only a power cut does that), or the finished entry if the file had been closed already.
    pub fn resume(&mut self, mark: &OpenMark) -> io::Result<Resumed> {
        let path = self.folder.join(&mark.name);
        if path.exists() {
            return Ok(Resumed::Closed(describe(&path, mark)?));
        }
        let mut warc = WarcFile::reopen_at(&path, mark.end, mark.records, &self.options)?;
        // An earlier run may not have come to it.
        warc.sync()?;
        let missing = mark.end.saturating_sub(warc.size());
        if warc.size() == 0 {
            // Not even its warcinfo record is there; it is written again under another name.
            warc.abandon();
            return Ok(Resumed::Open { missing, kept: 0 });
        }
        let kept = warc.size();
        self.serial += 1;
        let ticket =
            Ticket { lane: mark.lane, chunk: mark.chunk, warcinfo: warc.warcinfo(), number: self.serial };
        let mut file = OpenFile::new(warc, &mark.name, ticket);
        (file.first, file.last) = (mark.first, mark.last);
        file.hash_so_far(&open_path(&path))?;
        self.open.push(file);
        Ok(Resumed::Open { missing, kept })
    }

    /// Takes away what an earlier run began and the frontier never heard of.
    pub fn sweep(&self, known: &[OpenMark]) -> io::Result<Vec<PathBuf>> {
        let mut swept = Vec::new();
        for entry in std::fs::read_dir(&self.folder)? {
            let path = entry?.path();
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            let Some(bare) = name.strip_suffix(OPEN_SUFFIX) else { continue };
            if !known.iter().any(|mark| mark.name == bare) {
                std::fs::remove_file(&path)?;
                swept.push(path);
            }
        }
        Ok(swept)
    }
}

fn sync_failure() -> io::Error {
    io::Error::other("the disk did not take what was written to WARC files")
}

/// What became of a file of an earlier run.
#[derive(Debug)]
pub enum Resumed {
    Open { missing: u64, kept: u64 },
    Closed(FileEntry),
}

impl OpenFile {
    fn new(warc: WarcFile, name: &str, ticket: Ticket) -> OpenFile {
        OpenFile {
            warc,
            name: Arc::from(name),
            ticket: Arc::new(ticket),
            current: true,
            sha512: Hasher::new(Algorithm::Sha512),
            md5: Hasher::new(Algorithm::Md5),
            first: None,
            last: None,
        }
    }

    fn hash_so_far(&mut self, path: &Path) -> io::Result<()> {
        let file = std::fs::File::open(path)?.take(self.warc.size());
        let mut reader = Hashing { inner: file, sha512: &mut self.sha512, md5: &mut self.md5 };
        io::copy(&mut reader, &mut io::sink()).map(drop)
    }

    fn close(self) -> io::Result<FileEntry> {
        let (size, records) = (self.warc.size(), self.warc.records());
        self.warc.close()?;
        Ok(FileEntry {
            name: self.name.to_string(),
            size,
            sha512: self.sha512.finish().hex(),
            md5: self.md5.finish().hex(),
            records,
            first: self.first,
            last: self.last,
            viral: self.ticket.lane == Lane::Viral,
        })
    }
}

/// The entry of a file that had been closed before we could say so.
fn describe(path: &Path, mark: &OpenMark) -> io::Result<FileEntry> {
    let (size, sha512, md5) = digest_file(path)?;
    Ok(FileEntry {
        name: mark.name.clone(),
        size,
        sha512,
        md5,
        records: mark.records,
        first: mark.first,
        last: mark.last,
        viral: mark.lane == Lane::Viral,
    })
}

/// The size, SHA-512 and MD5 of a file.
pub(super) fn digest_file(path: &Path) -> io::Result<(u64, String, String)> {
    let (mut sha512, mut md5) = (Hasher::new(Algorithm::Sha512), Hasher::new(Algorithm::Md5));
    let file = std::fs::File::open(path)?;
    let mut reader = Hashing { inner: file, sha512: &mut sha512, md5: &mut md5 };
    let size = io::copy(&mut reader, &mut io::sink())?;
    Ok((size, sha512.finish().hex(), md5.finish().hex()))
}

fn open_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(OPEN_SUFFIX);
    PathBuf::from(name)
}

struct Hashing<'a, R> {
    inner: R,
    sha512: &'a mut Hasher,
    md5: &'a mut Hasher,
}

impl<R: Read> Read for Hashing<'_, R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buf)?;
        self.sha512.update(&buf[..n]);
        self.md5.update(&buf[..n]);
        Ok(n)
    }
}
