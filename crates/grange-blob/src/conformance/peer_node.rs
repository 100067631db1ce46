//! A node for tests: a real TCP server that answers for one store, and a token of its own.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use grange_base::Clock;
use grange_testkit::TcpFault;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::sums;
use crate::blob::Blob;
use crate::peer::serve::{Answer, Served};
use crate::peer::{Nodes, Offers, Peer, PeerAuth, Reach, SignedRequest};

const MOUNT: &str = "/peer/v1/blob/one";

/// How long an upload waits for its sender in tests: longer than picking it up takes, short enough to be waited for.
const LINGER: Duration = Duration::from_secs(10);

/// The register of nodes of one test.
#[derive(Clone, Debug, Default)]
pub(super) struct Register(Arc<Mutex<HashMap<String, String>>>);

impl Register {
    /// The node is found at this address.
    pub(super) fn enter(&self, node: &str, address: SocketAddr) {
        self.0.lock().unwrap().insert(node.to_owned(), address.to_string());
    }
}

#[async_trait]
impl Nodes for Register {
    async fn address(&self, node: &str) -> Result<Option<String>, String> {
        Ok(self.0.lock().unwrap().get(node).cloned())
    }
}

/// Proves with a hash over a secret; grange-node has the real thing.
#[derive(Debug)]
pub(super) struct Token(pub(super) &'static str);

impl Token {
    fn proof(&self, text: &str) -> String {
        sums(format!("{} {text}", self.0).as_bytes()).sha256.unwrap().to_string()
    }
}

impl PeerAuth for Token {
    fn sign(&self, method: &str, target: &str) -> SignedRequest {
        let nonce = uuid::Uuid::new_v4().simple().to_string();
        let proof = self.proof(&format!("{method} {target} {nonce}"));
        SignedRequest { authorization: format!("Test {nonce} {proof}"), nonce }
    }

    fn proven(&self, nonce: &str, status: u16, proof: &str) -> bool {
        self.proof(&format!("{nonce} {status}")) == proof
    }
}

/// Serves until dropped.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) address: SocketAddr,
    pub(super) offers: Offers,
    /// Connections open now.
    connections: Arc<AtomicUsize>,
    /// Requests admitted so far.
    requests: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Drop for Node {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Node {
    pub(super) async fn start(blob: Arc<dyn Blob>) -> Self {
        Self::named("alone", blob, &Register::default()).await
    }

    /// A node with an id that others find in the register, and that finds others there.
    pub(super) async fn named(id: &'static str, blob: Arc<dyn Blob>, register: &Register) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        register.enter(id, address);
        let token = Arc::new(Token("secret"));
        let reach = Reach::new(Arc::new(register.clone()), token, Clock::system()).unwrap();
        let offers = Offers::new(id);
        let desk =
            Desk { id, served: Served::new(blob, Some(reach)).lingering(LINGER), offers: offers.clone() };
        let (connections, requests) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let counts = (Arc::clone(&connections), Arc::clone(&requests));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                stream.set_nodelay(true).unwrap();
                let (desk, (connections, requests)) = (desk.clone(), counts.clone());
                let service = service_fn(move |request| {
                    requests.fetch_add(1, SeqCst);
                    let desk = desk.clone();
                    async move { Ok::<_, Infallible>(desk.admit(request).await) }
                });
                let connection = hyper::server::conn::http1::Builder::new();
                let serving = connection.serve_connection(TokioIo::new(stream), service);
                connections.fetch_add(1, SeqCst);
                tokio::spawn(async move {
                    let _ = serving.await;
                    connections.fetch_sub(1, SeqCst);
                });
            }
        });
        Self { address, offers, connections, requests, task }
    }

    pub(super) fn requests(&self) -> usize {
        self.requests.load(SeqCst)
    }

    /// Cuts the wire and waits until the node has noticed.
    pub(super) async fn cut(&self, wire: &TcpFault) {
        wire.cut();
        grange_testkit::until("the node has lost its connections", || async {
            self.connections.load(SeqCst) == 0
        })
        .await;
    }

    pub(super) fn peer(&self) -> Peer {
        peer(self.address, "secret")
    }

    /// The same over a wire that can be cut.
    pub(super) async fn over_a_wire(&self) -> (TcpFault, Peer) {
        let wire = TcpFault::before(&self.address.to_string()).await;
        let peer = peer(wire.address(), "secret");
        (wire, peer)
    }
}

pub(super) fn peer(address: SocketAddr, secret: &'static str) -> Peer {
    Peer::new(&address.to_string(), MOUNT, Arc::new(Token(secret)), Clock::system()).unwrap()
}

/// What a node does around the store's answer: believe the request, prove the response.
#[derive(Clone)]
struct Desk {
    id: &'static str,
    served: Served,
    offers: Offers,
}

impl Desk {
    async fn admit(&self, request: Request<Incoming>) -> Answer {
        let token = Token("secret");
        let authorization = request.headers().get("authorization").unwrap().to_str().unwrap().to_owned();
        let [_, nonce, proof] = authorization.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{authorization}")
        };
        let target = request.uri().path_and_query().unwrap().as_str().to_owned();
        if proof != token.proof(&format!("{} {target} {nonce}", request.method())) {
            return plain(StatusCode::UNAUTHORIZED, String::new());
        }
        let path = request.uri().path().to_owned();
        let mut response = if path == "/peer/v1/hello" {
            plain(StatusCode::OK, format!("{{\"node\":\"{}\"}}", self.id))
        } else if let Some(offer) = path.strip_prefix("/peer/v1/offer/") {
            let at = offer.find('/').unwrap_or(offer.len());
            self.offers.answer(&offer[..at], &offer[at..], request).await
        } else {
            self.served.answer(path.strip_prefix(MOUNT).unwrap(), request).await
        };
        let proof = token.proof(&format!("{nonce} {}", response.status().as_u16()));
        response.headers_mut().insert("grange-peer-proof", proof.parse().unwrap());
        response
    }
}

fn plain(status: StatusCode, text: String) -> Answer {
    let mut answer =
        Response::new(Full::new(text.into()).map_err(|never: Infallible| match never {}).boxed_unsync());
    *answer.status_mut() = status;
    answer
}
