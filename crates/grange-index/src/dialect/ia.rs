//! The Internet Archive's CDX server (also OpenWayback's): resume keys, collapsing with counters, the last N, pages.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io::Write;

use percent_encoding::{NON_ALPHANUMERIC, percent_encode};

use super::line::{columns, quoted, value};
use super::params::{BadRequest, Params};
use super::{Answer, Failure, JSON, TEXT, Visible};
use crate::query::{Answered, Collapse, Collapsed, Field, Filter, Keys, Next, Order, Query};
use crate::segment::Position;
use crate::snapshot::Snapshot;
use crate::stamp::Stamp;
use crate::view::CaptureView;

const FIELDS: &[&str] = &["urlkey", "timestamp", "original", "mimetype", "statuscode", "digest", "length"];

/// Rows of one block of a page; pages are counted in blocks of this size, as with ZipNum files.
const BLOCK_ROWS: u64 = 3000;

/// Blocks of a page if nothing else is asked for.
const PAGE_BLOCKS: u64 = 5;

/// Rows kept for `limit=-N`: they are known only at the end.
const LAST_MAX: usize = 100_000;

/// Digests remembered of one URL for `showDupeCount`; a URL with more contents than this counts from anew.
const DIGESTS_MAX: usize = 100_000;

/// What is asked for, read and checked.
struct Ask {
    query: Query,
    json: bool,
    names: Vec<String>,
    fields: Vec<Field>,
    collapse: Vec<Collapse>,
    limit: Option<u64>,
    last: Option<usize>,
    skip: u64,
    show_resume_key: bool,
    counters: Counters,
    page_count: Option<u64>,
    page_blocks: u64,
}

#[derive(Clone, Copy, Default)]
struct Counters {
    dupe: bool,
    skip: bool,
    end: bool,
    group: bool,
    uniq: bool,
}

impl Counters {
    const fn any(self) -> bool {
        self.dupe || self.skip || self.end || self.group || self.uniq
    }
}

impl Ask {
    fn read(params: &Params) -> Result<Self, BadRequest> {
        let (keys, _) = params.keys()?;
        let mut query = Query::new(keys);
        query.rows_most = params.rows_most;
        (query.from, query.to) = params.times()?;
        query.filters = params.all("filter").map(Filter::ia).collect::<Result<_, _>>()?;
        query.order = match (params.get("sort"), params.closest()?) {
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
        if let Some(key) = params.get("resumeKey") {
            query.after = Some(read_resume_key(key).ok_or_else(|| BadRequest::Value {
                name: "resumeKey",
                value: key.to_owned(),
                why: "it is not one that this server gave",
            })?);
        }
        let names: Vec<String> = match params.get("fl") {
            Some(names) => names.split(',').map(|name| name.trim().to_owned()).collect(),
            None => FIELDS.iter().map(|name| (*name).to_owned()).collect(),
        };
        let mut collapse = Vec::new();
        for text in params.all("collapse") {
            collapse.push(Collapse::parse(text).ok_or_else(|| BadRequest::Value {
                name: "collapse",
                value: text.to_owned(),
                why: "it is field or field:N",
            })?);
        }
        let limit: Option<i64> = params.number("limit")?;
        let page_blocks = params.number("pageSize")?.unwrap_or(PAGE_BLOCKS).max(1);
        let page: Option<u64> = params.number("page")?;
        let mut ask = Self {
            fields: names.iter().map(|name| Field::parse(name)).collect(),
            names,
            query,
            json: params.get("output") == Some("json"),
            collapse,
            limit: limit.and_then(|limit| u64::try_from(limit).ok()),
            last: limit.filter(|limit| *limit < 0).map(|limit| limit.unsigned_abs() as usize),
            skip: params.number("offset")?.unwrap_or_default(),
            show_resume_key: params.is_set("showResumeKey"),
            counters: Counters {
                dupe: params.is_set("showDupeCount"),
                skip: params.is_set("showSkipCount"),
                end: params.is_set("lastSkipTimestamp"),
                group: params.is_set("showGroupCount"),
                uniq: params.is_set("showUniqCount"),
            },
            page_count: params.is_set("showNumPages").then_some(page_blocks),
            page_blocks,
        };
        if params.is_set("fastLatest") && ask.limit.is_some() {
            ask.last = ask.limit.take().map(|limit| limit as usize);
        }
        if ask.last.is_some_and(|last| last > LAST_MAX) {
            return Err(BadRequest::Value {
                name: "limit",
                value: limit.unwrap_or_default().to_string(),
                why: "at most the last 100000 captures can be asked for",
            });
        }
        if let Some(page) = page {
            if ask.last.is_some() {
                return Err(BadRequest::Together { first: "page", second: "a negative limit" });
            }
            let rows = ask.page_blocks.saturating_mul(BLOCK_ROWS);
            ask.skip = ask.skip.saturating_add(page.saturating_mul(rows));
            ask.limit = Some(ask.limit.unwrap_or(rows).min(rows));
        }
        Ok(ask)
    }
}

/// What the answer to these parameters is.
pub fn content_type(params: &Params) -> &'static str {
    let lines = params.counts_pages() || params.is_set("showPagedIndex");
    if params.get("output") == Some("json") && !lines { JSON } else { TEXT }
}

