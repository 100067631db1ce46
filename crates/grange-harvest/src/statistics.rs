//! What a job harvested of each domain, read from its crawl.log as NetarchiveSuite reads it.
//!
//! * A line counts for the configuration that holds the seed it descends from ([`SeedOwners`]); where none does, for the
//!   one of the domain of the seed, or of its own URL where no seed is named; otherwise for the first.
//! * A status of 0 or more is an object: error pages, robots.txt and duplicates count fully. Its bytes are those of the
//!   annotation `content-size`, or else of the body.
//! * A line with status -5003 says which limit its domain reached; the first word wins over whatever else is known.
//! * The engine's reason for the end of a domain comes next; of several domains that count for one configuration, the
//!   reason that leaves most undone. A domain without a reason is unfinished.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader};
use std::path::Path;

use grange_crawl::FetchStatus;
use grange_crawl::job::StopReason as CrawlStop;
use grange_crawl::log::{CrawlLine, split_annotations};
use grange_model::harvest::{DomainName, DomainReport, StopReason};
use url::Url;

use crate::folder::JobFolder;
use crate::seed_owners::SeedOwners;

/// The counts of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    pub domains: Vec<DomainReport>,
    pub objects: u64,
    pub bytes: u64,
    /// Lines that are none of a crawl.log.
    pub unreadable: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    objects: u64,
    bytes: u64,
    quota: Option<StopReason>,
}

/// Counts every crawl.log of a job folder. `ends` is why the engine left each domain.
pub fn of_job(folder: &JobFolder, ends: &[(String, CrawlStop)]) -> io::Result<Counted> {
    of_logs(&folder.logs(), ends, &SeedOwners::load(folder)?)
}

/// Counts every crawl.log of a folder, rotated ones included.
fn of_logs(folder: &Path, ends: &[(String, CrawlStop)], owners: &SeedOwners) -> io::Result<Counted> {
    let mut paths = Vec::new();
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        entries => Some(entries?),
    };
    for entry in entries.into_iter().flatten() {
        let path = entry?.path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("crawl.log")) {
            paths.push(path);
        }
    }
    paths.sort();
    let mut count = Count { domains: BTreeMap::new(), unreadable: 0, owners };
    for path in paths {
        let mut reader = BufReader::new(File::open(path)?);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line)? > 0 {
            count.add(&String::from_utf8_lossy(&line));
            line.clear();
        }
    }
    Ok(count.close(ends))
}

/// The sum so far.
#[derive(Debug)]
struct Count<'a> {
    domains: BTreeMap<DomainName, Tally>,
    unreadable: u64,
    owners: &'a SeedOwners,
}

impl Count<'_> {
    fn add(&mut self, text: &str) {
        let text = text.trim_end_matches('\n');
        if text.is_empty() {
            return;
        }
        let Ok(line) = CrawlLine::parse(text) else {
            self.unreadable += 1;
            return;
        };
        let seed = line.source.as_deref();
        let domain = seed.and_then(domain_of).or_else(|| domain_of(&line.url));
        // The limits of a domain that no configuration has say nothing of the first one.
        let is_foreign = self.owners.is_foreign(seed, domain.as_ref());
        let Some(domain) = self.owners.of_line(seed, domain) else { return };
        let tally = self.domains.entry(domain).or_default();
        if line.status.0 >= 0 {
            tally.objects += 1;
            tally.bytes = tally.bytes.saturating_add(line.content_size());
        } else if line.status == FetchStatus::BLOCKED_BY_QUOTA && tally.quota.is_none() && !is_foreign {
            tally.quota = split_annotations(&line.annotations).find_map(|word| match word {
                "Q:groupMaxAllKb" => Some(StopReason::SizeLimit),
                "Q:groupMaxFetchSuccesses" => Some(StopReason::ObjectLimit),
                _ => None,
            });
        }
    }

    fn close(mut self, ends: &[(String, CrawlStop)]) -> Counted {
        let mut stops: BTreeMap<DomainName, StopReason> = BTreeMap::new();
        for (domain, stop) in ends {
            if let Ok(domain) = domain.parse::<DomainName>() {
                let domain = self.owners.of_domain(domain);
                // A domain that was met only in passing is told too.
                self.domains.entry(domain.clone()).or_default();
                let stop = stop_of(*stop);
                let known = stops.entry(domain).or_insert(stop);
                if undone(stop) > undone(*known) {
                    *known = stop;
                }
            }
        }
        let mut counted = Counted { unreadable: self.unreadable, ..Counted::default() };
        for (domain, tally) in self.domains {
            counted.objects += tally.objects;
            counted.bytes = counted.bytes.saturating_add(tally.bytes);
            let stop = tally.quota.or_else(|| stops.get(&domain).copied()).unwrap_or(StopReason::Unfinished);
            counted.domains.push(DomainReport { domain, objects: tally.objects, bytes: tally.bytes, stop });
        }
        counted
    }
}

