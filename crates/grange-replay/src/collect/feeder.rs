//! The worker that takes files into indexes and out of them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use grange_archive::ArchiveClient;
use grange_base::worker::Step;
use grange_base::{Chain, Clock};
use grange_blob::{Buckets, is_bucket_url};
use grange_db::{CollectedFile, CollectedState, Db, FileClaim, IndexRetry, Indexed};
use grange_index::Index;
use grange_model::FileName;
use grange_model::collection::{FileKind as Kind, job_of};
use tokio::runtime::Handle;

use super::blocking;
use super::file_stamp::FileStamp;
use super::keeper::{Keeper, RENEW_EVERY};
use super::mirror::MirrorError;
use super::reading::Reading;
use super::reconcile::Unwanted;
use super::shelf::{KeptIndex, Shelf, ShelfError};
use super::taking::{
    Trouble, commit, holds, lines, load_lines, no_package, packed, records, take_out, unreadable,
};
use crate::holdings::{ArchiveFiles, BucketFiles, BucketSection, wacz};

/// Gives the archive when a file of it is to be read: feeding foreign files leaves replicas alone.
pub type OpenArchive =
    Arc<dyn Fn() -> BoxFuture<'static, Result<Arc<dyn ArchiveClient>, String>> + Send + Sync>;

/// Takes files into the indexes of a shelf.
#[derive(Clone)]
pub struct Feeder {
    pub db: Db,
    pub shelf: Shelf,
    /// Which indexes this node keeps.
    pub keeper: Keeper,
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
    #[error(transparent)]
    Mirror(#[from] MirrorError),
    #[error("cannot change the index: {0}")]
    Index(String),
    #[error("another node has taken over the index of the collection {collection} while it was fetched here")]
    TakenOver { collection: String },
    #[error(
        "another node keeps the index of the collection {collection}: {node}; it indexes the files, or another one after it has been \
         silent for index.takeover_after"
    )]
    KeptElsewhere { collection: String, node: String },
}

/// A lease that is renewed while the file is read; a dead feeder's file is taken again after it.
const LEASE: Duration = Duration::from_secs(300);
/// A place that did not answer is asked again after this long, and after twice as long each time: five attempts make three
/// hours, in which the file waits; then it is listed as failed, and the attempts continue.
const RETRY_AFTER: Duration = Duration::from_secs(360);
/// After a repair of a place its files are read within this time.
const RETRY_MAX: Duration = Duration::from_hours(6);
/// Claims in a row without an outcome: a file that ended its readers so often is not given to another.
const ABANDONED_MAX: u32 = 5;

/// How long a file waits after an attempt that failed.
fn retry_after(attempts: u32) -> Duration {
    RETRY_AFTER.saturating_mul(1 << attempts.saturating_sub(1).min(16)).min(RETRY_MAX)
}

/// The retry that a kind of trouble leads to.
fn retry(trouble: &Trouble, attempts: u32) -> IndexRetry {
    match trouble {
        Trouble::File(_) => IndexRetry::Never,
        Trouble::Gone(_) => IndexRetry::FailedAfter(retry_after(attempts)),
        Trouble::Now(_) => IndexRetry::After(retry_after(attempts)),
    }
}

impl Feeder {
    /// Does one thing that is due: takes a collection away, a file out of an index, or one in.
    pub async fn step(&self) -> Result<Step, FeedError> {
        self.step_of(None).await
    }

