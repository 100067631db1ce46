//! Commands that hand out what is stored: a file, one record of it, the metadata of a job.

use std::io::{self, Write as _};
use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use grange_index::access::CompiledRule;
use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;

use super::chain::Ask;
use super::control::command;
use super::record_access::{ListedRecord, RecordAccess};
use super::{Proxy, page, visible_file};
use crate::capture::{self, About, OpenError, Place, Undo};
use crate::holdings::HoldingsError;
use crate::lookup_pool;
use crate::piece_channel::BodyWriter;
use crate::reader::reason;

/// Larger objects are saved by browsers instead of shown, as in the documents.
const SHOWN_BYTES_MAX: u64 = 1_000_000;
/// Answers written at a time: each takes a thread for as long as its client reads.
pub(super) const WRITERS_MAX: usize = 64;
/// Sent at a time.
const PIECE_BYTES: usize = 128 << 10;
/// Metadata files of one job: it has one, or a few more if it was taken up again.
const METADATA_FILES_MAX: u32 = 20;

pub(super) async fn resolve(proxy: &Proxy, ask: &Ask) -> Option<Response<Body>> {
    let (path, params) = command(&ask.url)?;
    let file = params.get("arcFile").or_else(|| params.get("file")).unwrap_or_default();
    let bad = |text: &str| page::message(ask, StatusCode::BAD_REQUEST, text);
    match path {
        "getFile" if file.is_empty() => Some(bad("getFile needs arcFile=NAME.")),
        "getFile" => Some(get_file(proxy, ask, file).await),
        "getRecord" => {
            let offset =
                params.get("arcOffset").or_else(|| params.get("offset")).and_then(|text| text.parse().ok());
            match offset {
                Some(offset) if !file.is_empty() => Some(get_record(proxy, ask, file, offset).await),
                _ => Some(bad("getRecord needs arcFile=NAME and arcOffset=BYTE.")),
            }
        }
        "getMetadata" => match params.get("jobID") {
            Some(job) => Some(get_metadata(proxy, ask, job).await),
            None => Some(bad("getMetadata needs jobID=NUMBER.")),
        },
        _ => None,
    }
}

/// A whole file, without what the reader may not see.
async fn get_file(proxy: &Proxy, ask: &Ask, file: &str) -> Response<Body> {
    let access = match RecordAccess::open(&proxy.collections, &ask.who.person, file).await {
        Ok(Some(access)) => access,
        Ok(None) => {
            return page::message(ask, StatusCode::NOT_FOUND, &format!("There is no file {file} here."));
        }
        Err(error) => {
            let text = grange_base::Chain(&error).to_string();
            return page::message(ask, StatusCode::SERVICE_UNAVAILABLE, &text);
        }
    };
    let Ok(permit) = Arc::clone(&proxy.writers).try_acquire_owned() else { return busy(ask) };
    let name: String =
        file.chars().filter(|letter| letter.is_ascii_alphanumeric() || "._-".contains(*letter)).collect();
    let (asked, runtime) = (file.to_owned(), Handle::current());
    let body = written(permit, move |out| visible_file::write(&access, &asked, &runtime, out));
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    if let Ok(disposition) = HeaderValue::from_str(&format!("attachment; filename=\"{name}\"")) {
        headers.insert(header::CONTENT_DISPOSITION, disposition);
    }
    response
}

/// A body that a thread writes while it is sent.
fn written(
    permit: OwnedSemaphorePermit,
    write: impl FnOnce(&mut BodyWriter) -> io::Result<()> + Send + 'static,
) -> Body {
    let (mut out, body) = BodyWriter::new(PIECE_BYTES, Handle::current());
    tokio::task::spawn_blocking(move || {
        let _permit = permit;
        let done = write(&mut out);
        if let Err(error) = out.finish(done) {
            tracing::warn!(%error, "an answer of the proxy broke off");
        }
    });
    body
}

fn busy(ask: &Ask) -> Response<Body> {
    let text = "Too many files are being sent; ask again in a moment.";
    page::message(ask, StatusCode::SERVICE_UNAVAILABLE, text)
}

