//! Witness files: the signed root of the log, one a day, kept on every replica among the files.
//!
//! Whoever changes the database cannot change what was written down elsewhere before.

use std::path::Path;

use bytes::Bytes;
use grange_blob::MARKER;
use grange_db::Checkpoint;
use grange_model::FileName;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::key_trust::SignedVouch;

/// What the names of witnesses begin with; no file of the archive may.
pub const PREFIX: &str = "grange-witness-";

/// What the names of access rules begin with that are kept in the same way; see `access_rules.rs`.
pub(crate) const ACCESS_PREFIX: &str = "grange-witness-access-";

/// What the name of one that is being written ends with.
const PART: &str = ".part";

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

/// Beside a journal: write aside, sync, rename.
pub(crate) fn write(folder: &Path, name: &FileName, text: &[u8]) -> Result<(), Error> {
    let path = folder.join(name.as_str());
    if path.exists() {
        return Ok(());
    }
    let aside = folder.join(format!("{name}{PART}"));
    let written = std::fs::File::create(&aside).and_then(|mut file| {
        std::io::Write::write_all(&mut file, text)?;
        file.sync_all()
    });
    written.map_err(Error::io("write", &aside))?;
    std::fs::rename(&aside, &path).map_err(Error::io("rename", &path))?;
    std::fs::File::open(folder).and_then(|folder| folder.sync_all()).map_err(Error::io("sync", folder))
}

pub(crate) fn read(folder: &Path) -> Result<Vec<(FileName, Bytes)>, Error> {
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
        if is_witness(&name) && !name.as_str().ends_with(PART) {
            let text = std::fs::read(entry.path()).map_err(Error::io("read", &entry.path()))?;
            found.push((name, text.into()));
        }
    }
    found.sort();
    Ok(found)
}
