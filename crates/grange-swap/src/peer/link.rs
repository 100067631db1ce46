//! The calling side: dials a peer, keeps the connection, carries questions over it, and dials again when it breaks.

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use grange_base::Shutdown;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};

use crate::error::Error;
use crate::node::Node;
use crate::peer::call::{Answer, Call};
use crate::peer::handshake::{self, Proven};
use crate::peer::{PROTOCOL, clocks, serve};
use crate::simulation;

/// A peer that stays silent this long is away. It answers a watch every [`serve::WATCH`] at least.
const SILENCE: Duration = Duration::from_secs(6);
/// Longest wait for any other answer: some read a file again.
const PATIENCE: Duration = Duration::from_secs(120);
/// Pauses between attempts: at once seen when it comes back, no burden while it is away.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(3);

/// A question, and where its answer goes.
type Asked = (Call, oneshot::Sender<Answer>);
type Waiting = Arc<Mutex<HashMap<u64, oneshot::Sender<Answer>>>>;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Numbered<T> {
    pub id: u64,
    pub body: T,
}

/// A living connection to a peer.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    base: Arc<str>,
    calls: mpsc::Sender<Asked>,
}

impl Link {
    /// Asks and waits. An answer that is a refusal becomes an error.
    pub(crate) async fn ask(&self, call: Call) -> Result<Answer, Error> {
        self.ask_within(call, PATIENCE).await
    }

    /// Asks where another epoch is an answer.
    pub(crate) async fn ask_any(&self, call: Call) -> Result<Answer, Error> {
        self.carry(call, PATIENCE).await
    }

    async fn ask_within(&self, call: Call, patience: Duration) -> Result<Answer, Error> {
        match self.carry(call, patience).await? {
            Answer::OtherEpoch(_) => Err(Error::away("the servers are just learning of a change")),
            answer => Ok(answer),
        }
    }

    async fn carry(&self, call: Call, patience: Duration) -> Result<Answer, Error> {
        let away = || Error::away(format!("the server {} is away", self.base));
        let (sender, receiver) = oneshot::channel();
        self.calls.send((call, sender)).await.map_err(|_| away())?;
        match timeout(patience, receiver).await {
            Ok(Ok(answer)) => unrefused(&self.base, answer),
            _ => Err(away()),
        }
    }
}

/// An answer that is not a refusal.
fn unrefused(base: &str, answer: Answer) -> Result<Answer, Error> {
    match answer {
        Answer::Away(reason) => Err(Error::Away { reason }),
        Answer::Refused(reason) => Err(Error::Refused { reason }),
        Answer::NoCollection(namespace) => Err(Error::NoCollection { namespace }),
        Answer::Failed { status, reason } => Err(Error::Answered { place: base.to_owned(), status, reason }),
        answer => Ok(answer),
    }
}

