//! Where a harvest stands, and what follows on a page: pure, so that every quirk of a server is a line in a table.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use grange_model::oai::{Counts, Granularity, Method, Slices};
use jiff::Timestamp;
use oaipmh::{Datestamp, ErrorCode, OaiError, Request, Selection, Verb};
use serde::{Deserialize, Serialize};

use super::repeats::{ListEnd, Repeats};
use super::window::Window;

/// What is asked of the repository, once it is decided what "since last time" means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    pub prefix: String,
    pub set: Option<String>,
    pub from: Option<Timestamp>,
    pub until: Option<Timestamp>,
    pub method: Method,
    pub slices: Slices,
    /// By which rules records are judged: records taken under others do not count. Empty: none but the level loose.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub rules: String,
}

/// Where a harvest stands. Kept with every page, before its token is used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    pub asked: Asked,
    /// The server's clock at the first answer of all: where the next incremental harvest begins.
    pub first_response: Option<Timestamp>,
    /// The first list of this harvest. A record seen in it or later was seen.
    pub first_list: i64,
    /// The list that is read now.
    pub list: i64,
    pub window: Window,
    /// Where the list goes on; absent before its first page.
    pub token: Option<String>,
    pub pages: u64,
    pub pages_of_list: u64,
    /// Pages without a record, in a row.
    pub empty_pages: u32,
    pub records_of_list: u64,
    /// How many the list has, as the server says.
    pub size: Option<u64>,
    /// How often a list had to be begun again.
    pub restarts: u32,
    /// The server ignores windows of dates: one list of everything is taken.
    pub windows_broken: bool,
    /// Records may have come that nobody could recognize, or in lists of different states: no record counts as gone
    /// because it was missing, unless a person accepts it.
    pub doubtful: bool,
    /// Why the lists are known to lack records, by the first of them that does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<String>,
    /// The first list that was shorter than its completeListSize: the records that came, and the size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short: Option<(u64, u64)>,
    /// The first completeListSize that changed within a list: before and after. The repository changed while the list was
    /// read, and where its tokens are offsets, a record that was deleted behind them hides a record that exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resized: Option<(u64, u64)>,
    /// The list that ended last, where it has a size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list_end: Option<ListEnd>,
    /// What became of the records that are kept. Filled in by whoever keeps them.
    pub counts: Counts,
    /// Records that came twice in a list. Filled in like `counts`.
    #[serde(default, skip_serializing_if = "Repeats::is_none")]
    pub repeats: Repeats,
    /// Held records that the lists lack although the repository has them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub skipped: u64,
    /// Records received.
    #[serde(default)]
    pub records: u64,
    pub bytes: u64,
    /// When the harvest began; with `first_list` what tells its journal from that of any other.
    #[serde(default)]
    pub begun: Option<Timestamp>,
    /// The last entry of the journal that this position knows of.
    #[serde(default)]
    pub entry: u64,
    /// Every list was read to its end: nothing is left to ask for.
    #[serde(default)]
    pub done: bool,
}

/// What a page brought.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub response_date: Option<Timestamp>,
    pub records: u64,
    /// Records dated outside of the window.
    pub outside: u64,
    pub token: Option<String>,
    pub size: Option<u64>,
    pub errors: Vec<OaiError>,
}

/// What follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Ask on: the position says what.
    Page,
    /// A list begins: a number for it is needed first. The text is for the history, if there is something to tell.
    List(Option<String>),
    /// Every list was read as far as the repository gave it.
    Done(Option<String>),
    Fail(String),
}

/// Tokens used in the list that is read; survives no crash, after which a page of only known identifiers tells.
#[derive(Debug, Default)]
pub struct Tokens(HashSet<u64>);

/// A list that had to be begun again so often will not end this time either.
const RESTARTS_MAX: u32 = 5;
/// metha's number: servers that filter after paging send some empty pages.
const EMPTY_PAGES_MAX: u32 = 10;

impl Tokens {
    /// Whether the token is new.
    fn take(&mut self, token: &str) -> bool {
        let mut hasher = DefaultHasher::new();
        token.hash(&mut hasher);
        self.0.insert(hasher.finish())
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}

impl Position {
    pub fn start(asked: Asked, earliest: Option<Timestamp>, list: i64, now: Timestamp) -> Self {
        Self {
            window: Window::first(asked.slices, asked.from, asked.until, earliest, now),
            asked,
            first_response: None,
            first_list: list,
            list,
            token: None,
            pages: 0,
            pages_of_list: 0,
            empty_pages: 0,
            records_of_list: 0,
            size: None,
            restarts: 0,
            windows_broken: false,
            doubtful: false,
            incomplete: None,
            short: None,
            resized: None,
            list_end: None,
            counts: Counts::default(),
            repeats: Repeats::default(),
            skipped: 0,
            records: 0,
            bytes: 0,
            begun: Some(now),
            entry: 0,
            done: false,
        }
    }

