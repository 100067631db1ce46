//! Claiming work and what a claimer may say about it.

use std::time::Duration;

use grange_model::WorkId;
use jiff::Timestamp;
use sqlx::any::AnyRow;

use super::{Claim, State, Work, columns};
use crate::act::{Query, Tx};
use crate::dialect::Sql;
use crate::error::{Error, Fail};
use crate::row::{Columns, length};

impl Work<'_> {
    /// Takes the best piece of work of this kind: highest priority first, then the oldest. Two claimers never get
    /// the same one. A dead claimer's is taken again once its lease has ended.
    pub async fn claim(&self, kind: &str, owner: &str, lease: Duration) -> Result<Option<Claim>, Error> {
        Ok(self.claim_many(kind, owner, lease, 1).await?.pop())
    }

    /// Takes up to `n` pieces at once, in the order they should be done.
    pub async fn claim_many(
        &self,
        kind: &str,
        owner: &str,
        lease: Duration,
        n: u32,
    ) -> Result<Vec<Claim>, Error> {
        self.0
            .write_one(
                "claim work",
                (kind.to_owned(), owner.to_owned(), length(lease), i64::from(n)),
                |tx, (kind, owner, lease, n)| Box::pin(claim_within(tx, kind, owner, *lease, *n)),
            )
            .await
    }

    /// Prolongs the lease: it now ends `lease` from now. Gives the new end.
    pub async fn renew(&self, claim: &Claim, lease: Duration) -> Result<Timestamp, Error> {
        self.0
            .write_one("renew the lease", (claim.clone(), length(lease)), |tx, (claim, lease)| {
                Box::pin(async move {
                    let query = held(tx, &RENEW, claim).bind(*lease);
                    let row = kept(tx, query, claim).await?;
                    row.time("due_at")
                })
            })
            .await
    }

    /// The work is done, for ever.
    pub async fn finish(&self, claim: &Claim) -> Result<(), Error> {
        self.0.write_one("finish the work", claim.clone(), |tx, claim| Box::pin(finish(tx, claim))).await
    }

    /// The attempt failed. The work comes back after `retry_after`, or is given up if this was the last attempt:
    /// the answer is [`State::Ready`] or [`State::Failed`].
    pub async fn fail(&self, claim: &Claim, error: &str, retry_after: Duration) -> Result<State, Error> {
        self.0
            .write_one(
                "record the failure",
                // The text may come from the web, and PostgreSQL keeps no NUL.
                (claim.clone(), error.replace('\0', "\u{fffd}"), length(retry_after)),
                |tx, (claim, error, retry_after)| Box::pin(fail_within(tx, claim, error, *retry_after)),
            )
            .await
    }

    /// Gives the work back untouched, as on shutdown. The attempt does not count.
    pub async fn release(&self, claim: &Claim) -> Result<(), Error> {
        self.0
            .write_one("give the work back", claim.clone(), |tx, claim| {
                Box::pin(async move {
                    let query = held(tx, &RELEASE, claim);
                    kept(tx, query, claim).await.map(|_| ())
                })
            })
            .await
    }

    /// Takes the leases of dead claimers away and counts them; their work is ready again, or given up if that was
    /// the last attempt. Claiming does not wait for this: it keeps the picture true for people.
    pub async fn expire(&self) -> Result<u64, Error> {
        self.0
            .write_one("end dead leases", (), |tx, ()| {
                Box::pin(async move {
                    let query = tx.timed(&EXPIRE);
                    tx.run(query).await
                })
            })
            .await
    }
}

// The rows are locked in a step of their own: in one with the update, PostgreSQL may run the inner SELECT more than
// once and lock more than it was asked for.
static CLAIM: Sql = Sql::new(concat!(
    "WITH picked AS MATERIALIZED (
         SELECT id AS picked_id FROM work
         WHERE kind = $2 AND outcome IS NULL AND due_at <= {now} AND (attempts_max = 0 OR attempts < attempts_max)
         ORDER BY priority DESC, id LIMIT $5 {skip_locked}
     )
     UPDATE work SET
         last_error = CASE WHEN lease_owner IS NULL THEN last_error
                           ELSE 'the lease of ' || lease_owner || ' ran out' END,
         lease_owner = $3, lease_token = lease_token + 1, due_at = {now} + $4,
         attempts = attempts + 1, updated_at = {now}, edition = edition + 1
     FROM picked WHERE id = picked_id
     RETURNING ",
    columns!()
));
static TAKE: Sql = Sql::new(concat!(
    "INSERT INTO work (id, kind, key, payload, priority, due_at, lease_owner, lease_token, attempts, attempts_max,
         created_at, updated_at)
     VALUES ($2, $3, $4, '{}', 0, {now} + $6, $5, 1, 1, 0, {now}, {now})
     ON CONFLICT (kind, key) DO UPDATE SET outcome = NULL, ended_at = NULL, lease_owner = excluded.lease_owner,
         lease_token = work.lease_token + 1, due_at = excluded.due_at, attempts = work.attempts + 1,
         updated_at = excluded.updated_at, edition = work.edition + 1
     WHERE work.lease_owner IS NULL OR work.due_at <= {now}
     RETURNING ",
    columns!()
));
static RENEW: Sql = Sql::new(
    "UPDATE work SET due_at = {now} + $4, updated_at = {now}, edition = edition + 1
     WHERE id = $2 AND lease_token = $3 AND lease_owner IS NOT NULL RETURNING due_at",
);
static FINISH: Sql = Sql::new(
    "UPDATE work SET outcome = 'done', ended_at = {now}, lease_owner = NULL, last_error = NULL,
         updated_at = {now}, edition = edition + 1
     WHERE id = $2 AND lease_token = $3 AND lease_owner IS NOT NULL RETURNING id",
);
static FAIL: Sql = Sql::new(
    "UPDATE work SET
         outcome = CASE WHEN attempts_max > 0 AND attempts >= attempts_max THEN 'failed' END,
         ended_at = CASE WHEN attempts_max > 0 AND attempts >= attempts_max THEN {now} END,
         due_at = {now} + $5, lease_owner = NULL, last_error = $4, updated_at = {now}, edition = edition + 1
     WHERE id = $2 AND lease_token = $3 AND lease_owner IS NOT NULL RETURNING outcome, lease_owner",
);
static RELEASE: Sql = Sql::new(
    "UPDATE work SET due_at = {now}, lease_owner = NULL, attempts = attempts - 1,
         updated_at = {now}, edition = edition + 1
     WHERE id = $2 AND lease_token = $3 AND lease_owner IS NOT NULL RETURNING id",
);
static EXPIRE: Sql = Sql::new(
    "UPDATE work SET
         outcome = CASE WHEN attempts_max > 0 AND attempts >= attempts_max THEN 'failed' END,
         ended_at = CASE WHEN attempts_max > 0 AND attempts >= attempts_max THEN {now} END,
         due_at = {now}, last_error = 'the lease of ' || lease_owner || ' ran out', lease_owner = NULL,
         updated_at = {now}, edition = edition + 1
     WHERE outcome IS NULL AND lease_owner IS NOT NULL AND due_at <= {now}",
);

