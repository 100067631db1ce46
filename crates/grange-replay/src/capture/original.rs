//! A capture whole: for a revisit, the payload of the original it stands for.

use std::cmp::Reverse;
use std::sync::Arc;

use grange_index::query::{Keys, Next, Order, Query};
use grange_index::{Capture, Snapshot, Stamp};
use warc::{HttpHead, Profile, RecordType};

use super::open::{OpenError, open};
use super::record_match::can_be_original;
use super::{About, Body, Place, Refers, Undo};
use crate::collection::Collection;
use crate::lookup_pool::{self, SHORT_ROWS_MAX};

/// A capture with its body.
#[derive(Debug)]
pub struct Loaded {
    /// What the record of the capture itself says.
    pub about: Arc<About>,
    /// Whose payload it is, if another record holds it.
    pub original: Option<Original>,
    pub body: Body,
}

/// The record that holds the payload of a revisit.
#[derive(Clone, Debug)]
pub struct Original {
    pub capture: Capture,
    pub about: Arc<About>,
}

/// Why a capture has no payload.
#[derive(Debug, thiserror::Error)]
pub enum NoPayload {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Index(#[from] grange_index::Error),
    #[error(
        "the capture says only that its content was the same as before, and no record with that content can be read \
         (tried {tried}); add the file that holds the original to the collection"
    )]
    OriginalGone { tried: usize },
    #[error("the server is stopping; ask again in a moment")]
    Stopping,
}

/// The digest of no bytes at all: nothing needs to be looked for.
const EMPTY_SHA1: &str = "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ";
/// Originals that are tried: damage to more copies of one content than this is a lost cause.
const ORIGINALS_MAX: usize = 8;

/// Reads a capture; for a revisit, the head is its own and the body that of the first original that can be read and that
/// `sees` lets through. If there are only others, the first of them: [`crate::access_check::AccessCheck::hides_loaded`] judges it.
pub async fn load(
    snapshot: &Arc<Snapshot>,
    collection: &Collection,
    capture: &Capture,
    undo: impl Fn(&About) -> Undo + Clone + Send + 'static,
    sees: impl Fn(&Capture) -> bool,
) -> Result<Loaded, NoPayload> {
    let place = Place::of(capture).ok_or(OpenError::NoPlace)?;
    let (about, body) = open(collection, &place, {
        let undo = undo.clone();
        move |about: &About| if is_revisit(about) { Undo::Skip } else { undo(about) }
    })
    .await?;
    if !is_revisit(&about) {
        return Ok(Loaded { about, original: None, body });
    }
    let redirect =
        about.http.as_ref().and_then(HttpHead::status).is_some_and(|s| (300..400).contains(&s) && s != 304);
    let digest = capture.digest.clone().or_else(|| about.payload_digest.clone());
    let empty = digest.as_deref().is_some_and(|digest| digest.to_ascii_uppercase().ends_with(EMPTY_SHA1));
    if redirect || empty {
        return Ok(Loaded { about, original: None, body: Body::empty() });
    }
    let mut candidates = candidates(snapshot, capture, digest.clone(), &about).await?;
    let mut tried = 0;
    let mut hidden = None;
    for is_last_resort in [false, true] {
        for original in std::mem::take(&mut candidates) {
            let Some(place) = Place::of(&original) else { continue };
            tried += 1;
            match open(collection, &place, undo.clone()).await {
                Ok((found, body)) if can_be_original(&found) => {
                    let original = described(original, &found);
                    let visible = sees(&original);
                    let original = Some(Original { capture: original, about: found });
                    if visible {
                        return Ok(Loaded { about, original, body });
                    }
                    hidden.get_or_insert((original, body));
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::debug!(%error, url = capture.url, time = %capture.time, "an original cannot be read");
                }
            }
        }
        // The same content may be open under another URL.
        if let (false, Some(_), Some(digest)) = (is_last_resort, &hidden, digest.as_deref()) {
            candidates = snapshot.with_digest(digest, ORIGINALS_MAX, &sees)?;
        }
    }
    match hidden {
        Some((original, body)) => Ok(Loaded { about, original, body }),
        None => Err(NoPayload::OriginalGone { tried }),
    }
}

