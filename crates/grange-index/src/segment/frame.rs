//! A piece of a segment: checksum, method, contents.

use std::cell::RefCell;

use zstd::zstd_safe::{DCtx, DDict};

use crate::varint::{self, Malformed};

const PLAIN: u8 = 0;
const ZSTD: u8 = 1;

/// Checksum and method before everything else.
const HEAD_BYTES: usize = 5;

/// No piece of ours shrinks more than this; a larger claim is not worth the memory.
const RATIO_MAX: usize = 2000;

/// Unpacked bytes that are worth the memory whatever the claim: earlier versions compressed long lines of one letter, too.
const ANY_RATIO_BYTES: usize = 16 << 20;

const fn is_worth(len: usize, stored_len: usize) -> bool {
    len / RATIO_MAX <= stored_len
}

/// Appends a piece: `packed` compressed if that helps, `plain` as it is.
pub(super) fn put(
    out: &mut Vec<u8>,
    packed: &[u8],
    plain: &[u8],
    compress: impl FnOnce(&[u8], &mut Vec<u8>) -> bool,
) {
    let start = out.len();
    out.extend_from_slice(&[0; HEAD_BYTES]);
    varint::put(out, packed.len() as u64);
    let mut stored = Vec::new();
    if compress(packed, &mut stored) && stored.len() < packed.len() && is_worth(packed.len(), stored.len()) {
        out[start + 4] = ZSTD;
        varint::put(out, stored.len() as u64);
        out.extend_from_slice(&stored);
    } else {
        varint::put(out, packed.len() as u64);
        out.extend_from_slice(packed);
    }
    out.extend_from_slice(plain);
    let crc = crc32c::crc32c(&out[start + 4..]);
    out[start..start + 4].copy_from_slice(&crc.to_le_bytes());
}

/// What a piece holds.
#[derive(Debug)]
pub(super) enum Packed {
    /// Bytes of the piece itself, from and to.
    Stored(usize, usize),
    Unpacked(Vec<u8>),
}

/// Checks a piece and unpacks it. The number is where its plain part begins.
pub(super) fn get(piece: &[u8], dictionary: Option<&DDict<'_>>) -> Result<(Packed, usize), Malformed> {
    let crc =
        piece.get(..4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes).ok_or(Malformed)?;
    if crc32c::crc32c(&piece[4..]) != crc {
        return Err(Malformed);
    }
    get_unchecked(piece, dictionary)
}

/// As [`get`], for bytes whose checksum is of no interest.
pub(super) fn get_unchecked(
    piece: &[u8],
    dictionary: Option<&DDict<'_>>,
) -> Result<(Packed, usize), Malformed> {
    let method = *piece.get(4).ok_or(Malformed)?;
    let at = &mut HEAD_BYTES.clone();
    let len = varint::get_usize(piece, at)?;
    let stored_len = varint::get_usize(piece, at)?;
    let start = *at;
    let stored = varint::take(piece, at, stored_len)?;
    match method {
        PLAIN if len == stored_len => Ok((Packed::Stored(start, *at), *at)),
        ZSTD if len <= ANY_RATIO_BYTES || is_worth(len, stored_len) => {
            let mut unpacked = Vec::with_capacity(len);
            decompress(stored, &mut unpacked, dictionary)?;
            if unpacked.len() == len { Ok((Packed::Unpacked(unpacked), *at)) } else { Err(Malformed) }
        }
        _ => Err(Malformed),
    }
}

thread_local! {
    /// A context costs more to make than a block to unpack.
    static CONTEXT: RefCell<DCtx<'static>> = RefCell::new(DCtx::create());
}

fn decompress(stored: &[u8], out: &mut Vec<u8>, dictionary: Option<&DDict<'_>>) -> Result<(), Malformed> {
    CONTEXT
        .with_borrow_mut(|context| match dictionary {
            Some(dictionary) => context.decompress_using_ddict(out, stored, dictionary),
            None => context.decompress(out, stored),
        })
        .map(drop)
        .map_err(|_| Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unpack(piece: &[u8]) -> Result<Vec<u8>, Malformed> {
        Ok(match get(piece, None)?.0 {
            Packed::Stored(start, end) => piece[start..end].to_vec(),
            Packed::Unpacked(bytes) => bytes,
        })
    }

    /// A form of a megabyte may be one letter again and again.
    #[test]
    fn a_piece_that_shrinks_to_nearly_nothing_can_be_read() {
        for len in [100, 4 << 10, 1 << 20, ANY_RATIO_BYTES + 1] {
            let packed = vec![b'n'; len];
            let mut piece = Vec::new();
            put(&mut piece, &packed, b"plain", |packed, out| {
                *out = zstd::bulk::compress(packed, 3).unwrap();
                true
            });
            assert!(unpack(&piece).unwrap() == packed, "{len}");
        }
    }

    #[test]
    fn a_piece_as_earlier_versions_compressed_it_is_read_and_a_larger_claim_refused() {
        for (len, is_read) in [(1 << 20, true), (ANY_RATIO_BYTES, true), (ANY_RATIO_BYTES * 2, false)] {
            let stored = zstd::bulk::compress(&vec![b'n'; len], 3).unwrap();
            assert!(!is_worth(len, stored.len()), "{len} to {}", stored.len());
            let mut piece = vec![0, 0, 0, 0, ZSTD];
            varint::put(&mut piece, len as u64);
            varint::put(&mut piece, stored.len() as u64);
            piece.extend_from_slice(&stored);
            let crc = crc32c::crc32c(&piece[4..]);
            piece[..4].copy_from_slice(&crc.to_le_bytes());
            assert_eq!(unpack(&piece).is_ok_and(|bytes| bytes.len() == len), is_read, "{len}");
        }
    }
}
