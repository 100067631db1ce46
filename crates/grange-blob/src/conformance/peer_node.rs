//! A node for tests: a real TCP server that answers for one store, and a token of its own.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;

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
use crate::peer::serve::{Answer, answer};
use crate::peer::{Peer, PeerAuth, SignedRequest};

const MOUNT: &str = "/peer/v1/blob/one";

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
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (connections, requests) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let counts = (Arc::clone(&connections), Arc::clone(&requests));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                stream.set_nodelay(true).unwrap();
                let (blob, (connections, requests)) = (Arc::clone(&blob), counts.clone());
                let service = service_fn(move |request| {
                    requests.fetch_add(1, SeqCst);
                    let blob = Arc::clone(&blob);
                    async move { Ok::<_, Infallible>(admit(&blob, request).await) }
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
        Self { address, connections, requests, task }
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
async fn admit(blob: &Arc<dyn Blob>, request: Request<Incoming>) -> Answer {
    let token = Token("secret");
    let authorization = request.headers().get("authorization").unwrap().to_str().unwrap().to_owned();
    let [_, nonce, proof] = authorization.split(' ').collect::<Vec<_>>()[..] else {
        panic!("{authorization}")
    };
    let target = request.uri().path_and_query().unwrap().as_str().to_owned();
    if proof != token.proof(&format!("{} {target} {nonce}", request.method())) {
        let mut refused = Response::new(Full::default().map_err(|never| match never {}).boxed_unsync());
        *refused.status_mut() = StatusCode::UNAUTHORIZED;
        return refused;
    }
    let path = request.uri().path().strip_prefix(MOUNT).unwrap().to_owned();
    let mut response = answer(blob, &path, request).await;
    let proof = token.proof(&format!("{nonce} {}", response.status().as_u16()));
    response.headers_mut().insert("grange-peer-proof", proof.parse().unwrap());
    response
}
