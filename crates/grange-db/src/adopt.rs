//! Taking over files that lie on the replicas already: many rows in one act.

use std::collections::{HashMap, HashSet};

use grange_model::{Checksums, FileName, LogRecord, Presence};
use serde_json::{Value, json};

use crate::act::Tx;
use crate::bulk::Bulk;
use crate::dialect::Sql;
use crate::error::{Error, Fail};
use crate::files::{Files, deciding};
use crate::frame_lock;
use crate::logbook;
use crate::numbers;
use crate::row::{Columns, micros};

/// A file as it was found on the replicas.
#[derive(Clone, Debug)]
pub struct Adopted {
    pub name: FileName,
    pub size: u64,
    /// What most copies say.
    pub checksums: Checksums,
    /// The replicas that hold it, and what each answered, as `algorithm=hex`.
    pub held: Vec<(i64, String)>,
    /// The replicas that could not be asked: whether they hold it is not known.
    pub away: Vec<i64>,
}

impl Files<'_> {
    /// Enters files that are not known yet, with the copies found; replicas that do not hold one have it as
    /// missing.
    /// Gives how many were new; known names are left as they are. Copies are judged by the vote, later.
    pub async fn adopt(&self, files: Vec<Adopted>, records: Vec<LogRecord>) -> Result<u64, Error> {
        self.0
            .write("take over files", (files, records), |tx, (files, records)| {
                Box::pin(adopt(tx, files, records))
            })
            .await
    }

    /// The checksum that decides for each of these names, where it is known here.
    pub async fn recorded(&self, names: Vec<FileName>) -> Result<HashMap<String, String>, Error> {
        self.0
            .read("look up checksums", names, |tx, names| {
                Box::pin(async move {
                    let list: Vec<&str> = names.iter().map(FileName::as_str).collect();
                    let query = RECORDED.on(tx).bind(json!(list).to_string());
                    let pair = |row: &sqlx::any::AnyRow| Ok((row.text("name")?, row.text("checksum")?));
                    tx.rows(query).await?.iter().map(pair).collect()
                })
            })
            .await
    }

    /// Those of the names that a deposit has which was never acknowledged.
    pub async fn unacknowledged(&self, names: Vec<FileName>) -> Result<HashSet<FileName>, Error> {
        self.0
            .read("look up deposits", names, |tx, names| {
                Box::pin(async move {
                    let list: Vec<&str> = names.iter().map(FileName::as_str).collect();
                    let query = UNACKNOWLEDGED.on(tx).bind(json!(list).to_string());
                    let rows = tx.rows(query).await?;
                    let found = rows.iter().map(|row| row.text("name"));
                    let found: HashSet<String> = found.collect::<Result<_, _>>()?;
                    Ok(names.iter().filter(|name| found.contains(name.as_str())).cloned().collect())
                })
            })
            .await
    }
}

