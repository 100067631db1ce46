//! One file being written.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::pack::{Compression, Packer, RECORD_END};
use super::record::NewRecord;
use super::recover::recover;
use super::{OPEN_SUFFIX, RecordId};
use crate::date::Date;
use crate::digest::Digest;
use crate::header::RecordType;
use crate::reader::Reader;

/// When bytes are forced to the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncPolicy {
    /// When the file is closed.
    #[default]
    OnClose,
    /// After every so many bytes, and on close.
    Bytes(u64),
    /// After every record.
    EveryRecord,
    /// Never by us; the system does it when it likes.
    Never,
}

/// How a file is written.
#[derive(Clone, Debug, Default)]
pub struct FileOptions {
    /// How records are packed.
    pub compression: Compression,
    /// When bytes are forced to the disk.
    pub sync: SyncPolicy,
    /// The lines of the warcinfo record, such as `software` and `isPartOf`. `format` and `conformsTo` are
    /// added.
    pub info: Vec<(String, String)>,
    /// The id of the warcinfo record; without this it is random.
    pub id: Option<RecordId>,
}

/// What became of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Its id.
    pub id: RecordId,
    /// Where it starts in the file.
    pub offset: u64,
    /// How many bytes of the file it takes.
    pub length: u64,
    /// How many bytes it has before packing.
    pub plain: u64,
    /// The payload digest in its header.
    pub payload_digest: Option<Digest>,
}

/// A WARC file being written, under its name with `.open` behind it. It starts with a warcinfo record, and
/// the others refer to that one.
#[derive(Debug)]
pub struct WarcFile {
    pub(super) file: File,
    path: PathBuf,
    pub(super) size: u64,
    unsynced: u64,
    /// A sync failed: what was written before it may be lost.
    sync_failed: bool,
    records: u64,
    warcinfo: Option<RecordId>,
    packer: Packer,
    sync: SyncPolicy,
    header: Vec<u8>,
}

impl WarcFile {
    /// Creates the file that will be `path` once it is closed. Fails if it or its `.open` form exists.
    pub fn create(path: impl AsRef<Path>, options: &FileOptions, now: Date) -> io::Result<WarcFile> {
        let mut warc = WarcFile::start(path.as_ref(), options)?;
        warc.write_info(options, now)?;
        Ok(warc)
    }

