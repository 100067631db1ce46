//! After a crash: cutting a file at its last whole record.

use std::fs::OpenOptions;
use std::io;
use std::path::Path;

use crate::problem::{Kind, Level, Problem};
use crate::reader::Reader;

/// What was kept of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// The number of whole records.
    pub records: u64,
    /// The size of the file now.
    pub kept: u64,
    /// How many bytes were cut off.
    pub cut: u64,
}

/// Cuts what follows the last whole record of a file. Damage before that is left alone: good records may
/// follow it, and repair is not the matter of a restart.
pub fn recover(path: impl AsRef<Path>) -> io::Result<Recovered> {
    let path = path.as_ref();
    let size = std::fs::metadata(path)?.len();
    let mut reader = Reader::open(path)?;
    let (mut records, mut kept) = (0, 0);
    while let Some(mut record) = reader.next()? {
        // What lay before the record says nothing about it.
        let before =
            record.problems().iter().filter(|problem| problem.offset < record.place().offset).count();
        record.finish()?;
        let whole = record.problems()[before..].iter().all(is_harmless);
        if let Some(length) = record.stored_len()
            && whole
        {
            records += 1;
            kept = record.place().offset + length;
        }
    }
    let cut = size - kept.min(size);
    if cut > 0 {
        let file = OpenOptions::new().write(true).open(path)?;
        file.set_len(kept)?;
        file.sync_all()?;
    }
    Ok(Recovered { records, kept, cut })
}

fn is_harmless(problem: &Problem) -> bool {
    problem.kind.level() < Level::Damage && problem.kind != Kind::WrongRecordEnd
}
