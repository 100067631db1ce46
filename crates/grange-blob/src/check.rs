//! The decisions every backend takes alike, as pure functions.

use grange_model::{Algorithm, Checksums, FileName};

use crate::blob::Stored;
use crate::error::Error;

/// Whether what came is what was announced. Every announced checksum must be right, not only the strongest:
/// a sender that is wrong about one of them is wrong about its file.
pub(crate) fn received(
    name: &FileName,
    announced_size: Option<u64>,
    size: u64,
    announced: Option<&Checksums>,
    sums: &Checksums,
) -> Result<(), Error> {
    if let Some(announced) = announced_size.filter(|announced| *announced != size) {
        return Err(Error::WrongSize { name: name.clone(), announced, received: size });
    }
    let Some(announced) = announced else { return Ok(()) };
    if announced.algorithms().all(|algorithm| announced.get(algorithm) == sums.get(algorithm)) {
        Ok(())
    } else {
        Err(Error::WrongChecksum { name: name.clone(), announced: *announced, received: *sums })
    }
}

/// The answer for a name that is known: `known` are the sums of what lies there, `given` those of what was sent.
pub(crate) fn known(
    name: &FileName,
    place: &str,
    size: u64,
    known: Checksums,
    given: &Checksums,
) -> Result<Stored, Error> {
    if known.same_as(given) {
        Ok(Stored { size, checksums: known, already: true })
    } else {
        Err(Error::Conflict { name: name.clone(), place: place.to_owned(), known, given: *given })
    }
}

/// What was read back, against what was written; the strongest decides.
pub(crate) fn read_back(
    name: &FileName,
    place: &str,
    written: (u64, &Checksums),
    read: (u64, Checksums),
) -> Result<(), Error> {
    if written.0 == read.0 && written.1.same_as(&read.1) {
        return Ok(());
    }
    let (name, place) = (name.clone(), place.to_owned());
    Err(Error::ReadBack { name, place, written: *written.1, read: read.1 })
}

/// The strongest algorithm of a checksum that must decide.
pub(crate) fn deciding(name: &FileName, expected: &Checksums) -> Result<Vec<Algorithm>, Error> {
    let strongest = expected.strongest().map(|(algorithm, _)| vec![algorithm]);
    strongest.ok_or_else(|| Error::NoChecksum { name: name.clone() })
}

/// Whether the file is the one meant by who wants it removed.
pub(crate) fn removable(
    name: &FileName,
    place: &str,
    expected: &Checksums,
    found: Checksums,
) -> Result<(), Error> {
    if found.same_as(expected) {
        return Ok(());
    }
    let (name, place) = (name.clone(), place.to_owned());
    Err(Error::OtherBytes { name, place, expected: *expected, found })
}
