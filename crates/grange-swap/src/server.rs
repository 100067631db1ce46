//! Starting and stopping a server.

use std::collections::HashSet;
use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use grange_base::{Clock, Shutdown, Trigger};
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use crate::access::Key;
use crate::error::Error;
use crate::http;
use crate::moves;
use crate::node::Node;
use crate::peer::link;
use crate::peer::serve::blocking;
use crate::settings::Settings;

/// How long work on the disks may take to end at shutdown.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// Who dials peers, and remembers whom.
#[derive(Clone, Debug)]
pub(crate) struct Callers {
    node: Arc<Node>,
    /// The runtime the server was started on; requests are answered on others.
    runtime: Handle,
    shutdown: Shutdown,
    /// Addresses that are being dialled.
    known: Arc<Mutex<HashSet<String>>>,
    has_key: bool,
}

impl Callers {
    fn call(&self, address: &str) {
        let new = self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(address.to_owned());
        if new {
            let (node, address, shutdown) =
                (Arc::clone(&self.node), address.to_owned(), self.shutdown.clone());
            self.runtime.spawn(link::keep(node, address, shutdown));
        }
    }

    /// Calls back a peer that has proven itself.
    pub(crate) fn call_back(&self, base: &str) {
        if let Some(address) = base.strip_prefix("http://") {
            self.call(address.trim_end_matches('/'));
        }
    }

    /// Requests and peers are answered until then.
    pub(crate) fn shutdown(&self) -> &Shutdown {
        &self.shutdown
    }

    /// Without a key there is nothing to prove anything by.
    pub(crate) fn has_key(&self) -> bool {
        self.has_key
    }
}

/// A running server. Dropping it does not stop it; [`Server::stop`] or the shutdown it was given does.
#[derive(Debug)]
pub struct Server {
    node: Arc<Node>,
    address: SocketAddr,
    trigger: Trigger,
    threads: Vec<JoinHandle<()>>,
}

impl Server {
    /// Opens the partitions, listens, and starts to call peers.
    pub async fn start(settings: Settings, clock: Clock, shutdown: &Shutdown) -> Result<Self, Error> {
        let workers = match settings.workers {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            workers => workers,
        };
        let Opened { node, address, listener, trigger, callers } = open(settings, clock, shutdown).await?;
        let counting = Arc::clone(&node);
        tokio::task::spawn_blocking(move || {
            if let Err(error) = counting.recount() {
                tracing::warn!(error = %grange_base::Chain(&error), "files were not counted");
            }
        });
        let threads = start_workers(workers, &node, &callers, listener, &trigger)
            .map_err(|source| Error::Listen { address: address.to_string(), source })?;
        Ok(Self { node, address, trigger, threads })
    }

