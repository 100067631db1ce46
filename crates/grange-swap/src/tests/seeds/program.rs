//! What clients and fate do, chosen by the seed.

use std::collections::BTreeSet;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;

use super::network::{Network, Reply, request};
use super::oracle::{Broken, FILES, NAMESPACES, Oracle, content};
use crate::name::encode;
use crate::simulation::seeded::SeededRandom;

/// A request of a client.
#[derive(Clone, Debug)]
pub(super) enum Operation {
    Put { name: &'static str, version: u32 },
    Delete { name: &'static str },
    Get { name: &'static str },
    List { directory: &'static str },
    Create { slices: u32, everywhere: bool },
    Remove { with_files: bool },
    Double,
    Halve,
}

impl Operation {
    fn name(&self) -> Option<&'static str> {
        match self {
            Self::Put { name, .. } | Self::Delete { name } | Self::Get { name } => Some(name),
            _ => None,
        }
    }

    /// Whether the collection may come or go by it.
    fn is_about_existence(&self) -> bool {
        matches!(self, Self::Create { .. } | Self::Remove { .. })
    }
}

#[derive(Clone, Debug)]
pub(super) struct Request {
    /// Sent that many milliseconds after the first ones of its step.
    pub delay: u64,
    pub server: usize,
    pub namespace: &'static str,
    pub operation: Operation,
}

/// A misfortune while requests are under way.
#[derive(Clone, Debug)]
pub(super) enum Fault {
    /// At any await.
    Crash {
        server: usize,
    },
    /// After that many more changes of its disks.
    CrashAfterChanges {
        server: usize,
        changes: usize,
    },
    Cut {
        one: usize,
        two: usize,
    },
    /// On each disk of a server, after that many more.
    FailSyncs {
        server: usize,
        succeed: usize,
        fail: usize,
    },
}

#[derive(Clone, Debug)]
pub(super) struct Step {
    pub requests: Vec<Request>,
    pub fault: Option<Fault>,
    /// A server that is down is started first.
    pub start: Option<usize>,
    pub mend: bool,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(server) = self.start {
            write!(f, "start {server}; ")?;
        }
        if self.mend {
            write!(f, "mend all lines; ")?;
        }
        if let Some(fault) = &self.fault {
            write!(f, "{fault:?} during ")?;
        }
        for Request { delay, server, namespace, operation } in &self.requests {
            write!(f, "[{delay} ms, server {server}: {namespace} {operation:?}] ")?;
        }
        Ok(())
    }
}

pub(super) fn choose_step(random: &mut SeededRandom, network: &Network, oracle: &mut Oracle) -> Step {
    let servers = network.servers.len();
    let down: Vec<usize> = (0..servers).filter(|server| network.servers[*server].is_none()).collect();
    let start = (!down.is_empty() && !random.one_in(3)).then(|| *random.pick(&down));
    let fault = random.one_in(3).then(|| match random.below(6) {
        0 => Fault::Crash { server: random.below(servers) },
        1 | 2 => {
            let (succeed, fail) = (random.below(12), 1 + random.below(2));
            Fault::FailSyncs { server: random.below(servers), succeed, fail }
        }
        3 | 4 => Fault::CrashAfterChanges { server: random.below(servers), changes: random.below(20) },
        _ => {
            let one = random.below(servers);
            Fault::Cut { one, two: (one + 1 + random.below(servers - 1)) % servers }
        }
    });
    let mend = random.one_in(3);
    let mut requests: Vec<Request> = Vec::new();
    for _ in 0..=random.below(5) {
        let namespace = *random.pick(&NAMESPACES);
        if let Some(operation) = choose_operation(random, oracle, namespace, &requests) {
            let delay = if random.one_in(2) { 0 } else { random.below(60) as u64 };
            requests.push(Request { delay, server: random.below(servers), namespace, operation });
        }
    }
    Step { requests, fault, start, mend }
}

fn choose_operation(
    random: &mut SeededRandom,
    oracle: &mut Oracle,
    namespace: &'static str,
    chosen: &[Request],
) -> Option<Operation> {
    let chosen: Vec<_> = chosen.iter().filter(|other| other.namespace == namespace).collect();
    let (living, doubt) = {
        let collection = oracle.collection(namespace);
        (collection.living.is_some(), collection.doubt.any())
    };
    let about_existence = chosen.iter().any(|other| other.operation.is_about_existence());
    let create = Operation::Create { slices: 1 + random.below(3) as u32, everywhere: random.one_in(2) };
    if !living && !doubt {
        return (!about_existence && !random.one_in(4)).then_some(create);
    }
    let (name, directory) = (*random.pick(&FILES), *random.pick(&["", "d/", "d/e/"]));
    let free = !chosen.iter().any(|other| other.operation.name() == Some(name));
    // Moves are short: what they might disturb is asked for at the same time.
    let moves = chosen.iter().any(|other| matches!(other.operation, Operation::Double | Operation::Halve));
    let choice = if moves && random.one_in(2) { 10 + random.below(15) } else { random.below(40) };
    match choice {
        0 if doubt && chosen.is_empty() => Some(create),
        1 | 2 if !about_existence && !doubt => Some(Operation::Remove { with_files: false }),
        3 if !about_existence && !doubt => Some(Operation::Remove { with_files: true }),
        4..=6 => Some(Operation::Double),
        7..=9 => Some(Operation::Halve),
        10..=13 => Some(Operation::List { directory }),
        14..=18 if free => Some(Operation::Get { name }),
        19..=24 if free => Some(Operation::Delete { name }),
        25.. if free => {
            let known = oracle.collection(namespace).files[name].possible.iter().flatten().last().copied();
            let version = known.filter(|_| random.one_in(3)).unwrap_or_else(|| oracle.new_version());
            Some(Operation::Put { name, version })
        }
        _ => None,
    }
}

/// The answer to a request; of a creation, of all servers that were asked.
pub(super) type Replies = Vec<Option<Reply>>;

pub(super) async fn send(addresses: &[SocketAddr], asked: &Request) -> Replies {
    let Request { delay, server, namespace, operation } = asked;
    tokio::time::sleep(Duration::from_millis(*delay)).await;
    let address = addresses[*server];
    let encoded = encode(namespace);
    let file = |verb: &str, name: &str| format!("/{verb}/{encoded}/{}", encode(name));
    let reslice =
        |slices: &str| json!({ "slices": slices, "dry_run": false, "mixed_disks": false }).to_string();
    let reply = match operation {
        Operation::Put { name, version } => {
            let body = content(namespace, name, *version);
            request(address, "PUT", &file("put", name), Some(&body)).await
        }
        Operation::Delete { name } => request(address, "DELETE", &file("put", name), None).await,
        Operation::Get { name } => request(address, "GET", &file("get", name), None).await,
        Operation::List { directory } => {
            let path = format!("/get/{encoded}/{directory}?format=json");
            request(address, "GET", &path, None).await
        }
        Operation::Create { slices, everywhere } => {
            let new = json!({
                "namespace": namespace, "slices": slices, "public": true, "mixed_disks": false
            });
            let (new, count) = (new.to_string(), if *everywhere { addresses.len() } else { 1 });
            let asked = (0..count).map(|turn| {
                let address = addresses[(server + turn) % addresses.len()];
                request(address, "POST", "/admin/v1/collections", Some(new.as_bytes()))
            });
            return join_all(asked).await;
        }
        Operation::Remove { with_files } => {
            let path = format!("/admin/v1/collections/{encoded}?with_files={with_files}");
            request(address, "DELETE", &path, None).await
        }
        Operation::Double | Operation::Halve => {
            let slices = if matches!(operation, Operation::Double) { "double" } else { "halve" };
            let path = format!("/admin/v1/reslice/{encoded}");
            request(address, "POST", &path, Some(reslice(slices).as_bytes())).await
        }
    };
    vec![reply]
}

/// Compares all answers of a step with what was promised.
pub(super) fn judge(oracle: &mut Oracle, step: &Step, replies: &[Replies]) -> Result<(), Broken> {
    let vague = |namespace: &str, oracle: &Oracle| {
        let about_existence =
            |other: &Request| other.namespace == namespace && other.operation.is_about_existence();
        oracle.collection(namespace).doubt.any() || step.requests.iter().any(about_existence)
    };
    // Listings by what was known before this step.
    for (asked, replies) in step.requests.iter().zip(replies) {
        if let Operation::List { directory } = asked.operation {
            let others = step.requests.iter().filter(|other| other.namespace == asked.namespace);
            let busy: BTreeSet<_> = others.filter_map(|other| other.operation.name()).collect();
            let vague = vague(asked.namespace, oracle);
            oracle.judge_list(asked.namespace, directory, replies[0].as_ref(), &busy, vague)?;
        }
    }
    // A new collection first: files that this step stored are in it, or went with the one before.
    for (Request { namespace, operation, .. }, replies) in step.requests.iter().zip(replies) {
        if let Operation::Create { .. } = operation {
            oracle.judge_create(namespace, replies)?;
        }
    }
    for (Request { namespace, operation, .. }, replies) in step.requests.iter().zip(replies) {
        let (reply, vague) = (replies[0].as_ref(), vague(namespace, oracle));
        match operation {
            Operation::Put { name, version } => oracle.judge_put(namespace, name, *version, reply, vague)?,
            Operation::Delete { name } => oracle.judge_delete(namespace, name, reply, vague)?,
            Operation::Get { name } => oracle.judge_get(namespace, name, reply, vague)?,
            _ => {}
        }
    }
    for (Request { namespace, operation, .. }, replies) in step.requests.iter().zip(replies) {
        if let Operation::Remove { with_files } = operation {
            oracle.judge_removal(namespace, *with_files, replies[0].as_ref())?;
        }
    }
    Ok(())
}
