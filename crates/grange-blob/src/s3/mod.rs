//! Bytes in a bucket of an S3-compatible store.
//!
//! ```text
//! PREFIX/files/NAME           the files, each one object
//! PREFIX/temp/ID              large files on their way; older ones than a week are cleared at start
//! PREFIX/attic/TIME-ID/NAME   removed, kept for people
//! PREFIX/grange-replica.json  the marker: whose files these are
//! ```
//!
//! A name is given with the condition that it is free (`If-None-Match: *`), so that two writers cannot both be told
//! that theirs is stored. The store must know that condition, on single and multipart uploads. Multipart uploads that
//! killed archivers left are aborted at start and every hour, a week after they were begun. Copies on the server's side end at 5 GiB (the limit of
//! one part in S3), and so do files here.

mod abandoned;
mod clock;
mod foreign;
mod write;

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use grange_base::{Chain, Clock};
use grange_model::{Algorithm, Checksums, FileName, Sha512};
use jiff::Timestamp;
use object_store::aws::{AmazonS3Builder, S3ConditionalPut, S3CopyIfNotExists};
use object_store::path::Path;
use object_store::{BackoffConfig, Error as S3Error, ObjectMeta, ObjectStore, ObjectStoreExt, RetryConfig};
use tokio::sync::{Mutex, MutexGuard};
use tokio_util::io::StreamReader;

use crate::blob::{Blob, Listed, MARKER, MarkedPart, Opened, Source, Space, Stat, Stored, UnlistedFiles};
use crate::check;
use crate::digest::{By, Proving, Summing};
use crate::error::Error;

pub use foreign::{BucketFile, BucketSettings, Buckets, is_bucket_url};

/// Temporary objects this old belong to nobody any more: no upload takes a week.
const TEMP_AGE_MAX_S: i64 = 7 * 24 * 60 * 60;

/// Locks against two puts of one name in this process: more than the uploads that are ever under way at once, so that
/// two names seldom wait for each other.
const LOCKS: usize = 256;

/// Where the bucket is and how to get in.
#[derive(Clone)]
pub struct S3Settings {
    pub bucket: String,
    /// Key prefix, without slashes at its ends; may be empty.
    pub prefix: String,
    /// `http://HOST:PORT` of a store of one's own; absent for Amazon's.
    pub endpoint: Option<String>,
    pub region: String,
    pub access_key: String,
    pub secret_key: String,
    pub checksums: Vec<Algorithm>,
    pub read_only: bool,
}

impl std::fmt::Debug for S3Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("S3Settings")
            .field("bucket", &self.bucket)
            .field("prefix", &self.prefix)
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}

/// A prefix of a bucket.
#[derive(Debug)]
pub struct S3 {
    store: Arc<dyn ObjectStore>,
    prefix: String,
    place: String,
    checksums: Vec<Algorithm>,
    read_only: bool,
    clock: Clock,
    locks: Vec<Mutex<()>>,
    /// Absent over stores of objects that are not S3.
    multipart: Option<abandoned::MultipartAccess>,
}

impl S3 {
    /// Opens the bucket, which must exist, and clears away old temporary objects.
    pub async fn open(settings: S3Settings, clock: Clock) -> Result<Self, Error> {
        let place = format!("s3://{}/{}", settings.bucket, settings.prefix);
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(&settings.bucket)
            .with_region(&settings.region)
            .with_access_key_id(&settings.access_key)
            .with_secret_access_key(&settings.secret_key)
            .with_conditional_put(S3ConditionalPut::ETagMatch)
            .with_copy_if_not_exists(S3CopyIfNotExists::Multipart)
            // Enough for a hiccup; whoever wants the file stored tries again later, and can say so meanwhile.
            .with_retry(RetryConfig {
                backoff: BackoffConfig::default(),
                max_retries: 7,
                retry_timeout: Duration::from_secs(30),
            });
        if let Some(endpoint) = &settings.endpoint {
            builder = builder.with_endpoint(endpoint).with_allow_http(endpoint.starts_with("http://"));
        }
        let store = builder.build().map_err(|source| Error::Remote {
            doing: "open the bucket".to_owned(),
            place: place.clone(),
            source: source.into(),
        })?;
        let multipart = Some(abandoned::MultipartAccess::new(&settings, &place, store.clone())?);
        let S3Settings { prefix, checksums, read_only, .. } = settings;
        let locks = (0..LOCKS).map(|_| Mutex::default()).collect();
        let s3 =
            Self { store: Arc::new(store), prefix, place, checksums, read_only, clock, locks, multipart };
        s3.clear_temp().await?;
        if let Err(error) = s3.remove_abandoned_uploads().await {
            // A key may lack the right to list them, and files can be kept without it.
            tracing::warn!(place = s3.place, error = %Chain(&error), "abandoned multipart uploads were not looked for");
        }
        Ok(s3)
    }

