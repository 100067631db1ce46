//! Syncs that fail. Whichever sync of an act fails, its second try is believed only if it would survive a crash.

use super::network::{Network, PARTITIONS, Reply, request};
use super::{rest, simulate};
use crate::partition::{Partition, SYNC_FAILED};
use crate::simulation::seeded::SyncFaults;

/// More syncs than any act of these tests makes.
const MOST_SYNCS: usize = 30;

async fn start(slices: u32) -> Network {
    let network = Network::start(1).await;
    let new = serde_json::json!({ "namespace": "c/d", "slices": slices, "public": true }).to_string();
    let created = request(network.addresses[0], "POST", "/admin/v1/collections", Some(new.as_bytes())).await;
    assert_eq!(created.unwrap().status, 200);
    network
}

async fn ask(network: &Network, method: &str, path: &str, body: Option<&[u8]>) -> Reply {
    request(network.addresses[0], method, path, body).await.unwrap()
}

fn fail_sync(network: &Network, number: usize) {
    for disk in network.sync_faults(0) {
        disk.plan(number, 1);
    }
}

/// Whether the planned failure came.
fn failed(network: &Network) -> bool {
    let disks = network.sync_faults(0);
    let left = disks.iter().map(SyncFaults::left).min() == Some(0);
    for disk in &disks {
        disk.plan(0, 0);
    }
    left
}

fn distrusted(network: &Network) -> bool {
    (0..PARTITIONS).any(|part| network.partition(0, part).join(SYNC_FAILED).exists())
}

async fn power_cut(network: &mut Network) {
    network.crash(0).await;
    network.start_server(0).await;
    rest::come_to_rest(network).await.unwrap();
}

/// Where the file is stored, if it is.
fn on_disk(network: &Network, name: &str) -> Option<std::path::PathBuf> {
    let paths = network.all_partitions().into_iter().map(|(_, partition)| partition.join("c/d").join(name));
    paths.into_iter().find(|path| path.exists())
}

#[test]
fn an_upload_whose_sync_failed_is_not_believed_later() {
    for sums_in_files in [false, true] {
        for number in 0..MOST_SYNCS {
            let more = simulate(0, async {
                let mut network = start(1).await;
                if sums_in_files {
                    network.sums_in_files = true;
                    power_cut(&mut network).await;
                }
                fail_sync(&network, number);
                let first = ask(&network, "PUT", "/put/c/d/e/f/name", Some(b"bytes")).await;
                if !failed(&network) {
                    assert_eq!(first.status, 201, "{first:?}");
                    return false;
                }
                assert_eq!(first.status, 500, "sync {number}: {first:?}");
                assert_eq!(on_disk(&network, "e/f/name"), None, "sync {number}");
                assert!(!distrusted(&network), "sync {number}");
                let second = ask(&network, "PUT", "/put/c/d/e/f/name", Some(b"bytes")).await;
                assert_eq!(second.status, 201, "sync {number}: {second:?}");
                power_cut(&mut network).await;
                let read = ask(&network, "GET", "/get/c/d/e/f/name", None).await;
                assert_eq!((read.status, read.body.as_slice()), (200, &b"bytes"[..]), "sync {number}");
                let node = network.servers[0].as_ref().unwrap().node();
                node.recount().unwrap();
                assert_eq!(node.inventory().slices[0].files, 1, "sync {number}");
                true
            });
            if !more {
                assert!(number >= if sums_in_files { 8 } else { 4 }, "only {number} syncs were tried");
                break;
            }
        }
    }
}

/// Each act with the answer that it has when no sync fails.
#[test]
fn an_act_whose_sync_failed_stops_all_changes_of_its_disk() {
    let acts: [(&str, &str, Option<&[u8]>, u16); 3] = [
        ("DELETE", "/put/c/d/e/name", None, 204),
        // The bytes are there already.
        ("PUT", "/put/c/d/e/name", Some(b"bytes"), 200),
        // They have rotted.
        ("PUT", "/put/c/d/e/rotten", Some(b"bytes"), 201),
    ];
    for (method, path, body, status) in acts {
        let mut stopped = 0;
        for number in 0..MOST_SYNCS {
            let more = simulate(0, async {
                let mut network = start(1).await;
                for name in ["name", "rotten"] {
                    let path = format!("/put/c/d/e/{name}");
                    assert_eq!(ask(&network, "PUT", &path, Some(b"bytes")).await.status, 201);
                }
                let rotten = on_disk(&network, "e/rotten").unwrap();
                let mut file = std::fs::OpenOptions::new().write(true).open(&rotten).unwrap();
                std::io::Write::write_all(&mut file, b"b").unwrap();
                std::io::Write::write_all(&mut file, b"Y").unwrap();
                fail_sync(&network, number);
                let first = ask(&network, method, path, body).await;
                if !failed(&network) {
                    assert_eq!(first.status, status, "{method} {path}: {first:?}");
                    return false;
                }
                assert_eq!(first.status, 500, "{method} {path}, sync {number}: {first:?}");
                let second = ask(&network, method, path, body).await;
                if distrusted(&network) {
                    stopped += 1;
                    assert_eq!(second.status, 500, "{method} {path}, sync {number}: {second:?}");
                    assert!(second.text().contains("a sync failed earlier"), "{second:?}");
                    let other = ask(&network, "PUT", "/put/c/d/e/other", Some(b"bytes")).await;
                    assert_eq!(other.status, 500, "{other:?}");
                    // Reading goes on.
                    assert_eq!(ask(&network, "GET", "/get/c/d/?format=json", None).await.status, 200);
                    network.crash(0).await;
                    let refused = (0..PARTITIONS)
                        .filter_map(|part| Partition::open(&network.partition(0, part)).err())
                        .map(|error| error.to_string())
                        .collect::<Vec<_>>();
                    assert!(refused.len() == 1 && refused[0].contains("check the disk"), "{refused:?}");
                    network.start_server(0).await;
                    rest::come_to_rest(&mut network).await.unwrap();
                    let again = ask(&network, method, path, body).await;
                    assert!([200, 201, 204, 404].contains(&again.status), "{again:?}");
                } else {
                    assert_eq!(second.status, status, "{method} {path}, sync {number}: {second:?}");
                }
                true
            });
            if !more {
                break;
            }
        }
        assert!(stopped > 0, "{method} {path} never stopped the changes");
    }
}

