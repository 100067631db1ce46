//! Payload and content: transfer coding and content encodings, sound and lying.

mod common;

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};

use common::{gzip, header, join, zstd};
use warc::{Offered, Reader, Reassembly};

/// A response with those HTTP headers and that body.
fn response(headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\n{headers}\r\n");
    join(&[
        header(1, &(head.len() + body.len()).to_string(), "").as_bytes(),
        head.as_bytes(),
        body,
        b"\r\n\r\n",
    ])
}

fn deflate(plain: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::new(6));
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

fn zlib(plain: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::new(6));
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

fn brotli(plain: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    brotli::CompressorWriter::new(&mut out, 4096, 5, 20).write_all(plain).unwrap();
    out
}

fn chunked(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for piece in body.chunks(1000) {
        out.extend_from_slice(format!("{:X};ext=1\r\n", piece.len()).as_bytes());
        out.extend_from_slice(piece);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"0\r\nTrailer: x\r\n\r\n");
    out
}

#[test]
fn content_of_every_encoding() {
    let text = "A page of text that is long enough to be packed. ".repeat(200).into_bytes();
    let text = &text[..];
    let cut = |bytes: Vec<u8>| bytes[..bytes.len() * 2 / 3].to_vec();
    // Name, headers, body, whether the content is the text (or only its start), kinds.
    let cases: &[(&str, &str, Vec<u8>, bool, &str)] = &[
        ("plain", "", text.to_vec(), true, ""),
        ("identity", "Content-Encoding: identity\r\n", text.to_vec(), true, ""),
        ("gzip", "Content-Encoding: gzip\r\n", gzip(text), true, ""),
        ("x-gzip", "Content-Encoding: X-GZIP\r\n", gzip(text), true, ""),
        ("gzip with padding", "Content-Encoding: gzip\r\n", join(&[&gzip(text), &[0; 30]]), true, ""),
        (
            "two gzip members",
            "Content-Encoding: gzip\r\n",
            join(&[&gzip(&text[..99]), &gzip(&text[99..])]),
            true,
            "",
        ),
        ("deflate with zlib", "Content-Encoding: deflate\r\n", zlib(text), true, ""),
        ("deflate without", "Content-Encoding: deflate\r\n", deflate(text), true, ""),
        ("brotli", "Content-Encoding: br\r\n", brotli(text), true, ""),
        ("zstd", "Content-Encoding: zstd\r\n", zstd(text, &[]), true, ""),
        ("gzip in gzip", "Content-Encoding: gzip, gzip\r\n", gzip(&gzip(text)), true, ""),
        (
            "brotli in gzip",
            "Content-Encoding: br\r\nContent-Encoding: gzip\r\n",
            gzip(&brotli(text)),
            true,
            "",
        ),
        (
            "chunked gzip",
            "Transfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n",
            chunked(&gzip(text)),
            true,
            "",
        ),
        ("chunked", "transfer-encoding: Chunked\r\n", chunked(text), true, ""),
        ("gzip that is not", "Content-Encoding: gzip\r\n", text.to_vec(), true, "encoding-lie"),
        ("deflate that is not", "Content-Encoding: deflate\r\n", text.to_vec(), true, "encoding-lie"),
        ("brotli that is not", "Content-Encoding: br\r\n", text.to_vec(), true, "encoding-lie"),
        ("zstd that is not", "Content-Encoding: zstd\r\n", text.to_vec(), true, "encoding-lie"),
        ("only the inner one is a lie", "Content-Encoding: gzip, gzip\r\n", gzip(text), true, "encoding-lie"),
        ("unknown", "Content-Encoding: rot13\r\n", text.to_vec(), true, "unknown-encoding"),
        ("chunked that is not", "Transfer-Encoding: chunked\r\n", text.to_vec(), true, "not-chunked"),
        (
            "chunked, no last chunk",
            "Transfer-Encoding: chunked\r\n",
            {
                let whole = chunked(text);
                whole[..whole.len() - "0\r\nTrailer: x\r\n\r\n".len()].to_vec()
            },
            true,
            "missing-last-chunk",
        ),
        (
            "chunked, then raw",
            "Transfer-Encoding: chunked\r\n",
            join(&[b"5\r\n", &text[..5], b"\r\n", &text[5..]]),
            true,
            "broken-chunk",
        ),
        ("chunked, cut", "Transfer-Encoding: chunked\r\n", cut(chunked(text)), false, "broken-chunk"),
        (
            "gzip, cut",
            "Content-Encoding: gzip\r\n",
            {
                let noise: Vec<u8> =
                    (0..60_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
                cut(gzip(&join(&[text, &noise])))
            },
            false,
            "encoding-broken",
        ),
        ("empty gzip", "Content-Encoding: gzip\r\n", Vec::new(), false, ""),
    ];
    let mut wrong = String::new();
    for (name, headers, body, whole, kinds) in cases {
        for packed in [response(headers, body), gzip(&response(headers, body))] {
            let mut reader = Reader::from_bytes(packed).unwrap();
            let mut record = reader.next().unwrap().unwrap();
            let mut content = Vec::new();
            record.content().unwrap().read_to_end(&mut content).unwrap();
            record.finish().unwrap();
            let got =
                record.problems().iter().map(|problem| problem.kind.code()).collect::<Vec<_>>().join(" ");
            let right = if *whole {
                content == text
            } else {
                content.starts_with(&text[..content.len().min(text.len())])
            };
            if !right || got != *kinds {
                writeln!(wrong, "{name}: right {right}, {} bytes, {got}", content.len()).unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn segments_come_together() {
    let whole: Vec<u8> = (0..5000_u32).map(|n| (n % 251) as u8).collect();
    let id = "urn:uuid:00000000-0000-4000-8000-000000000001";
    let first = format!(
        "WARC/1.1\r\nWARC-Type: resource\r\nWARC-Record-ID: <{id}>\r\nWARC-Date: 2026\r\nWARC-Target-URI: urn:x\r\n\
         WARC-Segment-Number: 1\r\nContent-Length: 2000\r\n\r\n"
    );
    let later = |number: u32, from: usize, to: usize, extra: &str| {
        let head = format!(
            "WARC/1.1\r\nWARC-Type: continuation\r\nWARC-Record-ID: <urn:x:{number}>\r\nWARC-Date: 2026\r\n\
             WARC-Segment-Number: {number}\r\nWARC-Segment-Origin-ID: <{id}>\r\n{extra}Content-Length: {}\r\n\r\n",
            to - from
        );
        join(&[head.as_bytes(), &whole[from..to], b"\r\n\r\n"])
    };
    let file = join(&[
        &join(&[first.as_bytes(), &whole[..2000], b"\r\n\r\n"]),
        &common::record(9),
        &later(2, 2000, 3500, ""),
        &later(3, 3500, 5000, "WARC-Segment-Total-Length: 5000\r\n"),
    ]);
    let mut reader = Reader::from_bytes(file).unwrap();
    let mut assembly = Reassembly::new(id.as_bytes());
    let (mut out, mut offered) = (Vec::new(), Vec::new());
    while let Some(mut record) = reader.next().unwrap() {
        offered.push(assembly.offer(&mut record, &mut out).unwrap());
        record.finish().unwrap();
        assert_eq!(record.problems(), []);
    }
    assert_eq!(offered, [Offered::Taken, Offered::Foreign, Offered::Taken, Offered::Taken]);
    assert_eq!(assembly.is_complete(), Some(true));
    assert_eq!(out, whole);
}

#[test]
fn what_follows_a_head_too_long_to_be_read_is_the_body() {
    let filler = |len: usize| format!("X-Filler: {}\r\n", "x".repeat(1000)).repeat(len / 1012);
    for (len, found) in [(100 << 10, true), (300 << 10, true), (3 << 20, true), (5 << 20, false)] {
        let headers = format!("Content-Type: text/plain\r\nContent-Encoding: gzip\r\n{}", filler(len));
        let stored = response(&headers, &gzip(b"the body"));
        for packed in [stored.clone(), gzip(&stored)] {
            let mut reader = Reader::from_bytes(packed).unwrap();
            let mut record = reader.next().unwrap().unwrap();
            assert_eq!(
                record.http().unwrap().map(warc::HttpHead::status),
                found.then_some(Some(200)),
                "{len}"
            );
            let mut content = Vec::new();
            record.content().unwrap().read_to_end(&mut content).unwrap();
            assert_eq!(content == b"the body", found, "{len}");
        }
    }
    // A head and nothing else.
    let mut reader = Reader::from_bytes(response(&filler(300 << 10), b"")).unwrap();
    let mut record = reader.next().unwrap().unwrap();
    let mut content = Vec::new();
    record.content().unwrap().read_to_end(&mut content).unwrap();
    assert_eq!(content, b"");
}
