//! Sending a file to a peer, in parts: each is kept here until the other side has it, so that a wire that breaks costs
//! at most one part. The checksum of the whole comes after the last.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use grange_base::{Retry, RetryPolicy};
use grange_model::{Algorithm, Checksums, FileName};
use http::{HeaderValue, Method, header};
use http_body::Frame;
use http_body_util::StreamBody;
use uuid::Uuid;

use super::giving::trailer;
use super::taking::{Progress, Taken};
use super::wire::{EXPECTED, OFFSET, SIZE, UPLOAD, escaped};
use super::{ANSWER_WITHIN, Peer, WATCH_EVERY, optional, patience};
use crate::blob::{Blob, Source, Stored};
use crate::buffers::Buffers;
use crate::check;
use crate::digest::{By, Summing};
use crate::error::Error;

/// Bytes that are sent again at most when a wire breaks, and held in memory until the other side has them. Large enough
/// that waiting for its answer does not count: a tenth of a second of a gigabit.
const PART_BYTES: usize = 8 << 20;

/// A part may take so long: 15 kB/s, slower than any wire that is worth waiting for.
const PART_WITHIN: Duration = Duration::from_secs(600);

/// How often a broken wire is picked up again without a single byte having come in between. About seven seconds: a
/// node that starts again in between has forgotten the upload anyway.
const PICK_UP: RetryPolicy =
    RetryPolicy { first: Duration::from_millis(100), most: Duration::from_secs(10), attempts: 6 };

pub(super) async fn put(
    peer: &Peer,
    name: &FileName,
    source: Source<'_>,
    expected: Option<&Checksums>,
) -> Result<Stored, Error> {
    let expected = expected.filter(|sums| !sums.is_empty());
    if let Some(stored) = known(peer, name, expected).await? {
        return Ok(stored);
    }
    let size = source.size;
    if let Some(needed) = size.filter(|size| *size > PART_BYTES as u64)
        && peer.free().await?.largest_bytes < needed
    {
        return Err(Error::Full { name: name.clone(), place: peer.place.clone(), needed: size });
    }
    let upload = Upload { peer, name, size, expected, id: Uuid::new_v4().simple().to_string() };
    let sent = upload.send_all(source).await;
    if let Err(Error::Source { .. } | Error::WrongSize { .. } | Error::WrongChecksum { .. }) = &sent {
        upload.give_up().await;
    }
    sent
}

/// Asks first where the checksum is known: bytes that are there need not travel.
pub(super) async fn known<B: Blob + ?Sized>(
    blob: &B,
    name: &FileName,
    expected: Option<&Checksums>,
) -> Result<Option<Stored>, Error> {
    let Some(expected) = expected else { return Ok(None) };
    let Some(stat) = blob.stat(name).await? else { return Ok(None) };
    let algorithms: Vec<_> = expected.algorithms().collect();
    let Some(known) = blob.checksum(name, &algorithms).await? else { return Ok(None) };
    check::known(name, blob.place(), stat.size, known, expected).map(Some)
}

struct Upload<'a> {
    peer: &'a Peer,
    name: &'a FileName,
    size: Option<u64>,
    expected: Option<&'a Checksums>,
    id: String,
}

/// A stretch of the file, as it was read.
struct Part {
    offset: u64,
    pieces: Vec<Bytes>,
    bytes: usize,
    /// Of the whole file; with the last part.
    sums: Option<Checksums>,
}

