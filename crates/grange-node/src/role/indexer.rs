//! Indexer: takes stored and imported files into the indexes of their collections.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use grange_app::OpenArchive;
use grange_archive::ArchiveClient;
use grange_base::worker::{Hint, Step};
use grange_base::{Chain, Clock, Worker};
use grange_blob::Buckets;
use grange_db::Db;
pub use grange_index::{JobIndexKind, JobIndexReport};
use grange_model::node::NodeRole;
pub use grange_replay::collect::FeedError;
use grange_replay::collect::{Feeder, Follower, Keeper, Publisher, Shelf, mirror};
use tokio::sync::Mutex;

use crate::data::{Access, DataFolder};
use crate::node::StartError;
use crate::open;
use crate::settings::Settings;
use crate::supervise::Parts;

/// The indexes of a data folder. `writes`: this process feeds them.
pub fn shelf(settings: &Settings, data: &Path, writes: bool) -> Shelf {
    Shelf::new(data, settings.index.engine(), writes)
}

/// The handles that a feeder is made of.
struct Tools<'a> {
    settings: &'a Settings,
    data: &'a Path,
    db: &'a Db,
    shelf: Shelf,
    archive: OpenArchive,
    copies: Option<Arc<dyn grange_blob::Blob>>,
    clock: &'a Clock,
    owner: String,
}

fn feeder(tools: Tools<'_>) -> Result<Feeder, grange_blob::Error> {
    let Tools { settings, data, db, shelf, archive, copies, clock, owner } = tools;
    let archive = move || {
        let archive = archive.clone();
        let opened = async move {
            let archive = archive.get().await.map_err(|error| Chain(&error).to_string())?;
            Ok(Arc::new(archive.clone()) as Arc<dyn ArchiveClient>)
        };
        Box::pin(opened) as _
    };
    let lease = settings.index.takeover_after.0;
    let keeper = Keeper::new(db.clone(), shelf.clone(), clock.clone(), owner.clone(), lease, copies);
    let buckets = Buckets::open(&settings.index.buckets, data)?;
    Ok(Feeder {
        db: db.clone(),
        shelf,
        keeper,
        archive: Arc::new(archive),
        clock: clock.clone(),
        owner,
        buckets,
    })
}

/// Starts the indexer.
#[allow(clippy::too_many_arguments)] // Each is a handle that is opened elsewhere.
pub async fn start(
    parts: &mut Parts,
    settings: &Settings,
    data: &Path,
    db: &Db,
    shelf: Shelf,
    archive: OpenArchive,
    copies: Option<Arc<dyn grange_blob::Blob>>,
    clock: &Clock,
    owner: String,
) -> Result<(), StartError> {
    db.collections().reclaim(&owner).await?;
    let (of, copied) = (owner.clone(), copies.clone());
    let feeder =
        feeder(Tools { settings, data, db, shelf: shelf.clone(), archive, copies, clock, owner: of })?;
    // Indexes of this node are served from the start. The worker tries those again that cannot be used now, and takes others
    // over, which may take hours.
    if let Err(error) = feeder.keeper.tend_own().await {
        tracing::warn!(error = %Chain(&error), owner, "the indexes of this node are not ready yet");
    }
    if let Some(blob) = copied {
        let publisher = Publisher::new(db.clone(), shelf.clone(), blob, clock.clone());
        let publisher = Arc::new(Mutex::new(publisher));
        let (clock, interval) = (clock.clone(), settings.index.copies.every.0);
        parts.start("index-copies", move |shutdown| async move {
            let worker =
                Worker { name: "index-copies".to_owned(), interval, clock, shutdown, hint: Hint::new() };
            let step = || {
                let publisher = Arc::clone(&publisher);
                async move { publisher.lock().await.step().await }
            };
            worker.run(step).await
        });
    }
    let (clock, interval) = (clock.clone(), settings.index.look_every.0);
    parts.start("indexer", move |shutdown| async move {
        let worker = Worker { name: "indexer".to_owned(), interval, clock, shutdown, hint: Hint::new() };
        worker.run(|| feeder.step()).await
    });
    Ok(())
}

/// Who feeds the indexes of a data folder.
#[derive(Debug)]
pub enum Feeding {
    /// A node that runs on it, or elsewhere.
    ByNode,
    /// This process, for as long as the command takes.
    Here(Box<Here>),
}

/// A feeder without a node.
#[derive(Debug)]
pub struct Here {
    feeder: Feeder,
    _folder: DataFolder,
}

impl Here {
    /// Does one thing that is due for a collection. False: nothing is left.
    pub async fn step(&self, collection: &str) -> Result<bool, FeedError> {
        Ok(self.feeder.step_of(Some(collection)).await? == Step::More)
    }
}

