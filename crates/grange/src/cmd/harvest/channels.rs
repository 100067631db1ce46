//! `grange channels …`

use clap::Subcommand;
use grange_api::client::segment;
use grange_api::wire::harvests::NewChannel;
use grange_model::harvest::{ChannelKind, ChannelName};
use serde_json::{Value, json};

use super::{list, told};
use crate::cli::Common;
use crate::context;
use crate::exit::Exit;

#[derive(Debug, Subcommand)]
pub(crate) enum ChannelsCommand {
    /// All channels, what waits in them and how many harvesters serve them
    Ls,
    /// Make a channel
    Create {
        name: ChannelName,
        /// focused or snapshot
        #[arg(long, default_value = "focused")]
        kind: ChannelKind,
        #[arg(long, default_value = "")]
        comments: String,
    },
    /// Make it the channel of harvests of its kind that name none
    Default { name: String },
    /// Delete a channel that nothing uses
    Rm { name: String },
    /// The harvesters and what they have
    Harvesters,
}

pub(crate) async fn run(common: &Common, command: ChannelsCommand) -> anyhow::Result<Exit> {
    let client = context::client(common).await?;
    match command {
        ChannelsCommand::Ls => {
            let rows: Vec<Value> = client.get("/channels").await?;
            let columns = [
                ("NAME", "name"),
                ("KIND", "kind"),
                ("DEFAULT", "default"),
                ("WAITING", "waiting"),
                ("HARVESTERS", "harvesters"),
                ("COMMENTS", "comments"),
            ];
            list(common, &rows, columns)?;
        }
        ChannelsCommand::Create { name, kind, comments } => {
            let _: Value =
                client.post("/channels", &NewChannel { name: name.clone(), kind, comments }).await?;
            told(common, &json!({ "created": name }), &format!("Created the channel {name}."))?;
        }
        ChannelsCommand::Default { name } => {
            let _: Value = client.post(&format!("/channels/{}/default", segment(&name)), &json!({})).await?;
            told(common, &json!({ "default": name }), &format!("{name} is the default of its kind."))?;
        }
        ChannelsCommand::Rm { name } => {
            client.delete(&format!("/channels/{}", segment(&name))).await?;
            told(common, &json!({ "deleted": name }), &format!("Deleted the channel {name}."))?;
        }
        ChannelsCommand::Harvesters => {
            let rows: Vec<Value> = client.get("/harvesters").await?;
            let columns = [
                ("NAME", "name"),
                ("HOST", "host"),
                ("CHANNELS", "channels"),
                ("STATE", "state"),
                ("ALIVE", "alive"),
                ("JOBS", "jobs"),
                ("SEEN", "seen_at"),
            ];
            list(common, &rows, columns)?;
        }
    }
    Ok(Exit::Ok)
}