/// Answers a request to the CDX server.
pub fn answer(
    snapshot: &Snapshot,
    params: &Params,
    visible: Visible<'_>,
    out: &mut dyn Write,
) -> Result<Answer, Failure> {
    let mut ask = Ask::read(params)?;
    if params.is_set("showPagedIndex") {
        return super::paged::answer(&ask.query, snapshot, BLOCK_ROWS, false, visible, out);
    }
    if let Some(blocks) = ask.page_count {
        return count_pages(snapshot, &ask, blocks, visible, out);
    }
    let plain = ask.collapse.is_empty() && !ask.counters.any() && ask.query.order == Order::Ascending;
    // The place to go on behind is where it begins, so there is no going back to it from the end.
    let backwards = ask.last.is_some() && plain && ask.query.after.is_none();
    if backwards {
        ask.query.order = Order::Descending;
    }
    let mut teller = Teller::new(&ask, out);
    teller.begin()?;
    let mut collapse = ask.collapse.clone();
    if let Some(after) = &ask.query.after {
        recall(snapshot, &ask, after, visible, &mut collapse, &mut teller)?;
    }
    let mut failed = None;
    let (mut skip, mut told) = (ask.skip, 0);
    let mut cut_off = false;
    let mut last_row: Option<Position> = None;
    let most = if backwards { ask.last.map(|last| last as u64) } else { ask.limit };
    let noticed = ask.query.run(snapshot, |view| {
        if !visible(view) {
            return Ok(Next::More);
        }
        // A capture that any of them has seen goes no further.
        if collapse.iter_mut().any(|one| one.judge(view) == Collapsed::Repeated) {
            teller.repeated(view);
            return Ok(Next::More);
        }
        if skip > 0 {
            skip -= 1;
            // Counters count what earlier pages told.
            teller.note_digest(view);
            return Ok(Next::More);
        }
        if most.is_some_and(|most| told >= most) {
            cut_off = true;
            return Ok(Next::Stop);
        }
        told += 1;
        if ask.show_resume_key {
            last_row = Some(view.position());
        }
        if let Err(error) = teller.tell(view) {
            failed = Some(error);
            return Ok(Next::Stop);
        }
        Ok(Next::More)
    })?;
    if let Some(error) = failed {
        return Err(error.into());
    }
    let resume = last_row.filter(|_| ask.show_resume_key && cut_off);
    let captures = teller.end(resume.as_ref(), backwards)?;
    Ok(Answer { content_type: if ask.json { JSON } else { TEXT }, captures, noticed })
}

