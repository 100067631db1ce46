//! crawl-report.txt.

use std::io::{self, Write};
use std::time::Duration;

use super::host::is_pseudo;
use super::number::{bytes_for_people, decimal, duration_for_people};
use super::statistics::{Statistics, Tally};

/// Why a crawl ended, or that it has not; in Heritrix's words, which readers look for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    Running,
    Paused,
    /// Nothing was left to do.
    Finished,
    /// URLs are left, but their hosts could not be reached.
    HostsUnreachable,
    EndedByOperator,
    TimeLimit,
    DataLimit,
    DocumentLimit,
    /// A fault of our own.
    Abnormal,
}

impl ExitStatus {
    pub const fn as_str(self) -> &'static str {
        match self {
            ExitStatus::Running => "Running - Active",
            ExitStatus::Paused => "Paused - Active",
            ExitStatus::Finished => "Finished",
            ExitStatus::HostsUnreachable => "Finished - URLs left, their hosts could not be reached",
            ExitStatus::EndedByOperator => "Finished - Ended by operator",
            ExitStatus::TimeLimit => "Finished - Timelimit hit",
            ExitStatus::DataLimit => "Finished - Maximum amount of data limit hit",
            ExitStatus::DocumentLimit => "Finished - Maximum number of documents limit hit",
            ExitStatus::Abnormal => "Finished - Abnormal exit from crawling",
        }
    }
}

/// What the report says beside the counts.
#[derive(Clone, Copy, Debug)]
pub struct CrawlSummary<'a> {
    pub name: &'a str,
    pub status: ExitStatus,
    /// Running time without pauses.
    pub elapsed: Duration,
}

/// The crawl as a whole: label and value on each line.
pub fn crawl_report(
    summary: &CrawlSummary<'_>,
    statistics: &Statistics,
    out: &mut dyn Write,
) -> io::Result<()> {
    let totals = statistics.totals();
    writeln!(out, "crawl name: {}", summary.name.replace(char::is_control, " "))?;
    writeln!(out, "crawl status: {}", summary.status.as_str())?;
    writeln!(out, "duration: {}\n", duration_for_people(summary.elapsed))?;

    let crawled = statistics.seeds().iter().filter(|seed| seed.status.is_success()).count();
    writeln!(out, "seeds crawled: {crawled}")?;
    writeln!(out, "seeds uncrawled: {}\n", statistics.seeds().len() - crawled)?;

    let hosts = statistics.hosts().filter(|(name, _)| !is_pseudo(name)).count();
    writeln!(out, "hosts visited: {hosts}\n")?;

    writeln!(out, "URIs processed: {}", totals.finished())?;
    writeln!(out, "URI successes: {}", totals.succeeded)?;
    writeln!(out, "URI failures: {}", totals.failed)?;
    writeln!(out, "URI disregards: {}\n", totals.disregarded)?;

    writeln!(out, "novel URIs: {}", totals.novel.urls)?;
    for (label, Tally { urls, .. }) in
        [("duplicate-by-hash", totals.duplicate), ("not-modified", totals.not_modified)]
    {
        if urls > 0 {
            writeln!(out, "{label} URIs: {urls}")?;
        }
    }
    writeln!(out)?;

    // The blanks before some line ends are Heritrix's.
    let bytes = totals.bytes();
    writeln!(out, "total crawled bytes: {bytes} ({}) ", bytes_for_people(bytes))?;
    let novel = totals.novel.bytes;
    writeln!(out, "novel crawled bytes: {novel} ({})", bytes_for_people(novel))?;
    for (label, Tally { urls, bytes }) in
        [("duplicate-by-hash", totals.duplicate), ("not-modified", totals.not_modified)]
    {
        if urls > 0 {
            writeln!(out, "{label} crawled bytes: {bytes} ({}) ", bytes_for_people(bytes))?;
        }
    }
    writeln!(out)?;

    let seconds = summary.elapsed.as_secs_f64();
    let per_second = |amount: f64| if seconds > 0.0 { amount / seconds } else { 0.0 };
    writeln!(out, "URIs/sec: {}", decimal(per_second(totals.succeeded as f64), 2))?;
    writeln!(out, "KB/sec: {}", per_second(bytes as f64 / 1024.0) as u64)
}
