//! The XML that OpenWayback's remote index speaks, and OutbackCDX with it: `q=type:urlquery url:… limit:… offset:…`.

use std::io::Write;

use percent_encoding::percent_decode_str;
use urlkey::MatchType;

use super::params::{BadRequest, Params};
use super::{Answer, Failure, Visible};
use crate::key::{key, keys};
use crate::query::{Field, Next, Order, Query};
use crate::segment::Position;
use crate::snapshot::Snapshot;
use crate::stamp::Stamp;
use crate::view::CaptureView;

pub const XML: &str = "application/xml";

/// Results if no limit is asked for, as those front ends expect; and how far those are counted that are not told.
const RESULTS: u64 = 10_000;

struct Ask {
    query: Query,
    prefix: bool,
    key: String,
    skip: u64,
    limit: u64,
    from: String,
    to: String,
    /// The result closest to this time is marked.
    near: Option<Stamp>,
}

impl Ask {
    fn read(params: &Params) -> Result<Self, BadRequest> {
        let text = params.get("q").ok_or(BadRequest::Missing { name: "q" })?;
        let mut ask = None;
        let (mut prefix, mut skip, mut limit) = (false, 0, RESULTS);
        let (mut from, mut to, mut near) = (None, None, None);
        // Values were escaped once for themselves and once as part of the query.
        for part in text.split(' ') {
            let Some((name, value)) = part.split_once(':') else { continue };
            let value = percent_decode_str(value).decode_utf8_lossy().into_owned();
            let number = |value: &str| {
                let why = "limit and offset are numbers";
                value.parse().map_err(|_| BadRequest::Value { name: "q", value: value.to_owned(), why })
            };
            let time = |value: &str, how: fn(&str) -> Option<Stamp>| {
                let why = "a time is 1 to 17 digits, from the year on";
                how(value).ok_or_else(|| BadRequest::Value { name: "q", value: value.to_owned(), why })
            };
            match name {
                "type" => prefix = value == "prefixquery",
                "url" => ask = Some(value),
                "limit" => limit = number(&value)?,
                "offset" => skip = number(&value)?,
                "startdate" => from = Some((time(&value, Stamp::earliest)?, value)),
                "date" => near = Some(time(&value, Stamp::earliest)?),
                "enddate" => to = Some((time(&value, Stamp::latest)?, value)),
                _ => {}
            }
        }
        // OpenSearch asks by pages, the first of which is 1.
        if let Some(count) = params.number("count")? {
            limit = count;
            skip = params.number("start_page")?.unwrap_or(1_u64).saturating_sub(1).saturating_mul(count);
        }
        let url = ask.ok_or(BadRequest::Value {
            name: "q",
            value: text.to_owned(),
            why: "it names no url: write q=type:urlquery url:http%3A%2F%2Fexample.org%2F",
        })?;
        let mut query = Query::new(keys(&url, if prefix { MatchType::Prefix } else { MatchType::Exact }));
        query.rows_most = params.rows_most;
        query.from = from.as_ref().map_or(Stamp::MIN, |(stamp, _)| *stamp);
        query.to = to.as_ref().map_or(Stamp::MAX, |(stamp, _)| *stamp);
        Ok(Self {
            query,
            prefix,
            key: key(&url),
            skip,
            limit,
            from: from.map_or_else(|| "19960101000000".to_owned(), |(_, text)| text),
            to: to.map_or_else(|| "29991231235959".to_owned(), |(_, text)| text),
            near,
        })
    }
}

/// Answers a request to `/<collection>?q=…`.
pub fn answer(
    snapshot: &Snapshot,
    params: &Params,
    visible: Visible<'_>,
    out: &mut dyn Write,
) -> Result<Answer, Failure> {
    let ask = Ask::read(params)?;
    let closest = closest(&ask, snapshot, visible)?;
    out.write_all(b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<wayback>\n  <results>\n")?;
    let (mut results, mut told, mut failed) = (0, 0, None);
    let mut url: Option<Url> = None;
    let mut give = |write: &mut dyn FnMut(&mut dyn Write) -> std::io::Result<()>| -> bool {
        results += 1;
        if results > ask.skip && told < ask.limit {
            told += 1;
            failed = write(out).err();
        }
        failed.is_none() && (told < ask.limit || results < RESULTS)
    };
    let noticed = ask.query.run(snapshot, |view| {
        if !visible(view) {
            return Ok(Next::More);
        }
        let more = if ask.prefix {
            match &mut url {
                Some(url) if url.key == *view.surt() => {
                    url.last = view.time();
                    url.captures += 1;
                    true
                }
                _ => url.replace(Url::new(view)).is_none_or(|done| give(&mut |out| done.write(out))),
            }
        } else {
            let marked = closest.as_ref().is_some_and(|closest| *closest == view.position());
            give(&mut |out| capture(view, marked, out))
        };
        if !more {
            url = None;
        }
        Ok(if more { Next::More } else { Next::Stop })
    })?;
    if let Some(url) = url {
        give(&mut |out| url.write(out));
    }
    if let Some(error) = failed {
        return Err(error.into());
    }
    out.write_all(b"  </results>\n")?;
    request(&ask, told, results, out)?;
    out.write_all(b"</wayback>\n")?;
    Ok(Answer { content_type: XML, captures: told, noticed })
}

/// A refusal in the same XML.
pub fn error(message: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<wayback>\n  <error>\n    <title>Bad query</title>\n    <message>{}</message>\n  </error>\n</wayback>\n",
        escaped(message)
    )
}

