//! One server's state: its partitions, what it knows of the others, and the view made of both.
//!
//! The records on the partitions are the truth; everything here can be built again from them and from what peers
//! announce. All changes to records go through [`Node::adopt`].

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::Read as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use grange_base::{Clock, Throttle};
use jiff::{SignedDuration, Timestamp};
use tokio::sync::{Notify, Semaphore, watch};
use uuid::Uuid;

use crate::access::Key;
use crate::collection::{Collection, Layout};
use crate::error::Error;
use crate::gate::Gate;
use crate::lifecycle::{self, Adoption, Standing};
use crate::moves::Progress;
use crate::name::{LocalPath, Namespace};
use crate::partition::Partition;
use crate::peer::clocks;
use crate::peer::link::Link;
use crate::properties;
use crate::settings::Settings;
use crate::simulation;
use crate::tree::Tree;
use crate::verify::Verifying;
use crate::view::{Inventory, Known, Other, PartitionSeen, SliceSeen, View};

/// Directories known to be validated, at 16 bytes each: as many as an archive works on at a time.
const DIRECTORIES: usize = 1_000_000;
/// Locks shared by all names, so that a removal and a replacement of one name exclude each other.
const NAME_LOCKS: usize = 64;

#[derive(Debug)]
pub struct Node {
    pub settings: Settings,
    /// The URL by which others know us, without a slash at the end.
    pub base: Arc<str>,
    pub key: Key,
    pub partitions: Vec<Arc<Partition>>,
    pub clock: Clock,
    state: Mutex<State>,
    /// Held while a record is taken over, so that one is at a time.
    adopting: Mutex<()>,
    view: RwLock<Arc<View>>,
    version: watch::Sender<u64>,
    /// Directories that were seen to be there, by digest of collection, epoch and path.
    pub(crate) directories: quick_cache::sync::Cache<u128, ()>,
    pub(crate) uploads: Semaphore,
    name_locks: Vec<tokio::sync::Mutex<()>>,
    /// Held while a change to a collection is decided here.
    pub(crate) deciding: tokio::sync::Mutex<()>,
    /// Wakes the mover.
    pub(crate) move_now: Notify,
    pub(crate) throttle: Throttle,
    pub(crate) http: reqwest::Client,
}

#[derive(Debug, Default)]
struct State {
    /// Of collections with a slice here.
    records: BTreeMap<Uuid, Collection>,
    /// By collection and partition.
    trees: BTreeMap<(Uuid, Uuid), Arc<Tree>>,
    gates: HashMap<Uuid, Arc<Gate>>,
    /// Names of collections that are being made real here.
    held_names: HashMap<Uuid, Namespace>,
    /// Removals that failed on one of our disks, to be tried again.
    unfinished: HashMap<Uuid, Collection>,
    /// The last record of collections that have left our partitions: an older one that is still under way to us comes
    /// too late. After a restart nothing is under way.
    left: HashMap<Uuid, Standing>,
    /// The highest epoch of a collection that was ever decided here, also when it could not be written.
    spent: HashMap<Uuid, u64>,
    others: BTreeMap<Arc<str>, Other>,
    clocks_ahead: HashMap<Arc<str>, SignedDuration>,
    links: HashMap<Arc<str>, Link>,
    /// Peers from the settings that were never seen since the start, by address.
    unseen: Vec<String>,
    progress: HashMap<(Uuid, usize), Arc<Progress>>,
    verifying: HashMap<Uuid, Arc<Verifying>>,
}

/// A name that is held; dropped, it is free or has its record.
#[derive(Debug)]
pub(crate) struct HeldName {
    node: Arc<Node>,
    collection: Uuid,
}

impl Drop for HeldName {
    fn drop(&mut self) {
        self.node.state().held_names.remove(&self.collection);
    }
}

impl State {
    /// Another living collection on our partitions with that name or one that overlaps.
    fn name_taken(&self, uuid: Uuid, namespace: &Namespace) -> Option<&Namespace> {
        let living = self.records.values().filter(|record| record.layout != Layout::Gone);
        let mut others = living.filter(|record| record.uuid != uuid).map(|record| &record.namespace);
        others.find(|other| other.overlaps(namespace))
    }

