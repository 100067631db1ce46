//! Faults of the archive through real processes, each counted.
//!
//! | fault | proven by |
//! |---|---|
//! | kill -9 of archiver and bitarchives, 200 times during 500 stores | `archive_kill` here; `tests::crash` of grange-archive; `disk::tests::crash` of grange-blob |
//! | a node dies and comes back; a replica is down during stores | `a_node_that_dies_…`; `archive::replicas_on_two_nodes_…`; `tests::store` of grange-archive |
//! | one folder full, all folders full | `a_full_folder_…`, `when_every_folder_…`; a real ENOSPC in the middle of a file: `disk::tests::full` of grange-blob |
//! | a bucket as a replica | `a_bucket_is_a_replica_…`; the conformance suite of grange-blob |
//! | several nodes for one replica | `a_replica_on_two_nodes_…` |
//! | flipped bit, truncated, grown, deleted, swapped pair | `every_kind_of_damage_…`; `tests::damage` of grange-archive |
//! | a file edited together with its journal line | `every_kind_of_damage_…`; `tests::damage` (also with the whole chain made anew) |
//! | a sender that lies about its checksum | `a_sender_that_lies_…`; `tests::store` |
//! | the connection is cut in the middle of a file | `a_transfer_that_is_cut_…` here and in `archive_pull`; `conformance::peer_wire` and `peer_pull` of grange-blob |
//! | what the archive itself wrote down went wrong | `tests::record` of grange-archive |
//! | two clients store one name at once | `of_two_machines_…`; `tests::store` |
//! | hostile names | `hostile_names_…`; `tests::names`, `conformance::peer_wire` |

use std::path::Path;

use grange_testkit::{ReservedPort, ReservedPorts, TcpFault, TestBucket, TestDatabase, until};
use serde_json::Value;

use crate::archive_bed::{
    CHECKSUMS, audit, bytes_at, content, http, lying_in, machine, single, source, store_over_http,
    write_settings,
};
use crate::harness::{Ended, Grange, RunningNode};

fn store(grange: &Grange, file: &Path) -> Ended {
    grange.run(&["store", "--json", file.to_str().unwrap()])
}

/// Copies sent to a replica since the node started.
async fn sent(node: &RunningNode, replica: &str) -> u64 {
    let text =
        http().get(format!("{}/metrics", node.url("node"))).send().await.unwrap().text().await.unwrap();
    let name = format!("grange_archive_copies_sent_total{{replica=\"{replica}\"}} ");
    text.lines().find_map(|line| line.strip_prefix(&name)).map_or(0, |count| count.parse().unwrap())
}

fn states(grange: &Grange, name: &str) -> Vec<String> {
    let file = grange.run(&["files", "show", name]).ok().json();
    let holdings = file["holdings"].as_array().unwrap().iter();
    holdings.map(|one| one["state"].as_str().unwrap().to_owned()).collect()
}

fn proven(grange: &Grange, name: &str) -> bool {
    states(grange, name).iter().all(|state| state == "upload_completed")
}

/// Two machines on one PostgreSQL: the first with replica one, the second with replica two. `between` is where the
/// first finds the second.
fn two_machines(
    database: &TestDatabase,
    roles: [&str; 2],
    between: Option<String>,
) -> ([Grange; 2], ReservedPorts) {
    let ports = ReservedPorts::new(2);
    let build = |own: usize, one: String, two: String| {
        let settings = [bytes_at("one", &[&one]), bytes_at("two", &[&two])].concat();
        let (db, listen) = (format!("db.url={}", database.url), format!("node.listen={}", ports[own]));
        let roles = format!("node.roles={}", roles[own]);
        machine(&[&db, "bus.url=postgres:", &listen, &roles], &settings)
    };
    let second = between.unwrap_or_else(|| ports[1].to_string());
    let first = build(0, "file:replicas/one".to_owned(), format!("peer://{second}/two"));
    let other = build(1, format!("peer://{}/one", ports[0]), "file:replicas/two".to_owned());
    first.run(&["db", "migrate"]).ok();
    ([first, other], ports)
}