static UNACKNOWLEDGED: Bulk = Bulk {
    sqlite: Sql::new(
        "SELECT name FROM files WHERE stored_at IS NULL AND name IN (SELECT value FROM json_each($1))",
    ),
    postgres: Sql::new(
        "SELECT name FROM files WHERE stored_at IS NULL AND name IN (SELECT jsonb_array_elements_text($1::jsonb))",
    ),
};
static RECORDED: Bulk = Bulk {
    sqlite: Sql::new("SELECT name, checksum FROM files WHERE name IN (SELECT value FROM json_each($1))"),
    postgres: Sql::new(
        "SELECT name, checksum FROM files WHERE name IN (SELECT jsonb_array_elements_text($1::jsonb))",
    ),
};
static FILES: Bulk = Bulk {
    sqlite: Sql::new(
        "INSERT INTO files (name, size, checksum, checksums, created_at, stored_at)
         SELECT value ->> 'n', value ->> 's', value ->> 'c', value ->> 'a', $1, $1 FROM json_each($2) WHERE true
         ON CONFLICT (name) DO NOTHING RETURNING id, name",
    ),
    postgres: Sql::new(
        "INSERT INTO files (name, size, checksum, checksums, created_at, stored_at)
         SELECT value ->> 'n', (value ->> 's')::bigint, value ->> 'c', value ->> 'a', $1, $1
         FROM jsonb_array_elements($2::jsonb)
         ON CONFLICT (name) DO NOTHING RETURNING id, name",
    ),
};
static HELD: Bulk = Bulk {
    sqlite: Sql::new(
        "INSERT INTO replica_files (file_id, replica_id, size, state, presence, verdict, checksum, listed_at,
             checked_at, changed_at)
         SELECT value ->> 'f', value ->> 'r', value ->> 's',
             CASE WHEN value ->> 'o' = 1 THEN 'upload_completed' ELSE 'upload_failed' END,
             value ->> 'p',
             CASE WHEN value ->> 'o' = 1 THEN 'ok' ELSE 'unknown' END,
             value ->> 'c', $1, $1, $1
         FROM json_each($2)",
    ),
    postgres: Sql::new(
        "INSERT INTO replica_files (file_id, replica_id, size, state, presence, verdict, checksum, listed_at,
             checked_at, changed_at)
         SELECT (value ->> 'f')::bigint, (value ->> 'r')::bigint, (value ->> 's')::bigint,
             CASE WHEN value ->> 'o' = '1' THEN 'upload_completed' ELSE 'upload_failed' END,
             value ->> 'p',
             CASE WHEN value ->> 'o' = '1' THEN 'ok' ELSE 'unknown' END,
             value ->> 'c', $1, $1, $1
         FROM jsonb_array_elements($2::jsonb)",
    ),
};
static NO_STRAYS: Bulk = Bulk {
    sqlite: Sql::new("DELETE FROM stray_files WHERE name IN (SELECT value FROM json_each($1))"),
    postgres: Sql::new("DELETE FROM stray_files WHERE name IN (SELECT jsonb_array_elements_text($1::jsonb))"),
};
static REPLICAS: Sql = Sql::new("SELECT id FROM replicas ORDER BY id");

async fn adopt(tx: &mut Tx<'_>, files: &[Adopted], records: &[LogRecord]) -> Result<u64, Fail> {
    frame_lock::share(tx).await?;
    let query = tx.sql(&REPLICAS);
    let replicas = tx.rows(query).await?.iter().map(|row| row.int("id")).collect::<Result<Vec<_>, Fail>>()?;
    let row = |file: &Adopted| {
        let all = serde_json::to_string(&file.checksums).unwrap_or_default();
        json!({ "n": file.name, "s": file.size, "c": deciding(&file.checksums), "a": all })
    };
    let list: Value = files.iter().map(row).collect::<Vec<_>>().into();
    let query = FILES.on(tx).bind(micros(tx.now)).bind(list.to_string());
    let mut ids = HashMap::with_capacity(files.len());
    for row in tx.rows(query).await? {
        ids.insert(row.text("name")?, row.int("id")?);
    }
    numbers::raise_above(tx, files.iter().map(|file| &file.name)).await?;
    let mut held = Vec::with_capacity(files.len() * replicas.len());
    for file in files {
        let Some(id) = ids.get(file.name.as_str()) else { continue };
        let decides = deciding(&file.checksums);
        // Only where every copy agrees is it known now; the rest is for the vote.
        let agreed = file.held.iter().all(|(_, checksum)| *checksum == decides);
        for replica in &replicas {
            let checksum = file.held.iter().find(|(one, _)| one == replica).map(|(_, checksum)| checksum);
            let ok = i32::from(agreed && checksum.is_some());
            let presence = match checksum {
                Some(_) => Presence::Ok,
                None if file.away.contains(replica) => Presence::Unknown,
                None => Presence::Missing,
            };
            held.push(json!({
                "f": id, "r": replica, "s": file.size, "c": checksum, "o": ok, "p": presence.as_str()
            }));
        }
    }
    let names: Vec<&String> = ids.keys().collect();
    let query = NO_STRAYS.on(tx).bind(json!(names).to_string());
    tx.run(query).await?;
    let query = HELD.on(tx).bind(micros(tx.now)).bind(Value::from(held).to_string());
    tx.run(query).await?;
    let new: Vec<LogRecord> = records
        .iter()
        .filter(|record| record.name.as_ref().is_none_or(|name| ids.contains_key(name)))
        .cloned()
        .collect();
    logbook::append(tx, &new).await?;
    Ok(ids.len() as u64)
}
