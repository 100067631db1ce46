//! `kill -9` of archivers and bitarchives at random points during stores: what was acknowledged is proven on every
//! replica, nothing is doubled, nothing is left over.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use grange_testkit::{ReservedPorts, TestDatabase, until, wait_for};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::archive_bed::{
    CHECKSUMS, audit, bytes_at, content, http, lying_in, machine, single, source, store_over_http,
};
use crate::harness::{Grange, RunningNode};

/// Stores at least, and more until the last kill has come.
const STORES: usize = 500;
/// Clients that store at the same time.
const CLIENTS: usize = 4;

/// How far the stores and the kills have come.
#[derive(Debug, Default)]
struct Course {
    begun: AtomicUsize,
    acknowledged: AtomicUsize,
    kills_left: AtomicUsize,
}

/// From a few bytes to some hundred kilobytes; some are empty.
fn size_of(number: usize) -> usize {
    if number.is_multiple_of(50) { 0 } else { 1 + number * 7919 % 200_000 }
}

fn name_of(number: usize) -> String {
    format!("kill-{number:05}.warc.gz")
}

/// Keeps a node running, and kills it `kills` times: each time some stores were acknowledged since it came up, at a
/// random moment of the next.
fn kill_often(grange: &Grange, course: &Course, kills: usize, mut random: StdRng) -> RunningNode {
    let mut node = grange.up();
    for _ in 0..kills {
        let wanted = course.acknowledged.load(SeqCst) + random.random_range(1..=2);
        wait_for("more acknowledged stores", || (course.acknowledged.load(SeqCst) >= wanted).then_some(()));
        // Not a wait for something: it spreads the kill over the steps of a store.
        let until = Instant::now() + Duration::from_micros(random.random_range(0..25_000));
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        node.kill();
        course.kills_left.fetch_sub(1, SeqCst);
        node = grange.up();
    }
    node
}

/// Runs stores against the archiver while each of the machines is killed so often; gives the nodes, running.
fn stores_under_fire(machines: &[(&Grange, usize)], archiver: &Grange) -> (usize, Vec<RunningNode>) {
    let seed = rand::random::<u64>();
    println!("seed {seed}");
    let course = Course::default();
    course.kills_left.store(machines.iter().map(|(_, kills)| kills).sum(), SeqCst);
    let http = http();
    let client = async || {
        loop {
            let number = course.begun.fetch_add(1, SeqCst);
            if number >= STORES && course.kills_left.load(SeqCst) == 0 {
                return;
            }
            let name = name_of(number);
            let path = source(archiver, &name, size_of(number));
            until("the store is acknowledged", async || {
                match store_over_http(&http, archiver.data(), &path, &name).await {
                    Some(Ok(outcome)) => outcome["stored"] == true,
                    Some(Err(text)) => panic!("{name}: {text}"),
                    None => false,
                }
            })
            .await;
            course.acknowledged.fetch_add(1, SeqCst);
        }
    };
    let nodes = std::thread::scope(|scope| {
        let killers: Vec<_> = machines
            .iter()
            .enumerate()
            .map(|(index, (grange, kills))| {
                let (course, random) = (&course, StdRng::seed_from_u64(seed + index as u64));
                scope.spawn(move || kill_often(grange, course, *kills, random))
            })
            .collect();
        tokio::task::block_in_place(|| {
            let clients = futures_util::future::join_all((0..CLIENTS).map(|_| client()));
            tokio::runtime::Handle::current().block_on(clients);
        });
        killers.into_iter().map(|killer| killer.join().unwrap()).collect()
    });
    let stored = course.acknowledged.load(SeqCst);
    assert!(stored >= STORES, "{stored}");
    (stored, nodes)
}

/// Everything acknowledged is there, proven on all three replicas, byte for byte, and once.
async fn nothing_lost_nothing_doubled(archiver: &Grange, stored: usize, bases: &[PathBuf]) {
    let files = archiver.run(&["files", "ls", "--json"]).ok().json();
    let files = files.as_array().unwrap();
    assert_eq!(files.len(), stored);
    let names: BTreeSet<_> = files.iter().map(|file| file["name"].as_str().unwrap().to_owned()).collect();
    assert_eq!(names.len(), stored);
    for file in files {
        let states: Vec<_> = file["holdings"].as_array().unwrap().iter().map(|one| &one["state"]).collect();
        assert_eq!(states, ["upload_completed"; 3], "{file}");
    }
    // One record for each file; nothing else happened so far that is written down.
    let log = archiver.run(&["audit", "verify-log", "--json"]).ok().json();
    assert_eq!(log["leaves"].as_u64(), Some(stored as u64), "{log}");
    for base in bases {
        let lying = lying_in(&base.join("filedir"));
        assert_eq!(lying.len(), stored, "{}", base.display());
        for name in lying {
            let number: usize = name["kill-".len()..][..5].parse().unwrap();
            let copy = std::fs::read(base.join("filedir").join(&name)).unwrap();
            assert!(copy == content(&name, size_of(number)), "{name} in {}", base.display());
        }
        let left = |folder: &str| std::fs::read_dir(base.join(folder)).unwrap().count();
        assert_eq!(left("atticdir"), 0);
        until("what the dead left half-written is gone", async || left("tempdir") == 0).await;
    }
    let journal = archiver.data().join("replicas/three/checksums.journal");
    assert_eq!(std::fs::read_to_string(journal).unwrap().lines().count(), stored, "one line for each file");
    assert_eq!(audit(archiver), [3 * stored as u64, 0, 0, 0, 0]);
}

/// An archiver with the checksum replica and two bitarchives: three processes and a PostgreSQL, 200 kills.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_hundred_kills_of_archiver_and_bitarchives_on_postgresql_lose_and_double_nothing() {
    let Some(database) = TestDatabase::create().await else { return };
    let ports = ReservedPorts::new(3);
    let peer = |at: usize, replica: &str| format!("peer://{}/{replica}", ports[at]);
    let build = |own: usize, roles: &str| {
        let place = |at: usize, name: &str| {
            if at == own { format!("file:replicas/{name}") } else { peer(at, name) }
        };
        let (one, two) = (place(1, "one"), place(2, "two"));
        let settings = [bytes_at("one", &[&one]), bytes_at("two", &[&two]), CHECKSUMS.to_owned()];
        let (db, listen) = (format!("db.url={}", database.url), format!("node.listen={}", ports[own]));
        let roles = format!("node.roles={roles}");
        machine(&[&db, "bus.url=postgres:", &listen, &roles], &settings.concat())
    };
    let archiver = build(0, "[\"archiver\"]");
    let (one, two) = (build(1, "[\"bitarchive\"]"), build(2, "[\"bitarchive\"]"));
    archiver.run(&["db", "migrate"]).ok();
    let (stored, nodes) = stores_under_fire(&[(&archiver, 68), (&one, 66), (&two, 66)], &archiver);
    let bases = [one.data().join("replicas/one"), two.data().join("replicas/two")];
    nothing_lost_nothing_doubled(&archiver, stored, &bases).await;
    for node in nodes {
        assert_eq!(node.stop(), 0);
    }
}

/// Everything in one process on SQLite.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_hundred_kills_of_one_process_on_sqlite_lose_and_double_nothing() {
    let grange = single();
    let (stored, nodes) = stores_under_fire(&[(&grange, 100)], &grange);
    let bases = ["one", "two"].map(|name| grange.data().join(format!("replicas/{name}")));
    nothing_lost_nothing_doubled(&grange, stored, &bases).await;
    for node in nodes {
        assert_eq!(node.stop(), 0);
    }
}