fn stop_of(stop: CrawlStop) -> StopReason {
    match stop {
        CrawlStop::Completed => StopReason::Complete,
        CrawlStop::ObjectLimit => StopReason::ObjectLimit,
        // Whose limit it was is told when the report is kept.
        CrawlStop::SizeLimit | CrawlStop::ConfigSizeLimit => StopReason::SizeLimit,
        CrawlStop::TimeLimit => StopReason::TimeLimit,
        CrawlStop::Unfinished => StopReason::Unfinished,
    }
}

/// How much a reason leaves undone.
fn undone(stop: StopReason) -> u8 {
    match stop {
        StopReason::Complete => 0,
        StopReason::ObjectLimit | StopReason::ConfigObjectLimit => 1,
        StopReason::SizeLimit | StopReason::ConfigSizeLimit => 2,
        StopReason::TimeLimit => 3,
        StopReason::Unfinished => 4,
    }
}

/// The domain of a URL, also of `dns:` lines; none where there is no public suffix.
fn domain_of(url: &str) -> Option<DomainName> {
    if let Some(name) = url.strip_prefix("dns:") {
        return DomainName::of_host(name).ok();
    }
    let url = Url::parse(url).ok()?;
    DomainName::of_host(url.host_str()?).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn line(status: i32, url: &str, source: &str, annotations: &str) -> String {
        format!(
            "2026-11-16T00:51:01.123Z {status:>5}         10 {url} L - text/html #007 20261116005100900+81 - {source} {annotations}\n"
        )
    }

    #[test]
    fn lines_count_for_the_domain_of_their_seed() {
        let folder = tempfile::tempdir().unwrap();
        let seed = "http://www.a.dk/";
        let older = [
            line(200, "http://www.a.dk/", seed, "content-size:100"),
            line(1, "dns:www.a.dk", "-", "content-size:50"),
            // An embed from elsewhere is part of the page.
            line(404, "http://cdn.b.dk/x.png", seed, "content-size:7,2t"),
            line(-2, "http://www.a.dk/gone", seed, "-"),
        ];
        let newer = [
            line(200, "http://b.dk/", "-", "duplicate:digest,content-size:1000"),
            line(0, "http://b.dk/odd", "http://b.dk/", "-"),
            "nonsense\n".to_owned(),
            line(-5003, "http://c.dk/1", "http://c.dk/", "Q:groupMaxAllKb"),
            line(-5003, "http://c.dk/2", "http://c.dk/", "Q:groupMaxFetchSuccesses"),
        ];
        fs::write(folder.path().join("crawl.log.cp00001-20260101000000"), older.concat()).unwrap();
        fs::write(folder.path().join("crawl.log"), newer.concat()).unwrap();
        fs::write(folder.path().join("uri-errors.log"), "not counted\n").unwrap();
        let ends = [
            ("a.dk".to_owned(), CrawlStop::Completed),
            ("c.dk".to_owned(), CrawlStop::Completed),
            ("e.dk".to_owned(), CrawlStop::ConfigSizeLimit),
        ];
        let counted = of_logs(folder.path(), &ends, &SeedOwners::default()).unwrap();
        let found: Vec<_> = counted
            .domains
            .iter()
            .map(|one| (one.domain.as_str(), one.objects, one.bytes, one.stop))
            .collect();
        assert_eq!(
            found,
            [
                ("a.dk", 3, 157, StopReason::Complete),
                ("b.dk", 2, 1010, StopReason::Unfinished),
                ("c.dk", 0, 0, StopReason::SizeLimit),
                ("e.dk", 0, 0, StopReason::SizeLimit),
            ]
        );
        assert_eq!((counted.objects, counted.bytes, counted.unreadable), (5, 1167, 1));
    }

    #[test]
    fn a_crawl_without_logs_has_no_statistics() {
        let folder = tempfile::tempdir().unwrap();
        let counted = of_logs(&folder.path().join("none"), &[], &SeedOwners::default()).unwrap();
        assert_eq!(counted, Counted::default());
    }

    #[test]
    fn a_configuration_ended_as_the_least_finished_of_the_domains_that_count_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let log = line(200, "http://social.org/a", "http://social.org/a", "content-size:5");
        fs::write(folder.path().join("crawl.log"), log).unwrap();
        let lists =
            [("a.dk".parse().unwrap(), vec!["http://a.dk".to_owned(), "http://social.org/a".to_owned()])];
        let owners = SeedOwners::new(&lists);
        for (ends, expected) in [
            (
                vec![("a.dk", CrawlStop::Completed), ("social.org", CrawlStop::ObjectLimit)],
                StopReason::ObjectLimit,
            ),
            (
                vec![("a.dk", CrawlStop::TimeLimit), ("social.org", CrawlStop::Completed)],
                StopReason::TimeLimit,
            ),
            (vec![("social.org", CrawlStop::Completed)], StopReason::Complete),
            (vec![], StopReason::Unfinished),
        ] {
            let ends: Vec<_> = ends.into_iter().map(|(domain, stop)| (domain.to_owned(), stop)).collect();
            let counted = of_logs(folder.path(), &ends, &owners).unwrap();
            let domain = "a.dk".parse().unwrap();
            assert_eq!(counted.domains, [DomainReport { domain, objects: 1, bytes: 5, stop: expected }]);
        }
    }

    proptest! {
        /// Whatever seeds the configurations of a job hold, and whatever seeds people add: all that descends from them counts
        /// for one of the configurations.
        #[test]
        fn the_statistics_of_a_job_add_up_to_its_log(
            lists in prop::collection::vec(prop::collection::vec(0..6_usize, 1..4), 1..4),
            lines in prop::collection::vec((any::<prop::sample::Index>(), 0..8_usize, -2..3_i32), 0..60),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let domain = |n: usize| format!("d{n}.dk").parse::<DomainName>().unwrap();
            let seed = |n: usize| format!("http://www.d{n}.dk/s");
            let lists: Vec<_> = (0..).zip(lists)
                .map(|(n, seeds)| (domain(n), seeds.into_iter().map(seed).collect::<Vec<_>>()))
                .collect();
            let mut seeds: Vec<_> = lists.iter().flat_map(|(_, seeds)| seeds.clone()).collect();
            seeds.extend([seed(7), "http://ordered.org/".to_owned()]);
            let log: String = lines
                .iter()
                .map(|(from, host, status)| {
                    line(*status, &format!("http://d{host}.dk/x"), from.get(&seeds).as_str(), "content-size:7")
                })
                .collect();
            fs::write(folder.path().join("crawl.log"), log).unwrap();
            let ends: Vec<_> = (0..8).map(|n| (format!("d{n}.dk"), CrawlStop::Completed)).collect();
            let counted = of_logs(folder.path(), &ends, &SeedOwners::new(&lists)).unwrap();
            let logged = lines.iter().filter(|(_, _, status)| *status >= 0).count() as u64;
            let own = |report: &&DomainReport| lists.iter().any(|(domain, _)| *domain == report.domain);
            let kept: u64 = counted.domains.iter().filter(own).map(|report| report.objects).sum();
            prop_assert_eq!((kept, counted.objects), (logged, logged));
        }
    }
}
