//! HTTP/1.1 on a connection loop of our own: a request that can be answered from memory is, in one write and without
//! waiting for anybody; an idle connection holds no buffers.

mod admin;
pub(crate) mod answer;
mod body;
mod conn;
pub(crate) mod get;
mod page;
mod put;
pub(crate) mod range;
mod record;
pub(crate) mod request;
mod send;
mod target;
mod types;

use std::net::TcpStream as StdStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use crate::node::Node;
use crate::server::Callers;
use crate::simulation;

/// A connection, and its place among those allowed.
#[derive(Debug)]
pub(crate) struct Accepted {
    stream: StdStream,
    place: Place,
}

#[derive(Debug)]
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Accepts for ever, and deals out to the workers in turn.
pub(crate) async fn accept(listener: TcpListener, workers: &[mpsc::UnboundedSender<Accepted>], most: usize) {
    let count = Arc::new(AtomicUsize::new(0));
    for turn in 0_usize.. {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of file handles, usually: some connection has to end first.
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let place = Place(Arc::clone(&count));
        if count.fetch_add(1, Ordering::Relaxed) >= most {
            // Closed at once: there is no room even to be polite.
            continue;
        }
        let _ = stream.set_nodelay(true);
        if let Ok(stream) = stream.into_std() {
            let _ = workers[turn % workers.len()].send(Accepted { stream, place });
        }
    }
}

/// Serves the connections dealt to one worker.
pub(crate) async fn serve_all(
    node: Arc<Node>,
    callers: Callers,
    mut dealt: mpsc::UnboundedReceiver<Accepted>,
) {
    while let Some(Accepted { stream, place }) = dealt.recv().await {
        let Ok(stream) = TcpStream::from_std(stream) else { continue };
        let (node, callers) = (Arc::clone(&node), callers.clone());
        tokio::spawn(async move {
            let _place = place;
            if simulation::active() {
                // A thread of workers ends with all its connections; here the server ends and the thread does not.
                let shutdown = callers.shutdown().clone();
                shutdown.or(Box::pin(conn::serve(node, callers, stream))).await;
            } else {
                conn::serve(node, callers, stream).await;
            }
        });
    }
}
