//! Where to begin: the collections, and the pages of one.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;
use grange_i18n::Tongue;
use grange_index::dialect::Params;
use grange_index::query::{Keys, Next, Query};

use super::{captures_of, render, short};
use crate::access_check::{AccessCheck, Person};
use crate::memento;
use crate::wayback::{Site, View, redirect, repaired};

#[derive(Template)]
#[template(path = "home.html")]
struct Home<'a> {
    t: &'a Tongue,
    collections: Vec<Named>,
}

struct Named {
    name: String,
    size: String,
}

pub(crate) fn home(site: &Site, t: &Tongue, person: &Person) -> Response {
    let all = site.collections.all();
    if let [only] = all.as_slice() {
        return redirect(StatusCode::FOUND, &format!("/{}/", only.name));
    }
    let named =
        all.iter().map(|one| Named { name: one.name.clone(), size: size(t, &AccessCheck::new(one, person)) });
    render(StatusCode::OK, &Home { t, collections: named.collect() })
}

/// How much there is for this reader; nothing where that takes looking at every capture.
fn size(t: &Tongue, access: &AccessCheck) -> String {
    let Some((rows, files)) = access.quick_counts() else { return String::new() };
    let (captures, files) = (captures_of(t, rows), t.say_with("files", &[("count", files.into())]));
    t.say_with("collection-size", &[("captures", (&captures).into()), ("files", (&files).into())])
}

#[derive(Template)]
#[template(path = "collection.html")]
struct Start<'a> {
    t: &'a Tongue,
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
    let (name, t) = (view.collection.name.as_str(), &view.tongue());
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
    render(StatusCode::OK, &Start { t, name, size: size(t, &view.access), pages })
}