const EVERYTHING: &str = "[]";
const FILES: usize = 5;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_dies_and_comes_back_is_filled_and_nothing_proven_is_sent_again() {
    let Some(database) = TestDatabase::create().await else { return };
    let ([archiver, bitarchive], _ports) = two_machines(&database, [EVERYTHING, "[\"bitarchive\"]"], None);
    let (first, second) = (archiver.up(), bitarchive.up());
    store(&archiver, &source(&archiver, "before.warc", 1000)).ok();
    assert_eq!((sent(&first, "one").await, sent(&first, "two").await), (1, 1));
    second.kill();
    for n in 0..FILES {
        let name = format!("during-{n}.warc");
        let path = source(&archiver, &name, 50_000 + n);
        let outcome = store(&archiver, &path);
        assert_eq!(outcome.code, 5, "{outcome:?}");
        let unproven = outcome.json()[0]["unproven"].clone();
        assert_eq!((unproven.as_array().unwrap().len(), &unproven[0]["replica"]), (1, &"two".into()));
        assert_eq!(unproven[0]["state"], "upload_failed");
        // What was proven is read from; what was sent may go.
        std::fs::remove_file(path).unwrap();
    }
    // The other's copy cannot be had now, and nobody waits for it.
    archiver.run(&["get", "during-0.warc", archiver.path("back").to_str().unwrap()]).ok();
    let second = bitarchive.up();
    for n in 0..FILES {
        let name = format!("during-{n}.warc");
        until("the file is proven on the node that came back", async || proven(&archiver, &name)).await;
        let copy = std::fs::read(bitarchive.data().join("replicas/two/filedir").join(&name)).unwrap();
        assert!(copy == content(&name, 50_000 + n), "{name}");
    }
    assert_eq!((sent(&first, "one").await, sent(&first, "two").await), (1 + FILES as u64, 1 + FILES as u64));
    assert_eq!(audit(&archiver), [2 * (1 + FILES as u64), 0, 0, 0, 0]);
    assert_eq!((first.stop(), second.stop()), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transfer_that_is_cut_in_the_middle_of_a_file_leaves_nothing_and_is_made_again() {
    const BYTES: usize = 96 << 20;
    let Some(database) = TestDatabase::create().await else { return };
    let reserved = ReservedPort::new();
    let port = reserved.address().to_string();
    let wire = TcpFault::before(&port).await;
    let ([archiver, _], _ports) =
        two_machines(&database, [EVERYTHING, EVERYTHING], Some(wire.address().to_string()));
    let bitarchive = {
        let settings =
            [bytes_at("one", &["peer://127.0.0.1:1/one"]), bytes_at("two", &["file:replicas/two"])];
        let (db, listen) = (format!("db.url={}", database.url), format!("node.listen={port}"));
        machine(&[&db, "bus.url=postgres:", &listen, "node.roles=[\"bitarchive\"]"], &settings.concat())
    };
    let (first, second) = (archiver.up(), bitarchive.up());
    let (name, path) = ("large.warc", source(&archiver, "large.warc", BYTES));
    let base = bitarchive.data().join("replicas/two");
    let half_way = || {
        let entries = std::fs::read_dir(base.join("tempdir")).unwrap();
        let sizes: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.metadata().ok()?.len())).collect();
        sizes.iter().any(|size| (1 << 20..BYTES as u64 / 2).contains(size))
    };
    let outcome = std::thread::scope(|scope| {
        let storing = scope.spawn(|| store(&archiver, &path));
        while !half_way() {
            assert!(!storing.is_finished(), "the transfer ended before it was cut");
            std::thread::yield_now();
        }
        wire.cut();
        storing.join().unwrap()
    });
    assert_eq!(outcome.code, 5, "{outcome:?}");
    until("the torn part is gone", async || lying_in(&base.join("tempdir")).is_empty()).await;
    assert_eq!(lying_in(&base.join("filedir")).len(), 0);
    wire.mend();
    until("the file is proven after all", async || proven(&archiver, name)).await;
    assert!(std::fs::read(base.join("filedir").join(name)).unwrap() == content(name, BYTES));
    assert_eq!(audit(&archiver), [2, 0, 0, 0, 0]);
    assert_eq!((first.stop(), second.stop()), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_machines_that_store_one_name_at_once_one_content_wins_whole() {
    const ROUNDS: usize = 20;
    let Some(database) = TestDatabase::create().await else { return };
    let (machines, _ports) = two_machines(&database, [EVERYTHING, EVERYTHING], None);
    let nodes = [machines[0].up(), machines[1].up()];
    let http = http();
    let (mut stored, mut refused) = (0, 0);
    for round in 0..ROUNDS {
        let name = format!("race-{round}.warc");
        let paths = [0, 1].map(|at| source(&machines[at], &format!("{name}-{at}"), 30_000));
        let [a, b] = [0, 1].map(|at| store_over_http(&http, machines[at].data(), &paths[at], &name));
        let (a, b) = tokio::join!(a, b);
        let mut winner = None;
        for (at, answer) in [a, b].into_iter().enumerate() {
            match answer.expect("both machines are up") {
                Ok(outcome) => {
                    assert_eq!(outcome["stored"], true, "{outcome}");
                    (stored, winner) = (stored + 1, Some(at));
                }
                Err(text) => {
                    assert!(text.contains("archive-other-bytes"), "{text}");
                    refused += 1;
                }
            }
        }
        let bytes = content(&format!("{name}-{}", winner.unwrap()), 30_000);
        for (at, replica) in ["one", "two"].iter().enumerate() {
            let copy = machines[at].data().join(format!("replicas/{replica}/filedir/{name}"));
            assert!(std::fs::read(copy).unwrap() == bytes, "{name} on {replica}");
        }
    }
    assert_eq!((stored, refused), (ROUNDS, ROUNDS));
    assert_eq!(audit(&machines[0]), [2 * ROUNDS as u64, 0, 0, 0, 0]);
    for node in nodes {
        assert_eq!(node.stop(), 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_on_two_nodes_fills_the_second_when_the_first_is_full_and_reads_from_both() {
    let Some(database) = TestDatabase::create().await else { return };
    let ports = ReservedPorts::new(2);
    let full = "{ url = \"file:replicas/one\", min_space_left = \"1000TB\" }";
    let (db, bus) = (format!("db.url={}", database.url), "bus.url=postgres:");
    let settings = |here: &str| {
        let there = format!("peer://{}/one", ports[1]);
        [bytes_at("one", &[here, &there]), bytes_at("two", &["file:replicas/two"])].concat()
    };
    let listen = [0, 1].map(|at| format!("node.listen={}", ports[at]));
    let first = machine(&[&db, bus, &listen[0]], &settings("file:replicas/one"));
    let other =
        [bytes_at("one", &["file:replicas/one"]), bytes_at("two", &["peer://127.0.0.1:1/two"])].concat();
    let second = machine(&[&db, bus, &listen[1], "node.roles=[\"bitarchive\"]"], &other);
    first.run(&["db", "migrate"]).ok();
    let far = second.up();
    // Stops taking files on its own disks; the other node goes on.
    write_settings(&first, &settings(full));
    let near = first.up();
    for n in 0..FILES {
        store(&first, &source(&first, &format!("far-{n}.warc"), 20_000)).ok();
    }
    assert_eq!(near.stop(), 0);
    let on = |grange: &Grange| lying_in(&grange.data().join("replicas/one/filedir")).len();
    assert_eq!((on(&first), on(&second)), (0, FILES));
    // The other has no room now.
    assert_eq!(far.stop(), 0);
    let other = [bytes_at("one", &[full]), bytes_at("two", &["peer://127.0.0.1:1/two"])].concat();
    write_settings(&second, &other);
    write_settings(&first, &settings("file:replicas/one"));
    let (near, far) = (first.up(), second.up());
    for n in 0..FILES {
        store(&first, &source(&first, &format!("near-{n}.warc"), 20_000)).ok();
    }
    assert_eq!((on(&first), on(&second)), (FILES, FILES));
    assert_eq!(audit(&first), [4 * FILES as u64, 0, 0, 0, 0]);
    // With the other replica's copies gone, every file still comes from this one.
    for name in lying_in(&first.data().join("replicas/two/filedir")) {
        std::fs::remove_file(first.data().join("replicas/two/filedir").join(&name)).unwrap();
        let back = first.path(&format!("{name}.back"));
        first.run(&["get", &name, back.to_str().unwrap()]).ok();
        assert!(std::fs::read(back).unwrap() == content(&name, 20_000), "{name}");
    }
    assert_eq!((near.stop(), far.stop()), (0, 0));
}

/// Two folders on file systems with different free space, the emptier last; `None` where there is only one.
fn unequal_disks(grange: &Grange) -> Option<([tempfile::TempDir; 2], u64)> {
    let free = |path: &Path| {
        let stat = rustix::fs::statvfs(path).unwrap();
        stat.f_bavail * stat.f_frsize
    };
    let memory = tempfile::tempdir_in("/dev/shm").ok()?;
    let disk = tempfile::tempdir_in(grange.path("")).unwrap();
    let mut both = [memory, disk];
    both.sort_by_key(|folder| free(folder.path()));
    let [less, more] = [free(both[0].path()), free(both[1].path())];
    // Other tests write files of up to 96 MiB to these disks meanwhile: the middle between them must stay between them.
    (more > less + (512 << 20)).then_some((both, less + (more - less) / 2))
}

#[test]
fn a_full_folder_of_a_node_hands_over_to_the_next() {
    let grange = single();
    let Some((folders, between)) = unequal_disks(&grange) else {
        return grange_testkit::skipped("a second file system with other free space than the first");
    };
    let [full, roomy] = [0, 1].map(|at| folders[at].path().to_str().unwrap().to_owned());
    let place = format!("{{ url = \"file:{full},{roomy}\", min_space_left = \"{between}B\" }}");
    let settings =
        [bytes_at("one", &[&place]), bytes_at("two", &["file:replicas/two"]), CHECKSUMS.to_owned()];
    write_settings(&grange, &settings.concat());
    let node = grange.up();
    for n in 0..FILES {
        store(&grange, &source(&grange, &format!("file-{n}.warc"), 10_000)).ok();
    }
    let lying = [&full, &roomy].map(|base| lying_in(&Path::new(base).join("filedir")).len());
    assert_eq!(lying, [0, FILES]);
    assert_eq!(audit(&grange), [3 * FILES as u64, 0, 0, 0, 0]);
    assert_eq!(node.stop(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_every_folder_is_full_a_replica_says_so_and_the_others_go_on() {
    let grange = single();
    let full = "{ url = \"file:replicas/one,replicas/one-b\", min_space_left = \"1000TB\" }";
    let settings =
        |one: &str| [bytes_at("one", &[one]), bytes_at("two", &["file:replicas/two"])].concat() + CHECKSUMS;
    write_settings(&grange, &settings(full));
    let node = grange.up();
    for n in 0..FILES {
        let outcome = store(&grange, &source(&grange, &format!("file-{n}.warc"), 10_000));
        assert_eq!(outcome.code, 5, "{outcome:?}");
        let unproven = outcome.json()[0]["unproven"].clone();
        assert_eq!((unproven.as_array().unwrap().len(), &unproven[0]["replica"]), (1, &"one".into()));
        assert!(unproven[0]["reason"].as_str().unwrap().contains("no room"), "{unproven}");
        let back = grange.path(&format!("back-{n}"));
        grange.run(&["get", &format!("file-{n}.warc"), back.to_str().unwrap()]).ok();
    }
    assert_eq!(lying_in(&grange.data().join("replicas/two/filedir")).len(), FILES);
    assert_eq!(node.stop(), 0);
    // Somebody makes room, and what was pending is stored by itself.
    write_settings(&grange, &settings("file:replicas/one,replicas/one-b"));
    let node = grange.up();
    for n in 0..FILES {
        until("the file is proven", async || proven(&grange, &format!("file-{n}.warc"))).await;
    }
    assert_eq!((sent(&node, "one").await, sent(&node, "two").await), (FILES as u64, 0));
    assert_eq!(audit(&grange), [3 * FILES as u64, 0, 0, 0, 0]);
    assert_eq!(node.stop(), 0);
}

#[test]
fn a_bucket_is_a_replica_like_any_other() {
    let Some(bucket) = TestBucket::lend() else { return };
    let grange = single();
    grange.file("access", &bucket.access_key);
    grange.file("secret", &bucket.secret_key);
    let place = format!(
        "{{ url = \"s3://{}/{}?endpoint={}\", access_key_file = \"../access\", secret_key_file = \"../secret\" }}",
        bucket.bucket, bucket.prefix, bucket.endpoint
    );
    let settings =
        [bytes_at("one", &["file:replicas/one"]), bytes_at("two", &[&place]), CHECKSUMS.to_owned()];
    write_settings(&grange, &settings.concat());
    let node = grange.up();
    let sizes = [("zero.warc", 0), ("one.warc", 1), ("some.warc", 70_000), ("parts.warc", 20_000_000)];
    for (name, bytes) in sizes {
        store(&grange, &source(&grange, name, bytes)).ok();
    }
    assert_eq!(audit(&grange), [12, 0, 0, 0, 0]);
    // One copy is deleted and one damaged on the disk: both come back from the bucket.
    std::fs::remove_file(grange.data().join("replicas/one/filedir/some.warc")).unwrap();
    overwrite(&grange.data().join("replicas/one/filedir/parts.warc"), |bytes| bytes[9_000_000] ^= 1);
    for (name, bytes) in sizes {
        let back = grange.path(&format!("{name}.back"));
        grange.run(&["get", name, back.to_str().unwrap()]).ok();
        assert!(std::fs::read(back).unwrap() == content(name, bytes), "{name}");
    }
    assert_eq!(audit(&grange), [10, 1, 1, 0, 0]);
    let done = grange.run(&["repair", "--all", "--yes", "--json"]).ok().json();
    assert_eq!((done["done"].as_u64(), done["failed"].as_u64()), (Some(2), Some(0)), "{done}");
    assert_eq!(audit(&grange), [12, 0, 0, 0, 0]);
    grange.run(&["audit", "verify-log"]).ok();
    assert_eq!(node.stop(), 0);
}

/// Changes a copy behind the archive's back.
fn overwrite(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = std::fs::read(path).unwrap();
    change(&mut bytes);
    std::fs::remove_file(path).unwrap();
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn every_kind_of_damage_is_found_blamed_and_repaired() {
    let grange = single();
    let node = grange.up();
    let names: Vec<_> = (0..8).map(|n| format!("file-{n}.warc")).collect();
    for name in &names {
        store(&grange, &source(&grange, name, 40_000)).ok();
    }
    let at = |n: usize| grange.data().join("replicas/two/filedir").join(&names[n]);
    overwrite(&at(0), |bytes| bytes[20_000] ^= 4);
    overwrite(&at(1), |bytes| bytes.truncate(39_999));
    overwrite(&at(2), |bytes| bytes.push(0));
    std::fs::remove_file(at(3)).unwrap();
    let (a, b) = (std::fs::read(at(4)).unwrap(), std::fs::read(at(5)).unwrap());
    overwrite(&at(4), |bytes| *bytes = b);
    overwrite(&at(5), |bytes| *bytes = a);
    // A file and its line in the journal, so that two of three agree on the forgery.
    overwrite(&at(6), |bytes| bytes[0] ^= 1);
    let journal = grange.data().join("replicas/three/checksums.journal");
    let lines = std::fs::read_to_string(&journal).unwrap();
    let edited: String = lines.split_inclusive('\n').map(|line| forge(line, &names[6])).collect();
    assert_ne!(edited, lines);
    std::fs::write(&journal, edited).unwrap();

    // 3 × 8 copies: six damaged files and the line are wrong, one file is gone.
    assert_eq!(audit(&grange), [16, 1, 7, 0, 0]);
    for name in &names {
        let back = grange.path(&format!("{name}.back"));
        grange.run(&["get", name, back.to_str().unwrap()]).ok();
        assert!(std::fs::read(back).unwrap() == content(name, 40_000), "{name}");
    }
    let done = grange.run(&["repair", "--all", "--yes", "--json"]).ok().json();
    assert_eq!((done["done"].as_u64(), done["failed"].as_u64()), (Some(8), Some(0)), "{done}");
    assert_eq!(audit(&grange), [24, 0, 0, 0, 0]);
    assert_eq!(std::fs::read_dir(grange.data().join("replicas/two/atticdir")).unwrap().count(), 6);
    grange.run(&["audit", "verify-log"]).ok();
    assert_eq!(node.stop(), 0);
}

/// The journal line of this file with another checksum; other lines as they are.
fn forge(line: &str, name: &str) -> String {
    if !line.contains(name) {
        return line.to_owned();
    }
    let at = line.find("\"sha512\":\"").unwrap() + "\"sha512\":\"".len();
    let digit = if line.as_bytes()[at] == b'0' { "1" } else { "0" };
    format!("{}{digit}{}", &line[..at], &line[at + 1..])
}

/// Sends bytes over the network as another program would.
async fn put(node: &RunningNode, name: &str, checksum: Option<&str>, bytes: &'static [u8]) -> (u16, String) {
    let here = node.local();
    let url = format!("{}/api/v1/files/{name}", here["url"].as_str().unwrap());
    let mut request = http().put(url).bearer_auth(here["token"].as_str().unwrap()).body(bytes);
    if let Some(checksum) = checksum {
        request = request.header("grange-checksum", checksum);
    }
    let answer = request.send().await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sender_that_lies_about_its_checksum_is_refused_and_nothing_is_kept() {
    let grange = single();
    let node = grange.up();
    let truth = "md5=68934a3e9455fa72420237eb05902327"; // Of the five bytes below.
    let lies = [
        truth.replace('6', "7"),
        format!("sha512={}", "ab".repeat(64)),
        format!("sha256={}", "00".repeat(32)),
    ];
    for lie in &lies {
        let (status, text) = put(&node, "a.warc", Some(lie), b"false").await;
        assert_eq!(status, 409, "{text}");
        assert!(text.contains("archive-wrong-checksum"), "{text}");
    }
    assert_eq!(put(&node, "a.warc", Some("sha512=nonsense"), b"false").await.0, 422);
    assert_eq!(grange.run(&["files", "ls", "--json"]).ok().json(), Value::Array(Vec::new()));
    assert_eq!(std::fs::read_dir(grange.data().join("spool")).unwrap().count(), 0);
    let (status, text) = put(&node, "a.warc", Some(truth), b"false").await;
    assert_eq!(status, 200, "{text}");
    assert!(proven(&grange, "a.warc"));
    assert_eq!(node.stop(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_names_are_refused_and_odd_ones_are_stored_safely() {
    let grange = single();
    let node = grange.up();
    let long = "x".repeat(300);
    // As they stand in a URL: .., ../a, a/b, a NUL, a line break, a backslash, a decomposed Å, 300 bytes, the archive's own.
    let refused = [
        "%2e%2e",
        "%2e%2e%2fa",
        "a%2fb",
        "a%00b",
        "a%0ab",
        "a%5cb",
        "A%cc%8a",
        &long,
        "%20a",
        ".a",
        "grange-witness-1",
    ];
    for name in refused {
        let (status, text) = put(&node, name, None, b"bytes").await;
        assert!((400..500).contains(&status), "{name}: {status} {text}");
    }
    let odd =
        ["a..b", "%c3%85.warc", "%e5%90%8d%e5%89%8d.warc", "a%27b%22c%3b--", "%252e%252e", "a%26b%3cc%3e"];
    for name in odd {
        let (status, text) = put(&node, name, None, b"bytes").await;
        assert_eq!(status, 200, "{name}: {text}");
    }
    let files = grange.run(&["files", "ls", "--json"]).ok().json();
    assert_eq!(files.as_array().unwrap().len(), odd.len());
    for file in files.as_array().unwrap() {
        let name = file["name"].as_str().unwrap();
        let back = grange.path("back");
        grange.run(&["get", name, back.to_str().unwrap()]).ok();
        assert_eq!(std::fs::read(&back).unwrap(), b"bytes", "{name}");
        std::fs::remove_file(back).unwrap();
    }
    for replica in ["one", "two"] {
        assert_eq!(lying_in(&grange.data().join(format!("replicas/{replica}/filedir"))).len(), odd.len());
    }
    assert_eq!(audit(&grange), [3 * odd.len() as u64, 0, 0, 0, 0]);
    assert_eq!(node.stop(), 0);
}
