//! What was received and is not yet proven to be in files and rows. One sync makes a page safe; files follow without.
//!
//! ```text
//! +journal/00000001        a segment, removed when all it holds is in files that are synced, and in rows
//!   grange-oai-journal 1 <boot>\n
//!   length  u32, little end first      of the frame's bytes
//!   check   16 bytes                   the first of their BLAKE3
//!   bytes
//!   …                                  a frame that is cut or fails its check ends the segment
//! ```
//!
//! `boot` names the running kernel: what a process wrote survives its own death, so only after another start of the
//! machine have files to be written again.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use super::files::FileError;

/// Where a repository's segments are. No identifier becomes this name.
const FOLDER: &str = "+journal";
const MARK: &str = "grange-oai-journal 1 ";
/// A segment is followed by the next at this size: some seconds of the fastest harvest, so that syncing it is rare.
const SEGMENT_BYTES: u64 = 64 << 20;
const CHECK_BYTES: usize = 16;
const FRAME_HEAD_BYTES: u64 = 4 + CHECK_BYTES as u64;

/// Segments that may be on disk at once: a quarter of a gigabyte, in case syncing is slower than the network.
pub(crate) const SEGMENTS_MAX: usize = 4;

/// The segment that is being written.
#[derive(Debug)]
pub(crate) struct Journal {
    folder: PathBuf,
    boot: String,
    /// Number of the next segment.
    next: u64,
    open: Option<Segment>,
}

#[derive(Debug)]
struct Segment {
    path: PathBuf,
    file: File,
    bytes: u64,
}

/// Segments that an earlier harvest left, oldest first.
#[derive(Debug)]
pub(crate) struct Leftover {
    boot: String,
    waiting: VecDeque<PathBuf>,
    reading: Option<Reading>,
    /// All of them, to be retired.
    pub(crate) paths: Vec<PathBuf>,
}

#[derive(Debug)]
struct Reading {
    path: PathBuf,
    file: BufReader<File>,
    rest: u64,
    rebooted: bool,
}

/// The bytes of a frame, and whether the machine was started anew since it was written.
pub(crate) type Frame = (Vec<u8>, bool);

impl Journal {
    /// Finds what is left of an earlier harvest and goes on behind it.
    pub(crate) fn open(root: &Path) -> Result<(Self, Leftover), FileError> {
        let folder = root.join(FOLDER);
        let failed = |source| FileError::new("read", &folder, source);
        fs::create_dir_all(&folder).map_err(failed)?;
        let mut found = Vec::new();
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if let Some(number) = entry.file_name().to_str().and_then(|name| name.parse::<u64>().ok()) {
                found.push((number, entry.path()));
            }
        }
        found.sort();
        let next = found.last().map_or(1, |(number, _)| number + 1);
        let paths: Vec<_> = found.into_iter().map(|(_, path)| path).collect();
        let boot = boot();
        let leftover = Leftover { boot: boot.clone(), waiting: paths.clone().into(), reading: None, paths };
        Ok((Self { folder, boot, next, open: None }, leftover))
    }

    /// Whether the next frame begins a segment.
    pub(crate) fn wants_segment(&self) -> bool {
        self.open.as_ref().is_none_or(|open| open.bytes >= SEGMENT_BYTES)
    }

    /// The segment that is being written, if there is one.
    pub(crate) fn segment(&self) -> Option<&Path> {
        self.open.as_ref().map(|open| open.path.as_path())
    }

    /// Adds a frame and returns when it is on disk.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<(), FileError> {
        if self.wants_segment() {
            self.open = Some(self.begin()?);
        }
        let Some(open) = &mut self.open else { return Ok(()) };
        let length = u32::try_from(bytes.len()).map_err(|_| io::Error::other("a frame of 4 GB"));
        let written = length.and_then(|length| {
            let mut head = [0; FRAME_HEAD_BYTES as usize];
            head[..4].copy_from_slice(&length.to_le_bytes());
            head[4..].copy_from_slice(&check(bytes));
            open.file.write_all(&head)?;
            open.file.write_all(bytes)?;
            open.file.sync_data()
        });
        if let Err(source) = written {
            let error = FileError::new("write", &open.path, source);
            // Nothing is written behind a frame that is torn or was not synced: the next one begins a segment.
            self.open = None;
            return Err(error);
        }
        open.bytes += FRAME_HEAD_BYTES + bytes.len() as u64;
        Ok(())
    }

    fn begin(&mut self) -> Result<Segment, FileError> {
        let path = self.folder.join(format!("{:08}", self.next));
        self.next += 1;
        let made = || -> io::Result<File> {
            let mut file = File::create(&path)?;
            file.write_all(format!("{MARK}{}\n", self.boot).as_bytes())?;
            file.sync_all()?;
            File::open(&self.folder)?.sync_all()?;
            Ok(file)
        };
        let file = made().map_err(|source| FileError::new("create", &path, source))?;
        Ok(Segment { path, file, bytes: 0 })
    }
}

