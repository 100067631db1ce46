//! Settings become opened handles here; nothing else constructs a backend.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use grange_app::{App, CrawlLogs, Harvesting, OpenArchive};
use grange_archive::{Archive, Parts};
use grange_base::{Clock, Shutdown};
use grange_blob::{Blob, Offers, PeerAuth};
use grange_bus::{Announcer, Bus};
use grange_db::Db;
use grange_harvest::metadata::read::{Part, lines_of_file};
use grange_model::ReplicaName;
use grange_model::ids::NodeId;

use crate::data::{DataError, DataFolder};
use crate::node::StartError;
use crate::peer::files::Held;
use crate::peer::proof::NodeToken;
use crate::settings::{Settings, below};

pub async fn db(settings: &Settings, data: &Path, clock: Clock) -> Result<Db, grange_db::Error> {
    Db::open(&settings.db, data, clock).await
}

/// The file that must be there for an archive to be there; `None` where the database is a server.
pub fn database_file(settings: &Settings, data: &Path) -> Option<PathBuf> {
    match grange_db::Target::read(&settings.db, data) {
        Ok(grange_db::Target::Sqlite { path }) => Some(path.to_path_buf()),
        _ => None,
    }
}

pub async fn bus(
    settings: &Settings,
    data: &Path,
    clock: &Clock,
    shutdown: &Shutdown,
) -> Result<Arc<dyn Bus>, grange_bus::Error> {
    let database = match grange_db::Target::read(&settings.db, data) {
        Ok(grange_db::Target::Postgres { url }) => Some(url.to_string()),
        _ => None,
    };
    grange_bus::open(&settings.bus, database.as_deref(), clock, shutdown).await
}

/// An archive that was created.
#[derive(Clone, Debug)]
pub struct Created {
    pub node: NodeId,
    pub database: grange_db::Status,
    /// Replicas on this machine that hold files, which the new database does not know.
    pub full_replicas: Vec<String>,
}

/// Creates an empty archive: the folder, this node's id and token, and the tables. A PostgreSQL database that has tables
/// is joined: its tables are left as they are.
pub async fn create(settings: &Settings, data: &Path) -> Result<Created, StartError> {
    let file = database_file(settings, data);
    let exists = || StartError::from(DataError::Exists { path: data.to_owned() });
    if DataFolder::exists(data, file.as_deref()) {
        return Err(exists());
    }
    // A server that is away is known before anything is made.
    if file.is_none() {
        Db::status(&settings.db, data).await?;
    }
    let folder = DataFolder::take(data).await?;
    if file.as_deref().is_some_and(Path::exists) {
        return Err(exists());
    }
    folder.known_node_id()?;
    NodeToken::read_or_make(&below(data, &settings.node.token_file))?;
    let clock = Clock::system();
    if file.is_some() || Db::status(&settings.db, data).await?.step == 0 {
        migrate(settings, data, &clock).await?;
    }
    let node = folder.node_id()?;
    let full_replicas = if file.is_some() { full_replicas(settings, data, &clock).await } else { Vec::new() };
    Ok(Created { node, database: Db::status(&settings.db, data).await?, full_replicas })
}

/// The replicas on this machine's disks that hold files. One that cannot be read is left for the start of a node to report.
pub(crate) async fn full_replicas(settings: &Settings, data: &Path, clock: &Clock) -> Vec<String> {
    let Ok(held) = held(settings, data, clock).await else { return Vec::new() };
    let mut full = Vec::new();
    for (name, store) in &held.bytes {
        if store.list(None, 1).await.is_ok_and(|page| !page.is_empty()) {
            full.push(name.clone());
        }
    }
    for (name, sums) in &held.sums {
        if sums.list(None, 1).await.is_ok_and(|page| !page.is_empty()) {
            full.push(name.clone());
        }
    }
    full.sort();
    full
}

/// Takes the missing migrations and gives their names.
pub async fn migrate(
    settings: &Settings,
    data: &Path,
    clock: &Clock,
) -> Result<Vec<String>, grange_db::Error> {
    Db::migrate(&settings.db, data, clock).await
}

