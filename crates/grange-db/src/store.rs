//! Storing a file: the row, the claim on it, its holdings step by step, and the end.
//!
//! A file has a row in `work` (kind [`STORE_WORK`], key its name) exactly as long as some replica is not proven. Who
//! wants the file stored takes that row by its name; who resumes after a crash takes whatever is due.

use std::time::Duration;

use grange_model::{Checksums, FileName, LogRecord, Presence, UploadState, Verdict, WorkId};
use jiff::Timestamp;

use crate::act::Tx;
use crate::ballots::judge;
use crate::dialect::Sql;
use crate::error::{Error, Fail};
use crate::files::{FileStatus, Files, StoredFile, deciding, file, status};
use crate::frame_lock;
use crate::logbook;
use crate::numbers;
use crate::row::{Columns, length, micros};
use crate::work::{Claim, take};

/// The queue of files that are not proven everywhere.
pub const STORE_WORK: &str = "archive.store";

/// A file to be stored.
#[derive(Clone, Debug)]
pub struct NewFile {
    pub name: FileName,
    pub size: u64,
    /// As computed here from the bytes, never as announced.
    pub checksums: Checksums,
    /// Where the bytes can be had again after a crash.
    pub source: Option<String>,
}

/// What to do about a file whose rows say that every replica has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfStored {
    /// Claim it: a deposit is acknowledged only by what the replicas answer now.
    Verify,
    /// Leave it: there is nothing to complete.
    Skip,
}

/// How storing began.
#[derive(Clone, Debug)]
pub enum Begun {
    /// By the rows every replica has it, and nobody wanted more ([`IfStored::Skip`]).
    Proven(FileStatus),
    /// It is ours to upload.
    Claimed(FileStatus, Claim),
    /// Somebody else is uploading it now.
    Busy(FileStatus),
    /// Other bytes are known under this name. Nothing was changed.
    Refused(StoredFile),
}

/// What became known of one holding.
#[derive(Clone, Debug)]
pub struct HoldingChange {
    pub replica_id: i64,
    pub state: UploadState,
    pub presence: Presence,
    pub verdict: Verdict,
    pub checksum: Option<String>,
    pub attempts: u32,
    pub last_error: Option<String>,
    /// The replica answered, and was asked at this time. An answer never replaces a newer one.
    pub asked_at: Option<Timestamp>,
}

impl Files<'_> {
    /// Enters the file, or finds it, and claims it for `owner` unless somebody else has it.
    pub async fn begin(
        &self,
        new: NewFile,
        owner: &str,
        lease: Duration,
        if_stored: IfStored,
    ) -> Result<Begun, Error> {
        let input = (new, owner.to_owned(), length(lease), if_stored);
        self.0
            .write("enter the file", input, |tx, (new, owner, lease, if_stored)| {
                Box::pin(begin(tx, new, owner, *lease, *if_stored))
            })
            .await
    }

    /// Keeps what became known. [`Error::LeaseLost`] when somebody else has the file now. Gives the replicas whose answer was
    /// older than what is known of their copy: nothing was kept of it, and they are to be asked again.
    pub async fn advance(
        &self,
        claim: &Claim,
        file: i64,
        changes: Vec<HoldingChange>,
    ) -> Result<Vec<i64>, Error> {
        self.0
            .write(
                "keep the state of the copies",
                (claim.clone(), file, changes),
                |tx, (claim, file, changes)| {
                    Box::pin(async move {
                        frame_lock::share(tx).await?;
                        fence(tx, claim).await?;
                        let mut outdated = Vec::new();
                        for change in changes {
                            if !apply(tx, *file, change).await? {
                                outdated.push(change.replica_id);
                            }
                        }
                        // A copy that answers otherwise is judged now, not by the next check; and an answer that
                        // confirms the record is a voice against those that contradict it.
                        if changes.iter().any(|change| change.asked_at.is_some())
                            && disputed(tx, *file).await?
                        {
                            let judged = judge(tx, &[*file], "grange").await?;
                            logbook::append(tx, &judged.records).await?;
                        }
                        Ok(outdated)
                    })
                },
            )
            .await
    }

    /// If every replica is proven the file is stored: its row leaves the queue and the record, if there is any news, enters
    /// the log. False, and nothing is changed, if one is not.
    pub async fn settle(&self, claim: &Claim, file: i64, record: Option<LogRecord>) -> Result<bool, Error> {
        self.0
            .write("settle the file", (claim.clone(), file, record), |tx, (claim, file, record)| {
                Box::pin(settle(tx, claim, *file, record.as_ref()))
            })
            .await
    }

    /// Where the bytes lie of files that no replica with bytes is proven to have: all there is of them.
    pub async fn needed_sources(&self) -> Result<Vec<String>, Error> {
        self.0
            .read("look for the bytes of files", (), |tx, ()| {
                Box::pin(async move {
                    let query = tx.sql(&NEEDED).bind(STORE_WORK);
                    tx.rows(query).await?.iter().map(|row| row.text("source")).collect()
                })
            })
            .await
    }

    /// Puts the file into the queue, due now: some copy of it is to be made again.
    pub async fn requeue(&self, name: &FileName) -> Result<(), Error> {
        self.0
            .write_one("queue the file", name.as_str().to_owned(), |tx, name| {
                Box::pin(async move {
                    let query = tx.timed(&REQUEUE).bind(WorkId::new().to_string()).bind(STORE_WORK);
                    tx.run(query.bind(name.as_str())).await.map(|_| ())
                })
            })
            .await
    }
}