/// Stays connected to the peer at `address` until shutdown.
pub(crate) async fn keep(node: Arc<Node>, address: String, shutdown: Shutdown) {
    let mut pause = FIRST_PAUSE;
    while !shutdown.requested() {
        let dialled = simulation::on_line(&node.base, &address, dial(&node, &address));
        match shutdown.or(dialled).await.map(|dialled| dialled.and_then(|proven| proven)) {
            None => return,
            Some(Ok(None)) => {
                tracing::debug!(address, "that is this server itself");
                node.forget_unseen(&address);
                return;
            }
            Some(Ok(Some(proven))) => {
                pause = FIRST_PAUSE;
                let base: Arc<str> = proven.base.as_str().into();
                let (calls, asked) = mpsc::channel(256);
                let link = Link { base: Arc::clone(&base), calls };
                if node.met(&base, &address, link.clone()) {
                    tracing::info!(peer = %base, "connected");
                    let talk = simulation::on_line(&node.base, &address, talk(&node, &link, asked, proven));
                    let ended = shutdown.or(talk).await;
                    node.lost(&base);
                    match ended {
                        None => return,
                        Some(Ok(error)) => tracing::warn!(peer = %base, %error, "lost the connection"),
                        Some(Err(error)) => tracing::warn!(peer = %base, %error, "lost the connection"),
                    }
                } else {
                    pause = LONGEST_PAUSE;
                }
            }
            Some(Err(error)) if error.kind() == ErrorKind::PermissionDenied => {
                tracing::error!(address, "the peer does not share our key: give both the same --key-file");
                pause = LONGEST_PAUSE;
            }
            Some(Err(error)) => tracing::debug!(address, %error, "cannot reach the peer"),
        }
        // Servers that fell together do not come back in step.
        let jitter = pause.mul_f64(0.5 + simulation::share() / 2.0);
        if shutdown.or(tokio::time::sleep(jitter)).await.is_none() {
            return;
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Connects and proves; `None` when the other end is this server.
async fn dial(node: &Node, address: &str) -> io::Result<Option<Proven<TcpStream>>> {
    let stream = timeout(SILENCE, TcpStream::connect(address)).await??;
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    let head = format!(
        "GET /peer HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: {PROTOCOL}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    let mut answer = Vec::new();
    let read = async {
        while !answer.ends_with(b"\r\n\r\n") {
            let left = 4096_u64.saturating_sub(answer.len() as u64);
            if (&mut stream).take(left).read_until(b'\n', &mut answer).await? == 0 {
                return Err(io::Error::from(ErrorKind::UnexpectedEof));
            }
        }
        Ok(())
    };
    timeout(SILENCE, read).await??;
    if !answer.starts_with(b"HTTP/1.1 101") {
        return Err(io::Error::new(ErrorKind::InvalidData, "this is no SWAP server, or one without a key"));
    }
    let proven = handshake::call(stream, &node.key, &node.base).await?;
    Ok((*proven.base != *node.base).then_some(proven))
}

/// Carries questions and watches the peer until the connection breaks; says why it did.
async fn talk(
    node: &Arc<Node>,
    link: &Link,
    mut asked: mpsc::Receiver<Asked>,
    proven: Proven<TcpStream>,
) -> Error {
    let base = &link.base;
    let Proven { stream, mut inbound, mut outbound, .. } = proven;
    let (mut reader, mut writer) = tokio::io::split(stream);
    let waiting = Waiting::default();
    let lock = |waiting: &Waiting, id, sender| {
        waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(id, sender);
    };
    let write = async {
        let mut id = 0;
        while let Some((call, sender)) = asked.recv().await {
            id += 1;
            lock(&waiting, id, sender);
            outbound.write(&mut writer, &Numbered { id, body: call }).await?;
        }
        Ok::<_, io::Error>(())
    };
    let read = async {
        loop {
            let Numbered { id, body } = inbound.read::<Numbered<Answer>>(&mut reader).await?;
            let sender = waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
            // Whoever asked may have given up.
            let _ = sender.map(|sender| sender.send(body));
        }
    };
    let watch = watch(node, base, link);
    let lost = |source: io::Error| Error::Unreachable { place: base.to_string(), source: source.into() };
    tokio::select! {
        biased;
        result = write => lost(result.err().unwrap_or_else(|| ErrorKind::BrokenPipe.into())),
        result = read => { let result: io::Result<()> = result; lost(result.err().unwrap_or_else(|| ErrorKind::BrokenPipe.into())) }
        error = watch => error,
    }
}

/// Learns every change of the peer's inventory; ends when the peer falls silent.
async fn watch(node: &Arc<Node>, base: &Arc<str>, link: &Link) -> Error {
    let (mut since, mut compared) = (None, None::<Instant>);
    loop {
        // Who asks without a version is answered at once.
        let compare = compared.is_none_or(|moment| moment.elapsed() >= clocks::COMPARE_EVERY);
        if compare {
            since = None;
        }
        let asked = node.clock.now();
        match link.ask_within(Call::Watch { since }, SILENCE).await {
            Ok(Answer::Inventory(inventory)) if *inventory.base == **base => {
                since = Some(inventory.version);
                if let Some(theirs) = inventory.time.filter(|_| compare) {
                    node.note_clock(base, clocks::ahead(asked, theirs, node.clock.now()));
                }
                if compare {
                    compared = Some(Instant::now());
                }
                let newer = node.learn(base, *inventory);
                if !newer.is_empty() {
                    serve::adopt_all(Arc::clone(node), newer).await;
                }
            }
            Ok(Answer::Same) => {}
            Ok(_) => {
                return Error::Foreign { place: base.to_string(), reason: "no inventory came".to_owned() };
            }
            Err(error) => return error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::Namespace;

    #[test]
    fn an_error_keeps_its_status_on_the_way_from_server_to_server() {
        let name = |name: &str| Namespace::new(name).unwrap();
        for (error, status) in [
            (Error::io("make the folder", "/disk1/c/d")(io::Error::other("gone")), 500),
            (Error::away("somebody is away"), 503),
            (Error::refused("it is full"), 409),
            (Error::Overlap { namespace: name("a"), other: name("a/b") }, 409),
            (Error::NoCollection { namespace: "a".to_owned() }, 404),
            (Error::Unreachable { place: "x".to_owned(), source: "gone".into() }, 503),
        ] {
            assert_eq!(error.status(), status, "{error}");
            let arrived = unrefused("http://x", serve::refusal(&error)).unwrap_err();
            assert_eq!(arrived.status(), status, "{error} became {arrived}");
        }
    }
}
