//! Witness files: the signed root of the log, one a day, kept on every replica among the files.
//!
//! Whoever changes the database cannot change what was written down elsewhere before.

use std::io::Read as _;
use std::path::Path;

use bytes::Bytes;
use grange_base::durable;
use grange_blob::MARKER;
use grange_db::Checkpoint;
use grange_model::FileName;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::journal::{sync_folder, sync_names};
use crate::key_trust::SignedVouch;

/// What the names of witnesses begin with; no file of the archive may.
pub const PREFIX: &str = "grange-witness-";

/// What the names of access rules begin with that are kept in the same way; see `access_rules.rs`.
pub(crate) const ACCESS_PREFIX: &str = "grange-witness-access-";

/// More than any witness has; what is longer is none.
pub(crate) const BYTES_MAX: u64 = 64 << 10;

/// A witness as it is written, in lines of JSON that people can read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Witness {
    /// `grange-witness 1`.
    pub format: String,
    #[serde(flatten)]
    pub checkpoint: Checkpoint,
    /// The keys that others vouch for: with them a reader who knows one key can follow to the one that signed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vouches: Vec<SignedVouch>,
}

impl Witness {
    pub(crate) fn new(checkpoint: Checkpoint, vouches: Vec<SignedVouch>) -> Self {
        Self { format: "grange-witness 1".to_owned(), checkpoint, vouches }
    }

    pub(crate) fn to_text(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }
}

pub(crate) fn is_witness(name: &FileName) -> bool {
    name.as_str().starts_with(PREFIX)
}

/// Whether the name is that of a witness of the log, and of no access rule.
pub(crate) fn is_of_log(name: &FileName) -> bool {
    is_witness(name) && !name.as_str().starts_with(ACCESS_PREFIX)
}

/// Whether the name is kept for the archive itself.
pub(crate) fn reserved(name: &FileName) -> bool {
    is_witness(name) || name.as_str() == MARKER
}

/// The witness of a day. The size makes it unique where several processes, or a rebuilt log, write on one day.
pub(crate) fn name(at: Timestamp, checkpoint: &Checkpoint) -> Option<FileName> {
    let day = at.strftime("%Y%m%d");
    format!("{PREFIX}{day}-{:012}-{}.json", checkpoint.size, &checkpoint.root.get(..8)?).parse().ok()
}

pub(crate) fn is_of_day(name: &FileName, at: Timestamp) -> bool {
    name.as_str().starts_with(&format!("{PREFIX}{}", at.strftime("%Y%m%d")))
}

/// A name that sorts before all witnesses and after all that sorts before them.
#[allow(clippy::missing_panics_doc)]
pub(crate) fn before_first() -> FileName {
    PREFIX.trim_end_matches('-').parse().unwrap_or_else(|_| unreachable!("the prefix is a name"))
}

/// Beside a journal. One that is there stays as it is: its name was synced, or it would have been taken away again.
pub(crate) fn write(folder: &Path, name: &FileName, text: &[u8]) -> Result<(), Error> {
    let path = folder.join(name.as_str());
    if path.exists() {
        return Ok(());
    }
    match durable::create_new_with(&path, text, durable::PLAIN, sync_names) {
        // Another process wrote it at the same moment; it may not have synced its name yet.
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => sync_folder(folder),
        written => written.map_err(Error::io("write", &path)),
    }
}

/// The names of those beside a journal.
pub(crate) fn names(folder: &Path) -> Result<Vec<FileName>, Error> {
    let mut found = Vec::new();
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(found),
        Err(error) => return Err(Error::io("list", folder)(error)),
    };
    for entry in entries {
        let entry = entry.map_err(Error::io("list", folder))?;
        let name = entry.file_name();
        let Some(name) = name.to_str().and_then(|name| name.parse::<FileName>().ok()) else { continue };
        if is_witness(&name) && !durable::is_part(name.as_str()) {
            found.push(name);
        }
    }
    found.sort();
    Ok(found)
}

/// One of those beside a journal, as far as a witness may be long.
pub(crate) fn read(folder: &Path, name: &FileName) -> Result<Bytes, Error> {
    let path = folder.join(name.as_str());
    let mut text = Vec::new();
    let read = std::fs::File::open(&path).and_then(|file| file.take(BYTES_MAX + 1).read_to_end(&mut text));
    read.map(|_| text.into()).map_err(Error::io("read", &path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::FOLDER_SYNCS_TO_FAIL;

    #[test]
    fn a_witness_whose_name_was_not_synced_is_not_there_until_it_is_written_and_synced() {
        let folder = tempfile::tempdir().unwrap();
        let name: FileName = "grange-witness-access-add-x.json".parse().unwrap();
        FOLDER_SYNCS_TO_FAIL.lock().unwrap().push(folder.path().to_owned());
        assert!(write(folder.path(), &name, b"court").is_err());
        assert_eq!(names(folder.path()).unwrap(), []);
        write(folder.path(), &name, b"court").unwrap();
        assert_eq!(names(folder.path()).unwrap(), std::slice::from_ref(&name));
        assert_eq!(read(folder.path(), &name).unwrap().as_ref(), b"court");
        write(folder.path(), &name, b"other").unwrap();
        assert_eq!(read(folder.path(), &name).unwrap().as_ref(), b"court", "it is never changed");
    }
}
