//! `grange access …`

use clap::{Args, Subcommand};
use grange_api::wire::collections::{AccessAnswer, AccessQuestion, NewAccessRule};
use grange_base::Period;
use serde_json::{Value, json};

use crate::cli::Common;
use crate::cmd::harvest::{list, told};
use crate::exit::{Exit, UsageError};
use crate::{context, output};

#[derive(Debug, Subcommand)]
pub(crate) enum AccessCommand {
    /// All access rules
    #[command(alias = "list")]
    Ls,
    /// Add a rule; the most specific one that fits a capture decides
    Add(Box<AddArgs>),
    /// Remove a rule
    Rm { id: i64 },
    /// Say whether somebody would see a capture, and else which rule hides it
    Test {
        url: String,
        #[arg(long, value_name = "NAME", default_value = "archive")]
        collection: String,
        /// When it was captured, 1 to 14 digits [default: now]
        #[arg(long, value_name = "TIME")]
        captured: Option<String>,
        #[arg(long, value_name = "TYPE")]
        mime: Option<String>,
        /// Where the reader sits
        #[arg(long, value_name = "ADDRESS")]
        from: Option<String>,
        /// Who the reader is
        #[arg(long, value_name = "NAME")]
        user: Option<String>,
    },
}

#[derive(Args, Debug)]
pub(crate) struct AddArgs {
    #[command(flatten)]
    decision: DecisionArgs,
    /// What it is about: a URL, made into a key [default: everything]
    #[arg(long, conflicts_with = "surt")]
    url: Option<String>,
    /// How the URL is meant: exact, prefix, host or domain
    #[arg(long = "match", value_name = "KIND", default_value = "prefix", requires = "url")]
    matches: String,
    /// What it is about: the beginning of keys, such as com,example)/private
    #[arg(long, value_name = "PREFIX")]
    surt: Option<String>,
    /// Only in this collection
    #[arg(long, value_name = "NAME")]
    collection: Option<String>,
    /// Only this MIME type; video/* is all video
    #[arg(long, value_name = "TYPE")]
    mime: Option<String>,
    /// Only captures from this time on, 1 to 14 digits
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only captures up to this time
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Why, for colleagues
    #[arg(long, default_value = "")]
    note: String,
}

#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
struct DecisionArgs {
    /// Show it to everybody
    #[arg(long)]
    allow: bool,
    /// Hide it from everybody; the message is shown to those who ask for it by name
    #[arg(long, value_name = "MESSAGE")]
    block: Option<String>,
    /// Hide it for so long after its capture, such as 365d
    #[arg(long, value_name = "PERIOD")]
    embargo: Option<Period>,
    /// Only for these networks, such as 192.0.2.0/24
    #[arg(long, value_name = "NETWORKS", value_delimiter = ',')]
    networks: Vec<String>,
    /// Only for these users; * is everybody who is signed in
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    users: Vec<String>,
}

impl DecisionArgs {
    fn decision(self) -> anyhow::Result<Value> {
        Ok(match self {
            Self { allow: true, .. } => json!("allow"),
            Self { block: Some(message), .. } => json!({ "block": { "message": message } }),
            Self { embargo: Some(period), .. } => json!({ "embargo": { "seconds": period.0.as_secs() } }),
            Self { networks, .. } if !networks.is_empty() => json!({ "networks": { "networks": networks } }),
            Self { users, .. } if !users.is_empty() => json!({ "users": { "users": users } }),
            _ => {
                return Err(
                    UsageError("say what the rule decides, such as --block MESSAGE".to_owned()).into()
                );
            }
        })
    }
}

pub(crate) async fn run(common: &Common, command: AccessCommand) -> anyhow::Result<Exit> {
    let client = context::client(common).await?;
    match command {
        AccessCommand::Ls => {
            let rows: Vec<Value> = client.get("/access").await?;
            list(
                common,
                &rows,
                [
                    ("ID", "id"),
                    ("KEYS", "rule.surt_prefix"),
                    ("COLLECTION", "rule.collection"),
                    ("MIME", "rule.mime"),
                    ("DECISION", "rule.decision"),
                    ("NOTE", "note"),
                ],
            )?;
        }
        AccessCommand::Add(args) => {
            let args = *args;
            let new = NewAccessRule {
                matches: args.url.is_some().then_some(args.matches),
                surt_prefix: args.surt,
                url: args.url,
                collection: args.collection,
                mime: args.mime,
                captured_from: args.since,
                captured_to: args.until,
                decision: args.decision.decision()?,
                note: args.note,
            };
            let made: Vec<Value> = client.post("/access", &new).await?;
            let ids: Vec<String> = made.iter().map(|row| row["id"].to_string()).collect();
            told(common, &json!(made), &format!("Added access rule {}.", ids.join(", ")))?;
        }
        AccessCommand::Rm { id } => {
            client.delete(&format!("/access/{id}")).await?;
            told(common, &json!({ "removed": id }), &format!("Removed access rule {id}."))?;
        }
        AccessCommand::Test { url, collection, captured, mime, from, user } => {
            let asked = AccessQuestion { url, collection, captured, mime, address: from, user };
            let answer: AccessAnswer = client.post("/access-test", &asked).await?;
            if common.json {
                output::json(&answer)?;
            } else {
                match (answer.rule, &answer.message) {
                    (None, _) => println!("visible"),
                    (Some(rule), Some(message)) => println!("hidden by rule {rule}: {message}"),
                    (Some(rule), None) => println!("hidden by rule {rule}"),
                }
            }
        }
    }
    Ok(Exit::Ok)
}
