//! The reader: opens a file, finds out how it is packed, and hands out its records.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;

use crate::gzip::{self, Gzip};
use crate::header::{Header, RecordType};
use crate::http::HttpHead;
use crate::problem::{Kind, Problem, Problems};
use crate::record::Record;
use crate::resync::{Version, find_record, starts_record};
use crate::source::Source;
use crate::tape::{Pack, Tape};
use crate::zstd_frames::{self, Zstd};

/// Reads the records of one file, one after another.
///
/// Foreign damage never ends the reading: it becomes a [`Problem`] and the next good record follows.
/// Memory stays bounded (about 24 MB) whatever the file claims.
#[derive(Debug)]
pub struct Reader {
    pub(crate) tape: Tape,
    pub(crate) header: Header,
    pub(crate) http: HttpHead,
    pub(crate) current: Current,
    /// What has been seen of the file so far.
    pub(crate) seen: Seen,
    /// Records that start at or after this offset belong to somebody else.
    pub(crate) stop: Option<u64>,
}

/// What the reader remembers of a file, to say things once.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) records: u64,
    pub(crate) arc: bool,
    pub(crate) shared_member: bool,
    pub(crate) spanning: bool,
    pub(crate) told_empty: bool,
    /// The reader started in the middle of the file.
    pub(crate) part: bool,
}

/// Where a record lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Place {
    /// The offset in the file: of the record itself if the file is not packed, else of the gzip member or
    /// zstd frame in which the record starts.
    pub offset: u64,
    /// How many plain bytes of that member stand before the record. Zero in sound files.
    pub inner: u64,
    /// How many plain bytes of the file stand before the record. After a seek it counts from there.
    pub plain: u64,
}

impl Place {
    /// Whether a reader at [`offset`](Place::offset) finds this record first. Not so for the later
    /// records of a member that holds several, such as a file packed as a whole.
    pub fn is_seekable(&self) -> bool {
        self.inner == 0
    }
}

/// The record being read.
#[derive(Debug, Default)]
pub(crate) struct Current {
    pub(crate) place: Place,
    pub(crate) arc: bool,
    pub(crate) version: Option<Version>,
    pub(crate) kind: Option<RecordType>,
    pub(crate) limit: Limit,
    /// Block bytes given out so far.
    pub(crate) read: u64,
    /// Where on the tape the last border between members was found to be inside the record.
    pub(crate) border: u64,
    pub(crate) bare_lf: bool,
    /// The block is shorter than it should be, or its end was guessed.
    pub(crate) damaged: bool,
    pub(crate) http: HttpState,
    pub(crate) length: Option<u64>,
    pub(crate) finished: bool,
    /// No line end stood between the block and what follows.
    pub(crate) endless: bool,
    /// The problems have been shown to the caller.
    pub(crate) delivered: bool,
}

/// Where the block ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    /// After so many more bytes.
    Bytes(u64),
    /// Where the next record starts or the member ends.
    NextRecord,
}

impl Default for Limit {
    fn default() -> Limit {
        Limit::Bytes(0)
    }
}

/// Whether the HTTP head has been looked for.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HttpState {
    #[default]
    Unknown,
    None,
    Some,
}

