//! Driving a file to its replicas: the thin worker around the state machine. Every step is a row before the next is
//! taken.

use std::path::PathBuf;

use futures_util::future::join_all;
use grange_base::worker::Step;
use grange_base::{Chain, Retry, RetryPolicy, Shutdown};
use grange_db::{Claim, FileStatus, Holding, HoldingChange, STORE_WORK, deciding};
use grange_model::store_state::step;
use grange_model::{
    Checksums, CopyState, FileName, LogEvent, Presence, StoreAction, StoreEvent, UploadState, Verdict,
};
use jiff::Timestamp;
use serde_json::json;

use crate::archive::Archive;
use crate::error::Error;
use crate::held_file::HeldFile;
use crate::replica::{Answer, Replica, UNREADABLE, UploadFault};
use crate::transfer::From;

impl Archive {
    /// Takes one file that is due and brings it on: after a crash, or where a replica was away. When `stop` comes, the file is
    /// given back at once; an upload that can be resumed is resumed wherever there is a worker.
    pub async fn store_step(&self, stop: &Shutdown) -> Result<Step, Error> {
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
        let file = HeldFile::default();
        let drive = self.settling(&file, &claim, self.drive(&status, &claim, None, "grange"));
        let ended = stop.or(Box::pin(drive)).await;
        self.give_back(&file).await;
        match ended {
            // Somebody else has it now.
            None | Some(Ok(_) | Err(Error::Db(grange_db::Error::LeaseLost { .. }))) => Ok(Step::More),
            Some(Err(error)) => Err(error),
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

    /// Brings every copy of the file as far as it goes now, and settles the file or puts it back into the queue. With
    /// `deposited` a depositor has the bytes: every replica is asked, also those with a complete copy by their row.
    pub(crate) async fn drive(
        &self,
        status: &FileStatus,
        claim: &Claim,
        deposited: Option<From>,
        by: &str,
    ) -> Result<Vec<CopyDone>, Error> {
        let begins = if deposited.is_some() { StoreEvent::Deposit } else { StoreEvent::Due };
        let sources = self.sources(status, deposited).await;
        // Copies with a source go together; the ones that need a proven copy first come after.
        let (fresh, later): (Vec<_>, Vec<_>) = if sources.is_empty() {
            status.holdings.iter().partition(|holding| holding.state != UploadState::Unknown)
        } else {
            (status.holdings.iter().collect(), Vec::new())
        };
        let mut done = Vec::new();
        for group in [fresh, later] {
            if group.is_empty() {
                continue;
            }
            let proven;
            let sources = if sources.is_empty() {
                proven = self.proven_sources(&self.file(&status.file.name).await?);
                &proven
            } else {
                &sources
            };
            let copies = group.iter().map(|holding| self.copy(status, claim, holding, begins, sources));
            for one in join_all(copies).await {
                done.push(one?);
            }
        }
        let healed = status.file.stored_at.is_some();
        let event = if healed { LogEvent::Repaired } else { LogEvent::Stored };
        let sent: Vec<_> = done.iter().filter(|copy| copy.sent).map(|copy| copy.replica.clone()).collect();
        // A deposit of a file that was complete everywhere is read back and adds nothing to the log.
        let news = !healed || !status.proven();
        let record = news.then(|| self.record(event, status, None, by, json!({ "sent": sent })));
        if self.0.db.files().settle(claim, status.file.id, record).await? {
            self.drop_spooled(status).await;
            if let Some(announcer) = &self.0.announcer {
                let name = status.file.name.as_str();
                announcer.hint(&announcer.channels().index_server(), "stored", name).await;
            }
            return Ok(done);
        }
        let errors: Vec<_> = done.iter().filter_map(|copy| copy.error.clone()).collect();
        let policy = RetryPolicy {
            first: self.0.settings.retry_first.0,
            most: self.0.settings.retry_most.0,
            attempts: 0,
        };
        let wait = policy.wait(claim.attempt, Retry::Soon).unwrap_or(policy.most);
        self.0.db.work().fail(claim, &errors.join("; "), wait).await?;
        Ok(done)
    }

    /// Where the bytes may come from, in the order in which they are tried: the depositor, the proven copies, and the file
    /// that the last depositor handed in.
    async fn sources(&self, status: &FileStatus, deposited: Option<From>) -> Vec<From> {
        let given = deposited.is_some();
        let mut sources: Vec<_> = deposited.into_iter().chain(self.proven_sources(status)).collect();
        if !given {
            sources.extend(self.deposited_file(status).await);
        }
        sources
    }

    /// The file that the last depositor handed in, if it still lies on this machine. Its bytes are compared when they are
    /// sent.
    pub(crate) async fn deposited_file(&self, status: &FileStatus) -> Option<From> {
        let source: serde_json::Value = serde_json::from_str(status.file.source.as_deref()?).ok()?;
        // A command without a node stores from the machine that it runs on.
        let here = source["node"] == self.0.node.as_str() || source["node"] == "command";
        let path = PathBuf::from(source["path"].as_str().filter(|_| here)?);
        let size = tokio::fs::metadata(&path).await.ok()?.len();
        (size == status.file.size).then_some(From::File(path))
    }

    /// Whether the rows name bytes to make the copy on `replica` again: on another replica, or in the file it came from. A
    /// checksum replica needs none.
    pub(crate) async fn has_source_for(&self, status: &FileStatus, replica: &Replica) -> bool {
        let is_other = |from: &From| !from.is(replica);
        !replica.keeps_bytes()
            || self.proven_sources(status).iter().any(is_other)
            || self.deposited_file(status).await.is_some()
    }

    /// The replicas with bytes that are proven.
    fn proven_sources(&self, status: &FileStatus) -> Vec<From> {
        let proven = status.holdings.iter().filter(|holding| {
            holding.state == UploadState::UploadCompleted && holding.verdict == Verdict::Ok
        });
        let replicas = proven.filter_map(|holding| self.replica_by_id(holding.replica_id));
        replicas.filter(|replica| replica.keeps_bytes()).cloned().map(From::Replica).collect()
    }

    /// Drives one copy through the machine until there is nothing to do.
    async fn copy(
        &self,
        status: &FileStatus,
        claim: &Claim,
        holding: &Holding,
        begins: StoreEvent,
        sources: &[From],
    ) -> Result<CopyDone, Error> {
        // A copy that failed is sent once more in any case: it may never have been there. So is one whose upload was
        // interrupted: retries are for replicas that took a copy and do not have it.
        let once_more = match holding.state {
            UploadState::UploadFailed => 1,
            UploadState::UploadStarted => holding.attempts.saturating_add(1),
            _ => 0,
        };
        let retries = self.0.settings.upload_retries.max(once_more);
        let replica = holding.replica.to_string();
        let mut done = CopyDone { replica, sent: false, answered_equal: false, error: None };
        let Some(replica) = self.replica_by_id(holding.replica_id) else { return Ok(done) };
        let mut copy = CopyState { state: holding.state, attempts: holding.attempts };
        let (mut presence, mut verdict) = (holding.presence, holding.verdict);
        let mut checksum = holding.checksum.clone();
        let (mut asked_at, mut outdated_answers) = (None, 0);
        // The clock may be corrected: what this copy was asked after its own row was kept is not older than that row.
        let mut kept_at = Timestamp::MIN;
        // What the replica said of the copy when it took it.
        let mut read_back = None;
        let (mut next, mut action) = step(copy, begins, retries);
        loop {
            if next != copy || asked_at.is_some() {
                let change = HoldingChange {
                    replica_id: holding.replica_id,
                    state: next.state,
                    presence,
                    verdict,
                    checksum: checksum.clone(),
                    attempts: next.attempts,
                    last_error: done.error.clone(),
                    asked_at,
                };
                let outdated = self.0.db.files().advance(claim, status.file.id, vec![change]).await?;
                if !outdated.is_empty() {
                    // Somebody else asked later, or changed the copy: their row stays, and the replica is asked once more.
                    done.answered_equal = false;
                    outdated_answers += 1;
                    if outdated_answers > OUTDATED_ANSWERS_MAX {
                        done.error =
                            Some(format!("{}: its copy is changed while it is asked", replica.name()));
                        return Ok(done);
                    }
                    let known = self.file(&status.file.name).await?;
                    if let Some(row) = known.holdings.iter().find(|row| row.replica_id == holding.replica_id)
                    {
                        (presence, verdict, checksum) = (row.presence, row.verdict, row.checksum.clone());
                    }
                    asked_at = None;
                    (next, action) = (copy, Some(StoreAction::AskChecksum));
                    continue;
                }
            }
            (copy, kept_at) = (next, kept_at.max(self.0.clock.now()));
            let event = match action {
                None => return Ok(done),
                Some(StoreAction::Upload) => {
                    asked_at = None;
                    match self.upload(status, replica, sources).await {
                        Ok(answer) => {
                            (done.sent, read_back) = (true, answer);
                            StoreEvent::Taken
                        }
                        Err(reason) => {
                            done.error = Some(format!("{}: {reason}", replica.name()));
                            StoreEvent::Refused
                        }
                    }
                }
                Some(StoreAction::AskChecksum) => {
                    let now = self.0.clock.now().max(kept_at);
                    let (event, answer) = self.ask(status, replica, read_back.take()).await;
                    asked_at = (event != StoreEvent::Unanswered).then_some(now);
                    done.error = match &event {
                        StoreEvent::Equal => None,
                        StoreEvent::Different => Some(format!(
                            "{}: it holds other bytes under this name ({answer}); `grange repair --all` shows what can be done",
                            replica.name()
                        )),
                        _ => Some(format!("{}: {answer}", replica.name())),
                    };
                    match event {
                        StoreEvent::Equal => {
                            done.answered_equal = true;
                            (presence, verdict, checksum) = (Presence::Ok, Verdict::Ok, Some(answer));
                        }
                        // Judged by the act that keeps it.
                        StoreEvent::Different => {
                            (presence, verdict, checksum) = (Presence::Ok, Verdict::Unknown, Some(answer));
                        }
                        StoreEvent::Missing => {
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

    /// Sends the copy from the first source that gives the right bytes. A source that does not is noted, and the next one is
    /// tried.
    async fn upload(
        &self,
        status: &FileStatus,
        replica: &Replica,
        sources: &[From],
    ) -> Result<Option<Checksums>, String> {
        let file = &status.file;
        // The journal needs no bytes.
        let nowhere = [From::File(PathBuf::new())];
        let sources = if replica.keeps_bytes() { sources } else { &nowhere[..] };
        let mut reasons = Vec::new();
        for from in sources.iter().filter(|from| !from.is(replica)) {
            match replica.upload(&file.name, file.size, &file.checksums, from).await {
                Ok(answer) => return Ok(answer),
                Err(UploadFault::Keeper(error)) => {
                    reasons.push(Chain(&error).to_string());
                    break;
                }
                Err(UploadFault::Transfer(error)) => {
                    reasons.push(Chain(&error).to_string());
                    if !source_may_be_at_fault(&error) {
                        break;
                    }
                    if let From::Replica(source) = from {
                        self.doubt_source(status, source).await;
                    }
                }
            }
        }
        if reasons.is_empty() {
            return Err("its bytes are nowhere any more: store the file again".to_owned());
        }
        // Sources that are away for the same reason say so once.
        reasons.dedup();
        Err(reasons.join("; "))
    }

    /// A copy that was called proven did not serve as a source: if it is not the file, that is a finding.
    async fn doubt_source(&self, status: &FileStatus, source: &Replica) {
        if let Err(fault) = self.proves(status, source).await {
            let fault = self.pass_over(status, source, fault).await;
            let reason = fault.reason();
            tracing::warn!(name = %status.file.name, replica = source.name(), reason, "a copy could not be used to make another one");
        }
    }

    /// Asks the replica for its own checksum, unless it has just read the copy back where it lies: then only whether
    /// it still lies there. The text is the answer, or why there is none.
    async fn ask(
        &self,
        status: &FileStatus,
        replica: &Replica,
        read_back: Option<Checksums>,
    ) -> (StoreEvent, String) {
        let file = &status.file;
        let Some((algorithm, _)) = file.checksums.strongest() else {
            return (StoreEvent::Unanswered, "the file has no checksum".to_owned());
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
            Ok(Answer::Sums(sums)) if sums.same_as(&file.checksums) => {
                (StoreEvent::Equal, deciding(&file.checksums))
            }
            Ok(Answer::Sums(sums)) => (StoreEvent::Different, deciding(&sums)),
            Ok(Answer::Unreadable) => (StoreEvent::Different, UNREADABLE.to_owned()),
            Ok(Answer::Missing) => (StoreEvent::Missing, "it has no such file".to_owned()),
            Err(error) => (StoreEvent::Unanswered, Chain(&error).to_string()),
        }
    }
}

/// How often a replica is asked again because its copy changed meanwhile; then the file waits in the queue. People and checks
/// look at one copy a few times an hour at most.
const OUTDATED_ANSWERS_MAX: u32 = 3;

/// Whether another source may succeed where one failed: not when the place that takes the copy is full or holds other bytes.
fn source_may_be_at_fault(error: &Error) -> bool {
    use grange_blob::Error as Blob;
    !matches!(
        error,
        Error::Blob(
            Blob::Conflict { .. } | Blob::Full { .. } | Blob::ReadOnly { .. } | Blob::ReadBack { .. }
        )
    )
}

/// What became of one copy.
pub(crate) struct CopyDone {
    pub(crate) replica: String,
    /// Bytes were sent.
    sent: bool,
    /// The replica answered the file's checksum now.
    pub(crate) answered_equal: bool,
    pub(crate) error: Option<String>,
}
