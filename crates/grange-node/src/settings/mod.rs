//! The one tree of settings. Each section belongs to the crate that uses it; this file only puts them together.

pub mod known;
pub mod load;
pub mod print;
pub mod source;
#[cfg(test)]
mod tests;
mod unusable;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use grange_base::Period;
use grange_base::telemetry::LogFormat;
use grange_model::node::NodeRole;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use known::Known;
pub use load::{Loaded, Problem, Problems};
pub use source::{Layer, Origin};

/// Everything that can be set.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// This process: its name, its roles, how it is reached by other nodes.
    pub node: NodeSettings,
    /// Log lines.
    pub log: LogSettings,
    /// Where the facts are kept.
    pub db: grange_db::Settings,
    /// How roles wake each other. Everything also works, only more slowly, with no message ever arriving.
    pub bus: grange_bus::Settings,
    /// The admin pages and the JSON API.
    pub web: grange_web::Settings,
    /// The replicas of the archive, and how they are kept true.
    pub archive: grange_archive::Settings,
    /// How harvests become jobs, and how jobs are watched over.
    pub schedule: grange_schedule::Settings,
    /// How jobs are crawled, watched and stored on this machine, and in whose name.
    pub harvest: grange_harvest::Settings,
    /// The indexes of collections: what they may take, and who may change them.
    pub index: grange_replay::collect::IndexSettings,
    /// Replay of archived pages, on ports of its own so that they never share an origin with the admin pages.
    pub replay: grange_replay::Settings,
    /// Harvesting metadata over OAI-PMH, and serving what was harvested.
    pub oai: grange_harvest::oai::Settings,
    /// Plain files spread over machines by the SWAP rule; played where there are partitions.
    pub swap: grange_swap::Settings,
}

/// This process: its name, its roles, how it is reached by other nodes.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NodeSettings {
    /// The name people see; the machine's host name when empty.
    pub name: String,
    /// The roles this node plays; all that this version has when empty. `grange up --roles` overrides it.
    pub roles: Vec<NodeRole>,
    /// Where other nodes, health checks and metrics reach this one. Loopback by default; a node of a cluster
    /// names an address of its private network. Port 0 takes a free one.
    #[schemars(with = "String")]
    pub listen: SocketAddr,
    /// The address told to other nodes when it differs from `listen`, as behind a proxy or in a container.
    pub advertise: String,
    /// The file with the secret that all nodes of one Grange share. Made on the first start; copy it to the
    /// other machines.
    pub token_file: PathBuf,
    /// How often the node says that it lives. Three times this without a word and it counts as lost.
    pub heartbeat: Period,
    /// Difference between this machine's clock and the database's above which the node warns, in its log, on `/readyz` and
    /// in `grange nodes`. `0s` never warns. PostgreSQL only: SQLite has no clock of its own.
    pub clock_skew_max: Period,
    /// How long roles may take to stop before they are cut off.
    pub stop_deadline: Period,
}

impl Default for NodeSettings {
    fn default() -> Self {
        Self {
            name: String::new(),
            roles: Vec::new(),
            listen: SocketAddr::from(([127, 0, 0, 1], 7072)),
            advertise: String::new(),
            token_file: PathBuf::from("secrets/node.token"),
            heartbeat: Period::from_secs(10),
            // NTP keeps machines within tens of milliseconds; S3 stores refuse requests from 15 minutes on.
            clock_skew_max: Period::from_secs(5),
            // Service managers and people begin to doubt after ten seconds.
            stop_deadline: Period::from_secs(8),
        }
    }
}

/// Log lines.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LogSettings {
    /// What is logged: a level (error, warn, info, debug, trace), or levels per part: `info,grange_db=debug`.
    pub filter: String,
    /// How lines look; auto is human on a terminal and JSON elsewhere.
    pub format: LogFormat,
}

impl Default for LogSettings {
    fn default() -> Self {
        Self {
            // The stores of the frontier tell every file they open.
            filter: "info,fjall=warn,lsm_tree=warn".to_owned(),
            format: LogFormat::Auto,
        }
    }
}

/// Loads the settings from files, the environment and flags, in this order.
pub fn load(files: &[PathBuf], flags: &[String]) -> Result<Loaded<Settings>, Problems> {
    let known = Known::of::<Settings>();
    let one = |problem: Problem| Problems(vec![problem]);
    let mut layers = Vec::new();
    for file in files {
        layers.push(Layer::file(file).map_err(one)?);
    }
    layers.push(Layer::environment(variables(), &known));
    layers.push(Layer::flags(flags, &known).map_err(one)?);
    usable(load::load(layers, &known)?)
}

/// Refuses settings that are of the right kind and cannot work, each with its place.
fn usable(loaded: Loaded<Settings>) -> Result<Loaded<Settings>, Problems> {
    let unusable = unusable::unusable(&loaded.settings).into_iter().map(|(key, reason)| Problem::Value {
        origin: load::origin_of(&loaded.origins, &key),
        key,
        reason,
    });
    let unusable: Vec<_> = unusable.collect();
    if unusable.is_empty() { Ok(loaded) } else { Err(Problems(unusable)) }
}

/// Environment variables whose name and value are text; others cannot be settings.
fn variables() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

/// A path of the settings: taken from the data folder when relative.
pub fn below(data: &Path, path: &Path) -> PathBuf {
    data.join(path)
}
