//! Reading a large record: a thread unpacks it, a few pieces ahead of whoever takes them.

use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;

use bytes::{Buf, Bytes};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot};
use warc::{HttpHead, Reader, Record};

use super::body::{Body, BodyError, Pieces};
use super::open::OpenError;
use super::record_match::{Fit, fits};
use super::{About, Place, Undo, is_packed};
use crate::holdings::Holdings;
use crate::piece_channel::{PieceSender, channel};

/// Threads that read bodies at a time. Each holds up to 24 MB while it unpacks a damaged record, and far less usually.
static READERS: Semaphore = Semaphore::const_new(64);
const PIECE_BYTES: usize = 64 << 10;
/// Plain bytes that are passed over in search of a record that is not the first of its member.
const PASS_BYTES_MAX: u64 = 4 << 30;

/// The rest of a file as something that can be read by a thread.
struct Rest {
    holdings: Arc<dyn Holdings>,
    runtime: Handle,
    file: String,
    /// Where the next byte is.
    at: u64,
    /// Nothing behind this byte is the record's.
    end: u64,
    bytes: Bytes,
}

impl Read for Rest {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.bytes.is_empty() && !buf.is_empty() {
            let len = self.end.saturating_sub(self.at).min(buf.len() as u64);
            if len == 0 {
                return Ok(0);
            }
            let read = self.holdings.read_at(&self.file, self.at, len);
            let bytes = self.runtime.block_on(read).map_err(io::Error::other)?;
            self.bytes = bytes.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        }
        let len = self.bytes.len().min(buf.len());
        self.bytes.copy_to_slice(&mut buf[..len]);
        self.at += len as u64;
        Ok(len)
    }
}

impl Rest {
    /// The first few bytes at a place; none behind the end of the file.
    fn look(&mut self, at: u64) -> io::Result<Vec<u8>> {
        self.seek(SeekFrom::Start(at))?;
        let mut first = Vec::with_capacity(8);
        Read::by_ref(self).take(8).read_to_end(&mut first)?;
        Ok(first)
    }
}

impl Seek for Rest {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        // Where the end is not known, nobody needs it: reading beyond it gives no bytes.
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.end.min(i64::MAX as u64).checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        self.bytes = Bytes::new();
        Ok(self.at)
    }
}

pub(super) async fn open(
    holdings: Arc<dyn Holdings>,
    place: Place,
    end: Option<u64>,
    undo: impl Fn(&About) -> Undo + Send + 'static,
) -> Result<(About, Body), OpenError> {
    let (tell, told) = oneshot::channel();
    let runtime = Handle::current();
    let (sender, receiver) = channel(runtime.clone());
    let permit = READERS.acquire().await.map_err(|_| OpenError::NoPlace)?;
    let at = place.clone();
    tokio::task::spawn_blocking(move || {
        let _permit = permit;
        read(&Source { holdings, runtime, place, end }, undo, tell, sender);
    });
    let read_error = |source| OpenError::Read { file: at.file.clone(), offset: at.offset, source };
    let about = match told.await {
        Ok(Ok(Some(about))) => about,
        Ok(Ok(None)) => return Err(OpenError::NoRecord { file: at.file, offset: at.offset }),
        Ok(Err(error)) if error.kind() == io::ErrorKind::NotFound => {
            return Err(OpenError::NoFile { file: at.file });
        }
        Ok(Err(error)) => return Err(read_error(error)),
        Err(_) => return Err(read_error(io::Error::other("the reader ended early"))),
    };
    let (about, undo) = about;
    if undo == Undo::Skip {
        return Ok((about, Body::empty()));
    }
    let len = about.payload_len.filter(|_| undo == Undo::Transfer);
    Ok((about, Body::Stream(Pieces { receiver, len, looked: None })))
}

/// Reads records from a place on, for threads that may wait.
pub(crate) fn reader_at(holdings: &Arc<dyn Holdings>, place: &Place, runtime: &Handle) -> io::Result<Reader> {
    let (holdings, runtime) = (Arc::clone(holdings), runtime.clone());
    Source { holdings, runtime, place: place.clone(), end: None }.reader()
}

struct Source {
    holdings: Arc<dyn Holdings>,
    runtime: Handle,
    place: Place,
    /// Nothing from here on is read, whatever the record says.
    end: Option<u64>,
}

impl Source {
    fn reader(&self) -> io::Result<Reader> {
        let mut rest = Rest {
            holdings: Arc::clone(&self.holdings),
            runtime: self.runtime.clone(),
            file: self.place.file.clone(),
            at: self.place.offset,
            end: self.end.unwrap_or(u64::MAX),
            bytes: Bytes::new(),
        };
        let first = rest.look(self.place.offset)?;
        // A record that says it is longer than it is would show what follows it, which may be hidden from this reader. So
        // where the index says that it ends and another one begins, or the file ends, it ends. Packed ones end with their
        // member.
        if self.end.is_none()
            && first.starts_with(b"WARC/")
            && let Some(end) = self.place.length.and_then(|length| self.place.offset.checked_add(length))
        {
            let next = rest.look(end)?;
            if next.is_empty() || next.starts_with(b"WARC/") {
                rest.end = end;
            }
        }
        // zstd has something at the start of the file that is needed here; with a known end, lengths are held against it.
        if first.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) || rest.end < u64::MAX {
            let mut reader = Reader::seekable(rest)?;
            reader.seek(self.place.offset)?;
            return Ok(reader);
        }
        rest.seek(SeekFrom::Start(self.place.offset))?;
        Reader::new(rest)
    }
}

type Told = io::Result<Option<(About, Undo)>>;

