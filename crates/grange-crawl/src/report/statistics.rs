//! The counts of a crawl, fed with the lines of its log.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use url::Url;

use super::host::host_of;
use crate::candidate::target_uri;
use crate::hops::Hop;
use crate::log::{CrawlLine, Revisit, mime_column};
use crate::status::FetchStatus;

/// URIs and their bytes (headers and bodies).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub urls: u64,
    pub bytes: u64,
}

impl Tally {
    fn add(&mut self, bytes: u64) {
        self.urls += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// Everything together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub succeeded: u64,
    pub failed: u64,
    pub disregarded: u64,
    pub novel: Tally,
    pub duplicate: Tally,
    pub not_modified: Tally,
}

impl Totals {
    pub const fn finished(&self) -> u64 {
        self.succeeded + self.failed + self.disregarded
    }

    /// What came over the wire, archived anew or not.
    pub const fn bytes(&self) -> u64 {
        self.novel.bytes.saturating_add(self.duplicate.bytes).saturating_add(self.not_modified.bytes)
    }
}

/// One host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostTally {
    pub succeeded: Tally,
    pub failed: u64,
    pub disregarded: u64,
    /// Of those disregarded, by robots.txt.
    pub robots: u64,
    pub novel: Tally,
    pub duplicate: Tally,
    pub not_modified: Tally,
}

/// One seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeedTally {
    pub url: Box<str>,
    /// The last one; 0 while it was not tried.
    pub status: FetchStatus,
    /// Where it leads, if that was asked too.
    pub redirect: Option<Box<str>>,
}

/// How many types are counted apart. Servers make types up; beyond this they count together as `other`.
const MIMES_MAX: usize = 10_000;
/// How much of a seed or source is kept, in bytes.
const NAME_BYTES_MAX: usize = 2083;

/// The counts of a crawl. About 200 bytes for each host, 30 for each pair of seed and host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    totals: Totals,
    hosts: Vec<(Box<str>, HostTally)>,
    host_ids: HashMap<Box<str>, u32>,
    mimes: HashMap<Box<str>, Tally>,
    statuses: BTreeMap<i32, u64>,
    seeds: Vec<SeedTally>,
    seed_ids: HashMap<Box<str>, u32>,
    sources: Vec<Box<str>>,
    source_ids: HashMap<Box<str>, u32>,
    /// By source and host.
    pairs: HashMap<(u32, u32), Tally>,
}

