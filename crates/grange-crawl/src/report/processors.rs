//! processors-report.txt: which part handled how much.

use std::borrow::Cow;
use std::io::{self, Write};

use jiff::Timestamp;
use jiff::tz::Offset;

use super::number::bytes_for_people;

/// What a part of the crawler did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// Handled so many URIs.
    Handled { uris: u64 },
    /// Found so many links in so many documents.
    Extracted { links: u64, uris: u64 },
    Written {
        uris: u64,
        revisits: u64,
        /// Of response and resource records, HTTP headers included.
        content_bytes: u64,
        /// Of all records.
        record_bytes: u64,
        disk_bytes: u64,
        compressed: bool,
    },
}

/// One part of the crawler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Processor {
    pub name: Cow<'static, str>,
    pub function: &'static str,
    pub work: Work,
}

/// Parts that a URI passes one after the other: `CandidateChain`, `FetchChain`, `DispositionChain`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    pub name: &'static str,
    pub processors: Vec<Processor>,
}

pub fn processors_report(now: Timestamp, chains: &[Chain], out: &mut dyn Write) -> io::Result<()> {
    for chain in chains {
        let date = twelve(now);
        writeln!(out, "{} - Processors report - {date}", chain.name)?;
        writeln!(out, "  Number of Processors: {}\n", chain.processors.len())?;
        for processor in &chain.processors {
            writeln!(out, "Processor: {}", processor.name)?;
            writeln!(out, "  Function:          {}", processor.function)?;
            work(&processor.work, out)?;
            writeln!(out)?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn work(work: &Work, out: &mut dyn Write) -> io::Result<()> {
    match work {
        Work::Handled { uris } => writeln!(out, "  CrawlURIs handled: {uris}"),
        Work::Extracted { links, uris } => writeln!(out, "  {links} links from {uris} CrawlURIs"),
        Work::Written { uris, revisits, content_bytes, record_bytes, disk_bytes, compressed } => {
            let compressed = if *compressed { "compressed" } else { "uncompressed" };
            let sized = |bytes: u64| format!("{bytes} ({})", bytes_for_people(bytes));
            writeln!(out, "  Total CrawlURIs:   {uris}")?;
            writeln!(out, "  Revisit records:   {revisits}")?;
            writeln!(out, "  Crawled content bytes (including http headers): {}", sized(*content_bytes))?;
            writeln!(
                out,
                "  Total uncompressed bytes (including all warc records): {}",
                sized(*record_bytes)
            )?;
            writeln!(out, "  Total size on disk ({compressed}): {}", sized(*disk_bytes))
        }
    }
}

/// Twelve digits: to the minute.
pub(super) fn twelve(now: Timestamp) -> impl std::fmt::Display {
    let at = Offset::UTC.to_datetime(now);
    format!("{:04}{:02}{:02}{:02}{:02}", at.year(), at.month(), at.day(), at.hour(), at.minute())
}
