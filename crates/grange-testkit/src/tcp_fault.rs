//! A wire that can be cut: a TCP proxy on loopback in front of a real server.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// What the wire does to connections, present and to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wire {
    /// Carries bytes.
    Whole,
    /// Ends them, as a server does that went down.
    Cut,
    /// Keeps them open and carries nothing, as a network does that lost its route.
    Silent,
}

/// Listens on a free port and passes everything on to a server, until told otherwise. Ends when dropped.
#[derive(Debug)]
pub struct TcpFault {
    address: SocketAddr,
    wire: Arc<watch::Sender<Wire>>,
    task: JoinHandle<()>,
}

impl TcpFault {
    /// In front of `server` (`host:port`).
    pub async fn before(server: &str) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a loopback port is free");
        let address = listener.local_addr().expect("a bound socket has an address");
        let wire = Arc::new(watch::Sender::new(Wire::Whole));
        let (server, watched) = (server.to_owned(), Arc::clone(&wire));
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(carry(client, server.clone(), watched.subscribe()));
            }
        });
        Self { address, wire, task }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends all connections and every new one at once.
    pub fn cut(&self) {
        self.wire.send_replace(Wire::Cut);
    }

    /// Carries nothing any more, and does not say so.
    pub fn silence(&self) {
        self.wire.send_replace(Wire::Silent);
    }

    /// Carries new connections again. What was silent before stays lost.
    pub fn mend(&self) {
        self.wire.send_replace(Wire::Whole);
    }
}

impl Drop for TcpFault {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn carry(mut client: TcpStream, server: String, mut wire: watch::Receiver<Wire>) {
    if *wire.borrow() == Wire::Whole {
        let Ok(mut upstream) = TcpStream::connect(server).await else {
            return;
        };
        tokio::select! {
            _ = copy_bidirectional(&mut client, &mut upstream) => return,
            _ = wire.wait_for(|wire| *wire != Wire::Whole) => {}
        }
        hold(&mut wire).await;
        // Both ends close here, the server's too.
        return;
    }
    hold(&mut wire).await;
}

/// Keeps a connection open for as long as the wire is silent.
async fn hold(wire: &mut watch::Receiver<Wire>) {
    let _ = wire.wait_for(|wire| *wire != Wire::Silent).await;
}
