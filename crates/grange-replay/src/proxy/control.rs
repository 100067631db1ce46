//! Commands that change what a reader sees, on a host that no network has.

use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use grange_index::Stamp;
use grange_index::dialect::Params;

use super::chain::Ask;
use super::session::Choice;
use super::{Proxy, page};
use crate::wayback::redirect;

/// The documents' name for it, and that of their suite. `.invalid` is kept free of hosts for ever (RFC 2606).
const HOSTS: [&str; 2] = ["viewerproxy.invalid", "netarchivesuite.viewerproxy.invalid"];

/// The path and the parameters of a command; `None` for every other URL.
pub(super) fn command(url: &str) -> Option<(&str, Params)> {
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"))?;
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let host = host.split(':').next().unwrap_or(host);
    if !HOSTS.iter().any(|known| known.eq_ignore_ascii_case(host)) {
        return None;
    }
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    Some((path, Params::parse(query)))
}

/// Commands that change something.
const CHANGES: [&str; 5] =
    ["startRecordingURIs", "stopRecordingURIs", "clearRecordedURIs", "changeIndex", "changeDate"];

pub(super) fn resolve(proxy: &Proxy, ask: &Ask) -> Option<Response<Body>> {
    let (path, params) = command(&ask.url)?;
    if CHANGES.contains(&path) && from_elsewhere(ask) {
        return Some(page::confirm(ask));
    }
    let sessions = &proxy.sessions;
    let back = || match params
        .get("returnURL")
        .filter(|url| url.starts_with("http://") || url.starts_with("https://"))
    {
        Some(url) => redirect(StatusCode::SEE_OTHER, url),
        None => redirect(StatusCode::SEE_OTHER, "http://viewerproxy.invalid/"),
    };
    match path {
        "" => Some(page::control(proxy, ask)),
        "startRecordingURIs" => {
            sessions.with(&ask.reader, |session| session.recording = true);
            Some(back())
        }
        "stopRecordingURIs" => {
            sessions.with(&ask.reader, |session| session.recording = false);
            Some(back())
        }
        "clearRecordedURIs" => {
            sessions.with(&ask.reader, |session| session.missing.clear());
            Some(back())
        }
        "getRecordedURIs" => {
            let lines = sessions.with(&ask.reader, |session| {
                session.missing.iter().flat_map(|url| [url.as_str(), "\n"]).collect::<String>()
            });
            Some(text(lines))
        }
        "changeIndex" => Some(match choice(proxy, &ask.url, &params) {
            Ok(choice) => {
                let label = params.get("label").unwrap_or_default().to_owned();
                sessions.with(&ask.reader, |session| (session.choice, session.label) = (choice, label));
                back()
            }
            Err(reason) => page::message(ask, StatusCode::BAD_REQUEST, &reason),
        }),
        "changeDate" => {
            let asked: String =
                params.get("date").unwrap_or_default().chars().filter(char::is_ascii_digit).collect();
            let time = Stamp::earliest(&asked);
            if time.is_none() && !asked.is_empty() {
                return Some(page::message(
                    ask,
                    StatusCode::BAD_REQUEST,
                    "A date is 1 to 14 digits, from the year on.",
                ));
            }
            sessions.with(&ask.reader, |session| session.time = time);
            Some(back())
        }
        "getStatus" => Some(text(status(proxy, ask))),
        "ca.pem" => {
            let headers = [
                (header::CONTENT_TYPE, "application/x-x509-ca-cert"),
                (header::CONTENT_DISPOSITION, "attachment; filename=\"grange-replay-proxy.pem\""),
            ];
            Some((headers, proxy.authority.certificate_pem().to_owned()).into_response())
        }
        _ => None,
    }
}

/// A command that is none: refused here, so that it is not looked for in the archive.
pub(super) fn unknown(ask: &Ask) -> Option<Response<Body>> {
    command(&ask.url)?;
    Some(page::message(ask, StatusCode::NOT_FOUND, "There is no such command."))
}

/// Whether another page made the browser send this: an archived one could, to blind the reader who judges it.
fn from_elsewhere(ask: &Ask) -> bool {
    let foreign = |name: header::HeaderName| {
        ask.headers.get(name).is_some_and(|value| value.to_str().is_ok_and(|url| command(url).is_none()))
    };
    foreign(header::REFERER) || foreign(header::ORIGIN)
}

/// What `changeIndex` chooses: `jobID=1&jobID=2`, `collection=NAME`, or nothing for all.
fn choice(proxy: &Proxy, url: &str, params: &Params) -> Result<Choice, String> {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let jobs: Vec<String> = url::form_urlencoded::parse(query.as_bytes())
        .filter(|(name, _)| name == "jobID")
        .flat_map(|(_, jobs)| jobs.split(',').map(|job| job.trim().to_owned()).collect::<Vec<_>>())
        .filter(|job| !job.is_empty())
        .collect();
    match (params.get("collection"), jobs.is_empty()) {
        (Some(name), _) if proxy.collections.get(name).is_none() => {
            Err(format!("No collection is named {name}."))
        }
        (Some(name), true) => Ok(Choice::Collection(name.to_owned())),
        (Some(_), false) => Err("Choose jobs or a collection, not both.".to_owned()),
        (None, true) => Ok(Choice::All),
        (None, false) => Ok(Choice::Jobs(jobs)),
    }
}

pub(super) fn status(proxy: &Proxy, ask: &Ask) -> String {
    proxy.sessions.with(&ask.reader, |session| {
        let label = if session.label.is_empty() { String::new() } else { format!(" ({})", session.label) };
        let time = session.time.map_or_else(|| "the latest".to_owned(), |time| format!("closest to {time}"));
        format!(
            "Index: {}{label}\nCaptures: {time}\nCollecting missing URIs: {}\nMissing URIs collected: {}\n",
            session.choice.text(),
            if session.recording { "yes" } else { "no" },
            session.missing.len()
        )
    })
}

fn text(text: String) -> Response<Body> {
    ([(header::CONTENT_TYPE, "text/plain; charset=utf-8"), (header::CACHE_CONTROL, "no-store")], text)
        .into_response()
}
