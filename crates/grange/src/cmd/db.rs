//! `grange db …`

use grange_api::wire::system::{Backup, Database, NewBackup};
use grange_base::{Clock, Size};
use grange_model::Actor;
use grange_node::data::{Access, DataFolder};
use grange_node::restore::settle_restored;

use crate::cli::{Common, DbCommand};
use crate::exit::{Exit, UsageError};
use crate::{context, output};

pub(super) async fn run(common: &Common, command: DbCommand) -> anyhow::Result<Exit> {
    match command {
        DbCommand::Status => status(common).await,
        DbCommand::Migrate => migrate(common).await,
        DbCommand::Restored => restored(common).await,
        DbCommand::Backup { path } => {
            // The node may run in another folder: the path means what it means to whoever typed it.
            let path = path.map(std::path::absolute).transpose()?.map(|path| path.display().to_string());
            let client = context::client(common).await?;
            let backup: Backup = client.post("/database/backups", &NewBackup { path }).await?;
            if common.json {
                output::json(&backup)?;
            } else {
                outln!("Copied {} to {}.", Size(backup.bytes), backup.path);
            }
            Ok(Exit::Ok)
        }
    }
}

async fn status(common: &Common) -> anyhow::Result<Exit> {
    let database: Database = context::client(common).await?.get("/database").await?;
    if common.json {
        output::json(&database)?;
    } else {
        outln!("{} ({})", database.place, database.engine);
        outln!("tables at version {} of {}", database.schema_version, database.newest_version);
    }
    Ok(Exit::Ok)
}

/// Works on the database itself: no node may run on what was not looked at. Exit code 5 when somebody comes in.
async fn restored(common: &Common) -> anyhow::Result<Exit> {
    context::require_local(common, "settle a restored database")?;
    let settings = context::load(common)?.settings;
    let database = grange_node::open::database_file(&settings, &common.data);
    let folder = match DataFolder::access(&common.data, database.as_deref()).await? {
        Access::Direct(folder) => folder,
        Access::Running(node) => {
            let text = format!("a node runs here (process {}); stop all nodes before that", node.pid);
            return Err(UsageError(text).into());
        }
    };
    let actor = Actor::new(crate::person::name(), "cli");
    let (sessions_ended, came_back) = settle_restored(&settings, folder.path(), &actor).await?;
    if common.json {
        output::json(&serde_json::json!({ "sessions_ended": sessions_ended, "came_back": came_back }))?;
    } else {
        outln!("{sessions_ended} sessions ended.");
        super::restore::print_came_back(&came_back);
        outln!("Start the nodes, then run `grange archive rebuild` and `grange audit run --wait`.");
    }
    Ok(if came_back.is_empty() { Exit::Ok } else { Exit::Partial })
}

/// Works on the database itself: an outdated one cannot be opened for anything else.
async fn migrate(common: &Common) -> anyhow::Result<Exit> {
    context::require_local(common, "migrate the database")?;
    let settings = context::load(common)?.settings;
    let database = grange_node::open::database_file(&settings, &common.data);
    let folder = match DataFolder::access(&common.data, database.as_deref()).await? {
        Access::Direct(folder) => folder,
        Access::Running(node) => {
            let text = format!("a node runs here (process {}); stop it before migrating", node.pid);
            return Err(UsageError(text).into());
        }
    };
    let taken = grange_node::open::migrate(&settings, folder.path(), &Clock::system()).await?;
    if common.json {
        output::json(&serde_json::json!({ "taken": taken }))?;
    } else if taken.is_empty() {
        outln!("The tables are up to date already.");
    } else {
        outln!("Brought the tables up to date: {}.", taken.join(", "));
    }
    Ok(Exit::Ok)
}
