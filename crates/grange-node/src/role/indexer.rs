//! Indexer: takes stored and imported files into the indexes of their collections.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use grange_app::OpenArchive;
use grange_archive::ArchiveClient;
use grange_base::worker::{Hint, Step};
use grange_base::{Chain, Clock, Worker};
use grange_db::Db;
pub use grange_index::{JobIndexKind, JobIndexReport};
use grange_replay::collect::{FeedError, Feeder, Shelf, mirror};

use crate::data::{Access, DataFolder};
use crate::node::StartError;
use crate::open;
use crate::settings::Settings;
use crate::supervise::Parts;

/// The indexes of a data folder. `writes`: this process feeds them.
pub fn shelf(settings: &Settings, data: &Path, writes: bool) -> Shelf {
    Shelf::new(data, settings.index.engine(), writes)
}

fn feeder(db: &Db, shelf: Shelf, archive: OpenArchive, clock: &Clock, owner: String) -> Feeder {
    let archive = move || {
        let archive = archive.clone();
        let opened = async move {
            let archive = archive.get().await.map_err(|error| Chain(&error).to_string())?;
            Ok(Arc::new(archive.clone()) as Arc<dyn ArchiveClient>)
        };
        Box::pin(opened) as _
    };
    Feeder { db: db.clone(), shelf, archive: Arc::new(archive), clock: clock.clone(), owner }
}

/// Starts the indexer.
pub async fn start(
    parts: &mut Parts,
    settings: &Settings,
    db: &Db,
    shelf: Shelf,
    archive: OpenArchive,
    clock: &Clock,
    owner: String,
) -> Result<(), grange_db::Error> {
    db.collections().reclaim(&owner).await?;
    let feeder = feeder(db, shelf, archive, clock, owner);
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
) -> Result<Arc<dyn grange_blob::Blob>, grange_blob::Error> {
    let (access_key_file, secret_key_file) = keys.unzip();
    let settings = grange_blob::Settings {
        url: url.to_owned(),
        checksums: vec![grange_model::Algorithm::Sha256],
        access_key_file,
        secret_key_file,
        ..grange_blob::Settings::default()
    };
    let context = grange_blob::Context::local(data, Clock::system());
    grange_blob::open(&settings, &context).await
}

/// Copies the index of a collection into a store. Needs the index for itself: no node may feed it meanwhile.
pub async fn publish_index(
    settings: &Settings,
    data: &Path,
    collection: &str,
    url: &str,
    keys: Option<(PathBuf, PathBuf)>,
) -> anyhow::Result<u64> {
    let blob = store(data, url, keys).await?;
    let index = shelf(settings, data, true).index(collection)?;
    let index =
        index.ok_or_else(|| anyhow::anyhow!("there is no index of the collection {collection} here"))?;
    let aside = tempfile::tempdir_in(data.join("index"))?;
    let files = aside.path().join("checkpoint");
    Ok(mirror::publish(&index, collection, &*blob, &files, &Clock::system()).await?)
}

/// Brings the newest copy of an index from a store into a folder, and gives where it lies.
pub async fn fetch_index(
    data: &Path,
    collection: &str,
    url: &str,
    keys: Option<(PathBuf, PathBuf)>,
    folder: &Path,
) -> anyhow::Result<PathBuf> {
    let blob = store(data, url, keys).await?;
    Ok(mirror::fetch(collection, &*blob, folder).await?)
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
    let index = shelf(settings, data, false).index(collection)?;
    let index =
        index.ok_or_else(|| anyhow::anyhow!("nothing of the collection {collection} is indexed here"))?;
    Ok(grange_index::write_job_index(&index.snapshot(), jobs, kind, out)?)
}

/// Finds out who feeds, and gets ready to if it is this process.
pub async fn feeding(settings: &Settings, data: &Path) -> Result<Feeding, StartError> {
    let Access::Direct(folder) = DataFolder::access(data)? else { return Ok(Feeding::ByNode) };
    let clock = Clock::system();
    let db = open::db(settings, folder.path(), clock.clone()).await?;
    let owner = folder.node_id()?.to_string();
    db.collections().reclaim(&owner).await?;
    let archive = crate::access::working_archive(settings, folder.path(), &db);
    let shelf = shelf(settings, folder.path(), true);
    let feeder = feeder(&db, shelf, archive, &clock, owner);
    Ok(Feeding::Here(Box::new(Here { feeder, _folder: folder })))
}
