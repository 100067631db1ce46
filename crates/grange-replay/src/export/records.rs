//! Records copied out of their files, one gzip member each.

use std::collections::HashSet;
use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use grange_index::query::Next;
use grange_index::{Capture, Position};
use tokio::runtime::Handle;

use super::Selection;
use crate::capture::{Place, original_of, reader_at};
use crate::wayback::View;

/// Captures read from the index at a time, so that no lock and no cursor waits for a slow reader.
const BATCH: usize = 256;
/// Read from a file at a time.
const READ_BYTES: u64 = 1 << 20;

/// One record in the new file.
#[derive(Debug)]
pub(super) struct Copied<'c> {
    pub(super) capture: &'c Capture,
    pub(super) offset: u64,
    pub(super) length: u64,
}

/// A writer that knows how much was written.
pub(super) trait Sink: Write {
    fn written(&self) -> u64;
}

impl Sink for super::Out {
    fn written(&self) -> u64 {
        self.written
    }
}

/// Writes a warcinfo that says what was selected, then every capture; tells of each.
pub(super) fn warc(
    view: &View,
    selection: &Selection,
    runtime: &Handle,
    out: &mut dyn Sink,
    tell: &mut dyn FnMut(&Copied<'_>) -> io::Result<()>,
) -> io::Result<()> {
    write_info(view, selection, out)?;
    let mut seen = HashSet::new();
    let mut query = selection.query.clone();
    loop {
        let mut batch = Vec::with_capacity(BATCH);
        let mut last: Option<Position> = None;
        let mut rows = 0;
        let looked = query.run(&view.snapshot, |row| {
            rows += 1;
            if view.sees(row) {
                batch.push(row.to_capture());
            }
            last = Some(row.position());
            Ok(if rows < BATCH { Next::More } else { Next::Stop })
        });
        looked.map_err(io::Error::other)?;
        for capture in batch {
            let original = if capture.is_revisit() {
                original_of(&view.snapshot, &capture).map_err(io::Error::other)?
            } else {
                None
            };
            for capture in original.into_iter().chain([capture]) {
                if !seen.insert((capture.file.clone(), capture.offset)) {
                    continue;
                }
                let offset = out.written();
                if copy(view, &capture, runtime, out)? {
                    let length = out.written() - offset;
                    tell(&Copied { capture: &capture, offset, length })?;
                }
            }
        }
        match last {
            Some(last) if rows == BATCH => query.after = Some(last),
            _ => return Ok(()),
        }
    }
}

fn write_info(view: &View, selection: &Selection, out: &mut dyn Sink) -> io::Result<()> {
    let clean = |text: &str| text.replace(['\r', '\n'], " ");
    let fields = format!(
        "software: Grange {}\r\nformat: WARC File Format 1.1\r\ndescription: exported from the collection {}: {}\r\n",
        env!("CARGO_PKG_VERSION"),
        clean(&view.collection.name),
        clean(&selection.text)
    );
    let record = format!(
        "WARC/1.1\r\nWARC-Type: warcinfo\r\nWARC-Record-ID: {}\r\nWARC-Date: {}\r\nContent-Type: application/warc-fields\r\n\
         Content-Length: {}\r\n\r\n{fields}\r\n\r\n",
        warc::write::RecordId::random(),
        jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ"),
        fields.len()
    );
    let mut encoder = GzEncoder::new(out, Compression::default());
    encoder.write_all(record.as_bytes())?;
    encoder.finish().map(drop)
}

/// Copies one record. False if it cannot be read: the others are worth having without it.
fn copy(view: &View, capture: &Capture, runtime: &Handle, out: &mut dyn Sink) -> io::Result<bool> {
    let Some(place) = Place::of(capture) else { return Ok(false) };
    let holdings = &view.collection.holdings;
    let read = |offset: u64, len: u64| {
        let read = runtime.block_on(holdings.read_at(&place.file, offset, len)).map_err(io::Error::other);
        read.map(Option::unwrap_or_default)
    };
    let first = read(place.offset, place.length.unwrap_or(READ_BYTES).min(READ_BYTES))?;
    if first.is_empty() {
        tracing::warn!(
            file = place.file,
            offset = place.offset,
            "a record could not be exported: it is not there"
        );
        return Ok(false);
    }
    if let Some(length) =
        place.length.filter(|_| first.starts_with(&[0x1f, 0x8b, 8]) && is_alone(&first, &place))
    {
        let mut at = first.len() as u64;
        out.write_all(&first)?;
        while at < length {
            let piece = read(place.offset + at, (length - at).min(READ_BYTES))?;
            if piece.is_empty() {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "a stored record ends early"));
            }
            out.write_all(&piece)?;
            at += piece.len() as u64;
        }
        return Ok(true);
    }
    pack(view, &place, runtime, out)
}

/// Whether a gzip member begins with the record that is meant; one that is packed with others is unpacked and packed alone.
fn is_alone(first: &[u8], place: &Place) -> bool {
    let Ok(mut reader) = warc::Reader::from_bytes(first) else { return false };
    let Ok(Some(record)) = reader.next() else { return false };
    !record.is_arc() && crate::capture::matches(&record, place)
}

/// A record that is stored otherwise, in a gzip member of its own. ARC headers become those of WARC.
fn pack(view: &View, place: &Place, runtime: &Handle, out: &mut dyn Sink) -> io::Result<bool> {
    let mut reader = reader_at(&view.collection.holdings, place, runtime)?;
    let mut first = true;
    while let Some(mut record) = reader.next()? {
        if !first && record.place().is_seekable() {
            break;
        }
        first = false;
        if !crate::capture::matches(&record, place) {
            continue;
        }
        let Some(length) = record.content_length() else { return Ok(false) };
        let head =
            if record.is_arc() { warc_head(&mut record, length)? } else { record.header().raw().to_vec() };
        let mut encoder = GzEncoder::new(out, Compression::default());
        encoder.write_all(&head)?;
        io::copy(&mut record.block(), &mut encoder)?;
        encoder.write_all(b"\r\n\r\n")?;
        encoder.finish()?;
        return Ok(true);
    }
    Ok(false)
}

fn warc_head(record: &mut warc::Record<'_>, length: u64) -> io::Result<Vec<u8>> {
    let is_http = record.http()?.is_some();
    let text =
        |bytes: Option<&[u8]>| String::from_utf8_lossy(bytes.unwrap_or_default()).replace(['\r', '\n'], " ");
    let (kind, content_type) = if is_http {
        ("response", "application/http; msgtype=response".to_owned())
    } else {
        ("resource", text(record.content_type()))
    };
    let date = record.date().map_or_else(jiff::Timestamp::now, |date| date.timestamp());
    let head = format!(
        "WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Record-ID: {}\r\nWARC-Date: {}\r\nWARC-Target-URI: {}\r\n\
         Content-Type: {content_type}\r\nContent-Length: {length}\r\n\r\n",
        warc::write::RecordId::random(),
        date.strftime("%Y-%m-%dT%H:%M:%SZ"),
        text(record.target_uri())
    );
    Ok(head.into_bytes())
}
