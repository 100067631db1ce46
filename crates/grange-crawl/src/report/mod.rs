//! What the crawl has done, counted, and the reports made of it.
//!
//! [`Statistics`] is fed with the lines of crawl.log and with nothing else, so a crawl that is resumed gets its
//! counts back by reading its own log again. The reports have the columns of Heritrix 3.

mod crawl;
mod distribution;
mod domains;
mod frontier;
mod host;
mod hosts;
mod number;
mod processors;
mod seeds;
mod sources;
mod statistics;

pub use crawl::{CrawlSummary, ExitStatus, crawl_report};
pub use distribution::{mimetype_report, responsecode_report};
pub use domains::{DomainTally, domain_tallies};
pub use frontier::{
    FrontierSummary, QueueReport, QueueSample, frontier_nonempty_report, frontier_summary_report,
};
pub(crate) use host::host_of;
pub use hosts::hosts_report;
pub(crate) use number::decimal;
pub use number::{bytes_for_people, duration_for_people};
pub use processors::{Chain, Processor, Work, processors_report};
pub use seeds::seeds_report;
pub use sources::source_report;
pub use statistics::{HostTally, SeedTally, Statistics, Tally, Totals};

#[cfg(test)]
mod tests;
