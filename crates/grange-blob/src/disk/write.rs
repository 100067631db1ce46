//! Taking a stream: read in async code, written and hashed in one blocking thread beside it.

use std::io;

use bytes::Bytes;
use grange_model::{Checksums, FileName};
use tokio::sync::mpsc;

use super::base::sync_folder;
use super::temp::Temp;
use super::{Disk, Inner, Wanted};
use crate::blob::{Source, Stored};
use crate::check::{self, Announced};
use crate::digest::{By, Summing, union};
use crate::error::Error;

/// Buffers between the reader and the disk: a megabyte, so that neither waits for the other's hiccups.
const UNDER_WAY: usize = 4;

enum Piece {
    Bytes(Bytes),
    /// The source ended as it should. A channel that closes without this was given up.
    End,
    Failed(io::Error),
}

pub(super) async fn put(
    disk: &Disk,
    name: &FileName,
    mut source: Source<'_>,
    expected: Option<&Checksums>,
) -> Result<Stored, Error> {
    let (sender, receiver) = mpsc::channel(UNDER_WAY);
    let (owned, announced) = (name.clone(), Announced::of(&source, expected));
    let writing = disk.read(move |inner, wanted| inner.take_stream(&owned, &announced, receiver, wanted));
    let buffers = &disk.0.buffers;
    let reading = async {
        loop {
            let piece = match buffers.next(&mut source.reader).await {
                Ok(bytes) if bytes.is_empty() => Piece::End,
                Ok(bytes) => Piece::Bytes(bytes),
                Err(error) => Piece::Failed(error),
            };
            let last = !matches!(piece, Piece::Bytes(_));
            // The writer stops listening when it knows its answer.
            if sender.send(piece).await.is_err() || last {
                return;
            }
        }
    };
    tokio::pin!(writing);
    tokio::select! {
        biased;
        result = &mut writing => result,
        () = reading => writing.await,
    }
}

impl Inner {
    fn take_stream(
        &self,
        name: &FileName,
        announced: &Announced,
        mut pieces: mpsc::Receiver<Piece>,
        wanted: &Wanted,
    ) -> Result<Stored, Error> {
        self.writable()?;
        let mut next = || match pieces.blocking_recv() {
            Some(Piece::Bytes(bytes)) => Ok(Some(bytes)),
            Some(Piece::End) => Ok(None),
            Some(Piece::Failed(source)) => Err(Error::Source { name: name.clone(), source }),
            None => Err(Error::Source {
                name: name.clone(),
                source: io::Error::new(io::ErrorKind::Interrupted, "the sender gave up"),
            }),
        };
        if let Some(expected) = &announced.expected
            && let Some(stored) = self.known(name, expected, wanted)?
        {
            return Ok(stored);
        }
        let algorithms = announced.algorithms(&self.checksums);
        let (algorithms, assumed) = check::while_writing(algorithms, announced.expected.as_ref());
        let mut summing = Summing::new(By::First, &algorithms);
        // Of a name that is known only the sums are wanted; nothing is written.
        let mut temp = match self.find(name)? {
            Some(_) => None,
            None => Some(Temp::new(self, name, announced.size, wanted)?),
        };
        while let Some(bytes) = next()? {
            if let Some(temp) = &mut temp {
                temp.write(&bytes, summing.bytes())?;
            }
            summing.update(&bytes);
            // A sender of more than it announced must not fill the disk.
            if announced.size.is_some_and(|size| summing.bytes() > size) {
                break;
            }
        }
        let bytes = summing.bytes();
        let sums = summing.finish().or(assumed.as_ref());
        announced.check(name, bytes, &sums)?;
        match temp {
            Some(temp) => temp.publish(bytes, sums, assumed.is_some()),
            None => self.known(name, &sums, wanted)?.ok_or_else(|| {
                // It went to the attic while these bytes were read.
                Error::NotFound { name: name.clone(), place: self.place.clone() }
            }),
        }
    }

    /// The answer to a put of a name that is here, with these sums; `None` when it is not here.
    pub(super) fn known(
        &self,
        name: &FileName,
        given: &Checksums,
        wanted: &Wanted,
    ) -> Result<Option<Stored>, Error> {
        let Some((base, mut file)) = self.find(name)? else { return Ok(None) };
        let base = &self.bases[base];
        let algorithms = union(&self.checksums, Some(given));
        let (size, sums) = self.sum_wanted(&base.file(name), &mut file, &algorithms, wanted)?;
        let stored = check::known(name, &self.place, size, sums, given)?;
        // A crash may have come between the rename and its sync; the answer promises both.
        sync_folder(&base.files)?;
        Ok(Some(stored))
    }
}
