//! The `[schedule]` section of the settings.

use grange_base::Period;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How harvests become jobs, and how jobs are watched over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// How often due harvests are looked for; a change to a harvest wakes the scheduler at once. Once a minute is the
    /// finest schedule there is.
    pub look_every: Period,

    /// How long a harvest belongs to the scheduler that plans it, renewed while it does. A killed scheduler holds up
    /// its harvest for so long.
    pub planning_lease: Period,

    /// The lowest number that a job gets. Numbers are part of the names of files: raise it above the highest job of an
    /// archive that is taken over file by file. Numbers in names that the archive, its replicas and the job folders hold
    /// are never given again, whatever stands here.
    pub first_job_number: u32,

    /// Plan a selective harvest only when a living harvester serves its channel. Off by default: a job is a row that
    /// waits, not a message that gets lost.
    pub postpone_unserved_channels: bool,

    /// Leave configurations with a limit of 0 out instead of making jobs that fetch nothing.
    pub exclude_zero_budget: bool,

    /// How long an alias keeps its domain out of snapshots after somebody confirmed it. A year, after which it is
    /// harvested again until somebody looks.
    pub alias_lifetime: Period,

    /// How configurations are put into jobs.
    pub splitting: Splitting,

    /// What a configuration is expected to yield.
    pub expectation: Expectation,

    /// What happens to jobs whose harvester fell silent.
    pub dead_harvester: DeadHarvester,

    /// How often a job is taken over from a dead harvester before it is marked failed.
    pub takeovers_max: u32,

    /// A job that has been crawling for longer than this is marked failed, whatever its harvester says. A week, as in
    /// NetarchiveSuite.
    pub job_timeout: Period,

    /// A harvester not heard of for so long counts as dead in listings.
    pub harvester_lost_after: Period,
}

/// What happens to jobs whose harvester fell silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DeadHarvester {
    /// Another harvester takes them over.
    TakeOver,
    /// They are marked failed, and a person decides.
    Fail,
}

/// How configurations are put into jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Jobs of domains that take about the same time, by their history.
    Balanced,
    /// Jobs of a fixed number of configurations with equal limits.
    FixedCount,
}

/// How configurations are put into jobs. The names and numbers are NetarchiveSuite's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Splitting {
    /// `balanced` by expected size, or `fixed-count`.
    pub method: Method,

    /// The most configurations in one job: a crawl's queues and reports stay handy.
    pub config_chunk_size: u32,

    /// The most objects one job is expected to fetch.
    pub max_total_size: u64,

    /// The largest configuration of a job may be expected to be this many times as large as the smallest, so that a
    /// job does not wait for one domain after all others are done.
    pub max_relative_size_difference: u64,

    /// Below this difference in expected objects the relative one does not matter: small domains go together.
    pub min_absolute_size_difference: u64,

    /// Compare limits on objects, too, when configurations are put together. Without it a job takes the tighter byte
    /// limit's neighbours and every configuration still keeps its own limit on objects.
    pub split_by_object_limit: bool,

    /// With `fixed-count`: configurations in one job of a selective harvest.
    pub fixed_count_focused: u32,

    /// With `fixed-count`: configurations in one job of a snapshot.
    pub fixed_count_snapshot: u32,
}

/// What a configuration is expected to yield. The names and numbers are NetarchiveSuite's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Expectation {
    /// Bytes of an object, where history does not tell.
    pub expected_average_bytes_per_object: u64,

    /// Objects of a domain without any limit, for estimating only.
    pub max_domain_size: u64,

    /// Of the room between an earlier complete harvest and the limits, one part in so many is expected to be used.
    pub error_factor_prev_result: u64,

    /// The same after harvests that were never complete: less is known, so more is expected.
    pub error_factor_best_guess: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            look_every: Period::from_secs(60),
            // Many times the pause between two renewals, and short enough that nobody notices a crash.
            planning_lease: Period::from_secs(60),
            first_job_number: 1,
            postpone_unserved_channels: false,
            exclude_zero_budget: false,
            alias_lifetime: Period::from_secs(31_536_000),
            splitting: Splitting::default(),
            expectation: Expectation::default(),
            dead_harvester: DeadHarvester::TakeOver,
            // A job that killed three harvesters would kill the fourth.
            takeovers_max: 3,
            job_timeout: Period::from_secs(604_800),
            harvester_lost_after: Period::from_secs(60),
        }
    }
}

impl Default for Splitting {
    fn default() -> Self {
        Self {
            method: Method::Balanced,
            config_chunk_size: 10_000,
            max_total_size: 8_000_000,
            max_relative_size_difference: 100,
            min_absolute_size_difference: 2_000,
            split_by_object_limit: false,
            // NetarchiveSuite has 0 here, which made one job per configuration by accident.
            fixed_count_focused: 100,
            fixed_count_snapshot: 10_000,
        }
    }
}

impl Default for Expectation {
    fn default() -> Self {
        Self {
            expected_average_bytes_per_object: 38_000,
            max_domain_size: 5_000,
            error_factor_prev_result: 10,
            error_factor_best_guess: 2,
        }
    }
}
