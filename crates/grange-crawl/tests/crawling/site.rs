//! A server of a few pages that a test writes itself: every request is handed to it, whatever its host.

use std::collections::BTreeMap;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::net::TcpListener;

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) method: String,
    /// Host and path.
    pub(crate) url: String,
    /// By name in lower case.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

/// What is sent back; the connection is closed afterwards.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    status: u16,
    headers: String,
    body: String,
    /// What Content-Length says beyond the body.
    missing: usize,
}

impl Reply {
    pub(crate) fn page(body: impl Into<String>) -> Reply {
        let headers = "Content-Type: text/html\r\n".to_owned();
        Reply { status: 200, headers, body: body.into(), missing: 0 }
    }

    /// A document that nobody looks for links in.
    pub(crate) fn bytes(body: impl Into<String>) -> Reply {
        let headers = "Content-Type: application/octet-stream\r\n".to_owned();
        Reply { headers, ..Reply::page(body) }
    }

    /// A page with links.
    pub(crate) fn links(title: &str, links: impl IntoIterator<Item = String>) -> Reply {
        let links: Vec<_> = links.into_iter().map(|url| format!("<a href=\"{url}\">x</a>")).collect();
        let links = links.join("\n");
        Reply::page(format!("<html><title>{title}</title>\n{links}</html>"))
    }

    /// More of a page.
    pub(crate) fn and(mut self, text: &str) -> Reply {
        self.body.push_str(text);
        self
    }

    pub(crate) fn picture(body: impl Into<String>) -> Reply {
        Reply { headers: "Content-Type: image/png\r\n".to_owned(), ..Reply::page(body) }
    }

    pub(crate) fn status(status: u16) -> Reply {
        Reply { status, ..Reply::page(format!("<html>{status}</html>")) }
    }

    pub(crate) fn with(mut self, header: &str) -> Reply {
        self.headers.push_str(header);
        self.headers.push_str("\r\n");
        self
    }

    /// Breaks off before the end that it promised.
    pub(crate) fn cut(mut self) -> Reply {
        self.missing = 1000;
        self
    }
}

/// Serves until it is dropped.
pub(crate) struct Site {
    addr: SocketAddr,
    log: Arc<Mutex<Vec<String>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Site {
    pub(crate) async fn serve<F, R>(answer: F) -> Site
    where
        F: Fn(Asked) -> R + Send + Sync + 'static,
        R: Future<Output = Option<Reply>> + Send,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        Site::serve_at(listener, answer)
    }

    /// None from `answer` closes the connection without a word.
    pub(crate) fn serve_at<F, R>(listener: TcpListener, answer: F) -> Site
    where
        F: Fn(Asked) -> R + Send + Sync + 'static,
        R: Future<Output = Option<Reply>> + Send,
    {
        let addr = listener.local_addr().expect("it is bound");
        let log = Arc::new(Mutex::new(Vec::new()));
        let answer = Arc::new(answer);
        let asked = Arc::clone(&log);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (answer, log) = (Arc::clone(&answer), Arc::clone(&asked));
                tokio::spawn(async move { converse(stream, &*answer, &log).await });
            }
        });
        Site { addr, log, task }
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Every request so far: method and URL.
    pub(crate) fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }

    pub(crate) fn total(&self) -> usize {
        self.log.lock().unwrap().len()
    }

    /// How often a URL was asked for.
    pub(crate) fn times(&self, url: &str) -> usize {
        self.log().iter().filter(|line| line.split_once(' ').is_some_and(|(_, asked)| asked == url)).count()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Answers one request.
pub(crate) async fn converse<R: Future<Output = Option<Reply>>>(
    stream: impl AsyncRead + AsyncWrite,
    answer: &impl Fn(Asked) -> R,
    log: &Mutex<Vec<String>>,
) -> Option<()> {
    let (reading, mut writing) = tokio::io::split(stream);
    let mut reading = BufReader::new(reading);
    let mut line = String::new();
    reading.read_line(&mut line).await.ok()?;
    let mut words = line.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reading.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reading.read_exact(&mut body).await.ok()?;
    let url = format!("{}{path}", headers.get("host")?);
    let body = String::from_utf8_lossy(&body).into_owned();
    log.lock().unwrap().push(format!("{method} {url}"));
    let Reply { status, headers, body, missing } = answer(Asked { method, url, headers, body }).await?;
    let length = body.len() + missing;
    let head =
        format!("HTTP/1.1 {status} X\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n");
    writing.write_all(format!("{head}{body}").as_bytes()).await.ok()?;
    writing.shutdown().await.ok()
}
