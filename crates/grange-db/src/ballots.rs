//! The vote in SQL: finds the files whose copies do not all agree, lets the pure function decide, keeps the verdicts.
//!
//! Where all agree, one statement settles thousands of files; only disputed ones are read.

use std::collections::{BTreeMap, HashMap};

use grange_model::{Ballot, Decision, LogEvent, LogRecord, Presence, Verdict, vote};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::act::Tx;
use crate::audits::Audits;
use crate::bulk::{self, Bulk, of_ids};
use crate::dialect::Sql;
use crate::error::{Error, Fail};
use crate::frame_lock;
use crate::logbook;
use crate::row::{Columns, micros};

/// Files that one act decides: a second's work or less, so that nobody waits long for the writer.
const FILES_PER_ACT: i64 = 20_000;

/// How the last error of an undecided copy begins: what it was judged by is in the log already.
pub(crate) const UNDECIDED: &str = "undecided:";

/// What the vote over all files found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Votes {
    /// Files looked at.
    pub files: u64,
    /// Files with corrupt copies.
    pub decided: u64,
    /// Files whose copies contradict the record with as many voices or more: people must decide.
    pub undecided: u64,
    /// Files that no replica holds.
    pub nowhere: u64,
    /// Copies found corrupt.
    pub corrupt: u64,
}

impl Audits<'_> {
    /// Votes on every file, some thousands per act, so that others can write in between.
    pub async fn vote_all(&self) -> Result<Votes, Error> {
        let (mut votes, mut after) = (Votes::default(), 0_i64);
        loop {
            let part = self.0.write("vote on the files", after, |tx, after| Box::pin(vote_range(tx, *after)));
            let Some((last, found)) = part.await? else { return Ok(votes) };
            votes.files += found.files;
            votes.decided += found.decided;
            votes.undecided += found.undecided;
            votes.nowhere += found.nowhere;
            votes.corrupt += found.corrupt;
            after = last;
        }
    }
}

impl Audits<'_> {
    /// Keeps what the replicas answered about one file (nothing: they have none) since `asked_at`, and votes on it. A copy that
    /// changed after that is not judged by the older answer.
    pub async fn observe(
        &self,
        file: i64,
        asked_at: Timestamp,
        answers: Vec<(i64, Option<String>)>,
        by: &str,
    ) -> Result<Votes, Error> {
        let input = (file, asked_at, answers, by.to_owned());
        self.0
            .write("keep the answers", input, |tx, (file, asked_at, answers, by)| {
                Box::pin(async move {
                    frame_lock::share(tx).await?;
                    for (replica, answer) in answers {
                        let presence = if answer.is_some() { Presence::Ok } else { Presence::Missing };
                        let query = tx
                            .sql(&OBSERVED)
                            .bind(*file)
                            .bind(*replica)
                            .bind(presence.as_str())
                            .bind(answer.clone())
                            .bind(micros(tx.now))
                            .bind(micros(*asked_at));
                        tx.run(query).await?;
                    }
                    let judged = judge(tx, &[*file], by).await?;
                    logbook::append(tx, &judged.records).await?;
                    Ok(Votes { files: 1, ..judged.votes })
                })
            })
            .await
    }
}