/// One record: the content, as the documents' viewer proxy gives it. Only what an index lists: of other bytes nobody knows
/// whether a record begins there, and what follows them may be hidden.
async fn get_record(proxy: &Proxy, ask: &Ask, file: &str, offset: u64) -> Response<Body> {
    let missing = format!("There is no record at byte {offset} of a file {file} here.");
    let access = match RecordAccess::open(&proxy.collections, &ask.who.person, file).await {
        Ok(Some(access)) => access,
        Ok(None) => return page::message(ask, StatusCode::NOT_FOUND, &missing),
        Err(error) => {
            return page::message(ask, StatusCode::NOT_FOUND, &grange_base::Chain(&error).to_string());
        }
    };
    let mut place = Place { file: file.to_owned(), offset, ..Place::default() };
    let broken =
        |error: OpenError| page::message(ask, StatusCode::NOT_FOUND, &grange_base::Chain(&error).to_string());
    // Only its header: what begins there may be the content of another record, and say anything of itself.
    let about = match capture::open_at(&access.holdings, &place, None, |_| Undo::Skip).await {
        Ok((about, _)) => about,
        Err(error) => return broken(error),
    };
    let (access, tongue) = (Arc::new(access), ask.who.tongue());
    let judging = Arc::clone(&access);
    // The type of a revisit is that of its original, which is looked for among all captures of its URL.
    let judged = lookup_pool::run(move || match judging.judge_listed(&about, offset) {
        ListedRecord::Visible { length } => Ok(length),
        ListedRecord::Hidden(rule) => Err((StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS, reason(rule, &tongue))),
        ListedRecord::Unlisted => Err((StatusCode::NOT_FOUND, missing)),
    });
    place.length = match judged.await {
        Some(Ok(length)) => length,
        Some(Err((status, text))) => return page::message(ask, status, &text),
        None => return StatusCode::SERVICE_UNAVAILABLE.into_response(),
    };
    let end = place.length.and_then(|length| offset.checked_add(length));
    let (about, body) = match capture::open_at(&access.holdings, &place, end, |_| Undo::Transfer).await {
        Ok(opened) => opened,
        Err(error) => return broken(error),
    };
    let mut response = Response::new(Body::empty());
    let headers = response.headers_mut();
    let mime = about.mime().unwrap_or_else(|| "application/octet-stream".to_owned());
    // A page shown here would speak for the command host.
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox; default-src 'none'"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if let Ok(mime) = HeaderValue::from_str(&mime) {
        headers.insert(header::CONTENT_TYPE, mime);
    }
    for value in about.http.iter().flat_map(|head| head.all("Content-Encoding")) {
        if let Ok(value) = HeaderValue::from_bytes(value) {
            headers.append(header::CONTENT_ENCODING, value);
        }
    }
    if body.len().is_none_or(|len| len > SHOWN_BYTES_MAX) {
        headers.insert(header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    }
    *response.body_mut() = Body::new(body);
    response
}

