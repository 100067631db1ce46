//! The sorted names of one folder, kept until the folder changes: a page of a listing must not read it all again.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use grange_model::FileName;

use crate::error::Error;

/// A folder changed twice within one tick of the file system's clock shows one time of change. So names read
/// this soon after the last change are used once and not kept.
const SETTLED_AFTER: Duration = Duration::from_secs(2);

#[derive(Debug)]
struct Read {
    changed: SystemTime,
    names: Arc<Vec<FileName>>,
}

#[derive(Debug, Default)]
pub(super) struct Listing(Mutex<Option<Read>>);

impl Listing {
    /// All names in the folder, in the order of their bytes.
    pub(super) fn names(&self, folder: &Path) -> Result<Arc<Vec<FileName>>, Error> {
        let failed = || Error::io("list the folder", folder);
        let changed = fs::metadata(folder).and_then(|data| data.modified()).map_err(failed())?;
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(read) = kept.as_ref().filter(|read| read.changed == changed) {
            return Ok(Arc::clone(&read.names));
        }
        let now = SystemTime::now();
        let mut names = Vec::new();
        for entry in fs::read_dir(folder).map_err(failed())? {
            let entry = entry.map_err(failed())?;
            let name = entry.file_name().into_string().ok().and_then(|name| name.parse().ok());
            match name {
                Some(name) if entry.file_type().is_ok_and(|kind| kind.is_file()) => names.push(name),
                _ => {
                    tracing::warn!(path = %entry.path().display(), "this is no file of the archive; remove it");
                }
            }
        }
        names.sort_unstable();
        let names = Arc::new(names);
        let settled = now.duration_since(changed).is_ok_and(|age| age > SETTLED_AFTER);
        *kept = settled.then(|| Read { changed, names: Arc::clone(&names) });
        Ok(names)
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
