//! A series of files: a new one is started when the current one is full.

use std::io;
use std::path::PathBuf;

use jiff::Timestamp;

use super::file::{FileOptions, WarcFile, Written, open_path};
use super::name::NameTemplate;
use super::record::NewRecord;
use crate::date::Date;

/// How a series is written.
#[derive(Clone, Debug)]
pub struct SeriesOptions {
    /// The folder of the files.
    pub folder: PathBuf,
    /// Their names.
    pub name: NameTemplate,
    /// The size at which a new file is started. Records are never cut, so files grow a little beyond.
    pub roll_at: u64,
    /// How each file is written.
    pub file: FileOptions,
}

/// A series of files in one folder.
#[derive(Debug)]
pub struct Series {
    options: SeriesOptions,
    serial: u64,
    current: Option<WarcFile>,
    closed: Vec<PathBuf>,
}

impl Series {
    /// Starts a series; the first file is opened with the first record and takes the number `serial`.
    pub fn new(options: SeriesOptions, serial: u64) -> Series {
        Series { options, serial, current: None, closed: Vec::new() }
    }

    /// Writes records that belong together into one file: a response, its request and its metadata.
    pub fn write(&mut self, records: &mut [NewRecord<'_>]) -> io::Result<Vec<Written>> {
        if self.current.as_ref().is_some_and(|file| file.size() >= self.options.roll_at) {
            self.roll()?;
        }
        let file = match &mut self.current {
            Some(file) => file,
            none => none.insert(open_next(&self.options, &mut self.serial)?),
        };
        records.iter_mut().map(|record| file.write(record)).collect()
    }

    /// The file being written, if there is one.
    pub fn current(&self) -> Option<&WarcFile> {
        self.current.as_ref()
    }

    /// Closes the current file; the next record starts another.
    pub fn roll(&mut self) -> io::Result<()> {
        if let Some(file) = self.current.take() {
            self.closed.push(file.close()?);
        }
        Ok(())
    }

    /// The files closed since this was last asked.
    pub fn take_closed(&mut self) -> Vec<PathBuf> {
        std::mem::take(&mut self.closed)
    }

    /// Closes the current file and answers all files not yet taken.
    pub fn finish(mut self) -> io::Result<Vec<PathBuf>> {
        self.roll()?;
        Ok(self.closed)
    }
}

/// Opens a file under the next free name.
fn open_next(options: &SeriesOptions, serial: &mut u64) -> io::Result<WarcFile> {
    let now = Date::from(Timestamp::now());
    loop {
        let name = options.name.name(now, *serial) + options.file.compression.suffix();
        let path = options.folder.join(name);
        *serial += 1;
        if path.exists() || open_path(&path).exists() {
            continue;
        }
        match WarcFile::create(&path, &options.file, now) {
            // Another process was faster; its file is not ours.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            result => return result,
        }
    }
}
