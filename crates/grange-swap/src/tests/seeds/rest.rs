//! Servers at rest: every line whole, every server running, nothing moving. Then all that was promised can be looked for.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use uuid::Uuid;

use super::network::{Network, request};
use super::oracle::{Broken, FILES, NAMESPACES, Oracle};
use crate::collection::{Collection, Layout};
use crate::name::encode;
use crate::place::Point;
use crate::simulation::seeded::{self, SeededRandom};

/// Between two looks, and how many there are: more than two hours by the servers' clock, enough for every pause.
const LOOK: Duration = Duration::from_millis(500);
const MAX_LOOKS: usize = 16_000;
/// What was still under way at the last look has ended by then.
const SETTLE: Duration = Duration::from_secs(3);

fn records(network: &Network) -> Vec<Collection> {
    let servers = network.servers.iter().flatten();
    servers.flat_map(|server| server.node().inventory().collections).collect()
}

/// A namespace never has two living records, whichever servers know them.
pub(super) fn one_living_record_each(network: &Network) -> Result<(), Broken> {
    let mut living: BTreeMap<String, BTreeSet<Uuid>> = BTreeMap::new();
    for record in records(network).into_iter().filter(|record| record.layout != Layout::Gone) {
        living.entry(record.namespace.to_string()).or_default().insert(record.uuid);
    }
    match living.iter().find(|(_, uuids)| uuids.len() > 1) {
        None => Ok(()),
        Some((namespace, uuids)) => Err(format!("{namespace} has several living records: {uuids:?}")),
    }
}

/// All servers see all others, every record is the newest everywhere, and nothing moves.
fn at_rest(network: &Network) -> Result<(), String> {
    let servers = network.servers.iter().flatten();
    for server in servers.clone() {
        let alive = server.node().others().iter().filter(|other| other.alive).count();
        if alive + 1 != network.servers.len() {
            return Err(format!("{} sees {alive} others", server.address()));
        }
        if let Some(record) = server.node().wanted().first() {
            return Err(format!("{} has still to take over {record:?}", server.address()));
        }
    }
    let mut newest: BTreeMap<Uuid, Collection> = BTreeMap::new();
    for record in records(network) {
        let known = newest.entry(record.uuid).or_insert_with(|| record.clone());
        if record.epoch > known.epoch {
            *known = record;
        }
    }
    for record in newest.values() {
        if !matches!(record.layout, Layout::Stable { .. } | Layout::Gone) {
            let slices = servers.clone().flat_map(|server| server.node().inventory().slices);
            let trouble: Vec<_> = slices.filter_map(|slice| slice.trouble).collect();
            return Err(format!("{} is {:?}: {trouble:?}", record.namespace, record.layout));
        }
        for server in servers.clone() {
            let inventory = server.node().inventory();
            let own = inventory.collections.iter().find(|own| own.uuid == record.uuid);
            let host = inventory.partitions.iter().any(|partition| record.slice_on(partition.uuid).is_some());
            if own.is_some_and(|own| own != record) || (host && own.is_none()) {
                return Err(format!("{} is behind with {}", server.address(), record.namespace));
            }
            let view = server.node().view();
            let seen = view.by_uuid(record.uuid).map(|known| known.record.epoch);
            let expected = (record.layout != Layout::Gone).then_some(record.epoch);
            if seen != expected {
                return Err(format!("{} does not see {} as it is", server.address(), record.namespace));
            }
        }
    }
    Ok(())
}

pub(super) async fn come_to_rest(network: &mut Network) -> Result<(), Broken> {
    seeded::mend_all();
    seeded::revive_disks();
    for server in 0..network.servers.len() {
        if network.servers[server].is_none() {
            network.start_server(server).await;
        }
    }
    let mut why = String::new();
    for _ in 0..MAX_LOOKS {
        match at_rest(network) {
            Ok(()) => {
                tokio::time::sleep(SETTLE).await;
                if at_rest(network).is_ok() {
                    return one_living_record_each(network);
                }
            }
            Err(reason) => why = reason,
        }
        tokio::time::sleep(LOOK).await;
    }
    Err(format!("the servers do not come to rest: {why}"))
}

fn collect(folder: &Path, prefix: &str, into: &mut Vec<(String, Vec<u8>)>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries {
        let entry = entry.unwrap();
        let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
        if entry.file_type().unwrap().is_dir() {
            collect(&entry.path(), &format!("{name}/"), into);
        } else {
            into.push((name, std::fs::read(entry.path()).unwrap()));
        }
    }
}

/// The files of a collection as they are on the disks: each on exactly one slice, and on the right one.
fn on_disks(
    network: &Network,
    namespace: &str,
    living: Option<&Collection>,
) -> Result<BTreeMap<String, Vec<u8>>, Broken> {
    let mut all = BTreeMap::new();
    for (uuid, partition) in network.all_partitions() {
        let mut files = Vec::new();
        collect(&partition.join(namespace), "", &mut files);
        for (name, bytes) in files {
            let Some(living) = living else {
                return Err(format!("{namespace} is gone and {name} is still below it"));
            };
            let slice = living.layout.spot(Point::of(&name)).map(|spot| spot.slice);
            if slice.is_none() || living.slice_on(uuid) != slice {
                return Err(format!(
                    "{namespace}/{name} is on slice {:?}, not {slice:?}",
                    living.slice_on(uuid)
                ));
            }
            if all.insert(name.clone(), bytes).is_some() {
                return Err(format!("{namespace}/{name} is on two slices"));
            }
        }
    }
    Ok(all)
}

/// Reads, lists and looks for everything.
pub(super) async fn judge(
    random: &mut SeededRandom,
    network: &Network,
    oracle: &mut Oracle,
) -> Result<(), Broken> {
    let mut attic = Vec::new();
    for (_, partition) in network.all_partitions() {
        collect(&partition.join(".swap-attic"), "", &mut attic);
    }
    let attic: BTreeSet<Vec<u8>> = attic.into_iter().map(|(_, bytes)| bytes).collect();
    let all = records(network);
    for namespace in NAMESPACES {
        let living =
            all.iter().find(|record| record.layout != Layout::Gone && record.namespace.as_str() == namespace);
        let files = on_disks(network, namespace, living)?;
        oracle.judge_rest(namespace, living.map(|record| record.uuid), &files, &attic)?;
        if living.is_none() {
            continue;
        }
        for name in FILES {
            let address = *random.pick(&network.addresses);
            let path = format!("/get/{}/{}", encode(namespace), encode(name));
            let reply = request(address, "GET", &path, None).await;
            let read = match reply.as_ref().map(|reply| reply.status) {
                Some(200) => reply.as_ref().map(|reply| &reply.body),
                Some(404) => None,
                _ => return Err(format!("{namespace}/{name} cannot be read: {reply:?}")),
            };
            if read != files.get(name) {
                return Err(format!("{namespace}/{name} reads {read:?}, on disk {:?}", files.get(name)));
            }
        }
        for directory in ["", "d/", "d/e/"] {
            let path = format!("/get/{}/{directory}?format=json", encode(namespace));
            let reply = request(*random.pick(&network.addresses), "GET", &path, None).await;
            let complete = reply
                .as_ref()
                .is_some_and(|reply| reply.status == 404 || reply.text().contains("\"missing_slices\":[]"));
            if !complete {
                return Err(format!("a listing of {namespace}/{directory} is not complete: {reply:?}"));
            }
            oracle.judge_list(namespace, directory, reply.as_ref(), &BTreeSet::new(), false)?;
        }
    }
    oracle.judge_attic(&attic)
}
