//! The worker that takes files into indexes and out of them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use grange_archive::ArchiveClient;
use grange_base::worker::Step;
use grange_base::{Chain, Clock};
use grange_blob::{Buckets, is_bucket_url};
use grange_db::{CollectedFile, CollectedState, Db, FileClaim, Indexed};
use grange_index::Index;
use grange_model::FileName;
use grange_model::collection::{FileKind as Kind, job_of};
use tokio::runtime::Handle;

use super::file_stamp::FileStamp;
use super::reading::Reading;
use super::shelf::{Shelf, ShelfError};
use super::taking::{Trouble, commit, lines, load_lines, packed, records, take_out, unreadable};
use crate::holdings::{ArchiveFiles, BucketFiles, BucketSection, wacz};

/// Gives the archive when a file of it is to be read: feeding foreign files leaves replicas alone.
pub type OpenArchive =
    Arc<dyn Fn() -> BoxFuture<'static, Result<Arc<dyn ArchiveClient>, String>> + Send + Sync>;

/// Takes files into the indexes of a shelf.
#[derive(Clone)]
pub struct Feeder {
    pub db: Db,
    pub shelf: Shelf,
    pub archive: OpenArchive,
    pub clock: Clock,
    /// Who holds the leases.
    pub owner: String,
    /// Where files may lie that are in no folder.
    pub buckets: Buckets,
}

impl std::fmt::Debug for Feeder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Feeder")
            .field("shelf", &self.shelf)
            .field("owner", &self.owner)
            .finish_non_exhaustive()
    }
}

