//! Storing: the thin worker around the state machine. Every step is a row before the next is taken.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use grange_base::worker::Step;
use grange_base::{Chain, Retry, RetryPolicy};
use grange_blob::Blob;
use grange_db::{Begun, Claim, FileStatus, Holding, HoldingChange, NewFile, STORE_WORK, deciding};
use grange_model::{Checksums, FileName, LogEvent, Presence, UploadState, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

use crate::archive::Archive;
use crate::digest::Sums;
use crate::error::Error;
use crate::machine::{Action, Copy, Event, step};
use crate::replica::{Answer, Replica, UNREADABLE};
use crate::transfer::From;
use crate::witness;

/// How often whoever waits for another's upload looks; the rows are cheap to read.
const LOOK_AGAIN: Duration = Duration::from_millis(25);

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
    /// Every replica is proven to hold it.
    pub stored: bool,
    /// It was, before anybody asked.
    pub already: bool,
    /// The replicas that are not proven. They are tried again by themselves.
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
            let begun = self.0.db.files().begin(new.clone(), &self.0.owner, self.0.settings.lease.0).await?;
            match begun {
                Begun::Refused(known) => {
                    let (known, given) = (known.checksums, checksums);
                    return Err(Error::OtherBytes { name, known, given });
                }
                Begun::Proven(status) => return Ok(told(&status, true)),
                Begun::Claimed(status, claim) => {
                    match self.held(&claim, self.drive(&status, &claim, Some(from.clone()), by)).await {
                        Ok(()) => return Ok(told(&self.file(&name).await?, false)),
                        // Somebody took over from us, who were too slow: how it ends is theirs to say.
                        Err(Error::Db(grange_db::Error::LeaseLost { .. })) => {}
                        Err(error) => return Err(error),
                    }
                }
                Begun::Busy(_) => {
                    tokio::time::sleep(LOOK_AGAIN).await;
                    // Whoever had it may be done with it, well or not: both are an answer.
                    let work = self.0.db.work().find(STORE_WORK, name.as_str()).await?;
                    if work.is_none_or(|work| work.state == grange_db::State::Ready) {
                        return Ok(told(&self.file(&name).await?, false));
                    }
                }
            }
        }
    }

    /// Stores what a reader gives, by way of a file in the spool.
    pub async fn store_reader(
        &self,
        mut reader: impl AsyncRead + Send + Unpin,
        store: &Store,
    ) -> Result<StoreOutcome, Error> {
        let spool = self.0.data_dir.join("spool");
        tokio::fs::create_dir_all(&spool).await.map_err(Error::io("make", &spool))?;
        let path = spool.join(uuid::Uuid::now_v7().simple().to_string());
        let written = async {
            let mut file = tokio::fs::File::create(&path).await?;
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
        stored
    }

    fn has_bytes(&self, outcome: &StoreOutcome) -> bool {
        let proven = |replica: &&Replica| outcome.unproven.iter().all(|one| one.replica != replica.name());
        self.0.replicas.iter().filter(|replica| replica.keeps_bytes()).any(|replica| proven(&replica))
    }

    /// Takes one file that is due and brings it on: after a crash, or where a replica was away.
    pub async fn store_step(&self) -> Result<Step, Error> {
        let lease = self.0.settings.lease.0;
        let Some(claim) = self.0.db.work().claim(STORE_WORK, &self.0.owner, lease).await? else {
            return Ok(Step::Idle);
        };
        let name: Option<FileName> = claim.key.parse().ok();
        let status = match &name {
            Some(name) => self.status(name).await?,
            None => None,
        };
        let Some(status) = status else {
            // No such file: nothing can be done about it, ever.
            self.0.db.work().finish(&claim).await?;
            return Ok(Step::More);
        };
        match self.held(&claim, self.drive(&status, &claim, None, "grange")).await {
            // Somebody else has it now.
            Ok(()) | Err(Error::Db(grange_db::Error::LeaseLost { .. })) => Ok(Step::More),
            Err(error) => Err(error),
        }
    }

    /// Runs `act` and renews the lease meanwhile. Whoever loses it stops.
    pub(crate) async fn held<T>(
        &self,
        claim: &Claim,
        act: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let lease = self.0.settings.lease.0;
        let renewing = async {
            loop {
                tokio::time::sleep(lease / 3).await;
                match self.0.db.work().renew(claim, lease).await {
                    Ok(_) => {}
                    Err(error @ grange_db::Error::LeaseLost { .. }) => return error,
                    // The database may be back before the lease ends.
                    Err(error) => tracing::warn!(error = %Chain(&error), "the lease was not renewed"),
                }
            }
        };
        tokio::select! {
            out = act => out,
            error = renewing => Err(error.into()),
        }
    }

    /// Brings every copy of the file as far as it goes now, and settles the file or puts it back into the queue.
    pub(crate) async fn drive(
        &self,
        status: &FileStatus,
        claim: &Claim,
        from: Option<From>,
        by: &str,
    ) -> Result<(), Error> {
        let from = match from {
            Some(from) => Some(from),
            None => self.source(status).await,
        };
        // Copies with a source go together; the ones that need a proven copy first come after.
        let (fresh, later): (Vec<_>, Vec<_>) = match &from {
            Some(_) => (status.holdings.iter().collect(), Vec::new()),
            None => status.holdings.iter().partition(|holding| holding.state != UploadState::Unknown),
        };
        let mut done = Vec::new();
        for (group, from) in [(fresh, from), (later, None)] {
            if group.is_empty() {
                continue;
            }
            let from = match from {
                Some(from) => Some(from),
                None => self.proven_source(&self.file(&status.file.name).await?, None),
            };
            let copies = group.iter().map(|holding| self.copy(status, claim, holding, from.as_ref()));
            for one in join_all(copies).await {
                done.push(one?);
            }
        }
        let healed = status.file.stored_at.is_some();
        let event = if healed { LogEvent::Repaired } else { LogEvent::Stored };
        let sent: Vec<_> = done.iter().filter(|copy| copy.sent).map(|copy| copy.replica.clone()).collect();
        let record = self.record(event, status, None, by, json!({ "sent": sent }));
        if self.0.db.files().settle(claim, status.file.id, record).await? {
            if let Some(announcer) = &self.0.announcer {
                let name = status.file.name.as_str();
                announcer.hint(&announcer.channels().index_server(), "stored", name).await;
            }
            return Ok(());
        }
        let errors: Vec<_> = done.iter().filter_map(|copy| copy.error.clone()).collect();
        let policy = RetryPolicy {
            first: self.0.settings.retry_first.0,
            most: self.0.settings.retry_most.0,
            attempts: 0,
        };
        let wait = policy.wait(claim.attempt, Retry::Soon).unwrap_or(policy.most);
        self.0.db.work().fail(claim, &errors.join("; "), wait).await?;
        Ok(())
    }

    /// Where the bytes come from when nobody brings them: a proven copy, or the file it came from.
    async fn source(&self, status: &FileStatus) -> Option<From> {
        if let Some(from) = self.proven_source(status, None) {
            return Some(from);
        }
        let source: serde_json::Value = serde_json::from_str(status.file.source.as_deref()?).ok()?;
        let path = PathBuf::from(source["path"].as_str().filter(|_| source["node"] == self.0.node.as_str())?);
        let size = tokio::fs::metadata(&path).await.ok()?.len();
        (size == status.file.size).then_some(From::File(path))
    }

    /// A replica with bytes that is proven, other than the one named.
    pub(crate) fn proven_source(&self, status: &FileStatus, other_than: Option<i64>) -> Option<From> {
        let proven = status.holdings.iter().find(|holding| {
            holding.state == UploadState::UploadCompleted
                && holding.verdict == Verdict::Ok
                && Some(holding.replica_id) != other_than
                && self.replica_by_id(holding.replica_id).is_some_and(Replica::keeps_bytes)
        })?;
        self.replica_by_id(proven.replica_id).cloned().map(From::Replica)
    }

    /// Drives one copy through the machine until there is nothing to do.
    async fn copy(
        &self,
        status: &FileStatus,
        claim: &Claim,
        holding: &Holding,
        from: Option<&From>,
    ) -> Result<CopyDone, Error> {
        let retries = self.0.settings.upload_retries;
        let mut done = CopyDone { replica: holding.replica.to_string(), sent: false, error: None };
        let Some(replica) = self.replica_by_id(holding.replica_id) else { return Ok(done) };
        let mut copy = Copy { state: holding.state, attempts: holding.attempts };
        let (mut presence, mut verdict) = (holding.presence, holding.verdict);
        let mut checksum = holding.checksum.clone();
        let mut answered = false;
        // What the replica said of the copy when it took it.
        let mut read_back = None;
        let (mut next, mut action) = step(copy, Event::StoreAsked, retries);
        loop {
            if next != copy || answered {
                let change = HoldingChange {
                    replica_id: holding.replica_id,
                    state: next.state,
                    presence,
                    verdict,
                    checksum: checksum.clone(),
                    attempts: next.attempts,
                    last_error: done.error.clone(),
                    answered,
                };
                self.0.db.files().advance(claim, status.file.id, vec![change]).await?;
            }
            copy = next;
            let event = match action {
                None => return Ok(done),
                Some(Action::Upload) => {
                    answered = false;
                    match self.upload(status, replica, from).await {
                        Ok(answer) => {
                            (done.sent, read_back) = (true, answer);
                            Event::Taken
                        }
                        Err(reason) => {
                            done.error = Some(format!("{}: {reason}", replica.name()));
                            Event::Refused
                        }
                    }
                }
                Some(Action::AskChecksum) => {
                    let (event, answer) = self.ask(status, replica, read_back.take()).await;
                    answered = event != Event::Unanswered;
                    done.error = match &event {
                        Event::Equal => None,
                        _ => Some(format!("{}: {answer}", replica.name())),
                    };
                    match event {
                        Event::Equal => {
                            (presence, verdict, checksum) = (Presence::Ok, Verdict::Ok, Some(answer));
                        }
                        Event::Different => {
                            (presence, verdict, checksum) = (Presence::Ok, Verdict::Unknown, Some(answer));
                        }
                        Event::Missing => {
                            (presence, verdict, checksum) = (Presence::Missing, Verdict::Unknown, None);
                        }
                        _ => {}
                    }
                    event
                }
            };
            (next, action) = step(copy, event, retries);
        }
    }

    async fn upload(
        &self,
        status: &FileStatus,
        replica: &Replica,
        from: Option<&From>,
    ) -> Result<Option<Checksums>, String> {
        let file = &status.file;
        // The journal needs no bytes.
        let nowhere = From::File(PathBuf::new());
        let from = match from {
            Some(from) => from,
            None if !replica.keeps_bytes() => &nowhere,
            None => return Err("its bytes are nowhere any more: store the file again".to_owned()),
        };
        let sent = replica.upload(&file.name, file.size, &file.checksums, from).await;
        sent.map_err(|error| Chain(&error).to_string())
    }

    /// Asks the replica for its own checksum, unless it has just read the copy back where it lies: then only whether
    /// it still lies there. The text is the answer, or why there is none.
    async fn ask(
        &self,
        status: &FileStatus,
        replica: &Replica,
        read_back: Option<Checksums>,
    ) -> (Event, String) {
        let file = &status.file;
        let Some((algorithm, _)) = file.checksums.strongest() else {
            return (Event::Unanswered, "the file has no checksum".to_owned());
        };
        let answer = match read_back {
            Some(sums) => match replica.size_of(&file.name).await {
                Ok(Some(size)) if size == file.size => Ok(Answer::Sums(sums)),
                Ok(_) => replica.checksum(&file.name, algorithm).await,
                Err(error) => Err(error),
            },
            None => replica.checksum(&file.name, algorithm).await,
        };
        match answer {
            Ok(Answer::Sums(sums)) if sums.same_as(&file.checksums) => (Event::Equal, deciding(&sums)),
            Ok(Answer::Sums(sums)) => (Event::Different, deciding(&sums)),
            Ok(Answer::Unreadable) => (Event::Different, UNREADABLE.to_owned()),
            Ok(Answer::Missing) => (Event::Missing, "it has no such file".to_owned()),
            Err(error) => (Event::Unanswered, Chain(&error).to_string()),
        }
    }
}

