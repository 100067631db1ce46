//! Foreign bytes given to every reader of a piece, past the checksums that would stop them.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

use super::cursor::{Cursor, Position};
use super::frame;
use super::parts::{Part, Top};
use super::postings::{PostingsIndex, read_piece};
use super::read::{Segment, new_cache};
use crate::block::{Block, BlockCursor};
use crate::row::Tables;
use crate::view::CaptureView;

pub(crate) fn read_anything(bytes: &[u8]) {
    let _ = frame::get_unchecked(bytes, None);
    let _ = Tables::read(bytes);
    let _ = Top::read(bytes);
    let _ = PostingsIndex::read(bytes);
    let _ = read_piece(bytes, 0, |_, _| {});
    if let Ok(part) = Part::read(bytes.to_vec()) {
        let _ = part.entry(part.find(b"com,example)/"));
    }
    let half = bytes.first().map_or(0, |first| usize::from(*first) * bytes.len() / 256);
    let (packed, plain) = (Bytes::copy_from_slice(&bytes[half..]), Bytes::copy_from_slice(&bytes[..half]));
    let mut rows = BlockCursor::default();
    if rows.reset(Block { packed, plain }).is_ok() {
        while matches!(rows.advance(), Ok(true)) {
            let _ = rows.row();
        }
    }
    let name = Path::new("foreign");
    if let Ok(segment) = Segment::from_memory(Bytes::copy_from_slice(bytes), name, new_cache(1 << 16)) {
        let mut cursor = Cursor::new(Arc::new(segment), Position::default());
        for _ in 0..1000 {
            if matches!(cursor.advance(), Ok(false)) {
                break;
            }
            let _ = CaptureView::new(cursor.row(), cursor.segment()).to_capture();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_bytes_make_a_reader_panic(bytes in prop::collection::vec(prop_oneof![0u8..4, any::<u8>()], 0..400)) {
            super::read_anything(&bytes);
        }
    }
}
