//! The port: what every backend does, and nothing it may do beyond.

use std::fmt::{self, Debug};
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use async_trait::async_trait;
use bytes::Bytes;
use grange_base::named_file;
use grange_model::{Algorithm, Checksums, FileName, Sha512};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, ReadBuf};

use crate::buffers::Buffers;
use crate::check;
use crate::digest::{By, sum_file};
use crate::error::Error;
use crate::peer::Origin;

/// Where the bytes of a put come from, and how many there should be.
pub struct Source<'a> {
    pub(crate) reader: Pin<Box<dyn AsyncRead + Send + 'a>>,
    pub(crate) size: Option<u64>,
    /// Where the sender's own checksum appears once all bytes were read.
    pub(crate) trailer: Option<Trailer>,
}

/// A checksum that comes after the bytes.
pub(crate) type Trailer = Arc<OnceLock<Checksums>>;

impl<'a> Source<'a> {
    /// Bytes up to the reader's end.
    pub fn new(reader: impl AsyncRead + Send + 'a) -> Self {
        Self { reader: Box::pin(reader), size: None, trailer: None }
    }

    /// The same from a sender that tells its checksum at the end.
    pub(crate) fn with_trailer(self, trailer: Trailer) -> Self {
        Self { trailer: Some(trailer), ..self }
    }

    /// The same, with their number: a disk with room for them is chosen, and more or fewer are refused. Give it
    /// whenever it is known; a stream that was cut cannot be told from one that ended otherwise.
    #[must_use]
    pub fn of_size(self, bytes: u64) -> Self {
        Self { size: Some(bytes), ..self }
    }
}

impl<'a> From<&'a [u8]> for Source<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::new(bytes).of_size(bytes.len() as u64)
    }
}

impl Debug for Source<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("size", &self.size).finish_non_exhaustive()
    }
}

/// What becomes of a local file that was put by its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taking {
    /// It stays where it is.
    Copy,
    /// It is gone after `Ok` and untouched after an error. Nobody may be writing to it: on the same disk the
    /// archive takes over the file itself.
    Move,
}

/// What a put left behind, as computed here from the bytes and read back from where they now lie.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stored {
    pub size: u64,
    pub checksums: Checksums,
    /// The same bytes were here before, and nothing was changed.
    pub already: bool,
}

/// What is known of a stored file without reading it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stat {
    pub size: u64,
    #[schemars(with = "String")]
    pub modified: Timestamp,
}

/// One line of a listing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Listed {
    pub name: FileName,
    /// Absent where the file is there and cannot be looked at; then `modified` says nothing.
    pub size: Option<u64>,
    #[schemars(with = "String")]
    pub modified: Timestamp,
}

/// The name of the marker that lies beside the files of a store, never among them.
pub const MARKER: &str = "grange-replica.json";

/// One disk, bucket or collection of a store, with its marker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarkedPart {
    /// Which part of the store: a folder; empty where a store has only one part.
    pub part: String,
    /// The text of the marker; absent where there is none.
    pub marker: Option<String>,
    /// No file lies there. Only looked at where there is no marker.
    pub empty: bool,
    /// What lies beside every marker and is gone here: the folder of the files, or the list of checksums. Nothing is known then of
    /// what it held.
    #[serde(default)]
    pub lost: Option<String>,
}

/// Files that lie in a store's folders and that no listing shows: in subfolders, or under names that no file may have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnlistedFiles {
    pub count: u64,
    /// The first of them, with their sizes.
    pub paths: Vec<(String, u64)>,
}

/// Room for more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Space {
    /// Free bytes on all disks together; absent where that cannot be asked.
    pub free_bytes: Option<u64>,
    pub total_bytes: Option<u64>,
    /// The largest file that would be taken now; 0 when full or read-only.
    pub largest_bytes: u64,
}

/// The bytes of a stored file. Read it to its end: there an early end or a wrong checksum is an error, never a
/// short file.
pub struct Opened {
    pub size: u64,
    left: u64,
    reader: Pin<Box<dyn AsyncRead + Send>>,
}

impl Opened {
    pub(crate) fn new(size: u64, reader: impl AsyncRead + Send + 'static) -> Self {
        Self { size, left: size, reader: Box::pin(reader) }
    }

