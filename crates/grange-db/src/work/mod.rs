//! Work: rows that somebody has to do, once. The one primitive behind every queue of the archive.
//!
//! ```text
//!              offer            claim               finish
//!   (nothing) ──────▶ ready ───────────▶ claimed ──────────▶ done
//!                       ▲                 │  │ ▲
//!                       │ release, expire,│  └─┘ renew
//!                       │ fail (again)    │
//!                       └─────────────────┤ fail, expire (last attempt)
//!                       ▲                 └────────────────▶ failed
//!                       └──────────────────────────────────────┘ retry (a person)
//! ```
//!
//! A claim is a lease with an end. Whoever does not renew it in time loses it to the next claimer, and every later
//! word of the late one is refused with [`Error::LeaseLost`](crate::Error::LeaseLost). A lease past its end that
//! nobody took yet still counts: taking it is what ends it.

mod lease;
mod offer;

pub(crate) use lease::{claim_one, fail, take};
pub(crate) use offer::offer_one;

use std::fmt;
use std::str::FromStr;

use grange_model::WorkId;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use sqlx::any::AnyRow;

use crate::error::Fail;
use crate::open::Db;
use crate::row::Columns;

/// The work.
#[derive(Debug)]
pub struct Work<'d>(&'d Db);

impl Db {
    pub fn work(&self) -> Work<'_> {
        Work(self)
    }
}

/// Work to be offered. `kind` names the queue, `key` what is to be done in it: the same key is offered once.
#[derive(Clone, Debug)]
pub struct Offer {
    pub kind: String,
    pub key: String,
    pub payload: Value,
    /// Higher is earlier; the default is 0.
    pub priority: i64,
    /// Not before this time; at once by default.
    pub not_before: Option<Timestamp>,
    /// Claims in all before it is given up; 0 never gives up. The default is 5: enough for a restart and a bad day.
    pub attempts_max: u32,
}

impl Offer {
    pub fn new(kind: impl Into<String>, key: impl Into<String>, payload: Value) -> Self {
        let (kind, key) = (kind.into(), key.into());
        Self { kind, key, payload, priority: 0, not_before: None, attempts_max: 5 }
    }

    #[must_use]
    pub fn priority(self, priority: i64) -> Self {
        Self { priority, ..self }
    }

    #[must_use]
    pub fn not_before(self, time: Timestamp) -> Self {
        Self { not_before: Some(time), ..self }
    }

    #[must_use]
    pub fn attempts_max(self, attempts_max: u32) -> Self {
        Self { attempts_max, ..self }
    }
}

/// What became of an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offered {
    pub id: WorkId,
    /// False: it had been offered before, and nothing was changed.
    pub new: bool,
    pub state: State,
}

/// A claim: work that is ours until the lease ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    pub id: WorkId,
    pub kind: String,
    pub key: String,
    pub payload: Value,
    pub priority: i64,
    /// Which attempt this is, counted from 1.
    pub attempt: u32,
    /// What the attempt before said when it failed.
    pub last_error: Option<String>,
    pub lease_until: Timestamp,
    /// Grows with every claim of this row: hand it along to fence off whoever came before.
    pub token: i64,
}

/// Where a piece of work stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum State {
    Ready,
    Claimed,
    Done,
    Failed,
}

/// A piece of work as people look at it.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Item {
    pub id: WorkId,
    pub kind: String,
    pub key: String,
    pub payload: Value,
    pub state: State,
    pub priority: i64,
    /// While it is ready: the earliest start.
    #[schemars(with = "Option<String>")]
    pub not_before: Option<Timestamp>,
    /// While it is claimed: by whom, and until when.
    pub lease_owner: Option<String>,
    #[schemars(with = "Option<String>")]
    pub lease_until: Option<Timestamp>,
    pub attempts: u32,
    pub attempts_max: u32,
    pub last_error: Option<String>,
    #[schemars(with = "String")]
    pub created_at: Timestamp,
    #[schemars(with = "String")]
    pub updated_at: Timestamp,
    pub edition: i64,
}

/// Which items to list; the default is the first hundred of everything.
#[derive(Clone, Debug)]
pub struct WorkFilter {
    pub kind: Option<String>,
    pub state: Option<State>,
    /// Only items after this one: the next page.
    pub after: Option<WorkId>,
    pub limit: u32,
}

impl Default for WorkFilter {
    fn default() -> Self {
        Self { kind: None, state: None, after: None, limit: 100 }
    }
}

/// How many pieces of work of a kind stand where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Counts {
    pub ready: u64,
    pub claimed: u64,
    pub done: u64,
    pub failed: u64,
}

impl State {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Claimed => "claimed",
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for State {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = [Self::Ready, Self::Claimed, Self::Done, Self::Failed];
        let found = all.into_iter().find(|state| state.as_str() == text);
        found.ok_or_else(|| format!("\"{text}\" is not a state: choose from ready, claimed, done, failed"))
    }
}

macro_rules! columns {
    () => {
        "id, kind, key, payload, priority, due_at, lease_owner, lease_token, attempts, attempts_max, last_error, \
         outcome, created_at, updated_at, edition"
    };
}
pub(crate) use columns;

fn item(row: &AnyRow) -> Result<Item, Fail> {
    let (state, due_at) = (state(row)?, row.time("due_at")?);
    Ok(Item {
        id: row.parsed("id")?,
        kind: row.text("kind")?,
        key: row.text("key")?,
        payload: row.json("payload")?,
        state,
        priority: row.int("priority")?,
        not_before: (state == State::Ready).then_some(due_at),
        lease_owner: row.text_or_none("lease_owner")?,
        lease_until: (state == State::Claimed).then_some(due_at),
        attempts: row.int("attempts")? as u32,
        attempts_max: row.int("attempts_max")? as u32,
        last_error: row.text_or_none("last_error")?,
        created_at: row.time("created_at")?,
        updated_at: row.time("updated_at")?,
        edition: row.int("edition")?,
    })
}

/// The state is not a column of its own: a claim would have to change it in an index.
fn state(row: &AnyRow) -> Result<State, Fail> {
    match (row.text_or_none("outcome")?, row.text_or_none("lease_owner")?) {
        (Some(_), _) => row.parsed("outcome"),
        (None, Some(_)) => Ok(State::Claimed),
        (None, None) => Ok(State::Ready),
    }
}