impl Leftover {
    /// Whether the machine was started anew since any of it was written.
    pub(crate) fn rebooted(&self) -> bool {
        self.paths.iter().any(|path| {
            let head = File::open(path).and_then(|file| head(&mut BufReader::new(file)));
            head.is_ok_and(|boot| boot.is_some_and(|boot| boot != self.boot))
        })
    }

    /// The next frame; `None` when all were read. What cannot be read was never promised to anybody.
    pub(crate) fn next(&mut self) -> Result<Option<Frame>, FileError> {
        loop {
            if self.reading.is_none() {
                let Some(path) = self.waiting.pop_front() else { return Ok(None) };
                self.reading = self.begin(&path).map_err(|source| FileError::new("read", &path, source))?;
            }
            let Some(reading) = &mut self.reading else { continue };
            match reading.frame() {
                Ok(Some(bytes)) => return Ok(Some((bytes, reading.rebooted))),
                Ok(None) => self.reading = None,
                Err(source) => return Err(FileError::new("read", &reading.path, source)),
            }
        }
    }

    fn begin(&self, path: &Path) -> io::Result<Option<Reading>> {
        let file = File::open(path)?;
        let bytes = file.metadata()?.len();
        let mut file = BufReader::new(file);
        let Some(boot) = head(&mut file)? else { return Ok(None) };
        let rest = bytes.saturating_sub((MARK.len() + boot.len() + 1) as u64);
        Ok(Some(Reading { path: path.to_owned(), file, rest, rebooted: boot != self.boot }))
    }
}

impl Reading {
    fn frame(&mut self) -> io::Result<Option<Vec<u8>>> {
        if self.rest < FRAME_HEAD_BYTES {
            return Ok(None);
        }
        let mut head = [0; FRAME_HEAD_BYTES as usize];
        self.file.read_exact(&mut head)?;
        self.rest -= FRAME_HEAD_BYTES;
        let length = u64::from(u32::from_le_bytes([head[0], head[1], head[2], head[3]]));
        // Never more than the file has, whatever the length says.
        if length > self.rest {
            return Ok(None);
        }
        let mut bytes = vec![0; length as usize];
        self.file.read_exact(&mut bytes)?;
        self.rest -= length;
        Ok((check(&bytes) == head[4..]).then_some(bytes))
    }
}

