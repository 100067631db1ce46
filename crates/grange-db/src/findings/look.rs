//! Reading from the rows what is wrong now. Every statement is bounded, and cheap while little is wrong.

use std::collections::BTreeMap;

use grange_model::finding::changes;
use grange_model::{
    Condition, FindingChanges, FindingKind, Observation, OpenFinding, Presence, UploadState, Verdict,
};
use sqlx::any::AnyRow;

use super::open_finding;
use crate::act::Tx;
use crate::dialect::Sql;
use crate::error::Fail;
use crate::row::Columns;

/// Rows of one kind that are named; more are only counted, by the column `total`.
const ROWS_MAX: i64 = 1000;

/// Bytes of a reason that a finding repeats; the row it comes from has all of it.
const DETAIL_BYTES_MAX: usize = 500;

/// What a look at the rows found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// How many states of each kind there are now.
    pub counts: BTreeMap<FindingKind, u64>,
    pub changes: FindingChanges,
}

static OPEN: Sql = Sql::new(
    "SELECT id, kind, grouped_by, subject, states FROM findings WHERE closed_at IS NULL ORDER BY id",
);
// PostgreSQL sums to numeric, which the driver would not read.
static TOTALS: Sql = Sql::new(
    "SELECT r.id, r.name, t.state, t.presence, t.verdict, CAST(sum(t.files) AS BIGINT) AS files
     FROM replicas r LEFT JOIN replica_totals t ON t.replica_id = r.id
     GROUP BY r.id, r.name, t.state, t.presence, t.verdict",
);
macro_rules! copies {
    ($condition:literal) => {
        Sql::new(concat!(
            "SELECT f.id AS file_id, f.name, h.state, h.last_error
             FROM replica_files h JOIN files f ON f.id = h.file_id WHERE h.replica_id = $1 AND ",
            $condition,
            " ORDER BY h.file_id LIMIT $2"
        ))
    };
}
static CORRUPT: Sql = copies!("h.verdict = 'corrupt'");
static MISSING: Sql = copies!("h.presence = 'missing'");
static UNDECIDED: Sql =
    copies!("h.presence = 'ok' AND h.verdict = 'unknown' AND h.state <> 'upload_completed'");
