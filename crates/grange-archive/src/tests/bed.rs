//! An archive with two bitarchives and a checksum replica in a temporary folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use grange_base::worker::Step;
use grange_base::{Clock, Period, Shutdown};
use grange_blob::Blob;
use grange_db::Db;
use grange_model::{Actor, FileName, LogEvent, LogRecord, ReplicaKind};
use tempfile::TempDir;

use super::gate::Gate;
use crate::{Archive, Parts, ReplicaSettings, Second, Settings, Store, StoreOutcome, open_places};

pub(crate) struct Bed {
    pub(crate) dir: TempDir,
    pub(crate) archive: Archive,
    pub(crate) one: Arc<Gate>,
    pub(crate) two: Arc<Gate>,
    /// Of every bitarchive, by its name.
    pub(crate) gates: BTreeMap<String, Arc<Gate>>,
}

pub(crate) fn settings() -> Settings {
    // Whatever failed is due again at once.
    Settings {
        retry_first: Period::from_millis(0),
        retry_most: Period::from_millis(0),
        ..Settings::default()
    }
}

/// The same with other replicas.
pub(crate) fn with_replicas(replicas: &[(&str, ReplicaKind)]) -> Settings {
    let one = |(name, kind): &(&str, ReplicaKind)| {
        (name.parse().unwrap(), ReplicaSettings { kind: *kind, ..ReplicaSettings::default() })
    };
    Settings { replicas: replicas.iter().map(one).collect(), ..settings() }
}

pub(crate) async fn database(dir: &Path, clock: &Clock) -> Db {
    Db::open(&grange_db::Settings::default(), dir, clock.clone()).await.unwrap()
}

pub(crate) async fn parts(dir: &Path, db: Db, clock: &Clock, settings: Settings) -> Parts {
    let context = grange_blob::Context::local(dir, clock.clone());
    Parts {
        db,
        clock: clock.clone(),
        data_dir: dir.to_owned(),
        node: "node1".to_owned(),
        places: open_places(&settings, &context).await.unwrap(),
        settings,
        announcer: None,
        node_token: Some("the token that the nodes of this test share".to_owned()),
    }
}

impl Bed {
    pub(crate) async fn new() -> Self {
        Self::with(settings()).await
    }

    pub(crate) async fn with(settings: Settings) -> Self {
        let dir = TempDir::new().unwrap();
        Self::on(dir, settings).await
    }

    pub(crate) async fn on(dir: TempDir, settings: Settings) -> Self {
        Self::at(dir, settings, Clock::system()).await
    }

    pub(crate) async fn at(dir: TempDir, settings: Settings, clock: Clock) -> Self {
        let db = database(dir.path(), &clock).await;
        let mut parts = parts(dir.path(), db, &clock, settings).await;
        let mut gates = BTreeMap::new();
        for (name, nodes) in &mut parts.places.bytes {
            let gate = Arc::new(Gate::new(Arc::clone(&nodes[0])));
            nodes[0] = Arc::clone(&gate) as Arc<dyn Blob>;
            gates.insert(name.to_string(), gate);
        }
        let archive = Archive::open(parts).await.unwrap();
        let of = |name: &str| gates.get(name).unwrap_or(&gates["one"]).clone();
        Self { dir, archive, one: of("one"), two: of("two"), gates }
    }

    /// A file to be stored, outside the archive.
    pub(crate) fn source(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let folder = self.dir.path().join("incoming");
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    pub(crate) async fn store(&self, name: &str, bytes: &[u8]) -> StoreOutcome {
        let path = self.source(name, bytes);
        self.archive.store(&path, &Store::new(named(name), "anna")).await.unwrap()
    }

    /// `count` files of different sizes, all proven.
    pub(crate) async fn fill(&self, count: usize) {
        for n in 0..count {
            assert!(self.store(&file(n), &content(n)).await.stored);
        }
    }

    /// Where a copy lies.
    pub(crate) fn path(&self, replica: &str, name: &str) -> PathBuf {
        self.dir.path().join("replicas").join(replica).join("filedir").join(name)
    }

    /// Changes a copy behind the archive's back.
    pub(crate) fn damage(&self, replica: &str, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let path = self.path(replica, name);
        let mut bytes = std::fs::read(&path).unwrap();
        change(&mut bytes);
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, bytes).unwrap();
    }

    pub(crate) fn attic(&self, replica: &str) -> usize {
        let folder = self.dir.path().join("replicas").join(replica).join("atticdir");
        std::fs::read_dir(folder).map_or(0, Iterator::count)
    }

    /// Does the archive's own work until nothing is due.
    pub(crate) async fn work(&self) {
        for _ in 0..1000 {
            let stored = self.archive.store_step(&Shutdown::never()).await.unwrap();
            if stored == Step::Idle
                && self.archive.repair_step(&Shutdown::never()).await.unwrap() == Step::Idle
                && self.archive.audit_step(&Shutdown::never()).await.unwrap() == Step::Idle
            {
                return;
            }
        }
        panic!("the work never ends");
    }

    pub(crate) async fn got(&self, name: &str) -> Vec<u8> {
        let dest = self.dir.path().join(format!("got-{name}"));
        self.archive.get(&named(name), &dest).await.unwrap();
        std::fs::read(dest).unwrap()
    }

    pub(crate) async fn events(&self, event: LogEvent) -> usize {
        let leaves = self.archive.db().logbook().leaves(0, 100_000).await.unwrap();
        let records = leaves.iter().map(|leaf| serde_json::from_str::<LogRecord>(&leaf.body).unwrap());
        records.filter(|record| record.event == event).count()
    }

    /// Repairs everything with the credentials.
    pub(crate) async fn repair(&self) -> crate::RepairReport {
        let second = |replica: &crate::replica::Replica| {
            Second::Credential(self.archive.credential(replica.name()).unwrap())
        };
        self.archive.repair_all(&anna(), second, false).await.unwrap()
    }

    pub(crate) fn puts(&self) -> (u32, u32) {
        (self.one.puts.load(Ordering::SeqCst), self.two.puts.load(Ordering::SeqCst))
    }
}

pub(crate) fn anna() -> Actor {
    Actor::new("anna", "cli")
}

/// A second person.
pub(crate) fn bert() -> Actor {
    Actor::new("bert", "web")
}

pub(crate) fn named(name: &str) -> FileName {
    name.parse().unwrap()
}

pub(crate) fn file(n: usize) -> String {
    format!("file-{n:04}.warc.gz")
}

pub(crate) fn content(n: usize) -> Vec<u8> {
    (0..1000 + n * 37).map(|at| (at * 31 + n * 7) as u8).collect()
}
