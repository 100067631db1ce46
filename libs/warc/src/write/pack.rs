//! Packing a record: nothing, a gzip member, or a zstd frame.
//!
//! Records that fit in memory go through libdeflate in one call, which measures faster than zlib-rs at the
//! same level and packs a little better; larger ones stream through zlib-rs.

use std::fmt;
use std::io::{self, Write};

use flate2::Compression as Level;
use flate2::write::GzEncoder;
use libdeflater::{CompressionLvl, Compressor};

use super::record::NewRecord;

/// How records are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// A gzip member per record. Levels 1 to 12; above 9 only records of moderate size gain.
    Gzip(u8),
    /// A zstd frame per record, with checksum and content size. Levels 1 to 19.
    Zstd(i32),
}

impl Default for Compression {
    fn default() -> Compression {
        Compression::Gzip(6)
    }
}

impl Compression {
    /// The end of file names.
    pub const fn suffix(self) -> &'static str {
        match self {
            Compression::None => ".warc",
            Compression::Gzip(_) => ".warc.gz",
            Compression::Zstd(_) => ".warc.zst",
        }
    }
}

/// The largest record that is packed in one call.
const WHOLE_MAX: u64 = 4 << 20;

/// What a record ends with.
pub(super) const RECORD_END: &[u8] = b"\r\n\r\n";

pub(super) struct Packer {
    compression: Compression,
    deflate: Option<Compressor>,
    zstd: Option<zstd::bulk::Compressor<'static>>,
    plain: Vec<u8>,
    packed: Vec<u8>,
}

impl fmt::Debug for Packer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Packer").field(&self.compression).finish()
    }
}

impl Packer {
    pub(super) fn new(compression: Compression) -> io::Result<Packer> {
        let mut packer =
            Packer { compression, deflate: None, zstd: None, plain: Vec::new(), packed: Vec::new() };
        match compression {
            Compression::None => {}
            Compression::Gzip(level) => {
                let level = CompressionLvl::new(i32::from(level)).map_err(|_| {
                    io::Error::new(io::ErrorKind::InvalidInput, format!("no gzip level {level}"))
                })?;
                packer.deflate = Some(Compressor::new(level));
            }
            Compression::Zstd(level) => {
                let mut zstd = zstd::bulk::Compressor::new(level)?;
                zstd.include_checksum(true)?;
                zstd.include_contentsize(true)?;
                packer.zstd = Some(zstd);
            }
        }
        Ok(packer)
    }

    pub(super) fn compression(&self) -> Compression {
        self.compression
    }

    /// Packs a record, whose header is given, and writes it to `out`.
    pub(super) fn write(
        &mut self,
        header: &[u8],
        record: &mut NewRecord<'_>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let len = header.len() as u64 + record.block_len() + RECORD_END.len() as u64;
        if len > WHOLE_MAX {
            return self.stream(len, header, record, out);
        }
        let plain = &mut self.plain;
        plain.clear();
        plain.extend_from_slice(header);
        record.copy_block(&mut |bytes| {
            plain.extend_from_slice(bytes);
            Ok(())
        })?;
        plain.extend_from_slice(RECORD_END);
        if let Some(deflate) = &mut self.deflate {
            let bound = deflate.gzip_compress_bound(plain.len());
            if self.packed.len() < bound {
                self.packed.resize(bound, 0);
            }
            let used = deflate.gzip_compress(plain, &mut self.packed).map_err(io::Error::other)?;
            return out.write_all(&self.packed[..used]);
        }
        if let Some(zstd) = &mut self.zstd {
            let packed = zstd.compress(plain)?;
            return out.write_all(&packed);
        }
        out.write_all(plain)
    }

    fn stream(
        &mut self,
        len: u64,
        header: &[u8],
        record: &mut NewRecord<'_>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let mut copy = |sink: &mut dyn Write| {
            sink.write_all(header)?;
            record.copy_block(&mut |bytes| sink.write_all(bytes))?;
            sink.write_all(RECORD_END)
        };
        match self.compression {
            Compression::None => copy(out),
            Compression::Gzip(level) => {
                let mut encoder = GzEncoder::new(out, Level::new(u32::from(level).min(9)));
                copy(&mut encoder)?;
                encoder.finish().map(drop)
            }
            Compression::Zstd(level) => {
                let mut encoder = zstd::stream::write::Encoder::new(out, level)?;
                encoder.include_checksum(true)?;
                encoder.include_contentsize(true)?;
                encoder.set_pledged_src_size(Some(len))?;
                copy(&mut encoder)?;
                encoder.finish().map(drop)
            }
        }
    }
}