/// What a node says to others, and lays out for them.
#[derive(Clone, Debug)]
pub struct Speaking {
    pub auth: Arc<dyn PeerAuth>,
    /// Absent for commands, which answer nobody: their files are sent.
    pub offers: Option<Offers>,
}

/// What stores are opened with.
fn blobs(data: &Path, clock: &Clock, speaking: Option<Speaking>) -> grange_blob::Context {
    let (auth, offers) = speaking.map(|Speaking { auth, offers }| (auth, offers)).unzip();
    grange_blob::Context {
        auth,
        offers: offers.flatten(),
        ..grange_blob::Context::local(data, clock.clone())
    }
}

/// The replicas on this machine's disks, for other nodes to ask for.
pub async fn held(settings: &Settings, data: &Path, clock: &Clock) -> Result<Held, grange_archive::Error> {
    let mut own = settings.archive.clone();
    for replica in own.replicas.values_mut() {
        replica.at.retain(|place| place.url.starts_with("file:"));
    }
    own.replicas
        .retain(|name, replica| !replica.at.is_empty() || settings.archive.replicas[name].at.is_empty());
    let places = grange_archive::open_places(&own, &blobs(data, clock, None)).await?;
    let first = |(name, stores): (ReplicaName, Vec<Arc<dyn Blob>>)| {
        Some((name.to_string(), stores.into_iter().next()?))
    };
    Ok(Held {
        bytes: places.bytes.into_iter().filter_map(first).collect(),
        sums: places.sums.into_iter().map(|(name, sums)| (name.to_string(), sums)).collect(),
    })
}

/// The archive: folders of this machine, buckets, and folders of other nodes.
pub async fn archive(
    settings: Settings,
    data: PathBuf,
    db: Db,
    clock: Clock,
    node: String,
    speaking: Option<Speaking>,
    announcer: Option<Announcer>,
) -> Result<Archive, grange_archive::Error> {
    let places = grange_archive::open_places(&settings.archive, &blobs(&data, &clock, speaking)).await?;
    // A command on a folder where no node ever ran has none, and makes none.
    let node_token = std::fs::read_to_string(below(&data, &settings.node.token_file)).ok();
    let node_token = node_token.map(|token| token.trim().to_owned()).filter(|token| !token.is_empty());
    let settings = settings.archive;
    Archive::open(Parts { db, clock, data_dir: data, node, settings, places, announcer, node_token }).await
}

/// The lines of the crawl log in a metadata file.
fn crawl_log(path: &Path, take: &mut dyn FnMut(&[u8])) -> std::io::Result<()> {
    lines_of_file(path, &[Part::CrawlLog], &mut |_, line| {
        take(line);
        true
    })
    .map(|_| ())
}

pub async fn app(
    settings: &Settings,
    data: &DataFolder,
    db: Db,
    clock: Clock,
    archive: OpenArchive,
    announcer: Option<Announcer>,
) -> Result<App, grange_app::Error> {
    let database = Db::status(&settings.db, data.path()).await?;
    let harvesting = Harvesting {
        settings: settings.schedule.clone(),
        vault: Some(data.path().join("secrets/vault.key")),
        template_check: grange_harvest::check_template,
        templates: crate::role::harvester::templates(),
        announcer,
        crawl_logs: Some(CrawlLogs { read: crawl_log, scratch: data.path().join("spool") }),
    };
    let buckets = grange_blob::Buckets::open(&settings.index.buckets, data.path())
        .map_err(|error| grange_app::Error::Invalid(grange_base::Chain(&error).to_string()))?;
    let app = App::new(
        db,
        clock,
        grange_app::Rules {
            session_lifetime: settings.web.session_lifetime.0,
            session_idle: settings.web.session_idle.0,
            secure_cookies: settings.web.secure_cookies,
            lost_after: settings.node.heartbeat.0 * 3,
            backups: data.backups(),
            database,
        },
        archive,
    )
    .with_harvesting(harvesting)
    .with_buckets(buckets);
    app.ship().await?;
    Ok(app)
}
