//! One page of a list: its records, the folders they lie in, the next position, all in one transaction.

use grange_model::oai::{OaiPage, Outcome};

use super::OaiJobs;
use super::dispatch::{OaiClaim, held, lost};
use crate::act::Tx;
use crate::bulk::{Bulk, ids, of_ids};
use crate::dialect::Sql;
use crate::error::{Error, Fail};
use crate::harvest::json;
use crate::row::{Columns, micros};

impl OaiJobs<'_> {
    /// Keeps a page. Refused, whole, to a harvester that lost its lease.
    pub async fn commit(&self, claim: &OaiClaim, page: OaiPage) -> Result<(), Error> {
        self.0
            .write("keep the page", (claim.clone(), page), |tx, (claim, page)| {
                Box::pin(commit(tx, claim, page))
            })
            .await
    }
}

static PROGRESS: Sql = Sql::new(
    "UPDATE oai_jobs SET pages = $4, expected = $5, counts = $6
     WHERE id = $2 AND lease_token = $3 AND status <> 'scheduled' AND {now} IS NOT NULL
     RETURNING repository_id, recurring_id, prefix, set_spec, started_at",
);
static UPSERT: Bulk = Bulk {
    sqlite: Sql::new(
        "INSERT INTO oai_records
             (repository_id, prefix, identifier, filename, datestamp, deleted, digest, changed_at, updated, list)
         SELECT $2, $3, value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, $4, 1, $5
         FROM json_each($1) WHERE true
         ON CONFLICT (repository_id, prefix, identifier) DO UPDATE SET
             filename = excluded.filename, datestamp = excluded.datestamp, deleted = excluded.deleted,
             digest = excluded.digest, changed_at = excluded.changed_at, updated = 1, list = excluded.list",
    ),
    postgres: Sql::new(
        "INSERT INTO oai_records
             (repository_id, prefix, identifier, filename, datestamp, deleted, digest, changed_at, updated, list)
         SELECT $2, $3, value ->> 0, value ->> 1, (value ->> 2)::bigint, (value ->> 3)::bigint, value ->> 4, $4, 1, $5
         FROM jsonb_array_elements($1::jsonb)
         ON CONFLICT (repository_id, prefix, substr(identifier, 1, 200), oai_text_digest(identifier)) DO UPDATE SET
             filename = excluded.filename, datestamp = excluded.datestamp, deleted = excluded.deleted,
             digest = excluded.digest, changed_at = excluded.changed_at, updated = 1, list = excluded.list",
    ),
};
// Only of records that had some: most pages bring new ones.
static FORGET_SETS: Bulk = Bulk {
    sqlite: Sql::new(
        "DELETE FROM oai_record_sets WHERE record_id IN (
             SELECT id FROM oai_records WHERE repository_id = $2 AND prefix = $3
                 AND identifier IN (SELECT value FROM json_each($1)))",
    ),
    postgres: Sql::new(
        "DELETE FROM oai_record_sets WHERE record_id IN (
             SELECT id FROM oai_records WHERE repository_id = $2 AND prefix = $3
                 AND (substr(identifier, 1, 200), oai_text_digest(identifier)) IN (
                     SELECT substr(value, 1, 200), oai_text_digest(value)
                     FROM jsonb_array_elements_text($1::jsonb) AS v (value)))",
    ),
};
// The database finds the numbers of the records it has just kept; sending them out and in again costs more than all else.
// CROSS JOIN keeps SQLite from beginning with all records there are.
static ADD_SETS: Bulk = Bulk {
    sqlite: Sql::new(
        "INSERT INTO oai_record_sets (record_id, spec)
         SELECT r.id, s.value FROM json_each($1) AS j
         CROSS JOIN oai_records AS r
             ON r.repository_id = $2 AND r.prefix = $3 AND r.identifier = j.value ->> 0
         CROSS JOIN json_each(j.value, '$[5]') AS s WHERE true
         ON CONFLICT DO NOTHING",
    ),
    postgres: Sql::new(
        "INSERT INTO oai_record_sets (record_id, spec)
         SELECT r.id, s.value FROM jsonb_array_elements($1::jsonb) AS j (value)
         JOIN oai_records AS r ON r.repository_id = $2 AND r.prefix = $3
             AND substr(r.identifier, 1, 200) = substr(j.value ->> 0, 1, 200)
             AND oai_text_digest(r.identifier) = oai_text_digest(j.value ->> 0)
         CROSS JOIN LATERAL jsonb_array_elements_text(j.value -> 5) AS s (value)
         ON CONFLICT DO NOTHING",
    ),
};
static SEEN: Bulk = of_ids!("UPDATE oai_records SET list = $2 WHERE id IN (", "$1", ")");
static FOLDERS: Bulk = Bulk {
    sqlite: Sql::new(
        "INSERT INTO oai_folders (repository_id, path, files)
         SELECT $2, value ->> 0, value ->> 1 FROM json_each($1) WHERE true
         ON CONFLICT (repository_id, path) DO UPDATE SET files = excluded.files",
    ),
    postgres: Sql::new(
        "INSERT INTO oai_folders (repository_id, path, files)
         SELECT $2, value ->> 0, (value ->> 1)::bigint FROM jsonb_array_elements($1::jsonb)
         ON CONFLICT (repository_id, path) DO UPDATE SET files = excluded.files",
    ),
};
static POSITION: Bulk = Bulk {
    sqlite: Sql::new(
        "INSERT INTO oai_progress (repository_id, prefix, set_spec, position) VALUES ($1, $2, $3, $4)
         ON CONFLICT (repository_id, prefix, set_spec) DO UPDATE SET position = excluded.position",
    ),
    postgres: Sql::new(
        "INSERT INTO oai_progress (repository_id, prefix, set_spec, position) VALUES ($1, $2, $3, $4)
         ON CONFLICT (repository_id, text_digest(prefix), text_digest(set_spec)) DO UPDATE SET
             position = excluded.position",
    ),
};
static WARN: Bulk = Bulk {
    sqlite: Sql::new(
        "INSERT INTO oai_history
             (repository_id, job_id, recurring_id, prefix, set_spec, outcome, reason, started_at, ended_at, counts, pages)
         SELECT $2, $3, $4, $5, $6, $7, value, $8, $8, '{}', $9 FROM json_each($1)",
    ),
    postgres: Sql::new(
        "INSERT INTO oai_history
             (repository_id, job_id, recurring_id, prefix, set_spec, outcome, reason, started_at, ended_at, counts, pages)
         SELECT $2, $3, $4, $5, $6, $7, value, $8, $8, '{}', $9 FROM jsonb_array_elements_text($1::jsonb)",
    ),
};

