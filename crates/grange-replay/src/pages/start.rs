//! Where to begin: the collections, and the pages of one.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;
use grange_index::dialect::Params;
use grange_index::query::{Keys, Next, Query};

use super::{count, render, short};
use crate::memento;
use crate::wayback::{Site, View, redirect, repaired};

#[derive(Template)]
#[template(path = "home.html")]
struct Home {
    collections: Vec<Named>,
    note: String,
}

struct Named {
    name: String,
    size: String,
}

pub(crate) fn home(site: &Site) -> Response {
    let all = site.collections.all();
    if let [only] = all.as_slice() {
        return redirect(StatusCode::FOUND, &format!("/{}/", only.name));
    }
    let named = all.iter().map(|one| Named { name: one.name.clone(), size: size(&one.index.snapshot()) });
    render(StatusCode::OK, &Home { collections: named.collect(), note: String::new() })
}

fn size(snapshot: &grange_index::Snapshot) -> String {
    let stats = snapshot.stats();
    format!("{} in {}", count(stats.rows, "capture", "captures"), count(stats.files, "file", "files"))
}

#[derive(Template)]
#[template(path = "collection.html")]
struct Start<'a> {
    name: &'a str,
    size: String,
    pages: Vec<Page>,
}

struct Page {
    href: String,
    url: String,
    when: String,
}

/// Pages named to begin with, and rows looked at to find them: a glance, not a search.
const PAGES_MAX: usize = 25;
const ROWS_MAX: usize = 5000;

pub(crate) fn collection(view: &View, query: Option<&str>) -> Response {
    let name = view.collection.name.as_str();
    let params = Params::parse(query.unwrap_or_default());
    if let Some(url) = params.get("url").and_then(repaired) {
        let star = if params.get("show") == Some("urls") { "*" } else { "" };
        return redirect(StatusCode::FOUND, &format!("/{name}/*/{url}{star}"));
    }
    let mut pages: Vec<Page> = Vec::new();
    let mut rows = 0;
    let looked = Query::new(Keys::Range(String::new(), None)).run(&view.snapshot, |row| {
        rows += 1;
        let page = row.mime() == Some("text/html") && row.status() == Some(200) && view.sees(row);
        let mut url = String::new();
        if page && row.url_into(&mut url) && pages.last().is_none_or(|last| last.url != url) {
            let href = format!("/{name}/{}/{url}", memento::digits(row.time()));
            pages.push(Page { href, url, when: short(row.time()) });
        }
        Ok(if pages.len() < PAGES_MAX && rows < ROWS_MAX { Next::More } else { Next::Stop })
    });
    if let Err(error) = looked {
        tracing::warn!(error = %grange_base::Chain(&error), "the index could not be read");
    }
    render(StatusCode::OK, &Start { name, size: size(&view.snapshot), pages })
}
