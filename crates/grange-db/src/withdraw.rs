//! Taking back a deposit of which no replica has the bytes: its name is free again.

use grange_model::{Actor, ReplicaKind, UploadState};
use serde_json::json;

use crate::act::Tx;
use crate::audit;
use crate::bulk::Bulk;
use crate::dialect::Sql;
use crate::error::{Error, Fail};
use crate::files::{FileStatus, Files, deciding, status};
use crate::frame_lock;
use crate::row::micros;
use crate::store::{drop_work, fence};
use crate::work::Claim;

impl FileStatus {
    /// No deposit of the file was ever acknowledged, and by the rows no replica has its bytes. A checksum replica may have
    /// written down its name.
    pub fn is_nowhere(&self) -> bool {
        let recorded = deciding(&self.file.checksums);
        self.file.stored_at.is_none()
            && self.holdings.iter().filter(|holding| holding.kind == ReplicaKind::Bitarchive).all(|holding| {
                holding.state != UploadState::UploadCompleted && holding.checksum.as_ref() != Some(&recorded)
            })
    }

    /// The same, and every replica with bytes has failed to take it: nobody is uploading it for the first time now.
    pub fn failed_everywhere(&self) -> bool {
        let mut bytes = self.holdings.iter().filter(|holding| holding.kind == ReplicaKind::Bitarchive);
        self.is_nowhere() && bytes.all(|holding| holding.state == UploadState::UploadFailed)
    }
}

// Held until the commit: nobody settles the file meanwhile.
static LOCK: Sql = Sql::new("SELECT id FROM files WHERE name = $1 {for_update}");
// Its performer waits for the claim that the caller holds, and would enter the file again.
static UNDER_REPAIR: Sql = Sql::new("SELECT id FROM repairs WHERE file_id = $1 AND state = 'confirmed'");
static REPAIRS: Sql = Sql::new("DELETE FROM repairs WHERE file_id = $1");
static COPIES: Sql = Sql::new("DELETE FROM replica_files WHERE file_id = $1");
static FILE: Sql = Sql::new("DELETE FROM files WHERE id = $1 AND stored_at IS NULL");
// A copy was verified once and read for the index, then lost. Its captures name bytes that are nowhere, and the row would
// keep another deposit of that name out of the index. A lease on the row is void: its token no longer fits.
macro_rules! captures {
    ($named:literal) => {
        Sql::new(concat!(
            "UPDATE collection_files SET state = 'leaving', after_leaving = 'removed', due_at = 0, attempts = 0,
                 lease_token = lease_token + 1, lease_owner = NULL, changed_at = $2, edition = edition + 1
             WHERE collection IN (SELECT name FROM collections) AND path IS NULL AND ",
            $named
        ))
    };
}
static CAPTURES: Bulk = Bulk {
    sqlite: captures!("name = $1"),
    postgres: captures!("text_digest(name) = text_digest($1) AND name = $1"),
};

impl Files<'_> {
    /// Removes the row of a file that is nowhere; false, and nothing is changed, when it is somewhere by now. Its captures
    /// leave every index. The caller has claimed the file and asked every replica: [`Error::LeaseLost`] when somebody else
    /// has it now.
    pub async fn withdraw(&self, claim: &Claim, actor: &Actor) -> Result<bool, Error> {
        self.0
            .write("withdraw the deposit", (claim.clone(), actor.clone()), |tx, (claim, actor)| {
                Box::pin(withdraw(tx, claim, actor))
            })
            .await
    }
}

async fn withdraw(tx: &mut Tx<'_>, claim: &Claim, actor: &Actor) -> Result<bool, Fail> {
    frame_lock::alone(tx).await?;
    fence(tx, claim).await?;
    let query = tx.sql(&LOCK).bind(claim.key.clone());
    tx.row(query).await?;
    let Some(known) = status(tx, &claim.key).await?.filter(FileStatus::is_nowhere) else { return Ok(false) };
    let query = tx.sql(&UNDER_REPAIR).bind(known.file.id);
    if tx.row(query).await?.is_some() {
        let (what, by) =
            (format!("the deposit of {}", known.file.name), "a repair under way; try again".to_owned());
        return Err(Error::InUse { what, by }.into());
    }
    for sql in [&REPAIRS, &COPIES, &FILE] {
        let query = tx.sql(sql).bind(known.file.id);
        tx.run(query).await?;
    }
    let query = CAPTURES.on(tx).bind(claim.key.clone()).bind(micros(tx.now));
    tx.run(query).await?;
    drop_work(tx, claim).await?;
    let before = Some(json!({ "size": known.file.size, "checksum": deciding(&known.file.checksums) }));
    let (act, subject) = ("file.withdraw", format!("file:{}", known.file.name));
    audit::append(tx, actor, audit::Record { act, subject, before, after: None }).await?;
    Ok(true)
}
