//! Access rules as they are kept beside the bits: every rule that was ever added or removed has a key, so that a
//! database that forgot one can be told.

use grange_model::{Actor, WorkId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::access::{ADD, AccessRow, AccessRules, REMOVED, row, rows};
use crate::act::Tx;
use crate::dialect::Sql;
use crate::error::{Error, Fail};
use crate::harvest::{NO_STATE, told};
use crate::row::{Columns, micros};

/// A rule as it is kept beside the bits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptRule {
    pub key: String,
    pub rule: Value,
    pub note: String,
    pub created_at: Timestamp,
    pub created_by: String,
}

/// A rule that a person removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovedRule {
    pub key: String,
    pub removed_at: Timestamp,
    pub removed_by: String,
}

/// All that this database knows of rules.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AccessRuleState {
    pub rules: Vec<KeptRule>,
    pub removed: Vec<RemovedRule>,
}

impl AccessRules<'_> {
    /// What is known here. Rules from before there were keys get one.
    pub async fn state(&self) -> Result<AccessRuleState, Error> {
        self.0.write("read the access rules", (), |tx, ()| Box::pin(state(tx))).await
    }

    /// Establishes rules again that are kept beside the bits and that this database lost; those that are known here,
    /// or were removed here, are left as they are. Gives those that are in force again.
    pub async fn reestablish(&self, rules: Vec<KeptRule>) -> Result<Vec<AccessRow>, Error> {
        self.0
            .write("establish the access rules again", rules, |tx, rules| Box::pin(reestablish(tx, rules)))
            .await
    }

    /// Notes removals that are kept beside the bits. Rules that are in force here stay in force: a person decides.
    pub async fn note_removed(&self, removed: Vec<RemovedRule>) -> Result<(), Error> {
        self.0
            .write("note removed access rules", removed, |tx, removed| {
                Box::pin(async move {
                    for one in removed {
                        let query = tx
                            .sql(&REMOVED)
                            .bind(one.key.as_str())
                            .bind(micros(one.removed_at))
                            .bind(one.removed_by.as_str());
                        tx.run(query).await?;
                    }
                    Ok(())
                })
            })
            .await
    }
}

// Two nodes may give a rule its key at once: the second one takes the key of the first.
static SET_KEY: Sql = Sql::new("UPDATE access_rules SET key = COALESCE(key, $2) WHERE id = $1 RETURNING key");
static REMOVALS: Sql = Sql::new("SELECT key, removed_at, removed_by FROM access_rules_removed ORDER BY key");
static IS_KNOWN: Sql = Sql::new(
    "SELECT key FROM access_rules WHERE key = $1 UNION SELECT key FROM access_rules_removed WHERE key = $1",
);

async fn state(tx: &mut Tx<'_>) -> Result<AccessRuleState, Fail> {
    let mut known = AccessRuleState::default();
    for one in rows(tx).await? {
        let key = if let Some(key) = one.key {
            key
        } else {
            let key = WorkId::new().to_string();
            let query = tx.sql(&SET_KEY).bind(one.id).bind(key.as_str());
            // Removed meanwhile, it is kept by its removal.
            let Some(row) = tx.row(query).await? else { continue };
            row.text("key")?
        };
        let AccessRow { rule, note, created_at, created_by, .. } = one;
        known.rules.push(KeptRule { key, rule, note, created_at, created_by });
    }
    let query = tx.sql(&REMOVALS);
    for row in tx.rows(query).await? {
        known.removed.push(RemovedRule {
            key: row.text("key")?,
            removed_at: row.time("removed_at")?,
            removed_by: row.text("removed_by")?,
        });
    }
    Ok(known)
}

async fn reestablish(tx: &mut Tx<'_>, rules: &[KeptRule]) -> Result<Vec<AccessRow>, Fail> {
    let mut made = Vec::new();
    for kept in rules {
        let query = tx.sql(&IS_KNOWN).bind(kept.key.as_str());
        if tx.row(query).await?.is_some() {
            continue;
        }
        let query = tx
            .sql(&ADD)
            .bind(kept.rule.to_string())
            .bind(kept.note.as_str())
            .bind(micros(kept.created_at))
            .bind(kept.created_by.as_str())
            .bind(kept.key.as_str());
        // Another node establishes it at the same moment.
        let Some(one) = tx.row(query).await? else { continue };
        let one = row(&one)?;
        let state = json!({ "rule": one.rule, "note": one.note, "created_by": one.created_by });
        let subject = format!("access:{}", one.id);
        told(tx, &Actor::system(), "access.reestablish", subject, NO_STATE, Some(&state)).await?;
        made.push(one);
    }
    Ok(made)
}
