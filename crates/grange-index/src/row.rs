//! A row on its way between captures and blocks: numbers instead of names, packed digests, URL differences.

use std::collections::HashMap;

use crate::address;
use crate::capture::Capture;
use crate::digest::{self, Form};
use crate::stamp::Stamp;
use crate::varint::{self, Malformed};

/// A row borrowed from a block or a buffer. Numbers of file and kind belong to one [`Tables`].
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Row<'a> {
    pub(crate) surt: &'a [u8],
    pub(crate) time: Stamp,
    pub(crate) file: u32,
    pub(crate) offset: u64,
    pub(crate) kind: u32,
    pub(crate) length: u64,
    pub(crate) form: Form,
    pub(crate) digest: &'a [u8],
    pub(crate) address: u8,
    /// URL difference, then further fields as JSON, as far as `address` says they are there.
    pub(crate) literals: &'a [u8],
}

/// What captures have in common: flags, status and MIME type together are one small number.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Kind {
    pub(crate) flags: u8,
    pub(crate) status: u16,
    pub(crate) mime: Box<str>,
}

pub(crate) const HAS_STATUS: u8 = 1;
pub(crate) const HAS_MIME: u8 = 2;
pub(crate) const HAS_LENGTH: u8 = 4;
pub(crate) const HAS_OFFSET: u8 = 8;
/// The row takes an older one with the same key away.
pub(crate) const DELETED: u8 = 16;
/// The payload stands in an earlier record.
pub(crate) const REVISIT: u8 = 32;
/// Rows before or behind it in the segment are the same capture, the newest first. Only lines of jobs have such.
pub(crate) const SHARED: u8 = 64;

/// A file that rows point into.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct FileEntry {
    pub(crate) name: Box<str>,
    pub(crate) job: Option<Box<str>>,
    /// It was committed as a file. Otherwise index lines name it, and it may still come as a file itself.
    pub(crate) whole: bool,
}

impl FileEntry {
    /// Whether its rows give way to those of others that are the same capture: what lines of an index file tell of a file
    /// can be taken out with the lines, and must take nothing along that the file itself told.
    pub(crate) fn yields(&self) -> bool {
        !self.whole && self.job.is_some()
    }
}

/// How the jobs of lines began in segments that do not say which files were committed as files.
const LINES_OF: &str = "lines of ";

/// The names behind the numbers of one segment.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    pub(crate) files: Vec<FileEntry>,
    pub(crate) kinds: Vec<Kind>,
    file_numbers: HashMap<FileEntry, u32, foldhash::fast::RandomState>,
    kind_numbers: HashMap<Kind, u32, foldhash::fast::RandomState>,
}

impl Tables {
    pub(crate) fn file(&mut self, file: &FileEntry) -> u32 {
        if let Some(number) = self.file_numbers.get(file) {
            return *number;
        }
        let number = self.files.len() as u32;
        self.files.push(file.clone());
        self.file_numbers.insert(file.clone(), number);
        number
    }

    pub(crate) fn kind(&mut self, kind: &Kind) -> u32 {
        if let Some(number) = self.kind_numbers.get(kind) {
            return *number;
        }
        let number = self.kinds.len() as u32;
        self.kinds.push(kind.clone());
        self.kind_numbers.insert(kind.clone(), number);
        number
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        varint::put(out, self.files.len() as u64);
        for file in &self.files {
            varint::put_bytes(out, file.name.as_bytes());
            // Length plus one, so that no job and an empty name differ.
            match &file.job {
                None => varint::put(out, 0),
                Some(job) => {
                    varint::put(out, job.len() as u64 + 1);
                    out.extend_from_slice(job.as_bytes());
                }
            }
        }
        varint::put(out, self.kinds.len() as u64);
        for kind in &self.kinds {
            out.push(kind.flags);
            varint::put(out, u64::from(kind.status));
            varint::put_bytes(out, kind.mime.as_bytes());
        }
        // Behind everything that earlier versions read, so that they can read it too.
        let named: Vec<usize> =
            self.files.iter().enumerate().filter(|(_, file)| !file.whole).map(|(at, _)| at).collect();
        varint::put(out, named.len() as u64);
        for at in named {
            varint::put(out, at as u64);
        }
    }

    /// Reads what [`write`](Self::write) wrote. Numbers for names are not kept: a segment that is read gets no more.
    pub(crate) fn read(bytes: &[u8]) -> Result<(Vec<FileEntry>, Vec<Kind>), Malformed> {
        let at = &mut 0;
        let (mut files, mut kinds) = (Vec::new(), Vec::new());
        for _ in 0..varint::get(bytes, at)? {
            let name = text(varint::get_bytes(bytes, at)?)?;
            let job = match varint::get_usize(bytes, at)? {
                0 => None,
                len => Some(text(varint::take(bytes, at, len - 1)?)?),
            };
            files.push(FileEntry { name, job, whole: true });
        }
        for _ in 0..varint::get(bytes, at)? {
            let flags = varint::take(bytes, at, 1)?[0];
            let status = u16::try_from(varint::get(bytes, at)?).map_err(|_| Malformed)?;
            kinds.push(Kind { flags, status, mime: text(varint::get_bytes(bytes, at)?)? });
        }
        if *at == bytes.len() {
            // Earlier versions did not tell them apart.
            for file in &mut files {
                file.whole = !file.job.as_deref().is_some_and(|job| job.starts_with(LINES_OF));
            }
            return Ok((files, kinds));
        }
        for _ in 0..varint::get(bytes, at)? {
            files.get_mut(varint::get_usize(bytes, at)?).ok_or(Malformed)?.whole = false;
        }
        Ok((files, kinds))
    }
}

