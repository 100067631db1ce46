//! `grange access …`

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use grange_api::wire::collections::{
    AccessAnswer, AccessImported, AccessQuestion, AccessRulePart, AccessTable, NewAccessRule,
};
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
    /// Add a rule; restrictions combine, and only an allow lifts them
    Add(Box<AddArgs>),
    /// Remove a rule
    Rm { id: i64 },
    /// Add the rules of a CSV file that are not there yet, or none of them
    Import {
        /// The table; its first line names the columns, as `access export` writes them
        file: PathBuf,
    },
    /// Print all rules as CSV
    Export,
    /// Report whether somebody would see a capture, and every rule that takes part
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
        #[arg(long = "as", alias = "user", value_name = "USER")]
        user: Option<String>,
    },
}

#[derive(Args, Debug)]
pub(crate) struct AddArgs {
    #[command(flatten)]
    decision: DecisionArgs,
    /// What it is about: a URL, made into keys
    #[arg(long, conflicts_with = "surt")]
    url: Option<String>,
    /// How the URL is meant: exact, prefix, host or domain [default: prefix; domain for *.HOST]
    #[arg(long = "match", value_name = "KIND", requires = "url")]
    matches: Option<String>,
    /// What it is about: the beginning of keys, such as com,example)/private
    #[arg(long, value_name = "PREFIX")]
    surt: Option<String>,
    /// The rule is about everything
    #[arg(long, conflicts_with_all = ["url", "surt"])]
    everything: bool,
    /// Only for these readers: staff, role:NAME, user:NAME or network:192.0.2.0/24 [default: everybody]
    #[arg(long = "for", value_name = "READERS", value_delimiter = ',')]
    audience: Vec<String>,
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
    /// Lift restrictions, for those whom --for names or for everybody
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

/// What the rule is called that nobody added.
const ALWAYS: &str = "default (documentation of crawls)";

/// Decision and readers of a rule as people write them.
fn put_in_words(row: &mut Value) {
    let words = |list: &Value| {
        let all = list.as_array().into_iter().flatten();
        all.map(|one| one.as_str().map_or_else(|| one.to_string(), ToOwned::to_owned))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let decision = &row["rule"]["decision"];
    let decided = match decision.as_object().and_then(|decision| decision.iter().next()) {
        None => decision.as_str().unwrap_or_default().to_owned(),
        Some((name, said)) => match name.as_str() {
            "block" => format!("block: {}", said["message"].as_str().unwrap_or_default()),
            "embargo" => {
                format!("embargo {}", Period::from_secs(said["seconds"].as_u64().unwrap_or_default()))
            }
            name => format!("{name} {}", words(&said[name])),
        },
    };
    let audience = words(&row["rule"]["audience"]);
    let exact = row["rule"]["exact"] == json!(true);
    let prefix = row["rule"]["surt_prefix"].as_str().unwrap_or_default();
    row["rule"]["surt_prefix"] =
        json!(if exact || prefix.is_empty() { prefix.to_owned() } else { format!("{prefix}*") });
    row["rule"]["decision"] = json!(decided);
    row["rule"]["audience"] = json!(if audience.is_empty() { "everybody".to_owned() } else { audience });
}

/// A rule may be there before its collection, so that nothing is shown between; a name that is mistyped meets nothing.
async fn note_unknown_collections(client: &grange_api::Client, rules: &[Value]) -> anyhow::Result<()> {
    let named: BTreeSet<&str> = rules.iter().filter_map(|row| row["rule"]["collection"].as_str()).collect();
    if named.is_empty() {
        return Ok(());
    }
    let rows: Vec<Value> = client.get("/collections").await?;
    let known: BTreeSet<&str> = rows.iter().filter_map(|row| row["name"].as_str()).collect();
    for name in named.iter().filter(|name| !known.contains(**name)) {
        let known = known.iter().copied().collect::<Vec<_>>().join(", ");
        errln!(
            "grange: no collection is called {name}: the rule holds when one is imported under that name (now there are: {known})"
        );
    }
    Ok(())
}

/// One rule and what it did, in a line.
fn explained(part: &AccessRulePart) -> String {
    let name = part.id.map_or_else(|| ALWAYS.to_owned(), |id| format!("rule {id}"));
    let rule = &part.rule;
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
    let decision = match &rule["decision"] {
        Value::String(name) => name.clone(),
        decision => decision.as_object().and_then(|said| said.keys().next()).cloned().unwrap_or_default(),
    };
    let keys = match text(&rule["surt_prefix"]) {
        prefix if prefix.is_empty() => "everything".to_owned(),
        prefix if rule["exact"] == json!(true) => prefix,
        prefix => prefix + "*",
    };
    let narrowed = ["collection", "mime", "captured_from", "captured_to"].into_iter();
    let narrowed = narrowed.filter(|name| !rule[*name].is_null());
    let narrowed =
        narrowed.map(|name| format!(", {name} {}", text(&rule[name]))).collect::<Vec<_>>().concat();
    let audience = rule["audience"].as_array().map(|all| all.iter().map(text).collect::<Vec<_>>().join(", "));
    let audience = audience.map(|names| format!(" for {names}")).unwrap_or_default();
    let effect = match (part.effect.as_str(), part.lifted_by) {
        ("hides", _) => "hides it".to_owned(),
        ("lifted", Some(by)) => format!("lifted by rule {by}"),
        ("lets-through", _) => "lets this reader through".to_owned(),
        ("allows", _) => "allows it, as far as it can".to_owned(),
        ("for-others", _) => "is for other readers".to_owned(),
        ("depends-on-type", _) => "applies to captures of that type; name a type with --mime".to_owned(),
        (other, _) => other.to_owned(),
    };
    format!("{name}: {decision}{audience} on {keys}{narrowed}: {effect}")
}

pub(crate) async fn run(common: &Common, command: AccessCommand) -> anyhow::Result<Exit> {
    let client = context::client(common).await?;
    match command {
        AccessCommand::Ls => {
            let mut rows: Vec<Value> = client.get("/access").await?;
            if !common.json {
                rows.iter_mut().for_each(put_in_words);
            }
            list(
                common,
                &rows,
                [
                    ("ID", "id"),
                    ("KEYS", "rule.surt_prefix"),
                    ("COLLECTION", "rule.collection"),
                    ("MIME", "rule.mime"),
                    ("DECISION", "rule.decision"),
                    ("FOR", "rule.audience"),
                    ("NOTE", "note"),
                ],
            )?;
        }
        AccessCommand::Add(args) => {
            let args = *args;
            let new = NewAccessRule {
                matches: args.matches,
                surt_prefix: args.surt,
                url: args.url,
                collection: args.collection,
                mime: args.mime,
                captured_from: args.since,
                captured_to: args.until,
                decision: args.decision.decision()?,
                audience: args.audience,
                everything: args.everything,
                note: args.note,
            };
            let made: Vec<Value> = client.post("/access", &new).await?;
            note_unknown_collections(&client, &made).await?;
            let ids: Vec<String> = made.iter().map(|row| row["id"].to_string()).collect();
            told(common, &json!(made), &format!("Added access rule {}.", ids.join(", ")))?;
        }
        AccessCommand::Rm { id } => {
            client.delete(&format!("/access/{id}")).await?;
            told(common, &json!({ "removed": id }), &format!("Removed access rule {id}."))?;
        }
        AccessCommand::Import { file } => {
            let csv = std::fs::read_to_string(&file)
                .with_context(|| format!("cannot read the access rules in {}", file.display()))?;
            let done: AccessImported = client.post("/access-table", &AccessTable { csv }).await?;
            let rows: Vec<Value> = client.get("/access").await?;
            note_unknown_collections(&client, &rows).await?;
            let text = format!("Added {} access rules; {} were there already.", done.made, done.known);
            told(common, &json!(done), &text)?;
        }
        AccessCommand::Export => {
            let table: AccessTable = client.get("/access-table").await?;
            if common.json {
                output::json(&table)?;
            } else {
                out!("{}", table.csv);
            }
        }
        AccessCommand::Test { url, collection, captured, mime, from, user } => {
            let asked = AccessQuestion { url, collection, captured, mime, address: from, user };
            let answer: AccessAnswer = client.post("/access-test", &asked).await?;
            if common.json {
                output::json(&answer)?;
            } else {
                let rule = answer.rule.map_or_else(|| ALWAYS.to_owned(), |id| format!("rule {id}"));
                let depends = answer.rules.iter().any(|part| part.effect == "depends-on-type");
                match &answer.message {
                    _ if answer.visible && depends => {
                        outln!("visible, unless a rule about its type hides it");
                    }
                    _ if answer.visible => outln!("visible"),
                    Some(message) => outln!("hidden by {rule}: {message}"),
                    None => outln!("hidden by {rule}"),
                }
                for part in &answer.rules {
                    outln!("  {}", explained(part));
                }
            }
        }
    }
    Ok(Exit::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_listed_in_words() {
        let row = |decision: Value, audience: Value| {
            let mut row =
                json!({ "rule": { "surt_prefix": "com,e)/", "decision": decision, "audience": audience } });
            put_in_words(&mut row);
            [&row["rule"]["decision"], &row["rule"]["audience"], &row["rule"]["surt_prefix"]]
                .map(|cell| cell.as_str().unwrap().to_owned())
        };
        for (decision, audience, words) in [
            (json!("allow"), json!(["staff", "user:bo"]), ["allow", "staff, user:bo", "com,e)/*"]),
            (
                json!({ "block": { "message": "court" } }),
                json!(null),
                ["block: court", "everybody", "com,e)/*"],
            ),
            (json!({ "embargo": { "seconds": 60 } }), json!([]), ["embargo 1m", "everybody", "com,e)/*"]),
            (
                json!({ "networks": { "networks": ["10.0.0.0/8", "::1/128"] } }),
                json!([]),
                ["networks 10.0.0.0/8, ::1/128", "everybody", "com,e)/*"],
            ),
            (json!({ "users": { "users": ["*"] } }), json!([]), ["users *", "everybody", "com,e)/*"]),
        ] {
            assert_eq!(row(decision.clone(), audience), words, "{decision}");
        }
    }
}
