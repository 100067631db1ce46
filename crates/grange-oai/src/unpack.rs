//! Bodies unpacked as they arrive. Some servers pack without saying so, and some say so without packing.

use std::io::{self, Write};

use oaipmh::flow::BodyKind;

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
    Zstd(Box<zstd::stream::write::Decoder<'static, Vec<u8>>>),
}

/// Packed bytes are fed in small pieces, so that little of a bomb is unpacked before somebody counts.
const PIECE_BYTES: usize = 4 << 10;

impl Unpacker {
    pub(crate) fn new(content_encoding: Option<&str>, first: &[u8]) -> Self {
        let said = content_encoding.unwrap_or_default().trim().to_ascii_lowercase();
        let coding = match BodyKind::sniff(first) {
            BodyKind::Gzip => Coding::Gzip(Box::new(flate2::write::MultiGzDecoder::new(Vec::new()))),
            BodyKind::Zstd => match zstd::stream::write::Decoder::new(Vec::new()) {
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

    pub(crate) fn push(&mut self, bytes: &[u8], mut take: impl FnMut(&[u8])) -> io::Result<()> {
        if matches!(self.coding, Coding::Plain) {
            self.plain_bytes += bytes.len() as u64;
            take(bytes);
            return Ok(());
        }
        for piece in bytes.chunks(PIECE_BYTES) {
            let out = match &mut self.coding {
                Coding::Plain => continue,
                Coding::Gzip(decoder) => drained(&mut **decoder, piece, |d| d.get_mut())?,
                Coding::Deflate(decoder) => drained(&mut **decoder, piece, |d| d.get_mut())?,
                Coding::RawDeflate(decoder) => drained(&mut **decoder, piece, |d| d.get_mut())?,
                Coding::Zstd(decoder) => drained(&mut **decoder, piece, |d| d.get_mut())?,
            };
            self.plain_bytes += out.len() as u64;
            take(&out);
        }
        Ok(())
    }

    /// The end of the body; an error if it was cut.
    pub(crate) fn finish(&mut self, mut take: impl FnMut(&[u8])) -> io::Result<()> {
        let out = match &mut self.coding {
            Coding::Plain => return Ok(()),
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
            Coding::Zstd(decoder) => {
                decoder.flush()?;
                std::mem::take(decoder.get_mut())
            }
        };
        self.plain_bytes += out.len() as u64;
        take(&out);
        Ok(())
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
        for piece in body.chunks(7) {
            unpacker.push(piece, |bytes| out.extend_from_slice(bytes))?;
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
}
