//! `grange schedules …`

use clap::Subcommand;
use grange_api::client::segment;
use grange_api::wire::harvests::ScheduleEdit;
use grange_model::harvest::{At, Ends, Every, Name, Schedule, Unit};
use serde_json::{Value, json};

use super::{list, shown, told};
use crate::cli::Common;
use crate::context;
use crate::exit::{Exit, UsageError};

#[derive(Debug, Subcommand)]
pub(crate) enum SchedulesCommand {
    /// All schedules
    Ls,
    /// A schedule and the dates it would run at from now
    Show { name: String },
    /// Make or replace a schedule
    Put(PutArgs),
    /// Delete a schedule that no harvest uses
    Rm { name: String },
}

#[derive(Debug, clap::Args)]
pub(crate) struct PutArgs {
    name: Name,
    /// How many units lie between two runs
    #[arg(long, default_value_t = 1)]
    every: u32,
    /// minute, hour, day, week or month
    #[arg(long)]
    unit: Unit,
    /// The time of the clock, as HH:MM, or :MM for hours [default: any time]
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
    /// 1 Monday to 7 Sunday, for weeks
    #[arg(long)]
    weekday: Option<u8>,
    /// 1 to 31, for months; shorter months run on their last day
    #[arg(long)]
    day: Option<u8>,
    /// The first run is not before this time [default: as soon as possible]
    #[arg(long, value_name = "TIME")]
    starts: Option<jiff::Timestamp>,
    /// The last run is not after this time [default: for ever]
    #[arg(long, value_name = "TIME", conflicts_with = "times")]
    until: Option<jiff::Timestamp>,
    /// How many runs in all [default: for ever]
    #[arg(long)]
    times: Option<u32>,
    /// The time zone whose clock counts
    #[arg(long, default_value = "UTC")]
    time_zone: String,
    #[arg(long, default_value = "")]
    comments: String,
}

pub(crate) async fn run(common: &Common, command: SchedulesCommand) -> anyhow::Result<Exit> {
    let client = context::client(common).await?;
    match command {
        SchedulesCommand::Ls => {
            let rows: Vec<Value> = client.get("/schedules").await?;
            let columns = [
                ("NAME", "name"),
                ("EVERY", "every.count"),
                ("UNIT", "every.unit"),
                ("AT", "at"),
                ("ENDS", "ends"),
                ("TIME ZONE", "time_zone"),
            ];
            list(common, &rows, columns)?;
        }
        SchedulesCommand::Show { name } => {
            let mut schedule: Value = client.get(&format!("/schedules/{}", segment(&name))).await?;
            schedule["dates"] = client.get(&format!("/schedules/{}/dates", segment(&name))).await?;
            shown(common, &schedule)?;
        }
        SchedulesCommand::Put(args) => {
            let name = args.name.clone();
            let edit = ScheduleEdit { schedule: schedule(args)?, edition: None };
            let answer: Value = client.put("/schedules", &edit).await?;
            told(common, &answer, &format!("Kept the schedule {name}."))?;
        }
        SchedulesCommand::Rm { name } => {
            client.delete(&format!("/schedules/{}", segment(&name))).await?;
            told(common, &json!({ "deleted": name }), &format!("Deleted the schedule {name}."))?;
        }
    }
    Ok(Exit::Ok)
}

fn schedule(args: PutArgs) -> anyhow::Result<Schedule> {
    let wrong = || UsageError("the time is HH:MM, or :MM for a schedule by the hour".to_owned());
    let at = match args.at {
        None => None,
        Some(text) => {
            let (hour, minute) = text.split_once(':').ok_or_else(wrong)?;
            let hour = if hour.is_empty() { None } else { Some(hour.parse().map_err(|_| wrong())?) };
            let minute = minute.parse().map_err(|_| wrong())?;
            Some(At { minute, hour, weekday: args.weekday, day: args.day })
        }
    };
    let ends = match (args.until, args.times) {
        (Some(until), _) => Ends::Until(until),
        (None, Some(times)) => Ends::Times(times),
        (None, None) => Ends::Forever,
    };
    Ok(Schedule {
        name: args.name,
        comments: args.comments,
        starts: args.starts,
        ends,
        every: Every { count: args.every, unit: args.unit },
        at,
        time_zone: args.time_zone,
    })
}