/// Reads again what was told of the URL at which an answer goes on, so that groups and counters go on as if it had never broken
/// off.
fn recall(
    snapshot: &Snapshot,
    ask: &Ask,
    after: &Position,
    visible: Visible<'_>,
    collapse: &mut [Collapse],
    teller: &mut Teller<'_>,
) -> Result<(), Failure> {
    if collapse.is_empty() && !ask.counters.any() {
        return Ok(());
    }
    let keys = Keys::Exact(String::from_utf8_lossy(&after.surt).into_owned());
    let order = match (&ask.query.keys, ask.query.order) {
        (Keys::Range(..), Order::Closest(_)) => Order::Ascending,
        (_, order) => order,
    };
    let told = Query { keys, order, after: None, ..ask.query.clone() };
    told.run(snapshot, |view| {
        let position = view.position();
        let is_behind = match order {
            Order::Ascending => position > *after,
            Order::Descending => position < *after,
            Order::Closest(_) => false,
        };
        if is_behind {
            return Ok(Next::Stop);
        }
        if visible(view) {
            for one in &mut *collapse {
                one.judge(view);
            }
            teller.note_digest(view);
        }
        Ok(if position == *after { Next::Stop } else { Next::More })
    })?;
    teller.uniq.clear();
    Ok(())
}

fn count_pages(
    snapshot: &Snapshot,
    ask: &Ask,
    blocks: u64,
    visible: Visible<'_>,
    out: &mut dyn Write,
) -> Result<Answer, Failure> {
    let mut rows = 0u64;
    let noticed: Answered = ask.query.run(snapshot, |view| {
        rows += u64::from(visible(view));
        Ok(Next::More)
    })?;
    writeln!(out, "{}", rows.div_ceil(blocks.saturating_mul(BLOCK_ROWS)))?;
    Ok(Answer { content_type: TEXT, captures: 0, noticed })
}

/// Writes rows, one behind: the counters of a row are known when the next begins.
struct Teller<'t> {
    ask: &'t Ask,
    out: &'t mut dyn Write,
    waiting: Option<Vec<String>>,
    skipped: u64,
    end: Option<Stamp>,
    digests: HashMap<String, u64>,
    url_key: Vec<u8>,
    uniq: HashSet<String>,
    told: u64,
    last: VecDeque<Vec<String>>,
}

impl<'t> Teller<'t> {
    fn new(ask: &'t Ask, out: &'t mut dyn Write) -> Self {
        Self {
            ask,
            out,
            waiting: None,
            skipped: 0,
            end: None,
            digests: HashMap::new(),
            url_key: Vec::new(),
            uniq: HashSet::new(),
            told: 0,
            last: VecDeque::new(),
        }
    }

    fn begin(&mut self) -> std::io::Result<()> {
        if self.ask.json {
            let mut names = self.ask.names.clone();
            let counters = self.ask.counters;
            for (shown, name) in [
                (counters.dupe, "dupecount"),
                (counters.group, "groupcount"),
                (counters.uniq, "uniqcount"),
                (counters.skip, "skipcount"),
                (counters.end, "endtimestamp"),
            ] {
                if shown {
                    names.push(name.to_owned());
                }
            }
            self.out.write_all(b"[")?;
            self.write_row(&names)?;
        }
        Ok(())
    }

    /// A capture that was left out by collapsing.
    fn repeated(&mut self, view: &CaptureView<'_>) {
        self.skipped += 1;
        self.end = Some(view.time());
        self.note_digest(view);
    }

    fn note_digest(&mut self, view: &CaptureView<'_>) -> u64 {
        let counters = self.ask.counters;
        if !counters.dupe && !counters.uniq {
            return 0;
        }
        let mut digest = String::new();
        view.digest_into(&mut digest);
        if self.url_key != view.surt_bytes() || self.digests.len() >= DIGESTS_MAX {
            self.url_key = view.surt_bytes().to_vec();
            self.digests.clear();
        }
        if counters.uniq && self.uniq.len() < DIGESTS_MAX {
            self.uniq.insert(digest.clone());
        }
        let seen = self.digests.entry(digest).or_default();
        *seen += 1;
        *seen - 1
    }