/// A store outside the archive, by its URL, for copies of indexes.
async fn store(
    data: &Path,
    url: &str,
    keys: Option<(PathBuf, PathBuf)>,
    read_only: bool,
) -> Result<Arc<dyn grange_blob::Blob>, grange_blob::Error> {
    let (access_key_file, secret_key_file) = keys.unzip();
    let settings = grange_blob::Settings {
        url: url.to_owned(),
        checksums: vec![grange_model::Algorithm::Sha256],
        access_key_file,
        secret_key_file,
        read_only,
        ..grange_blob::Settings::default()
    };
    let context = grange_blob::Context::local(data, Clock::system());
    grange_blob::open(&settings, &context).await
}

/// The store for copies of indexes, if the settings name one and a role of this node uses it.
pub async fn copies(
    settings: &Settings,
    data: &Path,
    roles: &[NodeRole],
) -> Result<Option<Arc<dyn grange_blob::Blob>>, grange_blob::Error> {
    let copies = &settings.index.copies;
    let used = roles.contains(&NodeRole::Indexer) || roles.contains(&NodeRole::Replay);
    if copies.url.is_empty() || !used {
        return Ok(None);
    }
    let keys = copies.access_key_file.clone().zip(copies.secret_key_file.clone());
    store(data, &copies.url, keys, false).await.map(Some)
}

/// Follows the copies of indexes in a store.
pub(super) fn follower(
    settings: &Settings,
    data: &Path,
    blob: Arc<dyn grange_blob::Blob>,
    clock: &Clock,
) -> Follower {
    let every = settings.index.copies.every.0;
    let folder = data.join("index-copies");
    Follower::new(blob, folder, settings.index.engine(), every, clock.clone())
}

/// Copies the index of a collection into a store. Needs the index for itself: no node may feed it meanwhile.
pub async fn publish_index(
    settings: &Settings,
    data: &Path,
    collection: &str,
    url: &str,
    keys: Option<(PathBuf, PathBuf)>,
) -> anyhow::Result<u64> {
    DataFolder::require(data, open::database_file(settings, data).as_deref())?;
    let blob = store(data, url, keys, false).await?;
    let new =
        mirror::publish_folder(&shelf(settings, data, true), collection, &*blob, &Clock::system()).await?;
    Ok(new.unwrap_or_default())
}

/// Brings the newest copy of an index from a store into a folder, and gives where it lies.
pub async fn fetch_index(
    data: &Path,
    collection: &str,
    url: &str,
    keys: Option<(PathBuf, PathBuf)>,
    folder: &Path,
) -> anyhow::Result<PathBuf> {
    // Nothing is made where there is no copy: the data folder may be mistyped.
    let blob = store(data, url, keys, true).await?;
    Ok(mirror::fetch(collection, None, &*blob, folder).await?.folder)
}

/// Writes what the index of a collection knows of some jobs. Only looks, also while somebody writes.
pub fn job_index(
    settings: &Settings,
    data: &Path,
    collection: &str,
    jobs: &BTreeSet<String>,
    kind: JobIndexKind,
    out: &mut dyn Write,
) -> anyhow::Result<JobIndexReport> {
    DataFolder::require(data, open::database_file(settings, data).as_deref())?;
    let index = shelf(settings, data, false).index(collection)?;
    let index =
        index.ok_or_else(|| anyhow::anyhow!("nothing of the collection {collection} is indexed here"))?;
    Ok(grange_index::write_job_index(&index.snapshot(), jobs, kind, out)?)
}

/// Finds out who feeds, and gets ready to if it is this process.
pub async fn feeding(settings: &Settings, data: &Path) -> Result<Feeding, StartError> {
    let database = open::database_file(settings, data);
    let Access::Direct(folder) = DataFolder::access(data, database.as_deref()).await? else {
        return Ok(Feeding::ByNode);
    };
    let db = open::db(settings, folder.path(), Clock::system()).await?;
    let clock = db.clock();
    let owner = folder.node_id()?.to_string();
    db.collections().reclaim(&owner).await?;
    let speaking = crate::access::speaking(settings, &folder, clock.clone()).await?;
    let archive = crate::access::working_archive(settings, folder.path(), &db, speaking);
    let shelf = shelf(settings, folder.path(), true);
    let copies = copies(settings, folder.path(), &[NodeRole::Indexer]).await?;
    let feeder = feeder(Tools {
        settings,
        data: folder.path(),
        db: &db,
        shelf,
        archive,
        copies,
        clock: &clock,
        owner,
    })?;
    Ok(Feeding::Here(Box::new(Here { feeder, _folder: folder })))
}
