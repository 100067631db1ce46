//! Under which lease the folder of an index was last written: whether what is in it is what the rows say.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use grange_db::{IndexLease, IndexedCollection};
use serde::{Deserialize, Serialize};

use super::mirror::{self, MirrorError};

/// Beside the manifest of an index.
const NAME: &str = "owner.json";

/// The lease that a folder belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FolderOwner {
    identity: String,
    token: i64,
}

/// The entry about the owner in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FolderClaim {
    Of(FolderOwner),
    /// Nothing: it is of an earlier version, or not there.
    Unsaid,
    /// Something that cannot be read.
    Unreadable,
}

/// The identity of all collections that were made before collections had one.
pub(super) const FIRST: &str = "first";

impl FolderClaim {
    /// Whether nobody else kept the index since this folder was written to.
    pub(super) fn is_of(&self, lease: &IndexLease) -> bool {
        match self {
            Self::Of(owner) => *owner == FolderOwner::of(lease),
            // The first that ever keeps it takes over what an earlier version made here.
            Self::Unsaid => lease.token == 1 && lease.identity == FIRST,
            Self::Unreadable => false,
        }
    }

    /// Whether nobody has taken over the index of this row since the folder was written to: it may be shown.
    pub(super) fn fits(&self, row: &IndexedCollection) -> bool {
        match self {
            Self::Of(owner) => {
                let newest = row.owner.as_ref().is_none_or(|of| of.token == owner.token);
                owner.identity == row.identity && newest
            }
            Self::Unsaid => row.identity == FIRST && row.owner.as_ref().is_none_or(|of| of.token == 1),
            Self::Unreadable => false,
        }
    }
}

impl FolderOwner {
    pub(super) fn of(lease: &IndexLease) -> Self {
        Self { identity: lease.identity.clone(), token: lease.token }
    }

    pub(super) fn read(folder: &Path) -> FolderClaim {
        match fs::read(folder.join(NAME)) {
            Ok(text) => serde_json::from_slice(&text).map_or(FolderClaim::Unreadable, FolderClaim::Of),
            Err(error) if error.kind() == io::ErrorKind::NotFound => FolderClaim::Unsaid,
            Err(_) => FolderClaim::Unreadable,
        }
    }

    /// The identity and token that a copy made from this folder is called by.
    pub(super) fn of_folder(folder: &Path) -> (String, i64) {
        match Self::read(folder) {
            FolderClaim::Of(owner) => (owner.identity, owner.token),
            FolderClaim::Unsaid | FolderClaim::Unreadable => (FIRST.to_owned(), 0),
        }
    }

    /// Writes it down, as a whole.
    pub(super) fn write(&self, folder: &Path) -> Result<(), MirrorError> {
        let path = folder.join(NAME);
        let write = || {
            let mut file = tempfile::NamedTempFile::new_in(folder)?;
            file.write_all(serde_json::to_string(self).unwrap_or_default().as_bytes())?;
            file.as_file().sync_all()?;
            file.persist(&path)?;
            File::open(folder)?.sync_all()
        };
        write().map_err(mirror::io(&path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_trusted_under_the_lease_that_it_was_written_under() {
        let folder = tempfile::tempdir().unwrap();
        let lease = |identity: &str, token| IndexLease {
            collection: "news".to_owned(),
            identity: identity.to_owned(),
            owner: "me".to_owned(),
            token,
        };
        let trusted = |lease: &IndexLease| FolderOwner::read(folder.path()).is_of(lease);
        // A folder of an earlier version belongs to the first that keeps the index.
        assert!(trusted(&lease(FIRST, 1)) && !trusted(&lease(FIRST, 2)) && !trusted(&lease("b", 1)));
        FolderOwner::of(&lease("b", 2)).write(folder.path()).unwrap();
        assert!(trusted(&lease("b", 2)));
        assert!(!trusted(&lease("b", 3)) && !trusted(&lease("c", 2)) && !trusted(&lease(FIRST, 1)));
        assert_eq!(FolderOwner::of_folder(folder.path()), ("b".to_owned(), 2));
        let row = |identity: &str, token| IndexedCollection {
            name: "news".to_owned(),
            identity: identity.to_owned(),
            removed: false,
            owner: Some(grange_db::IndexOwner {
                node: "other".to_owned(),
                token,
                until: jiff::Timestamp::UNIX_EPOCH,
                lapsed: true,
            }),
        };
        let shown = |row: &IndexedCollection| FolderOwner::read(folder.path()).fits(row);
        assert!(shown(&row("b", 2)) && !shown(&row("b", 3)) && !shown(&row("c", 2)));
        fs::write(folder.path().join(NAME), "{").unwrap();
        assert!(!trusted(&lease(FIRST, 1)) && !trusted(&lease("b", 2)));
    }
}