    /// As [`step`](Self::step), for the files of one collection.
    pub async fn step_of(&self, collection: Option<&str>) -> Result<Step, FeedError> {
        let collections = self.db.collections();
        let removed = self.keeper.tend(collection).await?;
        for gone in removed {
            match self.remove(&gone).await {
                Ok(()) => {
                    tracing::info!(collection = gone, "collection removed");
                    return Ok(Step::More);
                }
                Err(error @ FeedError::Db(_)) => return Err(error),
                // It must not hold up the files of other collections.
                Err(error) => {
                    tracing::error!(
                        collection = gone, error = %Chain(&error),
                        "the index of a removed collection cannot be removed: the collection stays listed and its name taken; repair the folder"
                    );
                    self.keeper.put_off(&gone);
                }
            }
        }
        if let Some(name) = collection {
            self.check_kept(name).await?;
        }
        let Some(claim) = self.claim(collection).await? else { return Ok(Step::Idle) };
        let file = &claim.file;
        let kept = self.shelf.kept(&file.collection);
        if claim.abandoned >= ABANDONED_MAX && file.state != CollectedState::Leaving {
            let reason =
                "the processes that read it ended before it was read, several times: look at the log";
            if let Some(KeptIndex { index, .. }) = kept {
                // The last of them may have committed it.
                let name = file.name.clone();
                let out = blocking(move || take_out(&index, &name)).await;
                out.map_err(|trouble| FeedError::Index(trouble.to_string()))?;
            }
            collections.index_failed(&claim, reason, IndexRetry::Never).await?;
            return Ok(Step::More);
        }
        let Some(kept) = kept else {
            // Its index is not ready; the reason was logged.
            let reason =
                "the index of its collection cannot be used on the node that keeps it: look at the log";
            collections.index_failed(&claim, reason, IndexRetry::After(RETRY_AFTER)).await?;
            return Ok(Step::More);
        };
        let index = kept.index;
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
                        self.keeper.prolong().await;
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
                let retry = retry(&trouble, file.attempts);
                collections.index_failed(&claim, &trouble.to_string(), retry).await
            }
        };
        match marked {
            // A person changed their mind meanwhile, or another feeder was faster: their word counts.
            Ok(()) | Err(grange_db::Error::LeaseLost { .. }) => Ok(Step::More),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes a collection away, with its index.
    async fn remove(&self, name: &str) -> Result<(), FeedError> {
        let (shelf, of) = (self.shelf.clone(), name.to_owned());
        self.keeper.while_prolonging(None, blocking(move || shelf.remove(&of))).await?;
        self.keeper.remove_fetched(name).await?;
        Ok(self.db.collections().forget(name).await?)
    }

    /// A file of an index that is ready.
    async fn claim(&self, collection: Option<&str>) -> Result<Option<FileClaim>, FeedError> {
        let collections = self.db.collections();
        if collection.is_some() || !self.keeper.waits() {
            return Ok(collections.claim(collection, &self.owner, LEASE).await?);
        }
        // The files of an index that cannot be used wait for it.
        for kept in self.shelf.all_kept() {
            let claim = collections.claim(Some(&kept.lease.collection), &self.owner, LEASE).await?;
            if claim.is_some() {
                return Ok(claim);
            }
        }
        Ok(None)
    }

    /// Refuses to do the work of a collection whose index another node keeps.
    async fn check_kept(&self, name: &str) -> Result<(), FeedError> {
        let row = self.db.collections().indexes().await?.into_iter().find(|row| row.name == name);
        match row.and_then(|row| row.owner) {
            Some(owner) if owner.node != self.owner => {
                Err(FeedError::KeptElsewhere { collection: name.to_owned(), node: owner.node })
            }
            _ => Ok(()),
        }
    }

    /// Indexes the file, or takes it out (`None`). After an error nothing of it is in the index.
    async fn work(&self, claim: &FileClaim, index: Index) -> Result<Option<Indexed>, Trouble> {
        let file = claim.file.clone();
        let worked = self.read(claim, index.clone()).await;
        if worked.is_err() && file.state != CollectedState::Leaving {
            // It changed while it was read: what it was is not what it is.
            let name = file.name;
            blocking(move || take_out(&index, &name)).await?;
        }
        worked
    }

    async fn read(&self, claim: &FileClaim, index: Index) -> Result<Option<Indexed>, Trouble> {
        let file = claim.file.clone();
        if file.state == CollectedState::Leaving {
            return blocking(move || take_out(&index, &file.name)).await.map(|()| None);
        }
        let kind = Kind::of(file.path.as_deref().unwrap_or(&file.name));
        // Files in place may have changed since they were read, also since a reading that ended before its mark was made.
        // An index takes a name only once.
        if file.path.is_some() {
            let (index, name) = (index.clone(), file.name.clone());
            let read_before = file.captures > 0 || !file.told.is_empty();
            let take_out_first =
                move || if read_before || holds(&index, &name) { take_out(&index, &name) } else { Ok(()) };
            blocking(take_out_first).await?;
        }
        let unwanted = match kind {
            Kind::Lines => Unwanted::of(&self.db, &file.collection).await,
            _ => Ok(Unwanted::default()),
        };
        let unwanted = unwanted.map_err(|error| Trouble::Now(Chain(&error).to_string()))?;
        if let Some(url) = file.path.clone().filter(|path| is_bucket_url(path)) {
            return self.work_in_bucket(file, url, kind, index, unwanted).await.map(Some);
        }
        if let Some(path) = file.path {
            let before = FileStamp::of(Path::new(&path));
            let read = path.clone();
            let work = move || match kind {
                Kind::Records => records(&index, &file.name, Path::new(&path)),
                Kind::Wacz => {
                    let path = Path::new(&path);
                    let members = wacz::members(path).map_err(no_package(path))?;
                    packed(&index, &file.name, path, &members, |_, section| {
                        warc::Reader::seekable(section.open()?)
                    })
                }
                Kind::Lines => lines(&index, &file.name, Path::new(&path), &unwanted),
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
        unwanted: Unwanted,
    ) -> Result<Indexed, Trouble> {
        let size = self.buckets.size(&url).await.map_err(|error| Trouble::Now(Chain(&error).to_string()))?;
        let size = size.ok_or_else(|| Trouble::Gone(format!("cannot read {url}: it is not there")))?;
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
                Kind::Lines => load_lines(&index, &file.name, &url, reading, &unwanted),
                Kind::Wacz => {
                    let members = wacz::members_of(|at, buffer| reading.exactly(at, buffer), size)
                        .map_err(no_package(Path::new(&url)))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_is_away_is_asked_less_and_less_and_never_given_up() {
        let minutes = |attempts| retry_after(attempts).as_secs() / 60;
        assert_eq!([1, 2, 3, 4, 5, 6, 7, 99].map(minutes), [6, 12, 24, 48, 96, 192, 360, 360]);
        let text = || "away".to_owned();
        assert_eq!(retry(&Trouble::File(text()), 1), IndexRetry::Never);
        assert_eq!(retry(&Trouble::Gone(text()), 1), IndexRetry::FailedAfter(RETRY_AFTER));
        assert_eq!(retry(&Trouble::Now(text()), 2), IndexRetry::After(2 * RETRY_AFTER));
    }
}