fn read(
    source: &Source,
    undo: impl Fn(&About) -> Undo,
    tell: oneshot::Sender<Told>,
    mut sender: PieceSender<BodyError>,
) {
    let mut tell = Some(tell);
    // First the record that is what the index says; then the first one there that is of that URL.
    for fit in Fit::ALL {
        match serve(source, fit, &undo, &mut tell, &mut sender) {
            Ok(Served::Whole(_)) => return sender.finish(),
            Ok(Served::InPart) => return,
            Ok(Served::NotFound) => {}
            Err(error) => {
                if let Some(tell) = tell {
                    let _ = tell.send(Err(error));
                } else {
                    sender.send(Err(BodyError::Read(error)));
                }
                return;
            }
        }
    }
    tracing::warn!(
        file = source.place.file,
        offset = source.place.offset,
        url = source.place.url,
        "no record of the URL of an index line is where the line says"
    );
    if let Some(tell) = tell {
        let _ = tell.send(Ok(None));
    }
}

/// How much of a record was sent.
enum Served {
    /// So many bytes.
    Whole(u64),
    /// The client left, or there is more than may be sent.
    InPart,
    NotFound,
}

/// Finds the record and sends it.
fn serve(
    source: &Source,
    fit: Fit,
    undo: impl Fn(&About) -> Undo,
    tell: &mut Option<oneshot::Sender<Told>>,
    sender: &mut PieceSender<BodyError>,
) -> io::Result<Served> {
    let mut reader = source.reader()?;
    let mut first = true;
    while let Some(mut record) = reader.next()? {
        let place = record.place();
        if !first && (place.is_seekable() || place.plain > PASS_BYTES_MAX) {
            return Ok(Served::NotFound);
        }
        first = false;
        if fits(&record, &source.place, fit) {
            let mut about = About::of(&mut record)?;
            // A length that is known to lie is not announced.
            if record.problems().iter().any(|problem| problem.kind == warc::Kind::ContentLengthTooLong) {
                about.payload_len = None;
            }
            let undo = undo(&about);
            // HTTP itself may say that everything came, whatever the record claims.
            let promised = Promised::of(&about);
            if let Some(tell) = tell.take()
                && tell.send(Ok(Some((about, undo)))).is_ok()
            {
                let served = pump(&mut record, undo, &source.place, promised.is_packed, sender)?;
                if let Served::Whole(sent) = served
                    && undo != Undo::Skip
                    && promised.is_missing(&record, sent, undo)
                {
                    let Place { file, offset, .. } = &source.place;
                    tracing::warn!(
                        file,
                        offset,
                        sent,
                        "a record breaks off; its body ends in an error behind what is there"
                    );
                    sender.send(Err(BodyError::Short { sent }));
                    return Ok(Served::InPart);
                }
                return Ok(served);
            }
            return Ok(Served::InPart);
        }
    }
    Ok(Served::NotFound)
}

/// How a body says itself where it ends.
struct Promised {
    /// `Content-Length`.
    len: Option<u64>,
    is_chunked: bool,
    /// In content encodings.
    is_packed: bool,
}

impl Promised {
    fn of(about: &About) -> Self {
        let head = about.http.as_ref();
        let len =
            head.and_then(|head| std::str::from_utf8(head.get("Content-Length")?).ok()?.trim().parse().ok());
        Self { len, is_chunked: head.is_some_and(HttpHead::is_chunked), is_packed: is_packed(about) }
    }

    /// Whether bytes of the body are missing, for a body of which so many bytes were read to the end of its record.
    fn is_missing(&self, record: &Record<'_>, sent: u64, undo: Undo) -> bool {
        let has =
            |kinds: &[warc::Kind]| record.problems().iter().any(|problem| kinds.contains(&problem.kind));
        let cut = has(&[
            warc::Kind::TruncatedMember,
            warc::Kind::CorruptData,
            warc::Kind::TruncatedRecord,
            warc::Kind::ContentLengthTooLong,
        ]);
        let counted = undo == Undo::Transfer || !self.is_packed;
        let is_whole = if self.is_chunked {
            !has(&[warc::Kind::BrokenChunk, warc::Kind::MissingLastChunk, warc::Kind::NotChunked])
        } else {
            counted && self.len.is_some_and(|len| sent >= len)
        };
        cut && !is_whole
    }
}

fn pump(
    record: &mut Record<'_>,
    undo: Undo,
    place: &Place,
    is_packed: bool,
    sender: &mut PieceSender<BodyError>,
) -> io::Result<Served> {
    match undo {
        Undo::Skip => Ok(Served::Whole(0)),
        Undo::Transfer => pieces(record.payload()?, u64::MAX, place, sender),
        // What is in no encoding unpacks to nothing more than is there.
        Undo::Content { .. } if !is_packed => pieces(record.content()?, u64::MAX, place, sender),
        Undo::Content { bytes_max } => pieces(record.content()?, bytes_max, place, sender),
    }
}

fn pieces(
    mut body: impl Read,
    bytes_max: u64,
    place: &Place,
    sender: &mut PieceSender<BodyError>,
) -> io::Result<Served> {
    let mut left = bytes_max;
    loop {
        let mut piece = Vec::with_capacity(PIECE_BYTES);
        body.by_ref().take(PIECE_BYTES as u64).read_to_end(&mut piece)?;
        if piece.is_empty() {
            return Ok(Served::Whole(bytes_max - left));
        }
        let Some(rest) = left.checked_sub(piece.len() as u64) else {
            let Place { file, offset, url, .. } = place;
            tracing::warn!(
                file,
                offset,
                url,
                bytes_max,
                "the content of a capture unpacks to more than is sent; its body breaks off"
            );
            sender.send(Err(BodyError::TooLarge { bytes_max }));
            return Ok(Served::InPart);
        };
        left = rest;
        if !sender.send(Ok(piece.into())) {
            return Ok(Served::InPart);
        }
    }
}
