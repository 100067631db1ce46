//! Serves the model over HTTP/1.1 and TLS. The protocol is written by hand: a library would not let us break it.

mod connection;
mod log;
mod request;
mod respond;
mod tls;

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream, ToSocketAddrs};
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};

pub use self::log::Moment;

use self::log::Log;
use super::Web;
use super::answer::Ending;

#[derive(Clone, Copy, Debug)]
pub struct ServeOptions {
    /// Keep counts and times of requests. Costs a lock a request: benches leave it off.
    pub log: bool,
    /// Connections at once; more wait to be accepted. Below the usual limit of open files.
    pub connections_max: usize,
    /// A connection without a request for so long is closed.
    pub idle: Duration,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self { log: true, connections_max: 10_000, idle: Duration::from_secs(60) }
    }
}

/// What all connections share.
#[derive(Debug)]
struct Shared {
    web: Web,
    log: Option<Log>,
    idle: Duration,
    /// How often a busy page was asked for, by URL. Their number is bounded by the model: two a site.
    busy: Mutex<HashMap<String, u32>>,
}

/// A web that answers. Stops when dropped.
#[derive(Debug)]
pub struct WebServer {
    addr: SocketAddr,
    tls_addr: Option<SocketAddr>,
    shared: Arc<Shared>,
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
}

impl Web {
    /// Listens; port 0 takes a free one.
    pub async fn serve(&self, listen: impl ToSocketAddrs) -> io::Result<WebServer> {
        self.serve_with(listen, None::<SocketAddr>, ServeOptions::default()).await
    }

    /// Also on a second port with TLS: certificates signed by themselves, made for each name that is asked for.
    pub async fn serve_with(
        &self,
        listen: impl ToSocketAddrs,
        listen_tls: Option<impl ToSocketAddrs>,
        options: ServeOptions,
    ) -> io::Result<WebServer> {
        let shared = Arc::new(Shared {
            web: self.clone(),
            log: options.log.then(Log::default),
            idle: options.idle,
            busy: Mutex::default(),
        });
        let slots = Arc::new(Semaphore::new(options.connections_max.max(1)));
        let (stop, stopped) = watch::channel(false);
        let plain = TcpListener::bind(listen).await?;
        let addr = plain.local_addr()?;
        let mut tasks =
            vec![tokio::spawn(accept(plain, None, Arc::clone(&shared), Arc::clone(&slots), stopped.clone()))];
        let mut tls_addr = None;
        if let Some(listen_tls) = listen_tls {
            let listener = TcpListener::bind(listen_tls).await?;
            tls_addr = Some(listener.local_addr()?);
            let acceptor = tls::acceptor()?;
            tasks.push(tokio::spawn(accept(listener, Some(acceptor), Arc::clone(&shared), slots, stopped)));
        }
        Ok(WebServer { addr, tls_addr, shared, stop, tasks })
    }
}

impl WebServer {
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    pub fn tls_addr(&self) -> Option<SocketAddr> {
        self.tls_addr
    }

    pub fn web(&self) -> &Web {
        &self.shared.web
    }

    /// How often each URL was asked for (`http://` also for requests over TLS). Empty when no log is kept.
    pub fn requests(&self) -> std::collections::BTreeMap<String, u64> {
        self.shared.log.as_ref().map(Log::requests).unwrap_or_default()
    }

    /// All requests to hosts of this web, also those beyond the bounds of the log.
    pub fn total(&self) -> u64 {
        self.shared.log.as_ref().map_or(0, Log::total)
    }

    /// The most requests of a host that were being answered at the same time.
    pub fn concurrent_peak(&self, host: &str) -> usize {
        self.shared.log.as_ref().map_or(0, |log| log.peak(host))
    }

    /// When the requests of a host came and were answered, in the order they came.
    pub fn moments(&self, host: &str) -> Vec<Moment> {
        self.shared.log.as_ref().map(|log| log.moments(host)).unwrap_or_default()
    }

    /// The pauses of a host: from the end of an answer to the beginning of the next request. Zero when they overlap.
    pub fn intervals(&self, host: &str) -> Vec<Duration> {
        let moments = self.moments(host);
        let pairs = moments.iter().zip(moments.iter().skip(1));
        pairs.map(|(before, after)| after.start.saturating_duration_since(before.end)).collect()
    }

    /// Ends all connections and gives the ports back.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        for task in self.tasks.drain(..) {
            // A task that was cancelled is stopped as well.
            let _ = task.await;
        }
    }
}

impl Drop for WebServer {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

async fn accept(
    listener: TcpListener,
    tls: Option<tokio_rustls::TlsAcceptor>,
    shared: Arc<Shared>,
    slots: Arc<Semaphore>,
    mut stopped: watch::Receiver<bool>,
) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            biased;
            _ = stopped.wait_for(|stopped| *stopped) => break,
            Some(_) = connections.join_next() => continue,
            accepted = async {
                let slot = Arc::clone(&slots).acquire_owned().await;
                (slot, listener.accept().await)
            } => accepted,
        };
        let (Ok(slot), Ok((stream, _))) = accepted else {
            // Out of files, most likely: give connections time to end.
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let (shared, tls) = (Arc::clone(&shared), tls.clone());
        connections.spawn(async move {
            serve(stream, tls, &shared).await;
            drop(slot);
        });
    }
    connections.shutdown().await;
}

async fn serve(mut stream: TcpStream, tls: Option<tokio_rustls::TlsAcceptor>, shared: &Shared) {
    let _ = stream.set_nodelay(true);
    match tls {
        None => {
            if connection::run(&mut stream, shared).await == Ending::Reset {
                let _ = stream.set_zero_linger();
            }
        }
        Some(tls) => {
            let Ok(mut stream) = tls.accept(stream).await else { return };
            if connection::run(&mut stream, shared).await == Ending::Reset {
                let _ = stream.get_ref().0.set_zero_linger();
            } else {
                let _ = tokio::io::AsyncWriteExt::shutdown(&mut stream).await;
            }
        }
    }
}
