//! The handle, and how it is opened.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use grange_base::worker::Hint;
use grange_base::{Clock, Throttle};
use grange_blob::{Blob, Context};
use grange_bus::Announcer;
use grange_db::{Db, Declared, FileFilter, FileStatus, ReplicaOverview};
use grange_model::{FileName, LogEvent, LogRecord, ReplicaKind, ReplicaName};
use serde_json::Value;

use crate::error::Error;
use crate::keys::SigningKey;
use crate::presence::{self, Watch};
use crate::replica::{Keeps, Replica, blocking};
use crate::settings::Settings;
use crate::sums::{self, Sums};
use crate::tree::Tree;

/// What an archive is made of.
#[derive(Debug)]
pub struct Parts {
    pub db: Db,
    pub clock: Clock,
    /// Relative places, the spool and the signing key lie below it.
    pub data_dir: PathBuf,
    /// Names this process among those that work on the same rows.
    pub node: String,
    pub settings: Settings,
    /// Where the replicas lie, opened.
    pub places: Places,
    /// Tells others what happened; without it they find out by themselves.
    pub announcer: Option<Announcer>,
}

/// Where the replicas lie, opened.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// The nodes of each bitarchive replica.
    pub bytes: BTreeMap<ReplicaName, Vec<Arc<dyn Blob>>>,
    /// The checksum replicas.
    pub sums: BTreeMap<ReplicaName, Arc<dyn Sums>>,
}

/// The archive. Cheap to clone; all clones are one.
#[derive(Clone, Debug)]
pub struct Archive(pub(crate) Arc<Inner>);

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) db: Db,
    pub(crate) clock: Clock,
    pub(crate) data_dir: PathBuf,
    pub(crate) node: String,
    /// Who holds the leases: a new one each time, so that nobody takes a dead process's lease for its own.
    pub(crate) owner: String,
    pub(crate) settings: Settings,
    pub(crate) replicas: Vec<Replica>,
    pub(crate) announcer: Option<Announcer>,
    pub(crate) key: SigningKey,
    pub(crate) tree: tokio::sync::Mutex<Tree>,
    pub(crate) throttle: Throttle,
    pub(crate) hint: Hint,
    pub(crate) audit_hint: Hint,
    /// When the access rules were last the same here and on every replica.
    pub(crate) access_rules_kept: tokio::sync::Mutex<Option<jiff::Timestamp>>,
    /// How many strays people were last told of.
    pub(crate) strays_reported: AtomicU64,
}

/// Opens the places of all replicas. Other nodes are only asked when they are needed; nodes start in any order.
pub async fn open_places(settings: &Settings, context: &Context) -> Result<Places, Error> {
    let mut places = Places::default();
    for (name, replica) in &settings.replicas {
        for place in at(name, &replica.at) {
            match replica.kind {
                ReplicaKind::Bitarchive => {
                    // The other checksums are computed once, when the file comes in.
                    let place = grange_blob::Settings { checksums: vec![settings.strongest()], ..place };
                    let opened = grange_blob::open(&place, context).await?;
                    places.bytes.entry(name.clone()).or_default().push(opened);
                }
                ReplicaKind::Checksum => {
                    places.sums.insert(name.clone(), sums::open(&place.url, context).await?);
                }
            }
        }
    }
    Ok(places)
}

/// The places of a replica, the default one if none is named.
fn at(name: &ReplicaName, at: &[grange_blob::Settings]) -> Vec<grange_blob::Settings> {
    if at.is_empty() {
        let url = format!("file:replicas/{name}");
        return vec![grange_blob::Settings { url, ..grange_blob::Settings::default() }];
    }
    at.to_vec()
}

/// Files without a row for some replica would never be copied there nor checked.
pub(crate) async fn fill_gaps(db: &Db) -> Result<(), Error> {
    let gaps = db.replicas().fill_gaps().await?;
    if gaps > 0 {
        tracing::error!(
            gaps,
            "rows were missing for copies of stored files and were added; the next checks make the copies"
        );
    }
    Ok(())
}

