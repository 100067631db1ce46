//! Bodies unpacked as they arrive. Some servers pack without saying so, and some say so without packing.

use std::io::{self, Write};

use oaipmh::flow::BodyKind;
use zstd::stream::raw::{self, Operation};

/// A body's way back to plain bytes.
pub(crate) struct Unpacker {
    coding: Coding,
    plain_bytes: u64,
}

enum Coding {
    Plain,
    Gzip(Box<flate2::write::MultiGzDecoder<Vec<u8>>>),
    /// The zlib form, which is what the standard means.
    Deflate(Box<flate2::write::ZlibDecoder<Vec<u8>>>),
    /// The raw form, which is what some send.
    RawDeflate(Box<flate2::write::DeflateDecoder<Vec<u8>>>),
    Zstd(Box<ZstdDecoder>),
}

struct ZstdDecoder {
    raw: raw::Decoder<'static>,
    out: Box<[u8]>,
    /// The output was filled: the decoder may have more without further input.
    filled: bool,
}

/// Packed bytes of one step. Deflate makes at most 1,032 bytes of one, so a step of it gives some 4 MiB.
const PIECE_BYTES: usize = 4 << 10;
/// Plain bytes of one step of zstd, which makes 128 KiB of four bytes: its steps are counted by what comes out.
const ZSTD_STEP_BYTES: usize = 128 << 10;
/// The largest zstd window, as RFC 8878 recommends for HTTP: 8 MiB. The server chooses it, and it is memory here.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;

impl Unpacker {
    pub(crate) fn new(content_encoding: Option<&str>, first: &[u8]) -> Self {
        let said = content_encoding.unwrap_or_default().trim().to_ascii_lowercase();
        let coding = match BodyKind::sniff(first) {
            BodyKind::Gzip => Coding::Gzip(Box::new(flate2::write::MultiGzDecoder::new(Vec::new()))),
            BodyKind::Zstd => match ZstdDecoder::new() {
                Ok(decoder) => Coding::Zstd(Box::new(decoder)),
                Err(_) => Coding::Plain,
            },
            // The first byte of zlib names the method and window; `<` and blanks never look like it.
            _ if said == "deflate" && first.first() == Some(&0x78) => {
                Coding::Deflate(Box::new(flate2::write::ZlibDecoder::new(Vec::new())))
            }
            BodyKind::Other if said == "deflate" => {
                Coding::RawDeflate(Box::new(flate2::write::DeflateDecoder::new(Vec::new())))
            }
            _ => Coding::Plain,
        };
        Self { coding, plain_bytes: 0 }
    }

    /// Bytes unpacked so far.
    pub(crate) fn plain_bytes(&self) -> u64 {
        self.plain_bytes
    }

    /// Unpacks a part of `packed`, a few MiB at most, so that the caller can count in the middle of a bomb. False once all of
    /// `packed` is used up and nothing came.
    pub(crate) fn step(&mut self, packed: &mut &[u8], mut take: impl FnMut(&[u8])) -> io::Result<bool> {
        if let Coding::Zstd(decoder) = &mut self.coding {
            let Some(out) = decoder.step(packed)? else { return Ok(false) };
            self.plain_bytes += out.len() as u64;
            take(out);
            return Ok(true);
        }
        if packed.is_empty() {
            return Ok(false);
        }
        let (piece, rest) = packed.split_at(packed.len().min(PIECE_BYTES));
        *packed = rest;
        let unpacked = match &mut self.coding {
            Coding::Plain | Coding::Zstd(_) => {
                self.plain_bytes += piece.len() as u64;
                take(piece);
                return Ok(true);
            }
            Coding::Gzip(decoder) => drained(&mut **decoder, piece, |d| d.get_mut())?,
            Coding::Deflate(decoder) => drained(&mut **decoder, piece, |d| d.get_mut())?,
            Coding::RawDeflate(decoder) => drained(&mut **decoder, piece, |d| d.get_mut())?,
        };
        self.plain_bytes += unpacked.len() as u64;
        take(&unpacked);
        Ok(true)
    }

    /// The end of the body; an error if it was cut.
    pub(crate) fn finish(&mut self, mut take: impl FnMut(&[u8])) -> io::Result<()> {
        let out = match &mut self.coding {
            Coding::Plain | Coding::Zstd(_) => return Ok(()),
            Coding::Gzip(decoder) => {
                decoder.try_finish()?;
                std::mem::take(decoder.get_mut())
            }
            Coding::Deflate(decoder) => {
                decoder.try_finish()?;
                std::mem::take(decoder.get_mut())
            }
            Coding::RawDeflate(decoder) => {
                decoder.try_finish()?;
                std::mem::take(decoder.get_mut())
            }
        };
        self.plain_bytes += out.len() as u64;
        take(&out);
        Ok(())
    }
}

