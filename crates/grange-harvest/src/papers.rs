//! What the metadata WARC says about a job beyond what lies in its folder.

use std::net::IpAddr;

use jiff::Timestamp;

use crate::folder::HarvestInfo;

/// The papers of one job.
#[derive(Clone, Debug, PartialEq)]
pub struct JobPapers {
    pub info: HarvestInfo,
    /// Whom the archive belongs to: the first part of every `metadata://` URL.
    pub organization: String,
    /// Program and version, for the warcinfo record.
    pub software: String,
    /// The machine that crawled.
    pub host: String,
    pub ip: Option<IpAddr>,
    /// When the papers are made.
    pub at: Timestamp,
}