    fn verb(&self) -> Verb {
        match self.asked.method {
            Method::ListRecords => Verb::ListRecords,
            Method::ListIdentifiers => Verb::ListIdentifiers,
        }
    }

    /// Whether another position is the next one that the journal of this harvest holds.
    pub fn is_followed_by(&self, other: &Self) -> bool {
        (self.begun, self.first_list) == (other.begun, other.first_list) && self.entry + 1 == other.entry
    }

    /// What to ask now.
    pub fn request(&self, granularity: Granularity) -> Request {
        if let Some(token) = &self.token {
            return Request::resume(self.verb(), token.clone());
        }
        let stamp = |at: Timestamp| Datestamp::from_timestamp(at, of(granularity));
        let selection = Selection {
            metadata_prefix: self.asked.prefix.clone(),
            from: self.window.from.map(stamp),
            until: self.window.until.map(stamp),
            set: self.asked.set.clone(),
        };
        match self.asked.method {
            Method::ListRecords => Request::ListRecords(selection),
            Method::ListIdentifiers => Request::ListIdentifiers(selection),
        }
    }

    /// Where the next incremental harvest begins: the first answer's date, less one granule.
    pub fn next_from(&self, granularity: Granularity) -> Option<Timestamp> {
        let mark = Datestamp::from_timestamp(self.first_response?, of(granularity)).previous().timestamp();
        Some(self.asked.until.map_or(mark, |until| mark.min(until)))
    }

    /// Whether the harvest saw everything the repository has of the format and set.
    pub fn is_full(&self) -> bool {
        (self.asked.from.is_none() && self.asked.until.is_none()) || self.windows_broken
    }

    /// Why the harvest is incomplete. `estimated`: sizes of lists are estimates.
    pub fn shortcoming(&self, estimated: bool) -> Option<String> {
        let short = self.short.filter(|_| !estimated).map(|(records, size)| {
            format!(
                "{records} of {size} records came; if the repository's completeListSize is an estimate, set \
                 --estimated-size true"
            )
        });
        self.incomplete.clone().or(short)
    }

    /// Why a record that no list has may exist. `estimated`: sizes of lists are estimates.
    pub fn doubt(&self, estimated: bool) -> Option<String> {
        let resized = self.resized.filter(|_| !estimated).map(|(before, after)| {
            format!("its completeListSize changed from {before} to {after} while the list was read")
        });
        let doubtful = || "the list was begun again, or records came damaged".to_owned();
        resized.or_else(|| self.doubtful.then(doubtful))
    }

    /// Why lists that were read to their ends lack records that exist, or may have. `estimated`: sizes of lists are
    /// estimates.
    pub fn lacking(&self, estimated: bool) -> Option<String> {
        // A list of everything has replaced the lists of windows.
        let counts = |list: i64| !estimated && (!self.windows_broken || list == self.list);
        if self.skipped > 0 {
            return Some(format!("the lists lack {} records that the repository has", self.skipped));
        }
        let short = self.repeats.short().filter(|short| counts(short.end.list))?;
        let ListEnd { records, size, .. } = short.end;
        Some(format!(
            "{records} of {size} records came, but only {} different ones: the list may lack others",
            short.different
        ))
    }

    /// Some records of a list did not come.
    pub(super) fn lacks(&mut self, why: String) {
        self.incomplete.get_or_insert(why);
    }

    /// Takes a page into account and decides what follows. `now` is for the windows that are still to come.
    pub fn step(&mut self, seen: &Seen, tokens: &mut Tokens, now: Timestamp) -> Next {
        self.first_response = self.first_response.or(seen.response_date);
        if let (Some(before), Some(size)) = (self.size, seen.size)
            && before != size
        {
            self.resized.get_or_insert((before, size));
        }
        self.size = seen.size.or(self.size);
        if let Some(next) = self.on_errors(seen, tokens, now) {
            return next;
        }
        self.pages += 1;
        self.pages_of_list += 1;
        self.records_of_list += seen.records;
        self.empty_pages = if seen.records == 0 { self.empty_pages + 1 } else { 0 };
        if seen.outside > 0 && !self.window.is_open() && !self.windows_broken {
            return self.without_windows(tokens);
        }
        let Some(token) = &seen.token else { return self.end_of_list(None, tokens, now) };
        if !tokens.take(token) {
            let told =
                format!("the repository gave the same token again after {} records", self.records_of_list);
            return self.end_of_list(Some(told), tokens, now);
        }
        if self.empty_pages >= EMPTY_PAGES_MAX {
            let told = format!("the repository sent {EMPTY_PAGES_MAX} empty pages in a row");
            return self.end_of_list(Some(told), tokens, now);
        }
        self.token = Some(token.clone());
        Next::Page
    }

