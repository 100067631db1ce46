//! `grange seeds …`

use std::path::PathBuf;

use clap::Subcommand;
use grange_api::client::segment;
use grange_api::wire::harvests::SeedsEdit;
use serde_json::{Value, json};

use super::{list, read_file, told};
use crate::cli::Common;
use crate::exit::{Exit, UsageError};
use crate::{context, output};

#[derive(Debug, Subcommand)]
pub(crate) enum SeedsCommand {
    /// The seed lists of a domain
    Ls { domain: String },
    /// The seeds of a list
    Show { domain: String, name: String },
    /// Make or replace a seed list from a file, one seed per line, # for comments; - reads standard input
    Put {
        domain: String,
        name: String,
        file: PathBuf,
        #[arg(long, default_value = "")]
        comments: String,
    },
    /// Delete a seed list that nothing uses
    Rm { domain: String, name: String },
}

pub(crate) async fn run(common: &Common, command: SeedsCommand) -> anyhow::Result<Exit> {
    let client = context::client(common).await?;
    let at = |domain: &str| format!("/domains/{}/seeds", segment(domain));
    match command {
        SeedsCommand::Ls { domain } => {
            let rows: Vec<Value> = client.get(&at(&domain)).await?;
            list(common, &rows, [("NAME", "name"), ("SEEDS", "active"), ("COMMENTS", "comments")])?;
        }
        SeedsCommand::Show { domain, name } => {
            let rows: Vec<Value> = client.get(&at(&domain)).await?;
            let found = rows.into_iter().find(|row| row["name"] == name.as_str());
            let found = found.ok_or_else(|| UsageError(format!("{domain} has no seed list \"{name}\"")))?;
            if common.json {
                output::json(&found)?;
            } else {
                outln!("{}", found["seeds"].as_str().unwrap_or_default());
            }
        }
        SeedsCommand::Put { domain, name, file, comments } => {
            let edit = SeedsEdit { seeds: read_file(&file)?, comments, edition: None };
            let answer: Value = client.put(&format!("{}/{}", at(&domain), segment(&name)), &edit).await?;
            told(common, &answer, &format!("Kept {} seeds in {name} of {domain}.", answer["active"]))?;
        }
        SeedsCommand::Rm { domain, name } => {
            client.delete(&format!("{}/{}", at(&domain), segment(&name))).await?;
            told(common, &json!({ "deleted": name }), &format!("Deleted the seed list {name} of {domain}."))?;
        }
    }
    Ok(Exit::Ok)
}
