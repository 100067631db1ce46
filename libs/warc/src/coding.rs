//! Content encodings by name, and whether bytes are in the one that is named for them.
//!
//! Servers, and those who recorded them, name encodings that a body does not have. gzip and zstd begin with bytes of their own,
//! and zlib ends with a checksum. Brotli and bare deflate have neither: a piece of plain text may decode to nothing, or to
//! garbage. They are believed only if something comes out, and if all that is there goes in.

use std::io::{self, BufRead, Read};

use brotli::enc::StandardAlloc;
use brotli::{BrotliDecompressStream, BrotliResult, BrotliState};
use flate2::bufread::MultiGzDecoder;
use flate2::{Decompress, FlushDecompress, Status};

/// How much of the encoded bytes is tried before the encoding is believed; [`encoding_form`] looks at no more.
pub const ENCODING_PROBE_BYTES: usize = 16 << 10;
/// How much of the probe's content is decoded at most.
const PROBE_OUT: usize = 64 << 10;
/// What comes out of a decoder at a time.
const PIECE: usize = 4 << 10;
/// A decoder with bytes of its own that made so much before it broke was the right one.
const MADE_ENOUGH: usize = 1 << 10;
/// The largest zstd window, as RFC 8878 recommends for HTTP.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;

/// A content encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coding {
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

/// An encoding as the bytes are really in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncodingForm {
    Gzip,
    /// `deflate` as RFC 9110 means it.
    Zlib,
    /// `deflate` as some servers mean it.
    Deflate,
    Brotli,
    Zstd,
}

impl Coding {
    /// Reads the name of an encoding; `None` inside for one that changes nothing.
    pub(crate) fn parse(name: &[u8]) -> Result<Option<Self>, ()> {
        match name.to_ascii_lowercase().as_slice() {
            b"" | b"identity" | b"none" | b"utf-8" | b"binary" => Ok(None),
            b"gzip" | b"x-gzip" => Ok(Some(Self::Gzip)),
            b"deflate" => Ok(Some(Self::Deflate)),
            b"br" => Ok(Some(Self::Brotli)),
            b"zstd" => Ok(Some(Self::Zstd)),
            _ => Err(()),
        }
    }

    /// The form of `first`, the beginning of a body or, if `whole`, all of it; `None` if it is not in this encoding.
    pub(crate) fn form(self, first: &[u8], whole: bool) -> Option<EncodingForm> {
        let probe = &first[..first.len().min(ENCODING_PROBE_BYTES)];
        let whole = whole && probe.len() == first.len();
        if probe.is_empty() {
            return None;
        }
        match self {
            Self::Gzip => plausible(MultiGzDecoder::new(probe)).then_some(EncodingForm::Gzip),
            Self::Zstd => zstd_decoder(probe).is_ok_and(plausible).then_some(EncodingForm::Zstd),
            Self::Brotli => {
                // 0x11 announces the large window extension, which no browser accepts and which could ask for 1 GB.
                let usual = probe[0] & 0x7f != 0x11;
                (usual && Trial::brotli(probe).holds(probe, whole)).then_some(EncodingForm::Brotli)
            }
            Self::Deflate => {
                let is_zlib = probe.len() > 1
                    && probe[0] & 15 == 8
                    && u16::from_be_bytes([probe[0], probe[1]]).is_multiple_of(31);
                let zlib = is_zlib.then(|| Trial::inflate(probe, true));
                // At its end stands a checksum, which was right.
                if zlib.is_some_and(|zlib| zlib.end == End::Reached || zlib.holds(probe, whole)) {
                    return Some(EncodingForm::Zlib);
                }
                Trial::inflate(probe, false).holds(probe, whole).then_some(EncodingForm::Deflate)
            }
        }
    }
}

/// The form of `first`, the beginning of a body or, if `whole`, all of it, under the content encoding of this name. `None`: it is
/// not in that encoding, or the name means none that is known.
pub fn encoding_form(name: &[u8], first: &[u8], whole: bool) -> Option<EncodingForm> {
    Coding::parse(name.trim_ascii()).ok()??.form(first, whole)
}

