//! Servers of a simulated run, and a client for them.

use std::fmt::{self, Write as _};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use grange_base::{Clock, Size, TestClock};
use grange_testkit::ReservedPort;
use jiff::Timestamp;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use uuid::Uuid;

use crate::partition::{Partition, SYNC_FAILED};
use crate::server::Server;
use crate::settings::Settings;
use crate::simulation::seeded::SyncFaults;
use crate::tests::bed::KEY;

/// On each server; so a collection has at most twice as many slices as there are servers.
pub(super) const PARTITIONS: usize = 2;
/// No server waits for another one longer than 120 s.
const LONGEST_REQUEST: Duration = Duration::from_secs(600);
/// Redirects of one request: a collection may change meanwhile.
const MAX_REDIRECTS: usize = 6;
/// Steps of the servers' clock, which follows the runtime's.
const TICK: Duration = Duration::from_millis(50);

pub(super) struct Network {
    folder: tempfile::TempDir,
    pub servers: Vec<Option<Server>>,
    pub addresses: Vec<SocketAddr>,
    /// Nobody else takes the port of a server that is down.
    ports: Vec<ReservedPort>,
    partitions: Vec<Vec<Uuid>>,
    clock: Clock,
    /// From the next start of a server.
    pub sums_in_files: bool,
}

/// What a server answered.
#[derive(Clone)]
pub(super) struct Reply {
    pub status: u16,
    pub body: Vec<u8>,
    location: Option<String>,
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.status, self.text())
    }
}

impl Reply {
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).trim().to_owned()
    }
}

/// Memory where the machine offers it: a run syncs often.
fn scratch() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
}

async fn run_clock(hand: TestClock) {
    loop {
        tokio::time::sleep(TICK).await;
        hand.advance(TICK);
    }
}

impl Network {
    pub(super) async fn start(servers: usize) -> Self {
        let folder = scratch();
        std::fs::write(folder.path().join("key"), KEY).unwrap();
        let (clock, hand) = Clock::test(Timestamp::UNIX_EPOCH);
        tokio::spawn(run_clock(hand));
        let mut network = Self {
            folder,
            servers: Vec::new(),
            addresses: Vec::new(),
            ports: Vec::new(),
            partitions: Vec::new(),
            clock,
            sums_in_files: false,
        };
        for server in 0..servers {
            let uuids =
                (0..PARTITIONS).map(|part| Partition::init(&network.partition(server, part), "").unwrap());
            let uuids = uuids.collect();
            network.partitions.push(uuids);
            network.servers.push(None);
            // The order of the servers' names is the same in every run.
            let port = ReservedPort::at([127, 0, 0, 1 + server as u8].into());
            network.addresses.push(port.address());
            network.ports.push(port);
            network.start_server(server).await;
        }
        network
    }

    pub(super) fn partition(&self, server: usize, partition: usize) -> PathBuf {
        self.folder.path().join(format!("s{server}p{partition}"))
    }

    /// The folders of all partitions with their ids.
    pub(super) fn all_partitions(&self) -> Vec<(Uuid, PathBuf)> {
        let all = self.partitions.iter().enumerate();
        all.flat_map(|(server, uuids)| {
            uuids.iter().enumerate().map(move |(part, uuid)| (*uuid, self.partition(server, part)))
        })
        .collect()
    }

    pub(super) fn partitions_of(&self, server: usize) -> Vec<Uuid> {
        self.partitions[server].clone()
    }