    /// The same over any store of objects.
    #[cfg(test)]
    pub(crate) fn over(store: Arc<dyn ObjectStore>, prefix: &str) -> Self {
        let locks = (0..LOCKS).map(|_| Mutex::default()).collect();
        Self {
            store,
            prefix: prefix.to_owned(),
            place: format!("s3://test/{prefix}"),
            checksums: Algorithm::ALL.to_vec(),
            read_only: false,
            clock: Clock::system(),
            locks,
            multipart: None,
        }
    }

    #[cfg(test)]
    pub(crate) fn store(&self) -> &Arc<dyn ObjectStore> {
        &self.store
    }

    /// Also finds out at start whether the bucket can be reached.
    async fn clear_temp(&self) -> Result<(), Error> {
        let failed = |error| self.error("list the bucket", error);
        let mut listed = self.store.list(Some(&self.key(&["temp"])));
        while let Some(object) = listed.try_next().await.map_err(failed)? {
            let age = self.clock.now().as_second() - object.last_modified.timestamp();
            if age > TEMP_AGE_MAX_S && !self.read_only {
                self.store.delete(&object.location).await.map_err(failed)?;
            }
        }
        Ok(())
    }

    /// The key itself: nothing is escaped, for names hold nothing that a key may not hold.
    pub(crate) fn key(&self, parts: &[&str]) -> Path {
        let mut key = self.prefix.clone();
        for part in parts {
            if !key.is_empty() {
                key.push('/');
            }
            key.push_str(part);
        }
        // The rules of names are stricter than those of keys.
        Path::parse(&key).unwrap_or_else(|_| Path::from(key))
    }

    fn file(&self, name: &FileName) -> Path {
        self.key(&["files", name.as_str()])
    }