    fn name_is_free(&self, collection: Uuid, namespace: &Namespace, servers: &[String]) -> Result<(), Error> {
        let taken = self.name_taken(collection, namespace);
        let mut held = self.held_names.iter().filter(|(uuid, _)| **uuid != collection);
        let held = held.any(|(_, other)| other.overlaps(namespace));
        let not_asked = self.others.keys().find(|base| !servers.iter().any(|server| **server == ***base));
        if lifecycle::name_is_free(taken.is_some(), held, not_asked.is_none()) {
            return Ok(());
        }
        Err(match (taken, not_asked) {
            (Some(other), _) => Error::Overlap { namespace: namespace.clone(), other: other.clone() },
            (None, Some(base)) => Error::away(format!("{base} was not asked, and might know that name")),
            (None, None) => Error::away(format!("{namespace} is just being made by somebody else")),
        })
    }

    /// The records of others that replace ours or concern our partitions, and removals that we could not finish; removals
    /// first, they free names.
    fn wanted(&self, partitions: &[Arc<Partition>]) -> Vec<Collection> {
        let mut wanted: Vec<Collection> = self.unfinished.values().cloned().collect();
        for record in self.others.values().flat_map(|other| &other.inventory.collections) {
            let ours = || partitions.iter().any(|partition| record.slice_on(partition.uuid).is_some());
            let own = self.records.get(&record.uuid).map(Collection::standing);
            let newer = match (own, self.left.get(&record.uuid)) {
                (Some(own), _) => lifecycle::replaces(record.standing(), own),
                // A removal is remembered, so that a record that is still under way comes too late.
                (None, Some(left)) => {
                    lifecycle::replaces(record.standing(), *left) && (record.layout == Layout::Gone || ours())
                }
                (None, None) => ours(),
            };
            if newer && !wanted.contains(record) {
                wanted.push(record.clone());
            }
        }
        wanted.sort_by_key(|record| (record.layout != Layout::Gone, record.epoch));
        wanted
    }
}

impl Node {
    /// Opens the partitions and reads their records. Blocks.
    pub fn open(settings: Settings, base: Arc<str>, key: Key, clock: Clock) -> Result<Self, Error> {
        let mut partitions: Vec<Arc<Partition>> = Vec::new();
        for root in &settings.partitions {
            let partition = Partition::open(root)?.sums_in_files(settings.sums_in_files);
            if partitions.iter().any(|other| other.uuid == partition.uuid) {
                return Err(Error::Twin { uuid: partition.uuid });
            }
            partitions.push(Arc::new(partition));
        }
        let mut client = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
        if simulation::active() {
            // Reading the certificates of the system takes longer than all else of a start.
            client = client.tls_certs_only(std::iter::empty());
        }
        let http = client
            .build()
            .map_err(|source| Error::Unreachable { place: base.to_string(), source: source.into() })?;
        let state = State { unseen: settings.peers.clone(), ..State::default() };
        let node = Self {
            uploads: Semaphore::new(settings.max_uploads.max(1)),
            throttle: Throttle::per_second(settings.move_rate.0, clock.clone()),
            settings,
            base,
            key,
            partitions,
            clock,
            state: Mutex::new(state),
            adopting: Mutex::new(()),
            view: RwLock::default(),
            // After a restart the number differs from the last one peers saw.
            version: watch::Sender::new(Timestamp::now().as_microsecond().cast_unsigned()),
            directories: quick_cache::sync::Cache::new(DIRECTORIES),
            name_locks: (0..NAME_LOCKS).map(|_| tokio::sync::Mutex::new(())).collect(),
            deciding: tokio::sync::Mutex::new(()),
            move_now: Notify::new(),
            http,
        };
        node.read_disks()?;
        Ok(node)
    }