#[test]
fn a_move_whose_sync_failed_does_not_end_before_its_disk_is_trusted_again() {
    let mut stopped = 0;
    for number in 0..MOST_SYNCS {
        simulate(0, async {
            let mut network = start(1).await;
            for n in 0..4 {
                let path = format!("/put/c/d/f{n}");
                assert_eq!(ask(&network, "PUT", &path, Some(b"bytes")).await.status, 201);
            }
            let wanted = serde_json::json!({ "slices": "double" }).to_string();
            let old = (0..PARTITIONS).find(|part| network.partition(0, *part).join("c/d").exists()).unwrap();
            network.sync_faults(0)[old].plan(number, 1);
            ask(&network, "POST", "/admin/v1/reslice/c/d", Some(wanted.as_bytes())).await;
            tokio::time::sleep(std::time::Duration::from_secs(60)).await;
            failed(&network);
            if distrusted(&network) {
                stopped += 1;
                let node = network.servers[0].as_ref().unwrap().node();
                let layout = node.view().get("c/d").unwrap().record.layout;
                assert!(matches!(layout, crate::Layout::Moving { .. }), "sync {number}: {layout:?}");
            }
            network.trust_disks_again().await;
            rest::come_to_rest(&mut network).await.unwrap();
            for n in 0..4 {
                let read = ask(&network, "GET", &format!("/get/c/d/f{n}"), None).await;
                assert_eq!((read.status, read.body.as_slice()), (200, &b"bytes"[..]), "sync {number}");
            }
        });
    }
    assert!(stopped > 0, "no move was stopped");
}

#[test]
fn a_removal_of_a_collection_whose_sync_failed_is_finished_or_has_not_begun() {
    for with_files in [false, true] {
        for number in 0..MOST_SYNCS {
            let more = simulate(0, async {
                let mut network = start(2).await;
                if with_files {
                    assert_eq!(ask(&network, "PUT", "/put/c/d/e/name", Some(b"bytes")).await.status, 201);
                }
                fail_sync(&network, number);
                let path = format!("/admin/v1/collections/c/d?with_files={with_files}");
                let first = ask(&network, "DELETE", &path, None).await;
                if !failed(&network) {
                    assert_eq!(first.status, 200, "{first:?}");
                    return false;
                }
                if distrusted(&network) {
                    network.trust_disks_again().await;
                }
                rest::come_to_rest(&mut network).await.unwrap();
                let read = ask(&network, "GET", "/get/c/d/e/name", None).await;
                let removed = read.text().contains("no such collection");
                let kept = if with_files { 200 } else { 404 };
                assert!(removed || read.status == kept, "sync {number}: {read:?}");
                assert_eq!(on_disk(&network, "e/name").is_some(), with_files && !removed, "sync {number}");
                let stored = ask(&network, "PUT", "/put/c/d/other", Some(b"bytes")).await;
                assert_eq!(stored.status, if removed { 404 } else { 201 }, "sync {number}: {stored:?}");
                true
            });
            if !more {
                assert!(number > 2, "only {number} syncs were tried");
                break;
            }
        }
    }
}

#[test]
fn a_collection_whose_making_failed_does_not_come_to_life_beside_the_next_of_its_name() {
    for number in 0..MOST_SYNCS {
        let more = simulate(0, async {
            let mut network = Network::start(1).await;
            let new = serde_json::json!({ "namespace": "c/d", "slices": 2, "public": true }).to_string();
            fail_sync(&network, number);
            let first = ask(&network, "POST", "/admin/v1/collections", Some(new.as_bytes())).await;
            if !failed(&network) {
                assert_eq!(first.status, 200, "{first:?}");
                return false;
            }
            if first.status != 200 {
                let second = ask(&network, "POST", "/admin/v1/collections", Some(new.as_bytes())).await;
                assert_eq!(second.status, 200, "sync {number}: {second:?}");
            }
            power_cut(&mut network).await;
            let stored = ask(&network, "PUT", "/put/c/d/name", Some(b"bytes")).await;
            assert_eq!(stored.status, 201, "sync {number}: {stored:?}");
            true
        });
        if !more {
            assert!(number > 2, "only {number} syncs were tried");
            return;
        }
    }
}
