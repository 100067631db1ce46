//! pywb's index server: CDXJ or one JSON object per line, filters by part of a field.

use std::fmt::Write as _;
use std::io::Write;

use serde_json::{Map, Value};

use super::line::quoted;
use super::params::{BadRequest, Params};
use super::{Answer, CDXJ, Failure, JSON, LINK, NDJSON, TEXT, Visible};
use crate::capture::Capture;
use crate::original::OriginalFinder;
use crate::query::{Collapse, Collapsed, Field, Filter, Next, Order, Query};
use crate::snapshot::Snapshot;
use crate::view::CaptureView;

/// Rows of one block of a page, as in the ZipNum files that pywb pages through.
const BLOCK_ROWS: u64 = 3000;
const PAGE_BLOCKS: u64 = 10;

/// Captures told if no limit is asked for.
const LIMIT: u64 = 100_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Output {
    Cdxj,
    Json,
    Text,
    Link,
}

struct Ask {
    query: Query,
    output: Output,
    names: Option<Vec<String>>,
    collapse: Option<Collapse>,
    limit: Option<u64>,
    skip: u64,
    resolve: bool,
    page_blocks: u64,
    count_pages: bool,
    url: String,
}

impl Ask {
    fn read(params: &Params) -> Result<Self, BadRequest> {
        let (keys, _) = params.keys()?;
        let mut query = Query::new(keys);
        query.rows_most = params.rows_most;
        (query.from, query.to) = params.times()?;
        query.filters = params.all("filter").map(Filter::pywb).collect::<Result<_, _>>()?;
        query.order = match (params.get("sort"), params.closest()?) {
            (_, Some(time)) => Order::Closest(time),
            (Some("reverse"), None) => Order::Descending,
            _ if params.is_set("reverse") => Order::Descending,
            _ => Order::Ascending,
        };
        let output = match params.get("output") {
            None | Some("cdxj") => Output::Cdxj,
            Some("json") => Output::Json,
            Some("text") => Output::Text,
            Some("link") => Output::Link,
            Some(value) => {
                return Err(BadRequest::Value {
                    name: "output",
                    value: value.to_owned(),
                    why: "it is cdxj, json, text or link",
                });
            }
        };
        let names = params.get("fields").or_else(|| params.get("fl"));
        let page_blocks = params.number("pageSize")?.unwrap_or(PAGE_BLOCKS).max(1);
        let mut ask = Self {
            query,
            output,
            names: names.map(|names| names.split(',').map(|name| name.trim().to_owned()).collect()),
            collapse: params
                .number("collapseTime")?
                .map(|digits| Collapse::new(Field::Timestamp, Some(digits)).and(Field::Status)),
            limit: Some(params.number("limit")?.unwrap_or(LIMIT)),
            skip: 0,
            resolve: params.is_set("resolveRevisits"),
            page_blocks,
            count_pages: params.is_set("showNumPages"),
            url: params.get("url").unwrap_or_default().to_owned(),
        };
        if let Some(page) = params.number::<u64>("page")? {
            let rows = page_blocks.saturating_mul(BLOCK_ROWS);
            ask.skip = page.saturating_mul(rows);
            ask.limit = Some(ask.limit.unwrap_or(rows).min(rows));
        }
        Ok(ask)
    }

    /// The fields that every line has as JSON; in CDXJ the first two stand before it.
    fn fields(&self) -> &'static [(&'static str, Field)] {
        if self.output == Output::Cdxj { &FIELDS[2..] } else { &FIELDS }
    }

    /// Whether the line of a capture is its fields and nothing else, as JSON.
    fn is_plain(&self, view: &CaptureView<'_>) -> bool {
        let json = matches!(self.output, Output::Json | Output::Cdxj);
        json && self.names.is_none() && !self.resolve && view.extra().is_none()
    }
}

/// What the answer to these parameters is.
pub fn content_type(params: &Params) -> &'static str {
    match params.get("output") {
        _ if params.counts_pages() => JSON,
        output if params.is_set("showPagedIndex") => {
            if output == Some("json") {
                NDJSON
            } else {
                TEXT
            }
        }
        Some("json") => NDJSON,
        Some("text") => TEXT,
        Some("link") => LINK,
        _ => CDXJ,
    }
}

