//! `grange harvests …`

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Subcommand;
use grange_api::client::segment;
use grange_api::wire::harvests::{Active, EventSeeds, HarvestEdit, Members, NewHarvest};
use grange_base::Size;
use grange_model::harvest::domain::default_template;
use grange_model::harvest::{ChannelName, DomainName, HarvestKind, Limits, Name};
use serde_json::{Value, json};

use super::{LimitArgs, list, read_file, shown, text, told};
use crate::cli::Common;
use crate::exit::Exit;
use crate::{context, output};

#[derive(Debug, Subcommand)]
pub(crate) enum HarvestsCommand {
    /// All harvests
    Ls {
        /// selective or snapshot [default: both]
        #[arg(long)]
        kind: Option<HarvestKind>,
    },
    /// A harvest
    Show { name: String },
    /// Make a harvest
    #[command(subcommand)]
    Create(CreateCommand),
    /// Change a harvest
    Set {
        name: String,
        #[arg(long)]
        comments: Option<String>,
        #[arg(long)]
        audience: Option<String>,
        #[arg(long)]
        schedule: Option<Name>,
        #[arg(long)]
        channel: Option<ChannelName>,
        /// The time of the next run
        #[arg(long, value_name = "TIME")]
        next: Option<jiff::Timestamp>,
        /// A file with a crawler trap (regular expression) per line
        #[arg(long, value_name = "FILE")]
        traps: Option<PathBuf>,
        #[command(flatten)]
        limits: LimitArgs,
    },
    /// Put a harvest into service; a snapshot runs at once
    Activate { name: String },
    /// Take a harvest out of service
    Deactivate { name: String },
    /// What the next run would amount to: domains, jobs, objects, bytes
    Preview { name: String },
    /// Add domains, or DOMAIN/CONFIGURATION, to a selective harvest
    Add {
        name: String,
        #[arg(required = true)]
        domains: Vec<String>,
        /// Make domains that are not there
        #[arg(long)]
        create: bool,
    },
    /// Take domains, or DOMAIN/CONFIGURATION, out of a selective harvest
    Remove {
        name: String,
        #[arg(required = true)]
        domains: Vec<String>,
    },
    /// Add the seeds of a file to a selective harvest; domains and configurations are made as needed
    AddSeeds {
        name: String,
        file: PathBuf,
        #[arg(long)]
        template: Option<Name>,
        #[command(flatten)]
        limits: LimitArgs,
    },
    /// The configurations of a selective harvest
    Domains { name: String },
    /// The runs of a harvest
    Runs { name: String },
}

#[derive(Debug, Subcommand)]
pub(crate) enum CreateCommand {
    /// Chosen domains by a schedule
    Selective {
        name: Name,
        #[arg(long)]
        schedule: Name,
        /// A domain, or DOMAIN/CONFIGURATION; made if it is not there; may be given several times
        #[arg(long = "domain", value_name = "DOMAIN")]
        domains: Vec<String>,
        #[arg(long)]
        channel: Option<ChannelName>,
        #[arg(long, default_value = "")]
        comments: String,
        #[arg(long, default_value = "")]
        audience: String,
        /// Put it into service, with the first run now
        #[arg(long)]
        now: bool,
        /// Put it into service, with the first run by the schedule
        #[arg(long)]
        activate: bool,
    },
    /// Every domain, once
    Snapshot {
        name: Name,
        #[command(flatten)]
        limits: LimitArgs,
        /// Only domains that this earlier snapshot did not complete
        #[arg(long, value_name = "NAME")]
        continues: Option<Name>,
        #[arg(long)]
        channel: Option<ChannelName>,
        #[arg(long, default_value = "")]
        comments: String,
        #[arg(long, default_value = "")]
        audience: String,
        /// Put it into service: it runs at once
        #[arg(long)]
        activate: bool,
    },
}