/// The metadata records of a job: reports, logs and settings, one after another, each behind its URL. Rules are applied to
/// each; by default nobody sees them.
async fn get_metadata(proxy: &Proxy, ask: &Ask, job: &str) -> Response<Body> {
    if job.is_empty() || !job.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return page::message(ask, StatusCode::BAD_REQUEST, "jobID is a number.");
    }
    let mut files = Vec::new();
    for number in 1..=METADATA_FILES_MAX {
        match metadata_file(proxy, ask, job, number).await {
            Ok(Some(found)) => files.push(found),
            Ok(None) => break,
            Err(error) => {
                let text = grange_base::Chain(&error).to_string();
                return page::message(ask, StatusCode::SERVICE_UNAVAILABLE, &text);
            }
        }
    }
    if files.is_empty() {
        let text = format!("There is no metadata of a job {job} here.");
        return page::message(ask, StatusCode::NOT_FOUND, &text);
    }
    // What no rule opens needs no reading.
    let by_rule = files.iter().map(|(access, _)| access.hides_documentation()).collect::<Option<Vec<_>>>();
    if let Some(rule) = by_rule.and_then(|rules| rules.into_iter().next()) {
        let reason = reason(rule, &ask.who.tongue());
        return page::message(ask, StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS, &reason);
    }
    let Ok(permit) = Arc::clone(&proxy.writers).try_acquire_owned() else { return busy(ask) };
    let runtime = Handle::current();
    let at = runtime.clone();
    let looked = tokio::task::spawn_blocking(move || {
        let seen = first_visible(&files, &at);
        (files, seen, permit)
    });
    let (files, seen, permit) = match looked.await {
        Ok(looked) => looked,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    };
    match seen {
        Ok(Seen::Visible | Seen::Unknown) => {
            let body = written(permit, move |out| {
                files.iter().try_for_each(|(access, file)| metadata(access, file, &runtime, out))
            });
            ([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], body).into_response()
        }
        Ok(Seen::Hidden(rule)) => {
            let reason = reason(&rule, &ask.who.tongue());
            page::message(ask, StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS, &reason)
        }
        Ok(Seen::Nothing) => {
            let text = format!("The metadata files of the job {job} have no records.");
            page::message(ask, StatusCode::NOT_FOUND, &text)
        }
        Err(error) => {
            let text = format!("The metadata of the job {job} cannot be read: {error}");
            page::message(ask, StatusCode::SERVICE_UNAVAILABLE, &text)
        }
    }
}

/// The metadata file of a job with this number, by any of the names that the documents give it.
async fn metadata_file(
    proxy: &Proxy,
    ask: &Ask,
    job: &str,
    number: u32,
) -> Result<Option<(RecordAccess, String)>, HoldingsError> {
    for end in ["warc.gz", "warc", "arc.gz", "arc"] {
        let name = format!("{job}-metadata-{number}.{end}");
        if let Some(access) = RecordAccess::open(&proxy.collections, &ask.who.person, &name).await? {
            return Ok(Some((access, name)));
        }
    }
    Ok(None)
}

/// Whether there is anything in metadata files that the reader may see.
enum Seen {
    Visible,
    /// There are records, and this rule hides one of them.
    Hidden(Box<CompiledRule>),
    /// Much is hidden, and not everything was looked at: what is visible is found while it is sent.
    Unknown,
    Nothing,
}

/// Content that is passed over in search of a visible record, before the answer begins.
const PASSED_BYTES_MAX: u64 = 64 << 20;

fn first_visible(files: &[(RecordAccess, String)], runtime: &Handle) -> io::Result<Seen> {
    let (mut seen, mut left) = (Seen::Nothing, PASSED_BYTES_MAX);
    for (access, file) in files {
        let place = Place { file: file.clone(), ..Place::default() };
        let mut reader = capture::reader_at(&access.holdings, &place, runtime)?;
        while let Some(mut record) = reader.next()? {
            if record.target_uri().is_none() {
                continue;
            }
            let about = About::of(&mut record)?;
            match access.hides(&about, record.place().offset) {
                None => return Ok(Seen::Visible),
                Some(rule) => seen = Seen::Hidden(Box::new(rule.clone())),
            }
            match left.checked_sub(record.content_length().unwrap_or(PASSED_BYTES_MAX)) {
                Some(rest) => left = rest,
                None => return Ok(Seen::Unknown),
            }
        }
    }
    Ok(seen)
}

/// Writes the records of a metadata file that the reader may see, whole.
fn metadata(access: &RecordAccess, file: &str, runtime: &Handle, out: &mut BodyWriter) -> io::Result<()> {
    let place = Place { file: file.to_owned(), ..Place::default() };
    let mut reader = capture::reader_at(&access.holdings, &place, runtime)?;
    while let Some(mut record) = reader.next()? {
        // A client that left ends it, also where everything is hidden.
        out.flush()?;
        let about = About::of(&mut record)?;
        if about.uri.is_none() || access.hides(&about, record.place().offset).is_some() {
            continue;
        }
        out.write_all(record.target_uri().unwrap_or_default())?;
        out.write_all(b"\n")?;
        io::copy(&mut record.payload()?, out)?;
        out.write_all(b"\n\n")?;
    }
    Ok(())
}
