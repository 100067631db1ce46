//! Listening and answering until told to stop.

use std::io;
use std::net::SocketAddr;

use axum::Router;
use grange_base::Shutdown;
use tokio::net::TcpListener;

/// An address that could not be listened on.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}; {}", advice(source, key))]
pub struct ListenError {
    address: SocketAddr,
    /// The setting that chose the address.
    key: &'static str,
    #[source]
    source: io::Error,
}

fn advice(error: &io::Error, key: &str) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            format!("another program has this port: choose another with --set {key}=ADDRESS:PORT")
        }
        io::ErrorKind::PermissionDenied => {
            format!("ports below 1024 need special rights: choose a higher one with --set {key}=ADDRESS:PORT")
        }
        io::ErrorKind::AddrNotAvailable => {
            format!("this machine does not have this address: choose another with --set {key}=ADDRESS:PORT")
        }
        _ => format!("choose another address with --set {key}=ADDRESS:PORT"),
    }
}

/// Takes the port. Done before anything else starts, so that a port in use stops the start and nothing else.
pub async fn listen(address: SocketAddr, key: &'static str) -> Result<TcpListener, ListenError> {
    TcpListener::bind(address).await.map_err(|source| ListenError { address, key, source })
}

/// Answers until shutdown, then finishes the requests under way.
pub async fn serve(listener: TcpListener, routes: Router, shutdown: Shutdown) -> io::Result<()> {
    axum::serve(listener, routes).with_graceful_shutdown(async move { shutdown.wait().await }).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_port_in_use_is_told_with_the_setting_to_change() {
        let taken = listen(SocketAddr::from(([127, 0, 0, 1], 0)), "web.listen").await.unwrap();
        let address = taken.local_addr().unwrap();
        let error = listen(address, "web.listen").await.unwrap_err().to_string();
        assert_eq!(
            error,
            format!(
                "cannot listen on {address}; another program has this port: choose another with --set web.listen=ADDRESS:PORT"
            )
        );
    }
}
