//! Taking a local file: by a second name on the same disk, by shared blocks, or by copying.
//!
//! A file to be moved is linked, not renamed: until the very end it also lies where it was, so a crash at any
//! point loses nothing and leaves nothing that the next try does not clear away.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use grange_base::named_file;
use grange_model::{Checksums, FileName};

use super::base::sync_folder;
use super::temp::Temp;
use super::{Inner, Wanted};
use crate::blob::{Stored, Taking};
use crate::check;
use crate::digest::{By, Summing, sum_file, union};
use crate::error::Error;

pub(super) fn put_file(
    inner: &Inner,
    name: &FileName,
    path: &Path,
    taking: Taking,
    expected: Option<&Checksums>,
    wanted: &Wanted,
) -> Result<Stored, Error> {
    inner.writable()?;
    let failed = |source| Error::Source { name: name.clone(), source };
    let mut file = named_file::open(path).map_err(failed)?;
    let data = file.metadata().map_err(failed)?;
    if !data.is_file() {
        return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "this is not a plain file")));
    }
    let size = data.len();
    let stored = if inner.find(name)?.is_some() {
        // Summed even where the expected checksum is that of the stored bytes: the file may be deleted below.
        let algorithms = union(&inner.checksums, expected);
        let (bytes, sums) = sum_file(&mut wanted.reader(&mut file), By::First, &algorithms, &inner.buffers)
            .map_err(failed)?;
        check::received(name, Some(size), bytes, expected, &sums)?;
        let gone = || Error::NotFound { name: name.clone(), place: inner.place.clone() };
        inner.known(name, &sums, wanted)?.ok_or_else(gone)?
    } else {
        let linked = (taking == Taking::Move).then(|| Temp::link(inner, name, path, wanted)).flatten();
        if let Some(temp) = linked {
            whole(inner, name, temp, size, expected)?
        } else {
            let temp = Temp::new(inner, name, Some(size), wanted)?;
            if temp.clone_from(&file) {
                whole(inner, name, temp, size, expected)?
            } else {
                copied(inner, name, temp, wanted.reader(&mut file), size, expected)?
            }
        }
    };
    if taking == Taking::Move {
        fs::remove_file(path).map_err(failed)?;
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            sync_folder(folder)?;
        }
    }
    Ok(stored)
}

/// The bytes are there already; they need only be proven.
fn whole(
    inner: &Inner,
    name: &FileName,
    mut temp: Temp<'_>,
    size: u64,
    expected: Option<&Checksums>,
) -> Result<Stored, Error> {
    let (algorithms, assumed) = check::while_writing(union(&inner.checksums, expected), expected);
    let (bytes, sums) =
        if algorithms.is_empty() { (temp.size()?, Checksums::default()) } else { temp.sum(&algorithms)? };
    let sums = sums.or(assumed.as_ref());
    check::received(name, Some(size), bytes, expected, &sums)?;
    temp.publish(bytes, sums, assumed.is_some())
}

fn copied(
    inner: &Inner,
    name: &FileName,
    mut temp: Temp<'_>,
    mut file: impl Read,
    size: u64,
    expected: Option<&Checksums>,
) -> Result<Stored, Error> {
    let (algorithms, assumed) = check::while_writing(union(&inner.checksums, expected), expected);
    let mut summing = Summing::new(By::First, &algorithms);
    let mut wrong = None;
    let read = inner.buffers.each(&mut file, |bytes| {
        if let Err(error) = temp.write(&bytes, summing.bytes()) {
            wrong = Some(error);
            return Err(io::ErrorKind::Other.into());
        }
        summing.update(&bytes);
        Ok(())
    });
    if let Some(error) = wrong {
        return Err(error);
    }
    read.map_err(|source| Error::Source { name: name.clone(), source })?;
    let bytes = summing.bytes();
    let sums = summing.finish().or(assumed.as_ref());
    check::received(name, Some(size), bytes, expected, &sums)?;
    temp.publish(bytes, sums, assumed.is_some())
}