static OBSERVED: Sql = Sql::new(
    "UPDATE replica_files SET presence = $3, checksum = $4, listed_at = $5, checked_at = $5, changed_at = $5,
         state = CASE WHEN $3 = 'missing' THEN 'upload_failed' ELSE state END,
         verdict = CASE WHEN $3 = 'missing' THEN 'unknown' ELSE verdict END, edition = edition + 1
     WHERE file_id = $1 AND replica_id = $2 AND changed_at <= $6",
);
static RANGE: Sql = Sql::new(
    "SELECT max(id) AS last, count(*) AS count FROM
         (SELECT id FROM files WHERE id > $1 ORDER BY id LIMIT $2) AS stretch",
);
// The stretch is materialized by its bounds, so both engines walk the two keys side by side.
static DISPUTED: Sql = Sql::new(
    "SELECT DISTINCT h.file_id AS id FROM replica_files h JOIN files f ON f.id = h.file_id
     WHERE h.file_id > $1 AND h.file_id <= $2 AND h.presence = 'ok'
         AND h.checksum IS NOT NULL AND h.checksum <> f.checksum
     UNION
     SELECT file_id FROM replica_files WHERE file_id > $1 AND file_id <= $2
     GROUP BY file_id HAVING sum(CASE WHEN presence = 'ok' THEN 1 ELSE 0 END) = 0",
);
static AGREED: Bulk = of_ids!(
    "UPDATE replica_files SET verdict = 'ok', state = 'upload_completed', last_error = NULL, changed_at = $3,
         edition = edition + 1
     WHERE file_id > $1 AND file_id <= $2 AND (verdict <> 'ok' OR state <> 'upload_completed')
         AND presence = 'ok' AND checksum = (SELECT f.checksum FROM files f WHERE f.id = file_id)
         AND file_id NOT IN (",
    "$4",
    ")"
);
macro_rules! ballots {
    ($ids:literal, $lock:literal) => {
        concat!(
            "SELECT h.file_id, h.replica_id, r.name AS replica, h.presence, h.verdict, h.checksum, h.last_error, f.name,
                 f.checksum AS recorded, f.size
             FROM replica_files h JOIN files f ON f.id = h.file_id JOIN replicas r ON r.id = h.replica_id
             WHERE h.file_id IN (",
            $ids,
            ") ORDER BY h.file_id, h.replica_id",
            $lock
        )
    };
}
// Held until the verdicts are kept: two acts that keep the answers of two replicas judge one after the other.
static BALLOTS: Bulk = Bulk {
    sqlite: Sql::new(ballots!("SELECT value FROM json_each($1)", "")),
    postgres: Sql::new(ballots!(
        "SELECT value::bigint FROM jsonb_array_elements_text($1::jsonb)",
        " FOR UPDATE OF h"
    )),
};
static OK: Bulk = of_ids!(
    "UPDATE replica_files SET verdict = 'ok', state = 'upload_completed', last_error = NULL, changed_at = $2,
         edition = edition + 1
     WHERE replica_id = $1 AND checksum = (SELECT f.checksum FROM files f WHERE f.id = file_id)
         AND (verdict <> 'ok' OR state <> 'upload_completed') AND file_id IN (",
    "$3",
    ")"
);
// Guarded by the answer itself: another act may have kept a newer one since the vote was taken. Rows that say so already
// stay untouched, so that `changed_at` is when something changed.
static CORRUPT: Bulk = of_ids!(
    "UPDATE replica_files SET verdict = 'corrupt', state = 'upload_failed',
         last_error = 'corrupt: the record and the other copies say another checksum', changed_at = $2,
         edition = edition + 1
     WHERE replica_id = $1 AND checksum <> (SELECT f.checksum FROM files f WHERE f.id = file_id)
         AND (verdict <> 'corrupt' OR state <> 'upload_failed') AND file_id IN (",
    "$3",
    ")"
);
static UNKNOWN: Bulk = of_ids!(
    "UPDATE replica_files SET verdict = 'unknown', state = 'upload_failed',
         last_error = 'undecided: it contradicts the record, and so do as many others as confirm it', changed_at = $2, edition = edition + 1
     WHERE replica_id = $1 AND checksum <> (SELECT f.checksum FROM files f WHERE f.id = file_id)
         AND (verdict <> 'unknown' OR state <> 'upload_failed' OR COALESCE(last_error, '') NOT LIKE 'undecided:%')
         AND file_id IN (",
    "$3",
    ")"
);

async fn vote_range(tx: &mut Tx<'_>, after: i64) -> Result<Option<(i64, Votes)>, Fail> {
    frame_lock::share(tx).await?;
    let query = tx.sql(&RANGE).bind(after).bind(FILES_PER_ACT);
    let Some(row) = tx.row(query).await? else { return Ok(None) };
    let Some(last) = row.int_or_none("last")? else { return Ok(None) };
    let files = row.int("count")? as u64;
    let query = tx.sql(&DISPUTED).bind(after).bind(last);
    let disputed = tx.rows(query).await?.iter().map(|row| row.int("id")).collect::<Result<Vec<_>, Fail>>()?;
    let query = AGREED.on(tx).bind(after).bind(last).bind(micros(tx.now)).bind(bulk::ids(&disputed));
    tx.run(query).await?;
    let judged = judge(tx, &disputed, "grange").await?;
    logbook::append(tx, &judged.records).await?;
    Ok(Some((last, Votes { files, ..judged.votes })))
}

/// What the vote on some files found.
#[derive(Debug, Default)]
pub(crate) struct Judged {
    pub(crate) votes: Votes,
    /// The verdict on every copy that voted, by file and replica.
    pub(crate) verdicts: HashMap<(i64, i64), Verdict>,
    /// Copies that are now called undecided and were called corrupt before, or the other way round.
    pub(crate) turned: Vec<Turn>,
    /// For the log: what was not known before. The caller appends them.
    pub(crate) records: Vec<LogRecord>,
}

/// A copy that is called something else than before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    pub(crate) file: i64,
    pub(crate) replica: i64,
    pub(crate) verdict: Verdict,
}

/// A copy in the vote, with what was thought of it before.
struct Voter {
    ballot: Ballot<i64>,
    replica: String,
    before: Verdict,
    /// The log has a record of this doubt.
    known_undecided: bool,
}

struct Case {
    file: i64,
    name: String,
    recorded: String,
    size: u64,
    voters: Vec<Voter>,
}

/// Votes on these files and keeps the verdicts.
pub(crate) async fn judge(tx: &mut Tx<'_>, files: &[i64], by: &str) -> Result<Judged, Fail> {
    let mut judged = Judged::default();
    if files.is_empty() {
        return Ok(judged);
    }
    let mut changes: BTreeMap<(i64, Verdict), Vec<i64>> = BTreeMap::new();
    for case in cases(tx, files).await? {
        let ballots: Vec<_> = case.voters.iter().map(|voter| voter.ballot.clone()).collect();
        let outcome = vote(&case.recorded, &ballots);
        match outcome.decision {
            Decision::Decided => judged.votes.decided += 1,
            Decision::Undecided => judged.votes.undecided += 1,
            Decision::Nowhere => judged.votes.nowhere += 1,
            Decision::Agreed | Decision::Unasked => {}
        }
        for (replica, verdict) in &outcome.verdicts {
            judged.votes.corrupt += u64::from(*verdict == Verdict::Corrupt);
            judged.verdicts.insert((case.file, *replica), *verdict);
            changes.entry((*replica, *verdict)).or_default().push(case.file);
            let before = case.voters.iter().find(|voter| voter.ballot.replica == *replica);
            if let Some((Verdict::Corrupt, Verdict::Unknown) | (Verdict::Unknown, Verdict::Corrupt)) =
                before.map(|voter| (voter.before, *verdict))
            {
                judged.turned.push(Turn { file: case.file, replica: *replica, verdict: *verdict });
            }
        }
        records(tx, &case, &outcome, by, &mut judged.records);
    }
    for ((replica, verdict), files) in changes {
        let sql = match verdict {
            Verdict::Ok => &OK,
            Verdict::Corrupt => &CORRUPT,
            Verdict::Unknown => &UNKNOWN,
        };
        let query = sql.on(tx).bind(replica).bind(micros(tx.now)).bind(bulk::ids(&files));
        tx.run(query).await?;
    }
    Ok(judged)
}

async fn cases(tx: &mut Tx<'_>, files: &[i64]) -> Result<Vec<Case>, Fail> {
    let query = BALLOTS.on(tx).bind(bulk::ids(files));
    let mut cases: Vec<Case> = Vec::new();
    for row in tx.rows(query).await? {
        let file = row.int("file_id")?;
        if cases.last().is_none_or(|case| case.file != file) {
            cases.push(Case {
                file,
                name: row.text("name")?,
                recorded: row.text("recorded")?,
                size: row.int("size")? as u64,
                voters: Vec::new(),
            });
        }
        let ballot = Ballot {
            replica: row.int("replica_id")?,
            presence: row.parsed("presence")?,
            checksum: row.text_or_none("checksum")?,
        };
        let before = row.parsed("verdict")?;
        let last_error = row.text_or_none("last_error")?.unwrap_or_default();
        let known_undecided = before == Verdict::Unknown && last_error.starts_with(UNDECIDED);
        let voter = Voter { ballot, replica: row.text("replica")?, before, known_undecided };
        if let Some(case) = cases.last_mut() {
            case.voters.push(voter);
        }
    }
    Ok(cases)
}

/// What of the outcome is news.
fn records(
    tx: &Tx<'_>,
    case: &Case,
    outcome: &grange_model::Vote<i64>,
    by: &str,
    records: &mut Vec<LogRecord>,
) {
    let record = |event, replica, detail| LogRecord {
        at: tx.now,
        event,
        name: Some(case.name.clone()),
        checksum: Some(case.recorded.clone()),
        size: Some(case.size),
        replica,
        by: by.to_owned(),
        detail,
    };
    let said = |voter: &Voter| match voter.ballot.presence {
        Presence::Ok => json!(voter.ballot.checksum),
        other => json!(other),
    };
    let ballots = || -> serde_json::Value {
        let one = |voter: &Voter| (voter.replica.clone(), said(voter));
        case.voters.iter().map(one).collect::<serde_json::Map<_, _>>().into()
    };
    let verdict_on =
        |replica| outcome.verdicts.iter().find(|(one, _)| *one == replica).map(|(_, verdict)| *verdict);
    let mut doubt = false;
    for voter in &case.voters {
        match verdict_on(voter.ballot.replica) {
            Some(Verdict::Corrupt) if voter.before != Verdict::Corrupt => {
                let detail = json!({ "found": voter.ballot.checksum, "recorded": case.recorded });
                records.push(record(LogEvent::Corrupt, Some(voter.replica.clone()), detail));
            }
            Some(Verdict::Unknown) if !voter.known_undecided => doubt = true,
            _ => {}
        }
    }
    if doubt {
        records.push(record(LogEvent::Undecided, None, json!({ "ballots": ballots() })));
    }
}