    /// A page of the list that is read had only identifiers that came in it before: it would never end.
    pub fn began_again(&mut self, tokens: &mut Tokens, now: Timestamp) -> Next {
        let told = format!("the repository began its list again within {} records", self.records_of_list);
        self.end_of_list(Some(told), tokens, now)
    }

    fn on_errors(&mut self, seen: &Seen, tokens: &mut Tokens, now: Timestamp) -> Option<Next> {
        let error = seen.errors.first()?;
        let has = |code: &ErrorCode| seen.errors.iter().any(|error| error.code == *code);
        let resumed = self.token.is_some();
        let all_here = self.size.is_some_and(|size| size > 0 && self.records_of_list >= size);
        if seen.records > 0 {
            // A response with records and an error is used; the end of a list is not believed from it.
            self.doubtful = true;
            if seen.token.is_none() {
                self.lacks(format!("the repository answered {error} beside the last records of a list"));
            }
            return None;
        }
        if has(&ErrorCode::NoRecordsMatch) && !resumed {
            return Some(self.end_of_list(None, tokens, now));
        }
        if resumed && (has(&ErrorCode::BadResumptionToken) || has(&ErrorCode::NoRecordsMatch)) {
            // Some give one token too many when the size is a multiple of the page.
            if all_here {
                return Some(self.end_of_list(None, tokens, now));
            }
            return Some(self.restart(&error.to_string(), tokens));
        }
        if has(&ErrorCode::BadArgument) && !resumed && !self.window.is_open() && !self.windows_broken {
            return Some(self.without_windows(tokens));
        }
        Some(Next::Fail(format!("the repository answered {error}")))
    }

    /// The list from its beginning. What came before is known, so it costs little.
    fn restart(&mut self, why: &str, tokens: &mut Tokens) -> Next {
        if self.restarts >= RESTARTS_MAX {
            return Next::Fail(format!(
                "the list was begun {} times and never ended: {why}",
                self.restarts + 1
            ));
        }
        let told = format!("the list was begun again after {} records: {why}", self.records_of_list);
        self.restarts += 1;
        // The repository changed between the two beginnings: a record may be in neither list and still exist.
        self.doubtful = true;
        self.begin(tokens);
        Next::List(Some(told))
    }

    fn without_windows(&mut self, tokens: &mut Tokens) -> Next {
        self.windows_broken = true;
        self.window = Window::default();
        // The lists before are replaced by one of everything.
        (self.incomplete, self.short, self.resized) = (None, None, None);
        self.begin(tokens);
        Next::List(Some("the repository ignores from and until: one list of everything is taken".to_owned()))
    }

    fn end_of_list(&mut self, odd: Option<String>, tokens: &mut Tokens, now: Timestamp) -> Next {
        let records = self.records_of_list;
        self.list_end = self.size.map(|size| ListEnd { list: self.list, records, size });
        if let Some(odd) = &odd {
            self.lacks(odd.clone());
        } else if let Some(size) = self.size.filter(|size| self.records_of_list < *size) {
            self.short.get_or_insert((self.records_of_list, size));
        }
        let until = self.asked.until;
        match self.window.after(self.asked.slices, until, self.first_response.unwrap_or(now)) {
            Some(window) if !self.windows_broken => {
                self.window = window;
                self.begin(tokens);
                Next::List(odd)
            }
            _ => {
                self.token = None;
                self.done = true;
                Next::Done(odd)
            }
        }
    }

    fn begin(&mut self, tokens: &mut Tokens) {
        tokens.clear();
        self.token = None;
        self.size = None;
        (self.pages_of_list, self.records_of_list, self.empty_pages) = (0, 0, 0);
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
pub(super) fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn of(granularity: Granularity) -> oaipmh::Granularity {
    match granularity {
        Granularity::Day => oaipmh::Granularity::Day,
        Granularity::Second => oaipmh::Granularity::Second,
    }
}

#[cfg(test)]
impl Asked {
    /// The whole list of one repository.
    pub(super) fn everything() -> Asked {
        Asked {
            prefix: "oai_dc".to_owned(),
            set: None,
            from: None,
            until: None,
            method: Method::ListRecords,
            slices: Slices::Whole,
            rules: String::new(),
        }
    }
}

#[cfg(test)]
#[path = "position_tests.rs"]
mod tests;
