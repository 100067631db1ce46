//! Who keeps the index of a collection: one node at a time, by a lease.
//!
//! Indexes are folders of single nodes. Two nodes that both took files would each have a part, so only the owner claims
//! files, takes them out and publishes copies. Whatever the owner before it still holds is void when another takes over.

use std::time::Duration;

use jiff::Timestamp;

use super::collections::Collections;
use crate::act::Tx;
use crate::bulk::{Bulk, ids, of_ids};
use crate::dialect::Sql;
use crate::error::{Error, Fail};
use crate::row::{Columns, length};

/// A collection as those see it who keep or serve its index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexedCollection {
    pub name: String,
    /// Which collection of this name it is: one that was removed and made again is another.
    pub identity: String,
    /// It is being taken away.
    pub removed: bool,
    /// The node that keeps its index, if one ever did.
    pub owner: Option<IndexOwner>,
}

/// The node that keeps an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexOwner {
    pub node: String,
    /// Rises whenever another node takes over.
    pub token: i64,
    pub until: Timestamp,
    /// The lease has ended: another node may take over.
    pub lapsed: bool,
}

/// An index that is ours until the lease ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexLease {
    pub collection: String,
    pub identity: String,
    pub owner: String,
    pub token: i64,
}

/// How an index stands when a node asks to keep it.
#[derive(Clone, Copy, Debug)]
struct Standing<'a> {
    /// Empty: nobody has kept it yet.
    owner: &'a str,
    lapsed: bool,
    /// Files are in an index somewhere.
    indexed: bool,
}

impl Standing<'_> {
    /// Whether `node` may keep the index. `has_folder`: it has one of the collection on its disk.
    fn admits(self, node: &str, has_folder: bool) -> bool {
        match self.owner {
            // A node that has nothing waits one lease for the one that has the index.
            "" => has_folder || !self.indexed || self.lapsed,
            owner => owner == node || self.lapsed,
        }
    }
}

impl Collections<'_> {
    /// Every collection with the owner of its index.
    pub async fn indexes(&self) -> Result<Vec<IndexedCollection>, Error> {
        self.0
            .read("list the indexes", (), |tx, ()| {
                Box::pin(async move {
                    let query = tx.timed(&LIST);
                    let read = |row: &_| indexed_collection(row);
                    tx.rows(query).await?.iter().map(read).collect()
                })
            })
            .await
    }

    /// Takes over the index of a collection, or prolongs the lease. `None`: another node keeps it. Whatever another owner
    /// had claimed is free again.
    pub async fn keep_index(
        &self,
        collection: &str,
        node: &str,
        lease: Duration,
        has_folder: bool,
    ) -> Result<Option<IndexLease>, Error> {
        let input = (collection.to_owned(), node.to_owned(), length(lease), has_folder);
        self.0
            .write("keep the index", input, |tx, (collection, node, lease, has_folder)| {
                Box::pin(keep(tx, collection, node, *lease, *has_folder))
            })
            .await
    }

    /// Whether the index is still ours.
    pub async fn keeps_index(&self, lease: &IndexLease) -> Result<bool, Error> {
        self.0
            .read("read the owner of the index", lease.clone(), |tx, lease| {
                Box::pin(async move {
                    let query = tx.timed(&KEEPS).bind(lease.collection.as_str());
                    let query = query.bind(lease.owner.as_str()).bind(lease.token);
                    Ok(tx.row(query).await?.is_some())
                })
            })
            .await
    }

    /// Prolongs a lease. False: another node has taken the index over; it is not taken back.
    pub async fn prolong_index(&self, lease: &IndexLease, by: Duration) -> Result<bool, Error> {
        self.0
            .write_one("prolong the lease of the index", (lease.clone(), length(by)), |tx, (lease, by)| {
                Box::pin(async move {
                    let query = tx.timed(&PROLONG).bind(lease.collection.as_str());
                    let query = query.bind(lease.owner.as_str()).bind(lease.token).bind(*by);
                    Ok(tx.run(query).await? > 0)
                })
            })
            .await
    }

    /// Raises the token of a lease above `past`, so that it counts as later. `None`: another node has taken the index over.
    pub async fn raise_index_token(
        &self,
        lease: &IndexLease,
        past: i64,
    ) -> Result<Option<IndexLease>, Error> {
        let token = past.saturating_add(1);
        let raised = self
            .0
            .write_one("raise the token of the index", (lease.clone(), token), |tx, (lease, token)| {
                Box::pin(async move {
                    let query = tx.sql(&RAISE).bind(lease.collection.as_str());
                    let query = query.bind(lease.owner.as_str()).bind(lease.token).bind(*token);
                    tx.run(query).await
                })
            })
            .await?;
        Ok((raised > 0).then(|| IndexLease { token, ..lease.clone() }))
    }

    /// Marks indexed files to be read again, and counts them: the index that we keep does not have them.
    pub async fn send_back(&self, lease: &IndexLease, files: &[i64]) -> Result<u64, Error> {
        self.0
            .write_one("send files back to be indexed", (lease.clone(), ids(files)), |tx, (lease, files)| {
                Box::pin(async move {
                    let query = SEND_BACK
                        .on(tx)
                        .bind(files.as_str())
                        .bind(lease.collection.as_str())
                        .bind(lease.owner.as_str())
                        .bind(lease.token);
                    tx.run(query).await
                })
            })
            .await
    }
}

