//! What must hold for any bytes: shared by the property tests and the fuzz target.

use oaipmh::{Item, Limits, Page, PageReader};

/// Small, so that limits are met by small inputs.
pub(crate) fn limits() -> Limits {
    Limits { record_bytes_max: 4096, depth_max: 24 }
}

/// Reads a body in pieces of these lengths, again and again.
pub(crate) fn read_in_pieces(body: &[u8], lengths: &[usize]) -> Page<Item> {
    let mut reader = PageReader::new(limits());
    let (mut items, mut rest) = (Vec::new(), body);
    let mut lengths = lengths.iter().cycle();
    while !rest.is_empty() {
        let length = lengths.next().map_or(rest.len(), |length| (*length).clamp(1, rest.len()));
        reader.push(&rest[..length]);
        rest = &rest[length..];
        items.extend(std::iter::from_fn(|| reader.next_item()));
        // One record, one tag (64 KB), the junk before a document (64 KB), what may grow when decoded.
        assert!(
            reader.held_bytes() <= 4096 * 2 + (64 << 10) + 4 * length + 1024,
            "{} bytes",
            reader.held_bytes()
        );
    }
    let mut page = reader.finish();
    items.append(&mut page.items);
    page.items = items;
    page
}

/// Whatever the bytes: no panic, the same however they are cut, and sound XML comes out.
pub(crate) fn answer(body: &[u8]) {
    let whole = PageReader::read(body, limits());
    for lengths in [&[1][..], &[7, 1, 64], &[1000]] {
        assert_eq!(read_in_pieces(body, lengths), whole, "in pieces of {lengths:?}");
    }
    for item in &whole.items {
        let Item::Record(record) = item else { continue };
        for xml in record.metadata.iter().chain(&record.about) {
            if let Err(error) = roxmltree::Document::parse(xml) {
                panic!("{error}: {xml}");
            }
        }
    }
}