    /// Rebuilds all records from the partitions. Where a crash left an older record on one of them, the newest of
    /// our disks is written there too.
    fn read_disks(&self) -> Result<(), Error> {
        let mut newest: BTreeMap<Uuid, Collection> = BTreeMap::new();
        // Where a slice still lies; a record of what is gone is only remembered.
        let mut on: Vec<(Uuid, Arc<Partition>)> = Vec::new();
        for partition in &self.partitions {
            for (record, leaving) in records_on(partition)? {
                if record.layout != Layout::Gone || leaving {
                    on.push((record.uuid, Arc::clone(partition)));
                }
                let known = newest.entry(record.uuid).or_insert_with(|| record.clone());
                if lifecycle::replaces(record.standing(), known.standing()) {
                    *known = record;
                }
            }
        }
        // Removals first: they free names.
        let mut newest: Vec<_> = newest.into_values().collect();
        newest.sort_by_key(|record| record.layout != Layout::Gone);
        for record in newest {
            // Opened as if nothing was known yet, so that adopting it also finishes what a crash cut off.
            let mut state = self.state();
            for (_, partition) in on.iter().filter(|(uuid, _)| *uuid == record.uuid) {
                let tree = Tree::open(Arc::clone(partition), record.namespace.clone())?;
                state.trees.insert((record.uuid, partition.uuid), Arc::new(tree));
            }
            drop(state);
            match self.adopt(&record) {
                Ok(true) => {}
                // Of what is gone from all our partitions only the record is left, which must not be forgotten.
                Ok(false) => {
                    self.state().records.insert(record.uuid, record);
                }
                Err(error @ Error::Overlap { .. }) => {
                    self.state().trees.retain(|(uuid, _), _| *uuid != record.uuid);
                    tracing::error!(uuid = %record.uuid, %error, "manual intervention required: a collection on these disks is not served");
                }
                Err(error) => return Err(error),
            }
        }
        self.refresh();
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Only whole assignments happen under this lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn view(&self) -> Arc<View> {
        Arc::clone(&self.view.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn refresh(&self) {
        let mut state = self.state();
        let own: Vec<_> = state.records.values().cloned().collect();
        let others: Vec<_> = state.others.values().cloned().collect();
        let state = &mut *state;
        let (trees, gates) = (&state.trees, &mut state.gates);
        let view = View::assemble(&own, trees, &others, |record| {
            Arc::clone(gates.entry(record.uuid).or_insert_with(|| Arc::new(Gate::at(record.epoch))))
        });
        *self.view.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(view);
    }

    /// Tells peers that something of ours changed.
    pub(crate) fn touch(&self) {
        self.version.send_modify(|version| *version += 1);
    }

    pub(crate) fn watch_version(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    /// Takes over a record if it is newer than ours and concerns our partitions: durable when this returns. Nobody
    /// here gives a name by the old table afterwards. Blocks.
    pub fn adopt(&self, record: &Collection) -> Result<bool, Error> {
        let _one = self.adopting.lock().unwrap_or_else(PoisonError::into_inner);
        let adopted = self.take_over(record);
        let mut state = self.state();
        match &adopted {
            // It closed the collection here, and may be on one of our disks.
            Err(error) if record.layout == Layout::Gone && !matches!(error, Error::Overlap { .. }) => {
                state.unfinished.insert(record.uuid, record.clone());
                self.move_now.notify_one();
            }
            Ok(_) if record.layout == Layout::Gone => {
                state.unfinished.remove(&record.uuid);
            }
            _ => {}
        }
        drop(state);
        adopted
    }

    fn take_over(&self, record: &Collection) -> Result<bool, Error> {
        let (before, had, taken): (_, Vec<Arc<Tree>>, _) = {
            let state = self.state();
            let of_it = state.trees.iter().filter(|((uuid, _), _)| *uuid == record.uuid);
            (
                state
                    .records
                    .get(&record.uuid)
                    .map(Collection::standing)
                    .or_else(|| state.left.get(&record.uuid).copied()),
                of_it.map(|(_, tree)| Arc::clone(tree)).collect(),
                state.name_taken(record.uuid, &record.namespace).cloned(),
            )
        };
        let ours = self.partitions.iter().filter_map(|partition| {
            record.slice_on(partition.uuid).map(|slice| (Arc::clone(partition), slice))
        });
        let ours: Vec<_> = ours.collect();
        let concerned = !ours.is_empty() || !had.is_empty();
        match (lifecycle::adoption(before, record.standing(), concerned, taken.is_some()), taken) {
            (Adoption::Take, _) => {}
            (Adoption::NameTaken, Some(other)) => {
                return Err(Error::Overlap { namespace: record.namespace.clone(), other });
            }
            (Adoption::Remember, _) => {
                self.state().left.insert(record.uuid, record.standing());
                return Ok(false);
            }
            (Adoption::Ignore | Adoption::NameTaken, _) => return Ok(false),
        }
        let gate = Arc::clone(self.state().gates.entry(record.uuid).or_default());
        let mut epoch = gate.write();
        if record.layout == Layout::Gone {
            // Whatever becomes of it here: a removal that was begun is finished one day, with all that is there then.
            *epoch = record.epoch;
        }
        let (mut trees, mut written) = (Vec::new(), Vec::new());
        let write = |partition: &Arc<Partition>, slice: usize| {
            let tree = match had.iter().find(|tree| tree.partition.uuid == partition.uuid) {
                Some(tree) => Arc::clone(tree),
                None => Arc::new(Tree::open(Arc::clone(partition), record.namespace.clone())?),
            };
            partition.write_file(&record.file_name(), record.to_text(slice).as_bytes())?;
            Ok(tree)
        };
        for (partition, slice) in &ours {
            if before.is_none() && had.is_empty() && !partition.root.join(record.file_name()).exists() {
                written.push(partition);
            }
            match write(partition, *slice) {
                Ok(tree) => trees.push(tree),
                Err(error) => {
                    // Of a new collection nothing may be left: the next start would take it for one that was made, beside
                    // another that has its name by then.
                    for partition in written {
                        if let Err(error) = partition.remove_file(&record.file_name()) {
                            let (root, error) =
                                (partition.root.display(), grange_base::Chain(&error).to_string());
                            tracing::error!(partition = %root, error, "cannot remove the record of a collection that was not made");
                        }
                    }
                    return Err(error);
                }
            }
        }
        let left: Vec<_> =
            had.iter().filter(|tree| !trees.iter().any(|kept| Arc::ptr_eq(kept, tree))).collect();
        for tree in left {
            self.leave(record, tree)?;
        }
        *epoch = record.epoch;
        gate.forget_removed();
        {
            let mut state = self.state();
            state.trees.retain(|(uuid, _), _| *uuid != record.uuid);
            for tree in trees {
                state.trees.insert((record.uuid, tree.partition.uuid), tree);
            }
            if ours.is_empty() && record.layout != Layout::Gone {
                state.records.remove(&record.uuid);
                state.left.insert(record.uuid, record.standing());
            } else {
                state.records.insert(record.uuid, record.clone());
            }
            state.progress.retain(|(uuid, _), _| *uuid != record.uuid);
        }
        drop(epoch);
        tracing::info!(namespace = %record.namespace, epoch = record.epoch, layout = ?record.layout, "took over a record");
        self.refresh();
        self.touch();
        self.move_now.notify_one();
        Ok(true)
    }

    /// A partition is no longer part of a collection: it was emptied by a move, or the collection is gone.
    fn leave(&self, record: &Collection, tree: &Tree) -> Result<(), Error> {
        let partition = &tree.partition;
        let path = partition.root.join(record.namespace.as_str());
        if record.layout == Layout::Gone {
            let day = self.clock.now().strftime("%Y-%m-%d").to_string();
            let text = record.to_text(usize::MAX);
            // First the record: a crash in between is finished by the next start, never forgotten.
            partition.write_file(&record.file_name(), format!("{text}{LEAVING}=true\n").as_bytes())?;
            match tree.all_to_attic(&day) {
                // A crash came between this and the next line.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                other => other.map_err(Error::io("move to the attic", &path))?,
            }
            // The record stays, so that no disk that was away brings the collection back.
            return partition.write_file(&record.file_name(), text.as_bytes());
        }
        let mut files = 0_u64;
        tree.walk(|met| {
            files += u64::from(!matches!(met, crate::tree::Met::Directory(_)));
            files == 0
        })
        .map_err(Error::io("walk", &path))?;
        if files > 0 {
            tracing::error!(path = %path.display(), "files are left on a slice that was moved away; they stay there");
            return Ok(());
        }
        tree.prune().map_err(Error::io("remove empty folders of", &path))?;
        partition.remove_file(&record.file_name())
    }

    /// What a peer announced. The records that concern our disks are to be adopted by the caller.
    pub(crate) fn learn(&self, base: &Arc<str>, inventory: Inventory) -> Vec<Collection> {
        let wanted = {
            let mut state = self.state();
            let other = Other { base: Arc::clone(base), alive: true, inventory: Arc::new(inventory) };
            state.others.insert(Arc::clone(base), other);
            state.wanted(&self.partitions)
        };
        self.refresh();
        self.move_now.notify_one();
        wanted
    }

    /// Whether a removal of the collection was begun here and failed on a disk.
    pub(crate) fn removal_is_unfinished(&self, collection: Uuid) -> bool {
        self.state().unfinished.contains_key(&collection)
    }

    /// Our own record of a collection, and the highest epoch that was ever decided here.
    pub(crate) fn own(&self, collection: Uuid) -> Option<(Collection, u64)> {
        let state = self.state();
        let spent = state.spent.get(&collection).copied().unwrap_or_default();
        state.records.get(&collection).map(|record| (record.clone(), spent))
    }

    /// An epoch was decided: whatever becomes of the record, it names no other.
    pub(crate) fn spend(&self, collection: Uuid, epoch: u64) {
        let mut state = self.state();
        let spent = state.spent.entry(collection).or_default();
        *spent = epoch.max(*spent);
    }

    /// Every peer must be here when a name is given to a collection: one that is away might know the name.
    pub(crate) fn all_here(&self) -> Result<(), Error> {
        let state = self.state();
        let away = state.others.values().find(|other| !other.alive).map(|other| other.base.to_string());
        match state.unseen.first().cloned().or(away) {
            None => Ok(()),
            Some(first) => {
                Err(Error::away(format!("{first} is away, and might know a collection of that name")))
            }
        }
    }

    /// Whether a new collection may have a name as far as we know, provided that `servers` are all that we know.
    pub(crate) fn name_is_free(
        &self,
        collection: Uuid,
        namespace: &Namespace,
        servers: &[String],
    ) -> Result<(), Error> {
        self.all_here()?;
        self.state().name_is_free(collection, namespace, servers)
    }

    /// Holds a name while a collection with its slice 0 here is made real.
    pub(crate) fn hold_name(
        self: &Arc<Self>,
        collection: Uuid,
        namespace: &Namespace,
        servers: &[String],
    ) -> Result<HeldName, Error> {
        self.all_here()?;
        let mut state = self.state();
        state.name_is_free(collection, namespace, servers)?;
        state.held_names.insert(collection, namespace.clone());
        Ok(HeldName { node: Arc::clone(self), collection })
    }

    /// The records of others that we have still to take over.
    pub(crate) fn wanted(&self) -> Vec<Collection> {
        self.state().wanted(&self.partitions)
    }

    /// Takes a connection into use; false when there is one already, by another address of the same server.
    pub(crate) fn met(&self, base: &Arc<str>, address: &str, link: Link) -> bool {
        let mut state = self.state();
        state.unseen.retain(|other| other != address);
        if state.links.contains_key(base) {
            return false;
        }
        state.links.insert(Arc::clone(base), link);
        true
    }

    pub(crate) fn lost(&self, base: &Arc<str>) {
        {
            let mut state = self.state();
            state.links.remove(base);
            if let Some(other) = state.others.get_mut(base) {
                other.alive = false;
            }
        }
        self.refresh();
    }

    pub(crate) fn forget_unseen(&self, address: &str) {
        self.state().unseen.retain(|other| other != address);
    }

    /// Peers from the settings that were not seen since the start.
    pub fn unseen(&self) -> Vec<String> {
        self.state().unseen.clone()
    }

    pub fn others(&self) -> Vec<Other> {
        self.state().others.values().cloned().collect()
    }

    pub(crate) fn link(&self, base: &str) -> Result<Link, Error> {
        let link = self.state().links.get(base).cloned();
        link.ok_or_else(|| Error::away(format!("the server {base} is away")))
    }

    pub fn known(&self, collection: Uuid) -> Result<Arc<Known>, Error> {
        let view = self.view();
        let known = view.by_uuid(collection).map(Arc::clone);
        known.ok_or_else(|| Error::NoCollection { namespace: collection.to_string() })
    }

    /// Waits shortly until we know a collection by another epoch than one that is changing: `epoch` is what a peer, or we
    /// ourselves, were seen to leave or to reach.
    pub(crate) async fn catch_up(&self, collection: Uuid, epoch: u64) -> Result<Arc<Known>, Error> {
        let mut version = self.watch_version();
        let caught_up = async {
            loop {
                version.borrow_and_update();
                let known = self.known(collection)?;
                if known.record.epoch >= epoch && known.is_adopted() {
                    return Ok(known);
                }
                if version.changed().await.is_err() {
                    return Ok(known);
                }
            }
        };
        let patience = Duration::from_millis(200);
        tokio::time::timeout(patience, caught_up).await.unwrap_or_else(|_| self.known(collection))
    }

    /// Held while a file is removed or replaced.
    pub(crate) async fn lock_name(&self, path: &LocalPath) -> tokio::sync::MutexGuard<'_, ()> {
        self.name_locks[(path.point().0 % NAME_LOCKS as u128) as usize].lock().await
    }

    pub(crate) fn progress(&self, collection: Uuid, slice: usize) -> Arc<Progress> {
        Arc::clone(self.state().progress.entry((collection, slice)).or_default())
    }

    pub(crate) fn verifying(&self, collection: Uuid) -> Arc<Verifying> {
        Arc::clone(self.state().verifying.entry(collection).or_default())
    }

    /// Our clock, in seconds since 1970.
    pub(crate) fn seconds(&self) -> u64 {
        u64::try_from(self.clock.now().as_second()).unwrap_or_default()
    }

    /// How far the clock of another server was found to be ahead of ours.
    pub(crate) fn note_clock(&self, base: &Arc<str>, ahead: SignedDuration) {
        self.state().clocks_ahead.insert(Arc::clone(base), ahead);
        clocks::report(base, ahead);
    }

    /// How far the clock of another server is ahead of ours, when it was compared.
    pub fn clock_ahead(&self, base: &str) -> Option<SignedDuration> {
        self.state().clocks_ahead.get(base).copied()
    }

    /// All that we tell others. Blocks shortly, for the room on the disks.
    pub fn inventory(&self) -> Inventory {
        let partitions = self.partitions.iter().map(|partition| {
            let room = partition.room().ok();
            PartitionSeen {
                uuid: partition.uuid,
                description: partition.description.clone(),
                path: partition.root.display().to_string(),
                free_bytes: room.map_or(0, |room| room.free_bytes),
                total_bytes: room.map_or(0, |room| room.total_bytes),
                file_system: room.map_or(0, |room| room.file_system),
            }
        });
        let partitions = partitions.collect();
        let version = *self.version.borrow();
        let state = self.state();
        let mut slices = Vec::new();
        for ((uuid, partition), tree) in &state.trees {
            let Some(record) = state.records.get(uuid) else { continue };
            let Some(index) = record.slice_on(*partition) else { continue };
            let (files, bytes) = tree.counts();
            let progress =
                state.progress.get(&(*uuid, index)).map(|progress| progress.seen()).unwrap_or_default();
            slices.push(SliceSeen {
                collection: *uuid,
                index: index as u32,
                partition: *partition,
                files,
                bytes,
                settled: progress.settled,
                moved_files: progress.files,
                moved_bytes: progress.bytes,
                trouble: progress.trouble,
            });
        }
        slices.sort_by_key(|slice| (slice.collection, slice.index));
        let collections = state.records.values().cloned().collect();
        let time = Some(self.clock.now());
        Inventory { base: self.base.to_string(), version, time, partitions, collections, slices }
    }

    /// Counts the files of every slice anew; for the start. Blocks.
    pub fn recount(&self) -> Result<(), Error> {
        let trees: Vec<_> = self.state().trees.values().cloned().collect();
        for tree in trees {
            let path: PathBuf = tree.partition.root.join(tree.namespace.as_str());
            tree.recount().map_err(Error::io("count the files of", path))?;
        }
        Ok(())
    }
}

/// In the record of a collection that is gone: its tree is still on its way to the attic.
const LEAVING: &str = "swap.leaving";

/// The records on a partition, and whether what they say is gone may still be there.
fn records_on(partition: &Partition) -> Result<Vec<(Collection, bool)>, Error> {
    let mut found = Vec::new();
    let root = &partition.root;
    for entry in fs::read_dir(root).map_err(Error::io("list", root))? {
        let path = entry.map_err(Error::io("list", root))?.path();
        let stem =
            path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| Uuid::try_parse(stem).ok());
        if stem.is_none() || path.extension().is_none_or(|extension| extension != "txt") {
            continue;
        }
        let mut text = String::new();
        let file = fs::File::open(&path).map_err(Error::io("read", &path))?;
        file.take(properties::MAX_FILE_BYTES).read_to_string(&mut text).map_err(Error::io("read", &path))?;
        let bad = |reason: String| Error::BadCollection { path: path.clone(), reason };
        let record = Collection::from_text(&text).map_err(bad)?;
        if Some(record.uuid) != stem {
            return Err(bad("swap.uuid differs from the file's name".to_owned()));
        }
        let leaving = properties::read(&text).get(LEAVING).is_some_and(|leaving| leaving == "true");
        found.push((record, leaving));
    }
    Ok(found)
}
