//! Storing: files come in, from a path, a stream or another node; what became of them is told.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use grange_base::named_file;
use grange_blob::Blob;
use grange_db::{Begun, FileStatus, IfStored, NewFile};
use grange_model::store_state::acknowledged;
use grange_model::{Checksums, FileName, UploadState};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWriteExt};

use crate::archive::Archive;
use crate::drive::CopyDone;
use crate::error::Error;
use crate::held_file::HeldFile;
use crate::replica::Replica;
use crate::transfer::From;
use crate::witness;

/// How often a wait for another process's upload or repair asks again. Each time is a write transaction, and several may wait
/// for one file: four a second do not burden the database. What is waited for reads a file on every replica, mostly for
/// seconds, so a quarter of a second more is not noticed.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// What is to be stored, and for whom.
#[derive(Clone, Debug)]
pub struct Store {
    pub name: FileName,
    /// What the sender says; compared, never believed.
    pub expected: Option<Checksums>,
    /// Who asks, for the log.
    pub by: String,
}

impl Store {
    pub fn new(name: FileName, by: impl Into<String>) -> Self {
        Self { name, expected: None, by: by.into() }
    }

    #[must_use]
    pub fn expecting(self, checksums: Checksums) -> Self {
        Self { expected: Some(checksums), ..self }
    }
}

/// What became of a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StoreOutcome {
    pub name: FileName,
    pub size: u64,
    pub checksums: Checksums,
    /// Every replica has read the bytes back during this deposit and answered the depositor's checksum.
    pub stored: bool,
    /// Every replica had it before.
    pub already: bool,
    /// The replicas that did not. Copies that are missing or were not asked are tried again by themselves.
    pub unproven: Vec<Unproven>,
}

/// A replica that is not proven to hold the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unproven {
    pub replica: String,
    pub state: UploadState,
    pub reason: String,
}

impl Archive {
    /// Stores a local file. Returns when every replica is proven, or says which is not; those heal later by
    /// themselves from the copies that are. The file itself is left where it is.
    pub async fn store(&self, path: &Path, store: &Store) -> Result<StoreOutcome, Error> {
        if witness::reserved(&store.name) {
            return Err(Error::Reserved { prefix: witness::PREFIX });
        }
        // A pipe or a device may never end, and cannot be read a second time.
        let metadata = tokio::fs::metadata(path).await.map_err(Error::io("read", path))?;
        if !metadata.is_file() {
            return Err(Error::NotRegularFile { path: path.to_owned() });
        }
        // Before anything opens it: the closing does the harm.
        if named_file::check(path).is_err() {
            return Err(Error::NamedDatabase { path: path.to_owned() });
        }
        let announced = store.expected.filter(|announced| !announced.is_empty());
        // The sender's own kind of checksum is computed too, to compare; the configured ones are recorded.
        let mut algorithms = self.0.settings.checksums.clone();
        algorithms.extend(announced.iter().flat_map(Checksums::algorithms));
        let (size, found) =
            grange_blob::sum_path(path, &algorithms).await.map_err(Error::io("read", path))?;
        if let Some(announced) = announced.filter(|announced| !announced.same_as(&found)) {
            return Err(Error::WrongChecksum { name: store.name.clone(), announced, found });
        }
        let checksums = found.only(&self.0.settings.checksums);
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let source = json!({ "node": self.0.node, "path": path }).to_string();
        let new = NewFile { name: store.name.clone(), size, checksums, source: Some(source) };
        self.take(new, &From::File(path), &store.by).await
    }

    /// Stores a file that another node lays out for whoever keeps it: every replica fetches it there, and nothing
    /// passes through here. `checksums` are what that node says of it, all that are configured here; each replica
    /// compares all of them with what it then reads from its own disk.
    pub async fn store_offered(
        &self,
        holder: Arc<dyn Blob>,
        size: u64,
        checksums: Checksums,
        store: &Store,
    ) -> Result<StoreOutcome, Error> {
        if witness::reserved(&store.name) {
            return Err(Error::Reserved { prefix: witness::PREFIX });
        }
        let wanted = &self.0.settings.checksums;
        if let Some(missing) = wanted.iter().find(|algorithm| checksums.get(**algorithm).is_none()) {
            let reason = format!("archive.checksums has {missing}, and {} came without it", store.name);
            return Err(Error::Settings { reason });
        }
        let new = NewFile { name: store.name.clone(), size, checksums: checksums.only(wanted), source: None };
        self.take(new, &From::Offered(holder), &store.by).await
    }