/// How far a decoder came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// To the end of its stream.
    Reached,
    /// To the end of the input, or as far as it was let.
    Open,
    Broken,
}

/// What became of a probe in a decoder without bytes of its own to tell.
struct Trial {
    end: End,
    used: usize,
    made: usize,
    /// What was made first.
    start: Vec<u8>,
}

impl Trial {
    /// Whether this was the encoding of the probe.
    fn holds(&self, probe: &[u8], whole: bool) -> bool {
        if self.made == 0 || is_text(probe) {
            return false;
        }
        match self.end {
            End::Broken => false,
            End::Reached => whole && self.used == probe.len(),
            // A recording that was cut. Little is encoded but text, and garbage is none.
            End::Open => !whole || self.made >= PROBE_OUT || is_text(&self.start),
        }
    }

    fn run(mut step: impl FnMut(usize, &mut [u8]) -> (End, bool, usize, usize)) -> Self {
        let mut trial = Self { end: End::Open, used: 0, made: 0, start: Vec::new() };
        let mut out = [0; PIECE];
        while trial.made < PROBE_OUT {
            let (end, wants_input, used, made) = step(trial.used, &mut out);
            trial.used += used;
            trial.made += made;
            trial.end = end;
            let room = PIECE.saturating_sub(trial.start.len()).min(made);
            trial.start.extend_from_slice(&out[..room]);
            if end != End::Open || wants_input || (used == 0 && made == 0) {
                break;
            }
        }
        trial
    }

    fn brotli(probe: &[u8]) -> Self {
        let alloc = StandardAlloc::default;
        let mut state = BrotliState::new(alloc(), alloc(), alloc());
        let mut total = 0;
        Self::run(|from, out| {
            let (mut left, mut used, mut room, mut made) = (probe.len() - from, 0, out.len(), 0);
            let result = BrotliDecompressStream(
                &mut left,
                &mut used,
                &probe[from..],
                &mut room,
                &mut made,
                out,
                &mut total,
                &mut state,
            );
            match result {
                BrotliResult::ResultSuccess => (End::Reached, false, used, made),
                BrotliResult::NeedsMoreInput => (End::Open, true, used, made),
                BrotliResult::NeedsMoreOutput => (End::Open, false, used, made),
                BrotliResult::ResultFailure => (End::Broken, false, used, made),
            }
        })
    }

    fn inflate(probe: &[u8], zlib: bool) -> Self {
        let mut inflater = Decompress::new(zlib);
        Self::run(|from, out| {
            let (used, made) = (inflater.total_in(), inflater.total_out());
            let result = inflater.decompress(&probe[from..], out, FlushDecompress::None);
            let used = (inflater.total_in() - used) as usize;
            let made = (inflater.total_out() - made) as usize;
            match result {
                Ok(Status::StreamEnd) => (End::Reached, false, used, made),
                Ok(_) => (End::Open, from + used == probe.len() && made < out.len(), used, made),
                Err(_) => (End::Broken, false, used, made),
            }
        })
    }
}

/// No control characters but those of texts: what is packed has one in ten bytes.
fn is_text(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| matches!(byte, b'\t' | b'\n' | b'\r' | 0x0c | 0x1b | 0x20..=0x7e | 0x80..))
}

/// Whether the probe decodes: to its end, to the end of a stream, or far enough.
fn plausible(mut decoder: impl Read) -> bool {
    let mut buf = [0; PIECE];
    let mut made = 0;
    while made < PROBE_OUT {
        match decoder.read(&mut buf) {
            Ok(0) => return true,
            Ok(n) => made += n,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return made > 0,
            // Broken later on is still the encoding that was named.
            Err(_) => return made > MADE_ENOUGH,
        }
    }
    true
}