    /// As the source of a put elsewhere.
    pub fn into_source(self) -> Source<'static> {
        let size = self.size;
        Source::new(self).of_size(size)
    }
}

impl AsyncRead for Opened {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if buf.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        let filled = buf.filled().len();
        ready!(self.reader.as_mut().poll_read(cx, buf))?;
        let read = (buf.filled().len() - filled) as u64;
        let size = self.size;
        if read == 0 && self.left > 0 {
            let text = format!("the file ends after {} of its {size} bytes", size - self.left);
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::UnexpectedEof, text)));
        }
        let Some(left) = self.left.checked_sub(read) else {
            // A reader that fails has read nothing: who reads to the end counts on it.
            buf.set_filled(filled);
            let text = format!("more bytes came than the {size} the file has");
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, text)));
        };
        self.left = left;
        Poll::Ready(Ok(()))
    }
}

impl Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opened").field("size", &self.size).finish_non_exhaustive()
    }
}

/// Keeps bytes by name. Held as `Arc<dyn Blob>`.
///
/// A stored file never changes: its name stands for these bytes until they are moved to the attic.
#[async_trait]
pub trait Blob: Debug + Send + Sync {
    /// Keeps the bytes under the name.
    ///
    /// After `Ok` they are durable, were read back from where they lie, and a crash or a second put of the same
    /// bytes changes nothing. After an error nothing of them is visible. Until the end nobody sees a part of them.
    ///
    /// Other bytes under a known name are [`Error::Conflict`], bytes that differ from `expected` are
    /// [`Error::WrongChecksum`]. Where the name is known and what lies there has the expected checksum, `source` is
    /// not read at all.
    async fn put(
        &self,
        name: &FileName,
        source: Source<'_>,
        expected: Option<&Checksums>,
    ) -> Result<Stored, Error>;

    /// The same from a local file, without moving bytes where the disk allows it.
    async fn put_file(
        &self,
        name: &FileName,
        path: &Path,
        taking: Taking,
        expected: Option<&Checksums>,
    ) -> Result<Stored, Error> {
        let stored = put_stream_of(self, name, path, expected).await?;
        taken(self, name, path, taking, stored).await
    }

    /// Has this store fetch the file itself from where it lies, so that no byte of it passes through here. `None` where
    /// that cannot be; then it must be put. The bytes are proven as those of a put.
    async fn pull(
        &self,
        _name: &FileName,
        _holder: &dyn Blob,
        _size: u64,
        _expected: &Checksums,
    ) -> Result<Option<Stored>, Error> {
        Ok(None)
    }

    /// Where other nodes find what this store holds; `None` where none can.
    async fn origin(&self) -> Result<Option<Origin>, Error> {
        Ok(None)
    }

    /// Where the file lies on this machine, for who links, shares or copies it there; `None` when it lies elsewhere.
    async fn local_path(&self, _name: &FileName) -> Result<Option<PathBuf>, Error> {
        Ok(None)
    }

    /// The bytes, from the start. [`Error::NotFound`] at once when there are none.
    async fn get(&self, name: &FileName) -> Result<Opened, Error>;

    /// Up to `len` bytes from `offset` on; fewer only at the end of the file, none beyond it.
    async fn read_at(&self, name: &FileName, offset: u64, len: usize) -> Result<Bytes, Error>;

    /// Up to `limit` files after `after`, in the order of their names' bytes. Only an empty page is the end: a page may
    /// have fewer than `limit` files at any time. What is not a file of this store is skipped and shortens nothing.
    async fn list(&self, after: Option<&FileName>, limit: usize) -> Result<Vec<Listed>, Error>;

    /// Files that people or programs laid into the store's folders and that [`Blob::list`] does not show: how many, and the
    /// paths of up to `limit`. None where a store cannot tell.
    async fn unlisted(&self, _limit: usize) -> Result<UnlistedFiles, Error> {
        Ok(UnlistedFiles::default())
    }

    async fn stat(&self, name: &FileName) -> Result<Option<Stat>, Error>;

