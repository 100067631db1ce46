//! A wire that can be cut: a TCP proxy on loopback in front of a real server.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
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

/// The wire, and how often it was cut: a connection that begins before a cut ends with it, also when the wire is mended before
/// anybody looks.
#[derive(Clone, Copy, Debug)]
struct WireState {
    wire: Wire,
    cuts: u64,
}

/// Listens on a free port and passes everything on to a server, until told otherwise. Ends when dropped.
#[derive(Debug)]
pub struct TcpFault {
    address: SocketAddr,
    wire: Arc<watch::Sender<WireState>>,
    carried: Arc<Carried>,
    task: JoinHandle<()>,
}

/// Bytes that went over the wire.
#[derive(Debug, Default)]
struct Carried {
    there: AtomicU64,
    back: AtomicU64,
    /// Connections that ended because the wire was cut or fell silent.
    broken: AtomicU64,
}

impl TcpFault {
    /// In front of `server` (`host:port`).
    pub async fn before(server: &str) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a loopback port is free");
        let address = listener.local_addr().expect("a bound socket has an address");
        let wire = Arc::new(watch::Sender::new(WireState { wire: Wire::Whole, cuts: 0 }));
        let carried = Arc::<Carried>::default();
        let (server, watched, counted) = (server.to_owned(), Arc::clone(&wire), Arc::clone(&carried));
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(carry(client, server.clone(), watched.subscribe(), Arc::clone(&counted)));
            }
        });
        Self { address, wire, carried, task }
    }

    /// Bytes carried to the server and back so far.
    pub fn carried(&self) -> (u64, u64) {
        (self.carried.there.load(Ordering::SeqCst), self.carried.back.load(Ordering::SeqCst))
    }

    /// Connections that faults of the wire have ended so far.
    pub fn broken(&self) -> u64 {
        self.carried.broken.load(Ordering::SeqCst)
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends all connections and every new one at once.
    pub fn cut(&self) {
        self.wire.send_modify(|state| *state = WireState { wire: Wire::Cut, cuts: state.cuts + 1 });
    }

    /// Carries nothing any more, and does not say so.
    pub fn silence(&self) {
        self.wire.send_modify(|state| state.wire = Wire::Silent);
    }

    /// Carries new connections again. What was silent before stays lost.
    pub fn mend(&self) {
        self.wire.send_modify(|state| state.wire = Wire::Whole);
    }
}

impl Drop for TcpFault {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn carry(
    mut client: TcpStream,
    server: String,
    mut wire: watch::Receiver<WireState>,
    carried: Arc<Carried>,
) {
    let begun = *wire.borrow();
    if begun.wire == Wire::Whole {
        let Ok(mut upstream) = TcpStream::connect(server).await else {
            return;
        };
        let (from_client, to_client) = client.split();
        let (from_server, to_server) = upstream.split();
        let both = async {
            tokio::try_join!(
                pump(from_client, to_server, &carried.there),
                pump(from_server, to_client, &carried.back)
            )
        };
        tokio::select! {
            _ = both => return,
            _ = wire.wait_for(|now| now.wire != Wire::Whole || now.cuts != begun.cuts) => {}
        }
        carried.broken.fetch_add(1, Ordering::SeqCst);
        hold(&mut wire).await;
        // Both ends close here, the server's too.
        return;
    }
    hold(&mut wire).await;
}

async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    count: &AtomicU64,
) -> io::Result<()> {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let read = from.read(&mut buffer).await?;
        if read == 0 {
            return to.shutdown().await;
        }
        let mut written = 0;
        while written < read {
            // One write at a time: a cut in between must not leave bytes uncounted that went over.
            let count_now = to.write(&buffer[written..read]).await?;
            if count_now == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            count.fetch_add(count_now as u64, Ordering::SeqCst);
            written += count_now;
        }
    }
}

/// Keeps a connection open for as long as the wire is silent.
async fn hold(wire: &mut watch::Receiver<WireState>) {
    let _ = wire.wait_for(|now| now.wire != Wire::Silent).await;
}