static INSERT: Sql = Sql::new(
    "INSERT INTO files (name, size, checksum, checksums, source, created_at) VALUES ($1, $2, $3, $4, $5, $6)
     ON CONFLICT (name) DO NOTHING",
);
static LOCK: Sql =
    Sql::new(concat!("SELECT ", crate::files::columns!(), " FROM files f WHERE f.name = $1 {for_update}"));
static FILL: Sql = Sql::new(
    "INSERT INTO replica_files (file_id, replica_id, size, changed_at)
     SELECT $1, id, $2, $3 FROM replicas WHERE id > 0
     ON CONFLICT (file_id, replica_id) DO NOTHING",
);
static SOURCE: Sql = Sql::new("UPDATE files SET source = $2, edition = edition + 1 WHERE id = $1");
static REQUEUE: Sql = Sql::new(
    "INSERT INTO work (id, kind, key, payload, priority, due_at, attempts_max, created_at, updated_at)
     VALUES ($2, $3, $4, '{}', 0, {now}, 0, {now}, {now})
     ON CONFLICT (kind, key) DO UPDATE SET outcome = NULL, ended_at = NULL, due_at = {now}, updated_at = {now},
         edition = work.edition + 1
     WHERE work.lease_owner IS NULL",
);
static NEEDED: Sql = Sql::new(
    "SELECT f.source FROM work w JOIN files f ON f.name = w.key
     WHERE w.kind = $1 AND w.outcome IS NULL AND f.source IS NOT NULL AND NOT EXISTS
         (SELECT 1 FROM replica_files h JOIN replicas r ON r.id = h.replica_id
          WHERE h.file_id = f.id AND h.state = 'upload_completed' AND h.verdict = 'ok' AND r.kind = 'bitarchive')",
);
static FENCE: Sql = Sql::new(
    "SELECT id FROM work WHERE id = $1 AND lease_token = $2 AND lease_owner IS NOT NULL {for_update}",
);
// A copy is complete only with the checksum that is recorded now: somebody may have corrected the record since the
// replica was asked. The sentence on an undecided copy stays while its answer is the same.
static CHANGE: Sql = Sql::new(
    "UPDATE replica_files SET
         state = CASE WHEN $3 = 'upload_completed' AND COALESCE($6, '')
             <> (SELECT f.checksum FROM files f WHERE f.id = $1) THEN 'upload_failed' ELSE $3 END,
         presence = $4,
         verdict = CASE WHEN $5 = 'ok' AND COALESCE($6, '')
             <> (SELECT f.checksum FROM files f WHERE f.id = $1) THEN 'unknown' ELSE $5 END,
         checksum = $6, attempts = $7,
         last_error = CASE WHEN $3 <> 'upload_completed' AND checksum = $6 AND last_error LIKE 'undecided:%'
             THEN last_error ELSE $8 END,
         listed_at = COALESCE($9, listed_at), checked_at = COALESCE($9, checked_at),
         changed_at = $10, edition = edition + 1
     WHERE file_id = $1 AND replica_id = $2 AND changed_at <= $11",
);
static UNPROVEN: Sql = Sql::new(
    "SELECT count(*) AS count FROM replica_files h JOIN files f ON f.id = h.file_id
     WHERE h.file_id = $1 AND (h.state <> 'upload_completed' OR COALESCE(h.checksum, '') <> f.checksum)",
);
static DISPUTED: Sql = Sql::new(
    "SELECT h.replica_id FROM replica_files h JOIN files f ON f.id = h.file_id
     WHERE h.file_id = $1 AND h.presence = 'ok' AND h.checksum IS NOT NULL AND h.checksum <> f.checksum LIMIT 1",
);
static STORED: Sql = Sql::new(
    "UPDATE files SET stored_at = COALESCE(stored_at, $2), source = NULL, edition = edition + 1 WHERE id = $1",
);
static DROP: Sql = Sql::new("DELETE FROM work WHERE id = $1 AND lease_token = $2");

