//! The body of a request, piece by piece, at no less than a crawl.

use std::io::{self, ErrorKind};
use std::time::Instant;

use bytes::BufMut as _;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::http::request::BodyLength;
use crate::settings::Patience;

/// Longest line between chunks, bytes.
const MAX_CHUNK_LINE: usize = 256;

/// What of a body is still to come.
#[derive(Debug)]
pub(crate) struct Body {
    length: BodyLength,
    /// Of the body, or of the chunk.
    left: u64,
    /// A chunk was read and its end is to come.
    after_chunk: bool,
    done: bool,
    read: u64,
    since: Instant,
    patience: Patience,
}

fn bad(text: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, text.to_owned())
}

impl Body {
    pub(crate) fn new(length: BodyLength, patience: Patience) -> Self {
        let left = if let BodyLength::Known(left) = length { left } else { 0 };
        let done = matches!(length, BodyLength::None | BodyLength::Known(0));
        Self { length, left, after_chunk: false, done, read: 0, since: Instant::now(), patience }
    }

    pub(crate) fn finished(&self) -> bool {
        self.done
    }

    /// Appends the next bytes to `out`, at most up to `full` in all; false at the end. `input` holds what was read
    /// from the stream beyond the head, and afterwards what was read beyond the body.
    pub(crate) async fn next(
        &mut self,
        stream: &TcpStream,
        input: &mut Vec<u8>,
        out: &mut Vec<u8>,
        full: usize,
    ) -> io::Result<bool> {
        while out.len() < full {
            if self.done {
                return Ok(false);
            }
            if self.left == 0 && !self.next_chunk(stream, input).await? {
                return Ok(false);
            }
            let want = usize::try_from(self.left).unwrap_or(usize::MAX).min(full - out.len());
            let had = out.len();
            if input.is_empty() {
                self.read_stream(stream, out, want).await?;
            } else {
                let taken = want.min(input.len());
                out.extend_from_slice(&input[..taken]);
                input.drain(..taken);
            }
            let got = (out.len() - had) as u64;
            self.left -= got;
            self.read += got;
            if self.left == 0 {
                match self.length {
                    BodyLength::Chunked => self.after_chunk = true,
                    _ => self.done = true,
                }
            }
        }
        Ok(true)
    }

    /// Reads the line before a chunk; false when it was the last.
    async fn next_chunk(&mut self, stream: &TcpStream, input: &mut Vec<u8>) -> io::Result<bool> {
        loop {
            let skip = if self.after_chunk { 2 } else { 0 };
            if input.len() > skip {
                if self.after_chunk && !input.starts_with(b"\r\n") {
                    return Err(bad("a chunk does not end where it says"));
                }
                match httparse::parse_chunk_size(&input[skip..]) {
                    Ok(httparse::Status::Complete((line, 0))) => {
                        input.drain(..skip + line);
                        return self.trailers(stream, input).await.map(|()| false);
                    }
                    Ok(httparse::Status::Complete((line, size))) => {
                        input.drain(..skip + line);
                        self.after_chunk = false;
                        self.left = size;
                        return Ok(true);
                    }
                    Ok(httparse::Status::Partial) if input.len() <= MAX_CHUNK_LINE => {}
                    _ => return Err(bad("the length of a chunk cannot be read")),
                }
            }
            self.read_stream(stream, input, 4096).await?;
        }
    }

    /// Passes over what may follow the last chunk, up to the empty line.
    async fn trailers(&mut self, stream: &TcpStream, input: &mut Vec<u8>) -> io::Result<()> {
        let mut passed = 0;
        loop {
            while let Some(end) = input.windows(2).position(|pair| pair == b"\r\n") {
                input.drain(..end + 2);
                if end == 0 {
                    self.done = true;
                    return Ok(());
                }
                passed += end;
            }
            if passed + input.len() > 4096 {
                return Err(bad("what follows the last chunk is too long"));
            }
            self.read_stream(stream, input, 4096).await?;
        }
    }

    async fn read_stream(&self, stream: &TcpStream, into: &mut Vec<u8>, want: usize) -> io::Result<()> {
        into.reserve(want);
        loop {
            match stream.try_read_buf(&mut (&mut *into).limit(want)) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(_) => break,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    timeout(self.patience.silence.0, stream.readable())
                        .await
                        .map_err(|_| ErrorKind::TimedOut)??;
                }
                Err(error) => return Err(error),
            }
        }
        let passed = self.since.elapsed();
        let expected = self.patience.slowest.0 as f64 * passed.as_secs_f64();
        if passed > self.patience.grace.0 && (self.read as f64) < expected {
            return Err(ErrorKind::TimedOut.into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::TcpListener;

    use super::*;

    /// Sends the bytes in pieces of `step` and reads them as a body; the rest of the input afterwards.
    async fn exchange(length: BodyLength, sent: &[u8], step: usize) -> (io::Result<Vec<u8>>, Vec<u8>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        client.set_nodelay(true).unwrap();
        let (server, _) = listener.accept().await.unwrap();
        let sent = sent.to_vec();
        let sender = tokio::spawn(async move {
            for piece in sent.chunks(step) {
                client.write_all(piece).await.unwrap();
                tokio::task::yield_now().await;
            }
        });
        let (mut body, mut input, mut out) = (Body::new(length, Patience::default()), Vec::new(), Vec::new());
        let result = loop {
            let full = out.len() + 3;
            match body.next(&server, &mut input, &mut out, full).await {
                Ok(true) => {}
                Ok(false) => break Ok(out),
                Err(error) => break Err(error),
            }
        };
        drop(server);
        let _ = sender.await;
        (result, input)
    }

    #[tokio::test]
    async fn bodies_are_read_to_their_end_and_not_beyond() {
        let chunked = b"5;x=y\r\nhello\r\n6\r\n world\r\n0\r\nTrailer: z\r\n\r\n";
        for step in [1, 2, 7, 100] {
            let (result, _) = exchange(BodyLength::Chunked, chunked, step).await;
            assert_eq!(result.unwrap(), b"hello world", "{step}");
            let (result, _) = exchange(BodyLength::Known(11), b"hello world", step).await;
            assert_eq!(result.unwrap(), b"hello world", "{step}");
        }
        let (result, rest) = exchange(BodyLength::Chunked, b"1\r\nx\r\n0\r\n\r\nGET", 100).await;
        assert_eq!((result.unwrap(), rest), (b"x".to_vec(), b"GET".to_vec()));
    }

    #[tokio::test]
    async fn cut_and_broken_bodies_are_errors() {
        for (length, sent, kind) in [
            (BodyLength::Known(12), &b"hello world"[..], ErrorKind::UnexpectedEof),
            (BodyLength::Chunked, b"5\r\nhello\r\n", ErrorKind::UnexpectedEof),
            (BodyLength::Chunked, b"5\r\nhelloXX0\r\n\r\n", ErrorKind::InvalidData),
            (BodyLength::Chunked, b"zz\r\n", ErrorKind::InvalidData),
            (BodyLength::Chunked, b"fffffffffffffffff\r\n", ErrorKind::InvalidData),
        ] {
            let (result, _) = exchange(length, sent, 3).await;
            assert_eq!(result.unwrap_err().kind(), kind, "{}", String::from_utf8_lossy(sent));
        }
    }
}
