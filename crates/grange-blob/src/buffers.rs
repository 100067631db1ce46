//! Buffers that are used again: reading a terabyte must not ask the allocator for one.

use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Large enough that system calls do not count, small enough that what was read is still in the core's cache
/// when it is hashed.
pub(crate) const BUFFER_BYTES: usize = 256 << 10;

/// Idle buffers kept: 8 MiB, what a few files under way at once need.
const IDLE_MAX: usize = 32;

/// A stock of buffers. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Buffers(Arc<Mutex<Vec<Vec<u8>>>>);

/// A filled buffer that goes back to the stock with its last reference.
struct Lent {
    buffer: Vec<u8>,
    filled: usize,
    home: Buffers,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.buffer[..self.filled]
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let mut idle = self.home.0.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_MAX {
            idle.push(std::mem::take(&mut self.buffer));
        }
    }
}

impl Buffers {
    fn take(&self) -> Vec<u8> {
        let idle = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.unwrap_or_else(|| vec![0; BUFFER_BYTES])
    }

    fn lend(&self, buffer: Vec<u8>, filled: usize) -> Bytes {
        Bytes::from_owner(Lent { buffer, filled, home: self.clone() })
    }

    /// Hands on what the reader gives, in full buffers but the last.
    pub(crate) fn each(
        &self,
        reader: &mut impl Read,
        mut act: impl FnMut(Bytes) -> io::Result<()>,
    ) -> io::Result<()> {
        loop {
            let mut buffer = self.take();
            let mut filled = 0;
            while filled < buffer.len() {
                match reader.read(&mut buffer[filled..]) {
                    Ok(0) => break,
                    Ok(n) => filled += n,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            let last = filled < buffer.len();
            if filled > 0 {
                act(self.lend(buffer, filled))?;
            }
            if last {
                return Ok(());
            }
        }
    }

    /// The next full buffer, a shorter one before the end, or nothing at the end.
    pub(crate) async fn next(&self, reader: &mut (impl AsyncRead + Unpin)) -> io::Result<Bytes> {
        let mut buffer = self.take();
        let mut filled = 0;
        while filled < buffer.len() {
            match reader.read(&mut buffer[filled..]).await? {
                0 => break,
                n => filled += n,
            }
        }
        Ok(self.lend(buffer, filled))
    }
}
