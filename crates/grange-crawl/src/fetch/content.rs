//! The document inside an answer: transfer coding and content encodings undone, for extractors.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

use flate2::bufread::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use warc::{Dechunker, ENCODING_PROBE_BYTES, EncodingForm, HttpHead, Piece, encoding_form};

use super::error::FetchError;
use super::fetched::Fetched;
use super::settings::ContentEncoding;

/// More than two encodings around a body have not been seen, and each costs up to 16 MB while decoding.
const CODINGS_MAX: usize = 2;
/// The buffer between two layers.
const BUFFER_BYTES: usize = 16 << 10;
/// The largest zstd window, as RFC 8878 recommends for HTTP: 8 MiB.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;

/// Reads the document inside an answer. Where a coding is broken, the document ends; an error is one of the disk.
pub struct Content<'a>(Box<dyn Read + Send + 'a>);

impl fmt::Debug for Content<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Content")
    }
}

impl Read for Content<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.read(buf)
    }
}

impl Fetched {
    /// The document, at most `max` bytes of it.
    pub fn content(&mut self, max: u64) -> Result<Content<'_>, FetchError> {
        let chunked = self.http.as_ref().is_some_and(HttpHead::is_chunked);
        let codings = codings(self.http.as_ref());
        let mut body = self.response.reader().map_err(FetchError::Reread)?;
        body.seek(SeekFrom::Start(self.head_len as u64)).map_err(FetchError::Reread)?;
        let mut layer: Box<dyn Read + Send + '_> = Box::new(body);
        if chunked {
            layer = Box::new(Unchunked::new(layer));
        }
        for coding in codings.into_iter().rev() {
            layer = decoder(layer, coding).map_err(FetchError::Reread)?;
        }
        Ok(Content(Box::new(layer.take(max))))
    }

    /// The document, at most `max` bytes of it, without a copy where it lies in memory as it is.
    pub fn content_bytes(&mut self, max: u64) -> Result<Cow<'_, [u8]>, FetchError> {
        let plain =
            !self.http.as_ref().is_some_and(HttpHead::is_chunked) && codings(self.http.as_ref()).is_empty();
        if plain && self.response.bytes().is_some() {
            let body = self.response.bytes().and_then(|bytes| bytes.get(self.head_len..)).unwrap_or_default();
            return Ok(Cow::Borrowed(&body[..usize::try_from(max).unwrap_or(usize::MAX).min(body.len())]));
        }
        let mut bytes = Vec::with_capacity(max.min(self.payload_length) as usize);
        self.content(max)?.read_to_end(&mut bytes).map_err(FetchError::Reread)?;
        Ok(Cow::Owned(bytes))
    }
}

/// The encodings a head names, innermost first. Unknown ones end the list: what is inside cannot be reached.
fn codings(head: Option<&HttpHead>) -> Vec<ContentEncoding> {
    let mut codings = Vec::new();
    let Some(head) = head else { return codings };
    let names = head.all("Content-Encoding").flat_map(|value| value.split(|&b| b == b','));
    for name in names.map(<[u8]>::trim_ascii) {
        codings.push(match name.to_ascii_lowercase().as_slice() {
            b"gzip" | b"x-gzip" => ContentEncoding::Gzip,
            b"deflate" => ContentEncoding::Deflate,
            b"br" => ContentEncoding::Br,
            b"zstd" => ContentEncoding::Zstd,
            // What servers write for no encoding at all.
            b"" | b"identity" | b"none" | b"utf-8" | b"binary" => continue,
            _ => return Vec::new(),
        });
        if codings.len() == CODINGS_MAX {
            break;
        }
    }
    codings
}

/// Puts a decoder around `under`, unless its bytes say that they are not so encoded.
fn decoder<'a>(
    under: Box<dyn Read + Send + 'a>,
    coding: ContentEncoding,
) -> io::Result<Box<dyn Read + Send + 'a>> {
    let name: &[u8] = match coding {
        ContentEncoding::Gzip => b"gzip",
        ContentEncoding::Deflate => b"deflate",
        ContentEncoding::Br => b"br",
        ContentEncoding::Zstd => b"zstd",
    };
    let mut first = Vec::new();
    let mut under = under;
    // One more than is looked at tells whether there is more.
    (&mut under).take(ENCODING_PROBE_BYTES as u64 + 1).read_to_end(&mut first)?;
    let form = encoding_form(name, &first, first.len() <= ENCODING_PROBE_BYTES);
    let input = BufReader::with_capacity(BUFFER_BYTES, io::Cursor::new(first).chain(under));
    Ok(match form {
        None => Box::new(input),
        Some(EncodingForm::Gzip) => Box::new(Lenient(MultiGzDecoder::new(input))),
        Some(EncodingForm::Zlib) => Box::new(Lenient(ZlibDecoder::new(input))),
        Some(EncodingForm::Deflate) => Box::new(Lenient(DeflateDecoder::new(input))),
        Some(EncodingForm::Brotli) => Box::new(Lenient(brotli::Decompressor::new(input, BUFFER_BYTES))),
        Some(EncodingForm::Zstd) => Box::new(Lenient(zstd_decoder(input)?)),
    })
}

fn zstd_decoder<R: BufRead>(input: R) -> io::Result<zstd::stream::read::Decoder<'static, R>> {
    let mut decoder = zstd::stream::read::Decoder::with_buffer(input)?;
    decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
    Ok(decoder)
}

/// Ends where its decoder finds the data broken; only what the system says about the disk is an error.
struct Lenient<R>(R);

impl<R: Read> Read for Lenient<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buf) {
            Err(error) if error.raw_os_error().is_none() => Ok(0),
            other => other,
        }
    }
}

/// A chunked body as one.
struct Unchunked<R> {
    under: R,
    chunks: Dechunker,
    buffer: Vec<u8>,
    at: usize,
    held: Vec<u8>,
    ended: bool,
}

impl<R: Read> Unchunked<R> {
    fn new(under: R) -> Unchunked<R> {
        Unchunked {
            under,
            chunks: Dechunker::new(),
            buffer: Vec::new(),
            at: 0,
            held: Vec::new(),
            ended: false,
        }
    }
}

impl<R: Read> Read for Unchunked<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.held.is_empty() {
                let n = self.held.len().min(buf.len());
                buf[..n].copy_from_slice(&self.held[..n]);
                self.held.drain(..n);
                return Ok(n);
            }
            if self.ended || buf.is_empty() {
                return Ok(0);
            }
            if self.at == self.buffer.len() {
                self.buffer.resize(BUFFER_BYTES, 0);
                let n = self.under.read(&mut self.buffer)?;
                self.buffer.truncate(n);
                self.at = 0;
                if n == 0 {
                    self.ended = true;
                    self.held.extend_from_slice(self.chunks.end());
                    continue;
                }
            }
            let end = self.buffer.len().min(self.at + buf.len());
            match self.chunks.step(&self.buffer[self.at..end]) {
                Piece::Data(n) => {
                    buf[..n].copy_from_slice(&self.buffer[self.at..self.at + n]);
                    self.at += n;
                    if n > 0 {
                        return Ok(n);
                    }
                }
                Piece::Skip(n) => self.at += n,
                Piece::Held(bytes) => self.held.extend_from_slice(bytes),
            }
        }
    }
}
