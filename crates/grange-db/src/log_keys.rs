//! The public halves of the keys that sign the log, so that every node can check what another signed.
//!
//! A row alone proves nothing: who can write to the database can write one. Each carries what makes it believable, and
//! the archive checks it: the proof that its node knows the node token, and signatures of keys that were known before.

use std::collections::BTreeMap;

use grange_model::Actor;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::act::Tx;
use crate::audit;
use crate::dialect::Sql;
use crate::error::{Error, Fail};
use crate::logbook::Logbook;
use crate::row::{Columns, micros};

/// A key that signs checkpoints, or once did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogKey {
    /// In hexadecimal.
    pub public_key: String,
    /// The node whose key it is.
    pub node: String,
    #[schemars(with = "String")]
    pub since: Timestamp,
    /// Nothing signed later counts.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub retired_at: Option<Timestamp>,
    /// Shows to who knows the node token that its node knew it too.
    #[serde(default)]
    pub proof: Option<String>,
    #[serde(default)]
    pub vouches: Vec<KeyVouch>,
}

/// Another key's signature over a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeyVouch {
    /// The public half of the key that signed.
    pub by_key: String,
    #[schemars(with = "String")]
    pub at: Timestamp,
    pub signature: String,
}

impl Logbook<'_> {
    /// Makes a node's key known. A key that was retired stays so.
    pub async fn announce_key(
        &self,
        public_key: &str,
        node: &str,
        proof: Option<String>,
    ) -> Result<(), Error> {
        let new = (public_key.to_owned(), node.to_owned(), proof);
        self.0
            .write_one("announce the key of the log", new, |tx, (key, node, proof)| {
                Box::pin(announce(tx, key, node, proof.clone()))
            })
            .await
    }

    /// All keys, oldest first, with who vouches for them.
    pub async fn keys(&self) -> Result<Vec<LogKey>, Error> {
        self.0.read("read the keys of the log", (), |tx, ()| Box::pin(keys(tx))).await
    }

    /// Keeps a key's signature over another.
    pub async fn vouch(&self, public_key: &str, vouch: KeyVouch) -> Result<(), Error> {
        self.0
            .write_one("vouch for a key of the log", (public_key.to_owned(), vouch), |tx, (key, new)| {
                Box::pin(vouch_for(tx, key, new))
            })
            .await
    }

    /// The new key takes the place of the old one, which vouches for it.
    pub async fn rotate_key(
        &self,
        old: &str,
        new: LogKey,
        vouch: KeyVouch,
        actor: &Actor,
    ) -> Result<(), Error> {
        self.0
            .write(
                "rotate the key of the log",
                (old.to_owned(), new, vouch, actor.clone()),
                |tx, (old, new, vouch, actor)| {
                    Box::pin(async move {
                        announce(tx, &new.public_key, &new.node, new.proof.clone()).await?;
                        vouch_for(tx, &new.public_key, vouch).await?;
                        let query = tx.sql(&RETIRE).bind(old.clone()).bind(micros(new.since));
                        tx.run(query).await?;
                        let subject = format!("node:{}", new.node);
                        let (before, after) = (json!({ "key": old }), json!({ "key": new.public_key }));
                        let record = audit::Record {
                            act: "log-key.rotate",
                            subject,
                            before: Some(before),
                            after: Some(after),
                        };
                        audit::append(tx, actor, record).await
                    })
                },
            )
            .await
    }
}

static ANNOUNCE: Sql = Sql::new(
    "INSERT INTO log_keys (public_key, node, since, proof) VALUES ($1, $2, $3, $4)
     ON CONFLICT (public_key) DO UPDATE SET node = excluded.node, proof = excluded.proof,
         edition = log_keys.edition + 1
     WHERE excluded.proof IS NOT NULL AND (log_keys.proof IS NULL OR log_keys.proof <> excluded.proof)",
);
static RETIRE: Sql = Sql::new(
    "UPDATE log_keys SET retired_at = COALESCE(retired_at, $2), edition = edition + 1 WHERE public_key = $1",
);
static VOUCH: Sql = Sql::new(
    "INSERT INTO log_key_vouches (public_key, by_key, at, signature) VALUES ($1, $2, $3, $4)
     ON CONFLICT (public_key, by_key) DO NOTHING",
);
static KEYS: Sql =
    Sql::new("SELECT public_key, node, since, retired_at, proof FROM log_keys ORDER BY since, public_key");
static VOUCHES: Sql =
    Sql::new("SELECT public_key, by_key, at, signature FROM log_key_vouches ORDER BY at, by_key");

async fn announce(tx: &mut Tx<'_>, key: &str, node: &str, proof: Option<String>) -> Result<(), Fail> {
    let query = tx.sql(&ANNOUNCE).bind(key.to_owned()).bind(node.to_owned()).bind(micros(tx.now)).bind(proof);
    tx.run(query).await.map(|_| ())
}

async fn vouch_for(tx: &mut Tx<'_>, key: &str, vouch: &KeyVouch) -> Result<(), Fail> {
    let query = tx
        .sql(&VOUCH)
        .bind(key.to_owned())
        .bind(vouch.by_key.clone())
        .bind(micros(vouch.at))
        .bind(vouch.signature.clone());
    tx.run(query).await.map(|_| ())
}

async fn keys(tx: &mut Tx<'_>) -> Result<Vec<LogKey>, Fail> {
    let query = tx.sql(&VOUCHES);
    let mut vouches: BTreeMap<String, Vec<KeyVouch>> = BTreeMap::new();
    for row in tx.rows(query).await? {
        let vouch =
            KeyVouch { by_key: row.text("by_key")?, at: row.time("at")?, signature: row.text("signature")? };
        vouches.entry(row.text("public_key")?).or_default().push(vouch);
    }
    let query = tx.sql(&KEYS);
    let mut keys = Vec::new();
    for row in tx.rows(query).await? {
        let public_key = row.text("public_key")?;
        keys.push(LogKey {
            node: row.text("node")?,
            since: row.time("since")?,
            retired_at: row.time_or_none("retired_at")?,
            proof: row.text_or_none("proof")?,
            vouches: vouches.remove(&public_key).unwrap_or_default(),
            public_key,
        });
    }
    Ok(keys)
}
