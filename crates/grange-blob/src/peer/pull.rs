//! Fetching without a middleman: whoever knows where a file lies asks the node that will keep it to fetch it there.
//!
//! ```text
//!   asking node                keeping node                 holding node
//!   POST MOUNT/pull/NAME  ──▶  GET  MOUNT/files/NAME  ──▶
//!        origin, size,         ◀── bytes, checksum in the trailer; Range after a cut
//!        checksums             writes aside, syncs, reads back, renames
//!   ◀── Stored
//! ```
//!
//! The keeper watches the holder: half a minute without a byte is a broken wire, which is picked up a few times where
//! it broke. The asker watches the keeper: it waits for as long as that answers other questions.

use std::sync::Arc;

use grange_base::Chain;
use grange_model::{Checksums, FileName};
use http::{Method, header};
use serde::{Deserialize, Serialize};

use super::origin::{Origin, Reach};
use super::upload::known;
use super::wire::escaped;
use super::{ANSWER_WITHIN, LONGEST, Peer, WATCH_EVERY};
use crate::blob::{Blob, Source, Stored};
use crate::error::Error;

/// What the keeper is told.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pull {
    pub(super) origin: Origin,
    pub(super) size: u64,
    pub(super) checksums: Checksums,
}

/// Asks the peer to fetch. `None` when it cannot get at the origin, or does not know how: then the bytes must be sent.
pub(crate) async fn ask(
    peer: &Peer,
    name: &FileName,
    origin: &Origin,
    size: u64,
    expected: &Checksums,
) -> Result<Option<Stored>, Error> {
    let pull = Pull { origin: origin.clone(), size, checksums: *expected };
    let body = serde_json::to_vec(&pull).map_err(|error| peer.foreign(error))?;
    let add = |request: reqwest::RequestBuilder| {
        request.header(header::CONTENT_TYPE, "application/json").body(body)
    };
    let path = format!("/pull/{}", escaped(name.as_str()));
    let sending = peer.send(Method::POST, &path, Some(name), LONGEST, add);
    let answer = match peer.while_alive(sending, WATCH_EVERY, ANSWER_WITHIN).await {
        Err(error @ (Error::Origin { reached: false, .. } | Error::Refused { status: 404 | 405, .. })) => {
            tracing::info!(%name, place = peer.place, reason = %Chain(&error), "a file is sent, not fetched");
            return Ok(None);
        }
        answer => answer?,
    };
    let bytes = peer.body(answer).await?;
    serde_json::from_slice(&bytes).map(Some).map_err(|error| peer.foreign(error))
}

/// The keeper's side: fetches the file into `blob`.
pub(super) async fn fetch(
    blob: &Arc<dyn Blob>,
    name: &FileName,
    pull: &Pull,
    reach: Option<&Reach>,
) -> Result<Stored, Error> {
    let expected = Some(&pull.checksums).filter(|sums| !sums.is_empty());
    let expected = expected.ok_or_else(|| Error::NoChecksum { name: name.clone() })?;
    // Nothing to travel.
    if pull.size == 0 {
        return blob.put(name, Source::from(&[][..]), Some(expected)).await;
    }
    if let Some(stored) = known(&**blob, name, Some(expected)).await? {
        return Ok(stored);
    }
    let failed = |reached: bool, reason: String| Error::Origin {
        name: name.clone(),
        from: pull.origin.to_string(),
        reason,
        reached,
    };
    let reach = reach.ok_or_else(|| failed(false, "this node fetches from no other".to_owned()))?;
    let holder = reach.peer(&pull.origin).await.map_err(|reason| failed(false, reason))?;
    let opened = holder.get(name).await.map_err(|error| {
        let away = matches!(error, Error::Unreachable { .. } | Error::Unproven { .. });
        failed(!away, Chain(&error).to_string())
    })?;
    if opened.size != pull.size {
        return Err(Error::WrongSize { name: name.clone(), announced: pull.size, received: opened.size });
    }
    match blob.put(name, opened.into_source(), Some(expected)).await {
        // The holder's bytes ended early, or are not what its own checksum says.
        Err(Error::Source { source, .. }) => Err(failed(true, Chain(&source).to_string())),
        stored => stored,
    }
}
