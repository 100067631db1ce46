//! Recurring harvests.

use grange_api::wire::oai::ScheduleEdit;
use grange_model::harvest::{Every, Unit};
use grange_model::oai::{RecurringId, RepositoryId};
use serde_json::{Value, json};

use super::harvest::SpecArgs;
use super::query;
use crate::cli::Common;
use crate::cmd::harvest::{list as table, told};
use crate::context;
use crate::exit::Exit;

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
