//! A server that says what it is told to say, whatever it is asked.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::answer::Ending;

/// Replies with the same bytes to every connection, once it has read a request head (or 64 KiB). Ends when dropped.
#[derive(Debug)]
pub struct RawServer {
    addr: SocketAddr,
    connections: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

impl RawServer {
    /// The bytes, then the connection is closed.
    pub async fn replying(bytes: impl Into<Vec<u8>>) -> std::io::Result<Self> {
        Self::ending(bytes, Ending::Close).await
    }

    /// The bytes, then the ending.
    pub async fn ending(bytes: impl Into<Vec<u8>>, ending: Ending) -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let addr = listener.local_addr()?;
        let bytes: Arc<[u8]> = bytes.into().into();
        let connections = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&connections);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(reply(stream, Arc::clone(&bytes), ending));
            }
        });
        Ok(Self { addr, connections, task })
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Connections so far.
    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }
}

impl Drop for RawServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn reply(mut stream: TcpStream, bytes: Arc<[u8]>, ending: Ending) {
    let mut read = Vec::new();
    while !read.windows(4).any(|window| window == b"\r\n\r\n") && read.len() < 64 * 1024 {
        if !matches!(stream.read_buf(&mut read).await, Ok(count) if count > 0) {
            return;
        }
    }
    if stream.write_all(&bytes).await.is_err() {
        return;
    }
    match ending {
        Ending::Close => {}
        Ending::Reset => {
            let _ = stream.set_zero_linger();
        }
        Ending::Silence => {
            let mut ignored = [0; 1024];
            while matches!(stream.read(&mut ignored).await, Ok(count) if count > 0) {}
        }
    }
}
