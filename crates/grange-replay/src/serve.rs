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
    let door = Door::new(listener);
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
        &self,
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

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::get;
    use grange_base::Trigger;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::sync::Notify;

    async fn listening() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    }

    /// The clock stands still and jumps when nothing else is left to do.
    #[tokio::test(start_paused = true)]
    async fn whoever_sends_half_a_head_is_let_go() {
        let (listener, address) = listening().await;
        let stop = Trigger::new();
        let served = tokio::spawn(serve(listener, Router::new(), stop.listener()));
        for sent in ["", "GET / HT", "GET / HTTP/1.1\r\nHost: h\r\n"] {
            let mut slow = TcpStream::connect(address).await.unwrap();
            slow.write_all(sent.as_bytes()).await.unwrap();
            let mut answer = Vec::new();
            slow.read_to_end(&mut answer).await.unwrap();
            let answer = String::from_utf8_lossy(&answer);
            assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{sent:?}: {answer}");
        }
        stop.pull();
        served.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_request_under_way_is_finished_after_the_stop() {
        let (listener, address) = listening().await;
        let (stop, asked, go) = (Trigger::new(), Arc::new(Notify::new()), Arc::new(Notify::new()));
        let slow = {
            let (asked, go) = (asked.clone(), go.clone());
            move |ConnectInfo(from): ConnectInfo<SocketAddr>| async move {
                asked.notify_one();
                go.notified().await;
                format!("to {}", from.ip())
            }
        };
        let routes = Router::new().route("/", get(slow));
        let served = tokio::spawn(serve(listener, routes, stop.listener()));
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n").await.unwrap();
        asked.notified().await;
        stop.pull();
        go.notify_one();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("to 127.0.0.1"), "{answer}");
        served.await.unwrap().unwrap();
        assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
    }
}
