//! What a server knows about the network at one moment: which collections there are, and who keeps each slice.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::collection::{Collection, Layout};
use crate::gate::Gate;
use crate::lifecycle::replaces;
use crate::tree::Tree;

/// Where a slice is.
#[derive(Clone, Debug)]
pub enum Home {
    Here(Arc<Tree>),
    There {
        base: Arc<str>,
        alive: bool,
    },
    /// No server we have seen since our start has its partition.
    Nowhere,
}

/// One collection and its homes.
#[derive(Debug)]
pub struct Known {
    pub record: Collection,
    /// By slice index.
    pub homes: Vec<Home>,
    /// The epoch this server works by.
    pub gate: Arc<Gate>,
}

impl Known {
    #[cfg(test)]
    pub(crate) fn for_tests(record: Collection, homes: Vec<Home>) -> Self {
        let gate = Arc::new(Gate::at(record.epoch));
        Self { record, homes, gate }
    }

    pub fn tree(&self, slice: usize) -> Option<&Arc<Tree>> {
        match self.homes.get(slice) {
            Some(Home::Here(tree)) => Some(tree),
            _ => None,
        }
    }

    /// The slices that are here.
    pub fn here(&self) -> impl Iterator<Item = (usize, &Arc<Tree>)> {
        self.homes.iter().enumerate().filter_map(|(index, home)| match home {
            Home::Here(tree) => Some((index, tree)),
            _ => None,
        })
    }

    /// Whether this server works by the record. One that keeps no slice has nothing to do by it.
    pub fn is_adopted(&self) -> bool {
        self.here().next().is_none() || self.gate.epoch() == self.record.epoch
    }

    /// The servers of its slices other than this one.
    pub fn others(&self) -> Vec<(Arc<str>, bool)> {
        let mut others: Vec<(Arc<str>, bool)> = Vec::new();
        for home in &self.homes {
            if let Home::There { base, alive } = home
                && !others.iter().any(|(known, _)| known == base)
            {
                others.push((Arc::clone(base), *alive));
            }
        }
        others
    }
}

/// A partition as its server announces it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionSeen {
    pub uuid: Uuid,
    pub description: String,
    pub path: String,
    pub free_bytes: u64,
    pub total_bytes: u64,
    pub file_system: u64,
}

/// A slice as its server announces it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SliceSeen {
    pub collection: Uuid,
    pub index: u32,
    pub partition: Uuid,
    pub files: u64,
    pub bytes: u64,
    /// The epoch by which a whole walk found nothing left to move away.
    pub settled: Option<u64>,
    /// Files and bytes moved away from here in the running move.
    pub moved_files: u64,
    pub moved_bytes: u64,
    /// What keeps the running move from going on, if anything.
    pub trouble: Option<String>,
}

/// All that one server tells the others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inventory {
    pub base: String,
    /// Grows with every change of partitions, records and settled slices; differs after a restart.
    pub version: u64,
    /// The server's clock when it told this.
    #[serde(default)]
    pub time: Option<Timestamp>,
    pub partitions: Vec<PartitionSeen>,
    pub collections: Vec<Collection>,
    pub slices: Vec<SliceSeen>,
}

/// Another server, as far as we know it.
#[derive(Clone, Debug)]
pub struct Other {
    pub base: Arc<str>,
    pub alive: bool,
    /// The last it told; kept while it is away.
    pub inventory: Arc<Inventory>,
}

/// Everything at one moment.
#[derive(Debug, Default)]
pub struct View {
    by_namespace: HashMap<String, Arc<Known>>,
    /// Names in the longest namespace.
    depth: usize,
}

impl View {
    /// Puts the records of all servers together; of two the one that replaces the other holds.
    pub fn assemble(
        own: &[Collection],
        here: &BTreeMap<(Uuid, Uuid), Arc<Tree>>,
        others: &[Other],
        mut gate: impl FnMut(&Collection) -> Arc<Gate>,
    ) -> Self {
        let mut newest: HashMap<Uuid, &Collection> = HashMap::new();
        for record in own.iter().chain(others.iter().flat_map(|other| &other.inventory.collections)) {
            let known = newest.entry(record.uuid).or_insert(record);
            if replaces(record.standing(), known.standing()) {
                *known = record;
            }
        }
        let mut hosts: HashMap<Uuid, (&Arc<str>, bool)> = HashMap::new();
        for other in others {
            for partition in &other.inventory.partitions {
                let host = hosts.entry(partition.uuid).or_insert((&other.base, other.alive));
                // A disk that moved to another machine is where it is alive.
                if other.alive && !host.1 {
                    *host = (&other.base, true);
                }
            }
        }
        let mut view = Self::default();
        for record in newest.into_values().filter(|record| record.layout != Layout::Gone) {
            let home = |partition: Uuid| match (here.get(&(record.uuid, partition)), hosts.get(&partition)) {
                (Some(tree), _) => Home::Here(Arc::clone(tree)),
                (None, Some((base, alive))) => Home::There { base: Arc::clone(base), alive: *alive },
                (None, None) => Home::Nowhere,
            };
            let homes = record.slices.iter().map(|slice| home(slice.partition)).collect();
            let known = Known { record: record.clone(), homes, gate: gate(record) };
            view.depth = view.depth.max(record.namespace.components().count());
            let namespace = record.namespace.as_str().to_owned();
            // Two records of one namespace cannot be made; should disks of two networks meet, one holds everywhere.
            match view.by_namespace.get(&namespace) {
                Some(other) if other.record.uuid < record.uuid => {}
                _ => {
                    view.by_namespace.insert(namespace, Arc::new(known));
                }
            }
        }
        view
    }

    /// The collection a decoded path leads into, and the path within it. Namespaces do not nest, so one at most fits.
    pub fn resolve<'p>(&self, path: &'p str) -> Option<(&Arc<Known>, &'p str)> {
        let ends = path.char_indices().filter_map(|(at, c)| (c == '/').then_some(at));
        for end in ends.take(self.depth) {
            if let Some(known) = self.by_namespace.get(&path[..end]) {
                return Some((known, &path[end + 1..]));
            }
        }
        self.by_namespace.get(path).map(|known| (known, ""))
    }

    pub fn get(&self, namespace: &str) -> Option<&Arc<Known>> {
        self.by_namespace.get(namespace)
    }

    pub fn by_uuid(&self, uuid: Uuid) -> Option<&Arc<Known>> {
        self.by_namespace.values().find(|known| known.record.uuid == uuid)
    }

    pub fn collections(&self) -> impl Iterator<Item = &Arc<Known>> {
        self.by_namespace.values()
    }
}