/// Makes everything in the folder durable by one call, then forgets the segments that only guarded it.
pub fn retire(root: &Path, segments: &[PathBuf]) -> Result<(), FileError> {
    if segments.is_empty() {
        return Ok(());
    }
    super::files::sync(root)?;
    for path in segments {
        match fs::remove_file(path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                return Err(FileError::new("remove", path, source));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The boot a segment was written in; `None` where it is no segment.
fn head(file: &mut BufReader<File>) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    file.take(200).read_until(b'\n', &mut line)?;
    let line = String::from_utf8(line).unwrap_or_default();
    Ok(line.strip_prefix(MARK).and_then(|rest| rest.strip_suffix('\n')).map(str::to_owned))
}

fn check(bytes: &[u8]) -> [u8; CHECK_BYTES] {
    let mut first = [0; CHECK_BYTES];
    first.copy_from_slice(&blake3::hash(bytes).as_bytes()[..CHECK_BYTES]);
    first
}

/// A name that changes whenever the machine starts. Where the system tells none every start counts as a new one.
fn boot() -> String {
    let told = fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|id| id.trim().to_owned());
    told.unwrap_or_else(|_| format!("process-{}", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(root: &Path) -> Vec<Frame> {
        let (_, mut leftover) = Journal::open(root).unwrap();
        std::iter::from_fn(|| leftover.next().unwrap()).collect()
    }

    #[test]
    fn frames_come_back_up_to_where_a_crash_cut_them() {
        let dir = tempfile::tempdir().unwrap();
        let (mut journal, leftover) = Journal::open(dir.path()).unwrap();
        assert!(leftover.paths.is_empty() && journal.segment().is_none());
        for text in ["one", "", "three"] {
            journal.append(text.as_bytes()).unwrap();
        }
        let whole = [b"one".to_vec(), Vec::new(), b"three".to_vec()].map(|bytes| (bytes, false));
        assert_eq!(frames(dir.path()), whole);
        let path = journal.segment().unwrap().to_owned();
        let bytes = fs::read(&path).unwrap();
        let start = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        assert_eq!(&bytes[start..start + 4], 3_u32.to_le_bytes(), "as drawn");
        // Cut anywhere, and with a byte turned over anywhere: what is whole before it stays, nothing is made up.
        for at in 0..bytes.len() {
            for damaged in [bytes[..at].to_vec(), {
                let mut turned = bytes.clone();
                turned[at] ^= 0x20;
                turned
            }] {
                fs::write(&path, &damaged).unwrap();
                let found = frames(dir.path());
                assert!(found.len() <= 3 && found.iter().zip(&whole).all(|(a, b)| a.0 == b.0), "{at}");
                assert!(found.len() < 3 || at < start, "the damage at {at} was not seen");
            }
        }
    }

    #[test]
    fn another_start_of_the_machine_is_told_and_segments_go_when_retired() {
        let dir = tempfile::tempdir().unwrap();
        let (mut journal, _) = Journal::open(dir.path()).unwrap();
        journal.append(b"x").unwrap();
        let path = journal.segment().unwrap().to_owned();
        assert!(!Journal::open(dir.path()).unwrap().1.rebooted());
        fs::write(&path, "no journal").unwrap();
        assert!(frames(dir.path()).is_empty());
        fs::write(&path, format!("{MARK}another\n")).unwrap();
        let (mut journal, leftover) = Journal::open(dir.path()).unwrap();
        assert!(leftover.rebooted());
        journal.append(b"y").unwrap();
        assert_ne!(journal.segment().unwrap(), path, "what is left is never written to");
        retire(dir.path(), &leftover.paths).unwrap();
        retire(dir.path(), &leftover.paths).unwrap();
        assert_eq!(frames(dir.path()), [(b"y".to_vec(), false)]);
    }

    #[test]
    fn a_frame_that_was_not_synced_is_an_error_and_nothing_is_written_behind_it() {
        // Bytes go there, and syncing it is refused; or nothing goes there.
        for broken in ["/dev/null", "/dev/full"] {
            let dir = tempfile::tempdir().unwrap();
            let (mut journal, _) = Journal::open(dir.path()).unwrap();
            journal.append(b"one").unwrap();
            let first = journal.segment().unwrap().to_owned();
            journal.open.as_mut().unwrap().file = File::options().write(true).open(broken).unwrap();
            assert!(journal.append(b"two").is_err(), "{broken}");
            assert!(journal.segment().is_none() && journal.wants_segment());
            journal.append(b"two").unwrap();
            assert_ne!(journal.segment().unwrap(), first, "{broken}");
            assert_eq!(frames(dir.path()), [b"one", b"two"].map(|bytes| (bytes.to_vec(), false)), "{broken}");
        }
    }
}
