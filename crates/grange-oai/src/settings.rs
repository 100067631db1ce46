//! What can be set about harvesting metadata.

use grange_base::{Network, Period, Size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Harvesting metadata over OAI-PMH, and serving what was harvested.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The folder of all repositories' records, below the data folder when relative.
    pub folder: std::path::PathBuf,
    /// A folder with XML Schemas beyond those of oai_dc, for the validation level very-strict; below the data folder
    /// when relative.
    pub schemas: std::path::PathBuf,
    /// Networks beside the public ones in which repositories may be, such as `10.0.0.0/8`. Without an entry here loopback,
    /// private, link-local and other special addresses are refused: anybody who may add a repository would reach them.
    pub allow_networks: Vec<Network>,
    /// How many repositories are harvested at once; each is asked one thing at a time.
    pub repositories_at_once: u32,
    /// An e-mail address or web page that repositories can turn to; sent with every request.
    pub contact: String,
    /// The shortest time between two requests to one repository.
    pub delay: Period,
    /// How long a repository may be silent before a request counts as failed.
    pub timeout: Period,
    /// Failures in a row before a harvest gives up.
    pub attempts: u32,
    /// The wait after a first failure when the server names none; doubled with each further one.
    pub retry_first: Period,
    /// A server that asks to wait longer than this is left alone until the next job.
    pub retry_after_max: Period,
    /// One answer may not be larger.
    pub page_bytes_max: Size,
    /// One record may not be larger; its content is left out.
    pub record_bytes_max: Size,
    /// One harvest may not receive more.
    pub harvest_bytes_max: Size,
    /// One harvest may not take more pages.
    pub pages_max: u64,
    /// One harvest may not take more records.
    pub records_max: u64,
    /// One harvest may not take longer.
    pub harvest_time_max: Period,
    /// How long a harvester may be silent before its job is taken from it.
    pub lease: Period,
    /// How often a dead harvester's job is taken over before it counts as failed.
    pub takeovers_max: u32,
    /// A recurring job that failed so often in a row waits for a person.
    pub failures_max: u32,
    /// Records on one page that Grange serves.
    pub serve_page: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            folder: "oai".into(),
            schemas: "oai-schemas".into(),
            allow_networks: Vec::new(),
            // Each needs up to one page of memory and a connection.
            repositories_at_once: 4,
            contact: String::new(),
            // Repositories that ask for more say so; one request at a time is already polite.
            delay: Period::from_millis(0),
            timeout: Period::from_secs(120),
            attempts: 6,
            retry_first: Period::from_secs(10),
            // The validator of the Open Archives Initiative gives up beyond an hour, too.
            retry_after_max: Period::from_secs(3_600),
            // The largest honest pages seen have some 100 MB.
            page_bytes_max: Size::gib(1),
            record_bytes_max: Size::mib(16),
            // Ten times the largest repository metha knows of.
            harvest_bytes_max: Size::gib(1_000),
            // A million requests, as metha allows.
            pages_max: 1 << 20,
            records_max: 500_000_000,
            harvest_time_max: Period::from_secs(14 * 86_400),
            lease: Period::from_secs(60),
            takeovers_max: 3,
            failures_max: 10,
            serve_page: 100,
        }
    }
}
