//! Records copied out of their files, one gzip member each.

use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;
use grange_index::query::{Keys, Next, Query};
use grange_index::{Capture, Position};
use tokio::runtime::Handle;

use super::Selection;
use super::missing::Missing;
use crate::capture::{About, Fit, OriginalFinder, Place, described, fits, reader_at};
use crate::holdings::Holdings;
use crate::piece_channel::BodyWriter;
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

impl Sink for BodyWriter {
    fn written(&self) -> u64 {
        self.written()
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
    let originals = OriginalFinder::new(false);
    let mut brought = Brought::default();
    let mut missing = Missing::default();
    let mut query = selection.query.clone();
    loop {
        // A client that left ends it, also where everything is hidden.
        out.flush()?;
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
                originals.find(&view.snapshot, &capture).map_err(io::Error::other)?
            } else {
                None
            };
            // What the reader may not see does not come along: a revisit then stands without it. What is selected itself
            // comes in its turn.
            let original = original
                .filter(|original| brought.is_new(original))
                .map(|original| as_listed(view, original, runtime))
                .filter(|original| {
                    !is_selected(&selection.query, original) && view.access.hides_capture(original).is_none()
                });
            for capture in original.into_iter().chain([capture]) {
                let offset = out.written();
                match copy(view, &capture, runtime, out)? {
                    Outcome::Copied => {
                        let length = out.written() - offset;
                        tell(&Copied { capture: &capture, offset, length })?;
                    }
                    Outcome::Hidden => {}
                    Outcome::Lost(reason) => missing.add(&capture, &reason),
                }
            }
        }
        match last {
            Some(last) if rows == BATCH => query.after = Some(last),
            _ => return missing.write(out),
        }
    }
}

/// Whether a capture is among those that a query is about.
fn is_selected(query: &Query, capture: &Capture) -> bool {
    let has_key = match &query.keys {
        Keys::Exact(key) => capture.surt == *key,
        Keys::Range(start, end) => {
            *start <= capture.surt && end.as_ref().is_none_or(|end| capture.surt < *end)
        }
    };
    has_key && (query.from..=query.to).contains(&capture.time)
}

/// An original of which a line names only the place, as the index lists it, or else as its record says.
fn as_listed(view: &View, original: Capture, runtime: &Handle) -> Capture {
    if !original.surt.is_empty() {
        return original;
    }
    let Some(place) = Place::of(&original) else { return original };
    // If it is not there or cannot be read, copying it reports so.
    let Ok(Some(about)) = about_at(view, &place, runtime) else { return original };
    let original = described(original, &about);
    view.access.listed(&place.file, place.offset, &original.surt, original.time).unwrap_or(original)
}

fn about_at(view: &View, place: &Place, runtime: &Handle) -> io::Result<Option<About>> {
    at_record(&view.collection.holdings, place, runtime, About::of)
}

