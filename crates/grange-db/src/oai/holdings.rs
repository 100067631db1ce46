//! What Grange itself serves over OAI-PMH: everything it holds, dated by when it changed here.

use grange_model::oai::{Format, OaiRecord, RepositoryId, Set};
use jiff::Timestamp;

use super::records::{record, record_columns, with_sets};
use crate::dialect::Sql;
use crate::error::{Error, Fail};
use crate::harvest::handle;
use crate::row::{Columns, micros};

handle! {
    /// The records as an aggregator serves them.
    OaiHoldings, oai_holdings
}

/// Which records to serve.
#[derive(Clone, Debug)]
pub struct ServeFilter {
    pub prefix: String,
    /// Of this repository only.
    pub repository: Option<RepositoryId>,
    /// In this set of that repository, or below it.
    pub set: Option<String>,
    pub from: Timestamp,
    /// Before this time, exclusive.
    pub before: Timestamp,
    /// After this record, in order of (changed, number): the next page.
    pub after: Option<(Timestamp, i64)>,
    pub limit: u32,
}

/// A record with the folder rules needed to find its file.
pub type Served = OaiRecord;

impl OaiHoldings<'_> {
    pub async fn page(&self, filter: ServeFilter) -> Result<Vec<Served>, Error> {
        self.0
            .read("read the holdings", filter, |tx, filter| {
                Box::pin(async move {
                    let (after, number) = filter.after.map_or((i64::MIN, 0), |(at, id)| (micros(at), id));
                    let query = tx
                        .sql(&PAGE)
                        .bind(filter.prefix.clone())
                        .bind(micros(filter.from).max(after))
                        .bind(micros(filter.before))
                        .bind(after)
                        .bind(number)
                        .bind(filter.repository.map(|id| id.0))
                        .bind(filter.set.clone().unwrap_or_default())
                        .bind(i64::from(filter.limit));
                    let records =
                        tx.rows(query).await?.iter().map(record).collect::<Result<Vec<_>, Fail>>()?;
                    with_sets(tx, records).await
                })
            })
            .await
    }

    /// One record, in every format there is of it.
    pub async fn record(&self, repository: RepositoryId, identifier: &str) -> Result<Vec<Served>, Error> {
        self.0
            .read("read the record", (repository, identifier.to_owned()), |tx, (repository, identifier)| {
                Box::pin(async move {
                    let query = tx.sql(&ONE).bind(repository.0).bind(identifier.as_str());
                    let records =
                        tx.rows(query).await?.iter().map(record).collect::<Result<Vec<_>, Fail>>()?;
                    with_sets(tx, records).await
                })
            })
            .await
    }

    /// When the oldest record changed; absent if there is none.
    pub async fn earliest(&self) -> Result<Option<Timestamp>, Error> {
        self.0
            .read("look for the oldest record", (), |tx, ()| {
                Box::pin(async move {
                    let query = tx.sql(&EARLIEST);
                    tx.row(query).await?.map_or(Ok(None), |row| row.time_or_none("earliest"))
                })
            })
            .await
    }

    /// The formats that records are held in.
    pub async fn formats(&self) -> Result<Vec<Format>, Error> {
        self.0
            .read("list the formats", (), |tx, ()| {
                Box::pin(async move {
                    let query = tx.sql(&FORMATS);
                    let rows = tx.rows(query).await?;
                    rows.iter()
                        .map(|row| {
                            let (prefix, schema) = (row.text("prefix")?, row.text("schema")?);
                            Ok(Format { prefix, schema, namespace: row.text("namespace")? })
                        })
                        .collect()
                })
            })
            .await
    }

    /// Every set of every repository, as (repository, set).
    pub async fn sets(&self) -> Result<Vec<(RepositoryId, Set)>, Error> {
        self.0
            .read("list the sets", (), |tx, ()| {
                Box::pin(async move {
                    let query = tx.sql(&SETS);
                    let rows = tx.rows(query).await?;
                    rows.iter()
                        .map(|row| {
                            let set = Set { spec: row.text("spec")?, name: row.text("name")? };
                            Ok((RepositoryId(row.int("repository_id")?), set))
                        })
                        .collect()
                })
            })
            .await
    }
}

static PAGE: Sql = Sql::new(concat!(
    "SELECT ",
    record_columns!(),
    " FROM oai_records r WHERE prefix = $1 AND changed_at >= $2 AND changed_at < $3
         AND (changed_at > $4 OR (changed_at = $4 AND id > $5)) AND ($6 IS NULL OR repository_id = $6)
         AND ($7 = '' OR EXISTS (SELECT 1 FROM oai_record_sets s WHERE s.record_id = r.id
                                 AND (s.spec = $7 OR substr(s.spec, 1, length($7) + 1) = $7 || ':')))
     ORDER BY changed_at, id LIMIT $8"
));
static ONE: Sql = Sql::new(concat!(
    "SELECT ",
    record_columns!(),
    " FROM oai_records WHERE repository_id = $1 AND identifier = $2 ORDER BY prefix"
));
static EARLIEST: Sql = Sql::new("SELECT min(changed_at) AS earliest FROM oai_records");
static FORMATS: Sql = Sql::new(
    "SELECT f.prefix, min(f.schema) AS schema, min(f.namespace) AS namespace FROM oai_formats f
     WHERE EXISTS (SELECT 1 FROM oai_records r WHERE r.prefix = f.prefix) GROUP BY f.prefix ORDER BY f.prefix",
);
static SETS: Sql = Sql::new("SELECT repository_id, spec, name FROM oai_sets ORDER BY repository_id, spec");
