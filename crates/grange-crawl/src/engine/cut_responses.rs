//! Responses that broke off, kept until another try has a whole one. When the tries are used up without any, the longest
//! of them is stored.
//!
//! A part is a help, not a capture: where there is no room for it, it is dropped, and its URL tried again without it. The last
//! try is stored whatever it is.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use warc::write::Truncated;

use crate::fetch::Fetched;
use crate::log::Annotations;

/// Responses held at the same time, each with up to `fetch.memory_bytes` in memory or an open file.
const HELD_MAX: usize = 256;

/// A response that broke off, and what was found out about it.
#[derive(Debug)]
pub(super) struct CutResponse {
    pub(super) fetched: Fetched,
    /// What a scanner found in it.
    pub(super) infected: Option<String>,
    pub(super) annotations: Annotations,
}

/// The best part of every URL that is to be tried again. They are gone when the process ends; their URLs are not.
#[derive(Debug, Default)]
pub(super) struct CutResponses(Mutex<HashMap<String, CutResponse>>);

/// What is held besides a part: of other URLs, and of its own.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    others: usize,
    others_disk_bytes: u64,
    /// Whether an earlier part of the same URL is as good.
    has_as_good: bool,
}

/// What becomes of a part whose URL can be tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Decision {
    /// Try again, and keep it instead of the earlier one.
    Keep,
    /// Try again without it.
    Drop,
    /// Try again without it and without any other that is on disk.
    DropAllOnDisk,
    /// Store it: no try will have more.
    Store,
}

/// What becomes of a part with so many bytes on disk; 0 is one in memory. `spare` is what the disk has to spare beside all
/// parts and the room for their records.
fn decide(truncated: Option<Truncated>, disk_bytes: u64, held: Held, spare: u64) -> Decision {
    if truncated == Some(Truncated::Disk) && disk_bytes > 0 {
        // It has taken all the room there is. The next one has more only if parts gave some back.
        return if held.others_disk_bytes > 0 { Decision::DropAllOnDisk } else { Decision::Store };
    }
    // As much stays to spare as parts take: a crawl is not to pause, or cut a response, for parts.
    let has_room = disk_bytes == 0 || held.others_disk_bytes.saturating_add(disk_bytes) <= spare;
    if !held.has_as_good && held.others < HELD_MAX && has_room { Decision::Keep } else { Decision::Drop }
}

impl CutResponses {
    /// Keeps a response if it is the best part of its URL and there is room. Gives it back if it is to be stored instead of
    /// another try. `spare` is what the disk has to spare.
    pub(super) fn keep(&self, url: &str, response: CutResponse, spare: u64) -> Result<(), Box<CutResponse>> {
        let mut held = self.lock();
        let others = held.iter().filter(|(other, _)| *other != url);
        let facts = Held {
            others: others.clone().count(),
            others_disk_bytes: others.map(|(_, response)| response.disk_bytes()).sum(),
            has_as_good: held.get(url).is_some_and(|earlier| earlier.is_better_than(&response.fetched)),
        };
        match decide(response.fetched.truncated, response.disk_bytes(), facts, spare) {
            Decision::Keep => {
                held.insert(url.to_owned(), response);
            }
            Decision::Drop => {}
            Decision::DropAllOnDisk => held.retain(|_, response| response.disk_bytes() == 0),
            Decision::Store => return Err(Box::new(response)),
        }
        Ok(())
    }

    pub(super) fn take(&self, url: &str) -> Option<CutResponse> {
        self.lock().remove(url)
    }

