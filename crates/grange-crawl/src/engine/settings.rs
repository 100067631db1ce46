//! How the engine itself runs.

use grange_base::{Period, Size};
use serde::{Deserialize, Serialize};

/// The `[engine]` part of a template.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// How many URLs are worked on at the same time, over all hosts. Each may hold a connection and a body.
    pub workers: u32,
    /// The crawl pauses when less space than this is left for its files, and goes on when there is more again.
    pub min_free: Size,
    /// How often a line goes to progress-statistics.log.
    pub statistics_every: Period,
    /// How long an orderly stop, or the end of the time, waits for requests under way. What is cut off is fetched again on resume.
    pub stop_within: Period,
    /// How long the crawl waits while no host that answered before can be reached, which is an outage of its own
    /// network. After that, hosts are given up as if they alone were gone. `0s` waits for ever; half a day is longer
    /// than a night.
    pub max_outage: Period,
    /// How long the crawl waits for hosts of its own that cannot be reached when nothing else is left to do. Each must have
    /// failed three times by then; their URLs stay queued for a resume. A restart of a server takes a minute, and a longer
    /// fault is better waited for between two crawls. `0s` waits until they are given up one by one, which takes half an hour
    /// and longer.
    pub max_unreachable_wait: Period,
    /// A redirect from a seed is a seed too, up to this many steps.
    pub seed_redirects: u8,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            workers: 100,
            min_free: Size(1_000_000_000),
            statistics_every: Period::from_secs(20),
            stop_within: Period::from_secs(30),
            max_outage: Period::from_secs(12 * 3600),
            max_unreachable_wait: Period::from_secs(300),
            seed_redirects: 5,
        }
    }
}
