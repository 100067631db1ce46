//! Packing a record: nothing, a gzip member, or a zstd frame.
//!
//! Records that fit in memory go through libdeflate in one call, which measures faster than zlib-rs at the
//! same level and packs a little better; larger ones stream through zlib-rs. What is packed already (pictures, films,
//! archives: most bytes of the web) is not searched for repetitions a second time: a few samples tell.

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

/// From this size on samples are taken; below, packing costs as little as trying.
const SAMPLED_MIN: usize = 64 << 10;

/// Samples, evenly spread, and the size of each: an eighth of a percent of a large picture, half of the smallest.
const SAMPLES: usize = 8;
const SAMPLE_BYTES: usize = 4 << 10;

/// A sample that does not shrink below this share of itself, in percent, was packed before.
const PACKED_PERCENT: usize = 98;

/// How much of a record that streams is looked at before the level is chosen.
const FIRST_BYTES: usize = 256 << 10;

/// What a record ends with.
pub(super) const RECORD_END: &[u8] = b"\r\n\r\n";

pub(super) struct Packer {
    compression: Compression,
    deflate: Option<Compressor>,
    samples: Samples,
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
        let mut packer = Packer {
            compression,
            deflate: None,
            samples: Samples::new(),
            zstd: None,
            plain: Vec::new(),
            packed: Vec::new(),
        };
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
            let deflate = if self.samples.packed(plain) { &mut self.samples.store } else { deflate };
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
                let level = Level::new(u32::from(level).min(9));
                let mut sink = Undecided {
                    samples: &mut self.samples,
                    level,
                    first: Vec::new(),
                    out: Some(out),
                    encoder: None,
                };
                copy(&mut sink)?;
                sink.finish()
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

/// Tells by samples whether bytes are packed already.
struct Samples {
    quick: Compressor,
    /// Frames bytes without looking for repetitions.
    store: Compressor,
    packed: Vec<u8>,
}

impl Samples {
    fn new() -> Samples {
        // Both levels exist; were they refused, the default would only be slower.
        let at = |level| Compressor::new(CompressionLvl::new(level).unwrap_or_default());
        Samples { quick: at(1), store: at(0), packed: Vec::new() }
    }

    /// Whether none of the samples shrinks. One that does is enough to pack the whole.
    fn packed(&mut self, bytes: &[u8]) -> bool {
        if bytes.len() < SAMPLED_MIN {
            return false;
        }
        let bound = self.quick.deflate_compress_bound(SAMPLE_BYTES);
        self.packed.resize(bound, 0);
        let step = bytes.len() / SAMPLES;
        (0..SAMPLES).all(|sample| {
            // From the middle of each stretch: the head of a record is text.
            let start = sample * step + (step - SAMPLE_BYTES) / 2;
            let packed = self.quick.deflate_compress(&bytes[start..start + SAMPLE_BYTES], &mut self.packed);
            packed.is_ok_and(|packed| packed * 100 > SAMPLE_BYTES * PACKED_PERCENT)
        })
    }
}

/// A stream whose first bytes decide how hard it is packed. A container may go on with other things than it begins
/// with, so the least effort is the fastest level, not none.
struct Undecided<'a> {
    samples: &'a mut Samples,
    level: Level,
    first: Vec<u8>,
    out: Option<&'a mut dyn Write>,
    encoder: Option<GzEncoder<&'a mut dyn Write>>,
}

impl<'a> Undecided<'a> {
    fn decided(&mut self) -> io::Result<&mut GzEncoder<&'a mut dyn Write>> {
        if let Some(out) = self.out.take() {
            let packed = self.samples.packed(&self.first);
            let level = if packed { Level::fast() } else { self.level };
            let mut encoder = GzEncoder::new(out, level);
            encoder.write_all(&std::mem::take(&mut self.first))?;
            self.encoder = Some(encoder);
        }
        self.encoder.as_mut().ok_or_else(|| io::Error::other("the packer has failed before"))
    }

    fn finish(mut self) -> io::Result<()> {
        self.decided()?;
        self.encoder.map_or(Ok(()), |encoder| encoder.finish().map(drop))
    }
}

impl Write for Undecided<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.out.is_some() && self.first.len() < FIRST_BYTES {
            self.first.extend_from_slice(bytes);
            return Ok(bytes.len());
        }
        self.decided()?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Noise, and a text that shrinks.
    fn bytes(length: usize, noise: bool) -> Vec<u8> {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let next = |index: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            if noise { (state >> 32) as u8 } else { b"to be archived "[index % 15] }
        };
        (0..length).map(next).collect()
    }

    #[test]
    fn what_is_packed_already_is_told_from_what_is_not() {
        let (noise, text) = (bytes(1 << 20, true), bytes(1 << 20, false));
        let mut samples = Samples::new();
        assert!(samples.packed(&noise));
        assert!(!samples.packed(&text));
        assert!(!samples.packed(&noise[..SAMPLED_MIN - 1]), "not worth asking");
        assert!(samples.packed(&noise[..SAMPLED_MIN]));
        for eighth in 0..8 {
            let mut mixed = noise.clone();
            mixed[eighth << 17..(eighth + 1) << 17].copy_from_slice(&text[..1 << 17]);
            assert!(!samples.packed(&mixed), "text in part {eighth}");
        }
    }
}
