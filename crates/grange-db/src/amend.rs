//! The record of a file put right: where all copies agree against what Grange itself wrote down.

use grange_model::{Checksums, LogRecord};

use crate::act::Tx;
use crate::ballots::judge;
use crate::dialect::Sql;
use crate::error::{Error, Fail};
use crate::files::{Files, deciding};
use crate::frame_lock;
use crate::logbook;

/// What a file's row says from now on.
#[derive(Clone, Debug)]
pub struct Amendment {
    pub file_id: i64,
    /// The checksum that decided so far; if the row says something else by now, nothing is changed.
    pub was: String,
    pub size: u64,
    pub checksums: Checksums,
    /// For the log, in the same act.
    pub record: LogRecord,
}

static AMEND: Sql = Sql::new(
    "UPDATE files SET checksum = $3, checksums = $4, size = $5, edition = edition + 1
     WHERE id = $1 AND checksum = $2",
);

impl Files<'_> {
    /// Changes the row, votes on the file anew and writes it into the log; false when the row changed meanwhile.
    pub async fn amend(&self, amendment: Amendment) -> Result<bool, Error> {
        self.0.write("put the record right", amendment, |tx, amendment| Box::pin(amend(tx, amendment))).await
    }
}

async fn amend(tx: &mut Tx<'_>, amendment: &Amendment) -> Result<bool, Fail> {
    frame_lock::alone(tx).await?;
    let query = tx
        .sql(&AMEND)
        .bind(amendment.file_id)
        .bind(amendment.was.clone())
        .bind(deciding(&amendment.checksums))
        .bind(serde_json::to_string(&amendment.checksums).unwrap_or_default())
        .bind(amendment.size as i64);
    if tx.run(query).await? != 1 {
        return Ok(false);
    }
    logbook::append(tx, std::slice::from_ref(&amendment.record)).await?;
    let judged = judge(tx, &[amendment.file_id], &amendment.record.by).await?;
    logbook::append(tx, &judged.records).await?;
    Ok(true)
}
