//! Memory stays bounded whatever a file claims. Alone in its process, so that it can measure itself.
#![cfg(target_os = "linux")]

mod common;

use std::io::{self, Read, Write as _};

use common::{header, skippable};
use warc::Reader;

/// The most memory this process has held, in kB.
fn peak_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Bytes made as they are read.
struct Made {
    head: Vec<u8>,
    at: usize,
    fill: &'static [u8],
    left: u64,
}

impl Read for Made {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.at < self.head.len() {
            let n = (self.head.len() - self.at).min(buf.len());
            buf[..n].copy_from_slice(&self.head[self.at..self.at + n]);
            self.at += n;
            return Ok(n);
        }
        let n = self.left.min(buf.len() as u64) as usize;
        for (at, b) in buf[..n].iter_mut().enumerate() {
            *b = self.fill[at % self.fill.len()];
        }
        self.left -= n as u64;
        Ok(n)
    }
}

fn drain(name: &str, input: impl Read + Send + 'static) {
    let mut reader = Reader::new(input).unwrap();
    let mut records = 0_u64;
    while let Some(mut record) = reader.next().unwrap() {
        io::copy(&mut record.content().unwrap(), &mut io::sink()).unwrap();
        record.finish().unwrap();
        records += 1;
    }
    let peak = peak_kb();
    assert!(peak < 64 * 1024, "{name}: {peak} kB after {records} records");
}

#[test]
fn no_file_takes_more_than_64_mb() {
    const LONG: u64 = 70 << 20;
    let made = |head: Vec<u8>, fill: &'static [u8]| Made { head, at: 0, fill, left: LONG };
    drain("a huge block", made(header(1, "1000000000000", "").into_bytes(), b"x"));
    drain("a block without length", made(header(1, "", "").into_bytes(), b"lorem\n"));
    drain("a header without end", made(b"WARC/1.1\r\nX: ".to_vec(), b"x"));
    drain("header lines without end", made(b"WARC/1.1\r\n".to_vec(), b"X-Y: z\r\n"));
    drain("an HTTP head without end", made(header(1, "100000000", "").into_bytes(), b"HTTP/1.1 200 OK\r\n"));
    drain(
        "an ARC line without end",
        made(b"filedesc://x 0.0.0.0 20260102030405 text/plain 0\n".to_vec(), b"y"),
    );
    drain("garbage", made(Vec::new(), b"no record\n"));
    drain("zeros after a member", made(common::gzip(&common::record(1)), b"\0"));
    drain("half magics", made(common::gzip(&common::record(1)), &[0x1f, 0x8b, 8, 0]));
    drain("empty lines", made(common::record(1), b"\r\n"));
    let mut dictionary = skippable(13, b"");
    dictionary[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
    drain("a dictionary of 4 GB", made(dictionary, b"x"));

    // Much of nothing in a member, a frame, and a brotli stream of a few bytes each.
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(9));
    encoder.write_all(header(1, "300000000", "").as_bytes()).unwrap();
    io::copy(&mut io::repeat(0).take(300_000_000), &mut encoder).unwrap();
    drain("a bomb of gzip", io::Cursor::new(encoder.finish().unwrap()));

    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
    encoder.window_log(23).unwrap();
    encoder.write_all(header(1, "300000000", "").as_bytes()).unwrap();
    io::copy(&mut io::repeat(0).take(300_000_000), &mut encoder).unwrap();
    drain("a bomb of zstd", io::Cursor::new(encoder.finish().unwrap()));

    let mut body = Vec::new();
    let mut encoder = brotli::CompressorWriter::new(&mut body, 1 << 16, 5, 24);
    io::copy(&mut io::repeat(0).take(50_000_000), &mut encoder).unwrap();
    drop(encoder);
    // What the compressor took does not count.
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let head = "HTTP/1.1 200 OK\r\nContent-Encoding: br\r\n\r\n";
    let mut file = header(1, &(head.len() + body.len()).to_string(), "").into_bytes();
    file.extend_from_slice(head.as_bytes());
    file.extend_from_slice(&body);
    drain("a bomb of brotli", io::Cursor::new(file));
}
