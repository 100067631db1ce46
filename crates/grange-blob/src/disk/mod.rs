//! Bytes on this machine's disks.
//!
//! ```text
//! BASE/filedir/NAME            the files, plain and read-only
//! BASE/tempdir/…               being written; cleared at start
//! BASE/atticdir/TIME-ID/NAME   removed, kept for people
//! BASE/grange-replica.json     the marker: whose files these are
//! ```
//!
//! A node may have many base directories, usually one per disk. A name lies in at most one of them.

pub(crate) mod base;
mod lanes;
mod listing;
mod place;
mod port;
mod take;
mod temp;
#[cfg(test)]
pub(crate) mod tests;
mod write;

use std::fs::File;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use grange_base::{Chain, Clock, Size};
use grange_model::{Algorithm, Checksums, FileName};
use jiff::Timestamp;
use rustix::fs::{Advice, fadvise};
use rustix::io::Errno;

use crate::blob::{Listed, Stat};
use crate::buffers::Buffers;
use crate::digest::{By, sum_file};
use crate::error::Error;

use base::Base;
use lanes::{LANE_BYTES_MIN, Lanes};
use place::Bounds;
pub use place::{FreeSpace, Placement, Room};

/// How a disk store behaves; the texts of the settings say what each means.
#[derive(Clone, Debug)]
pub struct DiskSettings {
    pub bases: Vec<PathBuf>,
    pub checksums: Vec<Algorithm>,
    pub placement: Placement,
    pub min_space_left: Size,
    pub min_space_required: Size,
    pub read_only: bool,
    /// Makes missing folders when the store is opened, and not only when it is marked. Not for a disk that may be unmounted:
    /// folders below its mount point would hide that, and files would be written there.
    pub make_folders: bool,
}

impl DiskSettings {
    /// The defaults for these base directories.
    pub fn new(bases: impl IntoIterator<Item = PathBuf>) -> Self {
        Self {
            bases: bases.into_iter().collect(),
            checksums: Algorithm::ALL.to_vec(),
            placement: Placement::default(),
            // Both as in NetarchiveSuite (minSpaceLeft, minSpaceRequired).
            min_space_left: Size(2_000_000_000),
            min_space_required: Size(10_000_000),
            read_only: false,
            make_folders: true,
        }
    }
}

/// Files in base directories. Clones share everything.
#[derive(Clone, Debug)]
pub struct Disk(Arc<Inner>);

/// Locks against two puts or removals of one name at the decisive moment; more than the threads that could meet.
const LOCKS: usize = 64;

#[derive(Debug)]
struct Inner {
    place: String,
    bases: Vec<Base>,
    checksums: Vec<Algorithm>,
    placement: Placement,
    bounds: Bounds,
    read_only: bool,
    space: Box<dyn FreeSpace>,
    clock: Clock,
    locks: Vec<Mutex<()>>,
    buffers: Buffers,
    lanes: Lanes,
}

impl Disk {
    /// Opens the base directories. Blocks for a moment.
    pub fn open(settings: DiskSettings, clock: Clock) -> Result<Self, Error> {
        Self::with_space(settings, clock, Box::new(place::System))
    }

    /// The same with another idea of the free space.
    pub fn with_space(
        settings: DiskSettings,
        clock: Clock,
        space: Box<dyn FreeSpace>,
    ) -> Result<Self, Error> {
        let names: Vec<_> = settings.bases.iter().map(|base| base.display().to_string()).collect();
        let bases =
            settings.bases.iter().map(|base| Base::open(base, settings.read_only, settings.make_folders));
        #[cfg_attr(not(test), allow(unused_mut))]
        let mut bases = bases.collect::<Result<Vec<_>, _>>()?;
        #[cfg(test)]
        if let Some((first, others)) = bases.split_first_mut() {
            for base in others {
                base.faults = first.faults.clone();
            }
        }
        Ok(Self(Arc::new(Inner {
            place: names.join(","),
            bases,
            checksums: settings.checksums,
            placement: settings.placement,
            bounds: Bounds { left: settings.min_space_left, required: settings.min_space_required },
            read_only: settings.read_only,
            space,
            clock,
            locks: (0..LOCKS).map(|_| Mutex::default()).collect(),
            buffers: Buffers::default(),
            lanes: Lanes::default(),
        })))
    }

    /// What goes wrong next.
    #[cfg(test)]
    pub(crate) fn faults(&self) -> &base::Faults {
        &self.0.bases[0].faults
    }

