//! Whether a file changed while it was read: one that a crawler or a copy still writes.

use std::path::Path;
use std::time::SystemTime;

use grange_db::Indexed;

use super::taking::Trouble;

/// Size and time of change of a file; nothing where it cannot be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileStamp {
    size: Option<u64>,
    modified: Option<SystemTime>,
}

impl FileStamp {
    pub(super) fn of(path: &Path) -> FileStamp {
        let about = std::fs::metadata(path).ok();
        let modified = about.as_ref().and_then(|about| about.modified().ok());
        FileStamp { size: about.map(|about| about.len()), modified }
    }

    /// Of an object, which is replaced as a whole.
    pub(super) fn in_bucket(size: Option<u64>) -> FileStamp {
        FileStamp { size, modified: None }
    }

    /// Adds a problem to what was indexed if the file has another size after it was read. One that was rewritten with the
    /// same size is read again later.
    pub(super) fn compare(self, after: FileStamp, mut came: Indexed) -> Result<Indexed, Trouble> {
        if self == after {
            return Ok(came);
        }
        let (Some(before), Some(now)) = (self.size, after.size) else {
            return Err(Trouble::Gone("it was removed while it was read".to_owned()));
        };
        if before == now {
            return Err(Trouble::Now("it was rewritten while it was read; it is read again".to_owned()));
        }
        came.problems += 1;
        let told = format!(
            "it changed from {before} to {now} bytes while it was read: import it again when it is complete"
        );
        came.told.insert(0, told);
        Ok(came)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_file_that_changed_while_it_was_read_is_told() {
        let at = |size, seconds| FileStamp {
            size,
            modified: Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)),
        };
        let compare = |after| at(Some(5), 1).compare(after, Indexed { captures: 2, ..Indexed::default() });
        assert_eq!(compare(at(Some(5), 1)).unwrap().problems, 0);
        let grown = compare(at(Some(9), 2)).unwrap();
        assert_eq!((grown.captures, grown.problems), (2, 1));
        assert!(grown.told[0].contains("from 5 to 9 bytes") && grown.told[0].contains("import it again"));
        assert!(matches!(compare(at(Some(5), 2)), Err(Trouble::Now(_))));
        assert!(matches!(compare(at(None, 2)), Err(Trouble::Gone(_))));
    }
}