/// Answers a request to `/<collection>/cdx`. `prefix` is what stands before `<time>/<url>` in links.
pub fn answer(
    snapshot: &Snapshot,
    params: &Params,
    prefix: &str,
    visible: Visible<'_>,
    out: &mut dyn Write,
) -> Result<Answer, Failure> {
    let ask = Ask::read(params)?;
    if params.is_set("showPagedIndex") {
        return super::paged::answer(
            &ask.query,
            snapshot,
            BLOCK_ROWS,
            ask.output == Output::Json,
            visible,
            out,
        );
    }
    if ask.count_pages {
        return count_pages(snapshot, &ask, visible, out);
    }
    if ask.output == Output::Link {
        writeln!(out, "<{}>; rel=\"original\",", ask.url)?;
    }
    let mut collapse = ask.collapse.clone();
    let (mut skip, mut told, mut failed) = (ask.skip, 0, None);
    let mut originals = OriginalFinder::new(snapshot, params.rows_most);
    let mut line = String::new();
    let noticed = ask.query.run(snapshot, |view| {
        if !visible(view) || collapse.as_mut().is_some_and(|one| one.judge(view) == Collapsed::Repeated) {
            return Ok(Next::More);
        }
        if skip > 0 {
            skip -= 1;
            return Ok(Next::More);
        }
        if ask.limit.is_some_and(|limit| told >= limit) {
            return Ok(Next::Stop);
        }
        told += 1;
        line.clear();
        if ask.output == Output::Link {
            link(view, prefix, told == 1, &mut line);
        } else {
            if ask.output == Output::Cdxj {
                line.push_str(&view.surt());
                line.push(' ');
                Field::Timestamp.write(view, &mut line);
                line.push(' ');
            }
            if ask.is_plain(view) {
                plain(view, ask.fields(), &mut line);
            } else {
                let object = object(snapshot, view, &ask, visible, &mut originals)?;
                match ask.output {
                    Output::Text => text_line(&object, &ask, &mut line),
                    Output::Cdxj => {
                        let inner =
                            object.into_iter().filter(|(name, _)| name != "urlkey" && name != "timestamp");
                        line.push_str(&python_json(&chosen(inner.collect(), &ask)));
                    }
                    _ => line.push_str(&python_json(&chosen(object, &ask))),
                }
            }
        }
        line.push('\n');
        if let Err(error) = out.write_all(line.as_bytes()) {
            failed = Some(error);
            return Ok(Next::Stop);
        }
        Ok(Next::More)
    })?;
    if let Some(error) = failed {
        return Err(error.into());
    }
    let content_type = match ask.output {
        Output::Cdxj => CDXJ,
        Output::Json => NDJSON,
        Output::Text => TEXT,
        Output::Link => LINK,
    };
    Ok(Answer { content_type, captures: told, noticed })
}

/// The fields of captures, in pywb's order and names.
static FIELDS: [(&str, Field); 9] = [
    ("urlkey", Field::UrlKey),
    ("timestamp", Field::Timestamp),
    ("url", Field::Url),
    ("mime", Field::Mime),
    ("status", Field::Status),
    ("digest", Field::Digest),
    ("length", Field::Length),
    ("offset", Field::Offset),
    ("filename", Field::File),
];

/// Writes a line that is nothing but its fields, as nearly all are, without taking it apart first.
fn plain(view: &CaptureView<'_>, fields: &[(&str, Field)], line: &mut String) {
    line.push('{');
    let mut value = String::new();
    let mut between = "";
    for (name, field) in fields {
        value.clear();
        if !field.write(view, &mut value) {
            continue;
        }
        line.push_str(between);
        between = ", ";
        quoted(name, line);
        line.push_str(": ");
        quoted(&value, line);
    }
    line.push('}');
}

/// The fields asked for, in the order asked for; all of them if nothing was said.
fn chosen(mut object: Map<String, Value>, ask: &Ask) -> Map<String, Value> {
    let Some(names) = &ask.names else { return object };
    let taken = names.iter().filter_map(|name| Some((name.clone(), object.remove(spelled(name))?)));
    taken.collect()
}

/// Values with spaces between them, `-` for what is asked for and absent.
fn text_line(object: &Map<String, Value>, ask: &Ask, line: &mut String) {
    let text = |value: &Value| {
        let text = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
        // A space inside a value would shift the others.
        text.replace(' ', "%20").replace('\n', "%0a").replace('\r', "%0d")
    };
    let values: Vec<String> = match &ask.names {
        None => object.values().map(text).collect(),
        Some(names) => {
            let value = |name: &String| object.get(spelled(name)).map_or_else(|| "-".to_owned(), text);
            names.iter().map(value).collect()
        }
    };
    line.push_str(&values.join(" "));
}

/// The name that pywb itself uses for a field.
fn spelled(name: &str) -> &str {
    match name {
        "original" => "url",
        "mimetype" => "mime",
        "statuscode" => "status",
        name => name,
    }
}