/// A step that could not be taken; the next one tries again.
#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    #[error(transparent)]
    Db(#[from] grange_db::Error),
    #[error(transparent)]
    Shelf(#[from] ShelfError),
}

/// A lease that is renewed while the file is read; a dead feeder's file is taken again after it.
const LEASE: Duration = Duration::from_secs(300);
const RENEW_EVERY: Duration = Duration::from_secs(100);
/// A copy that did not answer is asked again after this long; five times make half an hour.
const RETRY_AFTER: Duration = Duration::from_secs(360);
/// Attempts counted when a file is claimed: one that ended its readers so often is not given to another.
const ATTEMPTS_MAX: u32 = 5;

impl Feeder {
    /// Does one thing that is due: takes a collection away, a file out of an index, or one in.
    pub async fn step(&self) -> Result<Step, FeedError> {
        self.step_of(None).await
    }

    /// As [`step`](Self::step), for the files of one collection.
    pub async fn step_of(&self, collection: Option<&str>) -> Result<Step, FeedError> {
        let collections = self.db.collections();
        if let Some(gone) = collections.removed().await?.into_iter().next() {
            let (shelf, name) = (self.shelf.clone(), gone.clone());
            blocking(move || shelf.remove(&name)).await?;
            collections.forget(&gone).await?;
            tracing::info!(collection = gone, "collection removed");
            return Ok(Step::More);
        }
        let Some(claim) = collections.claim(collection, &self.owner, LEASE).await? else {
            return Ok(Step::Idle);
        };
        let file = &claim.file;
        if file.attempts > ATTEMPTS_MAX && file.state == CollectedState::Waiting {
            let reason = "whoever read it ended before it was read, several times: look at the log";
            collections.index_failed(&claim, reason, None).await?;
            return Ok(Step::More);
        }
        let (name, of) = (file.collection.clone(), self.shelf.clone());
        let index = match blocking(move || of.index(&name)).await {
            Ok(Some(index)) => index,
            Ok(None) => return Ok(Step::Idle),
            Err(error) => {
                let reason = Chain(&error).to_string();
                collections.index_failed(&claim, &reason, Some(RETRY_AFTER)).await?;
                return Err(error.into());
            }
        };
        let outcome = {
            let work = self.work(&claim, index);
            tokio::pin!(work);
            loop {
                tokio::select! {
                    outcome = &mut work => break outcome,
                    () = self.clock.sleep(RENEW_EVERY) => {
                        if let Err(error) = collections.renew(&claim, LEASE).await {
                            tracing::warn!(name = file.name, error = %Chain(&error), "the lease was not renewed");
                        }
                    }
                }
            }
        };
        let marked = match outcome {
            Ok(Some(came)) => {
                let (captures, problems) = (came.captures, came.problems);
                tracing::info!(collection = file.collection, name = file.name, captures, problems, "indexed");
                collections.indexed(&claim, came).await
            }
            Ok(None) => collections.taken_out(&claim).await,
            Err(trouble) => {
                tracing::warn!(collection = file.collection, name = file.name, %trouble, "not indexed");
                let retry = matches!(trouble, Trouble::Now(_)).then_some(RETRY_AFTER);
                collections.index_failed(&claim, &trouble.to_string(), retry).await
            }
        };
        match marked {
            // A person changed their mind meanwhile, or another feeder was faster: their word counts.
            Ok(()) | Err(grange_db::Error::LeaseLost { .. }) => Ok(Step::More),
            Err(error) => Err(error.into()),
        }
    }

    /// Indexes the file, or takes it out (`None`).
    async fn work(&self, claim: &FileClaim, index: Index) -> Result<Option<Indexed>, Trouble> {
        let file = claim.file.clone();
        if file.state == CollectedState::Leaving {
            return blocking(move || take_out(&index, &file.name)).await.map(|()| None);
        }
        let kind = Kind::of(file.path.as_deref().unwrap_or(&file.name));
        // Files in place may have changed since they were read; an index takes a name only once.
        if file.path.is_some() && (file.captures > 0 || !file.told.is_empty()) {
            let (index, name) = (index.clone(), file.name.clone());
            blocking(move || take_out(&index, &name)).await?;
        }
        if let Some(url) = file.path.clone().filter(|path| is_bucket_url(path)) {
            return self.work_in_bucket(file, url, kind, index).await.map(Some);
        }
        if let Some(path) = file.path {
            let before = FileStamp::of(Path::new(&path));
            let read = path.clone();
            let work = move || match kind {
                Kind::Records => records(&index, &file.name, Path::new(&path)),
                Kind::Wacz => {
                    let path = Path::new(&path);
                    let members =
                        wacz::members(path).map_err(|error| Trouble::File(Chain(&error).to_string()))?;
                    packed(&index, &file.name, path, &members, |_, section| {
                        warc::Reader::seekable(section.open()?)
                    })
                }
                Kind::Lines => lines(&index, &file.name, Path::new(&path)),
                Kind::Other => Err(Trouble::File("it is no WARC, ARC, WACZ, CDX or CDXJ file".to_owned())),
            };
            let came = blocking(work).await?;
            return before.compare(FileStamp::of(Path::new(&read)), came).map(Some);
        }
        // The archive keeps papers too; they have no captures, and that is in order.
        if kind != Kind::Records {
            return Ok(Some(Indexed {
                job: job_of(&file.name).map(ToOwned::to_owned),
                ..Indexed::default()
            }));
        }
        let archive = (self.archive)().await.map_err(Trouble::Now)?;
        let parsed = file.name.parse::<FileName>();
        parsed.map_err(|error| Trouble::File(format!("{error}")))?;
        let handle = Handle::current();
        let work = move || {
            let files = Arc::new(ArchiveFiles::new(archive));
            let reading = Reading::new(files, &file.name, file.size, handle);
            let job = job_of(&file.name);
            let read = warc::Reader::new(reading)
                .and_then(|mut reader| commit(&index, &mut reader, &file.name, job));
            let mut came = read.map_err(|error| Trouble::Now(Chain(&error).to_string()))?;
            came.job = job.map(ToOwned::to_owned);
            Ok(came)
        };
        blocking(work).await.map(Some)
    }

    async fn work_in_bucket(
        &self,
        file: CollectedFile,
        url: String,
        kind: Kind,
        index: Index,
    ) -> Result<Indexed, Trouble> {
        let size = self.buckets.size(&url).await.map_err(|error| Trouble::Now(Chain(&error).to_string()))?;
        let size = size.ok_or_else(|| Trouble::File(format!("cannot read {url}: it is not there")))?;
        let files = Arc::new(BucketFiles::new(self.buckets.clone()));
        files.add(&file.name, BucketSection { url: url.clone(), offset: 0, len: size });
        let (handle, read) = (Handle::current(), url.clone());
        let came = blocking(move || {
            let reading = Reading::new(files.clone(), &file.name, size, handle.clone());
            let failed = unreadable(Path::new(&url));
            match kind {
                Kind::Records => warc::Reader::new(reading)
                    .and_then(|mut reader| commit(&index, &mut reader, &file.name, None))
                    .map_err(failed),
                Kind::Lines => load_lines(&index, &file.name, &url, reading),
                Kind::Wacz => {
                    let members = wacz::members_of(|at, buffer| reading.exactly(at, buffer), size)
                        .map_err(|error| Trouble::File(Chain(&error).to_string()))?;
                    packed(&index, &file.name, Path::new(&url), &members, |name, place| {
                        let len = place.end - place.start;
                        files.add(name, BucketSection { url: url.clone(), offset: place.start, len });
                        warc::Reader::new(Reading::new(files.clone(), name, len, handle.clone()))
                    })
                }
                Kind::Other => Err(Trouble::File("it is no WARC, ARC, WACZ, CDX or CDXJ file".to_owned())),
            }
        })
        .await?;
        let after =
            self.buckets.size(&read).await.map_err(|error| Trouble::Now(Chain(&error).to_string()))?;
        FileStamp::in_bucket(Some(size)).compare(FileStamp::in_bucket(after), came)
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        // The worker stops the process on a panic of its own, as it shall on this one.
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}