async fn commit(tx: &mut Tx<'_>, claim: &OaiClaim, page: &OaiPage) -> Result<(), Fail> {
    let query = held(tx, &PROGRESS, claim)
        .bind(page.pages as i64)
        .bind(page.expected.map(|expected| expected as i64))
        .bind(json(&page.counts));
    let job = tx.row(query).await?.ok_or_else(|| lost(claim))?;
    let (repository, prefix, set) = (job.int("repository_id")?, job.text("prefix")?, job.text("set_spec")?);
    let now = micros(tx.now);
    if !page.records.is_empty() {
        let rows: Vec<_> = page
            .records
            .iter()
            .map(|one| {
                let (identifier, filename, digest) = (&one.identifier, &one.filename, &one.digest);
                (identifier, filename, micros(one.datestamp), i64::from(one.deleted), digest, &one.sets)
            })
            .collect();
        let rows = json(&rows);
        let query =
            UPSERT.on(tx).bind(rows.clone()).bind(repository).bind(prefix.clone()).bind(now).bind(page.list);
        tx.run(query).await?;
        let known: Vec<_> =
            page.records.iter().filter(|one| !one.fresh).map(|one| one.identifier.as_str()).collect();
        if !known.is_empty() {
            let query = FORGET_SETS.on(tx).bind(json(&known)).bind(repository).bind(prefix.clone());
            tx.run(query).await?;
        }
        if page.records.iter().any(|one| !one.sets.is_empty()) {
            let query = ADD_SETS.on(tx).bind(rows).bind(repository).bind(prefix.clone());
            tx.run(query).await?;
        }
    }
    if !page.same.is_empty() {
        let query = SEEN.on(tx).bind(ids(&page.same)).bind(page.list);
        tx.run(query).await?;
    }
    if !page.folders.is_empty() {
        let query = FOLDERS.on(tx).bind(json(&page.folders)).bind(repository);
        tx.run(query).await?;
    }
    let query =
        POSITION.on(tx).bind(repository).bind(prefix.clone()).bind(set.clone()).bind(page.position.as_str());
    tx.run(query).await?;
    if !page.warnings.is_empty() {
        // The texts come from the web, and PostgreSQL keeps no NUL.
        let texts: Vec<_> = page.warnings.iter().map(|text| text.replace('\0', "\u{fffd}")).collect();
        let query = WARN
            .on(tx)
            .bind(json(&texts))
            .bind(repository)
            .bind(claim.job.0)
            .bind(job.int_or_none("recurring_id")?)
            .bind(prefix)
            .bind(set)
            .bind(Outcome::Warning.as_str())
            .bind(now)
            .bind(page.pages as i64);
        tx.run(query).await?;
    }
    Ok(())
}
