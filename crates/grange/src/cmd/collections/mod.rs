//! `grange collections|index|access …`: what is indexed, and who may see it.

pub(crate) mod access;
mod import;
pub(crate) mod index;

use std::path::PathBuf;

use clap::Subcommand;
use grange_api::client::segment;
use serde_json::{Value, json};

use crate::cli::Common;
use crate::cmd::harvest::{list, told};
use crate::exit::Exit;
use crate::{context, output};

#[derive(Debug, Subcommand)]
pub(crate) enum CollectionsCommand {
    /// Take WARC, ARC, WACZ, CDX and CDXJ files, or folders of them, into a collection
    ///
    /// `s3://BUCKET/PREFIX` names files of a bucket of the settings (`index.buckets`). Files are registered where they lie and
    /// never changed or copied. Repeating the command goes on where it was cut
    /// off, and takes what is new.
    Import {
        /// The collection; made if there is none of that name
        name: String,
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<PathBuf>,
        /// Store them in the archive first (WARC and ARC only)
        #[arg(long)]
        store: bool,
        /// Register only; a node with the role indexer does the rest
        #[arg(long)]
        no_wait: bool,
    },
    /// All collections
    #[command(alias = "list")]
    Ls,
    /// One collection: its counts, and files with problems
    Show { name: String },
    /// Remove a collection and its index; files stay where they are
    Rm { name: String },
}

pub(crate) async fn run(common: &Common, command: CollectionsCommand) -> anyhow::Result<Exit> {
    match command {
        CollectionsCommand::Import { name, paths, store, no_wait } => {
            return import::run(common, &name, paths, store, no_wait).await;
        }
        CollectionsCommand::Ls => {
            let client = context::client(common).await?;
            let rows: Vec<Value> = client.get("/collections").await?;
            list(
                common,
                &rows,
                [
                    ("NAME", "name"),
                    ("CAPTURES", "files.captures"),
                    ("INDEXED", "files.indexed"),
                    ("WAITING", "files.waiting"),
                    ("FAILED", "files.failed"),
                    ("PROBLEMS", "files.problems"),
                ],
            )?;
        }
        CollectionsCommand::Show { name } => {
            let client = context::client(common).await?;
            let at = format!("/collections/{}", segment(&name));
            let mut shown: Value = client.get(&at).await?;
            let told = import::troubled(&client, &name).await?;
            shown["troubled"] = json!(told);
            if common.json {
                output::json(&shown)?;
            } else {
                import::print(&shown, &told);
            }
        }
        CollectionsCommand::Rm { name } => {
            let client = context::client(common).await?;
            client.delete(&format!("/collections/{}", segment(&name))).await?;
            drop(client);
            import::feed(common, &name, false).await?;
            told(
                common,
                &json!({ "removed": name }),
                &format!("Removed the collection {name}. Its files stay."),
            )?;
        }
    }
    Ok(Exit::Ok)
}
