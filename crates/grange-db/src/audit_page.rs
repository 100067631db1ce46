//! One stretch of a check: what a replica listed between two names, compared with what is known of it, in one act.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use grange_model::{AuditId, AuditKind, FileName, LogEvent, LogRecord, Presence, Verdict};
use jiff::Timestamp;
use serde_json::json;
use sqlx::any::AnyRow;

use crate::act::Tx;
use crate::audits::{Audits, Found};
use crate::ballots::judge;
use crate::bulk::{self, Bulk, of_ids};
use crate::dialect::Sql;
use crate::error::{Error, Fail};
use crate::frame_lock;
use crate::logbook;
use crate::row::{Columns, micros};
use crate::store::{STORE_WORK, fence};
use crate::strays::{self, StrayRange};
use crate::work::Claim;

/// Rows known here that one act compares: less than a second's work. A replica that lost everything is told in
/// stretches of this length.
const KNOWN_PER_ACT: i64 = 5_000;

/// Names of files unknown here that one record tells; the rest is counted.
const EXTRA_TOLD: usize = 20;

/// One copy as the replica told it.
#[derive(Clone, Debug)]
pub struct Seen {
    pub name: FileName,
    pub size: u64,
    /// What it answered, `unreadable` if it could not. Absent in a list check, but for copies that were missing
    /// ([`Audits::reappeared`]).
    pub checksum: Option<String>,
}

/// What a replica listed after `after`, up to and including `upto` or to the end.
#[derive(Clone, Debug)]
pub struct Page {
    pub audit: AuditId,
    pub replica_id: i64,
    pub replica: String,
    pub kind: AuditKind,
    pub after: Option<String>,
    pub upto: Option<String>,
    /// Sorted by name.
    pub seen: Vec<Seen>,
    /// When the replica was asked, before it answered. What changed since is not judged by this list.
    pub asked_at: Timestamp,
    pub by: String,
}

/// How far the act came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turned {
    /// The last name dealt with; absent when the end was reached.
    pub position: Option<String>,
    pub found: Found,
}

impl Audits<'_> {
    /// Keeps what the stretch says: presences, checksums, verdicts, counts, the position and the log records.
    pub async fn turn_page(&self, claim: &Claim, page: Page) -> Result<Turned, Error> {
        self.0
            .write("keep what the check found", (claim.clone(), page), |tx, (claim, page)| {
                Box::pin(turn(tx, claim, page))
            })
            .await
    }

    /// Those of the names that the replica was found to miss, or that came back since and were not read. A list check that
    /// finds them reads them: their bytes are known to nobody.
    pub async fn reappeared(&self, replica: i64, names: Vec<FileName>) -> Result<HashSet<String>, Error> {
        self.0
            .read("look for copies that came back", (replica, names), |tx, (replica, names)| {
                Box::pin(async move {
                    let list: Vec<&str> = names.iter().map(FileName::as_str).collect();
                    let query = REAPPEARED.on(tx).bind(*replica).bind(json!(list).to_string());
                    tx.rows(query).await?.iter().map(|row| row.text("name")).collect()
                })
            })
            .await
    }
}