static LOST: Sql = Sql::new(
    "SELECT name || ' (' || id || ')' AS subject, 'on ' || host AS detail, count(*) OVER () AS total FROM nodes
     WHERE stopped_at IS NULL AND seen_at < {now} - $2 ORDER BY id",
);
// A person who stopped a job knows that it failed.
static JOBS: Sql = Sql::new(
    "SELECT 'job ' || id AS subject, COALESCE(harvest_errors, upload_errors, '') AS detail,
         count(*) OVER () AS total
     FROM jobs
     WHERE status = 'failed' AND stop_wanted = 0 ORDER BY id DESC LIMIT $1",
);
static METADATA: Sql = Sql::new(
    // Cut, since repositories name themselves and a subject is a key.
    "SELECT substr(r.name, 1, 200) || ' (' || r.base_url || '), ' || h.prefix
         || CASE h.set_spec WHEN '' THEN '' ELSE ', set ' END || substr(h.set_spec, 1, 200) AS subject, COALESCE(h.reason, '') AS detail,
         count(*) OVER () AS total
     FROM oai_history h JOIN oai_repositories r ON r.id = h.repository_id
     WHERE h.outcome IN ('failed', 'incomplete') AND NOT EXISTS
         (SELECT 1 FROM oai_history n WHERE n.repository_id = h.repository_id AND n.id > h.id
             AND n.prefix = h.prefix AND n.set_spec = h.set_spec AND n.outcome <> 'warning')
     ORDER BY h.id DESC LIMIT $1",
);
static INDEXING: Sql = Sql::new(
    // Cut, since a name may be a whole path and a subject is a key; two that begin alike stay two by their numbers.
    "SELECT CASE WHEN length(name) > 400 THEN substr(name, 1, 400) || '… (' || id || ')' ELSE name END
         || ' in ' || collection AS subject, told AS detail, count(*) OVER () AS total FROM collection_files
     WHERE state = 'failed' ORDER BY id DESC LIMIT $1",
);
// Both conditions: the first is the index's, word for word.
static REPAIRS: Sql = Sql::new(
    "SELECT f.name || ' on ' || r.name || ' (' || p.id || ')' AS subject,
         p.kind || ', asked for by ' || p.asked_by AS detail, count(*) OVER () AS total
     FROM repairs p JOIN files f ON f.id = p.file_id JOIN replicas r ON r.id = p.replica_id
     WHERE p.state IN ('waiting', 'confirmed') AND p.state = 'waiting' ORDER BY p.id DESC LIMIT $1",
);
// Over when an audit of the replica has ended well since, whenever it began: one of the same kind, or of checksums, which
// reads the list and every byte.
static AUDITS: Sql = Sql::new(
    "SELECT a.kind || ' audit of ' || r.name AS subject, COALESCE(max(a.last_error), '') AS detail,
         count(*) OVER () AS total
     FROM audits a JOIN replicas r ON r.id = a.replica_id
     WHERE a.state = 'failed' AND NOT EXISTS
         (SELECT 1 FROM audits n WHERE n.replica_id = a.replica_id AND n.state = 'done' AND n.ended_at >= a.ended_at
             AND (n.kind = a.kind OR n.kind = 'checksum'))
     GROUP BY a.kind, r.name ORDER BY 1 LIMIT $1",
);
// Found by an audit, and by the comparison of names when a node starts. Over when the last of them has a row, and not only
// with the next audit. Counted up to a thousand: every node asks every few seconds.
static STRAYS: Sql = Sql::new(
    "SELECT 'replica ' || name AS subject, CASE strays WHEN 1000 THEN '1000 or more' ELSE '' || strays END || ' files' AS detail,
         count(*) OVER () AS total
     FROM (SELECT r.name, (SELECT count(*) FROM (SELECT 1 FROM stray_files s WHERE s.replica_id = r.id
             AND NOT EXISTS (SELECT 1 FROM files f WHERE f.name = s.name) LIMIT 1000) few) AS strays FROM replicas r) counted
     WHERE strays > 0 ORDER BY 1 LIMIT $1",
);
// Over when another finding is about the copy, it was read and judged since, or its deposit was withdrawn.
static UNSERVABLE: Sql = Sql::new(
    "SELECT g.subject, '' AS detail, g.grouped_by FROM findings g
     LEFT JOIN replica_files h ON h.file_id = g.file_id AND h.replica_id = g.replica_id
     LEFT JOIN replicas r ON r.id = g.replica_id
     WHERE g.kind = 'unservable-copy' AND g.closed_at IS NULL AND NOT (
         (g.file_id IS NOT NULL AND h.file_id IS NULL)
         OR (h.file_id IS NOT NULL AND (h.presence = 'missing' OR h.verdict = 'corrupt'))
         OR (h.file_id IS NOT NULL AND COALESCE(h.checked_at, 0) > g.opened_at)
         OR (g.file_id IS NULL AND COALESCE(r.checked_at, 0) > g.opened_at))",
);
static AWAY: Sql = Sql::new(
    "SELECT 'replica ' || name AS subject, away AS detail, count(*) OVER () AS total FROM replicas WHERE away IS NOT NULL LIMIT $1",
);
static HARVESTS: Sql = Sql::new(
    "SELECT 'harvest ' || name AS subject, deactivated AS detail, count(*) OVER () AS total FROM harvest_definitions
     WHERE active = 0 AND deactivated IS NOT NULL ORDER BY id DESC LIMIT $1",
);
static RETURNED: Sql = Sql::new(
    "SELECT 'access rule ' || r.id AS subject, 'removed by ' || d.removed_by || ', and in force again' AS detail,
         count(*) OVER () AS total
     FROM access_rules_removed d JOIN access_rules r ON r.key = d.key ORDER BY r.id DESC LIMIT $1",
);
static OBSERVED: Sql = Sql::new(
    "SELECT subject, '' AS detail, count(*) OVER () AS total FROM findings WHERE kind = $1 AND closed_at IS NULL",
);

