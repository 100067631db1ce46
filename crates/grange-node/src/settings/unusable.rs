//! Settings that are of the right kind and cannot work: a 0 that would stop work without a word, a pause of 0 that would keep a
//! processor busy, two settings that contradict each other. They are refused before anything starts.

use grange_base::Period;

use super::Settings;

const BUSY: &str = "with 0s it would run without a pause; set a time such as 10s";
const LEASE: &str = "a lease of 0s ends before any work is done; set a time such as 60s";
const GIVES_UP: &str = "with 0s every attempt is given up before it begins; set a time such as 5s";
const NOTHING: &str =
    "a limit of 0 ends every harvest at its beginning; set the limit, or leave the key out for the default";

/// The keys that are refused, with the reason and what to do.
#[derive(Default)]
struct Refusals(Vec<(String, String)>);

impl Refusals {
    fn when(&mut self, wrong: bool, key: &str, reason: impl Into<String>) {
        if wrong {
            self.0.push((key.to_owned(), reason.into()));
        }
    }

    fn zero<'a>(&mut self, reason: &str, periods: impl IntoIterator<Item = (&'a str, Period)>) {
        for (key, period) in periods {
            self.when(period.0.is_zero(), key, reason);
        }
    }

    /// Numbers that count places, tries or records: none of them means no work at all.
    fn none<'a>(&mut self, reason: &str, numbers: impl IntoIterator<Item = (&'a str, u64)>) {
        for (key, number) in numbers {
            self.when(number == 0, key, reason);
        }
    }
}

/// Every setting that cannot work: its key, and why with what to do.
pub(super) fn unusable(settings: &Settings) -> Vec<(String, String)> {
    let mut refused = Refusals::default();
    for one in settings.archive.unusable() {
        refused.0.push((format!("archive.{}", one.key), one.reason));
    }
    if let Some((key, reason)) = settings.harvest.network.problem() {
        refused.0.push((format!("harvest.network.{key}"), reason));
    }
    process(settings, &mut refused);
    archive(settings, &mut refused);
    harvest(settings, &mut refused);
    schedule(settings, &mut refused);
    oai(settings, &mut refused);
    index(settings, &mut refused);
    swap(settings, &mut refused);
    refused.0
}

fn process(settings: &Settings, refused: &mut Refusals) {
    let Settings { node, db, bus, web, .. } = settings;
    refused.zero(BUSY, [("node.heartbeat", node.heartbeat)]);
    refused.zero(
        "with 0s every role is cut off in its work; set a time such as 8s",
        [("node.stop_deadline", node.stop_deadline)],
    );
    refused.zero(
        GIVES_UP,
        [
            ("db.connect_timeout", db.connect_timeout),
            ("db.busy_timeout", db.busy_timeout),
            ("bus.connect_timeout", bus.connect_timeout),
            ("bus.publish_timeout", bus.publish_timeout),
        ],
    );
    refused.none(
        "there is no work without a connection; set 1 or more",
        [("db.connections_max", u64::from(db.connections_max))],
    );
    refused.when(
        db.backup_keep == 0 && !db.backup_every.0.is_zero(),
        "db.backup_keep",
        "with 0 each copy is deleted as soon as it is made; set 1 or more, or db.backup_every = \"0s\" to make none",
    );
    refused.none(
        "with 0 every message is dropped; set 1 or more",
        [("bus.buffer_messages", bus.buffer_messages as u64)],
    );
    refused.zero(
        "with 0s nobody stays logged in; set a time such as 2h",
        [("web.session_lifetime", web.session_lifetime), ("web.session_idle", web.session_idle)],
    );
}

fn archive(settings: &Settings, refused: &mut Refusals) {
    refused.zero(BUSY, [("archive.retry_first", settings.archive.retry_first)]);
}

fn harvest(settings: &Settings, refused: &mut Refusals) {
    let harvest = &settings.harvest;
    refused.when(
        harvest.channels.is_empty(),
        "harvest.channels",
        "a harvester of no channel takes no job; name one, or leave harvester out of node.roles",
    );
    refused.none(
        "with 0 no job is taken; set 1 or more, or leave harvester out of node.roles",
        [("harvest.jobs_at_once", u64::from(harvest.jobs_at_once))],
    );
    refused.none(
        "with 0 no file is stored; set 1 or more",
        [
            ("harvest.deposits_at_once", u64::from(harvest.deposits_at_once)),
            ("harvest.upload_attempts", u64::from(harvest.upload_attempts)),
        ],
    );
    refused.zero(
        BUSY,
        [("harvest.look_every", harvest.look_every), ("harvest.progress_every", harvest.progress_every)],
    );
    refused.zero(LEASE, [("harvest.lease", harvest.lease)]);
    refused.when(
        !harvest.lease.0.is_zero() && harvest.progress_every >= harvest.lease,
        "harvest.progress_every",
        format!(
            "a job is lost between two reports, as harvest.lease is {}; set a third of it or less",
            harvest.lease
        ),
    );
    refused.zero(
        "with 0s every crawl is stopped at once; set a time such as 30m",
        [
            ("harvest.inactivity_timeout", harvest.inactivity_timeout),
            ("harvest.no_response_timeout", harvest.no_response_timeout),
        ],
    );
    refused.zero(
        "with 0s every crawl that is stopped is cut off; set a time such as 60s",
        [("harvest.stop_within", harvest.stop_within)],
    );
}

