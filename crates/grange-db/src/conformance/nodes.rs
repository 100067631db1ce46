//! What the registry of nodes promises.

use std::collections::BTreeMap;
use std::time::Duration;

use grange_model::{Liveness, NodeId, NodeRole};

use super::{Bed, LONG, SHORT, anna, on_both_engines};
use crate::{NewNode, NodeHeartbeat};

on_both_engines! {
    a_node_registers_anew_in_its_own_place,
    a_silent_node_is_lost_and_a_heartbeat_brings_it_back,
    long_dead_nodes_are_forgotten_and_must_register_again,
    a_role_from_the_future_is_passed_over,
    one_node_is_forgotten_when_it_does_not_live,
}

pub(super) fn new(name: &str) -> NewNode {
    NewNode {
        id: NodeId::new(),
        name: name.to_owned(),
        host: format!("{name}.example.org"),
        roles: vec![NodeRole::Harvester, NodeRole::Replay],
        version: "0.1.0".to_owned(),
        addresses: BTreeMap::from([("peer".to_owned(), "http://127.0.0.1:7070".to_owned())]),
        free_bytes: Some(1 << 40),
    }
}

async fn a_node_registers_anew_in_its_own_place(bed: &Bed) {
    let nodes = bed.db.nodes();
    let a = new("a");
    let first = nodes.register(a.clone()).await.unwrap();
    assert_eq!(
        (first.id, &first.name, &first.roles, &first.addresses),
        (a.id, &a.name, &a.roles, &a.addresses)
    );
    assert_eq!((first.free_bytes, first.stopped_at), (Some(1 << 40), None));
    assert_eq!(nodes.get(a.id).await.unwrap(), Some(first.clone()));
    nodes.mark_stopped(a.id).await.unwrap();
    assert!(nodes.get(a.id).await.unwrap().unwrap().stopped_at.is_some());
    bed.pass(first.started_at).await;
    let second = nodes
        .register(NewNode { version: "0.2.0".into(), roles: vec![NodeRole::Admin], free_bytes: None, ..a })
        .await
        .unwrap();
    assert!(second.started_at > first.started_at && second.stopped_at.is_none());
    assert_eq!((second.version.as_str(), second.free_bytes), ("0.2.0", None));
    assert_eq!(nodes.list(LONG).await.unwrap(), [(second, Liveness::Alive)]);
}

async fn a_silent_node_is_lost_and_a_heartbeat_brings_it_back(bed: &Bed) {
    let nodes = bed.db.nodes();
    let (a, b) = (nodes.register(new("a")).await.unwrap(), nodes.register(new("b")).await.unwrap());
    nodes.mark_stopped(b.id).await.unwrap();
    bed.pass(b.seen_at + 2 * SHORT).await;
    let seen = async |after| {
        let nodes = nodes.list(after).await.unwrap();
        nodes.into_iter().map(|(node, liveness)| format!("{} {liveness}", node.name)).collect::<Vec<_>>()
    };
    assert_eq!(seen(SHORT).await, ["a lost", "b stopped"]);
    assert_eq!(seen(LONG).await, ["a alive", "b stopped"]);
    let beat = NodeHeartbeat { free_bytes: Some(7), clock_ahead_ms: Some(-4200) };
    nodes.heartbeat(a.id, beat).await.unwrap();
    let after = nodes.get(a.id).await.unwrap().unwrap();
    assert!(after.seen_at > a.seen_at);
    assert_eq!((after.free_bytes, after.clock_ahead_ms), (Some(7), Some(-4200)));
    // A heartbeat that could not measure keeps the last figure.
    nodes.heartbeat(a.id, NodeHeartbeat::default()).await.unwrap();
    assert_eq!(nodes.get(a.id).await.unwrap().unwrap().free_bytes, Some(7));
}

async fn long_dead_nodes_are_forgotten_and_must_register_again(bed: &Bed) {
    let nodes = bed.db.nodes();
    let (a, b) = (nodes.register(new("a")).await.unwrap(), nodes.register(new("b")).await.unwrap());
    // Wide enough that a slow machine does not make the heartbeat below look old.
    let gap = 25 * SHORT;
    bed.pass(b.seen_at + gap).await;
    assert_eq!(nodes.forget(LONG).await.unwrap(), []);
    nodes.heartbeat(b.id, NodeHeartbeat::default()).await.unwrap();
    assert_eq!(nodes.forget(gap).await.unwrap(), [a.id]);
    assert_eq!(nodes.forget(Duration::MAX).await.unwrap(), []);
    assert_eq!(nodes.heartbeat(a.id, NodeHeartbeat::default()).await.unwrap_err().code(), "not-found");
    assert_eq!(nodes.mark_stopped(a.id).await.unwrap_err().code(), "not-found");
    assert_eq!(nodes.get(a.id).await.unwrap(), None);
}

async fn a_role_from_the_future_is_passed_over(bed: &Bed) {
    let node = bed.db.nodes().register(new("a")).await.unwrap();
    bed.db
        .write("pretend to be newer", (), |tx, ()| {
            Box::pin(async move {
                tx.run(sqlx::query(r#"UPDATE nodes SET roles = '["harvester", "teleporter"]'"#)).await
            })
        })
        .await
        .unwrap();
    assert_eq!(bed.db.nodes().get(node.id).await.unwrap().unwrap().roles, [NodeRole::Harvester]);
}

async fn one_node_is_forgotten_when_it_does_not_live(bed: &Bed) {
    let nodes = bed.db.nodes();
    let (a, b) = (nodes.register(new("a")).await.unwrap(), nodes.register(new("b")).await.unwrap());
    assert_eq!(nodes.forget_one(a.id, LONG, &anna()).await.unwrap_err().code(), "not-found");
    nodes.mark_stopped(a.id).await.unwrap();
    nodes.forget_one(a.id, LONG, &anna()).await.unwrap();
    bed.pass(b.seen_at + SHORT).await;
    nodes.forget_one(b.id, SHORT, &anna()).await.unwrap();
    assert_eq!(nodes.list(LONG).await.unwrap(), []);
}
