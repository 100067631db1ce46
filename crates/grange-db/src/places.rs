//! Where the replicas are located: the id of the archive, and the disks, buckets and collections that bear its markers.

use grange_model::Actor;
use serde_json::json;

use crate::act::Tx;
use crate::audit;
use crate::dialect::Sql;
use crate::error::{Error, Fail};
use crate::open::Db;
use crate::row::{Columns, micros};

/// The places of the replicas.
#[derive(Debug)]
pub struct ReplicaPlaces<'d>(&'d Db);

impl Db {
    pub fn places(&self) -> ReplicaPlaces<'_> {
        ReplicaPlaces(self)
    }
}

impl ReplicaPlaces<'_> {
    /// The id of this archive, once it has one.
    pub async fn archive_id(&self) -> Result<Option<String>, Error> {
        self.0.read("read the id of the archive", (), |tx, ()| Box::pin(archive_id(tx))).await
    }

    /// Gives the archive this id unless it has one; the id that counts is given back. `from_markers`: replicas bore it
    /// before this database knew it, and there may be more of them ([`Self::recovery_pending`]).
    pub async fn identify(&self, id: &str, from_markers: bool) -> Result<String, Error> {
        self.0
            .write("keep the id of the archive", (id.to_owned(), from_markers), |tx, (id, from_markers)| {
                Box::pin(async move {
                    let now = micros(tx.now);
                    let query =
                        tx.sql(&IDENTIFY).bind(id.clone()).bind(now).bind(from_markers.then_some(now));
                    tx.run(query).await?;
                    Ok(archive_id(tx).await?.unwrap_or_else(|| id.clone()))
                })
            })
            .await
    }

    /// Whether replicas may exist that this database does not know: it was restored or made again, and no rebuild has read
    /// every replica since.
    pub async fn recovery_pending(&self) -> Result<bool, Error> {
        self.0
            .read("read whether the database was restored", (), |tx, ()| {
                Box::pin(async move {
                    let query = tx.sql(&PENDING);
                    Ok(tx.row(query).await?.is_some())
                })
            })
            .await
    }

    /// A rebuild has read every replica.
    pub async fn end_recovery(&self) -> Result<(), Error> {
        self.0
            .write("keep that every replica was read", (), |tx, ()| {
                Box::pin(async move {
                    let query = tx.sql(&RECOVERED);
                    tx.run(query).await.map(|_| ())
                })
            })
            .await
    }

    /// The places of a replica that have borne its marker.
    pub async fn known(&self, replica: i64) -> Result<Vec<String>, Error> {
        self.0
            .read("list the places of a replica", replica, |tx, replica| {
                Box::pin(async move {
                    let query = tx.sql(&KNOWN).bind(*replica);
                    tx.rows(query).await?.iter().map(|row| row.text("place")).collect()
                })
            })
            .await
    }

    /// These places bear the marker of the replica.
    pub async fn enter(&self, replica: i64, places: Vec<String>) -> Result<(), Error> {
        self.0
            .write("keep the places of a replica", (replica, places), |tx, (replica, places)| {
                Box::pin(enter(tx, *replica, places))
            })
            .await
    }

    /// A person takes the replica as it is now: these places are its places, and no others.
    pub async fn adopt(&self, replica: i64, places: Vec<String>, actor: &Actor) -> Result<(), Error> {
        self.0
            .write("adopt the replica", (replica, places, actor.clone()), |tx, (replica, places, actor)| {
                Box::pin(async move {
                    let query = tx.sql(&FORGET).bind(*replica);
                    tx.run(query).await?;
                    enter(tx, *replica, places).await?;
                    let query = tx.sql(&NAME).bind(*replica);
                    let gone = || Error::NotFound { what: format!("replica {replica}") };
                    let name = tx.row(query).await?.ok_or_else(gone)?.text("name")?;
                    let (act, subject) = ("replica.adopt", format!("replica:{name}"));
                    let after = Some(json!({ "places": places }));
                    audit::append(tx, actor, audit::Record { act, subject, before: None, after }).await
                })
            })
            .await
    }

    /// Keeps why the replica cannot be used; `None` when it can.
    pub async fn set_away(&self, replica: i64, reason: Option<&str>) -> Result<(), Error> {
        // The text may come from afar, and PostgreSQL keeps no NUL.
        let reason = reason.map(|reason| reason.replace('\0', "\u{fffd}"));
        self.0
            .write("keep whether the replica is away", (replica, reason), |tx, (replica, reason)| {
                Box::pin(async move {
                    let query = tx.sql(&AWAY).bind(*replica).bind(reason.clone());
                    tx.run(query).await.map(|_| ())
                })
            })
            .await
    }
}

static ARCHIVE: Sql = Sql::new("SELECT archive FROM archive_identity");
static IDENTIFY: Sql = Sql::new(
    "INSERT INTO archive_identity (one, archive, created_at, recovery_pending_since) VALUES (1, $1, $2, $3)
     ON CONFLICT (one) DO NOTHING",
);
static PENDING: Sql =
    Sql::new("SELECT archive FROM archive_identity WHERE recovery_pending_since IS NOT NULL");
static RECOVERED: Sql = Sql::new(
    "UPDATE archive_identity SET recovery_pending_since = NULL WHERE recovery_pending_since IS NOT NULL",
);
static KNOWN: Sql = Sql::new("SELECT place FROM replica_places WHERE replica_id = $1 ORDER BY place");
static ENTER: Sql = Sql::new(
    "INSERT INTO replica_places (replica_id, place, marked_at) VALUES ($1, $2, $3)
     ON CONFLICT (replica_id, place) DO NOTHING",
);
static FORGET: Sql = Sql::new("DELETE FROM replica_places WHERE replica_id = $1");
static NAME: Sql = Sql::new("SELECT name FROM replicas WHERE id = $1");
static AWAY: Sql = Sql::new(
    "UPDATE replicas SET away = $2, edition = edition + 1
     WHERE id = $1 AND COALESCE(away, '') <> COALESCE($2, '')",
);

async fn archive_id(tx: &mut Tx<'_>) -> Result<Option<String>, Fail> {
    let query = tx.sql(&ARCHIVE);
    tx.row(query).await?.map(|row| row.text("archive")).transpose()
}

async fn enter(tx: &mut Tx<'_>, replica: i64, places: &[String]) -> Result<(), Fail> {
    for place in places {
        let query = tx.sql(&ENTER).bind(replica).bind(place.clone()).bind(micros(tx.now));
        tx.run(query).await?;
    }
    Ok(())
}