/// Does something with a record: the one that its index line describes, or else the first one there that is of its URL.
fn at_record<T>(
    holdings: &Arc<dyn Holdings>,
    place: &Place,
    runtime: &Handle,
    mut act: impl FnMut(&mut warc::Record<'_>) -> io::Result<T>,
) -> io::Result<Option<T>> {
    for fit in Fit::ALL {
        let mut reader = reader_at(holdings, place, runtime)?;
        let mut first = true;
        while let Some(mut record) = reader.next()? {
            if !first && record.place().is_seekable() {
                break;
            }
            if fits(&record, place, fit) {
                return act(&mut record).map(Some);
            }
            first = false;
        }
    }
    Ok(None)
}

/// Originals that were looked at, as hashes of their places.
#[derive(Default)]
struct Brought {
    hasher: RandomState,
    places: HashSet<u64>,
}

/// Originals remembered, in some 20 MB. Behind them one may come along again.
const BROUGHT_MAX: usize = 1_000_000;

impl Brought {
    fn is_new(&mut self, original: &Capture) -> bool {
        if self.places.len() >= BROUGHT_MAX {
            self.places.clear();
        }
        self.places.insert(self.hasher.hash_one((&original.file, original.offset)))
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

/// What came of copying one record.
enum Outcome {
    Copied,
    /// Its own type, or its URL, hides it.
    Hidden,
    /// It cannot be read. The others are worth having without it.
    Lost(String),
}

/// Copies one record.
fn copy(view: &View, capture: &Capture, runtime: &Handle, out: &mut dyn Sink) -> io::Result<Outcome> {
    let Some(place) = Place::of(capture) else {
        return Ok(Outcome::Lost("the index names no file and offset for it".to_owned()));
    };
    let holdings = &view.collection.holdings;
    let stored = match find(view, capture, &place, runtime) {
        Ok(Found::Alone(length)) => length,
        Ok(Found::Beside { names_hidden }) => {
            let packed = pack(holdings, &place, runtime, names_hidden, out)?;
            let lost = || Outcome::Lost("its length is not known".to_owned());
            return Ok(if packed { Outcome::Copied } else { lost() });
        }
        Ok(Found::Hidden) => return Ok(Outcome::Hidden),
        Ok(Found::Nothing) => return Ok(lost(&place, "it is not where the index says")),
        Err(error) => return Ok(lost(&place, &error.to_string())),
    };
    copy_range(holdings, &place.file, place.offset..place.offset + stored, runtime, out)?;
    Ok(Outcome::Copied)
}

fn lost(place: &Place, reason: &str) -> Outcome {
    let Place { file, offset, url, .. } = place;
    tracing::warn!(file, offset, url, reason, "a record could not be exported");
    Outcome::Lost(reason.to_owned())
}

/// How a record is stored.
enum Found {
    /// In gzip members of its own, so many bytes.
    Alone(u64),
    /// In a member with others, or otherwise than in gzip: only unpacking tells it apart. Or its header names a hidden
    /// capture, and cannot stay as it is.
    Beside {
        names_hidden: bool,
    },
    Hidden,
    Nothing,
}

/// Reads a record to its end: only then is it known that nothing else is in its member, such as one that is hidden.
fn find(view: &View, capture: &Capture, place: &Place, runtime: &Handle) -> io::Result<Found> {
    for fit in Fit::ALL {
        let found = find_fitting(view, capture, place, runtime, fit)?;
        if !matches!(found, Found::Nothing) {
            return Ok(found);
        }
    }
    Ok(Found::Nothing)
}

fn find_fitting(
    view: &View,
    capture: &Capture,
    place: &Place,
    runtime: &Handle,
    fit: Fit,
) -> io::Result<Found> {
    let mut reader = match reader_at(&view.collection.holdings, place, runtime) {
        Ok(reader) => reader,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(error) => return Err(error),
    };
    let mut alone = reader.container() == warc::Container::Gzip;
    let mut first = true;
    while let Some(mut record) = reader.next()? {
        if !first && record.place().is_seekable() {
            break;
        }
        if !fits(&record, place, fit) {
            (alone, first) = (false, false);
            continue;
        }
        let about = About::of(&mut record)?;
        let capture = &described(capture.clone(), &about);
        if view.access.hides_content(capture, &about, None).is_some() {
            return Ok(Found::Hidden);
        }
        let names_hidden =
            about.refers.as_ref().is_some_and(|refers| view.access.hides_referred(refers, capture));
        alone = alone && first && !record.is_arc() && !names_hidden;
        let beside = Found::Beside { names_hidden };
        if !alone {
            return Ok(beside);
        }
        record.finish()?;
        // Behind a damaged record there may be remains of another one.
        let length = record.stored_len().filter(|_| record.problems().is_empty());
        let Some(length) = length else { return Ok(beside) };
        let next = reader.next().map(|next| next.is_none_or(|next| next.place().is_seekable()));
        return Ok(if next.unwrap_or(false) { Found::Alone(length) } else { beside });
    }
    Ok(Found::Nothing)
}

/// Copies bytes of a file as they are stored.
pub(crate) fn copy_range(
    holdings: &Arc<dyn Holdings>,
    file: &str,
    range: Range<u64>,
    runtime: &Handle,
    out: &mut (impl Write + ?Sized),
) -> io::Result<()> {
    let mut at = range.start;
    while at < range.end {
        let read = holdings.read_at(file, at, (range.end - at).min(READ_BYTES));
        let piece = runtime.block_on(read).map_err(io::Error::other)?.unwrap_or_default();
        if piece.is_empty() {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "a stored record ends early"));
        }
        out.write_all(&piece)?;
        at += piece.len() as u64;
    }
    Ok(())
}

/// A record that is stored otherwise, in a gzip member of its own. ARC headers become those of WARC.
fn pack(
    holdings: &Arc<dyn Holdings>,
    place: &Place,
    runtime: &Handle,
    names_hidden: bool,
    out: &mut dyn Sink,
) -> io::Result<bool> {
    let packed = at_record(holdings, place, runtime, |record| {
        if names_hidden { pack_with(record, without_original, out) } else { pack_record(record, out) }
    });
    packed.map(|packed| packed.unwrap_or(false))
}

/// Writes a record in a gzip member of its own. False if its length is not known.
pub(crate) fn pack_record(
    record: &mut warc::Record<'_>,
    out: &mut (impl Write + ?Sized),
) -> io::Result<bool> {
    pack_with(record, <[u8]>::to_vec, out)
}

fn pack_with(
    record: &mut warc::Record<'_>,
    header: fn(&[u8]) -> Vec<u8>,
    out: &mut (impl Write + ?Sized),
) -> io::Result<bool> {
    let Some(length) = record.content_length() else { return Ok(false) };
    let head = if record.is_arc() { warc_head(record, length)? } else { header(record.header().raw()) };
    let mut encoder = GzEncoder::new(out, Compression::default());
    encoder.write_all(&head)?;
    io::copy(&mut record.block(), &mut encoder)?;
    encoder.write_all(b"\r\n\r\n")?;
    encoder.finish()?;
    Ok(true)
}

/// The header of a revisit without the fields that name its original, and the lines that continue them.
fn without_original(header: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(header.len());
    let mut is_left_out = false;
    for line in header.split_inclusive(|byte| *byte == b'\n') {
        if !line.starts_with(b" ") && !line.starts_with(b"\t") {
            const NAMES: &[u8] = b"warc-refers-to";
            is_left_out = line.get(..NAMES.len()).is_some_and(|name| name.eq_ignore_ascii_case(NAMES));
        }
        if !is_left_out {
            out.extend_from_slice(line);
        }
    }
    out
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
