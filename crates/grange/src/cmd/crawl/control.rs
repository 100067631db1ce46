//! Orders to a crawl that runs in a folder.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use grange_crawl::engine::{Order, ask};
use grange_crawl::job::LimitsChange;
use serde_json::Value;

use super::job::{bytes, objects, seconds, with_scheme};
use super::seed_addresses;
use crate::cli::Common;
use crate::exit::Exit;
use crate::output;

#[derive(Debug, Subcommand)]
pub(crate) enum ControlCommand {
    /// Give an order to a crawl that runs
    Control(ControlArgs),
}

#[derive(Args, Debug)]
pub(crate) struct ControlArgs {
    /// The folder of the crawl
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    #[command(subcommand)]
    order: OrderCommand,
}

#[derive(Debug, Subcommand)]
enum OrderCommand {
    /// How it goes
    Status,
    /// Fetch nothing new
    Pause,
    /// Go on
    Resume,
    /// End in order; what is queued can be resumed
    Stop,
    /// Close the chunk being written and begin another
    Rotate,
    /// Start from more URLs
    AddSeeds { urls: Vec<String> },
    /// Take no URL that matches as a whole, and drop those that wait
    Reject { regex: String },
    /// Try hosts again at once that could not be reached: one queue, or all
    Revive { queue: Option<String> },
    /// Drop what waits and matches as a whole
    Delete { regex: String },
    /// Change the limits that are named, of the whole crawl or of a domain; -1 removes one
    #[command(group = clap::ArgGroup::new("limits").required(true).multiple(true))]
    SetLimits {
        /// Change the limits of this domain instead of those of the whole crawl
        #[arg(long)]
        domain: Option<String>,
        /// Documents
        #[arg(long, group = "limits", allow_hyphen_values = true, value_parser = objects)]
        max_objects: Option<i64>,
        /// Bytes of responses, such as 500MB
        #[arg(long, group = "limits", allow_hyphen_values = true, value_parser = bytes)]
        max_bytes: Option<i64>,
        /// Running time, such as 2h
        #[arg(long, group = "limits", allow_hyphen_values = true, value_parser = seconds)]
        max_time: Option<i64>,
    },
    /// Multiply all waits between requests: 2 is half as fast, 0 does not wait at all
    SetPace { factor: f64 },
    /// The queues that hold anything
    Queues {
        /// After the one with this cursor
        #[arg(long)]
        after: Option<u32>,
        #[arg(long, default_value_t = 50)]
        limit: usize,
    },
    /// What waits in a queue
    Peek {
        queue: String,
        #[arg(long, default_value_t = 20)]
        limit: usize,
    },
    /// Drop what waits in a queue
    DeleteQueue { queue: String },
}

pub(super) async fn run(common: &Common, command: ControlCommand) -> anyhow::Result<Exit> {
    let ControlCommand::Control(ControlArgs { folder, order }) = command;
    let who = std::env::var("USER").unwrap_or_else(|_| "operator".to_owned());
    let mut order = Order::from(order);
    if let Order::AddSeeds { urls, endpoints } = &mut order {
        for url in urls {
            endpoints.extend(seed_addresses::endpoints_of(url, true).await);
        }
        endpoints.sort_unstable();
        endpoints.dedup();
    }
    let answer = ask(&folder, &who, order).await?;
    if common.json {
        output::json(&answer)?;
    } else {
        tell(&answer);
    }
    Ok(Exit::Ok)
}

impl From<OrderCommand> for Order {
    fn from(command: OrderCommand) -> Order {
        match command {
            OrderCommand::Status => Order::Status,
            OrderCommand::Pause => Order::Pause,
            OrderCommand::Resume => Order::Resume,
            OrderCommand::Stop => Order::Stop,
            OrderCommand::Rotate => Order::Rotate,
            OrderCommand::AddSeeds { urls } => {
                let urls = urls.into_iter().map(with_scheme).collect();
                Order::AddSeeds { urls, endpoints: Vec::new() }
            }
            OrderCommand::Reject { regex } => Order::Reject { regex },
            OrderCommand::Revive { queue } => Order::Revive { queue },
            OrderCommand::Delete { regex } => Order::Delete { regex },
            OrderCommand::SetLimits { domain, max_objects, max_bytes, max_time } => {
                let limits = LimitsChange { max_objects, max_bytes, max_seconds: max_time };
                Order::SetLimits { domain, limits }
            }
            OrderCommand::SetPace { factor } => Order::SetPace { factor },
            OrderCommand::Queues { after, limit } => Order::Queues { after, limit },
            OrderCommand::Peek { queue, limit } => Order::Peek { queue, limit },
            OrderCommand::DeleteQueue { queue } => Order::DeleteQueue { queue },
        }
    }
}

/// One line per value, or per row.
fn tell(answer: &Value) {
    match answer {
        Value::Object(map) if map.is_empty() => outln!("done"),
        Value::Object(map) => {
            for (key, value) in map.iter().filter(|(_, value)| !value.is_array()) {
                outln!("{key}: {}", plain(value));
            }
        }
        Value::Array(rows) => {
            for row in rows {
                let cells: Vec<_> = row.as_object().into_iter().flatten().collect();
                let text: Vec<_> =
                    cells.iter().map(|(key, value)| format!("{key}={}", plain(value))).collect();
                outln!("{}", text.join(" "));
            }
        }
        other => outln!("{}", plain(other)),
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