impl Archive {
    /// Opens the archive: declares the replicas, opens journals, reads the signing key.
    pub async fn open(parts: Parts) -> Result<Self, Error> {
        let Parts { db, clock, data_dir, node, settings, mut places, announcer } = parts;
        if let Some(unusable) = settings.unusable().first() {
            let reason = format!("archive.{}: {}", unusable.key, unusable.reason);
            return Err(Error::Settings { reason });
        }
        let declared: Vec<_> = settings.replicas.iter().map(|(name, one)| (name.clone(), one.kind)).collect();
        let rows = match db.replicas().declare(declared).await? {
            Declared::Replicas(rows) => rows,
            Declared::Undeclared(rows) => {
                let names = rows.iter().map(|row| format!("{} ({})", row.name, row.kind)).collect();
                return Err(Error::Undeclared { names });
            }
        };
        fill_gaps(&db).await?;
        let archive = presence::archive_id(&db, &places).await?;
        let mut replicas = Vec::new();
        for row in rows {
            let missing = || Error::Settings { reason: format!("the replica {} was not opened", row.name) };
            let keeps = match row.kind {
                ReplicaKind::Bitarchive => {
                    let nodes = places.bytes.remove(&row.name).filter(|nodes| !nodes.is_empty());
                    Keeps::Bytes(nodes.ok_or_else(missing)?)
                }
                ReplicaKind::Checksum => Keeps::Sums(places.sums.remove(&row.name).ok_or_else(missing)?),
            };
            let watch = Watch::new(db.clone(), archive.clone(), announcer.clone(), row.away.clone());
            replicas.push(Replica { row, keeps, clock: clock.clone(), watch });
        }
        let key_path = data_dir.join("secrets/log.key");
        let key = blocking(move || SigningKey::open(&key_path)).await?;
        let owner = format!("{node}/archive/{}", uuid::Uuid::now_v7().simple());
        let throttle = Throttle::per_second(settings.check_bytes_per_second.0, clock.clone());
        let archive = Self(Arc::new(Inner {
            db,
            clock,
            data_dir,
            node,
            owner,
            settings,
            replicas,
            announcer,
            key,
            tree: tokio::sync::Mutex::new(Tree::default()),
            throttle,
            hint: Hint::new(),
            audit_hint: Hint::new(),
            access_rules_kept: tokio::sync::Mutex::default(),
            strays_reported: AtomicU64::default(),
        }));
        archive.verify_replicas().await;
        Ok(archive)
    }

    pub fn db(&self) -> &Db {
        &self.0.db
    }

    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// Wakes the worker that runs [`Archive::store_step`]: a file was queued.
    pub fn hint(&self) -> &Hint {
        &self.0.hint
    }

    /// Wakes the worker that runs [`Archive::audit_step`]: a check was queued. Another worker than that of the files:
    /// no copy waits for a check to end.
    pub fn audit_hint(&self) -> &Hint {
        &self.0.audit_hint
    }

    pub fn replicas(&self) -> &[Replica] {
        &self.0.replicas
    }

    pub fn replica(&self, name: &str) -> Result<&Replica, Error> {
        let found = self.0.replicas.iter().find(|replica| replica.name() == name);
        found.ok_or_else(|| Error::NoReplica {
            given: name.to_owned(),
            known: self.0.replicas.iter().map(|replica| replica.name().to_owned()).collect(),
        })
    }

    pub(crate) fn replica_by_id(&self, id: i64) -> Option<&Replica> {
        self.0.replicas.iter().find(|replica| replica.row.id == id)
    }

    /// How each replica stands.
    pub async fn overview(&self) -> Result<Vec<ReplicaOverview>, Error> {
        Ok(self.0.db.replicas().overview().await?)
    }

    /// Files by name, with how they stand on each replica.
    pub async fn list(&self, filter: &FileFilter) -> Result<Vec<FileStatus>, Error> {
        Ok(self.0.db.files().list(filter).await?)
    }

    /// One file, with how it stands on each replica. A missing file is an answer.
    pub async fn status(&self, name: &FileName) -> Result<Option<FileStatus>, Error> {
        Ok(self.0.db.files().get(name).await?)
    }

    pub(crate) async fn file(&self, name: &FileName) -> Result<FileStatus, Error> {
        self.status(name).await?.ok_or_else(|| Error::NotFound { name: name.clone() })
    }

    pub(crate) fn record(
        &self,
        event: LogEvent,
        file: &FileStatus,
        replica: Option<&str>,
        by: &str,
        detail: Value,
    ) -> LogRecord {
        LogRecord {
            at: self.0.clock.now(),
            event,
            name: Some(file.file.name.to_string()),
            checksum: Some(grange_db::deciding(&file.file.checksums)),
            size: Some(file.file.size),
            replica: replica.map(str::to_owned),
            by: by.to_owned(),
            detail,
        }
    }

    /// Tells people what they must look at.
    pub(crate) async fn notify(&self, what: &str, reason: &str) {
        if let Some(announcer) = &self.0.announcer {
            announcer.report_error(what, reason).await;
        } else {
            tracing::error!(what, reason, "somebody must look");
        }
    }
}
