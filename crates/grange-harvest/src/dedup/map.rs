//! A file as memory.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::ops::Deref;

/// The bytes of a file that nobody changes.
#[derive(Debug)]
pub(super) struct Map(Option<memmap2::Mmap>);

impl Map {
    /// Maps the whole file. Only for files that are written aside, renamed and never written to again; taking their
    /// names away is fine.
    pub(super) fn new(file: &File) -> io::Result<Map> {
        if file.metadata()?.len() == 0 {
            return Ok(Map(None));
        }
        // SAFETY: a map is sound as long as nobody truncates or changes the file under it. Index files are complete
        // before they get their names and are only ever replaced or unlinked (see `build` and `cache`), both of which
        // leave the mapped file as it is.
        let map = unsafe { memmap2::Mmap::map(file)? };
        Ok(Map(Some(map)))
    }

    /// Lookups go anywhere: reading ahead would only push other pages out.
    pub(super) fn random(&self) {
        if let Some(map) = &self.0 {
            // Advice only.
            let _ = map.advise(memmap2::Advice::Random);
        }
    }
}

impl Deref for Map {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }
}