macro_rules! reappeared {
    ($names:literal) => {
        concat!(
            "SELECT f.name FROM replica_files h JOIN files f ON f.id = h.file_id
             WHERE h.replica_id = $1 AND h.state <> 'upload_completed' AND (h.presence = 'missing' OR
                 (h.presence = 'ok' AND h.state = 'upload_failed' AND h.verdict = 'unknown' AND h.checksum IS NULL))
                 AND f.name IN (SELECT ",
            $names,
            ")"
        )
    };
}
static REAPPEARED: Bulk = Bulk {
    sqlite: Sql::new(reappeared!("value FROM json_each($2)")),
    postgres: Sql::new(reappeared!("jsonb_array_elements_text($2::jsonb)")),
};

macro_rules! known {
    ($upto:literal) => {
        concat!(
            "SELECT f.id, f.name, f.size, f.checksum AS recorded, h.presence, h.verdict, h.changed_at,
                 CASE WHEN h.presence <> 'ok' AND h.state IN ('upload_started', 'data_uploaded') AND EXISTS
                     (SELECT 1 FROM work w WHERE w.kind = $6 AND w.key = f.name AND w.lease_owner IS NOT NULL
                          AND w.due_at > {now}) THEN 1 ELSE 0 END AS uploading
             FROM files f JOIN replica_files h ON h.file_id = f.id AND h.replica_id = $2
             WHERE f.name > $3",
            $upto,
            " ORDER BY f.name LIMIT $5"
        )
    };
}
static KNOWN_UPTO: Sql = Sql::new(known!(" AND f.name <= $4"));
static KNOWN_ALL: Sql = Sql::new(known!(" AND $4 = $4"));
// These three ask the rows once more as well: on PostgreSQL an upload may have ended since they were compared.
static LISTED: Bulk = of_ids!(
    "UPDATE replica_files SET presence = 'ok', listed_at = $2, edition = edition + 1
     WHERE replica_id = $1 AND changed_at <= $4 AND file_id IN (",
    "$3",
    ")"
);
static EQUAL: Bulk = of_ids!(
    "UPDATE replica_files SET presence = 'ok', verdict = 'ok', state = 'upload_completed', last_error = NULL,
         checksum = (SELECT f.checksum FROM files f WHERE f.id = file_id), listed_at = $2, checked_at = $2,
         edition = edition + 1
     WHERE replica_id = $1 AND changed_at <= $4 AND file_id IN (",
    "$3",
    ")"
);
static OTHER: Sql = Sql::new(
    "UPDATE replica_files SET presence = 'ok', checksum = $4, listed_at = $3, checked_at = $3,
         edition = edition + 1
     WHERE replica_id = $1 AND file_id = $2 AND changed_at <= $5",
);
// Asked of the rows once more: a copy may have been uploaded since they were compared with the list.
static MISSING: Bulk = of_ids!(
    "UPDATE replica_files SET presence = 'missing', verdict = 'unknown', state = 'upload_failed', checksum = NULL,
         last_error = 'the replica does not list it', listed_at = $2, changed_at = $2, edition = edition + 1
     WHERE replica_id = $1 AND file_id IN (",
    "$3",
    ") AND (changed_at < $4 OR (presence = 'missing' AND state NOT IN ('upload_started', 'data_uploaded')))
     RETURNING file_id"
);
static DISPUTED: Bulk = of_ids!(
    "SELECT DISTINCT h.file_id AS id FROM replica_files h JOIN files f ON f.id = h.file_id
     WHERE h.presence = 'ok' AND h.checksum IS NOT NULL AND h.checksum <> f.checksum AND h.replica_id <> $1
         AND h.file_id IN (",
    "$2",
    ")"
);
static PROGRESS: Sql = Sql::new(
    "UPDATE audits SET position = COALESCE($2, position), files = files + $3, bytes = bytes + $4, ok = ok + $5,
         missing = missing + $6, corrupt = corrupt + $7, undecided = undecided + $8, extra = extra + $9,
         updated_at = $10, last_error = NULL, edition = edition + 1
     WHERE id = $1",
);

// Of audits that run together, the one that reads a copy last may turn the vote on what another has counted.
macro_rules! recount {
    ($from:literal, $to:literal) => {
        concat!(
            "UPDATE audits SET ",
            $from,
            " = ",
            $from,
            " - 1, ",
            $to,
            " = ",
            $to,
            " + 1, edition = edition + 1
             WHERE kind = $1 AND replica_id = $2 AND id <> $3 AND ",
            $from,
            " > 0
                 AND (state = 'running' OR (state = 'done' AND ended_at >=
                     (SELECT own.started_at FROM audits own WHERE own.id = $3)))
                 AND started_at <= (SELECT h.listed_at FROM replica_files h WHERE h.file_id = $4 AND h.replica_id = $2)"
        )
    };
}
static NOW_UNDECIDED: Sql = Sql::new(recount!("corrupt", "undecided"));
static NOW_CORRUPT: Sql = Sql::new(recount!("undecided", "corrupt"));

/// A row that is known here.
struct Known {
    id: i64,
    name: String,
    size: u64,
    recorded: String,
    presence: Presence,
    verdict: Verdict,
    changed_at: Timestamp,
    /// Somebody sends the copy now: it is not there until it is whole.
    uploading: bool,
}

/// How the two lists compare.
#[derive(Default)]
struct Compared<'a> {
    /// Held, and read with the checksum recorded.
    equal: Vec<&'a Known>,
    /// Held, and not read.
    listed: Vec<&'a Known>,
    /// Held, with another answer.
    other: Vec<(&'a Known, String)>,
    missing: Vec<&'a Known>,
    extra: Vec<&'a Seen>,
    bytes: u64,
}

/// Walks both sorted lists once.
fn compare<'a>(known: &'a [Known], seen: &'a [Seen], asked_at: Timestamp) -> Compared<'a> {
    let mut compared = Compared::default();
    let (mut known, mut seen) = (known.iter().peekable(), seen.iter().peekable());
    loop {
        let order = match (known.peek(), seen.peek()) {
            (None, None) => return compared,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(row), Some(copy)) => row.name.as_str().cmp(copy.name.as_str()),
        };
        let row = if order.is_le() { known.next() } else { None };
        let copy = if order.is_ge() { seen.next() } else { None };
        match (row, copy) {
            // The upload asks the replica itself when it ends, and a later check meets the copy.
            (Some(row), _) if row.uploading => {}
            // Changed after the replica was asked: what it answered is older than what the row says.
            (Some(row), Some(_)) if row.changed_at > asked_at => {}
            (Some(row), Some(copy)) => {
                compared.bytes += copy.size;
                match &copy.checksum {
                    Some(checksum) if *checksum != row.recorded => {
                        compared.other.push((row, checksum.clone()));
                    }
                    // Needs no reading to be known as different. Where the copy was read its checksum says more.
                    _ if copy.size != row.size => {
                        compared.other.push((row, format!("size={}", copy.size)));
                    }
                    Some(_) => compared.equal.push(row),
                    None => compared.listed.push(row),
                }
            }
            // Uploaded or healed after the list was made: the list knows nothing of it.
            (Some(row), None) if row.changed_at >= asked_at && row.presence == Presence::Ok => {}
            (Some(row), None) if row.presence == Presence::Unknown && row.changed_at >= asked_at => {}
            (Some(row), None) => compared.missing.push(row),
            (None, Some(copy)) => compared.extra.push(copy),
            (None, None) => {}
        }
    }
}

async fn turn(tx: &mut Tx<'_>, claim: &Claim, page: &Page) -> Result<Turned, Fail> {
    frame_lock::share(tx).await?;
    fence(tx, claim).await?;
    let after = page.after.clone().unwrap_or_default();
    let sql = if page.upto.is_some() { &KNOWN_UPTO } else { &KNOWN_ALL };
    let query = tx
        .timed(sql)
        .bind(page.replica_id)
        .bind(after.clone())
        .bind(page.upto.clone().unwrap_or_default())
        .bind(KNOWN_PER_ACT)
        .bind(STORE_WORK);
    let known = tx.rows(query).await?.iter().map(read).collect::<Result<Vec<_>, Fail>>()?;
    // More rows than one act takes: the stretch ends at the last of them, and the rest is asked for again.
    let cut =
        (known.len() as i64 == KNOWN_PER_ACT).then(|| known.last().map(|row| row.name.clone())).flatten();
    let upto = cut.or_else(|| page.upto.clone());
    let reached = page
        .seen
        .partition_point(|copy| upto.as_ref().is_none_or(|upto| copy.name.as_str() <= upto.as_str()));
    let mut compared = compare(&known, &page.seen[..reached], page.asked_at);

    let (now, replica) = (micros(tx.now), page.replica_id);
    let ids_of = |rows: &[&Known]| rows.iter().map(|row| row.id).collect::<Vec<_>>();
    let (equal, listed) = (ids_of(&compared.equal), ids_of(&compared.listed));
    // Disputed before anything is written: the vote tells what is news by the verdicts of before.
    let mut disputed: Vec<i64> = compared.other.iter().map(|(row, _)| row.id).collect();
    run(tx, &LISTED, page, &listed).await?;
    run(tx, &EQUAL, page, &equal).await?;
    // After the rows are held: the act of another check that holds them now may keep a copy that contradicts the record.
    let contradicted = elsewhere(tx, replica, &equal).await?;
    // The record has one voice more against the copies that contradict it.
    disputed.extend(equal.iter().filter(|id| contradicted.contains(id)));
    for (row, checksum) in &compared.other {
        let query = tx.sql(&OTHER).bind(replica).bind(row.id).bind(now).bind(checksum.clone());
        let query = query.bind(micros(page.asked_at));
        tx.run(query).await?;
    }
    let missing = lost(tx, page, &ids_of(&compared.missing)).await?;
    compared.missing.retain(|row| missing.contains(&row.id));
    // The record may have lost a voice against the copies that contradict it.
    let gone: Vec<i64> = missing.iter().copied().collect();
    disputed.extend(elsewhere(tx, replica, &gone).await?);
    let judged = judge(tx, &disputed, &page.by).await?;
    let found = counted(page, &compared, &judged.verdicts);

    let mut records = judged.records;
    for row in compared.missing.iter().filter(|row| row.presence != Presence::Missing) {
        let (name, checksum) = (Some(row.name.clone()), Some(row.recorded.clone()));
        let detail = json!({ "check": page.audit });
        records.push(record(tx, page, LogEvent::Missing, name, checksum, Some(row.size), detail));
    }
    let told: Vec<_> = compared.extra.iter().take(EXTRA_TOLD).map(|copy| &copy.name).collect();
    let detail = json!({
        "check": page.audit, "kind": page.kind, "after": after, "upto": upto, "found": found, "extra": told,
    });
    records.push(record(tx, page, LogEvent::Checked, None, None, None, detail));
    let range = StrayRange {
        replica_id: replica,
        after: page.after.clone(),
        upto: upto.clone(),
        found: compared.extra.iter().map(|copy| (copy.name.clone(), copy.size)).collect(),
    };
    strays::keep(tx, &range).await?;

    let query = tx
        .sql(&PROGRESS)
        .bind(page.audit.to_string())
        .bind(upto.clone())
        .bind(found.files as i64)
        .bind(found.bytes as i64)
        .bind(found.ok as i64)
        .bind(found.missing as i64)
        .bind(found.corrupt as i64)
        .bind(found.undecided as i64)
        .bind(found.extra as i64)
        .bind(now);
    tx.run(query).await?;
    for turn in judged.turned.iter().filter(|turn| turn.replica != replica) {
        let sql = if turn.verdict == Verdict::Unknown { &NOW_UNDECIDED } else { &NOW_CORRUPT };
        let query = tx.sql(sql).bind(page.kind.as_str()).bind(turn.replica).bind(page.audit.to_string());
        tx.run(query.bind(turn.file)).await?;
    }
    logbook::append(tx, &records).await?;
    Ok(Turned { position: upto, found })
}

async fn run(tx: &mut Tx<'_>, sql: &'static Bulk, page: &Page, files: &[i64]) -> Result<(), Fail> {
    if files.is_empty() {
        return Ok(());
    }
    let query = sql.on(tx).bind(page.replica_id).bind(micros(tx.now)).bind(bulk::ids(files));
    tx.run(query.bind(micros(page.asked_at))).await.map(|_| ())
}

/// Marks these files as missing, but for those that came since the replica was asked; gives the marked.
async fn lost(tx: &mut Tx<'_>, page: &Page, files: &[i64]) -> Result<HashSet<i64>, Fail> {
    if files.is_empty() {
        return Ok(HashSet::new());
    }
    let query = MISSING.on(tx).bind(page.replica_id).bind(micros(tx.now)).bind(bulk::ids(files));
    let rows = tx.rows(query.bind(micros(page.asked_at))).await?;
    rows.iter().map(|row| row.int("file_id")).collect()
}

/// Those of the files on which some other replica answered otherwise.
async fn elsewhere(tx: &mut Tx<'_>, replica: i64, files: &[i64]) -> Result<HashSet<i64>, Fail> {
    if files.is_empty() {
        return Ok(HashSet::new());
    }
    let query = DISPUTED.on(tx).bind(replica).bind(bulk::ids(files));
    tx.rows(query).await?.iter().map(|row| row.int("id")).collect()
}

fn counted(page: &Page, compared: &Compared<'_>, verdicts: &HashMap<(i64, i64), Verdict>) -> Found {
    let (mut corrupt, mut undecided) = (0, 0);
    // What is listed and not read leaves the last verdict on its bytes as it was.
    let listed = compared.listed.iter().map(|row| (*row, row.verdict));
    let read = compared.equal.iter().copied().chain(compared.other.iter().map(|(row, _)| *row));
    let held = listed.chain(read.map(|row| (row, Verdict::Ok)));
    for (row, before) in held.clone() {
        match verdicts.get(&(row.id, page.replica_id)).copied().unwrap_or(before) {
            Verdict::Corrupt => corrupt += 1,
            Verdict::Unknown if verdicts.contains_key(&(row.id, page.replica_id)) => undecided += 1,
            Verdict::Unknown | Verdict::Ok => {}
        }
    }
    let files = held.count() as u64;
    Found {
        files,
        bytes: compared.bytes,
        ok: files - corrupt - undecided,
        missing: compared.missing.len() as u64,
        corrupt,
        undecided,
        extra: compared.extra.len() as u64,
    }
}

fn record(
    tx: &Tx<'_>,
    page: &Page,
    event: LogEvent,
    name: Option<String>,
    checksum: Option<String>,
    size: Option<u64>,
    detail: serde_json::Value,
) -> LogRecord {
    let (replica, by) = (Some(page.replica.clone()), page.by.clone());
    LogRecord { at: tx.now, event, name, checksum, size, replica, by, detail }
}

fn read(row: &AnyRow) -> Result<Known, Fail> {
    Ok(Known {
        id: row.int("id")?,
        name: row.text("name")?,
        size: row.int("size")? as u64,
        recorded: row.text("recorded")?,
        presence: row.parsed("presence")?,
        verdict: row.parsed("verdict")?,
        changed_at: row.time("changed_at")?,
        uploading: row.int("uploading")? != 0,
    })
}

#[cfg(test)]
mod tests;
