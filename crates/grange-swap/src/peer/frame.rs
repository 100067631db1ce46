//! Frames on a peer connection: `u32` length (big-endian), JSON, HMAC-SHA-256.
//!
//! The proof covers the direction and the number of the frame, so none can be changed, left out, repeated or sent back.

use std::io::{self, ErrorKind};

use serde::Serialize;
use serde::de::DeserializeOwned;
use subtle::ConstantTimeEq as _;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use crate::access::Key;

/// Longest frame, bytes: an inventory of thousands of slices.
const MAX_FRAME_BYTES: usize = 16 << 20;

/// One direction of a connection.
#[derive(Debug)]
pub(crate) struct Seal {
    key: Key,
    direction: &'static [u8],
    frames: u64,
}

impl Seal {
    pub(crate) fn new(key: Key, direction: &'static [u8]) -> Self {
        Self { key, direction, frames: 0 }
    }

    fn next(&mut self, bytes: &[u8]) -> [u8; 32] {
        self.frames += 1;
        self.key.proof(&[b"frame", self.direction, &self.frames.to_be_bytes(), bytes])
    }

    pub(crate) async fn write(
        &mut self,
        stream: &mut (impl AsyncWrite + Unpin),
        value: &impl Serialize,
    ) -> io::Result<()> {
        let bytes = serde_json::to_vec(value)?;
        if bytes.len() > MAX_FRAME_BYTES {
            return Err(io::Error::new(ErrorKind::InvalidData, "the frame is too long"));
        }
        let proof = self.next(&bytes);
        let mut frame = Vec::with_capacity(bytes.len() + 36);
        frame.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
        frame.extend_from_slice(&bytes);
        frame.extend_from_slice(&proof);
        stream.write_all(&frame).await?;
        stream.flush().await
    }

    pub(crate) async fn read<T: DeserializeOwned>(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
    ) -> io::Result<T> {
        let length = stream.read_u32().await? as usize;
        if length > MAX_FRAME_BYTES {
            return Err(io::Error::new(ErrorKind::InvalidData, "the frame is too long"));
        }
        // Grows with what comes, not with what is announced.
        let mut frame = Vec::new();
        stream.take(length as u64 + 32).read_to_end(&mut frame).await?;
        if frame.len() < length + 32 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let expected = self.next(&frame[..length]);
        if !bool::from(expected.ct_eq(&frame[length..])) {
            return Err(io::Error::new(ErrorKind::PermissionDenied, "the proof of a frame is wrong"));
        }
        Ok(serde_json::from_slice(&frame[..length])?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn frames_cannot_be_changed_repeated_or_sent_back() {
        let key = Key::new(b"0123456789abcdef".to_vec());
        let mut wire = Vec::new();
        let mut out = Seal::new(key.clone(), b"there");
        out.write(&mut wire, &"one").await.unwrap();
        let first = wire.len();
        out.write(&mut wire, &"two").await.unwrap();
        let read = async |direction, bytes: &[u8], count: usize| {
            let (mut seal, mut stream) = (Seal::new(key.clone(), direction), bytes);
            let mut last = Ok(String::new());
            for _ in 0..count {
                last = seal.read::<String>(&mut stream).await;
            }
            last.map_err(|error| error.kind())
        };
        assert_eq!(read(b"there", &wire, 2).await, Ok("two".to_owned()));
        assert_eq!(read(b"back", &wire, 1).await, Err(ErrorKind::PermissionDenied));
        assert_eq!(read(b"there", &wire[first..], 1).await, Err(ErrorKind::PermissionDenied));
        let twice = [&wire[..first], &wire[..first]].concat();
        assert_eq!(read(b"there", &twice, 2).await, Err(ErrorKind::PermissionDenied));
        let mut changed = wire.clone();
        changed[6] ^= 1;
        assert_eq!(read(b"there", &changed, 1).await, Err(ErrorKind::PermissionDenied));
        assert_eq!(read(b"there", &wire[..first - 1], 1).await, Err(ErrorKind::UnexpectedEof));
        assert_eq!(read(b"there", &[0xff; 8], 1).await, Err(ErrorKind::InvalidData));
    }
}
