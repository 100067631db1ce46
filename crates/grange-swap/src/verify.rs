//! Reading everything again: does each file still have the checksum it came with, and does it lie where it belongs?

use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::Advice;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha512};
use uuid::Uuid;

use crate::digest::Sum;
use crate::error::Error;
use crate::name::LocalPath;
use crate::node::Node;
use crate::peer::serve::blocking;
use crate::tree::{Met, Tree};
use crate::view::Known;

/// Problems named in a report; all are counted.
const MAX_NAMED: usize = 1000;

/// What is wrong with something below a slice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Problem {
    /// The bytes are not those that were stored.
    OtherBytes { path: String, slice: usize, stored: Sum, found: Sum },
    /// The file belongs to another slice.
    Misplaced { path: String, slice: usize, belongs_to: usize },
    /// The disk does not give it back.
    Unreadable { path: String, slice: usize, reason: String },
    /// No file or directory of ours: a link, a device, a name that is none.
    Foreign { path: String, slice: usize },
}

/// What a verification found; of one server, or of all together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    pub running: bool,
    pub files: u64,
    pub bytes: u64,
    /// Files that had no checksum to compare with; what was read is now theirs.
    pub without_checksum: u64,
    pub problem_count: u64,
    pub problems: Vec<Problem>,
    /// Slices that could not be asked.
    pub missing_slices: Vec<usize>,
}

impl Report {
    fn problem(&mut self, problem: Problem) {
        self.problem_count += 1;
        if self.problems.len() < MAX_NAMED {
            self.problems.push(problem);
        }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.running |= other.running;
        self.files += other.files;
        self.bytes += other.bytes;
        self.without_checksum += other.without_checksum;
        self.problem_count += other.problem_count;
        let room = MAX_NAMED.saturating_sub(self.problems.len());
        self.problems.extend(other.problems.into_iter().take(room));
    }
}

/// The running or last verification of a collection on this server.
#[derive(Debug, Default)]
pub struct Verifying(Mutex<Report>);

impl Verifying {
    fn change<T>(&self, change: impl FnOnce(&mut Report) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Starts a verification of our slices, or tells how the last one stands.
pub(crate) fn here(node: &Arc<Node>, collection: Uuid, start: bool) -> Result<Report, Error> {
    let known = node.known(collection)?;
    let verifying = node.verifying(collection);
    let begin = start && verifying.change(|report| !report.running);
    if begin {
        verifying.change(|report| *report = Report { running: true, ..Report::default() });
        let verifying = Arc::clone(&verifying);
        tokio::task::spawn_blocking(move || {
            for (slice, tree) in known.here() {
                verify_slice(&known, slice, tree, &verifying);
            }
            verifying.change(|report| report.running = false);
        });
    }
    Ok(verifying.change(|report| report.clone()))
}

fn verify_slice(known: &Known, slice: usize, tree: &Tree, verifying: &Verifying) {
    let walked = tree.walk(|met| {
        let path = match met {
            Met::File(path) => path,
            Met::Directory(_) => return true,
            Met::Foreign(path) => {
                verifying.change(|report| report.problem(Problem::Foreign { path, slice }));
                return true;
            }
        };
        if let Some(spot) = known.record.layout.spot(path.point())
            && spot.slice != slice
            && spot.before != Some(slice)
        {
            let problem = Problem::Misplaced { path: path.to_string(), slice, belongs_to: spot.slice };
            verifying.change(|report| report.problem(problem));
        }
        match compare(known, tree, &path) {
            // Moved or removed since the walk met it.
            Ok(None) => {}
            Ok(Some(Compared { size, stored, found })) => verifying.change(|report| {
                report.files += 1;
                report.bytes += size;
                match stored {
                    None => report.without_checksum += 1,
                    Some(stored) if stored != found => {
                        report.problem(Problem::OtherBytes { path: path.to_string(), slice, stored, found });
                    }
                    Some(_) => {}
                }
            }),
            Err(error) => {
                let problem =
                    Problem::Unreadable { path: path.to_string(), slice, reason: error.to_string() };
                verifying.change(|report| report.problem(problem));
            }
        }
        true
    });
    if let Err(error) = walked {
        let problem = Problem::Unreadable { path: String::new(), slice, reason: error.to_string() };
        verifying.change(|report| report.problem(problem));
    }
}

struct Compared {
    size: u64,
    stored: Option<Sum>,
    found: Sum,
}

fn compare(known: &Known, tree: &Tree, path: &LocalPath) -> io::Result<Option<Compared>> {
    let opened = match tree.open_file(path.as_str()) {
        Ok(opened) => opened,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let found = sum_file(&opened.file)?;
    // Not in a tree that was removed meanwhile: another may have the name.
    if opened.sum.is_none()
        && let Ok(_epoch) = known.gate.unchanged(known.record.epoch)
    {
        tree.keep_sum(path, &opened.file, &found)?;
    }
    Ok(Some(Compared { size: opened.size, stored: opened.sum, found }))
}

/// Sums up a file as the disk gives it back: what the page cache holds is dropped first.
fn sum_file(file: &File) -> io::Result<Sum> {
    rustix::fs::fadvise(file, 0, None, Advice::DontNeed)?;
    let (mut file, mut hasher, mut buffer) = (file, Sha512::new(), vec![0; 256 << 10]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(Sum(hasher.finalize().into())),
            read => hasher.update(&buffer[..read]),
        }
    }
}

/// The checksum of a file on a slice that is here, once its name is durable: other servers remove or acknowledge by it.
pub(crate) async fn sum_on(known: &Known, slice: usize, path: LocalPath) -> Result<Option<Sum>, Error> {
    let tree = known.tree(slice).cloned().ok_or_else(|| Error::refused("that slice is not here"))?;
    blocking(move || {
        let _pending = tree.hold(&path);
        match tree.sync_parent(&path) {
            Ok(()) => sum_durable(&tree, &path),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io("sync the folder of", path.as_str())(error)),
        }
    })
    .await
}

/// The checksum of a stored file whose bytes are synced first: those laid in by hand may be in memory only.
pub(crate) fn sum_durable(tree: &Tree, path: &LocalPath) -> Result<Option<Sum>, Error> {
    match tree.open_file(path.as_str()) {
        Ok(opened) => opened.file.sync_data().map_err(Error::io("sync", path.as_str()))?,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io("open", path.as_str())(error)),
    }
    sum_again(tree, path)
}

/// The checksum of a stored file, read again; `None` when it is not there.
pub(crate) fn sum_again(tree: &Tree, path: &LocalPath) -> Result<Option<Sum>, Error> {
    match tree.open_file(path.as_str()) {
        Ok(opened) => sum_file(&opened.file).map(Some).map_err(Error::io("read", path.as_str())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("open", path.as_str())(error)),
    }
}
