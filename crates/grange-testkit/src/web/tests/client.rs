//! A client of a few lines that shows the bytes as they are.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// An answer taken apart.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Got {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    /// Transfer coding undone.
    pub body: Vec<u8>,
}

impl Got {
    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map_or("", |(_, value)| value)
    }
}

/// The bytes that come back until the server closes.
pub(super) async fn exchange(addr: SocketAddr, request: &str) -> Vec<u8> {
    let mut stream = TcpStream::connect(addr).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    // A reset ends the bytes as well.
    let _ = stream.read_to_end(&mut bytes).await;
    bytes
}

pub(super) async fn get(addr: SocketAddr, url: &str, headers: &str) -> Got {
    request(addr, "GET", url, headers, "").await
}

pub(super) async fn request(addr: SocketAddr, method: &str, url: &str, headers: &str, body: &str) -> Got {
    let rest = url.split_once("://").unwrap().1;
    let (host, path) = rest.split_at(rest.find('/').unwrap());
    let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    let text = format!(
        "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{length}{headers}\r\n{body}"
    );
    take_apart(&exchange(addr, &text).await).unwrap_or_else(|| panic!("{url}: the answer is no HTTP"))
}

pub(super) fn take_apart(bytes: &[u8]) -> Option<Got> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut response = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(start) = response.parse(bytes).ok()? else { return None };
    let headers: Vec<_> = response
        .headers
        .iter()
        .map(|header| (header.name.to_owned(), String::from_utf8_lossy(header.value).into_owned()))
        .collect();
    let mut got = Got { status: response.code?, headers, body: bytes[start..].to_vec() };
    if got.header("transfer-encoding") == "chunked" {
        got.body = unchunk(&got.body)?;
    } else if !got.header("content-length").is_empty() {
        let length: usize = got.header("content-length").trim().parse().ok()?;
        if length != got.body.len() {
            return None;
        }
    }
    Some(got)
}

fn unchunk(mut bytes: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let httparse::Status::Complete((start, size)) = httparse::parse_chunk_size(bytes).ok()? else {
            return None;
        };
        if size == 0 {
            return Some(body);
        }
        let end = start + size as usize;
        body.extend_from_slice(bytes.get(start..end)?);
        bytes = bytes.get(end..)?.strip_prefix(b"\r\n")?;
    }
}
