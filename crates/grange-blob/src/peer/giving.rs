//! Bytes on their way out: from where they are asked for, with the checksum of the whole after them.

use std::io;

use bytes::Bytes;
use futures_util::{Stream, stream};
use grange_model::{Algorithm, Checksums};
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};

use super::range::{self, Part};
use super::serve::{Answer, Refusal, bad};
use super::wire::{CHECKSUM, SIZE};
use crate::blob::Opened;
use crate::buffers::Buffers;
use crate::digest::{By, Summing};

/// Which part is asked for.
pub(super) fn part(headers: &HeaderMap) -> Result<Part, Refusal> {
    let asked = headers.get(header::RANGE).and_then(|value| value.to_str().ok());
    range::read(asked).ok_or_else(|| bad("only bytes=N- and bytes=A-B are understood as a range"))
}

/// The file, from where it is asked for to its end.
pub(super) fn stream(opened: Opened, headers: &HeaderMap) -> Result<Answer, Refusal> {
    let Part::From(start) = part(headers)? else {
        return Err(bad("a range between two offsets may have a mebibyte; read on with the next"));
    };
    let size = opened.size;
    if start > size {
        return Err(bad(format!("the file has {size} bytes")));
    }
    let mut response = Response::new(StreamBody::new(summed(opened, start)).boxed_unsync());
    if start > 0 {
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
    }
    let headers = response.headers_mut();
    headers.insert(SIZE, HeaderValue::from(size));
    headers.insert(header::TRAILER, HeaderValue::from_static("grange-checksum"));
    Ok(response)
}

/// The bytes from `start` on and the checksum of all of them. What lies before `start` is read too, for the sum.
fn summed(opened: Opened, start: u64) -> impl Stream<Item = io::Result<Frame<Bytes>>> + Send + 'static {
    struct State {
        opened: Opened,
        buffers: Buffers,
        summing: Option<Summing>,
        start: u64,
    }
    let summing = Some(Summing::inline(By::Second, &[Algorithm::Sha512]));
    let state = State { opened, buffers: Buffers::default(), summing, start };
    stream::try_unfold(state, |mut state| async move {
        loop {
            let Some(summing) = &mut state.summing else { return Ok(None) };
            let mut bytes = state.buffers.next(&mut state.opened).await?;
            let before = summing.bytes();
            summing.update(&bytes);
            if bytes.is_empty() {
                let sums = state.summing.take().map(Summing::finish).unwrap_or_default();
                return Ok(Some((Frame::trailers(trailer(&sums)), state)));
            }
            let skipped = state.start.saturating_sub(before).min(bytes.len() as u64);
            let wanted = bytes.split_off(skipped as usize);
            if !wanted.is_empty() {
                return Ok(Some((Frame::data(wanted), state)));
            }
        }
    })
}

pub(super) fn trailer(sums: &Checksums) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    if let Ok(value) = HeaderValue::from_str(&sums.to_string()) {
        trailers.insert(CHECKSUM, value);
    }
    trailers
}

/// The checksum in a trailer.
pub(super) fn announced(trailers: &HeaderMap) -> Option<Checksums> {
    let sums: Checksums = trailers.get(CHECKSUM)?.to_str().ok()?.parse().ok()?;
    (!sums.is_empty()).then_some(sums)
}
