//! Taking a stream: what fits into one part in one request under its name, the rest in parts under a temporary
//! key and then by a copy within the store. Either way the name is given only if it is free, and read back.

use bytes::{Bytes, BytesMut};
use grange_base::Chain;
use grange_model::{Algorithm, Checksums, FileName};
use object_store::path::Path;
use object_store::{Error as S3Error, ObjectStoreExt, PutMode, PutOptions, WriteMultipart};
use uuid::Uuid;

use super::S3;
use crate::blob::{Source, Stored};
use crate::buffers::Buffers;
use crate::check::{self, Announced};
use crate::digest::{By, Summing, union};
use crate::error::Error;

/// Bytes per part. S3 takes 10,000 parts of at least 5 MiB; this leaves room for 80 GiB and asks for little memory.
const PART_BYTES: usize = 8 << 20;

/// Parts under way at once: 32 MiB per upload.
const PARTS_UNDER_WAY: usize = 4;

/// Bytes coming in, summed up on the way.
struct Incoming<'a> {
    name: &'a FileName,
    source: Source<'a>,
    announced: Announced,
    summing: Summing,
    buffers: Buffers,
}

impl Incoming<'_> {
    async fn next(&mut self) -> Result<Bytes, Error> {
        let bytes = self.buffers.next(&mut self.source.reader).await;
        let bytes = bytes.map_err(|source| Error::Source { name: self.name.clone(), source })?;
        self.summing.update(&bytes);
        if let Some(announced) = self.announced.size.filter(|size| self.summing.bytes() > *size) {
            let received = self.summing.bytes();
            return Err(Error::WrongSize { name: self.name.clone(), announced, received });
        }
        Ok(bytes)
    }

    /// The sums of everything, if they are what was announced.
    fn finish(self) -> Result<(u64, Checksums), Error> {
        let size = self.summing.bytes();
        let sums = self.summing.finish();
        self.announced.check(self.name, size, &sums)?;
        Ok((size, sums))
    }
}

pub(super) async fn put(
    s3: &S3,
    name: &FileName,
    source: Source<'_>,
    expected: Option<&Checksums>,
) -> Result<Stored, Error> {
    let announced = Announced::of(&source, expected);
    if let Some(expected) = &announced.expected
        && let Some(stored) = known(s3, name, expected).await?
    {
        return Ok(stored);
    }
    let summing = Summing::inline(By::First, &announced.algorithms(&s3.checksums));
    let mut incoming = Incoming { name, source, announced, summing, buffers: Buffers::default() };
    let mut first = BytesMut::new();
    loop {
        let bytes = incoming.next().await?;
        if bytes.is_empty() {
            return in_one(s3, incoming, first.freeze()).await;
        }
        first.extend_from_slice(&bytes);
        if first.len() >= PART_BYTES {
            return in_parts(s3, incoming, first.freeze()).await;
        }
    }
}

async fn in_one(s3: &S3, incoming: Incoming<'_>, bytes: Bytes) -> Result<Stored, Error> {
    let name = incoming.name;
    let (size, sums) = incoming.finish()?;
    let _lock = s3.lock(name).await;
    let free = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
    let put = s3.store.put_opts(&s3.file(name), bytes.into(), free).await.map(|_| ());
    named(s3, name, size, sums, put).await
}

async fn in_parts(s3: &S3, incoming: Incoming<'_>, first: Bytes) -> Result<Stored, Error> {
    let name = incoming.name;
    let temp = s3.key(&["temp", &Uuid::new_v4().simple().to_string()]);
    let (size, sums) = upload(s3, &temp, incoming, first).await?;
    let lock = s3.lock(name).await;
    let copied = s3.store.copy_if_not_exists(&temp, &s3.file(name)).await;
    let stored = named(s3, name, size, sums, copied).await;
    drop(lock);
    if let Err(error) = s3.store.delete(&temp).await {
        tracing::warn!(place = s3.place, key = %temp, %error, "a temporary object stays until the next start");
    }
    stored
}

/// All bytes under the temporary key, or nothing.
async fn upload(
    s3: &S3,
    temp: &Path,
    mut incoming: Incoming<'_>,
    first: Bytes,
) -> Result<(u64, Checksums), Error> {
    let name = incoming.name;
    let failed = |error| s3.file_error("store", name, error);
    let upload = s3.store.put_multipart(temp).await.map_err(failed)?;
    let mut writer = WriteMultipart::new_with_chunk_size(upload, PART_BYTES);
    writer.put(first);
    let received = async {
        loop {
            writer.wait_for_capacity(PARTS_UNDER_WAY).await.map_err(failed)?;
            let bytes = incoming.next().await?;
            if bytes.is_empty() {
                return incoming.finish();
            }
            writer.write(&bytes);
        }
    };
    match received.await {
        Ok(received) => writer.finish().await.map(|_| received).map_err(failed),
        Err(error) => {
            // An upload that stays open anyway is aborted by the sweep of abandoned uploads.
            let _ = writer.abort().await;
            Err(error)
        }
    }
}

/// Takes the object away that read back wrong, and no other that was put there since.
async fn retire_wrong(s3: &S3, name: &FileName, size: u64, sums: &Checksums) -> Result<(), Error> {
    let Some(before) = s3.head(name).await? else { return Ok(()) };
    let strongest: Vec<Algorithm> = sums.algorithms().take(1).collect();
    let read = s3.sum(name, &strongest).await?.unwrap_or_default();
    if check::read_back(name, &s3.place, (size, sums), read).is_ok() {
        return Ok(());
    }
    s3.retire(name, Some(&before)).await
}

/// After the attempt to give the name: reads back what lies there now, whoever put it.
async fn named(
    s3: &S3,
    name: &FileName,
    size: u64,
    sums: Checksums,
    attempt: Result<(), S3Error>,
) -> Result<Stored, Error> {
    match attempt {
        Ok(()) => {
            let strongest: Vec<Algorithm> = sums.algorithms().take(1).collect();
            let read = s3.sum(name, &strongest).await?.unwrap_or_default();
            if let Err(error) = check::read_back(name, &s3.place, (size, &sums), read) {
                // Not what was sent: a fault of the store, or another process whom the store let in as well. The
                // name is freed for the next attempt, and nobody's bytes are lost.
                if let Err(error) = retire_wrong(s3, name, size, &sums).await {
                    tracing::warn!(place = s3.place, %name, error = %Chain(&error), "a wrong copy keeps its name");
                }
                return Err(error);
            }
            Ok(Stored { size, checksums: sums, already: false })
        }
        Err(S3Error::AlreadyExists { .. }) => {
            let gone = || Error::NotFound { name: name.clone(), place: s3.place.clone() };
            known(s3, name, &sums).await?.ok_or_else(gone)
        }
        Err(error) => Err(s3.error(format!("store {name}"), error)),
    }
}

/// The answer to a put of a name that is there; `None` when it is not.
async fn known(s3: &S3, name: &FileName, given: &Checksums) -> Result<Option<Stored>, Error> {
    let Some((size, sums)) = s3.sum(name, &union(&s3.checksums, Some(given))).await? else { return Ok(None) };
    check::known(name, &s3.place, size, sums, given).map(Some)
}
