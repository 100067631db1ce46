//! Sending a file to a peer: a chunked body with the checksum after it.

use std::io;

use bytes::Bytes;
use grange_model::{Algorithm, Checksums, FileName};
use http::{HeaderValue, Method, header};
use http_body_util::channel::Channel;

use super::serve::{DRAIN_BYTES_MAX, trailer};
use super::wire::{EXPECTED, SIZE, escaped};
use super::{Peer, patience};
use crate::blob::{Blob, Source, Stored};
use crate::buffers::Buffers;
use crate::check;
use crate::digest::{By, Summing};
use crate::error::Error;

/// Buffers under way to the socket.
const UNDER_WAY: usize = 4;

/// A transfer takes what the wire gives; it is only given up when the other side is silent (TCP keep-alive) or does
/// not answer after the last byte. A day is for the answer that never comes.
const LONGEST: std::time::Duration = std::time::Duration::from_secs(24 * 60 * 60);

pub(super) async fn put(
    peer: &Peer,
    name: &FileName,
    mut source: Source<'_>,
    expected: Option<&Checksums>,
) -> Result<Stored, Error> {
    let expected = expected.filter(|sums| !sums.is_empty());
    if let Some(stored) = known(peer, name, expected).await? {
        return Ok(stored);
    }
    let size = source.size;
    if let Some(needed) = size.filter(|size| *size > DRAIN_BYTES_MAX)
        && peer.free().await?.largest_bytes < needed
    {
        return Err(Error::Full { name: name.clone(), place: peer.place.clone(), needed: size });
    }

    let (mut sender, body) = Channel::<Bytes, io::Error>::new(UNDER_WAY);
    let trailers = source.trailer.clone();
    let pump = async {
        let (buffers, mut summing) = (Buffers::default(), Summing::inline(By::First, &[Algorithm::Sha512]));
        loop {
            let bytes = match buffers.next(&mut source.reader).await {
                Ok(bytes) => bytes,
                Err(error) => {
                    sender.abort(io::ErrorKind::Interrupted.into());
                    return Err(Error::Source { name: name.clone(), source: error });
                }
            };
            if bytes.is_empty() {
                break;
            }
            summing.update(&bytes);
            // The other side has its answer already.
            if sender.send_data(bytes).await.is_err() {
                return Ok(0);
            }
        }
        let sent = summing.bytes();
        let sums = summing.finish();
        // Somebody else's word about bytes that only pass through here.
        if let Some(announced) = trailers.and_then(|trailers| trailers.get().copied())
            && let Err(error) = check::received(name, size, sent, Some(&announced), &sums)
        {
            sender.abort(io::ErrorKind::InvalidData.into());
            return Err(error);
        }
        let _ = sender.send_trailers(trailer(&sums)).await;
        Ok(sent)
    };
    let path = format!("/files/{}", escaped(name.as_str()));
    let add = |request: reqwest::RequestBuilder| {
        let mut request = request
            .header(header::TRAILER, HeaderValue::from_static("grange-checksum"))
            .body(reqwest::Body::wrap(body));
        if let Some(size) = size {
            request = request.header(SIZE, size);
        }
        if let Some(expected) = expected {
            request = request.header(EXPECTED, expected.to_string());
        }
        request
    };
    let sending = peer.send(Method::PUT, &path, Some(name), LONGEST, add);
    tokio::pin!(sending);
    let answer = tokio::select! {
        biased;
        answer = &mut sending => answer?,
        sent = pump => {
            // The other side syncs and reads back what it got before it answers.
            let sent = sent?;
            let answer = tokio::time::timeout(patience(sent), sending).await;
            answer.map_err(|late| peer.unreachable(late))??
        }
    };
    let bytes = peer.body(answer).await?;
    serde_json::from_slice(&bytes).map_err(|error| peer.foreign(error))
}

/// Asks first where the checksum is known: bytes that are there need not travel.
async fn known(peer: &Peer, name: &FileName, expected: Option<&Checksums>) -> Result<Option<Stored>, Error> {
    let Some(expected) = expected else { return Ok(None) };
    let Some(stat) = peer.stat(name).await? else { return Ok(None) };
    let algorithms: Vec<_> = expected.algorithms().collect();
    let Some(known) = peer.checksum(name, &algorithms).await? else { return Ok(None) };
    check::known(name, &peer.place, stat.size, known, expected).map(Some)
}
