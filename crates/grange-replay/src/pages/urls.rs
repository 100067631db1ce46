//! The URLs of a host or below a path, with how often and when they were captured.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;
use grange_i18n::Tongue;
use grange_index::Stamp;
use grange_index::query::{Keys, Next, Query};
use urlkey::MatchType;

use super::captures::{encoded, with};
use super::{message, render, short};
use crate::memento;
use crate::rewrite::with_path;
use crate::wayback::View;

#[derive(Template)]
#[template(path = "urls.html")]
struct Urls<'a> {
    t: &'a Tongue,
    collection: &'a str,
    url: &'a str,
    summary: String,
    host: String,
    export: String,
    rows: Vec<Row>,
    next: Option<String>,
}

struct Row {
    key: String,
    href: String,
    url: String,
    count: u64,
    first: String,
    first_href: String,
    last: String,
    last_href: String,
    status: String,
    mime: String,
}

/// URLs on one page.
const URLS_MAX: usize = 500;

/// `times`: as the address of the list has them.
pub(super) fn urls(
    view: &View,
    url: &str,
    (from, to): (Stamp, Stamp),
    times: &str,
    after: Option<&str>,
) -> Response {
    let (name, t) = (view.collection.name.as_str(), &view.tongue());
    let keys = match (grange_index::keys(url, MatchType::Prefix), after) {
        // A key is followed by NUL in its rows, so this is behind all of them and before every larger key.
        (Keys::Range(_, end), Some(after)) => Keys::Range(format!("{after}\u{1}"), end),
        (keys, _) => keys,
    };
    let mut query = Query::new(keys);
    (query.from, query.to) = (from, to);
    let mut rows: Vec<Row> = Vec::new();
    let mut more = false;
    let looked = query.run(&view.snapshot, |row| {
        if !view.sees(row) {
            return Ok(Next::More);
        }
        let key = row.surt();
        let known = rows.last().is_some_and(|last| last.key == key);
        if !known && rows.len() == URLS_MAX {
            more = true;
            return Ok(Next::Stop);
        }
        let mut own = String::new();
        if !row.url_into(&mut own) {
            own.push_str(&key);
        }
        let when = short(row.time());
        let href = format!("/{name}/{}/{}", memento::digits(row.time()), with_path(&own));
        match rows.last_mut().filter(|_| known) {
            Some(last) => {
                last.count += 1;
                (last.last, last.last_href) = (when, href);
            }
            None => rows.push(Row {
                key: key.into_owned(),
                href: format!("/{name}/*/{own}"),
                url: own,
                count: 1,
                first: when.clone(),
                first_href: href.clone(),
                last: when,
                last_href: href,
                status: row.status().map(|status| status.to_string()).unwrap_or_default(),
                mime: if row.is_revisit() {
                    String::new()
                } else {
                    row.mime().unwrap_or_default().to_owned()
                },
            }),
        }
        Ok(Next::More)
    });
    if let Err(error) = looked {
        return message::broken(view, url, &[grange_base::Chain(&error).to_string()]);
    }
    if rows.is_empty() {
        return message::missing(view, "", url);
    }
    let here = format!("/{name}/{times}/{url}*");
    let next =
        rows.last().filter(|_| more).map(|last| with(&here, &format!("grange-after={}", encoded(&last.key))));
    let count = t.say_with("urls", &[("count", (rows.len() as u64).into())]);
    let args = [("urls", (&count).into())];
    let page = Urls {
        t,
        collection: name,
        url,
        summary: if more {
            t.say_with("urls-summary-more", &args)
        } else {
            t.say_with("urls-summary", &args)
        },
        host: message::host(url).map_or_else(|| here.clone(), |host| format!("/{name}/*/{host}*")),
        export: format!("/{name}/export/wacz?matchType=prefix&url={}", encoded(url)),
        rows,
        next,
    };
    render(StatusCode::OK, &page)
}
