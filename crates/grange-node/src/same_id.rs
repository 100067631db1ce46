//! Two nodes with one id: a data folder that was copied while its node went on. Work is claimed, and indexes are kept, by
//! that id, so the second one is refused.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use grange_base::{Clock, Shutdown};
use grange_db::{Db, NewNode};
use grange_model::node::{Liveness, NodeRecord};
use tokio::net::TcpStream;

/// A node of our id that lives.
#[derive(Debug, thiserror::Error)]
#[error(
    "the node {} runs on {} ({address}) with the id of this data folder: it was copied. Remove node.id from the folder of the \
     copy to make it a node of its own, or stop the other node",
    record.name, record.host
)]
pub struct SameId {
    record: Box<NodeRecord>,
    address: String,
}

/// How long an address may take to answer: one that does not tells nothing.
const CONNECT_WITHIN: Duration = Duration::from_secs(2);
/// How often the other's heartbeat is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Where a node answers other nodes.
fn address(addresses: &std::collections::BTreeMap<String, String>) -> &str {
    addresses.get("node").map_or("", String::as_str)
}

/// Whether the row is that of a process elsewhere which was heard of a moment ago.
fn seems_elsewhere(known: &NodeRecord, liveness: Liveness, new: &NewNode) -> bool {
    let same = known.host == new.host && address(&known.addresses) == address(&new.addresses);
    liveness == Liveness::Alive && !same
}

/// Refuses to start while another process lives under this node's id at another address. One that was killed a moment ago
/// looks the same: it is asked at its address, and else told from a living one by its heartbeat, which stays away.
pub async fn refuse(
    db: &Db,
    new: &NewNode,
    lost_after: Duration,
    clock: &Clock,
    stop: &Shutdown,
) -> Result<(), crate::node::StartError> {
    let Some((known, liveness)) = find(db, new, lost_after).await? else { return Ok(()) };
    if !seems_elsewhere(&known, liveness, new) || nobody_answers(&known, new).await {
        return Ok(());
    }
    tracing::warn!(
        host = known.host, address = address(&known.addresses), seen_at = %known.seen_at,
        "a node with this id was heard of a moment ago at another address: waits whether it is heard of again"
    );
    while !stop.requested() {
        clock.sleep(LOOK_EVERY).await;
        match find(db, new, lost_after).await? {
            Some((now, Liveness::Alive)) if now.seen_at == known.seen_at => {}
            Some((now, Liveness::Alive)) => {
                let address = address(&now.addresses).to_owned();
                return Err(SameId { record: Box::new(now), address }.into());
            }
            _ => return Ok(()),
        }
    }
    Err(crate::node::StartError::Stopped)
}

async fn find(
    db: &Db,
    new: &NewNode,
    lost_after: Duration,
) -> Result<Option<(NodeRecord, Liveness)>, grange_db::Error> {
    let nodes = db.nodes().list(lost_after).await?;
    Ok(nodes.into_iter().find(|(node, _)| node.id == new.id))
}

/// Whether the machine says that no process listens there. Loopback is asked only for a node of this machine.
async fn nobody_answers(known: &NodeRecord, new: &NewNode) -> bool {
    let address = address(&known.addresses);
    let ip = address.parse::<SocketAddr>().map(|address| address.ip());
    let loopback = ip.is_ok_and(|ip| ip.is_loopback() || ip.is_unspecified());
    if loopback && known.host != new.host {
        return false;
    }
    let asked = tokio::time::timeout(CONNECT_WITHIN, TcpStream::connect(address)).await;
    matches!(asked, Ok(Err(error)) if error.kind() == ErrorKind::ConnectionRefused)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use grange_db::NodeHeartbeat;
    use grange_model::ids::NodeId;

    use super::*;

    async fn db(dir: &tempfile::TempDir) -> Db {
        let settings = grange_db::Settings::default();
        Db::migrate(&settings, dir.path(), &Clock::system()).await.unwrap();
        Db::open(&settings, dir.path(), Clock::system()).await.unwrap()
    }

    fn new(id: NodeId, host: &str, address: &str) -> NewNode {
        NewNode {
            id,
            name: host.to_owned(),
            host: host.to_owned(),
            roles: Vec::new(),
            version: "1".to_owned(),
            addresses: BTreeMap::from([("node".to_owned(), address.to_owned())]),
            free_bytes: None,
        }
    }

    #[tokio::test]
    async fn a_copied_folder_is_refused_while_its_node_lives_and_a_killed_node_starts_again() {
        let dir = tempfile::tempdir().unwrap();
        let (db, clock, stop) = (db(&dir).await, Clock::system(), grange_base::Trigger::new());
        let id = NodeId::new();
        let (long, short) = (Duration::from_secs(3600), Duration::from_millis(700));
        let start =
            async |new: &NewNode, lost_after| refuse(&db, new, lost_after, &clock, &stop.listener()).await;
        // Somebody listens there, and nobody on the other port.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let taken = listener.local_addr().unwrap().to_string();
        let first = new(id, "a", &taken);
        start(&first, long).await.unwrap();
        db.nodes().register(first.clone()).await.unwrap();
        start(&first, long).await.unwrap();
        // The copy runs on another machine, or on another port, while the first is heard of.
        for copy in [new(id, "b", &taken), new(id, "a", "127.0.0.1:1")] {
            let beat = async {
                loop {
                    clock.sleep(Duration::from_millis(50)).await;
                    db.nodes().heartbeat(id, NodeHeartbeat::default()).await.unwrap();
                }
            };
            let refused = tokio::select! {
                refused = start(&copy, long) => refused.unwrap_err().to_string(),
                () = beat => unreachable!(),
            };
            assert!(refused.contains(&taken) && refused.contains("node.id"), "{refused}");
        }
        // It was killed: its machine says so, or it is not heard of any more.
        start(&new(id, "b", "127.0.0.1:1"), short).await.unwrap();
        drop(listener);
        start(&new(id, "a", "127.0.0.1:1"), long).await.unwrap();
    }
}
