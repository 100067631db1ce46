//! Numbers that become the names of files never go back: not after an older database was restored, not when the rows
//! were made again, not when an archive with numbers of its own was taken over.
//!
//! The counters of the engine are raised to what names tell: rows of files in the transaction that enters them, files
//! on replicas and folders when somebody lists them.

use grange_model::numbers::{HighestNumbers, metadata_number};
use grange_model::{FileName, harvest::JobId};

use crate::act::Tx;
use crate::dialect::{Dialect, Sql};
use crate::error::{Error, Fail};
use crate::open::Db;
use crate::row::Columns;

/// A table whose ids become part of names.
struct Counter {
    table: &'static str,
    highest: fn(&HighestNumbers) -> i64,
    /// PostgreSQL: where the counter stands, and raising it.
    lock: Sql,
    stands: Sql,
    set: Sql,
}

macro_rules! counter {
    ($table:literal, $highest:expr) => {
        Counter {
            table: $table,
            highest: $highest,
            // Nobody takes a number between the look and the raise.
            lock: Sql::new(concat!("LOCK TABLE ", $table, " IN SHARE ROW EXCLUSIVE MODE")),
            stands: Sql::new(concat!(
                "SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END AS seq FROM ",
                $table,
                "_id_seq"
            )),
            set: Sql::new(concat!("SELECT setval('", $table, "_id_seq', $1) AS seq")),
        }
    };
}

static COUNTERS: [Counter; 4] = [
    counter!("jobs", |highest| highest.job),
    counter!("harvest_definitions", |highest| highest.harvest),
    counter!("oai_jobs", |highest| highest.oai_job),
    counter!("oai_repositories", |highest| highest.oai_repository),
];

// SQLite keeps the counters of AUTOINCREMENT in a table that may be written. The one of harvest_definitions is kept
// there too and honoured by the statement that creates a harvest.
static STANDS: Sql = Sql::new("SELECT seq FROM sqlite_sequence WHERE name = $1");
static ADD: Sql = Sql::new("INSERT INTO sqlite_sequence (name, seq) VALUES ($1, $2)");
static SET: Sql = Sql::new("UPDATE sqlite_sequence SET seq = $2 WHERE name = $1");

impl Db {
    /// From now on no job, harvest, OAI-PMH job or repository gets a number up to these. Gives whether any counter had
    /// to be raised.
    pub async fn raise_numbers(&self, highest: HighestNumbers) -> Result<bool, Error> {
        if highest.is_empty() {
            return Ok(false);
        }
        self.write("raise the numbers", highest, |tx, highest| Box::pin(raise(tx, *highest))).await
    }

    /// The highest attempt of which a metadata file is known, in rows or on a replica; 0 if there is none.
    pub async fn highest_metadata_number(&self, job: JobId) -> Result<u32, Error> {
        self.read("look for metadata files", job, |tx, job| {
            Box::pin(async move {
                let query =
                    tx.sql(&METADATA).bind(format!("{job}-metadata-")).bind(format!("{job}-metadata."));
                let mut highest = 0;
                for row in tx.rows(query).await? {
                    highest = highest.max(metadata_number(&row.text("name")?).unwrap_or_default());
                }
                Ok(highest)
            })
        })
        .await
    }
}

// The dot follows the hyphen: a range that an index answers on both engines.
static METADATA: Sql = Sql::new(
    "SELECT name FROM files WHERE name >= $1 AND name < $2
     UNION SELECT name FROM stray_files WHERE name >= $1 AND name < $2",
);

/// Raises the counters above the numbers in these names: in the transaction that enters them.
pub(crate) async fn raise_above(tx: &mut Tx<'_>, names: impl Iterator<Item = &FileName>) -> Result<(), Fail> {
    let mut highest = HighestNumbers::default();
    names.for_each(|name| highest.see_file(name.as_str()));
    raise(tx, highest).await.map(|_| ())
}

async fn raise(tx: &mut Tx<'_>, highest: HighestNumbers) -> Result<bool, Fail> {
    let mut raised = false;
    for counter in &COUNTERS {
        let wanted = (counter.highest)(&highest);
        if wanted <= 0 {
            continue;
        }
        raised |= match tx.dialect {
            Dialect::Sqlite => raise_on_sqlite(tx, counter, wanted).await?,
            Dialect::Postgres => raise_on_postgres(tx, counter, wanted).await?,
        };
    }
    Ok(raised)
}

async fn raise_on_sqlite(tx: &mut Tx<'_>, counter: &Counter, wanted: i64) -> Result<bool, Fail> {
    let query = tx.sql(&STANDS).bind(counter.table);
    let sql = match tx.row(query).await?.map(|row| row.int("seq")).transpose()? {
        Some(stands) if stands >= wanted => return Ok(false),
        Some(_) => &SET,
        None => &ADD,
    };
    let query = tx.sql(sql).bind(counter.table).bind(wanted);
    tx.run(query).await.map(|_| true)
}

async fn raise_on_postgres(tx: &mut Tx<'_>, counter: &'static Counter, wanted: i64) -> Result<bool, Fail> {
    if stands(tx, counter).await? >= wanted {
        return Ok(false);
    }
    let query = tx.sql(&counter.lock);
    tx.run(query).await?;
    if stands(tx, counter).await? >= wanted {
        return Ok(false);
    }
    let query = tx.sql(&counter.set).bind(wanted);
    tx.row(query).await?;
    Ok(true)
}

async fn stands(tx: &mut Tx<'_>, counter: &'static Counter) -> Result<i64, Fail> {
    let query = tx.sql(&counter.stands);
    tx.row(query).await?.map_or(Ok(0), |row| row.int("seq"))
}
