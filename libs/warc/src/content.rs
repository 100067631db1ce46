//! Undoing content encodings, one inside the other, and finding out which of them are lies.

use std::fmt;
use std::io::{self, BufRead, Read};

use flate2::bufread::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

use crate::coding::{Coding, ENCODING_PROBE_BYTES, EncodingForm, zstd_decoder};
use crate::payload::Payload;
use crate::problem::Kind;

/// More than two encodings around a body have not been seen, and each costs up to 16 MB while decoding.
pub(crate) const CODINGS_MAX: usize = 2;
/// The buffer between two encodings.
const BUFFER: usize = 16 << 10;

/// Reads the content of a record, all encodings undone.
#[derive(Debug)]
pub struct Content<'a>(Layer<'a>);

impl Read for Content<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.read(buf)
    }
}

/// Puts decoders around `payload`, the outermost encoding (the last named) first.
pub(crate) fn decode<'a>(payload: Payload<'a>, codings: &[Coding]) -> io::Result<Content<'a>> {
    let mut layer = Layer::Payload(payload);
    for &coding in codings.iter().rev() {
        layer = Layer::decoder(layer, coding)?;
    }
    Ok(Content(layer))
}

enum Layer<'a> {
    Payload(Payload<'a>),
    Plain(Feed<'a>),
    Gzip(Box<MultiGzDecoder<Feed<'a>>>, State),
    Zlib(Box<ZlibDecoder<Feed<'a>>>, State),
    Deflate(Box<DeflateDecoder<Feed<'a>>>, State),
    Brotli(Box<brotli::Decompressor<Feed<'a>>>, State),
    Zstd(Box<zstd::stream::read::Decoder<'static, Feed<'a>>>, State),
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    made: u64,
    done: bool,
}

impl fmt::Debug for Layer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Layer::Payload(_) => "Payload",
            Layer::Plain(_) => "Plain",
            Layer::Gzip(..) => "Gzip",
            Layer::Zlib(..) => "Zlib",
            Layer::Deflate(..) => "Deflate",
            Layer::Brotli(..) => "Brotli",
            Layer::Zstd(..) => "Zstd",
        })
    }
}

impl<'a> Layer<'a> {
    fn decoder(under: Layer<'a>, coding: Coding) -> io::Result<Layer<'a>> {
        let mut feed = Feed { first: Vec::new(), at: 0, under: Box::new(under), buffer: Vec::new(), read: 0 };
        feed.probe()?;
        let state = State::default();
        if feed.first.is_empty() {
            return Ok(Layer::Plain(feed));
        }
        let whole = feed.first.len() <= ENCODING_PROBE_BYTES;
        Ok(match coding.form(&feed.first, whole) {
            Some(EncodingForm::Gzip) => Layer::Gzip(Box::new(MultiGzDecoder::new(feed)), state),
            Some(EncodingForm::Zlib) => Layer::Zlib(Box::new(ZlibDecoder::new(feed)), state),
            Some(EncodingForm::Deflate) => Layer::Deflate(Box::new(DeflateDecoder::new(feed)), state),
            Some(EncodingForm::Brotli) => {
                Layer::Brotli(Box::new(brotli::Decompressor::new(feed, BUFFER)), state)
            }
            Some(EncodingForm::Zstd) => Layer::Zstd(Box::new(zstd_decoder(feed)?), state),
            None => {
                feed.payload().add(Kind::EncodingLie);
                Layer::Plain(feed)
            }
        })
    }

    fn payload(&mut self) -> &mut Payload<'a> {
        match self {
            Layer::Payload(payload) => payload,
            Layer::Plain(feed) => feed.payload(),
            Layer::Gzip(decoder, _) => decoder.get_mut().payload(),
            Layer::Zlib(decoder, _) => decoder.get_mut().payload(),
            Layer::Deflate(decoder, _) => decoder.get_mut().payload(),
            Layer::Brotli(decoder, _) => decoder.get_mut().payload(),
            Layer::Zstd(decoder, _) => decoder.get_mut().payload(),
        }
    }
}

impl Read for Layer<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let (result, state) = match self {
            Layer::Payload(payload) => return payload.read(buf),
            Layer::Plain(feed) => return feed.read(buf),
            Layer::Gzip(_, state)
            | Layer::Zlib(_, state)
            | Layer::Deflate(_, state)
            | Layer::Brotli(_, state)
            | Layer::Zstd(_, state)
                if state.done =>
            {
                return Ok(0);
            }
            Layer::Gzip(decoder, state) => (decoder.read(buf), state),
            Layer::Zlib(decoder, state) => (decoder.read(buf), state),
            Layer::Deflate(decoder, state) => (decoder.read(buf), state),
            Layer::Brotli(decoder, state) => (decoder.read(buf), state),
            Layer::Zstd(decoder, state) => (decoder.read(buf), state),
        };
        match result {
            Ok(n) => {
                state.made += n as u64;
                state.done = n == 0 && !buf.is_empty();
                Ok(n)
            }
            // What the file lacks or garbles is not an error of ours; what the disk says is.
            Err(error) if is_damage(&error) => {
                state.done = true;
                // Padding after a whole gzip member is common and harmless.
                let padding = error.kind() == io::ErrorKind::InvalidInput
                    && state.made > 0
                    && error.to_string().contains("header");
                if !padding {
                    self.payload().add(Kind::EncodingBroken);
                }
                Ok(0)
            }
            Err(error) => Err(error),
        }
    }
}

/// Whether a decoder complains about its data. Errors of the disk carry the number the system gave them.
fn is_damage(error: &io::Error) -> bool {
    error.raw_os_error().is_none()
}

/// The bytes of the layer below, those of the probe first.
struct Feed<'a> {
    first: Vec<u8>,
    at: usize,
    under: Box<Layer<'a>>,
    buffer: Vec<u8>,
    read: usize,
}

impl<'a> Feed<'a> {
    fn probe(&mut self) -> io::Result<()> {
        let mut first = Vec::new();
        // One more, which tells whether there is more.
        (&mut *self.under).take(ENCODING_PROBE_BYTES as u64 + 1).read_to_end(&mut first)?;
        self.first = first;
        Ok(())
    }

    fn payload(&mut self) -> &mut Payload<'a> {
        self.under.payload()
    }
}

impl BufRead for Feed<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at < self.first.len() {
            return Ok(&self.first[self.at..]);
        }
        if self.read == self.buffer.len() {
            self.buffer.resize(BUFFER, 0);
            let n = self.under.read(&mut self.buffer)?;
            self.buffer.truncate(n);
            self.read = 0;
        }
        Ok(&self.buffer[self.read..])
    }

    fn consume(&mut self, n: usize) {
        if self.at < self.first.len() {
            self.at = (self.at + n).min(self.first.len());
        } else {
            self.read = (self.read + n).min(self.buffer.len());
        }
    }
}

impl Read for Feed<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let bytes = self.fill_buf()?;
        let n = bytes.len().min(buf.len());
        buf[..n].copy_from_slice(&bytes[..n]);
        self.consume(n);
        Ok(n)
    }
}
