//! A namespace has one living record, an epoch names one record, and what a removal was not asked to take stays.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use grange_base::{Clock, Size};
use grange_testkit::wait::until;
use jiff::Timestamp;
use uuid::Uuid;

use super::bed::Bed;
use crate::admin::{NewCollection, Reslice, Slices};
use crate::collection::{Collection, Layout};
use crate::error::Error;
use crate::name::LocalPath;
use crate::peer::call::{Answer, Call, Change};
use crate::peer::serve;

fn new(namespace: &str, slices: u32) -> NewCollection {
    NewCollection { namespace: namespace.to_owned(), slices, public: true, mixed_disks: false }
}

/// The living records of all servers by namespace, each once.
fn living(bed: &Bed) -> BTreeMap<String, Vec<Uuid>> {
    let mut found: BTreeMap<String, Vec<Uuid>> = BTreeMap::new();
    for server in bed.servers.iter().flatten() {
        for record in server.node().inventory().collections {
            if record.layout != Layout::Gone {
                found.entry(record.namespace.to_string()).or_default().push(record.uuid);
            }
        }
    }
    for uuids in found.values_mut() {
        uuids.sort_unstable();
        uuids.dedup();
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_asked_for_on_three_servers_at_once_is_given_once() {
    let bed = Bed::new(3, 1).await;
    for round in 0..12 {
        let new = new(&format!("ns{round}"), 1);
        let asked = (0..3).map(|server| {
            let (admin, new) = (bed.admin(server), new.clone());
            async move { admin.create(&new).await }
        });
        let answers = join_all(asked).await;
        let made = answers.iter().filter(|answer| answer.is_ok()).count();
        assert_eq!(made, 1, "{answers:?}");
        for refused in answers.into_iter().filter_map(Result::err) {
            assert_eq!(refused.status(), 409, "{refused}");
        }
    }
    let living = living(&bed);
    assert_eq!(living.len(), 12);
    assert!(living.values().all(|uuids| uuids.len() == 1), "{living:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tree_in_the_attic_takes_no_write() {
    let mut bed = Bed::new(1, 2).await;
    bed.create("ns", 2, true).await;
    let node = std::sync::Arc::clone(bed.servers[0].as_ref().unwrap().node());
    let record = node.view().get("ns").unwrap().record.clone();
    // As two networks would bring them that meet.
    let twin = Collection { uuid: Uuid::from_u128(u128::MAX), ..record };
    let refused = tokio::task::spawn_blocking(move || node.adopt(&twin)).await.unwrap();
    assert_eq!(refused.unwrap_err().status(), 409);
    let _ = bed.admin(0).remove_collection("ns", true).await;
    assert_eq!(bed.put(0, "ns", "f", b"f").await, 404);
    bed.stop(0).await;
    bed.start(0).await;
    assert_eq!(bed.get(0, "ns", "f").await, Err(404));
    assert_eq!(bed.copied(".swap-attic").len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_free_for_a_server_once_it_has_heard_of_the_removal() {
    let bed = Bed::new(1, 2).await;
    bed.create("ns", 1, true).await;
    let node = std::sync::Arc::clone(bed.servers[0].as_ref().unwrap().node());
    let old = node.view().get("ns").unwrap().record.clone();
    let next = Collection { uuid: Uuid::from_u128(1), ..old.clone() };
    let gone = Collection { epoch: old.epoch + 1, layout: Layout::Gone, slices: Vec::new(), ..old };
    // Together with the removal the new record is taken over, in whatever order they came.
    serve::adopt_all(std::sync::Arc::clone(&node), vec![next.clone(), gone]).await;
    assert_eq!(node.view().get("ns").unwrap().record, next);
    assert_eq!(bed.put(0, "ns", "f", b"f").await, 201);
    assert_eq!(bed.get(0, "ns", "f").await.unwrap(), b"f");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removal_holds_for_a_server_that_was_away_even_after_a_restart() {
    let mut bed = Bed::new(2, 1).await;
    bed.create("ns", 2, true).await;
    let files = ["a", "b", "c", "d", "e", "f"];
    for name in files {
        assert_eq!(bed.put(0, "ns", name, b"x").await, 201);
    }
    bed.stop(1).await;
    bed.sees(0, 0).await;
    // As the removal leaves it with the one server that heard of it.
    let node = std::sync::Arc::clone(bed.servers[0].as_ref().unwrap().node());
    let record = node.view().get("ns").unwrap().record.clone();
    let gone = Collection { epoch: record.epoch + 1, layout: Layout::Gone, slices: Vec::new(), ..record };
    tokio::task::spawn_blocking(move || node.adopt(&gone)).await.unwrap().unwrap();
    bed.stop(0).await;
    bed.start(0).await;
    bed.start(1).await;
    bed.sees(0, 1).await;
    bed.sees(1, 1).await;
    until("the removal is known everywhere", async || living(&bed).is_empty()).await;
    assert_eq!(bed.copied(".swap-attic").len(), files.len());
}

/// Moves wait for a clock that stands still.
async fn stopped(servers: usize, partitions: usize) -> Bed {
    let (clock, _hand) = Clock::test(Timestamp::UNIX_EPOCH);
    Bed::on_clock(servers, partitions, |settings| settings.move_rate = Size(1), clock).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_move_and_a_removal_have_different_epochs() {
    let bed = stopped(2, 1).await;
    bed.create("ns", 1, true).await;
    for n in 0..8 {
        assert_eq!(bed.put(0, "ns", &format!("f{n}"), &[1; 400]).await, 201);
    }
    let double = Reslice { slices: Slices::Double, dry_run: false, mixed_disks: false };
    bed.admin(0).reslice("ns", double).await.unwrap();
    let first = bed
        .servers
        .iter()
        .flatten()
        .find(|server| server.node().view().get("ns").is_some_and(|known| known.tree(0).is_some()));
    let node = first.unwrap().node();
    let moving = node.view().get("ns").unwrap().record.clone();
    assert!(matches!(moving.layout, Layout::Moving { .. }));
    // The mover has seen that all is moved, and a removal is decided before it says so.
    let gone =
        Collection { epoch: moving.epoch + 1, layout: Layout::Gone, slices: Vec::new(), ..moving.clone() };
    let (own, taken) = (std::sync::Arc::clone(node), gone.clone());
    tokio::task::spawn_blocking(move || own.adopt(&taken)).await.unwrap().unwrap();
    let end = Change::EndMove { collection: moving.uuid, epoch: moving.epoch };
    let refused = crate::change::decide(node, end).await.unwrap_err();
    assert!(matches!(refused, Error::Refused { .. } | Error::NoCollection { .. }), "{refused}");
    until("both servers have the one record of that epoch", async || {
        bed.servers.iter().flatten().all(|server| server.node().inventory().collections == [gone.clone()])
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_laid_in_by_hand_keep_their_collection() {
    let mut bed = Bed::new(2, 1).await;
    bed.create("ns", 2, true).await;
    for partition in bed.all_partitions() {
        std::fs::create_dir_all(partition.join("ns/deep/deeper")).unwrap();
    }
    std::fs::write(bed.partition(1, 0).join("ns/deep/deeper/by-hand"), "x").unwrap();
    for server in 0..2 {
        let refused = bed.admin(server).remove_collection("ns", false).await.unwrap_err();
        assert_eq!(refused.status(), 409, "{refused}");
        assert!(refused.to_string().contains("deep/deeper/by-hand"), "{refused}");
    }
    // It takes files again.
    assert_eq!(bed.put(0, "ns", "f", b"f").await, 201);
    for server in 0..2 {
        bed.stop(server).await;
        bed.start(server).await;
    }
    bed.sees(0, 1).await;
    bed.sees(1, 1).await;
    assert_eq!(bed.get(1, "ns", "f").await.unwrap(), b"f");
    assert_eq!(bed.delete(1, "ns", "f").await, 204);
    std::fs::remove_file(bed.partition(1, 0).join("ns/deep/deeper/by-hand")).unwrap();
    bed.admin(0).remove_collection("ns", false).await.unwrap();
    assert_eq!(living(&bed).len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_acknowledged_while_a_collection_is_removed_keeps_it() {
    let bed = Bed::new(2, 1).await;
    let mut kept = 0;
    for round in 0..24 {
        let namespace = format!("ns{round}");
        bed.create(&namespace, 2, true).await;
        let uploads = join_all((0..8).map(|n| {
            let (bed, namespace) = (&bed, &namespace);
            async move { (n, bed.put(n % 2, namespace, &format!("f{n}"), b"x").await) }
        }));
        let admin = bed.admin(round % 2);
        let (uploads, removed) = tokio::join!(uploads, admin.remove_collection(&namespace, false));
        let acknowledged: Vec<_> = uploads.iter().filter(|(_, status)| *status == 201).collect();
        assert!(removed.is_err() || acknowledged.is_empty(), "{removed:?} and {uploads:?}");
        if removed.is_err() {
            kept += 1;
            for (n, _) in acknowledged {
                assert_eq!(bed.get(n % 2, &namespace, &format!("f{n}")).await.unwrap(), b"x");
            }
        }
    }
    assert!(kept > 0, "no upload was in time: the test shows nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_single_server_says_that_a_collection_is_removed() {
    let mut bed = Bed::new(1, 2).await;
    bed.create("ns", 2, true).await;
    bed.admin(0).remove_collection("ns", false).await.unwrap();
    bed.create("ns", 2, true).await;
    assert_eq!(bed.put(0, "ns", "f", b"f").await, 201);
    assert_eq!(bed.admin(0).remove_collection("ns", false).await.unwrap_err().status(), 409);
    bed.admin(0).remove_collection("ns", true).await.unwrap();
    assert_eq!(bed.admin(0).remove_collection("ns", true).await.unwrap_err().status(), 404);
    bed.stop(0).await;
    bed.start(0).await;
    assert_eq!(bed.get(0, "ns", "f").await, Err(404));
    assert_eq!(bed.copied(".swap-attic").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_has_not_heard_of_a_collection_says_so_instead_of_refusing() {
    let bed = Bed::new(1, 1).await;
    let node = bed.servers[0].as_ref().unwrap().node();
    let (collection, epoch, path) = (Uuid::from_u128(7), 1, LocalPath::new("d").unwrap());
    for call in [
        Call::EnsureDirectory { collection, epoch, path: path.clone() },
        Call::Find { collection, epoch, slice: 0, path: path.clone() },
        Call::List { collection, epoch, path: None, after: None, limit: 1 },
        Call::FirstFile { collection, epoch },
    ] {
        let shown = format!("{call:?}");
        let answer = serve::answer(node, call).await;
        assert!(matches!(answer, Ok(Answer::OtherEpoch(0))), "{shown}: {answer:?}");
    }
}
