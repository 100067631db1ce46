//! From an answer to the URLs that come next.

use std::num::NonZero;
use std::sync::{Arc, LazyLock};

use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use super::shared::{Shared, VisitError};
use crate::candidate::Candidate;
use crate::extract::{self, BadUrl, Body, Document, Format, Role};
use crate::fetch::Fetched;
use crate::hops::Hop;
use crate::link::Link;
use crate::log::uri_error;
use crate::scope::{Content, Observation, RepeatedContent, Scratch};

/// How much of an answer extractors are given; each format has a smaller limit of its own.
const MAX_DOCUMENT_BYTES: u64 = 256 << 20;

/// Documents up to this length are decompressed and looked into at once, in some milliseconds; longer ones are streamed,
/// beside the threads that serve connections.
const SMALL_DOCUMENT_BYTES: u64 = 1 << 20;

/// What was found in an answer.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    pub(super) links: Vec<Link>,
    pub(super) charset: Option<&'static str>,
    pub(super) annotations: Vec<String>,
    /// What should be a URL and is none.
    pub(super) bad: Vec<BadUrl>,
    /// The answer set a cookie.
    pub(super) sets_cookie: bool,
    /// Who looked into it.
    pub(super) extractor: Option<&'static str>,
    /// What it says of URLs that differ in session ids only.
    pub(super) session_path: Observation,
}

/// Long documents are looked into by this many workers at a time: it is work for the processor, and small pages must
/// have their turn.
static LONG_DOCUMENTS: LazyLock<Semaphore> =
    LazyLock::new(|| Semaphore::new(std::thread::available_parallelism().map_or(1, NonZero::get)));

/// Looks for links. An answer that says nothing new (304), or none, has no links.
pub(super) fn find(
    crawl: &Shared,
    candidate: &Candidate,
    fetched: &mut Fetched,
    role: Role,
) -> Result<Found, VisitError> {
    if fetched.status.http().is_none_or(|status| status == 304) {
        return Ok(Found::default());
    }
    // A copy: the head in its place says how the content is to be unpacked.
    let Some(http) = fetched.http.clone() else { return Ok(Found::default()) };
    let settings = &crawl.template.extract;
    let content_type = http.get("Content-Type").map(|value| String::from_utf8_lossy(value).into_owned());
    let headers: Vec<(&[u8], &[u8])> = http.iter().collect();
    let (url, content_type, headers) = (&candidate.url, content_type.as_deref(), &headers[..]);
    let mut extraction = None;
    let mut session_path = None;
    let is_ok = fetched.status.0 == 200;
    if fetched.response.bytes().is_some() {
        let bytes = fetched.content_bytes(SMALL_DOCUMENT_BYTES + 1)?;
        if bytes.len() as u64 <= SMALL_DOCUMENT_BYTES {
            let body = Body::Bytes(&bytes);
            let document = Document { url, content_type, headers, role, body };
            let extracted = extract::extract(document, settings);
            if is_ok && extracted.format == Format::Html {
                let content = Content::Page { body: &bytes, links: &extracted.links };
                session_path = Some(crawl.observe_session_path(url, content));
            }
            extraction = Some(extracted);
        }
    }
    let extraction = if let Some(extraction) = extraction {
        extraction
    } else {
        // Piece by piece: compressed, a few kilobytes may be gigabytes.
        let mut content = fetched.content(MAX_DOCUMENT_BYTES)?;
        let body = Body::Read(&mut content);
        let document = Document { url, content_type, headers, role, body };
        tokio::task::block_in_place(|| {
            let _turn = Handle::current().block_on(LONG_DOCUMENTS.acquire());
            extract::extract(document, settings)
        })
    };
    if is_ok && session_path.is_none() {
        // What is no page, or too long for a page that comes again and again.
        let content = Content::Other { digest: fetched.payload_digest.as_bytes() };
        session_path = Some(crawl.observe_session_path(url, content));
    }
    let sets_cookie = http.get("Set-Cookie").is_some();
    let mut found = Found {
        links: extraction.links,
        charset: extraction.charset,
        annotations: extraction.annotations,
        bad: extraction.bad,
        sets_cookie,
        extractor: extraction.format.extractor(),
        session_path: session_path.unwrap_or_default(),
    };
    if extraction.format == Format::Html
        && fetched.status.0 == 200
        && crawl.is_repetition(&candidate.url, fetched.payload_digest.as_bytes())
    {
        // Parts of the page may be new even where its links are not.
        found.links.retain(|link| link.hop != Hop::Link);
        found.annotations.push(RepeatedContent::ANNOTATION.to_owned());
    }
    Ok(found)
}

/// Those of the links that are in scope, as candidates. Why the others are not goes to scope.log, what is no URL to
/// uri-errors.log.
pub(super) fn choose(
    crawl: &Shared,
    from: &Candidate,
    found: Found,
    lines: &mut Vec<(&'static str, Vec<u8>)>,
) -> Result<Vec<Candidate>, VisitError> {
    let via: Arc<str> = Arc::from(&*from.target_uri());
    if !found.bad.is_empty() {
        let (now, page, mut errors) = (crawl.clock.now(), Some(&*via), Vec::new());
        for bad in &found.bad {
            uri_error(now, page, &bad.reason.to_string(), &bad.text, &mut errors);
        }
        lines.push(("uri-errors.log", errors));
    }
    let mut chosen = Vec::with_capacity(found.links.len().min(64));
    let mut rejected = Vec::new();
    let mut scratch = Scratch::default();
    let mut scope = crawl.scope.current();
    for link in found.links {
        let redirect = link.hop == Hop::Redirect;
        let mut candidate = from.next(link, &via);
        if redirect {
            if follows_seed(&candidate, crawl.template.engine.seed_redirects) {
                crawl.follow_seed(&scope, &from.url, &candidate.url)?;
                scope = crawl.scope.current();
            }
            candidate.force = wants_cookie_back(&candidate, from, found.sets_cookie);
        }
        let decision = scope.decide(&candidate, &mut scratch);
        if decision.accept {
            chosen.push(candidate);
        } else {
            crawl.note_rejected(&scope, decision, &candidate, &mut rejected);
        }
    }
    if !rejected.is_empty() {
        lines.push(("scope.log", rejected));
    }
    Ok(chosen)
}

/// Whether only redirects lie between a seed and this.
pub(super) fn follows_seed(candidate: &Candidate, most: u8) -> bool {
    candidate.hops.count() <= u32::from(most) && candidate.hops.back().all(|hop| hop == Hop::Redirect)
}

/// A page that gives a cookie and sends us to itself wants it back. Once.
pub(super) fn wants_cookie_back(candidate: &Candidate, from: &Candidate, sets_cookie: bool) -> bool {
    sets_cookie && candidate.url == from.url && from.hops.last() != Some(Hop::Redirect)
}