impl Reader {
    /// Opens a file at its start.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Reader> {
        Reader::seekable(File::open(path)?)
    }

    /// Opens a file at the offset of a record, as an index names it. For zstd the dictionary is read first.
    pub fn open_at(path: impl AsRef<Path>, offset: u64) -> io::Result<Reader> {
        let mut source = Source::seekable(File::open(path)?)?;
        source.seek(offset)?;
        let mut reader = Reader::start(source)?;
        reader.seen.part = offset > 0;
        Ok(reader)
    }

    /// Reads from something that can be positioned.
    pub fn seekable(input: impl Read + Seek + Send + 'static) -> io::Result<Reader> {
        Reader::start(Source::seekable(input)?)
    }

    /// Reads from a stream, such as standard input or a response.
    #[allow(clippy::new_ret_no_self)]
    pub fn new(input: impl Read + Send + 'static) -> io::Result<Reader> {
        Reader::start(Source::stream(input))
    }

    /// Reads from memory.
    pub fn from_bytes(bytes: impl Into<Vec<u8>>) -> io::Result<Reader> {
        Reader::start(Source::memory(bytes.into()))
    }

    pub(crate) fn start(mut source: Source) -> io::Result<Reader> {
        let mut problems = Problems::default();
        let pack = detect(&mut source, &mut problems)?;
        let mut tape = Tape::new(source, pack);
        tape.problems = problems;
        Ok(Reader {
            tape,
            header: Header::default(),
            http: HttpHead::default(),
            current: Current { finished: true, ..Current::default() },
            seen: Seen::default(),
            stop: None,
        })
    }

    /// Goes to the offset of a record. What comes next is read from there.
    pub fn seek(&mut self, offset: u64) -> io::Result<()> {
        self.tape.source.seek(offset)?;
        let pack = match std::mem::replace(&mut self.tape.pack, Pack::Unsupported) {
            Pack::Gzip(mut gzip) => {
                gzip.reset();
                Pack::Gzip(gzip)
            }
            Pack::Zstd(mut zstd) => {
                zstd.reset()?;
                Pack::Zstd(zstd)
            }
            other => other,
        };
        let source = std::mem::replace(&mut self.tape.source, Source::stream(io::empty()));
        self.tape = Tape::new(source, pack);
        self.current = Current { finished: true, ..Current::default() };
        self.seen.part |= offset > 0;
        Ok(())
    }

    /// The next record, or `None` at the end of the file. An error is one of the disk or the stream.
    ///
    /// What the caller has not read of the previous record is passed over.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> io::Result<Option<Record<'_>>> {
        if self.current.delivered {
            self.tape.problems.clear();
            self.current.delivered = false;
        }
        self.finish_block()?;
        if !self.start_record()? {
            return Ok(None);
        }
        Ok(Some(Record::new(self)))
    }

    /// The problems found since the last record was handed out. After [`next`](Reader::next) has answered
    /// `None` these are the ones at the end of the file.
    pub fn problems(&self) -> &[Problem] {
        if self.current.delivered { &[] } else { self.tape.problems.list() }
    }

    /// How the file is packed.
    pub fn container(&self) -> Container {
        match self.tape.pack {
            Pack::Plain => Container::Plain,
            Pack::Gzip(_) => Container::Gzip,
            Pack::Zstd(_) => Container::Zstd,
            Pack::Unsupported => Container::Unsupported,
        }
    }
}

/// How a file is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Container {
    /// Not at all.
    Plain,
    /// With gzip.
    Gzip,
    /// With zstd.
    Zstd,
    /// In a way this library does not read.
    Unsupported,
}

/// What is at hand to tell the container by.
const DETECT: usize = 64 << 10;

/// Tells the container by its first bytes, never by the name of the file.
fn detect(source: &mut Source, problems: &mut Problems) -> io::Result<Pack> {
    source.fill(1)?;
    source.fill(8)?;
    if let Some(pack) = by_magic(source, problems)? {
        return Ok(pack);
    }
    source.fill(DETECT)?;
    let window = source.window();
    if starts_record(window) || find_record(window, 0, false, false).is_some() {
        return Ok(Pack::Plain);
    }
    // Junk before the first member. A text that merely holds the magic is no archive either way.
    let found =
        memchr::memmem::find_iter(window, &gzip::MAGIC).find(|&at| gzip::starts_member(&window[at..]));
    if let Some(at) = found {
        problems.add_with(source.offset(), Kind::JunkBetweenMembers, || format!("{at} bytes"));
        source.consume(at);
        return Ok(Pack::Gzip(Box::new(Gzip::new())));
    }
    Ok(Pack::Plain)
}

fn by_magic(source: &mut Source, problems: &mut Problems) -> io::Result<Option<Pack>> {
    let window = source.window();
    if window.starts_with(&gzip::MAGIC[..2]) {
        return Ok(Some(Pack::Gzip(Box::new(Gzip::new()))));
    }
    let skippable =
        window.len() >= 4 && window[0] & 0xf0 == 0x50 && window[1..4] == zstd_frames::SKIPPABLE_TAIL;
    if window.starts_with(&zstd_frames::MAGIC) || skippable {
        let mut zstd = Zstd::new()?;
        let offset = source.offset();
        source.seek(0)?;
        zstd.load_dictionary(source, problems)?;
        if offset > 0 {
            source.seek(offset)?;
        }
        return Ok(Some(Pack::Zstd(Box::new(zstd))));
    }
    for (magic, name) in [
        (&[0x04, 0x22, 0x4d, 0x18][..], "LZ4"),
        (b"BZh", "bzip2"),
        (&[0xfd, b'7', b'z', b'X', b'Z', 0], "xz"),
        (b"PK\x03\x04", "zip"),
    ] {
        if window.starts_with(magic) {
            problems.add_with(source.offset(), Kind::UnsupportedContainer, || name);
            return Ok(Some(Pack::Unsupported));
        }
    }
    Ok(None)
}