    /// Where a file lies, for work that runs next to it.
    pub async fn path(&self, name: &FileName) -> Result<Option<PathBuf>, Error> {
        let name = name.clone();
        self.run(move |inner| Ok(inner.find(&name)?.map(|(base, _)| inner.bases[base].file(&name)))).await
    }

    /// A file that is worth a lane of its own when it is summed up, opened to be read from the disk.
    async fn large(&self, name: &FileName) -> Result<Option<(PathBuf, File)>, Error> {
        let name = name.clone();
        self.run(move |inner| {
            let found = inner.find(&name).map_err(|error| inner.unreadable(&name, &error))?;
            let Some((base, file)) = found else { return Ok(None) };
            let path = inner.bases[base].file(&name);
            let size = file.metadata().map_err(Error::io("look at", &path))?.len();
            if size < LANE_BYTES_MIN {
                return Ok(None);
            }
            read_from_disk(&file);
            Ok(Some((path, file)))
        })
        .await
    }

    /// The same for work that reads a whole file: it stops when nobody waits for it any more.
    async fn read<T: Send + 'static>(
        &self,
        act: impl FnOnce(&Inner, &Wanted) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let wanted = Wanted::default();
        let _until_dropped = NoLonger(wanted.clone());
        self.run(move |inner| act(inner, &wanted)).await
    }

    /// Runs file work off the async threads.
    async fn run<T: Send + 'static>(
        &self,
        act: impl FnOnce(&Inner) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let inner = Arc::clone(&self.0);
        match tokio::task::spawn_blocking(move || act(&inner)).await {
            Ok(result) => result,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The process stops before the work began.
                Err(_) => Err(Error::Remote {
                    doing: "begin work".to_owned(),
                    place: self.0.place.clone(),
                    source: "the process stops".into(),
                }),
            },
        }
    }
}

/// Whether somebody still waits for what is being read.
#[derive(Clone, Debug, Default)]
struct Wanted(Arc<AtomicBool>);

impl Wanted {
    /// The reader, up to the moment when nobody waits any more.
    fn reader<R: Read>(&self, reader: R) -> WantedReader<'_, R> {
        WantedReader { wanted: self, reader }
    }

    /// Asked before anything is changed that others see.
    fn still(&self) -> std::io::Result<()> {
        if self.0.load(Ordering::Relaxed) {
            return Err(std::io::Error::other("nobody waits for it any more"));
        }
        Ok(())
    }
}

/// Dropped with the future that waits.
struct NoLonger(Wanted);

impl Drop for NoLonger {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

struct WantedReader<'a, R> {
    wanted: &'a Wanted,
    reader: R,
}

impl<R: Read> Read for WantedReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.wanted.still()?;
        self.reader.read(buffer)
    }
}

impl Inner {
    /// The base that has the name, and the file opened.
    fn find(&self, name: &FileName) -> Result<Option<(usize, File)>, Error> {
        for (index, base) in self.bases.iter().enumerate() {
            if let Some(file) = base.open_file(name)? {
                return Ok(Some((index, file)));
            }
        }
        Ok(None)
    }

    fn find_or_fail(&self, name: &FileName) -> Result<(usize, File), Error> {
        self.find(name)?.ok_or_else(|| Error::NotFound { name: name.clone(), place: self.place.clone() })
    }

    /// The base whose copy of the file cannot be opened or not be read to its end; `None` when it can.
    fn where_unreadable(&self, name: &FileName) -> Result<Option<usize>, Error> {
        // One that cannot even be looked at is there too.
        let holds = |base: &Base| match std::fs::symlink_metadata(base.file(name)) {
            Ok(data) => data.is_file(),
            Err(error) => error.kind() != std::io::ErrorKind::NotFound,
        };
        let not_found = || Error::NotFound { name: name.clone(), place: self.place.clone() };
        let base = self.bases.iter().position(holds).ok_or_else(not_found)?;
        let read = match self.bases[base].open_file(name) {
            Ok(Some(mut file)) => {
                self.sum(&self.bases[base].file(name), &mut file, &[Algorithm::Md5]).map(|_| ())
            }
            Ok(None) => return Err(not_found()),
            Err(error) => Err(error),
        };
        match read {
            Ok(()) => Ok(None),
            Err(error) if is_shortage(&error) => Err(self.unreadable(name, &error)),
            Err(_) => Ok(Some(base)),
        }
    }