/// The fields of a line in pywb's order and names; numbers are text.
fn object(
    snapshot: &Snapshot,
    view: &CaptureView<'_>,
    ask: &Ask,
    visible: Visible<'_>,
    originals: &mut OriginalFinder<'_>,
) -> crate::Result<Map<String, Value>> {
    let mut object = Map::new();
    let mut put = |name: &str, field: &Field| {
        let mut text = String::new();
        if field.write(view, &mut text) {
            object.insert(name.to_owned(), Value::String(text));
        }
    };
    for (name, field) in &FIELDS {
        put(name, field);
    }
    let extra = view.extra().and_then(|extra| serde_json::from_str::<Map<String, Value>>(extra).ok());
    for (name, value) in extra.into_iter().flatten() {
        let value = if value.is_number() { Value::String(value.to_string()) } else { value };
        object.insert(name, value);
    }
    if ask.resolve {
        let original = if view.is_revisit() { originals.find(view)? } else { None };
        let original = match original {
            Some(original) if is_visible(snapshot, &original, visible)? => Some(original),
            _ => None,
        };
        // What a revisit says of itself gives way to what its original was.
        if let Some(original) = &original {
            let status = original.status.map(|status| status.to_string());
            for (name, value) in [("mime", original.mime.clone()), ("status", status)] {
                if let (Some(slot), Some(value)) = (object.get_mut(name), value) {
                    *slot = Value::String(value);
                }
            }
        }
        let text = |value: Option<String>| Value::String(value.unwrap_or_else(|| "-".to_owned()));
        let number = |value: Option<u64>| text(value.map(|number| number.to_string()));
        object
            .insert("orig.length".to_owned(), number(original.as_ref().and_then(|original| original.length)));
        object
            .insert("orig.offset".to_owned(), number(original.as_ref().and_then(|original| original.offset)));
        object.insert("orig.filename".to_owned(), text(original.map(|original| original.file)));
    }
    Ok(object)
}

/// Whether an original may be told of, which is found without asking.
fn is_visible(snapshot: &Snapshot, original: &Capture, visible: Visible<'_>) -> crate::Result<bool> {
    let mut captures = snapshot.captures(&original.surt, original.time)?;
    while let Some(view) = captures.next()? {
        if view.file() == original.file && view.offset() == original.offset {
            return Ok(visible(&view));
        }
    }
    Ok(false)
}

/// JSON with a space after commas and colons, as Python writes it and pywb's tests compare it.
fn python_json(object: &Map<String, Value>) -> String {
    let pairs: Vec<String> =
        object.iter().map(|(name, value)| format!("{}: {value}", Value::String(name.clone()))).collect();
    format!("{{{}}}", pairs.join(", "))
}

fn link(view: &CaptureView<'_>, prefix: &str, first: bool, out: &mut String) {
    let mut url = String::new();
    view.url_into(&mut url);
    let time = view.time();
    let rel = if first { "first memento" } else { "memento" };
    let date = http_date(&time.to_string());
    // A String never fails to be written to.
    let _ = write!(out, "<{prefix}{time}/{url}>; rel=\"{rel}\"; datetime=\"{date}\",");
}

/// A 14-digit time as HTTP writes dates; empty if it is none.
fn http_date(time: &str) -> String {
    let part = |from: usize, to: usize| time.get(from..to).and_then(|text| text.parse().ok());
    let date = || {
        let date = jiff::civil::date(part(0, 4)?, part(4, 6)? as i8, part(6, 8)? as i8);
        let date = date.at(part(8, 10)? as i8, part(10, 12)? as i8, part(12, 14)? as i8, 0);
        Some(date.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string())
    };
    let valid = (1..=12).contains(&part(4, 6).unwrap_or(0))
        && (1..=31).contains(&part(6, 8).unwrap_or(0))
        && part(8, 10).unwrap_or(99) < 24
        && part(10, 12).unwrap_or(99) < 60
        && part(12, 14).unwrap_or(99) < 60;
    if valid { date().unwrap_or_default() } else { String::new() }
}

fn count_pages(
    snapshot: &Snapshot,
    ask: &Ask,
    visible: Visible<'_>,
    out: &mut dyn Write,
) -> Result<Answer, Failure> {
    let mut rows = 0u64;
    let noticed = ask.query.run(snapshot, |view| {
        rows += u64::from(visible(view));
        Ok(Next::More)
    })?;
    let blocks = rows.div_ceil(BLOCK_ROWS);
    let pages = blocks.div_ceil(ask.page_blocks);
    writeln!(out, "{{\"blocks\": {blocks}, \"pages\": {pages}, \"pageSize\": {}}}", ask.page_blocks)?;
    Ok(Answer { content_type: JSON, captures: 0, noticed })
}
