//! Commands and nodes that meet on one folder: while a node starts, restarts or is down.

use std::io::{BufRead, BufReader};

use grange_testkit::{ReservedPort, ReservedPorts, TestDatabase, until};
use rustix::process::{Pid, Signal, kill_process};

use crate::archive_bed::{bytes_at, machine, source};
use crate::harness::Grange;

/// A command that uses the store directly and stays: it serves what was harvested.
fn staying_command(grange: &Grange) -> std::process::Child {
    let mut command = grange.spawn(&["oai", "serve", "--listen", "127.0.0.1:0"]);
    let said = BufReader::new(command.stdout.as_mut().unwrap()).lines().next().unwrap().unwrap();
    assert!(said.contains("127.0.0.1"), "{said}");
    command
}

#[test]
fn a_node_waits_for_a_command_and_starts_when_it_ends() {
    let grange = Grange::new();
    grange.run(&["init"]).ok();
    let mut command = staying_command(&grange);
    let mut waiting = grange.up_spawned();
    let named = format!("process {}", command.id());
    waiting.wait_for("the node says for whom it waits", |node| node.log().contains(&named));
    kill_process(Pid::from_child(&command), Signal::TERM).unwrap();
    command.wait().unwrap();
    waiting.wait_for("the node starts", |node| node.log().contains("node started"));
    assert!(!waiting.log().contains("another node"), "{}", waiting.log());
    assert_eq!(waiting.stop(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_during_a_restart_waits_for_the_node_and_is_not_asked_to_log_in() {
    // A port of its own, so that the next node answers where the killed one did.
    let reserved = ReservedPort::new();
    let grange = std::sync::Arc::new(Grange::with(&[&format!("node.listen={}", reserved.address())]));
    let mut node = grange.up();
    for _ in 0..3 {
        // A killed node leaves its file; commands begin at every moment of the next start.
        node.kill();
        let commands: Vec<_> = (0..4)
            .map(|number| {
                let grange = std::sync::Arc::clone(&grange);
                std::thread::spawn(move || {
                    let name = format!("d{number}.dk");
                    grange.run(&["domains", "ls", &name])
                })
            })
            .collect();
        node = grange.up();
        for command in commands {
            command.join().unwrap().ok();
        }
    }
    assert_eq!(node.stop(), 0);
}

#[tokio::test]
async fn commands_on_a_folder_whose_node_is_down_reach_the_peers_of_its_replicas() {
    let Some(database) = TestDatabase::create().await else { return };
    let ports = ReservedPorts::new(2);
    let db = format!("db.url={}", database.url);
    let build = |at: usize, settings: &str| {
        let listen = format!("node.listen={}", ports[at]);
        machine(&[&db, &listen, "bus.url=postgres:"], settings)
    };
    let own = bytes_at("one", &["file:replicas/one"]);
    let first = build(0, &[own, bytes_at("two", &[&format!("peer://{}/two", ports[1])])].concat());
    let there = bytes_at("one", &[&format!("peer://{}/one", ports[0])]);
    let other = build(1, &[there, bytes_at("two", &["file:replicas/two"])].concat());
    first.run(&["init"]).ok();
    // The peer is down as well: what does not need it works, the rest names it.
    first.run(&["replicas", "ls"]).ok();
    first.run(&["files", "ls"]).ok();
    let file = source(&first, "a.txt", 1000);
    let stored = first.run(&["store", file.to_str().unwrap()]);
    assert!(stored.code != 0 && !stored.stderr.contains("no node with a token"), "{stored:?}");
    let peer = other.up();
    until("the file is on both", async || first.run(&["store", file.to_str().unwrap()]).code == 0).await;
    assert_eq!(peer.stop(), 0);
}
