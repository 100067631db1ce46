//! OutbackCDX: filters by regular expression, collapsing to the first or last.

use std::io::Write;

use urlkey::{Dialect, Keyer, MatchType};

use super::line::{columns, quoted, value};
use super::params::{BadRequest, Params};
use super::{Answer, CDXJ, Failure, JSON, TEXT, Visible};
use crate::key::{key, keys};
use crate::query::{Collapse, Collapsed, Field, Filter, Keys, Next, Order, Query};
use crate::snapshot::Snapshot;
use crate::view::CaptureView;

const FIELDS: &[&str] = &[
    "urlkey",
    "timestamp",
    "original",
    "mimetype",
    "statuscode",
    "digest",
    "redirecturl",
    "robotflags",
    "length",
    "offset",
    "filename",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Output {
    Cdx,
    Json,
    JsonDict,
    Cdxj,
}

struct Ask {
    query: Query,
    output: Output,
    names: Vec<String>,
    fields: Vec<Field>,
    collapse: Option<Collapse>,
    /// Of a group the last is told, not the first.
    to_last: bool,
    limit: Option<u64>,
    omit_self_redirects: bool,
}

impl Ask {
    fn read(params: &Params) -> Result<Self, BadRequest> {
        let (keys, exact) = Self::keys(params)?;
        let mut query = Query::new(keys);
        query.rows_most = params.rows_most;
        (query.from, query.to) = params.times()?;
        let closest = params.closest()?;
        query.order = match (params.get("sort"), closest) {
            (None | Some("default"), None) => Order::Ascending,
            (Some("reverse"), _) => Order::Descending,
            (None | Some("closest"), Some(time)) => Order::Closest(time),
            (Some("closest"), None) => return Err(BadRequest::Missing { name: "closest" }),
            (Some(value), _) => {
                return Err(BadRequest::Value {
                    name: "sort",
                    value: value.to_owned(),
                    why: "it is default, reverse or closest",
                });
            }
        };
        if !exact && query.order != Order::Ascending {
            return Err(BadRequest::Together { first: "sort", second: "a matchType other than exact" });
        }
        let timed = params.get("from").or_else(|| params.get("to")).is_some();
        if timed && !exact {
            return Err(BadRequest::Together { first: "from or to", second: "a matchType other than exact" });
        }
        if timed && matches!(query.order, Order::Closest(_)) {
            return Err(BadRequest::Together { first: "from or to", second: "closest" });
        }
        query.filters = params.all("filter").map(Filter::outback).collect::<Result<_, _>>()?;
        let output = match params.get("output") {
            None | Some("cdx" | "text") => Output::Cdx,
            Some("json") => Output::Json,
            Some("jsondict") => Output::JsonDict,
            Some("cdxj") => Output::Cdxj,
            Some(value) => {
                return Err(BadRequest::Value {
                    name: "output",
                    value: value.to_owned(),
                    why: "it is cdx, json, jsondict or cdxj",
                });
            }
        };
        let names: Vec<String> = match params.get("fl") {
            Some(names) => names.split(',').map(|name| name.trim().to_owned()).collect(),
            None => FIELDS.iter().map(|name| (*name).to_owned()).collect(),
        };
        let to_last = params.get("collapseToLast");
        let collapse = params.get("collapse").or_else(|| params.get("collapseToFirst")).or(to_last);
        let collapse = collapse
            .map(|text| {
                Collapse::parse(text).ok_or_else(|| BadRequest::Value {
                    name: "collapse",
                    value: text.to_owned(),
                    why: "it is field or field:N",
                })
            })
            .transpose()?;
        Ok(Self {
            query,
            output,
            fields: names.iter().map(|name| Field::parse(name)).collect(),
            names,
            collapse,
            to_last: to_last.is_some(),
            limit: params.number("limit")?,
            omit_self_redirects: params.is_set("omitSelfRedirects"),
        })
    }

    /// The keys, and whether they are those of one URL.
    fn keys(params: &Params) -> Result<(Keys, bool), BadRequest> {
        let range = params.get("matchType") == Some("range");
        if let Some(urlkey) = params.get("urlkey") {
            let exact = matches!(params.get("matchType"), None | Some("exact"));
            let keys =
                if exact { Keys::Exact(urlkey.to_owned()) } else { Keys::Range(urlkey.to_owned(), None) };
            return Ok((keys, exact));
        }
        let url = params.get("url").ok_or(BadRequest::Missing { name: "url" })?;
        if range {
            return Ok((Keys::Range(key(url), None), false));
        }
        if let Some(method) = params.get("method").filter(|method| !method.eq_ignore_ascii_case("get")) {
            let body = params.get("requestBody").unwrap_or_default();
            return Ok((keys(&cdx::url_with_body(url, method, body), MatchType::Exact), true));
        }
        let (keys, kind) = params.keys()?;
        Ok((keys, kind == MatchType::Exact))
    }
}

/// What the answer to these parameters is.
pub fn content_type(params: &Params) -> &'static str {
    match params.get("output") {
        Some("json" | "jsondict") => JSON,
        Some("cdxj") => CDXJ,
        _ => TEXT,
    }
}

