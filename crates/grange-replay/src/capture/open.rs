//! Finding a record where the index says it is, and choosing how to read it.

use std::cell::RefCell;
use std::io::{self, Read};
use std::sync::Arc;

use bytes::Bytes;
use libdeflater::Decompressor;
use warc::{Level, Reader};

use super::body::Body;
use super::record_match::{Fit, fits};
use super::stream;
use super::{About, Place, Undo};
use crate::collection::Collection;
use crate::holdings::{Holdings, HoldingsError};

/// A record up to this long is read at once: nearly all of them, at a cost that an answer in memory has anyway.
const STORED_BYTES_SMALL: u64 = 512 << 10;
/// A body up to this long is kept in memory while it is sent.
pub(super) const BODY_BYTES_SMALL: usize = 1 << 20;

/// Why a record could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("the file {file} that holds it is not here; it may have been moved or not yet arrived")]
    NoFile { file: String },
    #[error(
        "{file} has no such record at byte {offset}; the index is of another version of the file, or wrong"
    )]
    NoRecord { file: String, offset: u64 },
    #[error("the index names no file and offset for it")]
    NoPlace,
    #[error(transparent)]
    Holdings(#[from] HoldingsError),
    #[error("{file} could not be read at byte {offset}")]
    Read { file: String, offset: u64, source: io::Error },
}

/// Opens a record. What is undone of its body's packing is decided by what the record says.
pub async fn open(
    collection: &Collection,
    place: &Place,
    undo: impl Fn(&About) -> Undo + Send + 'static,
) -> Result<(Arc<About>, Body), OpenError> {
    let Collection { holdings, lately, .. } = collection;
    if let Some(found) = lately.get(place, &undo) {
        return Ok(found);
    }
    let read_error = |source| OpenError::Read { file: place.file.clone(), offset: place.offset, source };
    if let Some(length) = place.length.filter(|length| (1..=STORED_BYTES_SMALL).contains(length)) {
        let bytes = holdings.read_at(&place.file, place.offset, length).await?;
        let bytes = bytes.ok_or_else(|| OpenError::NoFile { file: place.file.clone() })?;
        match at_once(bytes, place, &undo).map_err(read_error)? {
            AtOnce::Whole(about, undo, body) => {
                let about = Arc::from(about);
                lately.put(place, &about, undo, &body);
                return Ok((about, Body::Whole(body)));
            }
            AtOnce::No => {}
            AtOnce::Damaged => {
                // Its lengths may lie, so none is promised to whoever asked.
                let (mut about, mut body) =
                    stream::open(Arc::clone(holdings), place.clone(), None, undo).await?;
                about.payload_len = None;
                body.forget_len();
                return Ok((Arc::new(about), body));
            }
        }
    }
    let (about, body) = stream::open(Arc::clone(holdings), place.clone(), None, undo).await?;
    Ok((Arc::new(about), body))
}

/// Opens the first record at a place of a file. Nothing from `end` on is read, whatever the record says of its length.
pub(crate) async fn open_at(
    holdings: &Arc<dyn Holdings>,
    place: &Place,
    end: Option<u64>,
    undo: impl Fn(&About) -> Undo + Send + 'static,
) -> Result<(About, Body), OpenError> {
    stream::open(Arc::clone(holdings), place.clone(), end, undo).await
}

/// What came of reading a record from the bytes that the index says it takes.
enum AtOnce {
    Whole(Box<About>, Undo, Bytes),
    /// It is not that record, needs more of the file, or its body is too long for memory.
    No,
    /// It does not end where the index or its own header says.
    Damaged,
}

fn at_once(bytes: Bytes, place: &Place, undo: impl Fn(&About) -> Undo) -> io::Result<AtOnce> {
    // zstd frames may need the dictionary at the start of the file.
    let zstd = bytes.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]);
    if zstd {
        return Ok(AtOnce::No);
    }
    let mut reader = Reader::from_bytes(unpacked(bytes))?;
    let Some(mut record) = reader.next()? else { return Ok(AtOnce::No) };
    if !fits(&record, place, Fit::Exact) {
        return Ok(AtOnce::No);
    }
    let about = About::of(&mut record)?;
    let mut body = Vec::with_capacity(about.payload_len.unwrap_or(0).min(BODY_BYTES_SMALL as u64) as usize);
    let most = BODY_BYTES_SMALL as u64 + 1;
    let undo = undo(&about);
    match undo {
        Undo::Skip => return Ok(AtOnce::Whole(Box::new(about), undo, Bytes::new())),
        Undo::Transfer => record.payload()?.take(most).read_to_end(&mut body)?,
        Undo::Content { .. } => record.content()?.take(most).read_to_end(&mut body)?,
    };
    // A length that is too short in the index cuts the record off; the file itself knows better.
    let cut = record.problems().iter().any(|problem| problem.kind.level() == Level::Damage);
    Ok(match () {
        () if cut => AtOnce::Damaged,
        () if body.len() > BODY_BYTES_SMALL => AtOnce::No,
        () => AtOnce::Whole(Box::new(about), undo, body.into()),
    })
}

thread_local! {
    static UNPACKER: RefCell<Decompressor> = RefCell::new(Decompressor::new());
}

/// A gzip member unpacked in one step into as much memory as its end asks for. Anything else, also a member that lies about
/// its length, stays as it is: the reader takes it apart piece by piece.
fn unpacked(bytes: Bytes) -> Vec<u8> {
    let Some((_, end)) = bytes.split_last_chunk::<4>().filter(|_| bytes.starts_with(&[0x1f, 0x8b, 8])) else {
        return bytes.into();
    };
    let len = u32::from_le_bytes(*end) as usize;
    if len > BODY_BYTES_SMALL {
        return bytes.into();
    }
    let mut plain = vec![0; len];
    let done = UNPACKER.with_borrow_mut(|unpacker| unpacker.gzip_decompress(&bytes, &mut plain));
    if done == Ok(len) { plain } else { bytes.into() }
}
