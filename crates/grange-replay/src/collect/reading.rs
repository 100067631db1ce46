//! A file of the archive as something that a thread reads from its beginning to its end.

use std::io::{self, Read};
use std::sync::Arc;

use bytes::Bytes;
use grange_archive::ArchiveClient;
use grange_model::FileName;
use tokio::runtime::Handle;

/// Bytes asked for at once: few questions for a large file, little memory for many small ones.
const READ_BYTES: u64 = 8 << 20;

pub(super) struct Reading {
    pub(super) archive: Arc<dyn ArchiveClient>,
    pub(super) name: FileName,
    pub(super) size: u64,
    pub(super) handle: Handle,
    pub(super) at: u64,
    pub(super) bytes: Bytes,
}

impl Read for Reading {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.bytes.is_empty() && self.at < self.size {
            let wanted = READ_BYTES.min(self.size - self.at);
            let read = self.archive.read_at(&self.name, self.at, wanted);
            self.bytes = self.handle.block_on(read).map_err(io::Error::other)?;
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
