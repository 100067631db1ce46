//! A network of servers on folders of its own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use grange_base::{Clock, Shutdown, Size};
use grange_testkit::wait::until;
use reqwest::{Client, Method, Response};

use crate::admin::{self, NewCollection, Reslice, Slices};
use crate::name::encode;
use crate::partition::Partition;
use crate::server::Server;
use crate::settings::Settings;
use crate::verify::Report;
use crate::view::{Home, Known};

pub(super) const KEY: &str = "0123456789abcdef0123456789abcdef";

pub(super) struct Bed {
    pub folder: tempfile::TempDir,
    pub servers: Vec<Option<Server>>,
    pub addresses: Vec<String>,
    partitions: usize,
    pub client: Client,
    pub clock: Clock,
    /// Servers whose clock is another one, from their next start.
    pub other_clocks: BTreeMap<usize, Clock>,
    tune: fn(&mut Settings),
}

impl Bed {
    pub(super) async fn new(servers: usize, partitions: usize) -> Self {
        Self::tuned(servers, partitions, |_| ()).await
    }

    /// With other settings than most tests need.
    pub(super) async fn tuned(servers: usize, partitions: usize, tune: fn(&mut Settings)) -> Self {
        Self::on_clock(servers, partitions, tune, Clock::system()).await
    }