    /// Creates the file with nothing in it.
    pub(super) fn start(path: &Path, options: &FileOptions) -> io::Result<WarcFile> {
        if path.exists() {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("{} exists", path.display())));
        }
        let file = OpenOptions::new().write(true).create_new(true).open(open_path(path))?;
        Ok(WarcFile {
            file,
            path: path.to_owned(),
            size: 0,
            unsynced: 0,
            sync_failed: false,
            records: 0,
            warcinfo: None,
            packer: Packer::new(options.compression)?,
            sync: options.sync,
            header: Vec::new(),
        })
    }

    /// Goes on with a file that was left open, after cutting it at its last whole record.
    pub fn reopen(path: impl AsRef<Path>, options: &FileOptions, now: Date) -> io::Result<WarcFile> {
        let path = path.as_ref();
        let open = open_path(path);
        let recovered = recover(&open)?;
        let warcinfo = warcinfo_of(&open)?;
        let mut file = OpenOptions::new().write(true).open(&open)?;
        file.seek(SeekFrom::Start(recovered.kept))?;
        let mut warc = WarcFile::resumed(file, path, recovered.kept, recovered.records, warcinfo, options)?;
        if recovered.records == 0 {
            warc.write_info(options, now)?;
        }
        Ok(warc)
    }

    /// A file that stands at its end, `size`.
    pub(super) fn resumed(
        file: File,
        path: &Path,
        size: u64,
        records: u64,
        warcinfo: Option<RecordId>,
        options: &FileOptions,
    ) -> io::Result<WarcFile> {
        Ok(WarcFile {
            file,
            path: path.to_owned(),
            size,
            unsynced: 0,
            sync_failed: false,
            records,
            warcinfo,
            packer: Packer::new(options.compression)?,
            sync: options.sync,
            header: Vec::new(),
        })
    }

    fn write_info(&mut self, options: &FileOptions, now: Date) -> io::Result<()> {
        let mut lines = String::new();
        let standard = [
            ("format", "WARC File Format 1.1"),
            ("conformsTo", "https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"),
        ];
        let given = options.info.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in given.chain(standard) {
            if [name, value].iter().any(|text| text.contains(['\r', '\n'])) || name.contains(':') {
                let text = format!("the warcinfo line {name:?} cannot be written");
                return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
            }
            lines.push_str(name);
            lines.push_str(": ");
            lines.push_str(value);
            lines.push_str("\r\n");
        }
        let mut record = NewRecord::new(RecordType::Warcinfo, now)
            .content_type("application/warc-fields")
            .block(lines.as_bytes());
        if let Some(id) = options.id {
            record = record.id(id);
        }
        if let Some(name) = self.path.file_name() {
            record = record.field("WARC-Filename", name.to_string_lossy().as_bytes());
        }
        self.warcinfo = Some(self.write(&mut record)?.id);
        Ok(())
    }

    /// Writes a record. If that fails the file is as it was before.
    pub fn write(&mut self, record: &mut NewRecord<'_>) -> io::Result<Written> {
        record.digest()?;
        let mut header = std::mem::take(&mut self.header);
        header.clear();
        record.header(self.warcinfo, &mut header)?;
        let written = self.append(&header, record);
        self.header = header;
        written
    }

    /// Packs a header and the block of `record` into a member of their own. If that fails the file is as it
    /// was before.
    pub(super) fn append(&mut self, header: &[u8], record: &mut NewRecord<'_>) -> io::Result<Written> {
        let offset = self.size;
        let mut out = Counted { file: &mut self.file, count: 0 };
        let result = self.packer.write(header, record, &mut out);
        let length = out.count;
        if let Err(error) = result {
            // Half a record must not be followed by a whole one.
            self.file.set_len(offset)?;
            self.file.seek(SeekFrom::Start(offset))?;
            return Err(error);
        }
        self.grown(length, 1)?;
        let plain = header.len() as u64 + record.block_len() + RECORD_END.len() as u64;
        Ok(Written { id: record.record_id(), offset, length, plain, payload_digest: record.payload() })
    }

    /// Counts what was appended, and forces it to the disk if that is due.
    pub(super) fn grown(&mut self, length: u64, records: u64) -> io::Result<()> {
        self.size += length;
        self.unsynced += length;
        self.records += records;
        let due = match self.sync {
            SyncPolicy::EveryRecord => true,
            SyncPolicy::Bytes(limit) => self.unsynced >= limit,
            SyncPolicy::OnClose | SyncPolicy::Never => false,
        };
        if due { self.sync() } else { Ok(()) }
    }

    /// Forces what has been written to the disk.
    ///
    /// After a failure every later call and [`close`](Self::close) fail too: the system may have dropped bytes that it
    /// could not write, and a second sync would succeed without them.
    pub fn sync(&mut self) -> io::Result<()> {
        self.whole()?;
        let synced = self.file.sync_data();
        self.sync_failed = synced.is_err();
        if synced.is_ok() {
            self.unsynced = 0;
        }
        synced
    }

    /// How many bytes of the file are on the disk for certain. Of a file that was left open, those before that count too.
    pub fn synced(&self) -> u64 {
        self.size - self.unsynced
    }

    fn whole(&self) -> io::Result<()> {
        if self.sync_failed {
            return Err(io::Error::other(
                "an earlier sync of this file failed: its bytes may not be on the disk",
            ));
        }
        Ok(())
    }

    /// The size of the file so far.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The number of records so far, the warcinfo record included.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// The id of the warcinfo record.
    pub fn warcinfo(&self) -> Option<RecordId> {
        self.warcinfo
    }

    /// How records are packed.
    pub fn compression(&self) -> Compression {
        self.packer.compression()
    }

    /// The path the file has once it is closed.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes the file away again, as if it had never been begun.
    pub fn abandon(self) {
        drop(self.file);
        // What cannot be removed stays behind under its `.open` name, which says what it is.
        let _ = fs::remove_file(open_path(&self.path));
    }

    /// Closes the file: forces it to the disk and takes the `.open` off its name. Answers its path.
    pub fn close(self) -> io::Result<PathBuf> {
        self.whole()?;
        if self.sync != SyncPolicy::Never {
            self.file.sync_all()?;
        }
        drop(self.file);
        fs::rename(open_path(&self.path), &self.path)?;
        if self.sync != SyncPolicy::Never
            && let Some(folder) = self.path.parent()
        {
            // The new name is in the folder, and that must reach the disk too.
            let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
            File::open(folder)?.sync_all()?;
        }
        Ok(self.path)
    }
}

/// The id of the warcinfo record a file begins with.
pub(super) fn warcinfo_of(path: &Path) -> io::Result<Option<RecordId>> {
    let mut reader = Reader::open(path)?;
    Ok(reader.next()?.and_then(|record| {
        let info = record.kind() == RecordType::Warcinfo;
        record.record_id().filter(|_| info).and_then(RecordId::parse)
    }))
}

/// The path of a file while it is being written.
pub(super) fn open_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(OPEN_SUFFIX);
    PathBuf::from(name)
}

struct Counted<'a> {
    file: &'a mut File,
    count: u64,
}

impl io::Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.file.write(bytes)?;
        self.count += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_failed_sync_the_file_is_never_called_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.warc");
        let now = Date::parse(b"2026-01-01T00:00:00Z").unwrap();
        let mut warc = WarcFile::create(&path, &FileOptions::default(), now).unwrap();
        warc.sync().unwrap();
        // A pipe cannot be synced.
        let (_reader, writer) = io::pipe().unwrap();
        let file = std::mem::replace(&mut warc.file, File::from(std::os::fd::OwnedFd::from(writer)));
        let synced = warc.synced();
        warc.grown(5, 0).unwrap();
        assert!(warc.sync().is_err());
        assert_eq!((warc.synced(), warc.size()), (synced, synced + 5));
        warc.file = file;
        assert!(warc.sync().is_err(), "a second sync could succeed without the bytes of the first");
        assert!(warc.close().is_err());
        assert!(!path.exists());
    }
}