/// Where the payload of a revisit may be. A URL with many captures is looked through on a thread for that.
async fn candidates(
    snapshot: &Arc<Snapshot>,
    revisit: &Capture,
    digest: Option<String>,
    about: &Arc<About>,
) -> Result<Vec<Capture>, NoPayload> {
    let short = Some(SHORT_ROWS_MAX);
    match originals(snapshot, revisit, digest.as_deref(), about.refers.as_ref(), short) {
        Err(grange_index::Error::Unfinished { .. }) => {
            let (snapshot, revisit, about) = (Arc::clone(snapshot), revisit.clone(), Arc::clone(about));
            let looked = lookup_pool::run(move || {
                originals(&snapshot, &revisit, digest.as_deref(), about.refers.as_ref(), None)
            });
            Ok(looked.await.ok_or(NoPayload::Stopping)??)
        }
        found => Ok(found?),
    }
}

/// The records with the payload of a revisit, by what the index alone knows, the likeliest first. For one without a digest,
/// which a server's "not modified" often has none of: the captures of its URL before it. What tests hold
/// [`super::OriginalFinder`] against.
#[cfg(test)]
pub(super) fn first_originals(
    snapshot: &Snapshot,
    revisit: &Capture,
) -> Result<Vec<Capture>, grange_index::Error> {
    let found = originals(snapshot, revisit, revisit.digest.as_deref(), None, None)?;
    if found.is_empty() && revisit.digest.is_none() {
        return near(snapshot, &revisit.surt, revisit.time, None, |_| true);
    }
    Ok(found)
}

fn is_revisit(about: &About) -> bool {
    about.kind == RecordType::Revisit
}

/// Where the payload of a revisit may be, the likeliest first: what the index line names, the same URL with the same
/// digest (nearest earlier), what the record refers to, any URL with the digest.
pub(super) fn originals(
    snapshot: &Snapshot,
    revisit: &Capture,
    digest: Option<&str>,
    refers: Option<&Refers>,
    rows_most: Option<u64>,
) -> Result<Vec<Capture>, grange_index::Error> {
    let mut found: Vec<Capture> = Vec::new();
    let mut add = |capture: Capture| {
        let same = |other: &Capture| other.file == capture.file && other.offset == capture.offset;
        if !capture.is_revisit() && found.len() < ORIGINALS_MAX && !found.iter().any(same) {
            found.push(capture);
        }
    };
    if let Some(named) = named_by_line(revisit) {
        add(named);
    }
    let unchanged = refers.is_some_and(|refers| refers.profile == Profile::ServerNotModified);
    let likeness = |capture: &Capture| match (digest, &capture.digest) {
        (Some(digest), Some(other)) => likeness(digest, other),
        _ => Likeness::Unknown,
    };
    let same = |capture: &Capture| match likeness(capture) {
        Likeness::Same => true,
        Likeness::Other | Likeness::Incomparable => false,
        // The server said so itself, and old writers put the digest of nothing there.
        Likeness::Unknown => unchanged,
    };
    let likely = |capture: &Capture| same(capture) || unchanged;
    for capture in near(snapshot, &revisit.surt, revisit.time, rows_most, likely)? {
        add(capture);
    }
    let uri = refers.and_then(|refers| refers.uri.as_deref());
    let date = refers.and_then(|refers| refers.date).and_then(|date| Stamp::parse(date.digits14()));
    let key = uri.map_or_else(|| revisit.surt.clone(), grange_index::key);
    if uri.is_some() {
        let wanted = |capture: &Capture| {
            let then = date.is_some_and(|date| date.leading(14) == capture.time.leading(14));
            let unlike = likeness(capture) == Likeness::Other;
            same(capture) || (then && !unlike)
        };
        for capture in near(snapshot, &key, date.unwrap_or(revisit.time), rows_most, wanted)? {
            add(capture);
        }
    }
    if let Some(digest) = digest
        && let Some(known) = snapshot.digest(digest)?
    {
        add(known.first);
    }
    // Where digests say nothing, address and date do: the last capture before the revisit, or before the date that it names.
    let until = date.unwrap_or(revisit.time);
    let earlier = |capture: &Capture| {
        capture.time <= until && capture.status != Some(304) && likeness(capture) == Likeness::Incomparable
    };
    for capture in near(snapshot, &key, until, rows_most, earlier)? {
        add(capture);
    }
    Ok(found)
}