    async fn take(&self, new: NewFile, from: &From, by: &str) -> Result<StoreOutcome, Error> {
        let (name, checksums) = (new.name.clone(), new.checksums);
        loop {
            let (owner, lease) = (&self.0.owner, self.0.settings.lease.0);
            let begun = self.0.db.files().begin(new.clone(), owner, lease, IfStored::Verify).await?;
            match begun {
                Begun::Refused(known) => {
                    let (known, given) = (known.checksums, checksums);
                    return Err(match self.status(&name).await? {
                        Some(status) if status.failed_everywhere() => {
                            Error::OtherDeposit { name, known, given }
                        }
                        _ => Error::OtherBytes { name, known, given },
                    });
                }
                Begun::Claimed(status, claim) => {
                    let already = status.file.stored_at.is_some() && status.proven();
                    let file = HeldFile::default();
                    let drive = self.drive(&status, &claim, Some(from.clone()), by);
                    let ended = self.settling(&file, &claim, drive).await;
                    self.give_back(&file).await;
                    match ended {
                        Ok(done) => {
                            let status = self.file(&name).await?;
                            // Two people may have corrected the record meanwhile.
                            if !status.file.checksums.same_as(&checksums) {
                                let (known, given) = (status.file.checksums, checksums);
                                return Err(Error::OtherBytes { name, known, given });
                            }
                            return Ok(outcome(&status, &done, already));
                        }
                        // Somebody took over from us, who were too slow: how it ends is theirs to say.
                        Err(Error::Db(grange_db::Error::LeaseLost { .. })) => {}
                        Err(error) => return Err(error),
                    }
                }
                // Another upload of the same bytes. This deposit is acknowledged by its own look at every replica.
                Begun::Busy(_) | Begun::Proven(_) => tokio::time::sleep(LOOK_AGAIN).await,
            }
        }
    }

    /// Stores what a reader gives, by way of a file in the spool.
    pub async fn store_reader(
        &self,
        mut reader: impl AsyncRead + Send + Unpin,
        store: &Store,
    ) -> Result<StoreOutcome, Error> {
        // Held until the end: a sweep leaves it alone.
        let spooled = self.spool_file().await?;
        let path = spooled.path.clone();
        let written = async {
            let mut file = tokio::fs::File::from_std(spooled.file.try_clone()?);
            tokio::io::copy(&mut reader, &mut file).await?;
            file.flush().await?;
            file.sync_all().await
        };
        let stored = match written.await {
            Ok(()) => self.store(&path, store).await,
            Err(error) => Err(Error::io("write", &path)(error)),
        };
        // Without a proven copy the spool is all there is: it stays for the next try.
        let keep = matches!(&stored, Ok(outcome) if !outcome.stored && !self.has_bytes(outcome));
        if !keep {
            let _ = tokio::fs::remove_file(&path).await;
        }
        drop(spooled);
        stored
    }

    fn has_bytes(&self, outcome: &StoreOutcome) -> bool {
        let proven = |replica: &&Replica| outcome.unproven.iter().all(|one| one.replica != replica.name());
        self.0.replicas.iter().filter(|replica| replica.keeps_bytes()).any(|replica| proven(&replica))
    }
}

fn outcome(status: &FileStatus, done: &[CopyDone], already: bool) -> StoreOutcome {
    let of = |replica: &str| done.iter().find(|copy| copy.replica == replica);
    let answered_equal = |replica: &str| of(replica).is_some_and(|copy| copy.answered_equal);
    let replicas = || status.holdings.iter().map(|holding| (holding, holding.replica.as_str()));
    let unproven = replicas().filter(|(_, replica)| !answered_equal(replica)).map(|(holding, replica)| {
        let last_error =
            of(replica).and_then(|copy| copy.error.clone()).or_else(|| holding.last_error.clone());
        Unproven {
            replica: replica.to_owned(),
            state: holding.state,
            reason: last_error.unwrap_or_else(|| "it was not asked".to_owned()),
        }
    });
    StoreOutcome {
        name: status.file.name.clone(),
        size: status.file.size,
        checksums: status.file.checksums,
        stored: acknowledged(replicas().map(|(_, replica)| answered_equal(replica))),
        already,
        unproven: unproven.collect(),
    }
}
