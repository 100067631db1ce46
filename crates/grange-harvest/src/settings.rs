//! The `[harvest]` section of the settings.

use std::path::PathBuf;

use grange_base::{Period, Size};
use grange_crawl::template::NetworkSettings;
use grange_model::harvest::ChannelName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How jobs are crawled, watched and stored on this machine, and in whose name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The page that tells web masters who crawls, why, and how to reach them. It is part of the user agent; without it
    /// web masters see the operator's name and this machine's.
    pub contact_url: String,

    /// The mail address that goes with every request as `From`.
    pub from: String,

    /// Who runs the crawls: a person or an office. For papers and WARC files; the machine's name when empty.
    pub operator: String,

    /// Whom the archive belongs to: the first part of every `metadata://` URL.
    pub organization: String,

    /// The channels this harvester serves.
    pub channels: Vec<ChannelName>,

    /// How many jobs are crawled at the same time. Two, so that a long snapshot does not hold up a small harvest.
    pub jobs_at_once: u32,

    /// How many job folders whose crawl has ended are deposited at the same time. Deposits that wait for a replica take no
    /// place of `jobs_at_once`; their files stay in the job folders, where `min_space_left` counts them.
    pub deposits_at_once: u32,

    /// Where the folders of running jobs are.
    pub folder: PathBuf,

    /// No job is taken while less space than this is left for the folders of jobs. Above what a crawl itself waits for
    /// (`engine.min_free` of its template), so that a job that was taken can begin.
    pub min_space_left: Size,

    /// How often an idle harvester looks for jobs that nobody hinted at, and says that it lives.
    pub look_every: Period,

    /// How long a job belongs to this harvester after its last sign of life. A killed harvester holds up its jobs for so
    /// long.
    pub lease: Period,

    /// How often a running job tells how far it is. Must be well below the lease.
    pub progress_every: Period,

    /// How often a word on progress is kept for good.
    pub sample_every: Period,

    /// A crawl in which no document was finished for this long is stopped, unless it is paused, waits for space, or waits
    /// only for hosts that fail.
    pub inactivity_timeout: Period,

    /// A crawl that gave no sign of life for so long is stopped.
    pub no_response_timeout: Period,

    /// How long a crawl may take to stop before it is cut off. `engine.stop_within` of a template is cut to half of this.
    pub stop_within: Period,

    /// A chunk of a crawl is closed and stored when it reaches this size, where the template says nothing.
    pub chunk_size: Size,

    /// A chunk of a crawl is closed and stored when it is this old, where the template says nothing.
    pub chunk_age: Period,

    /// How often the upload of a file is tried, with growing pauses, before the job is reported with an upload error. The
    /// file stays here and is tried again with the folders that were left. Once a file has used up its attempts, the
    /// other files of the job get one each.
    pub upload_attempts: u32,

    /// How often folders that were left behind are looked at: jobs to be finished, files to be stored.
    pub folders_every: Period,

    /// How crawls of this node reach the web. Templates cannot set these.
    pub network: NetworkSettings,
}

impl Default for Settings {
    fn default() -> Self {
        let channel = |name: &str| name.parse().ok();
        Self {
            contact_url: String::new(),
            from: String::new(),
            operator: String::new(),
            organization: "grange".to_owned(),
            channels: ["focused", "snapshot"].into_iter().filter_map(channel).collect(),
            jobs_at_once: 2,
            // One that waits for a replica does not hold up one that does not.
            deposits_at_once: 2,
            folder: PathBuf::from("harvest"),
            min_space_left: Size(2_000_000_000),
            look_every: Period::from_secs(10),
            // A dozen signs of life; short enough that nobody waits long for a dead harvester's jobs.
            lease: Period::from_secs(60),
            progress_every: Period::from_secs(5),
            // As NetarchiveSuite: a day of crawling is 288 points of a curve.
            sample_every: Period::from_secs(300),
            // As NetarchiveSuite has them.
            inactivity_timeout: Period::from_secs(1800),
            no_response_timeout: Period::from_secs(1800),
            stop_within: Period::from_secs(60),
            chunk_size: Size(1_000_000_000),
            chunk_age: Period::from_secs(3600),
            // Some eight minutes: an archiver that is being brought up to date is no error.
            upload_attempts: 20,
            folders_every: Period::from_secs(300),
            network: NetworkSettings::default(),
        }
    }
}