/// Takes one piece of work by its name inside another act's transaction, whether it was offered or not; nothing while
/// somebody else has it.
pub(crate) async fn take(
    tx: &mut Tx<'_>,
    kind: &'static str,
    key: &str,
    owner: &str,
    lease: i64,
) -> Result<Option<Claim>, Fail> {
    let query = tx
        .timed(&TAKE)
        .bind(WorkId::new().to_string())
        .bind(kind)
        .bind(key.to_owned())
        .bind(owner.to_owned())
        .bind(lease);
    tx.row(query).await?.as_ref().map(claimed).transpose()
}

/// Claiming inside another act's transaction.
pub(crate) async fn claim_one(
    tx: &mut Tx<'_>,
    kind: &str,
    owner: &str,
    lease: i64,
) -> Result<Option<Claim>, Fail> {
    Ok(claim_within(tx, kind, owner, lease, 1).await?.pop())
}

async fn claim_within(
    tx: &mut Tx<'_>,
    kind: &str,
    owner: &str,
    lease: i64,
    n: i64,
) -> Result<Vec<Claim>, Fail> {
    let query = tx.timed(&CLAIM).bind(kind.to_owned()).bind(owner.to_owned()).bind(lease).bind(n);
    claims(&tx.rows(query).await?)
}

/// Failing inside another act's transaction.
pub(crate) async fn fail(
    tx: &mut Tx<'_>,
    claim: &Claim,
    error: &str,
    retry_after: Duration,
) -> Result<State, Fail> {
    fail_within(tx, claim, error, length(retry_after)).await
}

async fn fail_within(tx: &mut Tx<'_>, claim: &Claim, error: &str, retry_after: i64) -> Result<State, Fail> {
    let query = held(tx, &FAIL, claim).bind(error.to_owned()).bind(retry_after);
    let row = kept(tx, query, claim).await?;
    super::state(&row)
}

/// Finishing inside another act's transaction: the fact and the end of the work are one.
pub(crate) async fn finish(tx: &mut Tx<'_>, claim: &Claim) -> Result<(), Fail> {
    let query = held(tx, &FINISH, claim);
    kept(tx, query, claim).await.map(|_| ())
}

/// A statement about a row that is still the claimer's.
fn held<'q>(tx: &Tx<'_>, sql: &'static Sql, claim: &Claim) -> Query<'q> {
    tx.timed(sql).bind(claim.id.to_string()).bind(claim.token)
}

async fn kept(tx: &mut Tx<'_>, query: Query<'_>, claim: &Claim) -> Result<AnyRow, Fail> {
    let lost = || Error::LeaseLost { what: format!("{} {}", claim.kind, claim.key) };
    Ok(tx.row(query).await?.ok_or_else(lost)?)
}

fn claimed(row: &AnyRow) -> Result<Claim, Fail> {
    Ok(Claim {
        id: row.parsed("id")?,
        kind: row.text("kind")?,
        key: row.text("key")?,
        payload: row.json("payload")?,
        priority: row.int("priority")?,
        attempt: row.int("attempts")? as u32,
        last_error: row.text_or_none("last_error")?,
        lease_until: row.time("due_at")?,
        token: row.int("lease_token")?,
    })
}

fn claims(rows: &[AnyRow]) -> Result<Vec<Claim>, Fail> {
    let mut claims = rows.iter().map(claimed).collect::<Result<Vec<_>, Fail>>()?;
    // Neither engine promises the order in which changed rows come back.
    claims.sort_by_key(|claim| (std::cmp::Reverse(claim.priority), claim.id));
    Ok(claims)
}
