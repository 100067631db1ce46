//! Index files by their sets of jobs, in one folder that several processes may use.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use grange_model::harvest::JobId;
use md5::{Digest as _, Md5};

use super::build::{ASIDE, By};

/// How many numbers of jobs stand in a name; of larger sets the first ones, and a digest of all.
const NAMED_MAX: usize = 4;
const SUFFIX: &str = "-cache";
const LOCK_SUFFIX: &str = ".working";
/// What was begun so long ago belongs to a process that died.
const ABANDONED: Duration = Duration::from_secs(3 * 24 * 3600);

/// The name of the index of a set of jobs, as NetarchiveSuite names it.
pub fn set_name(jobs: &[JobId]) -> String {
    let mut sorted = jobs.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let joined = |jobs: &[JobId]| jobs.iter().map(ToString::to_string).collect::<Vec<_>>().join("-");
    match sorted.len() {
        0 => format!("empty{SUFFIX}"),
        1..=NAMED_MAX => format!("{}{SUFFIX}", joined(&sorted)),
        _ => {
            let digest = data_encoding::HEXLOWER.encode(&Md5::digest(joined(&sorted).as_bytes()));
            format!("{}-{digest}{SUFFIX}", joined(&sorted[..NAMED_MAX]))
        }
    }
}

/// What the folder may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of all indexes together.
    pub size: u64,
    /// How long an index is kept that nobody uses.
    pub age: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        // 20 GB are 750 million captures; a set that was not used for two months belongs to a harvest that ended.
        Limits { size: 20_000_000_000, age: Duration::from_secs(60 * 24 * 3600) }
    }
}

/// The folder of indexes.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
}

/// The right to make one index; others wait.
#[derive(Debug)]
pub struct Working {
    _lock: File,
}

impl Cache {
    pub fn open(folder: &Path) -> io::Result<Cache> {
        fs::create_dir_all(folder)?;
        Ok(Cache { folder: folder.to_owned() })
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn path(&self, by: By, jobs: &[JobId]) -> PathBuf {
        let name = set_name(jobs);
        match by {
            By::Url => self.folder.join(name),
            // An index that NetarchiveSuite does not have.
            By::Payload => self.folder.join(format!("{}-payloads{SUFFIX}", name.trim_end_matches(SUFFIX))),
        }
    }

    /// Waits until nobody else makes an index of these jobs. The system lets go of the lock when its process ends,
    /// however it ends.
    pub fn lock(&self, jobs: &[JobId]) -> io::Result<Working> {
        let lock = File::create(lock_path(&self.path(By::Url, jobs)))?;
        lock.lock()?;
        Ok(Working { _lock: lock })
    }

    /// Notes that the index was used now. A read-only folder only makes it look older.
    pub fn touch(&self, path: &Path) {
        let _ = File::options().append(true).open(path).and_then(|file| file.set_modified(SystemTime::now()));
    }

    /// Takes away what nobody used for long, then what was used longest ago until the rest is small enough. Indexes
    /// being made are left alone, those in `keep` too. Those in use lose only their names. Answers the paths taken away.
    pub fn trim(&self, limits: Limits, keep: &[&Path], now: SystemTime) -> io::Result<Vec<PathBuf>> {
        let mut indexes = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            // Somebody else may trim at the same time.
            let Ok(metadata) = entry.metadata() else { continue };
            if name.starts_with(ASIDE)
                && now.duration_since(metadata.modified()?).is_ok_and(|age| age > ABANDONED)
            {
                // What cannot be removed now is tried again next time.
                let _ = if metadata.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
            } else if metadata.is_file() && name.ends_with(SUFFIX) {
                indexes.push((metadata.modified()?, metadata.len(), path));
            }
        }
        indexes.sort();
        let mut size: u64 = indexes.iter().map(|(_, len, _)| len).sum();
        let mut gone = Vec::new();
        for (used, len, path) in indexes {
            let old = now.duration_since(used).is_ok_and(|age| age > limits.age);
            if keep.contains(&path.as_path()) || !(old || size > limits.size) {
                continue;
            }
            let lock = File::create(lock_path(&path))?;
            if lock.try_lock().is_err() {
                continue;
            }
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            // Whoever waits for this lock holds the file without its name; he finds no index and makes one.
            let _ = fs::remove_file(lock_path(&path));
            size -= len;
            gone.push(path);
        }
        Ok(gone)
    }
}

fn lock_path(path: &Path) -> PathBuf {
    let mut lock = path.as_os_str().to_owned();
    lock.push(LOCK_SUFFIX);
    PathBuf::from(lock)
}