    /// The error of a file that cannot be read, unless the machine is at fault: of that the next try may be free.
    fn unreadable(&self, name: &FileName, error: &Error) -> Error {
        let (name, place, reason) = (name.clone(), self.place.clone(), Chain(error).to_string());
        if is_shortage(error) {
            Error::Shortage { name, place, reason }
        } else {
            Error::Unreadable { name, place, reason }
        }
    }

    fn writable(&self) -> Result<(), Error> {
        if self.read_only { Err(Error::ReadOnly { place: self.place.clone() }) } else { Ok(()) }
    }

    fn lock(&self, name: &FileName) -> MutexGuard<'_, ()> {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(name);
        let lock = &self.locks[(hash % LOCKS as u64) as usize];
        lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sums up a stored file as it lies on the disk: what the system remembers of it is forgotten first.
    fn sum(&self, path: &Path, file: &mut File, algorithms: &[Algorithm]) -> Result<(u64, Checksums), Error> {
        self.sum_wanted(path, file, algorithms, &Wanted::default())
    }

    fn sum_wanted(
        &self,
        path: &Path,
        file: &mut File,
        algorithms: &[Algorithm],
        wanted: &Wanted,
    ) -> Result<(u64, Checksums), Error> {
        read_from_disk(file);
        let file = &mut wanted.reader(file);
        sum_file(file, By::Second, algorithms, &self.buffers).map_err(Error::io("read", path))
    }

    /// Free space per base; a disk that cannot be asked is logged and takes nothing.
    fn rooms(&self) -> Vec<Option<Room>> {
        let room = |base: &Base| match self.space.of(&base.path) {
            Ok(room) => Some(room),
            Err(error) => {
                tracing::warn!(path = %base.path.display(), %error, "cannot ask for the free space of this disk");
                None
            }
        };
        self.bases.iter().map(room).collect()
    }
}

/// Whether the machine lacks what reading any file needs.
fn is_shortage(error: &Error) -> bool {
    let Error::Io { source, .. } = error else { return false };
    let shortages = [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::INTR];
    Errno::from_io_error(source).is_some_and(|errno| shortages.contains(&errno))
}

/// Whoever reads the file next, from its start to its end, sees what the disk holds.
fn read_from_disk(file: &File) {
    forget(file);
    let _ = fadvise(file, 0, None, Advice::Sequential);
}

/// Drops clean pages from the page cache, so that the next read comes from the disk.
fn forget(file: &File) {
    // Advice: a file system without it reads from its cache, which is no worse than not asking.
    let _ = fadvise(file, 0, None, Advice::DontNeed);
}

pub(crate) fn modified(data: &std::fs::Metadata) -> Timestamp {
    data.modified().ok().and_then(|time| Timestamp::try_from(time).ok()).unwrap_or_default()
}

impl Inner {
    fn stat(&self, name: &FileName) -> Result<Option<Stat>, Error> {
        for base in &self.bases {
            let path = base.file(name);
            let looked = std::fs::symlink_metadata(&path);
            #[cfg(test)]
            let looked = looked.and_then(|data| base.faults.unreadable(name).map(|()| data));
            match looked {
                Ok(data) if data.is_file() => {
                    return Ok(Some(Stat { size: data.len(), modified: modified(&data) }));
                }
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(Error::io("look at", &path)(error)),
            }
        }
        Ok(None)
    }

    fn list(&self, mut after: Option<FileName>, limit: usize) -> Result<Vec<Listed>, Error> {
        let lists: Vec<_> =
            self.bases.iter().map(|base| base.listing.names(&base.files)).collect::<Result<_, _>>()?;
        let mut listed = Vec::new();
        // A file that went since its folder was read is not listed; only an empty page means the end.
        while listed.is_empty() {
            let page = listing::page(&lists, after.as_ref(), limit);
            if page.is_empty() {
                break;
            }
            after = page.last().cloned();
            for name in page {
                match self.stat(&name) {
                    Ok(Some(Stat { size, modified })) => {
                        listed.push(Listed { name, size: Some(size), modified });
                    }
                    Ok(None) => {}
                    // It is there, and one bad file must not hide the others.
                    Err(error) => {
                        tracing::error!(%name, place = self.place, error = %Chain(&error), "a file cannot be looked at");
                        listed.push(Listed { name, size: None, modified: Timestamp::UNIX_EPOCH });
                    }
                }
            }
        }
        Ok(listed)
    }
}
