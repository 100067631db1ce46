//! The sorted names of one folder, kept until the folder changes: a page of a listing must not read it all again.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use grange_model::FileName;

use crate::blob::{MARKER, UnlistedFiles};
use crate::error::Error;

/// A folder changed twice within one tick of the file system's clock shows one time of change. So names read
/// this soon after the last change are used once and not kept.
const SETTLED_AFTER: Duration = Duration::from_secs(2);

#[derive(Debug)]
struct Read {
    changed: SystemTime,
    entries: Entries,
}

/// What lies in a folder.
#[derive(Clone, Debug, Default)]
struct Entries {
    names: Arc<Vec<FileName>>,
    /// What is not a file of the archive.
    others: Arc<Vec<PathBuf>>,
}

#[derive(Debug, Default)]
pub(super) struct Listing(Mutex<Option<Read>>);

impl Listing {
    /// All names in the folder, in the order of their bytes.
    pub(super) fn names(&self, folder: &Path) -> Result<Arc<Vec<FileName>>, Error> {
        Ok(self.read(folder)?.names)
    }

    /// Everything else that lies in the folder and below it, but for folders themselves. Links are not followed.
    pub(super) fn unlisted(&self, folder: &Path, limit: usize) -> Result<UnlistedFiles, Error> {
        let mut found = UnlistedFiles::default();
        let mut left: Vec<PathBuf> = self.read(folder)?.others.to_vec();
        left.sort_unstable_by(|one, other| other.cmp(one));
        while let Some(path) = left.pop() {
            let data = match fs::symlink_metadata(&path) {
                Ok(data) => Some(data),
                // It went since the folder was read.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                // It is there. One entry that cannot be looked at does not hide the others.
                Err(error) => {
                    tracing::warn!(path = %path.display(), %error, "cannot look at an entry among the files");
                    None
                }
            };
            if data.as_ref().is_some_and(fs::Metadata::is_dir) {
                // One that may not be read, such as lost+found, hides nothing of the archive.
                match fs::read_dir(&path).and_then(Iterator::collect::<Result<Vec<_>, _>>) {
                    Ok(entries) => left.extend(entries.iter().map(fs::DirEntry::path)),
                    Err(error) => {
                        tracing::warn!(path = %path.display(), %error, "a folder among the files cannot be read");
                    }
                }
                continue;
            }
            found.count += 1;
            if found.paths.len() < limit {
                found.paths.push((path.display().to_string(), data.map_or(0, |data| data.len())));
            }
        }
        Ok(found)
    }

    fn read(&self, folder: &Path) -> Result<Entries, Error> {
        let failed = || Error::io("list the folder", folder);
        let changed = match fs::metadata(folder).and_then(|data| data.modified()) {
            Ok(changed) => changed,
            // Nothing was ever written there. With a marker it was, and the folder is gone.
            Err(error) if error.kind() == ErrorKind::NotFound && !folder.with_file_name(MARKER).exists() => {
                return Ok(Entries::default());
            }
            Err(error) => return Err(failed()(error)),
        };
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(read) = kept.as_ref().filter(|read| read.changed == changed) {
            return Ok(read.entries.clone());
        }
        let now = SystemTime::now();
        let (mut names, mut others) = (Vec::new(), Vec::new());
        for entry in fs::read_dir(folder).map_err(failed())? {
            let entry = entry.map_err(failed())?;
            let name = entry.file_name().into_string().ok().and_then(|name| name.parse().ok());
            match name {
                Some(name) if entry.file_type().is_ok_and(|kind| kind.is_file()) => names.push(name),
                _ => {
                    let path = entry.path();
                    tracing::warn!(path = %path.display(), "not a file of the archive: move it elsewhere");
                    others.push(path);
                }
            }
        }
        names.sort_unstable();
        let entries = Entries { names: Arc::new(names), others: Arc::new(others) };
        let settled = now.duration_since(changed).is_ok_and(|age| age > SETTLED_AFTER);
        *kept = settled.then(|| Read { changed, entries: entries.clone() });
        Ok(entries)
    }
}

/// Up to `limit` names after `after` from all lists, each once.
pub(super) fn page(lists: &[Arc<Vec<FileName>>], after: Option<&FileName>, limit: usize) -> Vec<FileName> {
    let mut page: Vec<&FileName> = Vec::new();
    for names in lists {
        let start = after.map_or(0, |after| names.partition_point(|name| name <= after));
        page.extend(names[start..].iter().take(limit));
    }
    page.sort_unstable();
    page.dedup();
    page.into_iter().take(limit).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_several_folders_join_in_order_and_without_doubles() {
        let list = |names: &[&str]| Arc::new(names.iter().map(|name| name.parse().unwrap()).collect());
        let lists = [list(&["a", "c", "e", "f"]), list(&["b", "c", "d"]), list(&[])];
        let text = |after: Option<&str>, limit| -> Vec<String> {
            let after = after.map(|name| name.parse::<FileName>().unwrap());
            page(&lists, after.as_ref(), limit).iter().map(ToString::to_string).collect()
        };
        assert_eq!(text(None, 3), ["a", "b", "c"]);
        assert_eq!(text(Some("c"), 9), ["d", "e", "f"]);
        assert_eq!(text(Some("bb"), 1), ["c"]);
        assert!(text(Some("f"), 9).is_empty());
    }
}