    pub(super) async fn on_clock(
        servers: usize,
        partitions: usize,
        tune: fn(&mut Settings),
        clock: Clock,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("key"), KEY).unwrap();
        let client = Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
        let (running, addresses) = (Vec::new(), Vec::new());
        let other_clocks = BTreeMap::new();
        let mut bed =
            Self { folder, servers: running, addresses, partitions, client, clock, other_clocks, tune };
        for server in 0..servers {
            for partition in 0..partitions {
                Partition::init(&bed.partition(server, partition), &format!("{server}.{partition}")).unwrap();
            }
            bed.servers.push(None);
            bed.addresses.push("127.0.0.1:0".to_owned());
            bed.start(server).await;
        }
        for server in 0..servers {
            bed.sees(server, servers - 1).await;
        }
        bed
    }

    pub(super) fn partition(&self, server: usize, partition: usize) -> PathBuf {
        self.folder.path().join(format!("s{server}p{partition}"))
    }

    pub(super) fn all_partitions(&self) -> Vec<PathBuf> {
        let all =
            (0..self.servers.len()).flat_map(|server| (0..self.partitions).map(move |part| (server, part)));
        all.map(|(server, part)| self.partition(server, part)).collect()
    }

    pub(super) async fn start(&mut self, server: usize) {
        let peers = self.addresses.iter().enumerate();
        let peers = peers.filter(|(other, address)| *other != server && !address.ends_with(":0"));
        let mut settings = Settings {
            partitions: (0..self.partitions).map(|part| self.partition(server, part)).collect(),
            listen: self.addresses[server].parse().unwrap(),
            peers: peers.map(|(_, address)| address.clone()).collect(),
            key_file: Some(self.folder.path().join("key")),
            workers: 1,
            min_space_left: Size(1 << 20),
            move_rate: Size(0),
            ..Settings::default()
        };
        (self.tune)(&mut settings);
        let clock = self.other_clocks.get(&server).unwrap_or(&self.clock).clone();
        let started = Server::start(settings, clock, &Shutdown::never()).await.unwrap();
        self.addresses[server] = started.address().to_string();
        self.servers[server] = Some(started);
    }

    pub(super) async fn stop(&mut self, server: usize) {
        self.servers[server].take().unwrap().stop().await;
    }

    /// Waits until a server sees that many others alive.
    pub(super) async fn sees(&self, server: usize, others: usize) {
        let node = self.servers[server].as_ref().unwrap().node();
        let seen = async || node.others().iter().filter(|other| other.alive).count() == others;
        until("the servers see each other", seen).await;
    }

    pub(super) fn admin(&self, server: usize) -> admin::Client {
        admin::Client::new(&self.addresses[server], Some(&self.folder.path().join("key"))).unwrap()
    }

    pub(super) async fn create(&self, namespace: &str, slices: u32, public: bool) {
        let new = NewCollection { namespace: namespace.to_owned(), slices, public, mixed_disks: false };
        self.admin(0).create(&new).await.unwrap();
        for server in self.servers.iter().flatten() {
            until("all servers know the collection", async || {
                let view = server.node().view();
                let all = |known: &Known| known.homes.iter().all(|home| !matches!(home, Home::Nowhere));
                view.get(namespace).is_some_and(|known| all(known))
            })
            .await;
        }
    }

    pub(super) fn url(&self, server: usize, path: &str) -> String {
        format!("http://{}/{path}", self.addresses[server])
    }

    /// One request, not redirected.
    pub(super) async fn once(
        &self,
        method: Method,
        server: usize,
        path: &str,
        body: Option<&[u8]>,
    ) -> Response {
        let mut request = self.client.request(method, self.url(server, path));
        if let Some(body) = body {
            request = request.body(body.to_vec());
        }
        request.send().await.unwrap()
    }

    /// A request as a client sends it that follows redirects and tries again when it is asked to.
    pub(super) async fn send(
        &self,
        method: Method,
        server: usize,
        path: &str,
        body: Option<&[u8]>,
    ) -> Response {
        let (mut url, mut hops) = (self.url(server, path), 0);
        loop {
            let mut request = self.client.request(method.clone(), &url);
            if let Some(body) = body {
                // Said even when it is none: this client would leave it out.
                request = request.header("Content-Length", body.len()).body(body.to_vec());
            }
            if method == Method::DELETE {
                request = request.header("If-Match", "*");
            }
            let response = request.send().await.unwrap();
            match response.status().as_u16() {
                302 | 307 => {
                    hops += 1;
                    assert!(hops <= 4, "{url} redirects too often");
                    url = response.headers()["location"].to_str().unwrap().to_owned();
                }
                _ => return response,
            }
        }
    }

    pub(super) async fn put(&self, server: usize, collection: &str, path: &str, bytes: &[u8]) -> u16 {
        let path = format!("put/{}/{}", encode(collection), encode(path));
        self.send(Method::PUT, server, &path, Some(bytes)).await.status().as_u16()
    }

    pub(super) async fn get(&self, server: usize, collection: &str, path: &str) -> Result<Vec<u8>, u16> {
        let path = format!("get/{}/{}", encode(collection), encode(path));
        let response = self.send(Method::GET, server, &path, None).await;
        match response.status().as_u16() {
            200 => Ok(response.bytes().await.unwrap().to_vec()),
            status => Err(status),
        }
    }

    pub(super) async fn delete(&self, server: usize, collection: &str, path: &str) -> u16 {
        let path = format!("put/{}/{}", encode(collection), encode(path));
        self.send(Method::DELETE, server, &path, None).await.status().as_u16()
    }

    /// Changes the number of slices and waits until all is moved.
    pub(super) async fn reslice(&self, collection: &str, slices: Slices) {
        let wanted = Reslice { slices, dry_run: false, mixed_disks: false };
        let estimate = self.admin(0).reslice(collection, wanted).await.unwrap();
        self.settled(collection, estimate.to).await;
    }

    pub(super) async fn settled(&self, collection: &str, slices: u32) {
        for server in self.servers.iter().flatten() {
            until("the move is done", async || {
                let view = server.node().view();
                let done = crate::Layout::Stable { slices: slices.try_into().unwrap() };
                view.get(collection).is_some_and(|known| known.record.layout == done)
            })
            .await;
        }
    }

    pub(super) async fn verify(&self, server: usize, collection: &str) -> Report {
        let admin = self.admin(server);
        admin.start_verify(collection).await.unwrap();
        until("the verification is done", async || !admin.verify(collection).await.unwrap().running).await;
        admin.verify(collection).await.unwrap()
    }

    /// What a recursive copy of all slices gives, without any of our software. A name that is there twice must have
    /// the same bytes.
    pub(super) fn copied(&self, collection: &str) -> BTreeMap<String, Vec<u8>> {
        let mut files = BTreeMap::new();
        for partition in self.all_partitions() {
            collect(&partition.join(collection), "", &mut files);
        }
        files
    }
}

fn collect(folder: &Path, prefix: &str, into: &mut BTreeMap<String, Vec<u8>>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries {
        let entry = entry.unwrap();
        let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
        if entry.file_type().unwrap().is_dir() {
            collect(&entry.path(), &format!("{name}/"), into);
        } else {
            let bytes = std::fs::read(entry.path()).unwrap();
            if let Some(known) = into.insert(name.clone(), bytes.clone()) {
                assert_eq!(known, bytes, "{name} is on two slices with different bytes");
            }
        }
    }
}