pub(crate) async fn run(common: &Common, command: HarvestsCommand) -> anyhow::Result<Exit> {
    let client = context::client(common).await?;
    let at = |name: &str, below: &str| format!("/harvests/{}{below}", segment(name));
    match command {
        HarvestsCommand::Ls { kind } => {
            let of = kind.map(|kind| format!("?kind={kind}")).unwrap_or_default();
            let rows: Vec<Value> = client.get(&format!("/harvests{of}")).await?;
            let columns = [
                ("NAME", "name"),
                ("KIND", "kind"),
                ("ACTIVE", "active"),
                ("RUNS", "runs"),
                ("NEXT", "next_at"),
                ("SCHEDULE", "schedule"),
                ("COMMENTS", "comments"),
            ];
            list(common, &rows, columns)?;
        }
        HarvestsCommand::Show { name } => shown(common, &client.get(&at(&name, "")).await?)?,
        HarvestsCommand::Create(create) => return self::create(common, create).await,
        HarvestsCommand::Set { name, comments, audience, schedule, channel, next, traps, limits } => {
            let traps = traps.map(|file| read_file(&file)).transpose()?;
            let limits = limits.change_of(&client.get(&at(&name, "")).await?)?;
            let edit = HarvestEdit {
                comments,
                audience,
                schedule,
                channel,
                limits,
                traps: traps.map(|text| text.lines().map(str::to_owned).collect()),
                next_at: next,
                ..HarvestEdit::default()
            };
            let answer: Value = client.patch(&at(&name, ""), &edit).await?;
            told(common, &answer, &format!("Changed {name}."))?;
        }
        HarvestsCommand::Activate { name } => {
            let active = Active { active: true, edition: None };
            let answer: Value = client.put(&at(&name, "/active"), &active).await?;
            told(common, &answer, &next_run(&name, &answer))?;
        }
        HarvestsCommand::Deactivate { name } => {
            let active = Active { active: false, edition: None };
            let answer: Value = client.put(&at(&name, "/active"), &active).await?;
            told(common, &answer, &format!("{name} is out of service."))?;
        }
        HarvestsCommand::Preview { name } => {
            let preview: Value = client.get(&at(&name, "/preview")).await?;
            let bytes = Size(preview["expected_bytes"].as_u64().unwrap_or_default());
            let sentence = format!(
                "{} domains in {} jobs; expected {} objects and {bytes}.",
                preview["domains"], preview["jobs"], preview["expected_objects"]
            );
            told(common, &preview, &sentence)?;
        }
        HarvestsCommand::Add { name, domains, create } => {
            let answer: Value = client.post(&at(&name, "/domains"), &Members { domains, create }).await?;
            let unknown = answer["unknown"].as_array().is_some_and(|unknown| !unknown.is_empty());
            let sentence = format!("{} added, {} were there before.", answer["added"], answer["already"]);
            told(common, &answer, &sentence)?;
            if unknown {
                errln!("Not there, and not made without --create: {}", answer["unknown"]);
                return Ok(Exit::Partial);
            }
        }
        HarvestsCommand::Remove { name, domains } => {
            let members = Members { domains, create: false };
            let answer: Value = client.post(&at(&name, "/domains/remove"), &members).await?;
            told(common, &answer, &format!("{} taken out.", answer["removed"]))?;
        }
        HarvestsCommand::AddSeeds { name, file, template, limits } => {
            let template = template.unwrap_or_else(default_template);
            let seeds = EventSeeds { seeds: read_file(&file)?, template, limits: limits.limits() };
            let answer: Value = client.post(&at(&name, "/seeds"), &seeds).await?;
            let added = &answer["added"];
            let sentence = format!(
                "{} configurations added, {} domains made.",
                added["added"], added["domains_created"]
            );
            told(common, &answer, &sentence)?;
            let bad = answer["bad"].as_array().cloned().unwrap_or_default();
            for line in &bad {
                errln!("line {}: {}: {}", line["line"], text(&line["text"]), text(&line["reason"]));
            }
            return Ok(if bad.is_empty() { Exit::Ok } else { Exit::Partial });
        }
        HarvestsCommand::Domains { name } => {
            let rows: Vec<Value> = client.get(&at(&name, "/domains")).await?;
            list(common, &rows, [("DOMAIN", "domain"), ("CONFIGURATION", "configuration")])?;
        }
        HarvestsCommand::Runs { name } => {
            let rows: Vec<Value> = client.get(&at(&name, "/runs")).await?;
            let columns = [
                ("RUN", "number"),
                ("DUE", "due_at"),
                ("JOBS", "jobs"),
                ("DONE", "jobs_done"),
                ("FAILED", "jobs_failed"),
                ("OBJECTS", "objects"),
                ("BYTES", "bytes"),
                ("SKIPPED BEFORE", "skipped"),
            ];
            list(common, &rows, columns)?;
        }
    }
    Ok(Exit::Ok)
}

async fn create(common: &Common, command: CreateCommand) -> anyhow::Result<Exit> {
    let client = context::client(common).await?;
    let mut new = NewHarvest {
        name: default_template(),
        kind: HarvestKind::Selective,
        comments: String::new(),
        audience: String::new(),
        schedule: None,
        channel: None,
        limits: Limits::NONE,
        continues: None,
        traps: Vec::new(),
        fields: BTreeMap::new(),
    };
    let (domains, start) = match command {
        CreateCommand::Selective { name, schedule, domains, channel, comments, audience, now, activate } => {
            let schedule = Some(schedule);
            new = NewHarvest { name, schedule, channel, comments, audience, ..new };
            (
                domains,
                if now {
                    Start::Now
                } else if activate {
                    Start::BySchedule
                } else {
                    Start::Later
                },
            )
        }
        CreateCommand::Snapshot { name, limits, continues, channel, comments, audience, activate } => {
            let (kind, limits) = (HarvestKind::Snapshot, limits.limits());
            new = NewHarvest { name, kind, limits, continues, channel, comments, audience, ..new };
            (Vec::new(), if activate { Start::BySchedule } else { Start::Later })
        }
    };
    // Before anything is made: a harvest without its domains is not what was asked for.
    for domain in &domains {
        domain.split('/').next().unwrap_or_default().parse::<DomainName>()?;
    }
    let name = new.name.to_string();
    let at = |below: &str| format!("/harvests/{}{below}", segment(&name));
    let mut answer: Value = client.post("/harvests", &new).await?;
    if !domains.is_empty() {
        let _: Value = client.post(&at("/domains"), &Members { domains, create: true }).await?;
    }
    answer = match start {
        Start::Now => client.post(&at("/now"), &json!({})).await?,
        Start::BySchedule => client.put(&at("/active"), &Active { active: true, edition: None }).await?,
        Start::Later if new.kind == HarvestKind::Selective => client.get(&at("")).await?,
        Start::Later => answer,
    };
    if common.json {
        output::json(&answer)?;
    } else {
        outln!("Created the {} harvest {name}. {}", new.kind, next_run(&name, &answer));
    }
    Ok(Exit::Ok)
}

/// When a new harvest begins.
enum Start {
    Now,
    BySchedule,
    Later,
}

fn next_run(name: &str, harvest: &Value) -> String {
    match (harvest["active"].as_bool(), &harvest["next_at"]) {
        (Some(true), Value::Null) => format!("{name} is in service, but no run is due any more."),
        (Some(true), at) => format!("Its next run is due at {}.", text(at)),
        _ => format!("It is out of service: `grange harvests activate {name}` changes that."),
    }
}
