//! SWAP: slices of collections on this machine's partitions, served beside everything else.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;

use grange_base::{Clock, Trigger};
use grange_swap::{Error, Server};

use crate::settings::{Settings, below};
use crate::supervise::Parts;

/// The server with its partitions open and its port taken, which comes before anybody hears of the node.
#[derive(Debug)]
pub struct Swap {
    server: Server,
    trigger: Trigger,
}

impl Swap {
    pub async fn open(settings: &Settings, data: &Path, clock: &Clock) -> Result<Self, Error> {
        let mut swap = settings.swap.clone();
        swap.partitions = swap.partitions.iter().map(|partition| below(data, partition)).collect();
        swap.key_file = swap.key_file.map(|file| below(data, &file));
        let trigger = Trigger::new();
        let server = Server::start(swap, clock.clone(), &trigger.listener()).await?;
        Ok(Self { server, trigger })
    }

    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Makes it a part of the node, which stops it.
    pub fn start(self, parts: &mut Parts) {
        let Self { server, trigger } = self;
        parts.start("swap", move |shutdown| async move {
            shutdown.wait().await;
            trigger.pull();
            server.join().await;
            Ok::<_, Infallible>(())
        });
    }
}
