//! The decisions every backend takes alike, as pure functions.

use grange_model::{Algorithm, Checksums, FileName};

use crate::blob::{Source, Stored, Trailer};
use crate::digest::union;
use crate::error::Error;

/// What was told about the bytes before and after them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Announced {
    pub(crate) size: Option<u64>,
    pub(crate) expected: Option<Checksums>,
    pub(crate) trailer: Option<Trailer>,
}

impl Announced {
    pub(crate) fn of(source: &Source<'_>, expected: Option<&Checksums>) -> Self {
        let expected = expected.copied().filter(|sums| !sums.is_empty());
        Self { size: source.size, expected, trailer: source.trailer.clone() }
    }

    /// The algorithms to compute, so that everything announced can be compared.
    pub(crate) fn algorithms(&self, configured: &[Algorithm]) -> Vec<Algorithm> {
        let mut algorithms = union(configured, self.expected.as_ref());
        // What a trailer will hold is only known at the end; senders write the strongest.
        if self.trailer.is_some() && !algorithms.contains(&Algorithm::Sha512) {
            algorithms.push(Algorithm::Sha512);
        }
        algorithms
    }

    /// Judges what came.
    pub(crate) fn check(&self, name: &FileName, size: u64, sums: &Checksums) -> Result<(), Error> {
        received(name, self.size, size, self.expected.as_ref(), sums)?;
        let trailer = self.trailer.as_ref().and_then(|trailer| trailer.get());
        received(name, None, size, trailer, sums)
    }
}

/// What is to be computed of bytes while they are written, where they are read back afterwards anyway: everything but
/// the checksum that decides, if it was announced. That one is then taken as announced and proven by reading back.
/// The second value is that checksum.
pub(crate) fn while_writing(
    algorithms: Vec<Algorithm>,
    announced: Option<&Checksums>,
) -> (Vec<Algorithm>, Option<Checksums>) {
    let decides = algorithms.iter().max().copied();
    let Some((algorithm, _)) = announced.and_then(Checksums::strongest).filter(|one| Some(one.0) == decides)
    else {
        return (algorithms, None);
    };
    let rest = algorithms.into_iter().filter(|one| *one != algorithm).collect();
    (rest, announced.map(|sums| sums.only(&[algorithm])))
}

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
        let (announced, received) = (Box::new(*announced), Box::new(*sums));
        Err(Error::WrongChecksum { name: name.clone(), announced, received })
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
        let (known, given) = (Box::new(known), Box::new(*given));
        Err(Error::Conflict { name: name.clone(), place: place.to_owned(), known, given })
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
    Err(Error::ReadBack { name, place, written: Box::new(*written.1), read: Box::new(read.1) })
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
    Err(Error::OtherBytes { name, place, expected: Box::new(*expected), found: Box::new(found) })
}
