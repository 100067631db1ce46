//! Single faults, by the clock of a simulated run: nothing here waits for real time.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;

use super::network::{Network, request};
use super::{rest, simulate};
use crate::collection::Layout;

async fn create(network: &Network, slices: u32) {
    let new = json!({ "namespace": "c", "slices": slices, "public": true }).to_string();
    let created = request(network.addresses[0], "POST", "/admin/v1/collections", Some(new.as_bytes())).await;
    assert_eq!(created.unwrap().status, 200);
}

async fn put(network: &Network, name: &str) {
    let path = format!("/put/c/{name}");
    let stored = request(network.addresses[0], "PUT", &path, Some(name.as_bytes())).await.unwrap();
    assert_eq!(stored.status, 201, "{stored:?}");
}

async fn reslice(network: &Network, slices: &str) {
    let wanted = json!({ "slices": slices }).to_string();
    let begun = request(network.addresses[0], "POST", "/admin/v1/reslice/c", Some(wanted.as_bytes())).await;
    assert_eq!(begun.as_ref().unwrap().status, 200, "{begun:?}");
}

/// Whether any server still has the collection as moving.
fn moving(network: &Network) -> bool {
    let mut servers = network.servers.iter().flatten();
    servers.any(|server| {
        let view = server.node().view();
        view.get("c").is_some_and(|known| matches!(known.record.layout, Layout::Moving { .. }))
    })
}

/// The names that a server lists, unless it says that some are missing.
async fn listed(network: &Network, server: usize) -> Option<BTreeSet<String>> {
    let reply = request(network.addresses[server], "GET", "/get/c/?format=json", None).await.unwrap();
    let listing: serde_json::Value = serde_json::from_slice(&reply.body).ok()?;
    if listing["missing_slices"] != json!([]) {
        return None;
    }
    let entries = listing["entries"].as_array()?;
    Some(entries.iter().map(|entry| entry["name"].as_str().unwrap().to_owned()).collect())
}

#[test]
fn files_that_change_their_slice_during_a_listing_are_listed() {
    let mut during_moves = 0;
    for seed in 0..12 {
        simulate(seed, async {
            let mut network = Network::start(2).await;
            rest::come_to_rest(&mut network).await.unwrap();
            create(&network, 1).await;
            let names: BTreeSet<String> = (0..24).map(|n| format!("f{n}")).collect();
            for name in &names {
                put(&network, name).await;
            }
            for slices in ["double", "double", "halve", "halve"] {
                reslice(&network, slices).await;
                let mut turn = 0;
                while moving(&network) {
                    turn += 1;
                    if let Some(listed) = listed(&network, turn % 2).await {
                        let missing: Vec<_> = names.difference(&listed).collect();
                        assert!(
                            missing.is_empty(),
                            "seed {seed}, {slices}: a whole listing lacks {missing:?}"
                        );
                        during_moves += 1;
                    }
                }
            }
        });
    }
    assert!(during_moves > 100, "only {during_moves} listings were made during moves");
}

#[test]
fn a_slice_with_a_file_that_cannot_be_moved_is_walked_a_few_times_an_hour() {
    simulate(0, async {
        let network = Network::start(1).await;
        create(&network, 1).await;
        // Every number of slices puts some of these names elsewhere.
        for n in 0..8 {
            put(&network, &format!("f{n}")).await;
        }
        let partitions = network.all_partitions();
        let (_, empty) = partitions.iter().find(|(_, path)| !path.join("c").exists()).unwrap();
        for n in 0..8 {
            std::fs::create_dir_all(empty.join("c").join(format!("f{n}"))).unwrap();
        }
        reslice(&network, "double").await;
        tokio::time::sleep(Duration::from_secs(3600)).await;
        let node = network.servers[0].as_ref().unwrap().node();
        let seen = node.progress(node.view().get("c").unwrap().record.uuid, 0).seen();
        assert!(moving(&network) && seen.trouble.is_some(), "{seen:?}");
        // Pauses of 1, 2, 4 to 512 seconds, then of 10 minutes.
        assert!((12..=18).contains(&seen.walks), "{} walks in an hour", seen.walks);
        // People take out of the way what is there: the move ends by itself.
        for n in 0..8 {
            let _ = std::fs::remove_dir(empty.join("c").join(format!("f{n}")));
        }
        tokio::time::sleep(Duration::from_secs(1200)).await;
        assert!(!moving(&network));
        assert_eq!(listed(&network, 0).await.map(|names| names.len()), Some(8));
    });
}
