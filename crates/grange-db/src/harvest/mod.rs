//! The facts of harvests, a file per noun.

mod afterwards;
mod candidates;
mod channels;
mod configurations;
mod credentials;
mod definitions;
mod deposits;
mod dispatch;
mod domains;
mod fields;
mod history;
mod import;
mod job_list;
mod jobs;
mod members;
mod planning;
mod runs;
mod schedules;
mod seed_lists;
mod supervision;
mod templates;
mod traps;

pub use afterwards::Afterwards;
pub use candidates::{Candidate, SnapshotRow};
pub use channels::{Channels, NewChannel};
pub use configurations::ConfigurationChange;
pub use credentials::NewCredential;
pub use definitions::{Definitions, HarvestChange, NewHarvest};
pub use deposits::{DepositCounts, Deposits, WaitingDeposit};
pub use dispatch::{Heartbeat, JobClaim, JobReport, Reported};
pub use domains::{DomainChange, DomainFilter, Domains, Found};
pub use fields::CustomFields;
pub use history::HistoryFilter;
pub use import::Imported;
pub use job_list::JobFilter;
pub use jobs::Jobs;
pub use members::Added;
pub use planning::{Due, Member, NewJob, Planner, RunPlan};
pub use schedules::Schedules;
pub use supervision::{DeadJobs, Policy};
pub use templates::Templates;
pub use traps::Traps;

use std::fmt::Display;

use grange_model::Actor;
use grange_model::harvest::{Best, Limit, Limits};
use serde::Serialize;
use serde_json::Value;
use sqlx::any::AnyRow;

use crate::act::Tx;
use crate::audit::{self, Record};
use crate::error::{Error, Fail};
use crate::row::Columns;

/// A handle to one noun's rows.
macro_rules! handle {
    ($(#[$doc:meta])* $name:ident, $method:ident) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name<'d>(pub(super) &'d $crate::open::Db);

        impl $crate::open::Db {
            pub fn $method(&self) -> $name<'_> {
                $name(self)
            }
        }
    };
}
pub(crate) use handle;

/// Names asked of a list: NUL is kept by no PostgreSQL, and both engines behave alike.
pub(crate) fn plain(what: &'static str, text: &str) -> Result<(), Fail> {
    if text.contains('\0') { Err(Error::BadText { what }.into()) } else { Ok(()) }
}

pub(crate) fn missing(noun: &str, name: impl Display) -> Fail {
    Error::NotFound { what: format!("{noun} {name}") }.into()
}

pub(crate) fn refused(reason: impl Display) -> Fail {
    Error::Refused { reason: reason.to_string() }.into()
}

pub(crate) fn exists(fail: Fail, noun: &str, name: impl Display) -> Fail {
    match fail {
        Fail::Sql(error) if crate::error::unique(&error) => {
            Error::Exists { what: format!("{noun} {name}") }.into()
        }
        other => other,
    }
}

/// Refuses a save made from an older edition. Without one the newest is changed.
pub(crate) fn fresh(row: &AnyRow, what: impl Display, edition: Option<i64>) -> Result<(), Fail> {
    let now = row.int("edition")?;
    if edition.is_none_or(|edition| edition == now) {
        return Ok(());
    }
    let (by, at) = (row.text("changed_by")?, row.time("changed_at")?);
    Err(Error::Stale { what: what.to_string(), by, at, edition: now }.into())
}

/// Writes the audit line of a person's change.
pub(crate) async fn told(
    tx: &mut Tx<'_>,
    actor: &Actor,
    act: &'static str,
    subject: String,
    before: Option<&impl Serialize>,
    after: Option<&impl Serialize>,
) -> Result<(), Fail> {
    let before = before.map(|state| serde_json::to_value(state).unwrap_or_default());
    let after = after.map(|state| serde_json::to_value(state).unwrap_or_default());
    audit::append(tx, actor, Record { act, subject, before, after }).await
}

/// For what there was nothing before, or is nothing after.
pub(crate) const NO_STATE: Option<&Value> = None;

fn limits(row: &AnyRow) -> Result<Limits, Fail> {
    let limit = |column| -> Result<Limit, Fail> {
        Limit::new(row.int(column)?).map_err(|error| Error::Row { column, reason: error.to_string() }.into())
    };
    Ok(Limits {
        objects: limit("max_objects")?,
        bytes: limit("max_bytes")?,
        running_s: limit("max_running_s")?,
    })
}

/// The best that a configuration gave so far.
fn best(row: &AnyRow) -> Result<Option<Best>, Fail> {
    let (Some(objects), Some(bytes)) = (row.int_or_none("best_objects")?, row.int_or_none("best_bytes")?)
    else {
        return Ok(None);
    };
    let complete = row.int_or_none("best_complete")? == Some(1);
    Ok(Some(Best { objects: objects as u64, bytes: bytes as u64, complete }))
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

pub(crate) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// `*` and `?` of people as LIKE has them; its own signs stand for themselves (escaped by `\`).
fn like(pattern: &str) -> String {
    let mut like = String::with_capacity(pattern.len() + 2);
    for c in pattern.chars() {
        match c {
            '*' => like.push('%'),
            '?' => like.push('_'),
            '%' | '_' | '\\' => like.extend(['\\', c]),
            other => like.push(other),
        }
    }
    like
}

#[cfg(test)]
mod tests {
    #[test]
    fn peoples_wildcards_are_likes() {
        assert_eq!(super::like("a*b?c%d_e\\"), "a%b_c\\%d\\_e\\\\");
    }
}
