//! The addresses of the records: `metadata://ORGANISATION/crawl/CLASS/NAME?…`, parameter by parameter as
//! NetarchiveSuite writes them.

use grange_model::harvest::{HarvestId, JobId};

/// What a record is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    Setup,
    Reports,
    Logs,
    Index,
}

impl Class {
    pub const fn as_str(self) -> &'static str {
        match self {
            Class::Setup => "setup",
            Class::Reports => "reports",
            Class::Logs => "logs",
            Class::Index => "index",
        }
    }

    /// The class of a file by its name.
    pub fn of(name: &str) -> Class {
        match name.rsplit_once('.') {
            Some((stem, "txt")) if stem.ends_with("-report") => Class::Reports,
            Some((_, "log" | "out")) => Class::Logs,
            _ => Class::Setup,
        }
    }
}

/// Makes the addresses of one job's records.
#[derive(Clone, Copy, Debug)]
pub(super) struct Addresses<'a> {
    pub(super) organization: &'a str,
    pub(super) harvest: HarvestId,
    /// Counted from 1.
    pub(super) run: u64,
    pub(super) job: JobId,
    pub(super) software: &'a str,
}

impl Addresses<'_> {
    /// What was settled before the crawl began: `aliases`, `duplicatereductionjobs`.
    pub(super) fn settled(&self, name: &str) -> String {
        let Addresses { organization, harvest, job, .. } = self;
        // NetarchiveSuite counts runs from 0.
        let run = self.run.saturating_sub(1);
        format!(
            "metadata://{organization}/crawl/setup/{name}?majorversion=1&minorversion=0&harvestid={harvest}\
             &harvestnum={run}&jobid={job}"
        )
    }

    /// A file of the job folder. The parameter is named for the crawler that NetarchiveSuite knows; its value says ours.
    pub(super) fn file(&self, class: Class, name: &str) -> String {
        let Addresses { organization, harvest, job, software, .. } = self;
        let class = class.as_str();
        format!(
            "metadata://{organization}/crawl/{class}/{name}?heritrixVersion={software}&harvestid={harvest}&jobid={job}"
        )
    }

    /// The index lines of one WARC file.
    pub(super) fn cdx(&self, file: &str) -> String {
        let Addresses { organization, harvest, job, .. } = self;
        format!(
            "metadata://{organization}/crawl/index/cdx?majorversion=2&minorversion=0&harvestid={harvest}&jobid={job}\
             &filename={file}"
        )
    }
}

/// An address taken apart, whoever wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address<'a> {
    pub class: Class,
    /// `crawl.log`, `cdx`, `aliases`, …
    pub name: &'a str,
    query: &'a str,
}

impl<'a> Address<'a> {
    /// None if this is no address of a metadata record.
    pub fn parse(uri: &'a str) -> Option<Address<'a>> {
        let (_, path) = uri.strip_prefix("metadata://")?.split_once('/')?;
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let (class, name) = path.strip_prefix("crawl/")?.split_once('/')?;
        let class = [Class::Setup, Class::Reports, Class::Logs, Class::Index]
            .into_iter()
            .find(|known| known.as_str() == class)?;
        Some(Address { class, name, query })
    }

    pub fn parameter(&self, name: &str) -> Option<&'a str> {
        let pairs = self.query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.into_iter().find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    /// Whether this is (part of) a crawl log.
    pub fn is_crawl_log(&self) -> bool {
        self.class == Class::Logs && self.name.starts_with("crawl.log")
    }

    /// Whether these are index lines.
    pub fn is_cdx(&self) -> bool {
        self.class == Class::Index && self.name.starts_with("cdx")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_netarchivesuite() {
        let addresses = Addresses {
            organization: "example.org",
            harvest: HarvestId(3),
            run: 7,
            job: JobId(42),
            software: "grange-0.1.0",
        };
        for (made, expected) in [
            (
                addresses.settled("aliases"),
                "metadata://example.org/crawl/setup/aliases?majorversion=1&minorversion=0&harvestid=3&harvestnum=6&jobid=42",
            ),
            (
                addresses.file(Class::Logs, "crawl.log"),
                "metadata://example.org/crawl/logs/crawl.log?heritrixVersion=grange-0.1.0&harvestid=3&jobid=42",
            ),
            (
                addresses.cdx("42-3-a.warc.gz"),
                "metadata://example.org/crawl/index/cdx?majorversion=2&minorversion=0&harvestid=3&jobid=42&filename=42-3-a.warc.gz",
            ),
        ] {
            assert_eq!(made, expected);
            let read = Address::parse(&made).unwrap();
            assert_eq!(read.parameter("jobid"), Some("42"));
        }
    }

    #[test]
    fn addresses_of_any_writer_are_taken_apart() {
        for (uri, expected) in [
            (
                "metadata://netarkivet.dk/crawl/logs/crawl.log?heritrixVersion=3.3.0&jobid=1",
                Some((Class::Logs, true, false)),
            ),
            ("metadata://x/crawl/logs/crawl.log", Some((Class::Logs, true, false))),
            ("metadata://x/crawl/logs/alerts.log", Some((Class::Logs, false, false))),
            (
                "metadata://x/crawl/index/cdx?majorversion=3&jobid=1&filename=a",
                Some((Class::Index, false, true)),
            ),
            ("metadata://x/crawl/other/a", None),
            ("metadata://x", None),
            ("http://x/crawl/logs/crawl.log", None),
        ] {
            let read = Address::parse(uri).map(|read| (read.class, read.is_crawl_log(), read.is_cdx()));
            assert_eq!(read, expected, "{uri}");
        }
    }

    #[test]
    fn files_are_classed_by_their_names() {
        for (name, class) in [
            ("hosts-report.txt", Class::Reports),
            ("crawl.log", Class::Logs),
            ("heritrix.out", Class::Logs),
            ("seeds.txt", Class::Setup),
            ("harvestInfo.xml", Class::Setup),
        ] {
            assert_eq!(Class::of(name), class, "{name}");
        }
    }
}
