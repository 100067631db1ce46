//! Every channel there is, as one table, and the only constructors of their names.

use crate::channel::{Channel, Instance, Parts};
use crate::error::Error;

/// What a row's channels are told apart by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Where {
    /// One in the whole environment.
    Common,
    /// One per replica.
    Replica,
    /// One per running instance: machine, application and id.
    Instance,
}

#[derive(Debug)]
pub(crate) struct Row {
    /// `*` stands for the name of a harvest channel.
    pub prefix: &'static str,
    pub place: Where,
}

const fn row(prefix: &'static str, place: Where) -> Row {
    Row { prefix, place }
}

// The documents' channels.
static THE_SCHED: Row = row("THE_SCHED", Where::Common);
static ANY_HACO: Row = row("ANY_*PRIORITY_HACO", Where::Common);
static THIS_REPOS_CLIENT: Row = row("THIS_REPOS_CLIENT", Where::Instance);
static THE_REPOS: Row = row("THE_REPOS", Where::Common);
static THE_BAMON: Row = row("THE_BAMON", Where::Replica);
static ALL_BA: Row = row("ALL_BA", Where::Replica);
static ANY_BA: Row = row("ANY_BA", Where::Replica);
static THIS_INDEX_CLIENT: Row = row("THIS_INDEX_CLIENT", Where::Instance);
static INDEX_SERVER: Row = row("INDEX_SERVER", Where::Common);
static MONITOR: Row = row("MONITOR", Where::Common);
static ERROR: Row = row("ERROR", Where::Common);
static THE_CR: Row = row("THE_CR", Where::Replica);
// NetarchiveSuite's later ones.
static HARVESTMON: Row = row("HARVESTMON", Where::Common);
static ALL_HARVESTER_STATUS: Row = row("ALL_HARVESTER_STATUS", Where::Common);
static HCHAN_VAL_REQ: Row = row("HCHAN_VAL_REQ", Where::Common);
static HCHAN_VAL_RESP: Row = row("HCHAN_VAL_RESP", Where::Common);
static JOB_SNAPSHOT: Row = row("JOB_SNAPSHOT_*", Where::Common);
static JOB_PARTIAL: Row = row("JOB_PARTIAL_*", Where::Common);
// Grange's own, for the roles NetarchiveSuite does not have.
static ALL_NODES: Row = row("ALL_NODES", Where::Common);
static THIS_NODE: Row = row("THIS_NODE", Where::Instance);
static ALL_ADMIN: Row = row("ALL_ADMIN", Where::Common);
static ALL_REPLAY: Row = row("ALL_REPLAY", Where::Common);
static ANY_SWAP: Row = row("ANY_SWAP", Where::Common);
static ANY_OAI: Row = row("ANY_OAI", Where::Common);
static ANY_LIFECYCLE: Row = row("ANY_LIFECYCLE", Where::Common);

pub(crate) static TABLE: [&Row; 25] = [
    &THE_SCHED,
    &ANY_HACO,
    &THIS_REPOS_CLIENT,
    &THE_REPOS,
    &THE_BAMON,
    &ALL_BA,
    &ANY_BA,
    &THIS_INDEX_CLIENT,
    &INDEX_SERVER,
    &MONITOR,
    &ERROR,
    &THE_CR,
    &HARVESTMON,
    &ALL_HARVESTER_STATUS,
    &HCHAN_VAL_REQ,
    &HCHAN_VAL_RESP,
    &JOB_SNAPSHOT,
    &JOB_PARTIAL,
    &ALL_NODES,
    &THIS_NODE,
    &ALL_ADMIN,
    &ALL_REPLAY,
    &ANY_SWAP,
    &ANY_OAI,
    &ANY_LIFECYCLE,
];

impl Row {
    /// Takes this row's prefix from the front of a name without its environment: the lane, and what follows.
    pub(crate) fn strip<'a>(&self, rest: &'a str) -> Option<(Option<String>, &'a str)> {
        let Some((head, tail)) = self.prefix.split_once('*') else {
            return Some((None, rest.strip_prefix(self.prefix)?.strip_prefix('_')?));
        };
        let after = rest.strip_prefix(head)?;
        let end = format!("{tail}_");
        let (lane, rest) = after.split_once(&end)?;
        Some((Some(crate::part::decode(lane)?), rest))
    }
}

/// Makes the channels of one environment. All processes of an installation share its name; two installations on
/// one server differ in it and never hear each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channels {
    environment: String,
}

/// Bytes of an environment's name. Room enough for any site's word for "production", and it leaves the rest of
/// [`crate::channel::NAME_BYTES_MAX`] to the other parts.
pub const ENVIRONMENT_BYTES_MAX: usize = 40;

/// Letters and digits only: the first `_` of a name ends the environment.
pub(crate) fn check_environment(environment: &str) -> Result<(), Error> {
    let length = (1..=ENVIRONMENT_BYTES_MAX).contains(&environment.len());
    let fits = length && environment.bytes().all(|b| b.is_ascii_alphanumeric());
    if fits { Ok(()) } else { Err(Error::Environment { given: environment.to_owned() }) }
}

impl Channels {
    pub fn new(environment: &str) -> Result<Self, Error> {
        check_environment(environment)?;
        Ok(Self { environment: environment.to_owned() })
    }

    pub fn environment(&self) -> &str {
        &self.environment
    }

    fn common(&self, row: &'static Row) -> Channel {
        // Only a table row and the environment go in. Both are short and checked, so the name is proper.
        Channel::make(&self.environment, row, Parts::default()).expect("a common channel has a proper name")
    }

