//! Responses that broke off, kept until another try has a whole one. When the tries are used up without any answer, the
//! last of them is stored.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use warc::write::Truncated;

use crate::fetch::Fetched;
use crate::log::Annotations;

/// Responses held at the same time, each with up to `fetch.memory_bytes` in memory.
const HELD_MAX: usize = 256;

/// A response that broke off, and what was found out about it.
#[derive(Debug)]
pub(super) struct CutResponse {
    pub(super) fetched: Fetched,
    /// What a scanner found in it.
    pub(super) infected: Option<String>,
    pub(super) annotations: Annotations,
}

/// The last response of every URL that is to be tried again. They are gone when the process ends; their URLs are not.
#[derive(Debug, Default)]
pub(super) struct CutResponses(Mutex<HashMap<String, CutResponse>>);

impl CutResponses {
    /// Keeps a response; gives it back if there is no room. One that is on disk is never kept: with little space left the
    /// crawl pauses, nothing would be tried again, and the space would not come back.
    pub(super) fn keep(&self, url: &str, response: CutResponse) -> Result<(), Box<CutResponse>> {
        if response.fetched.response.bytes().is_none() {
            return Err(Box::new(response));
        }
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if held.len() >= HELD_MAX && !held.contains_key(url) {
            return Err(Box::new(response));
        }
        held.insert(url.to_owned(), response);
        Ok(())
    }

    pub(super) fn take(&self, url: &str) -> Option<CutResponse> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(url)
    }
}

/// Whether a response ended before its end for a reason that passes: the server, the network or a full disk, and not a
/// limit of ours.
pub(super) fn is_cut(fetched: &Fetched, total_timeout: Duration) -> bool {
    let broke_off =
        matches!(fetched.truncated, Some(Truncated::Disconnect | Truncated::Time | Truncated::Disk));
    fetched.status.http().is_some() && broke_off && fetched.duration < total_timeout
}