    /// Reads the stored bytes again and sums them up, where they lie; `None` when there are none. On a disk the
    /// page cache is dropped first and the digests come from another implementation than the one used on put
    /// (MD5 has only one).
    async fn checksum(&self, name: &FileName, algorithms: &[Algorithm]) -> Result<Option<Checksums>, Error>;

    /// HMAC-SHA-512 of the stored bytes with `salt` as key, computed where they lie. Who cannot read the bytes now
    /// cannot answer for a salt it has not seen before. `None` when there are none.
    async fn challenge(&self, name: &FileName, salt: &[u8]) -> Result<Option<Sha512>, Error>;

    /// Takes the file out of sight, provided its bytes have the expected checksum ([`Error::OtherBytes`] if not).
    /// The bytes are kept aside, for people. [`Error::NotFound`] when there is no such file. Without any checksum it
    /// takes only a file that cannot be read ([`Error::NoChecksum`] if it can).
    async fn remove_to_attic(&self, name: &FileName, expected: &Checksums) -> Result<(), Error>;

    async fn free(&self) -> Result<Space, Error>;

    /// The disks, buckets or collections that this store consists of, each with its marker: a small text that the owner
    /// of the store leaves there with [`Blob::mark`]. A part without it is not mounted, or is an empty or another disk.
    async fn markers(&self) -> Result<Vec<MarkedPart>, Error>;

    /// Leaves the marker on one part, in the place of an earlier one. After `Ok` it is durable.
    async fn mark(&self, part: &str, text: &str) -> Result<(), Error>;

    /// Ends uploads that killed processes left and that are visible in no listing, and gives how many. Called every hour;
    /// backends that clean up by themselves do nothing.
    async fn remove_abandoned_uploads(&self) -> Result<u64, Error> {
        Ok(0)
    }

    /// Where this is, for logs and errors; secrets are left out.
    fn place(&self) -> &str;
}

/// Puts a local file as a stream.
pub(crate) async fn put_stream_of<B: Blob + ?Sized>(
    blob: &B,
    name: &FileName,
    path: &Path,
    expected: Option<&Checksums>,
) -> Result<Stored, Error> {
    let failed = |source| Error::Source { name: name.clone(), source };
    let file = named_file::open_async(path).await.map_err(failed)?;
    let size = file.metadata().await.map_err(failed)?.len();
    blob.put(name, Source::new(file).of_size(size), expected).await
}

/// What becomes of the local file once its bytes are stored.
pub(crate) async fn taken<B: Blob + ?Sized>(
    blob: &B,
    name: &FileName,
    path: &Path,
    taking: Taking,
    stored: Stored,
) -> Result<Stored, Error> {
    let failed = |source| Error::Source { name: name.clone(), source };
    if taking == Taking::Move {
        // A put may not have read the file at all. Nothing is deleted that was not just seen to be these bytes.
        if stored.already {
            let deciding: Vec<_> = stored.checksums.algorithms().take(1).collect();
            let (_, given) = sum_path(path, &deciding).await.map_err(failed)?;
            check::known(name, blob.place(), stored.size, stored.checksums, &given)?;
        }
        tokio::fs::remove_file(path).await.map_err(failed)?;
    }
    Ok(stored)
}

/// Size and checksums of a local file, by the implementation used on the way in, off the async threads.
pub async fn sum_path(path: &Path, algorithms: &[Algorithm]) -> io::Result<(u64, Checksums)> {
    let (path, algorithms) = (path.to_owned(), algorithms.to_vec());
    let sum = move || sum_file(&mut named_file::open(&path)?, By::First, &algorithms, &Buffers::default());
    tokio::task::spawn_blocking(sum).await?
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn an_early_end_and_bytes_beyond_the_end_are_errors() {
        for (size, ended) in [
            (0, Err(io::ErrorKind::InvalidData)),
            (2, Err(io::ErrorKind::InvalidData)),
            (3, Ok(3)),
            (4, Err(io::ErrorKind::UnexpectedEof)),
        ] {
            let mut bytes = Vec::new();
            let read = Opened::new(size, &b"abc"[..]).read_to_end(&mut bytes).await;
            assert_eq!(read.map_err(|error| error.kind()), ended, "{size}");
        }
    }
}
