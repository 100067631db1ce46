//! `grange oai …`: harvesting metadata.

mod harvest;
mod records;
mod repositories;
mod schedules;

use clap::Subcommand;
use grange_model::oai::{HistoryId, OaiJobId, Outcome, RecurringId, RepositoryId};

use crate::cli::Common;
use crate::exit::Exit;

#[derive(Debug, Subcommand)]
pub(crate) enum OaiCommand {
    /// The repositories
    Repos,
    /// A repository with its formats and sets
    Show { id: RepositoryId },
    /// Add a repository by its base URL; all else is asked of it
    Add {
        #[arg(value_name = "BASEURL")]
        base_url: String,
        #[command(flatten)]
        rules: repositories::RuleArgs,
    },
    /// Add every repository of a list: ListFriends, a friends container, or a base URL per line
    Import {
        /// A file or a URL; - reads standard input
        list: String,
    },
    /// Change how a repository is treated
    Set {
        id: RepositoryId,
        #[command(flatten)]
        rules: repositories::RuleArgs,
    },
    /// Ask a repository again who it is
    Refresh { id: RepositoryId },
    /// Forget a repository and its records; files and history stay
    Rm { id: RepositoryId },
    /// Harvest a repository now
    Harvest(harvest::HarvestArgs),
    /// Harvests that wait or run
    Jobs {
        /// Only of this repository
        #[arg(long, value_name = "ID")]
        repository: Option<RepositoryId>,
    },
    /// Delete a harvest; one that runs is stopped first
    Stop { job: OaiJobId },
    /// Harvest a repository again and again
    Schedule(schedules::ScheduleArgs),
    /// Change a schedule
    Reschedule(schedules::RescheduleArgs),
    /// The schedules
    Schedules {
        /// Only of this repository
        #[arg(long, value_name = "ID")]
        repository: Option<RepositoryId>,
    },
    /// Delete a schedule
    Unschedule { id: RecurringId },
    /// How harvests ended, newest first
    History {
        /// Only of this repository
        #[arg(long, value_name = "ID")]
        repository: Option<RepositoryId>,
        /// Only of this harvest
        #[arg(long)]
        job: Option<OaiJobId>,
        /// success, failed, incomplete or warning
        #[arg(long)]
        outcome: Option<Outcome>,
        #[arg(long, default_value_t = 50)]
        limit: u32,
        /// Delete these lines instead
        #[arg(long, value_name = "LINE")]
        delete: Vec<HistoryId>,
    },
    /// Filter files
    #[command(subcommand)]
    Filter(records::FilterCommand),
    /// All records of a repository on standard output
    Export(records::ExportArgs),
    /// Serve what was harvested over OAI-PMH
    Serve(records::ServeArgs),
}

pub(crate) async fn run(common: &Common, command: OaiCommand) -> anyhow::Result<Exit> {
    match command {
        OaiCommand::Repos => repositories::list(common).await,
        OaiCommand::Show { id } => repositories::show(common, id).await,
        OaiCommand::Add { base_url, rules } => repositories::add(common, &base_url, &rules).await,
        OaiCommand::Import { list } => repositories::import(common, &list).await,
        OaiCommand::Set { id, rules } => repositories::set(common, id, &rules).await,
        OaiCommand::Refresh { id } => repositories::refresh(common, id).await,
        OaiCommand::Rm { id } => repositories::remove(common, id).await,
        OaiCommand::Harvest(args) => harvest::harvest(common, args).await,
        OaiCommand::Jobs { repository } => harvest::jobs(common, repository).await,
        OaiCommand::Stop { job } => harvest::stop(common, job).await,
        OaiCommand::Schedule(args) => schedules::add(common, args).await,
        OaiCommand::Reschedule(args) => schedules::change(common, args).await,
        OaiCommand::Schedules { repository } => schedules::list(common, repository).await,
        OaiCommand::Unschedule { id } => schedules::delete(common, id).await,
        OaiCommand::History { repository, job, outcome, limit, delete } => {
            harvest::history(common, repository, job, outcome, limit, delete).await
        }
        OaiCommand::Filter(command) => records::filter(common, command),
        OaiCommand::Export(args) => records::export(common, args).await,
        OaiCommand::Serve(args) => records::serve(common, args).await,
    }
}

/// `?a=b&c=d` of what was said.
fn query(pairs: &[(&str, Option<String>)]) -> String {
    let said: Vec<_> = pairs
        .iter()
        .filter_map(|(name, value)| {
            Some(format!("{name}={}", grange_api::client::segment(value.as_deref()?)))
        })
        .collect();
    if said.is_empty() { String::new() } else { format!("?{}", said.join("&")) }
}