    fn of_replica(&self, row: &'static Row, replica: &str) -> Result<Channel, Error> {
        let parts = Parts { replica: Some(replica.to_owned()), ..Parts::default() };
        Channel::make(&self.environment, row, parts)
    }

    fn of_instance(&self, row: &'static Row, machine: &str, instance: &Instance) -> Result<Channel, Error> {
        let parts = Parts { at: Some((machine.to_owned(), instance.clone())), ..Parts::default() };
        Channel::make(&self.environment, row, parts)
    }

    fn of_lane(&self, row: &'static Row, lane: &str) -> Result<Channel, Error> {
        let parts = Parts { lane: Some(lane.to_owned()), ..Parts::default() };
        Channel::make(&self.environment, row, parts)
    }

    /// To the scheduler: a definition changed, a job ended, an index is ready.
    pub fn the_sched(&self) -> Channel {
        self.common(&THE_SCHED)
    }

    /// The documents' two job queues (HIGH for selective, LOW for snapshot harvests). Grange's harvesters listen on
    /// [`Channels::job_partial`] and [`Channels::job_snapshot`], which took their place.
    pub fn any_haco(&self, priority: &str) -> Result<Channel, Error> {
        self.of_lane(&ANY_HACO, priority)
    }

    /// To one client of the archive: what it asked for is done.
    pub fn this_repos_client(&self, machine: &str, instance: &Instance) -> Result<Channel, Error> {
        self.of_instance(&THIS_REPOS_CLIENT, machine, instance)
    }

    /// To the archiver: a file wants storing, checking or repair.
    pub fn the_repos(&self) -> Channel {
        self.common(&THE_REPOS)
    }

    /// To whoever watches over one bitarchive replica: batch to fan out, results to gather.
    pub fn the_bamon(&self, replica: &str) -> Result<Channel, Error> {
        self.of_replica(&THE_BAMON, replica)
    }

    /// To all bitarchive nodes of a replica: batch work, an order to stop it.
    pub fn all_ba(&self, replica: &str) -> Result<Channel, Error> {
        self.of_replica(&ALL_BA, replica)
    }

    /// To any bitarchive node of a replica with space left: a file to take.
    pub fn any_ba(&self, replica: &str) -> Result<Channel, Error> {
        self.of_replica(&ANY_BA, replica)
    }

    /// To one client of the indexer: its index is ready.
    pub fn this_index_client(&self, machine: &str, instance: &Instance) -> Result<Channel, Error> {
        self.of_instance(&THIS_INDEX_CLIENT, machine, instance)
    }

    /// To the indexers: a file was stored, an index was asked for.
    pub fn index_server(&self) -> Channel {
        self.common(&INDEX_SERVER)
    }

    /// To the system overview: a node came or went.
    pub fn monitor(&self) -> Channel {
        self.common(&MONITOR)
    }

    /// What was given up, with the reason; see [`crate::Announcer::report_error`].
    pub fn error(&self) -> Channel {
        self.common(&ERROR)
    }

    /// To the node that keeps one checksum replica.
    pub fn the_cr(&self, replica: &str) -> Result<Channel, Error> {
        self.of_replica(&THE_CR, replica)
    }

    /// To the admin pages: how far running jobs are.
    pub fn harvestmon(&self) -> Channel {
        self.common(&HARVESTMON)
    }

    /// Harvesters tell everyone that they are free, busy or going. HARVESTER_STATUS in NetarchiveSuite.
    pub fn all_harvester_status(&self) -> Channel {
        self.common(&ALL_HARVESTER_STATUS)
    }

    /// A harvester asks whether its harvest channel exists.
    pub fn hchan_val_req(&self) -> Channel {
        self.common(&HCHAN_VAL_REQ)
    }

    /// The answer to that.
    pub fn hchan_val_resp(&self) -> Channel {
        self.common(&HCHAN_VAL_RESP)
    }

    /// To the harvesters of a harvest channel: a snapshot job waits.
    pub fn job_snapshot(&self, lane: &str) -> Result<Channel, Error> {
        self.of_lane(&JOB_SNAPSHOT, lane)
    }

    /// To the harvesters of a harvest channel: a selective job waits.
    pub fn job_partial(&self, lane: &str) -> Result<Channel, Error> {
        self.of_lane(&JOB_PARTIAL, lane)
    }

    /// To every node: the set of nodes, replicas or users changed; read it again.
    pub fn all_nodes(&self) -> Channel {
        self.common(&ALL_NODES)
    }

    /// To one node: there is a command for it.
    pub fn this_node(&self, machine: &str, instance: &Instance) -> Result<Channel, Error> {
        self.of_instance(&THIS_NODE, machine, instance)
    }

    /// To every process that shows pages: what is on screen may be stale.
    pub fn all_admin(&self) -> Channel {
        self.common(&ALL_ADMIN)
    }

    /// To every replay process: the index grew or an access rule changed; drop what is cached.
    pub fn all_replay(&self) -> Channel {
        self.common(&ALL_REPLAY)
    }

    /// To a swap server: slices want placing or checking.
    pub fn any_swap(&self) -> Channel {
        self.common(&ANY_SWAP)
    }

    /// To an OAI harvester: a metadata job is due.
    pub fn any_oai(&self) -> Channel {
        self.common(&ANY_OAI)
    }

    /// To the life cycle: a chunk was closed, a package can be built, a file may be released.
    pub fn any_lifecycle(&self) -> Channel {
        self.common(&ANY_LIFECYCLE)
    }
}

#[cfg(test)]
#[path = "channels_tests.rs"]
mod tests;