static LIST: Sql = Sql::new(
    "SELECT c.name, c.identity, c.removed_at, o.owner, o.token, o.until_at, {now} AS now
     FROM collections c LEFT JOIN index_owners o ON o.collection = c.name AND o.owner <> '' ORDER BY c.name",
);
static ENTER: Sql = Sql::new(
    "INSERT INTO index_owners (collection, owner, token, until_at)
     SELECT name, '', 0, {now} + $3 FROM collections WHERE name = $2 ON CONFLICT DO NOTHING",
);
static LOCK: Sql = Sql::new(
    "SELECT owner, token, until_at, {now} AS now FROM index_owners WHERE collection = $2 {for_update}",
);
static ANY_INDEXED: Sql =
    Sql::new("SELECT 1 AS found FROM collection_files WHERE collection = $1 AND state = 'indexed' LIMIT 1");
static KEEP: Sql =
    Sql::new("UPDATE index_owners SET owner = $3, token = $4, until_at = {now} + $5 WHERE collection = $2");
static VOID: Sql = Sql::new(
    "UPDATE collection_files SET lease_owner = NULL, lease_token = lease_token + 1,
         due_at = CASE WHEN state = 'failed' THEN 1 ELSE 0 END, abandoned = abandoned + 1, edition = edition + 1
     WHERE collection = $1 AND lease_owner IS NOT NULL",
);
static IDENTITY: Sql = Sql::new("SELECT identity FROM collections WHERE name = $1");
static KEEPS: Sql = Sql::new(
    "SELECT 1 AS found FROM index_owners
     WHERE collection = $2 AND owner = $3 AND token = $4 AND until_at > {now}",
);
static PROLONG: Sql = Sql::new(
    "UPDATE index_owners SET until_at = {now} + $5 WHERE collection = $2 AND owner = $3 AND token = $4",
);
static RAISE: Sql = Sql::new(
    "UPDATE index_owners SET token = $4 WHERE collection = $1 AND owner = $2 AND token = $3 AND token < $4",
);
static SEND_BACK: Bulk = of_ids!(
    "UPDATE collection_files SET state = 'waiting', due_at = 0, attempts = 0, edition = edition + 1
     WHERE state = 'indexed' AND collection = $2 AND id IN (",
    "$1",
    ") AND EXISTS (SELECT 1 FROM index_owners o WHERE o.collection = $2 AND o.owner = $3 AND o.token = $4)"
);

async fn keep(
    tx: &mut Tx<'_>,
    collection: &str,
    node: &str,
    lease: i64,
    has_folder: bool,
) -> Result<Option<IndexLease>, Fail> {
    let query = tx.timed(&ENTER).bind(collection.to_owned()).bind(lease);
    tx.run(query).await?;
    // Held until the commit: a collection is forgotten before it or after it.
    let query = tx.timed(&LOCK).bind(collection.to_owned());
    let Some(row) = tx.row(query).await? else { return Ok(None) };
    let (owner, token) = (row.text("owner")?, row.int("token")?);
    let lapsed = row.int("until_at")? <= row.int("now")?;
    let query = tx.sql(&ANY_INDEXED).bind(collection.to_owned());
    let indexed = tx.row(query).await?.is_some();
    if !(Standing { owner: &owner, lapsed, indexed }).admits(node, has_folder) {
        return Ok(None);
    }
    let token = if owner == node { token } else { token + 1 };
    let query = tx.timed(&KEEP).bind(collection.to_owned()).bind(node.to_owned()).bind(token).bind(lease);
    tx.run(query).await?;
    if owner != node {
        let query = tx.sql(&VOID).bind(collection.to_owned());
        tx.run(query).await?;
    }
    let query = tx.sql(&IDENTITY).bind(collection.to_owned());
    let Some(row) = tx.row(query).await? else { return Ok(None) };
    let identity = row.text("identity")?;
    Ok(Some(IndexLease { collection: collection.to_owned(), identity, owner: node.to_owned(), token }))
}

fn indexed_collection(row: &sqlx::any::AnyRow) -> Result<IndexedCollection, Fail> {
    let owner = match row.text_or_none("owner")? {
        Some(node) => Some(IndexOwner {
            node,
            token: row.int("token")?,
            until: row.time("until_at")?,
            lapsed: row.int("until_at")? <= row.int("now")?,
        }),
        None => None,
    };
    Ok(IndexedCollection {
        name: row.text("name")?,
        identity: row.text("identity")?,
        removed: row.int_or_none("removed_at")?.is_some(),
        owner,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_has_one_owner_and_goes_first_to_who_has_it() {
        for (owner, lapsed, indexed, has_folder, admitted) in [
            // Nobody yet.
            ("", false, false, false, true),
            ("", false, true, true, true),
            ("", false, true, false, false),
            ("", true, true, false, true),
            // Ours, also after the lease if nobody else came.
            ("me", false, true, true, true),
            ("me", true, true, false, true),
            // Another's.
            ("other", false, false, true, false),
            ("other", false, true, true, false),
            ("other", true, true, false, true),
        ] {
            let standing = Standing { owner, lapsed, indexed };
            assert_eq!(standing.admits("me", has_folder), admitted, "{standing:?}, has_folder: {has_folder}");
        }
    }
}
