//! `grange db …`

use grange_api::wire::system::{Backup, Database, NewBackup};
use grange_base::{Clock, Size};
use grange_node::data::{Access, DataFolder};

use crate::cli::{Common, DbCommand};
use crate::exit::{Exit, UsageError};
use crate::{context, output};

pub(super) async fn run(common: &Common, command: DbCommand) -> anyhow::Result<Exit> {
    match command {
        DbCommand::Status => status(common).await,
        DbCommand::Migrate => migrate(common).await,
        DbCommand::Backup { path } => {
            // The node may run in another folder: the path means what it means to whoever typed it.
            let path = path.map(std::path::absolute).transpose()?.map(|path| path.display().to_string());
            let client = context::client(common).await?;
            let backup: Backup = client.post("/database/backups", &NewBackup { path }).await?;
            if common.json {
                output::json(&backup)?;
            } else {
                println!("Copied {} to {}.", Size(backup.bytes), backup.path);
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
        println!("{} ({})", database.place, database.engine);
        println!("tables at version {} of {}", database.schema_version, database.newest_version);
    }
    Ok(Exit::Ok)
}

/// Works on the database itself: an outdated one cannot be opened for anything else.
async fn migrate(common: &Common) -> anyhow::Result<Exit> {
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
        println!("The tables are up to date already.");
    } else {
        println!("Brought the tables up to date: {}.", taken.join(", "));
    }
    Ok(Exit::Ok)
}
