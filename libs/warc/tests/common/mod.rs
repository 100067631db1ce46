//! Makes archive files by hand, sound and broken, so that every damage is tested without foreign samples.
#![allow(dead_code, unreachable_pub)]

pub mod entry;

use std::fmt::Write as _;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use warc::{Algorithm, Digest, Reader};

/// The block of page `number`: an HTTP response.
pub fn page(number: u32) -> Vec<u8> {
    let body = format!(
        "<html><title>Page {number}</title><p>{}</p></html>",
        "lorem ipsum ".repeat(number as usize % 7 + 3)
    );
    format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n{body}", body.len())
        .into_bytes()
}

/// The URI of page `number`.
pub fn uri(number: u32) -> String {
    format!("http://example.org/{number}")
}

/// A sound header with the lines in `extra` added.
pub fn header(number: u32, length: &str, extra: &str) -> String {
    format!(
        "WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-{number:012}>\r\n\
         WARC-Date: 2026-01-02T03:04:05Z\r\nWARC-Target-URI: {}\r\n\
         Content-Type: application/http; msgtype=response\r\nContent-Length: {length}\r\n{extra}\r\n",
        uri(number)
    )
}

/// A sound record.
pub fn record(number: u32) -> Vec<u8> {
    let block = page(number);
    let digest = format!("WARC-Block-Digest: {}\r\n", Digest::of(Algorithm::Sha1, &block));
    join(&[header(number, &block.len().to_string(), &digest).as_bytes(), &block, b"\r\n\r\n"])
}

/// A record whose `Content-Length` says `length`.
pub fn record_of_length(number: u32, length: &str) -> Vec<u8> {
    join(&[header(number, length, "").as_bytes(), &page(number), b"\r\n\r\n"])
}

pub fn join(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

/// A gzip member.
pub fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(6));
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

/// A zstd frame with checksum.
pub fn zstd(plain: &[u8], dictionary: &[u8]) -> Vec<u8> {
    let mut compressor = zstd::bulk::Compressor::with_dictionary(3, dictionary).unwrap();
    compressor.include_checksum(true).unwrap();
    compressor.compress(plain).unwrap()
}

/// A skippable zstd frame.
pub fn skippable(nibble: u8, content: &[u8]) -> Vec<u8> {
    join(&[&[0x50 | nibble, 0x2a, 0x4d, 0x18], &(content.len() as u32).to_le_bytes(), content])
}

/// An ARC record with a header line.
pub fn arc(line: &str, block: &[u8]) -> Vec<u8> {
    join(&[line.as_bytes(), b"\n", block, b"\n"])
}

/// The `filedesc` record of an ARC file.
pub fn filedesc() -> Vec<u8> {
    let block = "1 0 Test\nURL IP-address Archive-date Content-type Archive-length\n";
    arc(&format!("filedesc://test.arc 0.0.0.0 20260102030405 text/plain {}", block.len()), block.as_bytes())
}

/// A sound ARC record.
pub fn arc_page(number: u32) -> Vec<u8> {
    let block = page(number);
    arc(&format!("{} 192.0.2.1 20260102030405 text/html {}", uri(number), block.len()), &block)
}

/// What reading gave.
#[derive(Debug, PartialEq, Eq)]
pub struct Seen {
    /// The last part of each record's URI.
    pub pages: Vec<String>,
    /// The codes of all problems, in order.
    pub kinds: Vec<&'static str>,
}

/// Reads all records with their HTTP heads, digests and ends.
pub fn read(mut reader: Reader) -> Seen {
    let mut seen = Seen { pages: Vec::new(), kinds: Vec::new() };
    while let Some(mut record) = reader.next().unwrap() {
        record.http().unwrap();
        record.digest_check().unwrap();
        record.finish().unwrap();
        let uri = String::from_utf8_lossy(record.target_uri().unwrap_or(b"?")).into_owned();
        seen.pages.push(uri.rsplit('/').next().unwrap().to_owned());
        seen.kinds.extend(record.problems().iter().map(|problem| problem.kind.code()));
    }
    seen.kinds.extend(reader.problems().iter().map(|problem| problem.kind.code()));
    seen
}

/// Checks the pages read and the kinds of problems, both as words, and tells all cases that differ.
pub fn check_all(cases: &[(&str, Vec<u8>, &str, &str)]) {
    let mut wrong = String::new();
    for (name, bytes, pages, kinds) in cases {
        let readers = [
            ("memory", Reader::from_bytes(&bytes[..])),
            ("a file", Reader::seekable(std::io::Cursor::new(bytes.clone()))),
        ];
        for (from, reader) in readers {
            let Seen { pages: got_pages, kinds: got_kinds } = read(reader.unwrap());
            let got = (got_pages.join(" "), got_kinds.join(" "));
            if (got.0.as_str(), got.1.as_str()) != (*pages, *kinds) {
                let expected = format!("{pages:?} {kinds:?}");
                writeln!(
                    wrong,
                    "{name} from {from}:\n  expected {expected}\n  got      {:?} {:?}",
                    got.0, got.1
                )
                .unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// The bytes with the first `from` replaced by `to`.
pub fn replaced(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    let at = position(bytes, from.as_bytes());
    join(&[&bytes[..at], to.as_bytes(), &bytes[at + from.len()..]])
}

/// Where `needle` first stands.
pub fn position(bytes: &[u8], needle: &[u8]) -> usize {
    bytes.windows(needle.len()).position(|window| window == needle).expect("the text to replace")
}
