//! How a SWAP server is set up.

use std::net::SocketAddr;
use std::path::PathBuf;

use grange_base::{Period, Size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One SWAP server: the folders it keeps, where it listens, and whom it knows.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The folders with the data, each made by `grange swap init`. One holds at most one slice of a collection, so it
    /// takes as many (over all servers) as a collection has slices.
    pub partitions: Vec<PathBuf>,
    /// Address and port for clients and peers.
    #[schemars(with = "String")]
    pub listen: SocketAddr,
    /// The URL by which clients and peers reach this server; redirects lead there. Empty means http:// and `listen`.
    pub advertise: String,
    /// HOST:PORT of other servers. One side is enough: who proves to know the key is called back.
    pub peers: Vec<String>,
    /// The file with the key that all servers share and that clients send as `Authorization: Bearer`. Without it the
    /// server has no peers, and only processes of its own user on its own machine may write.
    pub key_file: Option<PathBuf>,
    /// Threads that answer requests; 0 means one per processor.
    pub workers: usize,
    /// Whether processes of this server's user on this machine need no key: they could read the key file anyway.
    pub trust_local: bool,
    /// Space to leave free on each partition; an upload that would go below is refused. The default keeps a disk
    /// from filling up to the point where file systems become slow.
    pub min_space_left: Size,
    /// Whether checksums are kept in files below `.swap-sums` of a partition, as they are where a disk keeps no extended
    /// attributes: for disks that are copied by tools which drop those.
    pub sums_in_files: bool,
    /// How fast a running move may read, per second and server; 0 means as fast as it goes. The default leaves half
    /// of a single disk to readers.
    pub move_rate: Size,
    /// Uploads at the same time; each may hold some buffers of 256 KiB.
    pub max_uploads: usize,
    /// Connections at the same time; an idle one takes less than 10 KB.
    pub max_connections: usize,
    /// How slow a client may be.
    pub patience: Patience,
}

/// How slow a client may be before it is hung up on: it holds a place that others need.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Patience {
    /// How long a connection may be idle between two requests.
    pub idle: Period,
    /// How long the head of a request may take from its first byte.
    pub head: Period,
    /// How long a client may neither send anything of a body nor take anything of an answer.
    pub silence: Period,
    /// The slowest upload per second, on average, once `grace` is over.
    pub slowest: Size,
    /// How long an upload may be slower than `slowest`: short ones need not be fast.
    pub grace: Period,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            idle: Period::from_secs(75),
            head: Period::from_secs(10),
            silence: Period::from_secs(30),
            slowest: Size(256),
            grace: Period::from_secs(60),
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            partitions: Vec::new(),
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            advertise: String::new(),
            peers: Vec::new(),
            key_file: None,
            workers: 0,
            trust_local: true,
            min_space_left: Size(256 << 20),
            sums_in_files: false,
            move_rate: Size(64 << 20),
            max_uploads: 256,
            max_connections: 20_000,
            patience: Patience::default(),
        }
    }
}
