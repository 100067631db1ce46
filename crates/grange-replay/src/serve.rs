//! Answering on a port of its own until told to stop.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::Request;
use grange_base::Shutdown;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::Service as _;

/// Connections at a time: browsers open six per host, and through a proxy some dozens.
const CONNECTIONS_MAX: usize = 4096;
/// A client that has sent no whole head or handshake by then holds the connection on purpose, or has gone to sleep.
pub(crate) const HEAD_WAIT: Duration = Duration::from_secs(30);
/// Out of files, the next connection is as hopeless for a moment.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Answers until shutdown, then finishes the requests under way. Access rules see the addresses of connections.
pub async fn serve(listener: TcpListener, routes: Router, shutdown: Shutdown) -> io::Result<()> {
    let mut door = Door::new(listener);
    let connections = GracefulShutdown::new();
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_WAIT);
    while let Some((stream, address, place)) = door.next(&shutdown).await {
        let routes = routes.clone();
        let service = service_fn(move |request: Request<Incoming>| {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(ConnectInfo(address));
            routes.clone().call(request)
        });
        let connection = connections.watch(http.serve_connection(TokioIo::new(stream), service));
        tokio::spawn(async move {
            let _place = place;
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection broke off");
            }
        });
    }
    drop(door);
    connections.shutdown().await;
    Ok(())
}

/// Where connections come in, so many at a time.
pub(crate) struct Door {
    listener: TcpListener,
    room: Arc<Semaphore>,
}

impl Door {
    pub(crate) fn new(listener: TcpListener) -> Self {
        Self { listener, room: Arc::new(Semaphore::new(CONNECTIONS_MAX)) }
    }

    /// The next connection and its place among those at a time; `None` after shutdown.
    pub(crate) async fn next(
        &mut self,
        shutdown: &Shutdown,
    ) -> Option<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
        let take = async {
            let place = Arc::clone(&self.room).acquire_owned().await.ok()?;
            loop {
                match self.listener.accept().await {
                    Ok((stream, address)) => {
                        // Heads and small bodies go out at once instead of waiting for more.
                        let _ = stream.set_nodelay(true);
                        return Some((stream, address, place));
                    }
                    Err(error) => {
                        // Out of files, or a client that left at once: others may still come.
                        tracing::warn!(%error, "a connection could not be taken");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                }
            }
        };
        tokio::select! {
            () = shutdown.wait() => None,
            taken = take => taken,
        }
    }
}