impl Upload<'_> {
    async fn send_all(&self, source: Source<'_>) -> Result<Stored, Error> {
        let mut reading = Reading {
            name: self.name,
            size: self.size,
            buffers: Buffers::default(),
            summing: Summing::inline(By::First, &[Algorithm::Sha512]),
            source,
        };
        let mut part = reading.part().await?;
        loop {
            if part.sums.is_some() {
                return match self.send(&part).await? {
                    Taken::Whole(stored) => Ok(stored),
                    Taken::Part(_) => Err(self.peer.foreign("the whole file was sent, a part was taken")),
                };
            }
            // The next part is read while this one travels.
            let (taken, next) = tokio::join!(self.send(&part), reading.part());
            if let Taken::Whole(stored) = taken? {
                return Ok(stored);
            }
            part = next?;
        }
    }

    /// Sends a part until it is there, from where the other side has it to its end.
    async fn send(&self, part: &Part) -> Result<Taken, Error> {
        let end = part.offset + part.bytes as u64;
        let (mut from, mut attempt) = (part.offset, 0);
        loop {
            let broken = match self.send_once(part, from).await {
                Ok(Taken::Part(progress)) if progress.received != end => {
                    return Err(self.peer.foreign("the part ended early without an error"));
                }
                // A machine that was never reached is away.
                Err(error) if end == part.bytes as u64 && attempt == 0 && refused_connection(&error) => {
                    return Err(error);
                }
                Err(error @ Error::Unreachable { .. }) => error,
                taken => return taken,
            };
            tracing::info!(name = %self.name, place = self.peer.place, from, error = %broken, "an upload broke; picking it up");
            let received = loop {
                attempt += 1;
                let Some(wait) = PICK_UP.wait(attempt, Retry::Soon) else { return Err(broken) };
                self.peer.clock.sleep(wait).await;
                match self.progress().await {
                    Ok(received) => break received,
                    Err(Error::Unreachable { .. }) => {}
                    Err(error) => return Err(error),
                }
            };
            match received {
                // The other side knows nothing of it: it began anew since, or the first bytes never arrived.
                None if part.offset == 0 => from = 0,
                Some(received) if (part.offset..=end).contains(&received) => {
                    if received > from {
                        attempt = 0;
                    }
                    from = received;
                }
                _ => return Err(broken),
            }
            if from == end && part.sums.is_none() {
                return Ok(Taken::Part(Progress { received: end }));
            }
        }
    }

    async fn send_once(&self, part: &Part, from: u64) -> Result<Taken, Error> {
        let mut skip = (from - part.offset) as usize;
        let mut frames: Vec<io::Result<Frame<Bytes>>> = Vec::with_capacity(part.pieces.len() + 1);
        for piece in &part.pieces {
            let skipped = skip.min(piece.len());
            skip -= skipped;
            if skipped < piece.len() {
                frames.push(Ok(Frame::data(piece.slice(skipped..))));
            }
        }
        frames.extend(part.sums.as_ref().map(|sums| Ok(Frame::trailers(trailer(sums)))));
        let add = |request: reqwest::RequestBuilder| {
            let body = reqwest::Body::wrap(StreamBody::new(stream::iter(frames)));
            let mut request = request.header(UPLOAD, &self.id).header(OFFSET, from).body(body);
            if part.sums.is_some() {
                request = request.header(header::TRAILER, HeaderValue::from_static("grange-checksum"));
            }
            if let Some(size) = self.size {
                request = request.header(SIZE, size);
            }
            if let Some(expected) = self.expected {
                request = request.header(EXPECTED, expected.to_string());
            }
            request
        };
        let path = format!("/files/{}", escaped(self.name.as_str()));
        // After the last part the other side syncs and reads back the whole.
        let whole = part.offset + part.bytes as u64;
        let within = if part.sums.is_some() { PART_WITHIN + patience(whole) } else { PART_WITHIN };
        let sending = self.peer.send(Method::PUT, &path, Some(self.name), within, add);
        let answer = self.peer.while_alive(sending, WATCH_EVERY, ANSWER_WITHIN).await?;
        let bytes = self.peer.body(answer).await?;
        serde_json::from_slice(&bytes).map_err(|error| self.peer.foreign(error))
    }

    /// How far the other side says it is; `None` when it knows nothing of this upload.
    async fn progress(&self) -> Result<Option<u64>, Error> {
        let path = format!("/uploads/{}", self.id);
        match self.peer.ask::<Progress>(&path, Some(self.name), ANSWER_WITHIN).await {
            Err(Error::Refused { status: 404, .. }) => Ok(None),
            progress => Ok(optional(progress)?.map(|progress| progress.received)),
        }
    }

    /// Tells the other side that no more will come; a courtesy, it finds out by itself.
    async fn give_up(&self) {
        let path = format!("/uploads/{}", self.id);
        let told = self.peer.send(Method::DELETE, &path, None, ANSWER_WITHIN, |request| request).await;
        if let Err(error) = told {
            tracing::debug!(%error, "could not tell that an upload was given up");
        }
    }
}

struct Reading<'a, 's> {
    name: &'a FileName,
    size: Option<u64>,
    buffers: Buffers,
    summing: Summing,
    source: Source<'s>,
}

impl Reading<'_, '_> {
    /// The next part; the one that is not full is the last.
    async fn part(&mut self) -> Result<Part, Error> {
        let mut part = Part { offset: self.summing.bytes(), pieces: Vec::new(), bytes: 0, sums: None };
        while part.bytes < PART_BYTES {
            let piece = self.buffers.next(&mut self.source.reader).await;
            let piece = piece.map_err(|source| Error::Source { name: self.name.clone(), source })?;
            if piece.is_empty() {
                let read = self.summing.bytes();
                let summing = std::mem::replace(&mut self.summing, Summing::inline(By::First, &[]));
                let sums = summing.finish();
                // Somebody else's word about bytes that only pass through here.
                let announced = self.source.trailer.as_ref().and_then(|trailer| trailer.get());
                if announced.is_some() {
                    check::received(self.name, self.size, read, announced, &sums)?;
                }
                part.sums = Some(sums);
                return Ok(part);
            }
            self.summing.update(&piece);
            part.bytes += piece.len();
            part.pieces.push(piece);
        }
        Ok(part)
    }
}

/// Nobody listens there.
fn refused_connection(error: &Error) -> bool {
    let Error::Unreachable { source, .. } = error else { return false };
    source.downcast_ref::<reqwest::Error>().is_some_and(reqwest::Error::is_connect)
}
