//! The client of clamd: one connection for each scan, `INSTREAM` in the null-terminated form.
//!
//! ```text
//! zINSTREAM\0  (length:4, big-endian  bytes)…  0000      →  stream: OK\0
//! ```

use std::io;
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

use super::gate::{Unscanned, Verdict};
use super::settings::{OnUnscanned, Settings};

/// How many bytes go in one chunk.
const CHUNK_BYTES: usize = 64 << 10;
/// How much of a reply is read: a name, not a page.
const REPLY_BYTES_MAX: u64 = 4096;

/// An address at which no clamd can be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("virus.clamd is {0:?}; write tcp:HOST:PORT or unix:/PATH, or nothing to scan nothing")]
pub struct ScannerError(String);

#[derive(Clone, Debug)]
enum Address {
    Tcp(String),
    Unix(PathBuf),
}

/// Shows answers to clamd. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Scanner {
    address: Address,
    name: Box<str>,
    on_unscanned: OnUnscanned,
    max_stream: u64,
    connect_timeout: Duration,
    timeout: Duration,
}

impl Scanner {
    /// None when the settings name no clamd.
    pub fn new(settings: &Settings) -> Result<Option<Scanner>, ScannerError> {
        let name = settings.clamd.trim();
        if name.is_empty() {
            return Ok(None);
        }
        let address = match name.split_once(':') {
            Some(("tcp", place)) if has_port(place) => Address::Tcp(place.to_owned()),
            Some(("unix", path)) if !path.is_empty() => Address::Unix(PathBuf::from(path)),
            _ => return Err(ScannerError(name.to_owned())),
        };
        Ok(Some(Scanner {
            address,
            name: name.into(),
            on_unscanned: settings.on_unscanned,
            max_stream: settings.max_stream.0,
            connect_timeout: settings.connect_timeout.0,
            timeout: settings.timeout.0,
        }))
    }

    /// What happens to answers that could not be scanned.
    pub fn on_unscanned(&self) -> OnUnscanned {
        self.on_unscanned
    }

    /// Scans what `body` gives. Never fails: what goes wrong is a verdict too.
    pub async fn scan(&self, body: impl AsyncRead) -> Verdict {
        timeout(self.timeout, self.connect_and_scan(body))
            .await
            .unwrap_or(Verdict::Unscanned(Unscanned::Slow))
    }

    async fn connect_and_scan(&self, body: impl AsyncRead) -> Verdict {
        let unreachable = |reason: String| {
            Verdict::Unscanned(Unscanned::Unreachable { address: self.name.clone(), reason: reason.into() })
        };
        let connected = match &self.address {
            Address::Tcp(place) => match timeout(self.connect_timeout, TcpStream::connect(place)).await {
                Ok(Ok(stream)) => Ok(Ok(self.talk(stream, body).await)),
                Ok(Err(error)) => Ok(Err(error)),
                Err(late) => Err(late),
            },
            Address::Unix(path) => match timeout(self.connect_timeout, UnixStream::connect(path)).await {
                Ok(Ok(stream)) => Ok(Ok(self.talk(stream, body).await)),
                Ok(Err(error)) => Ok(Err(error)),
                Err(late) => Err(late),
            },
        };
        match connected {
            Ok(Ok(verdict)) => verdict,
            Ok(Err(error)) => unreachable(error.to_string()),
            Err(_) => unreachable("no connection in time".to_owned()),
        }
    }

    async fn talk(&self, stream: impl AsyncRead + AsyncWrite, body: impl AsyncRead) -> Verdict {
        let (reader, writer) = tokio::io::split(stream);
        let (writer, body) = (pin!(writer), pin!(body));
        let mut send = pin!(self.send(writer, body));
        let mut receive = pin!(receive(reader));
        // clamd may speak before it was shown everything: a refusal, or a find. It then reads no further.
        let (sent, reply) = tokio::select! {
            reply = &mut receive => (None, reply),
            sent = &mut send => match sent {
                Err(SendError::Body(error)) => {
                    return Verdict::Unscanned(Unscanned::Body(error.to_string().into()));
                }
                sent => (Some(sent), receive.await),
            },
        };
        let verdict = match reply {
            Ok(reply) if !reply.is_empty() => Verdict::of_reply(&reply),
            Ok(_) => Verdict::Unscanned(Unscanned::Broken("no reply".into())),
            Err(error) => Verdict::Unscanned(Unscanned::Broken(error.to_string().into())),
        };
        match (verdict, sent) {
            (Verdict::Clean, Some(Ok(Sent::Whole))) => Verdict::Clean,
            // A good word about a part is none about the whole.
            (Verdict::Clean, Some(Ok(Sent::Cut))) => Verdict::Unscanned(Unscanned::TooLong(self.max_stream)),
            (Verdict::Clean, None) => Verdict::Unscanned(Unscanned::Garbage("OK before the end".into())),
            (Verdict::Clean, Some(Err(SendError::Clamd(error) | SendError::Body(error)))) => {
                Verdict::Unscanned(Unscanned::Broken(error.to_string().into()))
            }
            (verdict, _) => verdict,
        }
    }

    async fn send(
        &self,
        mut clamd: Pin<&mut impl AsyncWrite>,
        mut body: Pin<&mut impl AsyncRead>,
    ) -> Result<Sent, SendError> {
        clamd.write_all(b"zINSTREAM\0").await.map_err(SendError::Clamd)?;
        let mut chunk = vec![0; 4 + CHUNK_BYTES];
        let mut left = self.max_stream;
        let sent = loop {
            let room = CHUNK_BYTES.min(usize::try_from(left).unwrap_or(CHUNK_BYTES)).max(1);
            let count = match body.read(&mut chunk[4..4 + room]).await {
                Ok(0) => break Sent::Whole,
                Ok(_) if left == 0 => break Sent::Cut,
                Ok(count) => count,
                // clamd need not finish the scan of a part.
                Err(error) => return Err(SendError::Body(error)),
            };
            left -= count as u64;
            chunk[..4].copy_from_slice(&(count as u32).to_be_bytes());
            clamd.write_all(&chunk[..4 + count]).await.map_err(SendError::Clamd)?;
        };
        clamd.write_all(&[0; 4]).await.map_err(SendError::Clamd)?;
        clamd.flush().await.map_err(SendError::Clamd)?;
        Ok(sent)
    }
}

/// How much was shown.
enum Sent {
    Whole,
    Cut,
}

/// Who failed.
enum SendError {
    Clamd(io::Error),
    Body(io::Error),
}

/// Reads up to the null, the end, or the bound.
async fn receive(reader: impl AsyncRead) -> io::Result<Vec<u8>> {
    let mut reader = pin!(reader.take(REPLY_BYTES_MAX));
    let mut reply = Vec::new();
    let mut part = [0; 512];
    loop {
        let count = match reader.read(&mut part).await {
            Ok(count) => count,
            // What clamd said before it hung up still counts.
            Err(_) if !reply.is_empty() => return Ok(reply),
            Err(error) => return Err(error),
        };
        if count == 0 {
            return Ok(reply);
        }
        reply.extend_from_slice(&part[..count]);
        if let Some(end) = reply.iter().position(|b| *b == 0) {
            reply.truncate(end);
            return Ok(reply);
        }
    }
}

fn has_port(place: &str) -> bool {
    place.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
}