    /// The same server without threads: the runtime of the caller answers all requests.
    #[cfg(test)]
    pub(crate) async fn start_without_threads(settings: Settings, clock: Clock) -> Result<Self, Error> {
        let Opened { node, address, listener, trigger, callers } =
            open(settings, clock, &Shutdown::never()).await?;
        let listener = TcpListener::from_std(listener)
            .map_err(|source| Error::Listen { address: address.to_string(), source })?;
        let (sender, receiver) = mpsc::unbounded_channel();
        let (most, shutdown) = (node.settings.max_connections, trigger.listener());
        let serve = http::serve_all(Arc::clone(&node), callers, receiver);
        tokio::spawn(async move {
            let accept = http::accept(listener, std::slice::from_ref(&sender), most);
            shutdown.or(async { tokio::join!(accept, serve) }).await
        });
        Ok(Self { node, address, trigger, threads: Vec::new() })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn node(&self) -> &Arc<Node> {
        &self.node
    }

    /// Stops and waits until nothing runs any more.
    pub async fn stop(self) {
        self.trigger.pull();
        self.join().await;
    }

    /// Waits until the shutdown it was started with has come and everything has ended.
    pub async fn join(self) {
        let Self { node, threads, .. } = self;
        if !threads.is_empty() {
            let join = move || threads.into_iter().for_each(|thread| drop(thread.join()));
            let _ = tokio::task::spawn_blocking(join).await;
        }
        // The disks are free for another process once nobody here has anything to do with them.
        let disks: Vec<_> = node.partitions.iter().map(Arc::downgrade).collect();
        drop(node);
        let released = async {
            while disks.iter().any(|disk| disk.strong_count() > 0) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        if tokio::time::timeout(LAST_WORDS, released).await.is_err() {
            tracing::warn!("some work on the disks did not end in time");
        }
    }
}

/// A server whose partitions are open and whose peers are being called, and that nobody can connect to yet.
struct Opened {
    node: Arc<Node>,
    address: SocketAddr,
    listener: StdListener,
    trigger: Trigger,
    callers: Callers,
}

async fn open(settings: Settings, clock: Clock, shutdown: &Shutdown) -> Result<Opened, Error> {
    let listen = |source| Error::Listen { address: settings.listen.to_string(), source };
    let listener = StdListener::bind(settings.listen).map_err(listen)?;
    listener.set_nonblocking(true).map_err(listen)?;
    let address = listener.local_addr().map_err(listen)?;
    let base: Arc<str> = base(&settings.advertise, address)?.into();
    let key = settings.key_file.as_deref().map(Key::read).transpose()?;
    if key.is_none() && !settings.peers.is_empty() {
        return Err(Error::refused("peers prove themselves by a key: give one with --key-file"));
    }
    let has_key = key.is_some();
    let key = key.unwrap_or_else(Key::random);
    let peers = settings.peers.clone();
    let node = Arc::new(blocking(move || Node::open(settings, base, key, clock)).await?);
    let trigger = Trigger::below(shutdown);
    let callers = Callers {
        node: Arc::clone(&node),
        runtime: Handle::current(),
        shutdown: trigger.listener(),
        known: Arc::default(),
        has_key,
    };
    for peer in &peers {
        callers.call(peer);
    }
    tokio::spawn(moves::run(Arc::clone(&node), trigger.listener()));
    Ok(Opened { node, address, listener, trigger, callers })
}

fn base(advertise: &str, address: SocketAddr) -> Result<String, Error> {
    if !advertise.is_empty() {
        let base = advertise.trim_end_matches('/');
        if !base.starts_with("http://") && !base.starts_with("https://") {
            return Err(Error::Advertise { address: advertise.to_owned() });
        }
        return Ok(base.to_owned());
    }
    if address.ip().is_unspecified() {
        return Err(Error::Advertise { address: address.to_string() });
    }
    Ok(format!("http://{address}"))
}

/// One thread per worker, each with connections of its own: nothing is shared on the way of a request but the view.
/// The first one accepts and deals the connections out in turn.
fn start_workers(
    workers: usize,
    node: &Arc<Node>,
    callers: &Callers,
    listener: StdListener,
    trigger: &Trigger,
) -> io::Result<Vec<JoinHandle<()>>> {
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..workers).map(|_| mpsc::unbounded_channel()).unzip();
    let mut listener = Some((listener, senders));
    let mut threads = Vec::new();
    for (index, receiver) in receivers.into_iter().enumerate() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let accepting = listener.take();
        let (node, callers, trigger) = (Arc::clone(node), callers.clone(), trigger.clone());
        let thread = std::thread::Builder::new().name(format!("swap-{index}"));
        threads.push(thread.spawn(move || {
            let shutdown = trigger.listener();
            runtime.block_on(async {
                let accept = async {
                    if let Some((listener, senders)) = accepting {
                        let most = node.settings.max_connections;
                        match TcpListener::from_std(listener) {
                            Ok(listener) => http::accept(listener, &senders, most).await,
                            Err(error) => tracing::error!(%error, "cannot accept connections"),
                        }
                    }
                    std::future::pending::<()>().await;
                };
                let serve = http::serve_all(Arc::clone(&node), callers, receiver);
                tokio::select! {
                    () = shutdown.wait() => {}
                    () = accept => {}
                    () = serve => {}
                }
            });
            // Uploads that are being synced may finish; nothing waits for clients.
            runtime.shutdown_timeout(LAST_WORDS);
        })?);
    }
    Ok(threads)
}