impl ZstdDecoder {
    fn new() -> io::Result<Self> {
        let mut raw = raw::Decoder::new()?;
        raw.set_parameter(raw::DParameter::WindowLogMax(ZSTD_WINDOW_LOG_MAX))?;
        Ok(Self { raw, out: vec![0; ZSTD_STEP_BYTES].into(), filled: false })
    }

    fn step(&mut self, packed: &mut &[u8]) -> io::Result<Option<&[u8]>> {
        if packed.is_empty() && !self.filled {
            return Ok(None);
        }
        let status = self.raw.run_on_buffers(packed, &mut self.out)?;
        *packed = &packed[status.bytes_read..];
        self.filled = status.bytes_written == self.out.len();
        Ok(Some(&self.out[..status.bytes_written]))
    }
}

fn drained<W: Write>(
    decoder: &mut W,
    piece: &[u8],
    out: impl Fn(&mut W) -> &mut Vec<u8>,
) -> io::Result<Vec<u8>> {
    decoder.write_all(piece)?;
    decoder.flush()?;
    Ok(std::mem::take(out(decoder)))
}

impl std::fmt::Debug for Unpacker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Unpacker").field("plain_bytes", &self.plain_bytes).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unpacked(said: Option<&str>, body: &[u8]) -> io::Result<Vec<u8>> {
        let mut unpacker = Unpacker::new(said, body);
        let mut out = Vec::new();
        for mut piece in body.chunks(7) {
            while unpacker.step(&mut piece, |bytes| out.extend_from_slice(bytes))? {}
        }
        unpacker.finish(|bytes| out.extend_from_slice(bytes))?;
        assert_eq!(unpacker.plain_bytes(), out.len() as u64);
        Ok(out)
    }

    #[test]
    fn every_packing_is_undone_whatever_the_header_says() {
        let plain = "<?xml version=\"1.0\"?><OAI-PMH>".repeat(300).into_bytes();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&plain).unwrap();
        let gzip = gzip.finish().unwrap();
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        zlib.write_all(&plain).unwrap();
        let zlib = zlib.finish().unwrap();
        let mut raw = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
        raw.write_all(&plain).unwrap();
        let raw = raw.finish().unwrap();
        let zstd = zstd::encode_all(&plain[..], 1).unwrap();
        for (what, said, body) in [
            ("gzip", Some("gzip"), &gzip),
            ("gzip unsaid", None, &gzip),
            ("said but not packed", Some("gzip"), &plain),
            ("deflate", Some("deflate"), &zlib),
            ("raw deflate", Some("deflate"), &raw),
            ("zstd unasked", None, &zstd),
            ("plain", None, &plain),
        ] {
            assert!(unpacked(said, body).unwrap() == plain, "{what}");
        }
        assert!(unpacked(Some("gzip"), &gzip[..gzip.len() / 2]).is_err(), "cut");
    }

    /// A zstd frame of blocks that repeat one byte: 128 KiB of four bytes each.
    fn zstd_bomb(window_log: u8, blocks: usize) -> Vec<u8> {
        let block = |last: u32| {
            let header = ((128u32 << 10) << 3 | 1 << 1 | last).to_le_bytes();
            [header[0], header[1], header[2], b' ']
        };
        let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, (window_log - 10) << 3];
        (1..=blocks).for_each(|n| frame.extend(block(u32::from(n == blocks))));
        frame
    }

    #[test]
    fn a_bomb_is_unpacked_in_small_steps() {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&vec![b' '; 16 << 20]).unwrap();
        let cases = [
            ("zstd", zstd_bomb(23, 256), 256 << 17, ZSTD_STEP_BYTES),
            ("gzip", gzip.finish().unwrap(), 16 << 20, PIECE_BYTES * 1_032),
        ];
        for (what, body, plain, step_max) in cases {
            let mut unpacker = Unpacker::new(None, &body);
            let (mut packed, mut largest) = (&body[..], 0);
            while unpacker.step(&mut packed, |bytes| largest = largest.max(bytes.len())).unwrap() {}
            assert_eq!(unpacker.plain_bytes(), plain, "{what}");
            assert!(largest <= step_max, "{what}: {largest} bytes in one step");
        }
    }

    #[test]
    fn a_zstd_window_above_8_mib_is_refused_as_one_that_takes_too_much_memory() {
        assert_eq!(unpacked(None, &zstd_bomb(23, 1)).unwrap().len(), 128 << 10);
        let error = unpacked(None, &zstd_bomb(24, 1)).unwrap_err().to_string();
        assert!(error.contains("too much memory"), "{error}");
    }

    #[test]
    fn zstd_frames_one_after_the_other_are_one_body() {
        let frames: Vec<_> =
            ["<a>", "</a>"].map(|text| zstd::encode_all(text.as_bytes(), 1).unwrap()).concat();
        assert_eq!(unpacked(None, &frames).unwrap(), b"<a></a>");
    }
}
