//! When a URL was captured: as a calendar, as a table of versions, or, for many URLs, as a list of them.

use std::collections::HashMap;

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;
use grange_i18n::Tongue;
use grange_index::dialect::Params;
use grange_index::query::{Keys, Next, Query};
use grange_index::{Capture, Stamp};

use super::calendar::calendar;
use super::{captures_of, message, render, short, urls};
use crate::memento;
use crate::rewrite::with_path;
use crate::wayback::{View, own_parameters};

/// Rows of a table on one page.
const ROWS_MAX: usize = 500;

pub(crate) fn captures(view: &View, from: &str, to: &str, url: &str, wide: bool, query: &str) -> Response {
    let params = Params::parse(&own_parameters(query));
    let times = (Stamp::earliest(from).unwrap_or(Stamp::MIN), Stamp::latest(to).unwrap_or(Stamp::MAX));
    if wide {
        return urls::urls(view, url, times, &span(from, to), params.get("grange-after"));
    }
    let one_day = from.len() >= 8 && from == to;
    let shown = if one_day || params.get("grange-view") == Some("list") {
        list(view, url, times, &span(from, to), &params)
    } else {
        calendar(view, url, times, params.get("grange-year"))
    };
    match shown {
        Ok(Some(response)) => response,
        Ok(None) => message::missing(view, "", url),
        Err(error) => message::broken(view, url, &[grange_base::Chain(&error).to_string()]),
    }
}

/// The times of a calendar as its address has them.
fn span(from: &str, to: &str) -> String {
    if from == to { format!("{from}*") } else { format!("{from}-{to}*") }
}

/// A URL with one more of our own parameters.
pub(super) fn with(url: &str, parameter: &str) -> String {
    let join = if url.contains('?') { '&' } else { '?' };
    format!("{url}{join}{parameter}")
}

#[derive(Template)]
#[template(path = "list.html")]
struct List<'a> {
    t: &'a Tongue,
    title: String,
    collection: &'a str,
    url: &'a str,
    summary: String,
    calendar: String,
    below: String,
    export: String,
    rows: Vec<Row>,
    next: Option<String>,
}

struct Row {
    href: String,
    when: String,
    version: String,
    tint: usize,
    same: String,
    status: String,
    mime: String,
    size: String,
    digest: String,
    short: String,
    job: String,
    file: String,
}

fn list(
    view: &View,
    url: &str,
    (from, to): (Stamp, Stamp),
    times: &str,
    params: &Params,
) -> Result<Option<Response>, grange_index::Error> {
    let (name, t) = (view.collection.name.as_str(), &view.tongue());
    let skip: usize = params.get("grange-skip").and_then(|skip| skip.parse().ok()).unwrap_or(0);
    let mut query = Query::new(Keys::Exact(grange_index::key(url)));
    (query.from, query.to) = (from, to);
    let mut versions = Versions::default();
    let (mut shown, mut all) = (Vec::new(), 0usize);
    query.run(&view.snapshot, |row| {
        if view.sees(row) {
            let capture = row.to_capture();
            let version = versions.of(&capture);
            if all >= skip && shown.len() < ROWS_MAX {
                shown.push((capture, version));
            }
            all += 1;
        }
        Ok(Next::More)
    })?;
    if all == 0 {
        return Ok(None);
    }
    let rows =
        shown.into_iter().map(|(capture, version)| row(view, url, capture, &versions, version)).collect();
    let next = (skip + ROWS_MAX < all).then(|| {
        let own = format!("grange-view=list&grange-skip={}", skip + ROWS_MAX);
        with(&format!("/{name}/{times}/{url}"), &own)
    });
    let captures = captures_of(t, all as u64);
    let versions = t.say_with("versions", &[("count", (versions.known.len() as u64).into())]);
    let page = List {
        t,
        title: t.say_with("calendar-title", &[("url", url.into())]),
        collection: name,
        url,
        summary: t
            .say_with("list-summary", &[("captures", (&captures).into()), ("versions", (&versions).into())]),
        calendar: format!("/{name}/*/{url}"),
        below: format!("/{name}/*/{url}*"),
        export: format!("/{name}/export/wacz?url={}", encoded(url)),
        rows,
        next,
    };
    Ok(Some(render(StatusCode::OK, &page)))
}

/// A URL as the value of a parameter.
pub(super) fn encoded(url: &str) -> String {
    percent_encoding::utf8_percent_encode(url, percent_encoding::NON_ALPHANUMERIC).to_string()
}

/// Versions by identical content, numbered in the order in which they first appear.
#[derive(Default)]
struct Versions {
    known: HashMap<String, usize>,
    counts: Vec<u64>,
}

impl Versions {
    fn of(&mut self, capture: &Capture) -> Option<usize> {
        let digest = capture.digest.as_deref()?;
        let bare = digest.rsplit(':').next().unwrap_or(digest).to_ascii_uppercase();
        let next = self.known.len();
        let version = *self.known.entry(bare).or_insert(next);
        self.counts.resize(self.known.len(), 0);
        self.counts[version] += 1;
        Some(version)
    }
}

fn row(view: &View, url: &str, capture: Capture, versions: &Versions, version: Option<usize>) -> Row {
    let (name, t) = (view.collection.name.as_str(), &view.tongue());
    let own = capture.url.as_deref().unwrap_or(url);
    let digest = capture.digest.clone().unwrap_or_default();
    let bare = digest.rsplit(':').next().unwrap_or_default();
    Row {
        href: format!("/{name}/{}/{}", memento::digits(capture.time), with_path(own)),
        when: short(capture.time),
        version: version.map(|version| format!("v{}", version + 1)).unwrap_or_default(),
        tint: version.unwrap_or(0) % 6,
        same: version
            .and_then(|version| versions.counts.get(version))
            .map(|number| t.say_with("list-same", &[("count", (*number).into())]))
            .unwrap_or_default(),
        status: capture.status.map(|status| status.to_string()).unwrap_or_default(),
        mime: if capture.is_revisit() {
            t.say("list-unchanged")
        } else {
            capture.mime.clone().unwrap_or_default()
        },
        size: capture.length.map(|length| t.number(length)).unwrap_or_default(),
        short: bare.chars().take(8).collect(),
        digest,
        job: capture.job.clone().unwrap_or_default(),
        file: capture.file,
    }
}