/// The capture that answers best for the time that was asked for.
fn closest(
    ask: &Ask,
    snapshot: &Snapshot,
    visible: Visible<'_>,
) -> Result<Option<Position>, crate::error::Error> {
    let Some(near) = ask.near.filter(|_| !ask.prefix) else { return Ok(None) };
    let mut query = ask.query.clone();
    query.order = Order::Closest(near);
    let mut found = None;
    query.run(snapshot, |view| {
        found = Some(view.position()).filter(|_| visible(view));
        Ok(if found.is_some() { Next::Stop } else { Next::More })
    })?;
    Ok(found)
}

/// What was asked and how much there is; behind the results, for only then it is known.
fn request(ask: &Ask, told: u64, results: u64, out: &mut dyn Write) -> std::io::Result<()> {
    let (kind, of) =
        if ask.prefix { ("prefixquery", "resultstypeurl") } else { ("urlquery", "resultstypecapture") };
    out.write_all(b"  <request>\n")?;
    for (name, value) in [
        ("startdate", ask.from.as_str()),
        ("enddate", &ask.to),
        ("type", kind),
        ("firstreturned", &ask.skip.to_string()),
        ("url", &ask.key),
        ("resultsrequested", &ask.limit.to_string()),
        ("resultstype", of),
        ("numreturned", &told.to_string()),
        ("numresults", &results.to_string()),
    ] {
        element(name, value, out)?;
    }
    out.write_all(b"  </request>\n")
}

fn capture(view: &CaptureView<'_>, closest: bool, out: &mut dyn Write) -> std::io::Result<()> {
    out.write_all(b"    <result>\n")?;
    if closest {
        element("closest", "true", out)?;
    }
    for (name, field) in [
        ("compressedoffset", "offset"),
        // So it is called, and so OutbackCDX fills it: with the length.
        ("compressedendoffset", "length"),
        ("mimetype", "mimetype"),
        ("file", "filename"),
        ("redirecturl", "redirect"),
        ("urlkey", "urlkey"),
        ("digest", "digest"),
        ("httpresponsecode", "statuscode"),
        ("robotflags", "robotflags"),
        ("url", "original"),
        ("capturedate", "timestamp"),
    ] {
        let mut text = String::new();
        if !Field::parse(field).write(view, &mut text) {
            text.push('-');
        }
        if name == "digest" {
            text = text.rsplit(':').next().unwrap_or_default().to_owned();
        }
        element(name, &text, out)?;
    }
    out.write_all(b"    </result>\n")
}

/// One URL of a prefix query, with what is known of its captures.
struct Url {
    key: String,
    original: String,
    captures: u64,
    first: Stamp,
    last: Stamp,
}

impl Url {
    fn new(view: &CaptureView<'_>) -> Self {
        let mut original = String::new();
        view.url_into(&mut original);
        Self { key: view.surt().into_owned(), original, captures: 1, first: view.time(), last: view.time() }
    }

    fn write(&self, out: &mut dyn Write) -> std::io::Result<()> {
        out.write_all(b"    <result>\n")?;
        for (name, value) in [
            ("urlkey", self.key.as_str()),
            ("originalurl", &self.original),
            ("numversions", &self.captures.to_string()),
            ("numcaptures", &self.captures.to_string()),
            ("firstcapturets", &self.first.to_string()),
            ("lastcapturets", &self.last.to_string()),
        ] {
            element(name, value, out)?;
        }
        out.write_all(b"    </result>\n")
    }
}

fn element(name: &str, value: &str, out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(out, "      <{name}>{}</{name}>", escaped(value))
}

/// Text as XML 1.0 can hold it: markup escaped, control characters left out.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\t' | '\n' | '\r' => out.push(' '),
            char if char < ' ' || matches!(char, '\u{fffe}' | '\u{ffff}') => {}
            char => out.push(char),
        }
    }
    out
}
