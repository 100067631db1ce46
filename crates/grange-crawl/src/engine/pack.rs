//! From an answer to records and a log line.

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;

use data_encoding::BASE64;
use warc::Date;
use warc::write::{Compression, NewRecord, Press};

use super::links::Found;
use super::shared::{Shared, VisitError};
use crate::candidate::Candidate;
use crate::fetch::{DnsAnswer, Fetched};
use crate::hops::Hop;
use crate::log::{Annotations, CrawlLine, Extra, Fetched as FetchTime, Original as LoggedOriginal};
use crate::record::capture::{Capture, Form, Packed};
use crate::record::files::{Lane, Ticket};
use crate::record::oracle::History;
use crate::record::parcel::Parcel;
use crate::record::recorder::Ready;

thread_local! {
    /// A press is large (a compressor's tables) and made once per thread.
    static PRESS: RefCell<Option<(Compression, Press)>> = const { RefCell::new(None) };
}

/// How much of what came before an answer is kept.
const PREAMBLE_BYTES_MAX: usize = 8 << 10;

fn with_press<T>(
    compression: Compression,
    work: impl FnOnce(&mut Press) -> std::io::Result<T>,
) -> std::io::Result<T> {
    PRESS.with_borrow_mut(|held| match held {
        Some((of, press)) if *of == compression => work(press),
        _ => work(&mut held.insert((compression, Press::new(compression)?)).1),
    })
}

/// How an answer is to be written.
pub(super) fn form(
    crawl: &Shared,
    url: &str,
    fetched: &Fetched,
    history: Option<History>,
    annotations: &mut Annotations,
) -> Form {
    if fetched.status.0 == 304
        && let Some(history) = history
    {
        annotations.not_modified();
        return Form::NotModified(history);
    }
    if fetched.status.http().is_none() || fetched.truncated.is_some() {
        return Form::Response;
    }
    let mime = fetched.mime().unwrap_or_default();
    let size = fetched.payload_length;
    let found = crawl.dedup.find(&*crawl.oracle, url, &mime, &fetched.payload_digest, size);
    match found {
        None => Form::Response,
        Some(original) => {
            // As exact as the log is: who builds on this log must name the moment of the original record.
            let timestamp = original.date.strftime("%Y%m%d%H%M%S%3f").to_string();
            annotations.duplicate(Some(LoggedOriginal {
                file: &original.file,
                offset: original.offset,
                timestamp: &timestamp,
            }));
            Form::Identical(original)
        }
    }
}

/// The ticket of what is delivered together with the next capture.
fn beside(before: &[Ready]) -> Option<&Arc<Ticket>> {
    before.iter().find_map(|ready| ready.records.as_ref().map(|(ticket, ..)| ticket))
}

