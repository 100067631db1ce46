//! What a failed sync leaves in doubt, and how a resume restores it.
//!
//! When a sync fails, the system may keep the bytes in memory and call them written: a later sync succeeds without them, and
//! they are gone once memory is needed. So nothing is synced again after the first failure. The run ends, a note in
//! the folder says how far each open file is on the disk and what it should be, and the crawl can be resumed. The resume
//! restores each file in a new one, which is synced as any other:
//!
//! * a WARC file in full if its bytes can still be read as they were written; otherwise as far as it was synced. The captures
//!   behind that are found in crawl.log and fetched again, as after a power cut;
//! * a log as far as it was synced, and from the note what was written since.
//!
//! The note goes when all of this is on the disk; each step can be repeated. If the note itself cannot be written, the error
//! of the run says that this is how it stands.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use serde::{Deserialize, Serialize};
use warc::write::OPEN_SUFFIX;
use warc::{Algorithm, Hasher};

/// The open files of a crawl whose disk failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unsynced {
    pub files: Vec<UnsyncedFile>,
    pub logs: Vec<UnsyncedLog>,
}

/// An open WARC file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnsyncedFile {
    /// Its final name.
    pub name: String,
    pub size: u64,
    /// Of all its bytes.
    pub sha512: String,
    /// How much of it is on the disk for certain.
    pub synced: u64,
}

/// A log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnsyncedLog {
    pub name: String,
    /// How much of it is on the disk for certain.
    pub synced: u64,
    /// What was written since.
    pub tail: Vec<u8>,
}

impl Unsynced {
    /// Keeps the note; it is on the disk when this returns.
    pub fn save(&self, path: &Path) -> io::Result<()> {
        write_aside(path, |file| serde_json::to_writer(file, self).map_err(io::Error::from))
    }

    /// The note, if there is one.
    pub fn load(path: &Path) -> io::Result<Option<Unsynced>> {
        match fs::read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            read => serde_json::from_slice(&read?).map(Some).map_err(io::Error::from),
        }
    }

    /// Restores the files, so that all of each is on the disk. Returns how many WARC files lost their ends.
    pub fn restore(&self, warcs: &Path, logs: &Path) -> io::Result<usize> {
        let mut cut = 0;
        for file in &self.files {
            let path = warcs.join(format!("{}{OPEN_SUFFIX}", file.name));
            if !path.exists() {
                // It was closed, or nothing of it ever reached the disk.
                continue;
            }
            let is_whole = digest(&path, file.size)? == file.sha512;
            cut += usize::from(!is_whole);
            let keep = if is_whole { file.size } else { file.synced };
            write_aside(&path, |out| copy(&path, keep, out))?;
        }
        for log in &self.logs {
            let path = logs.join(&log.name);
            write_aside(&path, |out| {
                copy(&path, log.synced, out)?;
                out.write_all(&log.tail)
            })?;
        }
        Ok(cut)
    }
}

/// The SHA-512 of the first `size` bytes of a file, or of all if those are fewer. What cannot be read ends it.
fn digest(path: &Path, size: u64) -> io::Result<String> {
    let mut hasher = Hasher::new(Algorithm::Sha512);
    let mut file = File::open(path)?.take(size);
    let mut buffer = vec![0; 64 << 10];
    while let Ok(n @ 1..) = file.read(&mut buffer) {
        hasher.update(&buffer[..n]);
    }
    Ok(hasher.finish().hex())
}

fn copy(path: &Path, bytes: u64, out: &mut File) -> io::Result<()> {
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        file => io::copy(&mut file?.take(bytes), out).map(drop),
    }
}

/// Writes a new file and gives it the name of the old one when it is on the disk.
fn write_aside(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    // No other file of a crawl ends so, and nothing is left of it if the next resume begins anew.
    let mut aside = path.as_os_str().to_owned();
    aside.push(".restored");
    let written = File::create(&aside).and_then(|mut file| {
        write(&mut file)?;
        file.sync_all()
    });
    if let Err(error) = written.and_then(|()| fs::rename(&aside, path)) {
        // A part of a file must not be taken for one, nor take the space that was missing.
        let _ = fs::remove_file(&aside);
        return Err(error);
    }
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_whose_sync_failed_is_restored_in_full_or_cut_where_it_was_synced() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        let written = b"synced, and more";
        let mut hasher = Hasher::new(Algorithm::Sha512);
        hasher.update(written);
        let sha512 = hasher.finish().hex();
        let file = |name: &str| UnsyncedFile {
            name: name.to_owned(),
            size: written.len() as u64,
            sha512: sha512.clone(),
            synced: 6,
        };
        let log = |name: &str| UnsyncedLog { name: name.to_owned(), synced: 4, tail: b"two\n".to_vec() };
        let cases: [(&str, &[u8], &[u8]); 5] = [
            ("whole", written, written),
            ("longer", b"synced, and more, and more", written),
            ("zeros", b"synced\0\0\0\0\0\0\0\0\0\0", b"synced"),
            ("short", b"synced, an", b"synced"),
            ("as synced", b"synced", b"synced"),
        ];
        let unsynced = Unsynced {
            files: cases.iter().map(|(name, ..)| file(name)).chain([file("closed")]).collect(),
            logs: vec![log("a.log"), log("b.log")],
        };
        for (name, bytes, _) in cases {
            fs::write(path(&format!("{name}.open")), bytes).unwrap();
        }
        fs::write(path("a.log"), b"one\n\0\0\0\0").unwrap();
        fs::write(path("b.log"), b"one\ntwo\n").unwrap();
        let note = path("note");
        assert_eq!(Unsynced::load(&note).unwrap(), None);
        unsynced.save(&note).unwrap();
        let kept = Unsynced::load(&note).unwrap().unwrap();
        assert_eq!(kept, unsynced);
        for cut in [3, 3] {
            // It can be repeated.
            assert_eq!(kept.restore(place.path(), place.path()).unwrap(), cut);
            for (name, _, expected) in cases {
                assert_eq!(fs::read(path(&format!("{name}.open"))).unwrap(), expected, "{name}");
            }
            for name in ["a.log", "b.log"] {
                assert_eq!(fs::read(path(name)).unwrap(), b"one\ntwo\n", "{name}");
            }
            assert!(!path("closed.open").exists());
        }
    }

    #[test]
    fn nothing_is_left_of_a_file_that_cannot_be_restored() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a.warc.open");
        fs::write(&path, b"as it was").unwrap();
        let full = |out: &mut File| {
            out.write_all(b"as")?;
            Err(io::ErrorKind::StorageFull.into())
        };
        assert_eq!(write_aside(&path, full).unwrap_err().kind(), io::ErrorKind::StorageFull);
        let names = fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(names.collect::<Vec<_>>(), ["a.warc.open"]);
        assert_eq!(fs::read(&path).unwrap(), b"as it was");
    }
}
