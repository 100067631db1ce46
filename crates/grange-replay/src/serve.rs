//! Answering on a port of its own until told to stop.

use std::io;
use std::net::SocketAddr;

use axum::Router;
use axum::serve::ListenerExt as _;
use grange_base::Shutdown;
use tokio::net::TcpListener;

/// Answers until shutdown, then finishes the requests under way. Access rules see the addresses of connections.
pub async fn serve(listener: TcpListener, routes: Router, shutdown: Shutdown) -> io::Result<()> {
    // Heads and small bodies go out at once instead of waiting for more.
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    let service = routes.into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, service).with_graceful_shutdown(async move { shutdown.wait().await }).await
}
