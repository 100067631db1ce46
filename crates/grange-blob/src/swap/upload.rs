//! Sending a file to the server of its slice. A body cannot be sent twice, so the server is found first.

use std::io;

use bytes::Bytes;
use grange_base::Chain;
use grange_model::{Checksums, FileName};
use http::Method;
use http_body_util::channel::Channel;

use super::Swap;
use crate::blob::{Blob, Source, Stored};
use crate::buffers::Buffers;
use crate::check;
use crate::digest::{By, Summing};
use crate::error::Error;

/// Buffers under way to the socket.
const UNDER_WAY: usize = 4;

pub(super) async fn put(
    swap: &Swap,
    name: &FileName,
    mut source: Source<'_>,
    expected: Option<&Checksums>,
) -> Result<Stored, Error> {
    let announced = check::Announced::of(&source, expected);
    let algorithms = announced.algorithms(&swap.checksums);
    let (looked, server) =
        swap.ask(Method::HEAD, &swap.target("get", name.as_str()), |request| request).await?;
    match looked.status().as_u16() {
        404 => {}
        200 => {
            if let Some(expected) = &announced.expected
                && let Some((size, known)) = swap.sum(name, &algorithms).await?
            {
                return check::known(name, &swap.place, size, known, expected);
            }
        }
        _ => return Err(swap.refused(&format!("look at {name}"), looked).await),
    }

    let (mut sender, body) = Channel::<Bytes, io::Error>::new(UNDER_WAY);
    let pump = async {
        let (buffers, mut summing) = (Buffers::default(), Summing::inline(By::First, &algorithms));
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
            #[cfg(test)]
            let bytes = if swap.flip_next.swap(false, std::sync::atomic::Ordering::SeqCst) {
                let mut flipped = bytes.to_vec();
                flipped[0] ^= 1;
                Bytes::from(flipped)
            } else {
                bytes
            };
            // The server has answered already; the answer says why.
            if sender.send_data(bytes).await.is_err() {
                return Ok(None);
            }
        }
        let size = summing.bytes();
        let sums = summing.finish();
        // Before the end of the body is sent: then nothing was stored.
        if let Err(error) = announced.check(name, size, &sums) {
            sender.abort(io::ErrorKind::InvalidData.into());
            return Err(error);
        }
        drop(sender);
        Ok(Some((size, sums)))
    };
    let url = format!("{server}{}", swap.target("put", name.as_str()));
    let sending = swap.request(Method::PUT, &url).body(reqwest::Body::wrap(body)).send();
    let (sent, answer) = tokio::join!(pump, sending);
    let sent = sent?;
    let response = answer.map_err(|error| swap.unreachable(error))?;
    let already = match response.status().as_u16() {
        201 => false,
        200 => true,
        409 => {
            let known = swap.sum(name, &algorithms).await?;
            return match (known, sent) {
                (Some((size, known)), Some((_, given))) => {
                    check::known(name, &swap.place, size, known, &given)
                }
                _ => Err(swap.refused(&format!("store {name}"), response).await),
            };
        }
        507 => {
            return Err(Error::Full {
                name: name.clone(),
                place: swap.place.clone(),
                needed: announced.size,
            });
        }
        _ => return Err(swap.refused(&format!("store {name}"), response).await),
    };
    let (size, checksums) = sent.ok_or_else(|| swap.foreign("it was content before the last byte"))?;
    let (read_size, read) = swap.sum(name, &algorithms).await?.ok_or_else(|| swap.not_found(name))?;
    if already {
        // Whatever the server takes it for: what lies there decides.
        return check::known(name, &swap.place, read_size, read, &checksums);
    }
    if let Err(error) = check::read_back(name, &swap.place, (size, &checksums), (read_size, read)) {
        // The name is freed for the next try, and the bytes stay in the attic, for people.
        if let Err(error) = swap.remove_to_attic(name, &read).await {
            tracing::warn!(place = swap.place, %name, error = %Chain(&error), "a wrong copy keeps its name");
        }
        return Err(error);
    }
    Ok(Stored { size, checksums, already })
}