impl Statistics {
    /// Before the first URI. The seeds are named so that those never reached are told too.
    pub fn new<'a>(seeds: impl IntoIterator<Item = &'a str>) -> Statistics {
        let mut statistics = Statistics::default();
        for seed in seeds {
            statistics.add_seed(seed);
        }
        statistics
    }

    /// A seed more, while running.
    pub fn add_seed(&mut self, url: &str) {
        // As the log will name it.
        match Url::parse(url) {
            Ok(parsed) => self.seed(&target_uri(&parsed)),
            Err(_) => self.seed(url),
        };
    }

    /// Counts one finished URI.
    pub fn add(&mut self, line: &CrawlLine<'_>) {
        let bytes = line.content_size();
        let id = self.host(&host_of(&line.url));
        self.count_seed(line);
        let host = &mut self.hosts[id as usize].1;
        if line.status.is_disregarded() {
            self.totals.disregarded += 1;
            host.disregarded += 1;
            host.robots += u64::from(line.status == FetchStatus::ROBOTS);
            return;
        }
        if !line.status.is_success() {
            self.totals.failed += 1;
            host.failed += 1;
            return;
        }
        self.totals.succeeded += 1;
        host.succeeded.add(bytes);
        let (of_all, of_host) = match line.revisit() {
            None => (&mut self.totals.novel, &mut host.novel),
            Some(Revisit::Digest) => (&mut self.totals.duplicate, &mut host.duplicate),
            Some(Revisit::NotModified) => (&mut self.totals.not_modified, &mut host.not_modified),
        };
        of_all.add(bytes);
        of_host.add(bytes);
        *self.statuses.entry(line.status.0).or_default() += 1;
        self.mime(mime_column(&line.mime)).add(bytes);
        if let Some(source) = &line.source {
            let source = intern(&mut self.sources, &mut self.source_ids, source);
            self.pairs.entry((source, id)).or_default().add(bytes);
        }
    }

    fn count_seed(&mut self, line: &CrawlLine<'_>) {
        if line.hops.is_seed() {
            let id = self.seed(&line.url);
            self.seeds[id].status = line.status;
            return;
        }
        // One redirect from the seed: this is where it leads. Both columns of the log say so.
        if line.hops.count() == 1
            && line.hops.last() == Some(Hop::Redirect)
            && let Some(id) = line.via.as_deref().and_then(|via| self.seed_ids.get(cut(via)))
        {
            self.seeds[*id as usize].redirect = Some(cut(&line.url).into());
        }
    }

    fn seed(&mut self, url: &str) -> usize {
        let url = cut(url);
        if let Some(id) = self.seed_ids.get(url) {
            return *id as usize;
        }
        let id = self.seeds.len();
        self.seeds.push(SeedTally { url: url.into(), status: FetchStatus::NEVER_TRIED, redirect: None });
        self.seed_ids.insert(url.into(), id as u32);
        id
    }

    fn host(&mut self, name: &str) -> u32 {
        if let Some(id) = self.host_ids.get(name) {
            return *id;
        }
        let id = self.hosts.len() as u32;
        self.hosts.push((name.into(), HostTally::default()));
        self.host_ids.insert(name.into(), id);
        id
    }

    fn mime(&mut self, mime: &str) -> &mut Tally {
        // Types have no case, and servers use both.
        let mime: Cow<'_, str> = if mime.bytes().any(|b| b.is_ascii_uppercase()) {
            mime.to_ascii_lowercase().into()
        } else {
            mime.into()
        };
        let known = self.mimes.contains_key(&*mime);
        let name = if known || self.mimes.len() < MIMES_MAX { &*mime } else { "other" };
        self.mimes.entry(name.into()).or_default()
    }

    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Hosts in the order they were met, `dns:` among them.
    pub fn hosts(&self) -> impl Iterator<Item = (&str, &HostTally)> {
        self.hosts.iter().map(|(name, tally)| (&**name, tally))
    }

    pub fn host_tally(&self, host: &str) -> Option<&HostTally> {
        self.host_ids.get(host).map(|id| &self.hosts[*id as usize].1)
    }

    pub fn mimes(&self) -> impl Iterator<Item = (&str, Tally)> {
        self.mimes.iter().map(|(name, tally)| (&**name, *tally))
    }

    /// Statuses of answers and how many had each.
    pub fn statuses(&self) -> impl Iterator<Item = (FetchStatus, u64)> {
        self.statuses.iter().map(|(status, urls)| (FetchStatus(*status), *urls))
    }

    pub fn seeds(&self) -> &[SeedTally] {
        &self.seeds
    }

    /// Answers by seed and host.
    pub fn sources(&self) -> impl Iterator<Item = (&str, &str, Tally)> {
        self.pairs.iter().map(|((source, host), tally)| {
            (&*self.sources[*source as usize], &*self.hosts[*host as usize].0, *tally)
        })
    }
}

fn intern(names: &mut Vec<Box<str>>, ids: &mut HashMap<Box<str>, u32>, name: &str) -> u32 {
    let name = cut(name);
    if let Some(id) = ids.get(name) {
        return *id;
    }
    let id = names.len() as u32;
    names.push(name.into());
    ids.insert(name.into(), id);
    id
}

fn cut(name: &str) -> &str {
    &name[..name.floor_char_boundary(NAME_BYTES_MAX)]
}