fn text(bytes: &[u8]) -> Result<Box<str>, Malformed> {
    std::str::from_utf8(bytes).map(Into::into).map_err(|_| Malformed)
}

/// Buffers in which captures become rows.
#[derive(Debug, Default)]
pub(crate) struct RowMaker {
    file: FileEntry,
    file_number: Option<u32>,
    kind: Kind,
    kind_number: Option<u32>,
    digest: Vec<u8>,
    literals: Vec<u8>,
    scratch: Vec<u8>,
}

/// The parts of a capture as they stand in an index line, borrowed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Parts<'a> {
    pub(crate) surt: &'a str,
    pub(crate) time: Stamp,
    pub(crate) url: Option<&'a str>,
    pub(crate) mime: Option<&'a str>,
    pub(crate) status: Option<u16>,
    pub(crate) digest: Option<&'a str>,
    pub(crate) length: Option<u64>,
    pub(crate) offset: Option<u64>,
    pub(crate) file: &'a str,
    pub(crate) job: Option<&'a str>,
    /// A JSON object without anything in it is given as empty text.
    pub(crate) extra: &'a str,
    pub(crate) deleted: bool,
    /// It belongs to a file that is committed as a file.
    pub(crate) whole: bool,
}

impl<'a> Parts<'a> {
    pub(crate) fn of(capture: &'a Capture, extra: &'a str) -> Self {
        Self {
            surt: &capture.surt,
            time: capture.time,
            url: capture.url.as_deref(),
            mime: capture.mime.as_deref(),
            status: capture.status,
            digest: capture.digest.as_deref(),
            length: capture.length,
            offset: capture.offset,
            file: &capture.file,
            job: capture.job.as_deref(),
            extra,
            deleted: false,
            whole: false,
        }
    }
}

impl RowMaker {
    /// The row of a capture, with numbers of `tables`, which must be the same at every call. Keys and file names hold no
    /// NUL: the caller has seen to that.
    pub(crate) fn make<'m>(&'m mut self, parts: &Parts<'m>, tables: &mut Tables) -> Row<'m> {
        let flag = |there: bool, bit: u8| if there { bit } else { 0 };
        let flags = flag(parts.status.is_some(), HAS_STATUS)
            | flag(parts.mime.is_some(), HAS_MIME)
            | flag(parts.length.is_some(), HAS_LENGTH)
            | flag(parts.offset.is_some(), HAS_OFFSET)
            | flag(parts.deleted, DELETED)
            | flag(parts.mime == Some(cdx::REVISIT_MIME), REVISIT);
        let (status, mime) = (parts.status.unwrap_or_default(), parts.mime.unwrap_or_default());
        // Neighbours are often of one kind and from one file: then no table is asked.
        if (self.kind.flags, self.kind.status, &*self.kind.mime) != (flags, status, mime) {
            self.kind = Kind { flags, status, mime: mime.into() };
            self.kind_number = None;
        }
        let file = &self.file;
        if (&*file.name, file.job.as_deref(), file.whole) != (parts.file, parts.job, parts.whole) {
            let job = parts.job.map(Into::into);
            self.file = FileEntry { name: parts.file.into(), job, whole: parts.whole };
            self.file_number = None;
        }
        let kind = *self.kind_number.get_or_insert_with(|| tables.kind(&self.kind));
        let file = *self.file_number.get_or_insert_with(|| tables.file(&self.file));
        let form = digest::pack(parts.digest, &mut self.digest);
        self.literals.clear();
        let surt = parts.surt.as_bytes();
        let mut address = address::encode(surt, parts.url, &mut self.literals, &mut self.scratch);
        if !parts.extra.is_empty() {
            address |= address::EXTRA;
            varint::put_bytes(&mut self.literals, parts.extra.as_bytes());
        }
        Row {
            surt,
            time: parts.time,
            file,
            offset: parts.offset.unwrap_or_default(),
            kind,
            length: parts.length.unwrap_or_default(),
            form,
            digest: &self.digest,
            address,
            literals: &self.literals,
        }
    }
}

/// The order of rows as one sequence of bytes: key, NUL, time, file, NUL, offset.
pub(crate) fn key_into(surt: &[u8], time: Stamp, file: &str, offset: u64, out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(surt);
    out.push(0);
    out.extend_from_slice(&time.code().to_be_bytes());
    out.extend_from_slice(file.as_bytes());
    out.push(0);
    out.extend_from_slice(&offset.to_be_bytes());
}
