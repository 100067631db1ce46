//! The list of live segments: one small file, replaced as a whole.
//!
//! The first line is JSON, the second the CRC-32C of the first in hexadecimal.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::durable::{rename, sync_file, sync_folder};
use crate::error::{Error, Result};
use crate::row::FileEntry;

pub(crate) const NAME: &str = "MANIFEST";

/// What an index consists of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    pub(crate) version: u32,
    /// The next name to give to a file.
    pub(crate) next_name: u64,
    /// The next number of a change.
    pub(crate) next_change: u64,
    /// The log of the head.
    pub(crate) log: String,
    /// Oldest first.
    pub(crate) segments: Vec<SegmentEntry>,
    /// What was taken out and is still inside older segments.
    pub(crate) removed: Vec<Removal>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SegmentEntry {
    pub(crate) name: String,
    /// The last change that went into it. What was removed later is still inside.
    pub(crate) change: u64,
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
}

/// A file, or the lines that came under a job, taken out by a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Removal {
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) job: Option<String>,
    pub(crate) change: u64,
}

impl Removal {
    pub(crate) fn takes(&self, file: &FileEntry) -> bool {
        self.file.as_deref().is_some_and(|name| name == &*file.name)
            || !file.whole && self.job.is_some() && self.job.as_deref() == file.job.as_deref()
    }
}

pub(crate) const VERSION: u32 = 1;

impl Manifest {
    pub(crate) fn new() -> Self {
        Self {
            version: VERSION,
            next_name: 1,
            next_change: 1,
            log: log_name(0),
            segments: Vec::new(),
            removed: Vec::new(),
        }
    }

    /// The names of its segments and of its log.
    pub(crate) fn files(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().map(|entry| entry.name.as_str()).chain([self.log.as_str()])
    }

    /// A name for a new file. Only the manifest in force gives names: one given by a clone would be given again if the clone
    /// comes to nothing.
    pub(crate) fn take_name(&mut self) -> u64 {
        self.next_name += 1;
        self.next_name - 1
    }

    pub(crate) fn take_change(&mut self) -> u64 {
        self.next_change += 1;
        self.next_change - 1
    }

    /// Which files of a segment were taken out after `change`; `None` if none was.
    pub(crate) fn dead(&self, files: &[FileEntry], change: u64) -> Option<Vec<bool>> {
        let later: Vec<&Removal> = self.removed.iter().filter(|removal| removal.change > change).collect();
        if later.is_empty() {
            return None;
        }
        let dead: Vec<bool> =
            files.iter().map(|file| later.iter().any(|removal| removal.takes(file))).collect();
        dead.contains(&true).then_some(dead)
    }

    /// The manifest of a folder; `None` if there is none yet.
    pub(crate) fn read(folder: &Path) -> Result<Option<Self>> {
        let path = folder.join(NAME);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io("read", path)(error)),
        };
        let damaged = || Error::damaged(&path, 0, "the list of segments");
        let (json, sum) = text.trim_end().split_once('\n').ok_or_else(damaged)?;
        if sum != format!("{:08x}", crc32c::crc32c(json.as_bytes())) {
            return Err(damaged());
        }
        let manifest: Self = serde_json::from_str(json).map_err(|_| damaged())?;
        if manifest.version != VERSION {
            return Err(Error::Unknown { path, expected: "a list of segments that this version can read" });
        }
        Ok(Some(manifest))
    }

    /// Replaces the manifest. A crash leaves the old one or this one.
    pub(crate) fn save(&self, folder: &Path) -> Result<()> {
        let path = folder.join("MANIFEST.tmp");
        let json = serde_json::to_string(self).unwrap_or_default();
        let text = format!("{json}\n{:08x}\n", crc32c::crc32c(json.as_bytes()));
        let write = || {
            let mut file = File::create(&path)?;
            file.write_all(text.as_bytes())?;
            sync_file(&file, &path)?;
            rename(&path, &folder.join(NAME))
        };
        write().map_err(Error::io("write", &path))?;
        sync_folder(folder)
    }
}

pub(crate) fn segment_name(number: u64) -> String {
    format!("{number:08}.seg")
}

pub(crate) fn log_name(number: u64) -> String {
    format!("{number:08}.log")
}

/// Whether a name is that of a segment or a log.
pub(crate) fn is_index_file(name: &str) -> bool {
    let stem = name.strip_suffix(".seg").or_else(|| name.strip_suffix(".log"));
    stem.is_some_and(|stem| stem.len() >= 8 && stem.bytes().all(|b| b.is_ascii_digit()))
}

/// Whether a name is one that an index gives to files that can be left over.
pub(crate) fn is_ours(name: &str) -> bool {
    name == "MANIFEST.tmp" || is_index_file(name)
}
