//! Recurring harvests.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use grange_api::wire::oai::ScheduleEdit;
use grange_model::harvest::{Every, Unit};
use grange_model::oai::{HarvestSpec, RecurringId, RecurringJob, RepositoryId, Validation};
use serde_json::{Value, json};

use super::harvest::SpecArgs;
use super::query;
use crate::cli::Common;
use crate::cmd::harvest::{list as table, read_file, told};
use crate::context;
use crate::exit::{Exit, UsageError};

#[derive(Debug, clap::Args)]
pub(crate) struct ScheduleArgs {
    /// The repository
    id: RepositoryId,
    /// minute, hour, day, week or month [default: once]
    #[arg(long, value_name = "UNIT")]
    every: Option<Unit>,
    /// How many units lie between two harvests
    #[arg(long, default_value_t = 1, requires = "every")]
    count: u32,
    /// The first harvest is not before this time [default: now]
    #[arg(long, value_name = "TIME")]
    starts: Option<jiff::Timestamp>,
    /// No harvest begins after this time [default: for ever]
    #[arg(long, value_name = "TIME")]
    ends: Option<jiff::Timestamp>,
    #[command(flatten)]
    what: SpecArgs,
}

pub(super) async fn add(common: &Common, args: ScheduleArgs) -> anyhow::Result<Exit> {
    let edit = ScheduleEdit {
        repository: args.id,
        spec: args.what.spec()?,
        starts_at: args.starts,
        ends_at: args.ends,
        every: args.every.map(|unit| Every { count: args.count, unit }),
        edition: None,
    };
    let made: Value = context::client(common).await?.post("/oai/schedules", &edit).await?;
    told(common, &made, &format!("Schedule {} is kept; a node with the role oai runs it.", made["id"]))?;
    Ok(Exit::Ok)
}

/// What is said changes; all else of the schedule stays.
#[derive(Debug, clap::Args)]
pub(crate) struct RescheduleArgs {
    /// The schedule
    id: RecurringId,
    /// minute, hour, day, week or month
    #[arg(long, value_name = "UNIT")]
    every: Option<Unit>,
    /// How many units lie between two harvests
    #[arg(long)]
    count: Option<u32>,
    /// The next harvest is not before this time
    #[arg(long, value_name = "TIME")]
    starts: Option<jiff::Timestamp>,
    /// No harvest begins after this time
    #[arg(long, value_name = "TIME")]
    ends: Option<jiff::Timestamp>,
    /// Whether only what changed is asked for
    #[arg(long, value_name = "BOOL")]
    incremental: Option<bool>,
    /// strict, very-strict or loose
    #[arg(long)]
    validation: Option<Validation>,
    /// A filter file; an empty name takes the filter away
    #[arg(long, value_name = "FILE")]
    filter: Option<OsString>,
    /// A normalize file; an empty name takes it away
    #[arg(long, value_name = "FILE")]
    normalize: Option<OsString>,
}

pub(super) async fn change(common: &Common, args: RescheduleArgs) -> anyhow::Result<Exit> {
    let client = context::client(common).await?;
    let all: Vec<RecurringJob> = client.get("/oai/schedules").await?;
    let Some(was) = all.into_iter().find(|one| one.id == args.id) else {
        return Err(UsageError(format!("there is no schedule {}; see grange oai schedules", args.id)).into());
    };
    let every = match (args.every, args.count, was.every) {
        (None, None, was) => was,
        (unit, count, was) => {
            let unit = unit.or(was.map(|every| every.unit));
            let unit =
                unit.ok_or_else(|| UsageError("--count needs --every: it is not repeated yet".to_owned()))?;
            Some(Every { count: count.or(was.map(|every| every.count)).unwrap_or(1), unit })
        }
    };
    let file = |said: Option<&OsStr>, was: Option<String>| match said {
        None => Ok(was),
        Some(path) if path.is_empty() => Ok(None),
        Some(path) => read_file(Path::new(path)).map(Some),
    };
    let spec = HarvestSpec {
        incremental: args.incremental.unwrap_or(was.spec.incremental),
        validation: args.validation.unwrap_or(was.spec.validation),
        filter: file(args.filter.as_deref(), was.spec.filter)?,
        normalize: file(args.normalize.as_deref(), was.spec.normalize)?,
        ..was.spec
    };
    let edit = ScheduleEdit {
        repository: was.repository,
        spec,
        // With its start as it was, a harvest that is planned stays planned for its time.
        starts_at: args.starts.or(Some(was.starts_at)),
        ends_at: args.ends.or(was.ends_at),
        every,
        edition: Some(was.edition),
    };
    let made: Value = client.put(&format!("/oai/schedules/{}", args.id), &edit).await?;
    told(common, &made, &format!("Schedule {} is changed.", args.id))?;
    Ok(Exit::Ok)
}

pub(super) async fn list(common: &Common, repository: Option<RepositoryId>) -> anyhow::Result<Exit> {
    let query = query(&[("repository", repository.map(|id| id.to_string()))]);
    let rows: Vec<Value> = context::client(common).await?.get(&format!("/oai/schedules{query}")).await?;
    let columns = [
        ("ID", "id"),
        ("REPOSITORY", "repository"),
        ("PREFIX", "spec.prefix"),
        ("SET", "spec.set"),
        ("COUNT", "every.count"),
        ("EVERY", "every.unit"),
        ("INCREMENTAL", "spec.incremental"),
        ("STATE", "state"),
        ("FAILURES", "failures"),
    ];
    table(common, &rows, columns)?;
    Ok(Exit::Ok)
}

pub(super) async fn delete(common: &Common, id: RecurringId) -> anyhow::Result<Exit> {
    context::client(common).await?.delete(&format!("/oai/schedules/{id}")).await?;
    told(common, &json!({ "deleted": id }), &format!("Schedule {id} is deleted."))?;
    Ok(Exit::Ok)
}