/// The original that the line of a revisit names: its place, and nothing else.
pub(super) fn named_by_line(revisit: &Capture) -> Option<Capture> {
    let file = revisit.extra.get("orig.filename")?.as_str()?.to_owned();
    let (offset, length) = (Some(number(revisit, "orig.offset")?), number(revisit, "orig.length"));
    Some(Capture { file, offset, length, ..Capture::default() })
}

/// A capture of which only the place was known, with what its record says of it: rules judge by key and time.
pub(crate) fn described(capture: Capture, about: &About) -> Capture {
    if !capture.surt.is_empty() {
        return capture;
    }
    let time = about.date.and_then(|date| Stamp::parse(date.digits14())).unwrap_or_default();
    let surt = about.uri.as_deref().map(grange_index::key).unwrap_or_default();
    Capture { surt, time, url: about.uri.clone(), mime: about.mime(), ..capture }
}

fn number(capture: &Capture, name: &str) -> Option<u64> {
    let value = capture.extra.get(name)?;
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

/// What two digests say of two contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Likeness {
    Same,
    Other,
    /// Made by different algorithms: nothing.
    Incomparable,
    /// There is none.
    Unknown,
}

/// Compares two digests; case and label do not count.
pub(super) fn likeness(one: &str, other: &str) -> Likeness {
    let same = match (warc::Digest::parse(one.as_bytes()), warc::Digest::parse(other.as_bytes())) {
        (Ok(one), Ok(other)) if one.algorithm() != other.algorithm() => return Likeness::Incomparable,
        (Ok(one), Ok(other)) => one == other,
        _ if bare(one).eq_ignore_ascii_case(bare(other)) => true,
        // Of algorithms that are unknown here, or without a label.
        _ if bare(one).len() != bare(other).len() => return Likeness::Incomparable,
        _ => false,
    };
    if same { Likeness::Same } else { Likeness::Other }
}

pub(super) fn bare(digest: &str) -> &str {
    digest.rsplit(':').next().unwrap_or(digest)
}

/// Captures of a URL that are no revisits and fit, earlier ones first, the nearest of them at the head. Of one moment: what was
/// read as an HTTP answer before what was not, then in the order of the file.
fn near(
    snapshot: &Snapshot,
    surt: &str,
    time: Stamp,
    rows_most: Option<u64>,
    fits: impl Fn(&Capture) -> bool,
) -> Result<Vec<Capture>, grange_index::Error> {
    let few = |order: Order, from: Stamp, to: Stamp, fits: &dyn Fn(&Capture) -> bool| {
        let mut query = Query::new(Keys::Exact(surt.to_owned()));
        (query.order, query.from, query.to, query.rows_most) = (order, from, to, rows_most);
        let mut found = Vec::new();
        let run = query.run(snapshot, |view| {
            if !view.is_revisit() {
                found.extend(Some(view.to_capture()).filter(fits));
            }
            Ok(if found.len() < ORIGINALS_MAX { Next::More } else { Next::Stop })
        });
        run.map(|_| found)
    };
    let mut found = few(Order::Descending, Stamp::MIN, time, &fits)?;
    found.sort_by_cached_key(|capture| (Reverse(capture.time), in_file(capture)));
    let mut later = few(Order::Ascending, time, Stamp::MAX, &|capture| capture.time > time && fits(capture))?;
    later.sort_by_cached_key(|capture| (capture.time, in_file(capture)));
    found.append(&mut later);
    Ok(found)
}

/// The order of captures of one moment.
pub(super) fn in_file(capture: &Capture) -> (bool, String, Option<u64>) {
    (capture.status.is_none(), capture.file.clone(), capture.offset)
}