    pub(super) async fn start_server(&mut self, server: usize) {
        for part in 0..PARTITIONS {
            // A crash loses what was not synced, so the disk shows what it holds.
            let _ = std::fs::remove_file(self.partition(server, part).join(SYNC_FAILED));
        }
        let others = self.addresses.iter().enumerate();
        let others = others.filter(|(other, _)| *other != server);
        let settings = Settings {
            partitions: (0..PARTITIONS).map(|part| self.partition(server, part)).collect(),
            listen: self.addresses[server],
            peers: others.map(|(_, address)| address.to_string()).collect(),
            key_file: Some(self.folder.path().join("key")),
            min_space_left: Size(1 << 20),
            move_rate: Size(0),
            sums_in_files: self.sums_in_files,
            ..Settings::default()
        };
        let started = Server::start_without_threads(settings, self.clock.clone()).await.unwrap();
        assert_eq!(started.address(), self.addresses[server]);
        self.servers[server] = Some(started);
    }

    /// Of the disks of a server that runs.
    pub(super) fn sync_faults(&self, server: usize) -> Vec<SyncFaults> {
        let partitions = self.servers[server].iter().flat_map(|server| &server.node().partitions);
        partitions.map(|partition| partition.sync_faults.clone()).collect()
    }

    /// Drops everything the server is doing at its next await, all that it has in memory, and names that were not synced.
    pub(super) async fn crash(&mut self, server: usize) {
        let disks = self.sync_faults(server);
        if let Some(running) = self.servers[server].take() {
            running.stop().await;
        }
        disks.iter().for_each(SyncFaults::crash);
    }

    /// What the log asks for after a failed sync, on all servers that need it: the disk is mounted again, which loses what was
    /// not synced, and the mark is removed. How many partitions there were.
    pub(super) async fn trust_disks_again(&mut self) -> u64 {
        let mut count = 0;
        for server in 0..self.servers.len() {
            let marks = (0..PARTITIONS).map(|part| self.partition(server, part).join(SYNC_FAILED));
            let marks: Vec<_> = marks.filter(|mark| mark.exists()).collect();
            if marks.is_empty() {
                continue;
            }
            count += marks.len() as u64;
            self.crash(server).await;
            for mark in marks {
                std::fs::remove_file(mark).unwrap();
            }
            self.start_server(server).await;
        }
        count
    }
}

/// Sends a request as a client does that follows redirects; `None` when no answer came.
pub(super) async fn request(
    address: SocketAddr,
    method: &str,
    path: &str,
    body: Option<&[u8]>,
) -> Option<Reply> {
    let (mut address, mut path) = (address.to_string(), path.to_owned());
    for _ in 0..MAX_REDIRECTS {
        let exchange = tokio::time::timeout(LONGEST_REQUEST, exchange(&address, method, &path, body));
        let reply = exchange.await.ok()?.ok()?;
        match (&reply.location, reply.status) {
            (Some(location), 302 | 307) => {
                let rest = location.strip_prefix("http://")?;
                let (host, rest) = rest.split_once('/')?;
                (address, path) = (host.to_owned(), format!("/{rest}"));
            }
            _ => return Some(reply),
        }
    }
    None
}

async fn exchange(address: &str, method: &str, path: &str, body: Option<&[u8]>) -> io::Result<Reply> {
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let mut request =
        format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {KEY}\r\n");
    if method == "DELETE" {
        request += "If-Match: *\r\n";
    }
    if let Some(body) = body {
        let _ = write!(request, "Content-Length: {}\r\n", body.len());
    }
    let mut request = (request + "\r\n").into_bytes();
    request.extend_from_slice(body.unwrap_or_default());
    stream.write_all(&request).await?;
    let (mut answer, end) = (Vec::new(), b"\r\n\r\n");
    let head = loop {
        if let Some(at) = answer.windows(end.len()).position(|window| window == end) {
            break at + end.len();
        }
        if stream.read_buf(&mut answer).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    };
    let text = String::from_utf8_lossy(&answer[..head]).into_owned();
    let header = |name: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned())
    };
    let length = header("content-length").and_then(|length| length.parse().ok()).unwrap_or_default();
    let mut body = answer.split_off(head);
    while body.len() < length {
        if stream.read_buf(&mut body).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.ok_or(io::ErrorKind::InvalidData)?;
    Ok(Reply { status, body, location: header("location") })
}
