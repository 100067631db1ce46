//! SWAP servers in processes of their own.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use grange_testkit::{ReservedPorts, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::harness;

pub(crate) const KEY: &str = "the key of the tests, long enough";

/// A network of servers, some of which may be down.
pub(crate) struct Network {
    pub folder: tempfile::TempDir,
    pub addresses: Vec<String>,
    _ports: ReservedPorts,
    servers: Vec<Option<Child>>,
    partitions: usize,
}

impl Network {
    /// Makes partitions and starts the servers.
    pub(crate) fn start(servers: usize, partitions: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("key"), KEY).unwrap();
        let ports = ReservedPorts::new(servers);
        let addresses = ports.iter().map(ToString::to_string).collect();
        let children = (0..servers).map(|_| None).collect();
        let mut network = Self { folder, addresses, _ports: ports, servers: children, partitions };
        for server in 0..servers {
            for partition in network.partitions_of(server) {
                let (dir, text) = (partition.to_str().unwrap(), format!("disk of server {server}"));
                network.run(&["swap", "init", dir, "--description", &text]).ok();
            }
            network.up(server);
        }
        network
    }

    fn partitions_of(&self, server: usize) -> Vec<PathBuf> {
        (0..self.partitions)
            .map(|part| self.folder.path().join(format!("server{server}-disk{part}")))
            .collect()
    }

    pub(crate) fn all_partitions(&self) -> Vec<PathBuf> {
        (0..self.servers.len()).flat_map(|server| self.partitions_of(server)).collect()
    }

    pub(crate) fn run(&self, args: &[&str]) -> harness::Ended {
        harness::run(self.folder.path(), args)
    }

    /// Starts a server and waits until it listens.
    pub(crate) fn up(&mut self, server: usize) {
        let mut command = harness::bare(self.folder.path());
        command.args(["swap", "serve", "--listen", &self.addresses[server], "--key-file", "key"]);
        command.args(["--move-rate", "0B", "--min-space-left", "1MiB"]);
        command.arg("--partition").args(self.partitions_of(server));
        for (_, address) in self.addresses.iter().enumerate().filter(|(other, _)| *other != server) {
            command.args(["--peer", address]);
        }
        let log = self.folder.path().join(format!("server{server}.log"));
        let file = std::fs::OpenOptions::new().create(true).append(true).open(&log).unwrap();
        let mut child = command.stdout(Stdio::piped()).stderr(file).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let first = lines.next().and_then(Result::ok).unwrap_or_default();
        let told = || std::fs::read_to_string(&log).unwrap_or_default();
        assert!(first.starts_with("SWAP on http://"), "the server did not start: {first}\n{}", told());
        self.servers[server] = Some(child);
    }

    pub(crate) fn kill(&mut self, server: usize) {
        let mut child = self.servers[server].take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    pub(crate) fn signal(&self, server: usize, signal: Signal) {
        kill_process(Pid::from_child(self.servers[server].as_ref().unwrap()), signal).unwrap();
    }

    /// What a server says about the network.
    pub(crate) fn status(&self, server: usize) -> Value {
        self.run(&["swap", "status", "--server", &self.addresses[server], "--json"]).ok().json()
    }

    /// How many servers a server sees alive, itself among them.
    pub(crate) fn alive(&self, server: usize) -> usize {
        let status = self.status(server);
        status["servers"].as_array().unwrap().iter().filter(|server| server["alive"] == true).count()
    }

    /// Waits until every server sees every other one. Each acts by its own view, and the one that decides about a
    /// collection need not be the one that was asked.
    pub(crate) async fn complete(&self) {
        let all = self.servers.len();
        until("every server sees every other one", async || (0..all).all(|server| self.alive(server) == all))
            .await;
    }

    /// What `cp -r` of all slices into one folder gives.
    pub(crate) fn copied(&self, namespace: &str) -> BTreeMap<String, Vec<u8>> {
        let target = self.folder.path().join("copied");
        let _ = std::fs::remove_dir_all(&target);
        std::fs::create_dir(&target).unwrap();
        for partition in self.all_partitions() {
            let slice = partition.join(namespace);
            if slice.exists() {
                let status =
                    std::process::Command::new("cp").arg("-r").arg(slice.join(".")).arg(&target).status();
                assert!(status.unwrap().success());
            }
        }
        let mut files = BTreeMap::new();
        read_tree(&target, "", &mut files);
        files
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for child in self.servers.iter_mut().flatten() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Every file below a folder, by path.
pub(crate) fn read_tree(folder: &Path, prefix: &str, into: &mut BTreeMap<String, Vec<u8>>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
        if entry.file_type().unwrap().is_dir() {
            read_tree(&entry.path(), &format!("{name}/"), into);
        } else {
            into.insert(name, std::fs::read(entry.path()).unwrap());
        }
    }
}
