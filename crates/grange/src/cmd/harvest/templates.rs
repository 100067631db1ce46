//! `grange templates …`

use std::path::PathBuf;

use clap::Subcommand;
use grange_api::client::segment;
use grange_api::wire::harvests::{Active, TemplateEdit};
use serde_json::Value;

use super::{list, read_file, told};
use crate::cli::Common;
use crate::exit::Exit;
use crate::{context, output};

#[derive(Debug, Subcommand)]
pub(crate) enum TemplatesCommand {
    /// All templates
    Ls,
    /// The text of a template
    Show {
        name: String,
        /// An earlier version [default: the newest]
        #[arg(long)]
        version: Option<u32>,
    },
    /// Keep a file as the newest version of a template; - reads standard input
    Put {
        name: String,
        file: PathBuf,
        #[arg(long, default_value = "")]
        comments: String,
    },
    /// Offer a template for new configurations
    Activate { name: String },
    /// Offer it no longer
    Deactivate { name: String },
}

pub(crate) async fn run(common: &Common, command: TemplatesCommand) -> anyhow::Result<Exit> {
    let client = context::client(common).await?;
    let at = |name: &str| format!("/templates/{}", segment(name));
    match command {
        TemplatesCommand::Ls => {
            let rows: Vec<Value> = client.get("/templates").await?;
            let columns =
                [("NAME", "name"), ("VERSION", "version"), ("ACTIVE", "active"), ("CHANGED", "changed_at")];
            list(common, &rows, columns)?;
        }
        TemplatesCommand::Show { name, version } => {
            let of = version.map(|version| format!("?version={version}")).unwrap_or_default();
            let template: Value = client.get(&format!("{}{of}", at(&name))).await?;
            if common.json {
                output::json(&template)?;
            } else {
                out!("{}", template["text"].as_str().unwrap_or_default());
            }
        }
        TemplatesCommand::Put { name, file, comments } => {
            let edit = TemplateEdit { text: read_file(&file)?, comments };
            let answer: Value = client.put(&at(&name), &edit).await?;
            told(common, &answer, &format!("Kept version {} of {name}.", answer["version"]))?;
        }
        TemplatesCommand::Activate { name } => {
            let answer: Value = client.patch(&at(&name), &Active { active: true, edition: None }).await?;
            told(common, &answer, &format!("{name} is offered for new configurations."))?;
        }
        TemplatesCommand::Deactivate { name } => {
            let answer: Value = client.patch(&at(&name), &Active { active: false, edition: None }).await?;
            told(common, &answer, &format!("{name} is no longer offered for new configurations."))?;
        }
    }
    Ok(Exit::Ok)
}
