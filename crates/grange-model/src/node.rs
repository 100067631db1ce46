//! Nodes: the running programs that make up one archive.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::NodeId;
use crate::nearest::named;

named! {
    /// What a node does. `grange up` takes all of them, `grange up --roles …` some.
    NodeRole, "node role" {
        /// Turns due harvest definitions into jobs and hands them out.
        Scheduler = "scheduler",
        /// Crawls jobs.
        Harvester = "harvester",
        /// Keeps every file proven on all replicas.
        Archiver = "archiver",
        /// Holds the files or checksums of one replica on this machine's disks.
        Bitarchive = "bitarchive",
        /// Indexes stored files.
        Indexer = "indexer",
        /// Shows captures.
        Replay = "replay",
        /// Pages, JSON API and the overview of the system.
        Admin = "admin",
        /// Spreads plain files over partitions.
        Swap = "swap",
        /// Harvests OAI-PMH metadata.
        Oai = "oai",
        /// Carries crawled chunks through verification, packaging and release.
        Lifecycle = "lifecycle",
    }
}

/// One node as the registry knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeRecord {
    pub id: NodeId,
    /// What people call it; by default the host's name.
    pub name: String,
    pub host: String,
    pub roles: Vec<NodeRole>,
    pub version: String,
    /// Where it answers, by purpose: `admin`, `replay`, `peer`.
    pub addresses: BTreeMap<String, String>,
    /// Free space on the disk of its data folder; absent when it could not be asked.
    pub free_bytes: Option<u64>,
    /// Milliseconds by which its machine's clock was ahead of the database's at the last heartbeat; negative when behind,
    /// absent where the database has no clock of its own.
    #[serde(default)]
    pub clock_ahead_ms: Option<i64>,
    #[schemars(with = "String")]
    pub started_at: Timestamp,
    /// The last heartbeat, by the database's clock.
    #[schemars(with = "String")]
    pub seen_at: Timestamp,
    /// When it said goodbye; absent while it runs, or if it died without a word.
    #[schemars(with = "Option<String>")]
    pub stopped_at: Option<Timestamp>,
}

named! {
    /// Whether a node can be counted on.
    Liveness, "liveness" {
        /// Heard of within the time allowed.
        Alive = "alive",
        /// Not heard of for longer than that, and it did not say goodbye.
        Lost = "lost",
        /// Said goodbye.
        Stopped = "stopped",
    }
}

impl NodeRecord {
    /// Judges by the last heartbeat; `now` and `seen_at` must come from the same clock.
    pub fn liveness(&self, now: Timestamp, lost_after: Duration) -> Liveness {
        if self.stopped_at.is_some() {
            return Liveness::Stopped;
        }
        let silent = now.duration_since(self.seen_at);
        // A clock set back makes the silence negative: the node was heard "later than now", so it lives.
        if silent > SignedDuration::try_from(lost_after).unwrap_or(SignedDuration::MAX) {
            Liveness::Lost
        } else {
            Liveness::Alive
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_read_back_as_written() {
        for role in NodeRole::ALL {
            assert_eq!(role.as_str().parse::<NodeRole>().unwrap(), *role);
            assert_eq!(serde_json::to_value(role).unwrap(), role.as_str());
        }
        let error = "harvestr".parse::<NodeRole>().unwrap_err();
        assert_eq!(error.nearest, Some("harvester"));
        assert_eq!(error.known.len(), 10);
    }

    #[test]
    fn liveness_follows_the_heartbeat() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut node = NodeRecord {
            id: NodeId::new(),
            name: "a".to_owned(),
            host: "a".to_owned(),
            roles: vec![],
            version: "1".to_owned(),
            addresses: BTreeMap::new(),
            free_bytes: None,
            clock_ahead_ms: None,
            started_at: at(0),
            seen_at: at(100),
            stopped_at: None,
        };
        let after = Duration::from_secs(30);
        for (now, expected) in [
            (50, Liveness::Alive), // the clock was set back
            (100, Liveness::Alive),
            (130, Liveness::Alive),
            (131, Liveness::Lost),
        ] {
            assert_eq!(node.liveness(at(now), after), expected, "at {now}");
        }
        node.stopped_at = Some(at(101));
        assert_eq!(node.liveness(at(101), after), Liveness::Stopped);
        node.stopped_at = None;
        assert_eq!(node.liveness(at(1000), Duration::MAX), Liveness::Alive);
    }
}