    /// Held while a name is given and what lies under it is read back. Not every store judges its condition and
    /// writes in one step (SeaweedFS does not); between processes the archive's lease on a file stands in for it.
    async fn lock(&self, name: &FileName) -> MutexGuard<'_, ()> {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(name);
        self.locks[(hash % LOCKS as u64) as usize].lock().await
    }

    fn writable(&self) -> Result<(), Error> {
        if self.read_only { Err(Error::ReadOnly { place: self.place.clone() }) } else { Ok(()) }
    }

    fn error(&self, doing: impl Into<String>, error: S3Error) -> Error {
        let (place, doing) = (self.place.clone(), doing.into());
        let answer = Chain(&error).to_string();
        if clock::refuses_time(&answer) {
            // Requests are signed with the machine's own time, whatever clock the node goes by.
            return Error::Clock {
                doing,
                place,
                ours: Timestamp::now(),
                theirs: clock::server_time(&answer),
            };
        }
        match error {
            S3Error::PermissionDenied { source, .. } => {
                Error::Refused { place, doing, status: 403, reason: source.to_string() }
            }
            S3Error::Unauthenticated { source, .. } => {
                Error::Refused { place, doing, status: 401, reason: source.to_string() }
            }
            error => Error::Remote { doing, place, source: error.into() },
        }
    }

    /// The same about one file, whose absence is an answer.
    fn file_error(&self, doing: &str, name: &FileName, error: S3Error) -> Error {
        match error {
            S3Error::NotFound { .. } => Error::NotFound { name: name.clone(), place: self.place.clone() },
            error => self.error(format!("{doing} {name}"), error),
        }
    }

    async fn head(&self, name: &FileName) -> Result<Option<ObjectMeta>, Error> {
        match self.store.head(&self.file(name)).await {
            Ok(meta) => Ok(Some(meta)),
            Err(S3Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.error(format!("look at {name}"), error)),
        }
    }

    /// Reads a stored file to its end.
    async fn each(&self, name: &FileName, mut act: impl FnMut(&Bytes) + Send) -> Result<Option<u64>, Error> {
        let failed = |error| self.file_error("read", name, error);
        let got = match self.store.get(&self.file(name)).await {
            Ok(got) => got,
            Err(S3Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let mut size = 0;
        let mut pieces = got.into_stream();
        while let Some(bytes) = pieces.try_next().await.map_err(failed)? {
            size += bytes.len() as u64;
            act(&bytes);
        }
        Ok(Some(size))
    }

    /// Moves the object that was read to the attic; the name is free only once the copy is there. Stores have no removal with
    /// a condition: another process may have put the right object there meanwhile, so it is looked at right before.
    async fn retire(&self, name: &FileName, read: Option<&ObjectMeta>) -> Result<(), Error> {
        let now = self.clock.now().strftime("%Y%m%dT%H%M%SZ");
        let id = uuid::Uuid::new_v4().simple().to_string();
        let attic = self.key(&["attic", &format!("{now}-{}", &id[..8]), name.as_str()]);
        let moved = async {
            self.store.copy(&self.file(name), &attic).await?;
            self.store.head(&attic).await?;
            if let Some(read) = read {
                let now = self.store.head(&self.file(name)).await?;
                if (&now.e_tag, now.last_modified) != (&read.e_tag, read.last_modified) {
                    let source = "it was replaced meanwhile; repeat the repair if it is still needed".into();
                    return Err(S3Error::Precondition { path: self.file(name).to_string(), source });
                }
            }
            self.store.delete(&self.file(name)).await
        };
        moved.await.map_err(|error| self.file_error("move to the attic", name, error))
    }

    /// Sums up what lies there, by the second implementation.
    async fn sum(
        &self,
        name: &FileName,
        algorithms: &[Algorithm],
    ) -> Result<Option<(u64, Checksums)>, Error> {
        let mut summing = Summing::inline(By::Second, algorithms);
        let size = self.each(name, |bytes| summing.update(bytes)).await?;
        Ok(size.map(|size| (size, summing.finish())))
    }
}

fn timestamp(meta: &ObjectMeta) -> Timestamp {
    Timestamp::from_millisecond(meta.last_modified.timestamp_millis()).unwrap_or_default()
}

#[async_trait]
impl Blob for S3 {
    async fn put(
        &self,
        name: &FileName,
        source: Source<'_>,
        expected: Option<&Checksums>,
    ) -> Result<Stored, Error> {
        self.writable()?;
        write::put(self, name, source, expected).await
    }

    async fn get(&self, name: &FileName) -> Result<Opened, Error> {
        let got = self.store.get(&self.file(name)).await;
        let got = got.map_err(|error| self.file_error("read", name, error))?;
        let size = got.meta.size;
        let pieces = got.into_stream().map_err(std::io::Error::other);
        Ok(Opened::new(size, StreamReader::new(pieces)))
    }

    async fn read_at(&self, name: &FileName, offset: u64, len: usize) -> Result<Bytes, Error> {
        let not_found = || Error::NotFound { name: name.clone(), place: self.place.clone() };
        // A range must not start behind the end, so the end must be known.
        let size = self.head(name).await?.ok_or_else(not_found)?.size;
        let end = offset.saturating_add(len as u64).min(size);
        if offset >= end {
            return Ok(Bytes::new());
        }
        let read = self.store.get_range(&self.file(name), offset..end).await;
        read.map_err(|error| self.file_error("read", name, error))
    }

    async fn list(&self, after: Option<&FileName>, limit: usize) -> Result<Vec<Listed>, Error> {
        let folder = self.key(&["files"]);
        let listing = match after {
            Some(after) => self.store.list_with_offset(Some(&folder), &self.file(after)),
            None => self.store.list(Some(&folder)),
        };
        // Keys that name no file are skipped before anything is counted: others may write into the bucket too.
        let file = |object: &ObjectMeta| {
            let name = object.location.as_ref().strip_prefix(folder.as_ref())?.strip_prefix('/')?;
            let name = name.parse().ok()?;
            Some(Listed { name, size: Some(object.size), modified: timestamp(object) })
        };
        let files = listing.try_filter_map(|object| std::future::ready(Ok(file(&object))));
        files.take(limit).try_collect().await.map_err(|error| self.error("list the bucket", error))
    }

    async fn unlisted(&self, limit: usize) -> Result<UnlistedFiles, Error> {
        let folder = self.key(&["files"]);
        let mut listing = self.store.list(Some(&folder));
        let mut found = UnlistedFiles::default();
        while let Some(object) =
            listing.try_next().await.map_err(|error| self.error("list the bucket", error))?
        {
            let name = object.location.as_ref().strip_prefix(folder.as_ref()).unwrap_or_default();
            let name = name.strip_prefix('/').unwrap_or_default();
            if name.parse::<FileName>().is_ok() {
                continue;
            }
            found.count += 1;
            if found.paths.len() < limit {
                found.paths.push((format!("{}/files/{name}", self.place.trim_end_matches('/')), object.size));
            }
        }
        Ok(found)
    }

    async fn stat(&self, name: &FileName) -> Result<Option<Stat>, Error> {
        let meta = self.head(name).await?;
        Ok(meta.map(|meta| Stat { size: meta.size, modified: timestamp(&meta) }))
    }

    async fn checksum(&self, name: &FileName, algorithms: &[Algorithm]) -> Result<Option<Checksums>, Error> {
        Ok(self.sum(name, algorithms).await?.map(|(_, sums)| sums))
    }

    async fn challenge(&self, name: &FileName, salt: &[u8]) -> Result<Option<Sha512>, Error> {
        let mut proving = Proving::new(salt);
        let size = self.each(name, |bytes| proving.update(bytes)).await?;
        Ok(size.map(|_| proving.finish()))
    }

    async fn remove_to_attic(&self, name: &FileName, expected: &Checksums) -> Result<(), Error> {
        self.writable()?;
        let _lock = self.lock(name).await;
        let deciding = check::deciding(name, expected);
        let not_found = || Error::NotFound { name: name.clone(), place: self.place.clone() };
        let before = match self.head(name).await {
            Ok(found) => Some(found.ok_or_else(not_found)?),
            // It may not even be possible to look at it.
            Err(_) if deciding.is_err() => None,
            Err(error) => return Err(error),
        };
        let summed = match self.sum(name, deciding.as_deref().unwrap_or_default()).await {
            // Without a checksum only an object that cannot be read is taken; the copy is made by the store itself.
            Err(error) if deciding.is_err() => {
                tracing::warn!(place = self.place, %name, error = %Chain(&error), "an unreadable copy goes to the attic");
                return self.retire(name, before.as_ref()).await;
            }
            summed => summed?,
        };
        let (_, found) = summed.ok_or_else(not_found)?;
        deciding?;
        check::removable(name, &self.place, expected, found)?;
        self.retire(name, before.as_ref()).await
    }

    async fn free(&self) -> Result<Space, Error> {
        let largest_bytes = if self.read_only { 0 } else { u64::MAX };
        Ok(Space { free_bytes: None, total_bytes: None, largest_bytes })
    }

    async fn markers(&self) -> Result<Vec<MarkedPart>, Error> {
        let marker = match self.store.get(&self.key(&[MARKER])).await {
            Ok(got) => {
                let bytes = got.bytes().await.map_err(|error| self.error("read the marker", error))?;
                Some(String::from_utf8_lossy(&bytes).into_owned())
            }
            Err(S3Error::NotFound { .. }) => None,
            Err(error) => return Err(self.error("read the marker", error)),
        };
        let empty = marker.is_none() && self.list(None, 1).await?.is_empty();
        Ok(vec![MarkedPart { part: String::new(), marker, empty, lost: None }])
    }

    async fn mark(&self, _part: &str, text: &str) -> Result<(), Error> {
        self.writable()?;
        let put = self.store.put(&self.key(&[MARKER]), Bytes::copy_from_slice(text.as_bytes()).into()).await;
        put.map(|_| ()).map_err(|error| self.error("write the marker", error))
    }

    async fn remove_abandoned_uploads(&self) -> Result<u64, Error> {
        match &self.multipart {
            Some(access) if !self.read_only => abandoned::abort_abandoned(self, access).await,
            _ => Ok(0),
        }
    }

    fn place(&self) -> &str {
        &self.place
    }
}
