//! WARC files made in memory.

use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;

/// A record as plain bytes.
pub(crate) fn record(kind: &str, id: u64, uri: &str, fields: &str, block: &[u8]) -> Vec<u8> {
    let content_type = match kind {
        "response" | "request" | "revisit" => "application/http",
        _ => "text/plain",
    };
    let head = format!(
        "WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:uuid:{id}>\r\nWARC-Date: 2026-01-02T03:04:05Z\r\n\
         WARC-Target-URI: {uri}\r\nContent-Type: {content_type}\r\n{fields}Content-Length: {}\r\n\r\n",
        block.len()
    );
    [head.as_bytes(), block, b"\r\n\r\n"].concat()
}

/// A response with a body.
pub(crate) fn response(id: u64, uri: &str, fields: &str, body: &[u8]) -> Vec<u8> {
    let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nServer: test\r\n\r\n";
    record("response", id, uri, fields, &[head, body].concat())
}

/// A request.
pub(crate) fn request(
    id: u64,
    uri: &str,
    fields: &str,
    method: &str,
    content_type: &str,
    body: &[u8],
) -> Vec<u8> {
    let head = format!(
        "{method} /x HTTP/1.1\r\nHost: e.com\r\nReferer: http://r.example/\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    record("request", id, uri, fields, &[head.as_bytes(), body].concat())
}

/// One gzip member.
pub(crate) fn member(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(bytes).unwrap();
    gzip.finish().unwrap()
}

/// Bytes that do not compress, the same for the same seed.
pub(crate) fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    (0..len.div_ceil(8)).flat_map(|_| next()).take(len).collect()
}