    fn tell(&mut self, view: &CaptureView<'_>) -> std::io::Result<()> {
        self.flush()?;
        let dupes = self.note_digest(view);
        let mut row: Vec<String> = Vec::with_capacity(self.ask.fields.len() + 1);
        for field in &self.ask.fields {
            let mut text = String::new();
            if self.ask.json {
                if !value(view, field, true, &mut text) {
                    text.push('-');
                }
            } else {
                columns(view, std::slice::from_ref(field), true, &mut text);
            }
            row.push(text);
        }
        if self.ask.counters.dupe {
            row.push(dupes.to_string());
        }
        self.waiting = Some(row);
        Ok(())
    }

    /// Writes the row that waits, with what is now known of its group.
    fn flush(&mut self) -> std::io::Result<()> {
        let (skipped, end) = (std::mem::take(&mut self.skipped), self.end.take());
        let uniq = std::mem::take(&mut self.uniq).len();
        let Some(mut row) = self.waiting.take() else { return Ok(()) };
        let counters = self.ask.counters;
        if counters.group {
            row.push((skipped + 1).to_string());
        }
        if counters.uniq {
            row.push(uniq.to_string());
        }
        if counters.skip {
            row.push(skipped.to_string());
        }
        if counters.end {
            row.push(end.map_or_else(|| "-".to_owned(), |end| end.to_string()));
        }
        if let Some(last) = self.ask.last {
            self.last.push_back(row);
            if self.last.len() > last {
                self.last.pop_front();
            }
            return Ok(());
        }
        self.told += 1;
        self.write_row(&row)
    }

    fn write_row(&mut self, row: &[String]) -> std::io::Result<()> {
        let mut text = String::new();
        if self.ask.json {
            if self.told > 0 || row.is_empty() {
                text.push_str(",\n");
            }
            text.push('[');
            for (at, cell) in row.iter().enumerate() {
                if at > 0 {
                    text.push(',');
                }
                quoted(cell, &mut text);
            }
            text.push(']');
            // The header counts as a row when it comes to commas.
            self.told = self.told.max(1);
        } else {
            text = row.join(" ");
            text.push('\n');
        }
        self.out.write_all(text.as_bytes())
    }

    fn end(mut self, resume: Option<&Position>, backwards: bool) -> std::io::Result<u64> {
        self.flush()?;
        let mut last: Vec<Vec<String>> = std::mem::take(&mut self.last).into();
        if backwards {
            last.reverse();
        }
        for row in last {
            self.told += 1;
            self.write_row(&row)?;
        }
        if let Some(position) = resume {
            let key = resume_key(position);
            if self.ask.json {
                self.write_row(&[])?;
                self.write_row(&[key])?;
            } else {
                writeln!(self.out, "\n{key}")?;
            }
        }
        if self.ask.json {
            self.out.write_all(b"]\n")?;
        }
        Ok(if self.ask.json { self.told.saturating_sub(1) } else { self.told })
    }
}

/// The place to go on behind: key, time and `!` as the Internet Archive has it, then file and offset, so that captures of
/// one second are told apart.
fn resume_key(position: &Position) -> String {
    let text = [
        position.surt.as_slice(),
        format!(" {}! {} {}", position.time, position.file, position.offset).as_bytes(),
    ]
    .concat();
    percent_encode(&text, NON_ALPHANUMERIC).to_string()
}

/// Reads a resume key, also one of a server that knows no file and offset.
fn read_resume_key(key: &str) -> Option<Position> {
    let (surt, rest) = key.split_once(' ')?;
    let (time, place) = rest.split_once('!')?;
    let time = Stamp::parse(time).unwrap_or_default();
    let mut position = Position { time, ..Position::before(surt) };
    match place.trim_start().rsplit_once(' ') {
        Some((file, offset)) => {
            file.clone_into(&mut position.file);
            position.offset = offset.parse().ok()?;
        }
        // Behind every capture of that second.
        None => position.time = Stamp::from_code(time.code() + 1),
    }
    Some(position)
}