pub(super) async fn look(tx: &mut Tx<'_>, lost_after: i64) -> Result<Look, Fail> {
    let open = open_findings(tx).await?;
    let mut seen = copies(tx).await?;
    let has = |kind: FindingKind| open.iter().any(|one| one.kind == kind);
    for (kind, sql) in [
        (FindingKind::FailedJob, &JOBS),
        (FindingKind::FailedMetadataHarvest, &METADATA),
        (FindingKind::FailedIndexing, &INDEXING),
        (FindingKind::WaitingRepair, &REPAIRS),
        (FindingKind::FailedAudit, &AUDITS),
        (FindingKind::StrayFiles, &STRAYS),
        (FindingKind::ReplicaAway, &AWAY),
        (FindingKind::DeactivatedHarvest, &HARVESTS),
        (FindingKind::ReturnedAccessRule, &RETURNED),
    ] {
        let query = tx.sql(sql).bind(ROWS_MAX);
        let rows = tx.rows(query).await?;
        seen.push(observed(kind, &rows, true)?);
    }
    let query = tx.timed(&LOST).bind(lost_after);
    let rows = tx.rows(query).await?;
    seen.push(observed(FindingKind::LostNode, &rows, true)?);
    // Opened elsewhere; here they only end.
    for kind in [FindingKind::FailedLogVerification, FindingKind::DamagedAccessRule] {
        if has(kind) {
            let query = tx.sql(&OBSERVED).bind(kind.as_str());
            let rows = tx.rows(query).await?;
            seen.push(observed(kind, &rows, false)?);
        }
    }
    if has(FindingKind::UnservableCopy) {
        let query = tx.sql(&UNSERVABLE);
        let rows = tx.rows(query).await?;
        seen.extend(unservable(&open, &rows)?);
    }
    let mut counts: BTreeMap<_, _> = FindingKind::ALL.iter().map(|kind| (*kind, 0)).collect();
    for one in &seen {
        *counts.entry(one.kind).or_default() += one.count;
    }
    Ok(Look { counts, changes: changes(&seen, &open) })
}

pub(super) async fn of_copies(tx: &mut Tx<'_>) -> Result<FindingChanges, Fail> {
    let open = open_findings(tx).await?;
    let seen = copies(tx).await?;
    Ok(changes(&seen, &open))
}

async fn open_findings(tx: &mut Tx<'_>) -> Result<Vec<OpenFinding>, Fail> {
    let query = tx.sql(&OPEN);
    tx.rows(query).await?.iter().map(open_finding).collect()
}

