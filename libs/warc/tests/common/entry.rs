//! The entry points that fuzzing drives, shared by `fuzz/` and the mutation tests. They must neither panic
//! nor run on, whatever the bytes.

use std::io::{self, Cursor};

use warc::{Dechunker, HttpHead, Piece, Reader};

/// Reads a file every way there is and checks what must hold of any file.
pub fn reader(bytes: &[u8]) {
    let len = bytes.len() as u64;
    let mut places = Vec::new();
    let mut reader = Reader::from_bytes(bytes).unwrap();
    while let Some(mut record) = reader.next().unwrap() {
        record.http().unwrap();
        record.digest_check().unwrap();
        record.finish().unwrap();
        let place = record.place();
        assert!(place.offset < len);
        assert!(record.stored_len().is_none_or(|stored| place.offset + stored <= len));
        let _ = (record.date(), record.segment(), record.revisit(), record.is_http());
        if place.is_seekable() && places.len() < 8 {
            places.push(place.offset);
        }
        assert!(record.problems().iter().all(|problem| problem.offset <= len));
    }

    // A stream gives no more records than a file that can be positioned.
    let mut reader = Reader::new(Cursor::new(bytes.to_vec())).unwrap();
    while let Some(mut record) = reader.next().unwrap() {
        io::copy(&mut record.content().unwrap(), &mut io::sink()).unwrap();
    }

    for offset in places {
        let mut reader = Reader::from_bytes(bytes).unwrap();
        reader.seek(offset).unwrap();
        let mut record = reader
            .next()
            .unwrap()
            .unwrap_or_else(|| panic!("no record at {offset} of {}", bytes.escape_ascii()));
        assert_eq!(record.place().offset, offset);
        io::copy(&mut record.payload().unwrap(), &mut io::sink()).unwrap();
    }
}

/// Reads bytes as an ARC file, by putting them behind a sound first record.
pub fn arc(bytes: &[u8]) {
    let mut file = b"filedesc://x 0.0.0.0 20260102030405 text/plain 0\n\n".to_vec();
    file.extend_from_slice(bytes);
    reader(&file);
}

/// Reads bytes as an HTTP head.
pub fn http(bytes: &[u8]) {
    if let Some((head, _)) = HttpHead::from_bytes(bytes) {
        assert!(head.len() <= bytes.len() && head.start_line().len() <= head.len());
        let _ = (head.status(), head.reason(), head.method(), head.target(), head.mime(), head.is_chunked());
        assert!(head.iter().all(|(name, value)| name.len() + value.len() <= 2 * bytes.len()));
    }
}

/// Undoes the chunked coding at once and in pieces; both must agree.
pub fn chunked(bytes: &[u8]) {
    let (whole, flaw) = Dechunker::decode(bytes);
    assert!(whole.len() <= bytes.len());
    let size = bytes.first().map_or(1, |b| usize::from(*b) % 7 + 1);
    let mut chunks = Dechunker::new();
    let mut pieces = Vec::new();
    for mut piece in bytes.chunks(size) {
        while !piece.is_empty() {
            match chunks.step(piece) {
                Piece::Data(n) => {
                    pieces.extend_from_slice(&piece[..n]);
                    piece = &piece[n..];
                }
                Piece::Skip(n) => piece = &piece[n..],
                Piece::Held(held) => pieces.extend_from_slice(held),
            }
        }
    }
    pieces.extend_from_slice(chunks.end());
    assert_eq!((pieces, chunks.flaw()), (whole, flaw));
}