async fn begin(
    tx: &mut Tx<'_>,
    new: &NewFile,
    owner: &str,
    lease: i64,
    if_stored: IfStored,
) -> Result<Begun, Fail> {
    frame_lock::share(tx).await?;
    let name = new.name.as_str().to_owned();
    let checksums = serde_json::to_string(&new.checksums).unwrap_or_default();
    let query = tx
        .sql(&INSERT)
        .bind(name.clone())
        .bind(new.size as i64)
        .bind(deciding(&new.checksums))
        .bind(checksums)
        .bind(new.source.clone())
        .bind(micros(tx.now));
    if tx.run(query).await? == 1 {
        numbers::raise_above(tx, std::iter::once(&new.name)).await?;
    }
    let query = tx.sql(&LOCK).bind(name.clone());
    let gone = || Error::NotFound { what: format!("file {}, which was just entered", new.name) };
    let known = file(&tx.row(query).await?.ok_or_else(gone)?)?;
    if known.size != new.size || !known.checksums.same_as(&new.checksums) {
        return Ok(Begun::Refused(known));
    }
    let query = tx.sql(&FILL).bind(known.id).bind(known.size as i64).bind(micros(tx.now));
    tx.run(query).await?;
    let found = status(tx, &name).await?.ok_or_else(gone)?;
    if if_stored == IfStored::Skip && found.proven() && known.stored_at.is_some() {
        return Ok(Begun::Proven(found));
    }
    let Some(claim) = take(tx, STORE_WORK, &name, owner, lease).await? else { return Ok(Begun::Busy(found)) };
    if new.source.is_some() && known.source != new.source {
        let query = tx.sql(&SOURCE).bind(known.id).bind(new.source.clone());
        tx.run(query).await?;
    }
    Ok(Begun::Claimed(found, claim))
}

/// Whether some copy of the file contradicts its record.
async fn disputed(tx: &mut Tx<'_>, file: i64) -> Result<bool, Fail> {
    let query = tx.sql(&DISPUTED).bind(file);
    Ok(tx.row(query).await?.is_some())
}

/// Refuses whoever lost the lease, and keeps the row until the commit.
pub(crate) async fn fence(tx: &mut Tx<'_>, claim: &Claim) -> Result<(), Fail> {
    let query = tx.sql(&FENCE).bind(claim.id.to_string()).bind(claim.token);
    let lost = || Error::LeaseLost { what: format!("{} {}", claim.kind, claim.key) };
    tx.row(query).await?.map(|_| ()).ok_or_else(|| lost().into())
}

/// Ends the work without leaving a row behind.
pub(crate) async fn drop_work(tx: &mut Tx<'_>, claim: &Claim) -> Result<(), Fail> {
    let query = tx.sql(&DROP).bind(claim.id.to_string()).bind(claim.token);
    tx.run(query).await.map(|_| ())
}

/// False, and nothing is changed, where the row is newer than the answer.
async fn apply(tx: &mut Tx<'_>, file: i64, change: &HoldingChange) -> Result<bool, Fail> {
    let now = micros(tx.now);
    let query = tx
        .sql(&CHANGE)
        .bind(file)
        .bind(change.replica_id)
        .bind(change.state.as_str())
        .bind(change.presence.as_str())
        .bind(change.verdict.as_str())
        .bind(change.checksum.clone())
        .bind(i64::from(change.attempts))
        // The text may come from afar, and PostgreSQL keeps no NUL.
        .bind(change.last_error.as_ref().map(|error| error.replace('\0', "\u{fffd}")))
        .bind(change.asked_at.map(|_| now))
        .bind(now)
        .bind(change.asked_at.map_or(i64::MAX, micros));
    Ok(tx.run(query).await? > 0)
}

async fn settle(tx: &mut Tx<'_>, claim: &Claim, file: i64, record: Option<&LogRecord>) -> Result<bool, Fail> {
    frame_lock::share(tx).await?;
    fence(tx, claim).await?;
    let query = tx.sql(&UNPROVEN).bind(file);
    let unproven = tx.row(query).await?.map_or(Ok(0), |row| row.int("count"))?;
    if unproven > 0 {
        return Ok(false);
    }
    let query = tx.sql(&STORED).bind(file).bind(micros(tx.now));
    tx.run(query).await?;
    drop_work(tx, claim).await?;
    logbook::append(tx, record.map_or(&[], std::slice::from_ref)).await?;
    Ok(true)
}
