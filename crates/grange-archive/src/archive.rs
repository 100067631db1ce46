//! The handle, and how it is opened.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use grange_base::worker::Hint;
use grange_base::{Chain, Clock, Throttle};
use grange_blob::{Blob, Context};
use grange_bus::Announcer;
use grange_db::{Db, Declared, FileFilter, FileStatus, LogKey, ReplicaOverview};
use grange_model::{Actor, FileName, LogEvent, LogRecord, ReplicaKind, ReplicaName};
use serde_json::Value;

use crate::error::Error;
use crate::key_trust::{announced_with, announcement_proof, vouch};
use crate::keys::{KeyFile, SigningKey};
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
    /// What all nodes share: it shows that a key of the log was announced by one of them. Without it only this node's
    /// own key is known from the start.
    pub node_token: Option<String>,
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
    pub(crate) key: RwLock<Arc<SigningKey>>,
    pub(crate) key_file: KeyFile,
    /// The node that the key is announced for.
    pub(crate) key_node: String,
    pub(crate) node_token: Option<String>,
    /// When left-overs were last looked for.
    pub(crate) swept: std::sync::Mutex<Option<jiff::Timestamp>>,
    pub(crate) tree: tokio::sync::Mutex<Tree>,
    pub(crate) throttle: Throttle,
    pub(crate) hint: Hint,
    pub(crate) audit_hint: Hint,
    /// When the access rules were last the same here and on every replica.
    pub(crate) access_rules_kept: tokio::sync::Mutex<Option<jiff::Timestamp>>,
    /// When all files of access rules were last read there.
    pub(crate) access_rules_read: tokio::sync::Mutex<Option<jiff::Timestamp>>,
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
                    let opened = grange_blob::open_marked(&place, context).await?;
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
        let Parts { db, clock, data_dir, node, settings, mut places, announcer, node_token } = parts;
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
            let watch = Watch::new(db.clone(), archive.clone(), row.away.clone());
            replicas.push(Replica { row, keeps, clock: clock.clone(), watch });
        }
        let known: Vec<_> = db.logbook().keys().await?.into_iter().map(|key| key.public_key).collect();
        let key_file = KeyFile::new(data_dir.join("secrets/log.key"));
        let opening = key_file.clone();
        let key = blocking(move || opening.open(&known)).await?;
        // The key belongs to the data folder, whoever works on it: a node, or a command without one.
        let key_node = std::fs::read_to_string(data_dir.join("node.id")).ok();
        let key_node = key_node.map_or_else(|| node.clone(), |id| id.trim().to_owned());
        let proof = node_token.as_ref().map(|token| announcement_proof(token, &key.public_key(), &key_node));
        db.logbook().announce_key(&key.public_key(), &key_node, proof).await?;
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
            key: RwLock::new(Arc::new(key)),
            key_file,
            key_node,
            node_token,
            swept: std::sync::Mutex::default(),
            tree: tokio::sync::Mutex::new(Tree::default()),
            throttle,
            hint: Hint::new(),
            audit_hint: Hint::new(),
            access_rules_kept: tokio::sync::Mutex::default(),
            access_rules_read: tokio::sync::Mutex::default(),
        }));
        archive.verify_replicas().await;
        if let Err(error) = archive.sweep_spool().await {
            tracing::warn!(error = %Chain(&error), "the spool was not swept");
        }
        Ok(archive)
    }

    /// The key that signs the log on this node now.
    pub(crate) fn key(&self) -> Arc<SigningKey> {
        Arc::clone(&self.0.key.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The keys that sign the log, or once did, oldest first.
    pub async fn log_keys(&self) -> Result<Vec<LogKey>, Error> {
        Ok(self.0.db.logbook().keys().await?)
    }

    /// Takes a new key for the log. The old one signs it, and it signs the old one, so that whoever trusts one of them
    /// trusts both; then the old one is removed from this machine.
    pub async fn rotate_log_key(&self, actor: &Actor) -> Result<LogKey, Error> {
        // Nobody signs meanwhile.
        let _tree = self.0.tree.lock().await;
        let (old, file) = (self.key(), self.0.key_file.clone());
        let new = blocking(move || file.create_next()).await?;
        let (public_key, node, now) = (new.public_key(), self.0.key_node.clone(), self.0.clock.now());
        let proof = self.0.node_token.as_ref().map(|token| announcement_proof(token, &public_key, &node));
        let by_old = vouch(&old, &public_key, &node, now);
        let by_new = vouch(&new, &old.public_key(), &node, now);
        let row = LogKey { public_key, node, since: by_old.at, retired_at: None, proof, vouches: Vec::new() };
        let log = self.0.db.logbook();
        log.rotate_key(&old.public_key(), row.clone(), by_old, actor).await?;
        log.vouch(&old.public_key(), by_new).await?;
        let file = self.0.key_file.clone();
        blocking(move || file.take_next()).await?;
        *self.0.key.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(new);
        Ok(row)
    }

    /// Signs the keys of other nodes that the node token proves, so that who does not know the token can follow.
    pub(crate) async fn vouch_for_others(&self) -> Result<(), Error> {
        let Some(token) = &self.0.node_token else { return Ok(()) };
        let key = self.key();
        let own = key.public_key();
        for other in self.log_keys().await? {
            let vouched = other.vouches.iter().any(|vouch| vouch.by_key == own);
            if other.public_key == own
                || vouched
                || other.retired_at.is_some()
                || !announced_with(token, &other)
            {
                continue;
            }
            let signed = vouch(&key, &other.public_key, &other.node, self.0.clock.now());
            self.0.db.logbook().vouch(&other.public_key, signed).await?;
        }
        Ok(())
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