/// What became of one copy.
struct CopyDone {
    replica: String,
    /// Bytes were sent.
    sent: bool,
    error: Option<String>,
}

fn told(status: &FileStatus, already: bool) -> StoreOutcome {
    let unproven = status.holdings.iter().filter(|holding| holding.state != UploadState::UploadCompleted);
    let unproven: Vec<_> = unproven
        .map(|holding| Unproven {
            replica: holding.replica.to_string(),
            state: holding.state,
            reason: holding.last_error.clone().unwrap_or_else(|| "it is not proven yet".to_owned()),
        })
        .collect();
    StoreOutcome {
        name: status.file.name.clone(),
        size: status.file.size,
        checksums: status.file.checksums,
        stored: unproven.is_empty(),
        already,
        unproven,
    }
}

/// Copies a reader into a file and sums it up on the way.
pub(crate) async fn copy_summed(
    mut from: impl AsyncRead + Unpin,
    to: &mut tokio::fs::File,
    mut sums: Sums,
) -> std::io::Result<(u64, Checksums)> {
    let mut buffer = vec![0; 256 << 10];
    loop {
        let count = from.read(&mut buffer).await?;
        if count == 0 {
            to.flush().await?;
            return Ok((sums.size, sums.finish()));
        }
        sums.update(&buffer[..count]);
        to.write_all(&buffer[..count]).await?;
    }
}