/// Answers a request to `/<collection>`.
pub fn answer(
    snapshot: &Snapshot,
    params: &Params,
    visible: Visible<'_>,
    out: &mut dyn Write,
) -> Result<Answer, Failure> {
    let ask = Ask::read(params)?;
    let mut collapse = ask.collapse.clone();
    let mut keyer = Keyer::new(Dialect::Standard);
    let (mut told, mut failed) = (0, None);
    let mut waiting: Option<String> = None;
    // What stands before the next line: the opening first, then what separates lines.
    let mut before = match ask.output {
        Output::Json => {
            let mut head = "[".to_owned();
            row(&ask.names, &mut head);
            head
        }
        Output::JsonDict => "[".to_owned(),
        Output::Cdx | Output::Cdxj => String::new(),
    };
    let separator = if matches!(ask.output, Output::Json | Output::JsonDict) { ",\n" } else { "" };
    if ask.output == Output::Json {
        before.push_str(separator);
    }
    let mut give = |line: String| -> bool {
        told += 1;
        let written = out.write_all(before.as_bytes()).and_then(|()| out.write_all(line.as_bytes()));
        separator.clone_into(&mut before);
        failed = written.err().or(failed.take());
        failed.is_none() && ask.limit.is_none_or(|limit| told < limit)
    };
    if ask.limit == Some(0) {
        return Ok(Answer { content_type: TEXT, captures: 0, noticed: <_>::default() });
    }
    let noticed = ask.query.run(snapshot, |view| {
        if !visible(view) || ask.omit_self_redirects && is_self_redirect(view, &mut keyer) {
            return Ok(Next::More);
        }
        let repeated = collapse.as_mut().is_some_and(|one| one.judge(view) == Collapsed::Repeated);
        if ask.to_last {
            // The last of a group is known when the next begins.
            let line = line(view, &ask);
            let held = waiting.replace(line);
            let go_on = repeated || held.is_none_or(&mut give);
            if !go_on {
                waiting = None;
            }
            return Ok(if go_on { Next::More } else { Next::Stop });
        }
        if repeated {
            return Ok(Next::More);
        }
        let line = line(view, &ask);
        Ok(if give(line) { Next::More } else { Next::Stop })
    })?;
    if let Some(line) = waiting.take() {
        give(line);
    }
    if let Some(error) = failed {
        return Err(error.into());
    }
    if !separator.is_empty() {
        if told == 0 {
            out.write_all(before.trim_end_matches(separator).as_bytes())?;
        }
        out.write_all(b"]\n")?;
    }
    let content_type = match ask.output {
        Output::Cdx => TEXT,
        Output::Json | Output::JsonDict => JSON,
        Output::Cdxj => CDXJ,
    };
    Ok(Answer { content_type, captures: told, noticed })
}

fn line(view: &CaptureView<'_>, ask: &Ask) -> String {
    let mut out = String::new();
    match ask.output {
        Output::Cdx => {
            columns(view, &ask.fields, true, &mut out);
            out.push('\n');
        }
        Output::Cdxj => {
            let mut bytes = Vec::new();
            view.to_capture().to_entry().write_cdxj(&mut bytes);
            out = String::from_utf8_lossy(&bytes).into_owned();
        }
        Output::Json => {
            let cell = |field: &Field| {
                let mut text = String::new();
                if !value(view, field, true, &mut text) {
                    text.push('-');
                }
                text
            };
            let cells: Vec<String> = ask.fields.iter().map(cell).collect();
            row(&cells, &mut out);
        }
        Output::JsonDict => {
            out.push('{');
            for (name, field) in ask.names.iter().zip(&ask.fields) {
                let mut text = String::new();
                if value(view, field, true, &mut text) {
                    if out.len() > 1 {
                        out.push(',');
                    }
                    quoted(name, &mut out);
                    out.push(':');
                    quoted(&text, &mut out);
                }
            }
            out.push('}');
        }
    }
    out
}

fn row(cells: &[String], out: &mut String) {
    out.push('[');
    for (at, cell) in cells.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        quoted(cell, out);
    }
    out.push(']');
}

/// Whether a redirect leads to its own key, which a browser would follow for ever.
fn is_self_redirect(view: &CaptureView<'_>, keyer: &mut Keyer) -> bool {
    if !view.status().is_some_and(|status| (300..400).contains(&status)) {
        return false;
    }
    let (mut target, mut key) = (String::new(), String::new());
    if !Field::Extra("redirect".to_owned()).write(view, &mut target) {
        return false;
    }
    keyer.key_into(&target, &mut key);
    key.as_bytes() == view.surt_bytes()
}