pub(crate) fn zstd_decoder<R: BufRead>(input: R) -> io::Result<zstd::stream::read::Decoder<'static, R>> {
    let mut decoder = zstd::stream::read::Decoder::with_buffer(input)?;
    decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
    Ok(decoder)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use proptest::prelude::*;

    use super::*;

    fn packed(coding: Coding, plain: &[u8]) -> Vec<u8> {
        let level = flate2::Compression::new(6);
        match coding {
            Coding::Gzip => {
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
                encoder.write_all(plain).unwrap();
                encoder.finish().unwrap()
            }
            Coding::Deflate => {
                let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), level);
                encoder.write_all(plain).unwrap();
                encoder.finish().unwrap()
            }
            Coding::Brotli => {
                let mut out = Vec::new();
                brotli::CompressorWriter::new(&mut out, 4096, 5, 20).write_all(plain).unwrap();
                out
            }
            Coding::Zstd => zstd::encode_all(plain, 3).unwrap(),
        }
    }

    const ALL: [Coding; 4] = [Coding::Gzip, Coding::Deflate, Coding::Brotli, Coding::Zstd];

    #[test]
    fn plain_bodies_are_in_no_encoding() {
        let png: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89";
        let pages = [
            &b";"[..],
            b"k",
            b"\x06",
            b"\x03\0",
            b"\x3b;",
            b"a=1;",
            b"x^2 + y^2",
            b"{}",
            b"[]",
            b"\n",
            b"\xef\xbb\xbf",
            png,
            b"<html><body>\xe9</body></html>",
            b"K\x04\0 and more",
            b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff,",
        ];
        for page in pages {
            for coding in ALL {
                assert_eq!(coding.form(page, true), None, "{coding:?} {}", page.escape_ascii());
            }
        }
        // Every short text there is.
        let letters: Vec<u8> = (b' '..=b'~').chain([b'\n']).collect();
        for one in &letters {
            for two in &letters {
                for text in [&[*one][..], &[*one, *two]] {
                    for coding in ALL {
                        assert_eq!(coding.form(text, true), None, "{coding:?} {}", text.escape_ascii());
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_cut_is_believed_if_a_text_comes_out() {
        let text = (0..400).map(|n| format!("<p>{}</p>\n", n * 7919 % 1000)).collect::<Vec<_>>().concat();
        for coding in ALL {
            let whole = packed(coding, text.as_bytes());
            // zstd gives nothing of a block that is not whole.
            if coding != Coding::Zstd {
                assert!(coding.form(&whole[..whole.len() * 2 / 3], true).is_some(), "{coding:?}");
            }
            let tail = [&whole[..], b"\0\0 and more"].concat();
            let has_mark = matches!(coding, Coding::Gzip | Coding::Zstd);
            assert_eq!(coding.form(&tail, true).is_some(), has_mark, "{coding:?}");
        }
    }

    #[test]
    fn names_are_read_as_servers_write_them() {
        let gzip = packed(Coding::Gzip, b"x");
        for (name, form) in [
            (&b"gzip"[..], Some(EncodingForm::Gzip)),
            (b" X-GZIP", Some(EncodingForm::Gzip)),
            (b"br", None),
            (b"identity", None),
            (b"sdch", None),
        ] {
            assert_eq!(encoding_form(name, &gzip, true), form, "{}", name.escape_ascii());
        }
    }

    proptest! {
        #[test]
        fn what_was_packed_is_believed(plain in proptest::collection::vec(any::<u8>(), 1..400), times in 1_usize..600) {
            let plain = plain.repeat(times);
            for coding in ALL {
                let packed = packed(coding, &plain);
                prop_assert!(coding.form(&packed, true).is_some() || is_text(&packed), "{:?}", coding);
                let start = &packed[..packed.len().min(ENCODING_PROBE_BYTES)];
                prop_assert!(coding.form(start, start.len() == packed.len()).is_some() || is_text(start), "{:?}", coding);
            }
        }

        #[test]
        fn texts_are_in_no_encoding(text in "\\PC{1,200}|[ -~\\n]{1,3000}") {
            for coding in ALL {
                prop_assert_eq!(coding.form(text.as_bytes(), true), None);
            }
        }
    }
}
