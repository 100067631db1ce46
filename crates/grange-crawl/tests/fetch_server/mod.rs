//! A server that does exactly as it is told, and a client for it.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use grange_base::Clock;
use grange_crawl::fetch::{Fetched, Fetcher, Request, Settings};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::net::TcpStream;
use url::Url;

/// What the server does after a request.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Sends bytes.
    Send(Vec<u8>),
    /// Sends without end.
    Flood,
    /// Closes the connection in order.
    Close,
    /// Breaks it.
    Reset,
    /// Says nothing more and keeps it open.
    Hang,
    /// Waits for the next request.
    Next,
}

pub(crate) fn send(text: &str) -> Act {
    Act::Send(text.as_bytes().to_vec())
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) connections: Arc<AtomicUsize>,
    pub(crate) requests: Arc<std::sync::Mutex<Vec<Vec<u8>>>>,
}

impl Server {
    /// Each connection gets the same acts: those up to `Next` after the first request, and so on.
    pub(crate) async fn start(acts: Vec<Act>) -> Server {
        Server::with(move |_| acts.clone()).await
    }

    /// The acts depend on the number of the connection, from 0.
    pub(crate) async fn with(script: impl Fn(usize) -> Vec<Act> + Send + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let requests = Arc::new(std::sync::Mutex::new(Vec::new()));
        let (count, seen) = (Arc::clone(&connections), Arc::clone(&requests));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let number = count.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve(stream, script(number), Arc::clone(&seen)));
            }
        });
        Server { address, connections, requests }
    }

    pub(crate) fn url(&self, path: &str) -> Url {
        Url::parse(&format!("http://{}{path}", self.address)).unwrap()
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        let requests = self.requests.lock().unwrap();
        requests.iter().map(|request| String::from_utf8_lossy(request).into_owned()).collect()
    }
}

async fn serve(mut stream: TcpStream, acts: Vec<Act>, seen: Arc<std::sync::Mutex<Vec<Vec<u8>>>>) {
    if !read_request(&mut stream, &seen).await {
        return;
    }
    for act in acts {
        match act {
            Act::Send(bytes) => {
                if stream.write_all(&bytes).await.is_err() {
                    return;
                }
            }
            Act::Flood => {
                let block = vec![b'x'; 64 << 10];
                while stream.write_all(&block).await.is_ok() {}
                return;
            }
            Act::Close => return,
            Act::Reset => {
                let _ = stream.set_zero_linger();
                return;
            }
            Act::Hang => std::future::pending::<()>().await,
            Act::Next => {
                if !read_request(&mut stream, &seen).await {
                    return;
                }
            }
        }
    }
}

/// Reads one request, with its body if it says how long that is.
pub(crate) async fn read_request(
    stream: &mut (impl AsyncReadExt + Unpin),
    seen: &Arc<std::sync::Mutex<Vec<Vec<u8>>>>,
) -> bool {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => request.push(byte),
            Err(_) => return false,
        }
    }
    let text = String::from_utf8_lossy(&request).to_lowercase();
    let length =
        text.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    if stream.read_exact(&mut body).await.is_err() {
        return false;
    }
    request.extend(body);
    seen.lock().unwrap().push(request);
    true
}

/// The default settings, with loopback allowed: the servers of these tests are there.
pub(crate) fn settings() -> Settings {
    Settings {
        contact_url: "http://operator.example/crawl".to_owned(),
        allow_networks: vec!["127.0.0.0/8".parse().unwrap()],
        ..Settings::default()
    }
}

/// A fetcher and the folder it spills to.
pub(crate) struct Client {
    pub(crate) fetcher: Fetcher,
    pub(crate) scratch: TempDir,
}

impl Client {
    pub(crate) fn new(settings: &Settings) -> Client {
        let scratch = TempDir::new().unwrap();
        let fetcher = Fetcher::new(settings, scratch.path(), Clock::system()).unwrap();
        Client { fetcher, scratch }
    }

    pub(crate) async fn get(&self, url: Url) -> Fetched {
        self.fetcher.fetch(&Request::get(url)).await.unwrap()
    }
}

pub(crate) fn text(fetched: &mut Fetched) -> String {
    String::from_utf8_lossy(&fetched.content_bytes(u64::MAX).unwrap()).into_owned()
}