    /// Gives back the space of all parts on disk; their URLs are tried again all the same. Answers how many there were. Nobody
    /// claims a URL while the crawl waits for space, so that parts would keep what it waits for.
    pub(super) fn drop_on_disk(&self) -> usize {
        let mut held = self.lock();
        let before = held.len();
        held.retain(|_, response| response.disk_bytes() == 0);
        before - held.len()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, CutResponse>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CutResponse {
    /// Bytes of it that are not in memory.
    fn disk_bytes(&self) -> u64 {
        let response = &self.fetched.response;
        if response.bytes().is_some() { 0 } else { response.len() }
    }

    /// Whether it says at least as much as a later response.
    pub(super) fn is_better_than(&self, later: &Fetched) -> bool {
        worth(&self.fetched) >= worth(later)
    }
}

/// Of two responses of one URL the higher one is stored: an answer to what was asked before a failure of the server, any
/// response before none, a whole one before a part, a long part before a short one.
fn worth(fetched: &Fetched) -> (bool, bool, bool, u64) {
    let status = fetched.status.http();
    let is_answer = status.is_some_and(|status| status != 429 && status < 500);
    (
        is_answer,
        status.is_some(),
        !is_part(fetched),
        if is_part(fetched) { fetched.payload_length } else { 0 },
    )
}

/// Whether a response ended before its end, for another reason than a limit of its length.
fn is_part(fetched: &Fetched) -> bool {
    matches!(fetched.truncated, Some(Truncated::Disconnect | Truncated::Time | Truncated::Disk))
}

/// Whether a response ended before its end for a reason that passes: the server, the network or a full disk, and not a
/// limit of ours.
pub(super) fn is_cut(fetched: &Fetched, total_timeout: Duration) -> bool {
    fetched.status.http().is_some() && is_part(fetched) && fetched.duration < total_timeout
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn a_part_is_kept_where_there_is_room_and_its_url_tried_again_where_there_is_none() {
        use Decision::{Drop, DropAllOnDisk, Keep, Store};
        let (broke, slow, full) = (Some(Truncated::Disconnect), Some(Truncated::Time), Some(Truncated::Disk));
        let held = |others, others_disk_bytes| Held { others, others_disk_bytes, has_as_good: false };
        for (truncated, disk_bytes, held, spare, decision) in [
            (broke, 0, held(0, 0), 0, Keep),
            (slow, 0, held(HELD_MAX - 1, 500), 0, Keep),
            (broke, 0, held(HELD_MAX, 0), 1000, Drop),
            (broke, 0, Held { has_as_good: true, ..Held::default() }, 1000, Drop),
            // Short of space in memory: it may find some.
            (full, 0, held(0, 0), 0, Keep),
            (broke, 100, held(0, 0), 100, Keep),
            (slow, 100, held(1, 100), 200, Keep),
            (slow, 100, held(1, 101), 200, Drop),
            (broke, 100, held(0, 0), 99, Drop),
            (broke, 100, held(HELD_MAX, 0), 1000, Drop),
            (broke, u64::MAX, held(1, 1), u64::MAX - 1, Drop),
            (full, 100, held(0, 0), 0, Store),
            (full, 100, held(5, 0), 1000, Store),
            (full, 100, held(1, 1), 0, DropAllOnDisk),
        ] {
            let case = format!("{truncated:?} {disk_bytes} {held:?} {spare}");
            assert_eq!(decide(truncated, disk_bytes, held, spare), decision, "{case}");
        }
    }

    fn response(status: u16, body: usize, truncated: Option<Truncated>) -> CutResponse {
        let head = format!("HTTP/1.1 {status} X\r\nContent-Length: {body}\r\n\r\n");
        let block = [head.into_bytes(), vec![b'x'; body]].concat();
        let mut fetched = Fetched::from_stored(&mut &block[..], Timestamp::UNIX_EPOCH, 1 << 20).unwrap();
        fetched.truncated = truncated;
        CutResponse { fetched, infected: None, annotations: Annotations::new() }
    }

    #[test]
    fn what_says_the_most_of_a_url_is_stored() {
        let cut = Some(Truncated::Disconnect);
        // Each is worth more than the next.
        let ranks = [
            response(404, 1, None),
            response(200, 50, Some(Truncated::Time)),
            response(200, 49, cut),
            response(503, 5, None),
            response(500, 90, cut),
        ];
        for (n, better) in ranks.iter().enumerate() {
            for worse in &ranks[n + 1..] {
                let case = format!("{:?} {:?}", better.fetched.status, worse.fetched.status);
                assert!(better.is_better_than(&worse.fetched), "{case}");
                assert!(!worse.is_better_than(&better.fetched), "{case}");
            }
        }
    }

    #[test]
    fn the_longest_part_is_kept_and_memory_is_bounded() {
        let cut = Some(Truncated::Disconnect);
        let held = CutResponses::default();
        for length in [20, 30, 10] {
            assert!(held.keep("a", response(200, length, cut), 0).is_ok());
        }
        assert_eq!(held.take("a").unwrap().fetched.payload_length, 30);
        assert!(held.take("a").is_none());
        for n in 0..2 * HELD_MAX {
            assert!(held.keep(&n.to_string(), response(200, 20, cut), 0).is_ok());
        }
        assert_eq!(held.lock().len(), HELD_MAX);
        // Of one that is held already the longer part is kept.
        assert!(held.keep("0", response(200, 40, cut), 0).is_ok());
        assert_eq!(held.take("0").unwrap().fetched.payload_length, 40);
    }

    #[test]
    fn parts_on_disk_make_way_when_space_gets_short() {
        let on_disk = |length: usize, truncated| {
            let mut part = response(200, length, Some(truncated));
            let in_memory = part.fetched.response;
            part.fetched.response = in_memory.moved_to_disk();
            part
        };
        let held = CutResponses::default();
        let (broke, full) = (Truncated::Disconnect, Truncated::Disk);
        let urls = || {
            let mut urls: Vec<_> = held.lock().keys().cloned().collect();
            urls.sort();
            urls
        };
        assert!(held.keep("memory", response(200, 20, Some(broke)), 0).is_ok());
        assert!(held.keep("no room", on_disk(20, broke), 10).is_ok());
        assert_eq!(urls(), ["memory"]);
        assert!(held.keep("a", on_disk(20, broke), 1000).is_ok());
        assert!(held.keep("b", on_disk(20, broke), 1000).is_ok());
        assert_eq!(urls(), ["a", "b", "memory"]);
        assert_eq!((held.drop_on_disk(), held.drop_on_disk()), (2, 0));
        assert_eq!(urls(), ["memory"]);
        // Cut for want of the space that a part takes: it is tried again with that space, and stored if there is none.
        assert!(held.keep("a", on_disk(20, broke), 1000).is_ok());
        assert!(held.keep("full", on_disk(20, full), 0).is_ok());
        assert_eq!(urls(), ["memory"]);
        let given_back = held.keep("full", on_disk(20, full), 1000).unwrap_err();
        assert_eq!(given_back.fetched.payload_length, 20);
    }
}