/// Packs an answer and makes its log line. `before` are the captures that are delivered with it.
#[expect(clippy::too_many_arguments, reason = "all that is known of one answer, from different hands")]
pub(super) fn pack(
    crawl: &Shared,
    worker: u32,
    candidate: &Candidate,
    mut fetched: Fetched,
    form: Form,
    mut annotations: Annotations,
    found: &Found,
    before: &[Ready],
) -> Result<Ready, VisitError> {
    let url = &*candidate.target_uri();
    for word in fetched.annotations() {
        annotations.add(word);
    }
    let mut notes = Vec::new();
    if let Some(tls) = &fetched.tls {
        notes.push(("tls", tls.to_string()));
    }
    if !fetched.preamble.is_empty() {
        // Interim answers, or what else came before the head. Not part of the answer, but of what was sent.
        let shown = &fetched.preamble[..fetched.preamble.len().min(PREAMBLE_BYTES_MAX)];
        notes.push(("preambleBase64", BASE64.encode(shown)));
    }
    let mut line = CrawlLine {
        logged: fetched.started,
        status: fetched.status,
        size: Some(fetched.payload_length).filter(|_| fetched.status.is_success()),
        url: Cow::Owned(url.to_owned()),
        hops: Cow::Owned(candidate.hops.clone()),
        via: candidate.via.as_deref().map(|via| Cow::Owned(via.to_owned())),
        mime: fetched.mime().map_or(Cow::Borrowed("unknown"), Cow::Owned),
        worker,
        fetched: Some(FetchTime { began: fetched.started, millis: fetched.duration.as_millis() as u64 }),
        digest: fetched.status.is_success().then(|| Cow::Owned(fetched.payload_digest.to_string())),
        source: candidate.source.as_deref().map(|source| Cow::Owned(source.to_owned())),
        annotations: Cow::Owned(annotations.as_str().to_owned()),
        extra: None,
    };
    if fetched.response.is_empty() {
        return Ok(Ready { records: None, line, extracted: None });
    }
    let original_url = match &form {
        Form::Identical(original) if original.url != url => Some(Cow::Owned(original.url.clone())),
        _ => None,
    };
    line.extra = Some(Extra { content_size: Some(fetched.wire_length), original_url, ..Extra::default() });
    let now = crawl.clock.now();
    let viral = matches!(form, Form::Viral(_));
    let ticket = if viral {
        crawl.desk.ticket_for(Lane::Viral, beside(before), now)?
    } else {
        crawl.desk.ticket(beside(before), now)?
    };
    let mut parcel = Parcel::new(&crawl.scratch, ticket.warcinfo);
    // A crawl whose log is lost is continued from these.
    if !annotations.is_empty() {
        notes.push(("annotations", annotations.as_str().to_owned()));
    }
    if let Some(extractor) = found.extractor {
        notes.push(("extractor", extractor.to_owned()));
    }
    if matches!(form, Form::Identical(_) | Form::NotModified(_)) {
        notes.push(("size", fetched.payload_length.to_string()));
        notes.push(("contentSize", fetched.wire_length.to_string()));
    }
    let large = fetched.response.bytes().is_none();
    let mut capture = Capture {
        candidate,
        url,
        fetched: &mut fetched,
        form,
        outlinks: &found.links,
        charset: found.charset,
        notes,
    };
    let write = &crawl.template.write;
    let mut work = || with_press(write.packing(), |press| capture.pack(write, press, &mut parcel));
    let packed = if large { tokio::task::block_in_place(work)? } else { work()? };
    parcel.keep_room(fetched.response.take_copy_room());
    let extracted = found.extractor.map(|name| (name, found.links.len() as u64));
    Ok(Ready { records: packed.map(|packed| (ticket, parcel, packed)), line, extracted })
}

/// The record of a name that was looked up.
pub(super) fn name(
    crawl: &Shared,
    worker: u32,
    candidate: &Candidate,
    answer: &DnsAnswer,
    before: &[Ready],
) -> Result<Ready, VisitError> {
    let url = format!("dns:{}", answer.host);
    let text = answer.text();
    let now = crawl.clock.now();
    let ticket = crawl.desk.ticket(beside(before), now)?;
    let mut parcel = Parcel::new(&crawl.scratch, ticket.warcinfo);
    let mut record = NewRecord::new(warc::RecordType::Response, Date::from(answer.asked))
        .target_uri(&url)
        .content_type("text/dns")
        .block(text.as_bytes());
    let written = with_press(crawl.template.write.packing(), |press| parcel.add(press, &mut record))?;
    let line = CrawlLine {
        logged: now,
        status: answer.status(),
        size: Some(text.len() as u64),
        url: Cow::Owned(url),
        hops: Cow::Owned(candidate.hops.and(Hop::Prerequisite)),
        via: Some(Cow::Owned(candidate.target_uri().into_owned())),
        mime: Cow::Borrowed("text/dns"),
        worker,
        fetched: Some(FetchTime { began: answer.asked, millis: answer.duration.as_millis() as u64 }),
        digest: written.payload_digest.map(|digest| Cow::Owned(digest.to_string())),
        source: candidate.source.as_deref().map(|source| Cow::Owned(source.to_owned())),
        annotations: Cow::Borrowed(""),
        extra: Some(Extra { content_size: Some(text.len() as u64), ..Extra::default() }),
    };
    let packed = Packed { offset: written.offset, id: written.id };
    Ok(Ready { records: Some((ticket, parcel, packed)), line, extracted: None })
}