fn schedule(settings: &Settings, refused: &mut Refusals) {
    let schedule = &settings.schedule;
    let (splitting, expectation) = (&schedule.splitting, &schedule.expectation);
    refused.zero(BUSY, [("schedule.look_every", schedule.look_every)]);
    refused.zero(LEASE, [("schedule.planning_lease", schedule.planning_lease)]);
    refused.zero(
        "with 0s every job is marked failed at once; set a time such as 7d",
        [("schedule.job_timeout", schedule.job_timeout)],
    );
    let (lost_after, reports) = (schedule.harvester_lost_after, settings.harvest.look_every);
    refused.when(
        lost_after <= reports,
        "schedule.harvester_lost_after",
        format!(
            "a harvester that waits counts as dead between two reports, as harvest.look_every is {reports}; set a longer time"
        ),
    );
    refused.none(
        "jobs are numbered from 1; set 1 or more",
        [("schedule.first_job_number", u64::from(schedule.first_job_number))],
    );
    refused.none(
        "a job holds at least one configuration; set 1 or more",
        [
            ("schedule.splitting.config_chunk_size", u64::from(splitting.config_chunk_size)),
            ("schedule.splitting.fixed_count_focused", u64::from(splitting.fixed_count_focused)),
            ("schedule.splitting.fixed_count_snapshot", u64::from(splitting.fixed_count_snapshot)),
        ],
    );
    refused.none(
        "with 0 every configuration gets a separate job; set 1 or more",
        [
            ("schedule.splitting.max_total_size", splitting.max_total_size),
            ("schedule.splitting.max_relative_size_difference", splitting.max_relative_size_difference),
        ],
    );
    refused.none(
        "nothing can be divided by 0; set 1 or more",
        [
            (
                "schedule.expectation.expected_average_bytes_per_object",
                expectation.expected_average_bytes_per_object,
            ),
            ("schedule.expectation.error_factor_prev_result", expectation.error_factor_prev_result),
            ("schedule.expectation.error_factor_best_guess", expectation.error_factor_best_guess),
        ],
    );
}

/// More harvests at once than this share one process without gain.
const REPOSITORIES_MAX: u32 = 64;
/// The largest page that is served.
const SERVE_PAGE_MAX: u32 = 10_000;

fn oai(settings: &Settings, refused: &mut Refusals) {
    let oai = &settings.oai;
    refused.when(
        !(1..=REPOSITORIES_MAX).contains(&oai.repositories_at_once),
        "oai.repositories_at_once",
        format!("{} is out of range; set 1 to {REPOSITORIES_MAX}", oai.repositories_at_once),
    );
    refused.when(
        !(1..=SERVE_PAGE_MAX).contains(&oai.serve_page),
        "oai.serve_page",
        format!("{} is out of range; set 1 to {SERVE_PAGE_MAX}", oai.serve_page),
    );
    refused.zero(LEASE, [("oai.lease", oai.lease)]);
    refused.zero(GIVES_UP, [("oai.timeout", oai.timeout)]);
    refused.zero(BUSY, [("oai.retry_first", oai.retry_first)]);
    refused.zero(NOTHING, [("oai.harvest_time_max", oai.harvest_time_max)]);
    refused.none(
        NOTHING,
        [
            ("oai.page_bytes_max", oai.page_bytes_max.0),
            ("oai.record_bytes_max", oai.record_bytes_max.0),
            ("oai.harvest_bytes_max", oai.harvest_bytes_max.0),
            ("oai.pages_max", oai.pages_max),
            ("oai.records_max", oai.records_max),
        ],
    );
    refused.none(
        "a harvest is tried at least once; set 1 or more",
        [("oai.attempts", u64::from(oai.attempts)), ("oai.failures_max", u64::from(oai.failures_max))],
    );
}

fn index(settings: &Settings, refused: &mut Refusals) {
    let index = &settings.index;
    refused.zero(BUSY, [("index.look_every", index.look_every), ("index.copies.every", index.copies.every)]);
    refused.when(
        index.takeover_after <= index.look_every,
        "index.takeover_after",
        format!(
            "nodes would take each other's indexes over between two looks, as index.look_every is {}; set a longer time, \
             such as 10m",
            index.look_every
        ),
    );
}

fn swap(settings: &Settings, refused: &mut Refusals) {
    let (swap, patience) = (&settings.swap, &settings.swap.patience);
    refused.when(
        !swap.peers.is_empty() && swap.key_file.is_none(),
        "swap.peers",
        "servers without a key have no peers; set swap.key_file to the key that all servers share",
    );
    refused.none(
        "with 0 nobody is served; set 1 or more",
        [
            ("swap.max_uploads", swap.max_uploads as u64),
            ("swap.max_connections", swap.max_connections as u64),
        ],
    );
    refused.zero(
        "with 0s every connection is closed at once; set a time such as 30s",
        [
            ("swap.patience.idle", patience.idle),
            ("swap.patience.head", patience.head),
            ("swap.patience.silence", patience.silence),
        ],
    );
}