/// Copies that are wrong, and files that wait, replica by replica.
async fn copies(tx: &mut Tx<'_>) -> Result<Vec<Observation>, Fail> {
    let query = tx.sql(&TOTALS);
    let rows = tx.rows(query).await?;
    let mut replicas: BTreeMap<i64, (String, [u64; 5])> = BTreeMap::new();
    for row in &rows {
        let (_, counts) = replicas.entry(row.int("id")?).or_insert((row.text("name")?, [0; 5]));
        let Some(files) = row.int_or_none("files")? else { continue };
        let files = files.max(0) as u64;
        let state: UploadState = row.parsed("state")?;
        let (presence, verdict): (Presence, Verdict) = (row.parsed("presence")?, row.parsed("verdict")?);
        let unproven = state != UploadState::UploadCompleted;
        let refused = matches!(state, UploadState::UploadFailed | UploadState::UploadStarted);
        for (index, counted) in [
            verdict == Verdict::Corrupt,
            presence == Presence::Missing,
            unproven && presence == Presence::Ok && verdict == Verdict::Unknown,
            refused && presence == Presence::Unknown,
            state == UploadState::UploadFailed && presence == Presence::Unknown,
        ]
        .into_iter()
        .enumerate()
        {
            counts[index] += if counted { files } else { 0 };
        }
    }
    let mut seen = Vec::new();
    for (id, (name, [corrupt, missing, undecided, waiting, refused])) in replicas {
        for (kind, count, sql) in [
            (FindingKind::CorruptCopy, corrupt, &CORRUPT),
            (FindingKind::MissingCopy, missing, &MISSING),
            (FindingKind::UndecidedCopy, undecided, &UNDECIDED),
        ] {
            let complete = count <= ROWS_MAX as u64;
            let mut conditions = Vec::new();
            if complete && count > 0 {
                let query = tx.sql(sql).bind(id).bind(ROWS_MAX);
                for row in &tx.rows(query).await? {
                    conditions.push(copy(row, kind, id, &name)?);
                }
            }
            seen.push(Observation { kind, group: name.clone(), count, complete, conditions });
        }
        let condition = Condition {
            subject: format!("replica {name}"),
            detail: format!("{refused} files were not taken"),
            opens: refused > 0,
            ..Condition::default()
        };
        let conditions = if waiting > 0 { vec![condition] } else { Vec::new() };
        let count = waiting.min(1);
        let kind = FindingKind::WaitingCopies;
        seen.push(Observation { kind, group: name, count, complete: true, conditions });
    }
    Ok(seen)
}

fn copy(row: &AnyRow, kind: FindingKind, replica_id: i64, replica: &str) -> Result<Condition, Fail> {
    let state: UploadState = row.parsed("state")?;
    // While somebody is at work on a copy its row passes through states that last for moments.
    let opens = kind == FindingKind::CorruptCopy || state == UploadState::UploadFailed;
    Ok(Condition {
        subject: format!("{} on {replica}", row.text("name")?),
        detail: shortened(row.text_or_none("last_error")?.unwrap_or_default()),
        opens,
        file_id: Some(row.int("file_id")?),
        replica_id: Some(replica_id),
        states: 1,
    })
}

fn observed(kind: FindingKind, rows: &[AnyRow], opens: bool) -> Result<Observation, Fail> {
    let condition = |row: &AnyRow| {
        let detail = shortened(row.text_or_none("detail")?.unwrap_or_default());
        Ok::<_, Fail>(Condition { subject: row.text("subject")?, detail, opens, ..Condition::default() })
    };
    let conditions = rows.iter().map(condition).collect::<Result<Vec<_>, _>>()?;
    let count = rows.first().map_or(Ok(0), |row| row.int("total"))?.max(0) as u64;
    let complete = count == conditions.len() as u64;
    Ok(Observation { kind, group: String::new(), count, complete, conditions })
}

/// By replica, as they were opened; a replica without any left is among them, so that its last ones close.
fn unservable(open: &[OpenFinding], rows: &[AnyRow]) -> Result<Vec<Observation>, Fail> {
    let kind = FindingKind::UnservableCopy;
    let mut groups: BTreeMap<String, Vec<Condition>> = BTreeMap::new();
    for one in open.iter().filter(|one| one.kind == kind) {
        groups.entry(one.group.clone()).or_default();
    }
    for row in rows {
        let condition = Condition { subject: row.text("subject")?, ..Condition::default() };
        groups.entry(row.text("grouped_by")?).or_default().push(condition);
    }
    let observation = |(group, conditions): (String, Vec<Condition>)| Observation {
        kind,
        group,
        count: conditions.len() as u64,
        complete: true,
        conditions,
    };
    Ok(groups.into_iter().map(observation).collect())
}

fn shortened(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(DETAIL_BYTES_MAX));
    text
}
