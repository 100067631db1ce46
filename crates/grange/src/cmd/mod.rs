//! One file per noun; each function is one command.

pub(crate) mod archive;
pub(crate) mod cdx;
mod changes;
pub(crate) mod collections;
pub(crate) mod crawl;
mod db;
mod demo;
mod demo_archive;
mod demo_files;
mod demo_harvest;
pub(crate) mod harvest;
mod init;
mod nodes;
pub(crate) mod oai;
mod papers;
pub(crate) mod replay;
pub(crate) mod restore;
mod settings;
pub(crate) mod swap;
pub(crate) mod testkit;
mod up;
mod users;
pub(crate) mod warc;

use crate::cli::{Cli, Command};
use crate::exit::Exit;

pub(crate) async fn run(cli: Cli) -> anyhow::Result<Exit> {
    let common = &cli.common;
    match cli.command {
        Command::Up { roles } => Box::pin(up::run(common, roles)).await,
        Command::Init => init::run(common).await,
        Command::Demo { once } => Box::pin(demo::run(common, once)).await,
        Command::Nodes { command } => nodes::run(common, command).await,
        Command::Findings { all } => nodes::findings(common, all).await,
        Command::Db(command) => db::run(common, command).await,
        Command::Users(command) => users::run(common, command).await,
        Command::Changes { who, subject, before, limit } => {
            changes::run(common, who, subject, before, limit).await
        }
        Command::Store(args) => archive::store(common, args).await,
        Command::Get(args) => archive::get(common, args).await,
        Command::Record(args) => archive::record(common, args).await,
        Command::Files(command) => archive::files(common, command).await,
        Command::Replicas(command) => archive::replicas(common, command).await,
        Command::Audit(command) => archive::audit(common, command).await,
        Command::Repair(args) => archive::repair(common, args).await,
        Command::Archive(command) => archive::archive(common, command).await,
        Command::Restore(args) => Box::pin(restore::run(common, args)).await,
        Command::Collections(command) => collections::run(common, command).await,
        Command::Index(command) => collections::index::run(common, command).await,
        Command::Access(command) => collections::access::run(common, command).await,
        Command::Crawl(args) => crawl::run(common, *args).await,
        Command::Replay(args) => replay::run(common, args).await,
        Command::Domains(command) => harvest::domains::run(common, command).await,
        Command::Seeds(command) => harvest::seeds::run(common, command).await,
        Command::Schedules(command) => harvest::schedules::run(common, command).await,
        Command::Templates(command) => harvest::templates::run(common, command).await,
        Command::Harvests(command) => harvest::harvests::run(common, command).await,
        Command::Jobs(command) => harvest::jobs::run(common, command).await,
        Command::Channels(command) => harvest::channels::run(common, command).await,
        Command::Traps(command) => harvest::traps::run(common, command).await,
        Command::Oai(command) => oai::run(common, *command).await,
        Command::Warc(command) => warc::run(common, command),
        Command::Cdx(command) => cdx::run(common, command).await,
        Command::Swap(command) => swap::run(common, command).await,
        Command::Testkit(command) => testkit::run(common, command).await,
        Command::Settings(command) => settings::run(common, &command),
        Command::Completions { shell } => Ok(papers::completions(shell)),
        Command::Man => papers::man(),
    }
}
