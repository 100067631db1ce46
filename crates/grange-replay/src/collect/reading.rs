//! A file somewhere else as something that a thread reads.

use std::io::{self, Read};
use std::sync::Arc;

use bytes::Bytes;
use tokio::runtime::Handle;

use crate::holdings::Holdings;

/// Bytes asked for at once: few questions for a large file, little memory for many small ones.
const READ_BYTES: u64 = 8 << 20;

/// From its beginning to its end.
pub(super) struct Reading {
    holdings: Arc<dyn Holdings>,
    name: String,
    size: u64,
    handle: Handle,
    at: u64,
    bytes: Bytes,
}

impl Reading {
    pub(super) fn new(holdings: Arc<dyn Holdings>, name: &str, size: u64, handle: Handle) -> Self {
        Self { holdings, name: name.to_owned(), size, handle, at: 0, bytes: Bytes::new() }
    }

    /// Fills `buffer` from a place in the file.
    pub(super) fn exactly(&self, at: u64, buffer: &mut [u8]) -> io::Result<()> {
        let read = self.handle.block_on(self.holdings.read_at(&self.name, at, buffer.len() as u64));
        let bytes = read.map_err(io::Error::other)?.ok_or(io::ErrorKind::NotFound)?;
        if bytes.len() != buffer.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        buffer.copy_from_slice(&bytes);
        Ok(())
    }
}

impl Read for Reading {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.bytes.is_empty() && self.at < self.size {
            let wanted = READ_BYTES.min(self.size - self.at);
            let read = self.holdings.read_at(&self.name, self.at, wanted);
            let read = self.handle.block_on(read).map_err(io::Error::other)?;
            self.bytes = read.ok_or(io::ErrorKind::NotFound)?;
            self.at += self.bytes.len() as u64;
            if self.bytes.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let len = buffer.len().min(self.bytes.len());
        buffer[..len].copy_from_slice(&self.bytes.split_to(len));
        Ok(len)
    }
}
