//! `grange domains …`

use std::io::BufRead;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Subcommand;
use grange_api::Client;
use grange_api::client::segment;
use grange_api::wire::harvests::{ConfigurationEdit, DomainEdit, LoginEdit, NewDomains};
use grange_model::harvest::domain::default_template;
use grange_model::harvest::{LoginForm, Name, NewConfiguration};
use serde_json::{Value, json};

use super::{LimitArgs, list, read_file, shown, told};
use crate::cli::Common;
use crate::exit::Exit;
use crate::{context, output};

#[derive(Debug, Subcommand)]
pub(crate) enum DomainsCommand {
    /// Make domains from a file of names, one or more per line; - reads standard input
    Import { file: PathBuf },
    /// Make domains
    Create {
        #[arg(required = true)]
        names: Vec<String>,
    },
    /// Domains by name; * and ? stand for any characters and one
    Ls {
        pattern: Option<String>,
        #[arg(long, default_value_t = 100)]
        limit: u32,
        /// Only names after this one
        #[arg(long)]
        after: Option<String>,
    },
    /// A domain with its configurations and seed lists
    Show { name: String },
    /// Change a domain
    Set {
        name: String,
        #[arg(long)]
        comments: Option<String>,
        /// A file with a crawler trap (regular expression) per line
        #[arg(long, value_name = "FILE")]
        traps: Option<PathBuf>,
        /// The domain whose site it shows; the same again renews it
        #[arg(long, value_name = "DOMAIN", conflicts_with = "no_alias")]
        alias_of: Option<String>,
        /// It is no alias any more
        #[arg(long)]
        no_alias: bool,
        /// The configuration that snapshots use
        #[arg(long, value_name = "NAME")]
        default_configuration: Option<Name>,
    },
    /// Aliases for review: the expired, then the others by their end
    Aliases,
    /// How many domains there are below each suffix
    Stats,
    /// What was harvested of a domain
    History { name: String },
    /// Make or change a configuration
    Configure {
        domain: String,
        name: Name,
        #[arg(long)]
        template: Option<Name>,
        #[command(flatten)]
        limits: LimitArgs,
        /// Its seed lists; may be given several times
        #[arg(long = "seeds", value_name = "LIST")]
        seed_lists: Vec<Name>,
        /// Its logins; may be given several times
        #[arg(long = "login", value_name = "NAME")]
        logins: Vec<Name>,
    },
    /// Delete a configuration that nothing uses
    Unconfigure { domain: String, name: String },
    /// Keep a login; the first line of the file is the secret
    #[command(after_help = LOGIN_EXAMPLES)]
    Login {
        domain: String,
        name: String,
        /// Where the form is sent; for a login that the server asks for by HTTP, any page of the site
        #[arg(long)]
        url: String,
        #[arg(long, default_value = "")]
        realm: String,
        #[arg(long)]
        username: String,
        #[arg(long, value_name = "FILE")]
        secret_file: PathBuf,
        #[command(flatten)]
        form: FormArgs,
    },
    /// The logins of a domain, without their secrets
    Logins { domain: String },
    /// Forget a login
    Logout { domain: String, name: String },
}

const LOGIN_EXAMPLES: &str = "\
Examples:
  grange domains login example.dk members --url https://example.dk/ --username me --secret-file secret
  grange domains login example.dk forum --url https://example.dk/login --username me --secret-file secret \\
      --user-field name --secret-field pass --field remember=1 --sets-cookie session
A configuration uses it after: grange domains configure example.dk defaultconfig --login forum";

/// The form of a login. It is sent once before the first page of the domain.
#[derive(Debug, clap::Args)]
pub(crate) struct FormArgs {
    /// The name of the form's field for the user
    #[arg(long, value_name = "NAME", requires = "secret_field")]
    user_field: Option<String>,
    /// The name of the form's field for the secret
    #[arg(long, value_name = "NAME", requires = "user_field")]
    secret_field: Option<String>,
    /// A further field; may be given several times
    #[arg(long = "field", value_name = "NAME=VALUE", requires = "user_field", value_parser = pair)]
    fields: Vec<(String, String)>,
    /// The page the form stands on, where the server sets a cookie there first
    #[arg(long, value_name = "URL", requires = "user_field")]
    page_url: Option<String>,
    /// A cookie that is set only for who is let in
    #[arg(long, value_name = "NAME", requires = "user_field")]
    sets_cookie: Option<String>,
    /// A pattern that only the page of who is let in matches
    #[arg(long, value_name = "REGEX", requires = "user_field")]
    page_matches: Option<String>,
    /// A pattern that only the page of who is not let in matches
    #[arg(long, value_name = "REGEX", requires = "user_field")]
    page_lacks: Option<String>,
}

impl FormArgs {
    fn given(self) -> Option<LoginForm> {
        let Self { user_field, secret_field, fields, page_url, sets_cookie, page_matches, page_lacks } = self;
        let (user_field, secret_field) = user_field.zip(secret_field)?;
        Some(LoginForm { user_field, secret_field, fields, page_url, sets_cookie, page_matches, page_lacks })
    }
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Lines sent at once: well below what the server takes in one request.
const LINES_PER_REQUEST: usize = 5000;
/// How often an import says how far it is.
const TELL_EVERY: u64 = 50_000;

pub(crate) async fn run(common: &Common, command: DomainsCommand) -> anyhow::Result<Exit> {
    let client = context::client(common).await?;
    let at = |name: &str, below: &str| format!("/domains/{}{below}", segment(name));
    match command {
        DomainsCommand::Import { file } => return import(common, &client, &file).await,
        DomainsCommand::Create { names } => {
            let answer: Value = client.post("/domains", &NewDomains { lines: names, first_line: 1 }).await?;
            return report(common, &answer);
        }
        DomainsCommand::Ls { pattern, limit, after } => {
            let mut path = format!("/domains?limit={limit}");
            for (key, value) in [("name", pattern), ("after", after)] {
                if let Some(value) = value {
                    path = format!("{path}&{key}={}", segment(&value));
                }
            }
            let page: Value = client.get(&path).await?;
            if common.json {
                output::json(&page)?;
            } else {
                let rows = page["domains"].as_array().cloned().unwrap_or_default();
                list(
                    common,
                    &rows,
                    [("DOMAIN", "readable"), ("ALIAS OF", "alias.of"), ("COMMENTS", "comments")],
                )?;
            }
        }
        DomainsCommand::Show { name } => shown(common, &client.get(&at(&name, "")).await?)?,
        DomainsCommand::Set { name, comments, traps, alias_of, no_alias, default_configuration } => {
            let traps = traps.map(|file| read_file(&file)).transpose()?;
            let alias_of = if no_alias { Some(String::new()) } else { alias_of };
            let edit =
                DomainEdit { comments, traps, alias_of, default_configuration, ..DomainEdit::default() };
            let answer: Value = client.patch(&at(&name, ""), &edit).await?;
            told(common, &answer, &format!("Changed {name}."))?;
        }
        DomainsCommand::Aliases => {
            let rows: Vec<Value> = client.get("/aliases").await?;
            let columns =
                [("DOMAIN", "domain"), ("ALIAS OF", "of"), ("UNTIL", "expires_at"), ("EXPIRED", "expired")];
            list(common, &rows, columns)?;
        }
        DomainsCommand::Stats => shown(common, &client.get("/domain-counts").await?)?,
        DomainsCommand::History { name } => {
            let rows: Vec<Value> = client.get(&at(&name, "/history")).await?;
            let columns = [
                ("HARVEST", "harvest_name"),
                ("RUN", "run"),
                ("JOB", "job"),
                ("CONFIGURATION", "configuration"),
                ("ENDED", "ended_at"),
                ("OBJECTS", "objects"),
                ("BYTES", "bytes"),
                ("BECAUSE", "stop"),
            ];
            list(common, &rows, columns)?;
        }
        DomainsCommand::Configure { domain, name, template, limits, seed_lists, logins } => {
            let known: Value = client.get(&at(&domain, "")).await?;
            let all = known["configurations"].as_array().cloned().unwrap_or_default();
            let one = all.iter().find(|one| one["name"] == name.as_str());
            let answer: Value = if let Some(one) = one {
                let limits = limits.change_of(one)?;
                let some = |names: Vec<Name>| Some(names).filter(|names| !names.is_empty());
                let edit = ConfigurationEdit {
                    template,
                    limits,
                    seed_lists: some(seed_lists),
                    credentials: some(logins),
                    ..ConfigurationEdit::default()
                };
                client
                    .patch(&at(&domain, &format!("/configurations/{}", segment(name.as_str()))), &edit)
                    .await?
            } else {
                let new = NewConfiguration {
                    name: name.clone(),
                    template: template.unwrap_or_else(default_template),
                    limits: limits.given().unwrap_or_else(grange_model::harvest::domain::default_limits),
                    seed_lists,
                    credentials: logins,
                    comments: String::new(),
                };
                client.post(&at(&domain, "/configurations"), &new).await?
            };
            told(common, &answer, &format!("Kept the configuration {name} of {domain}."))?;
        }
        DomainsCommand::Unconfigure { domain, name } => {
            client.delete(&at(&domain, &format!("/configurations/{}", segment(&name)))).await?;
            told(
                common,
                &json!({ "deleted": name }),
                &format!("Deleted the configuration {name} of {domain}."),
            )?;
        }
        DomainsCommand::Login { domain, name, url, realm, username, secret_file, form } => {
            let text = read_file(&secret_file)?;
            let secret = text.lines().next().unwrap_or_default().to_owned();
            let form = form.given();
            let edit = LoginEdit { url, realm, username, form, secret, comments: String::new() };
            let _: Value = client.put(&at(&domain, &format!("/logins/{}", segment(&name))), &edit).await?;
            told(common, &json!({ "kept": name }), &format!("Kept the login {name} of {domain}."))?;
        }
        DomainsCommand::Logins { domain } => {
            let rows: Vec<Value> = client.get(&at(&domain, "/logins")).await?;
            list(
                common,
                &rows,
                [("NAME", "name"), ("URL", "url"), ("REALM", "realm"), ("USER", "username")],
            )?;
        }
        DomainsCommand::Logout { domain, name } => {
            client.delete(&at(&domain, &format!("/logins/{}", segment(&name)))).await?;
            told(common, &json!({ "deleted": name }), &format!("Deleted the login {name} of {domain}."))?;
        }
    }
    Ok(Exit::Ok)
}

/// Sends the lines of a file a few thousand at a time, so that a file of any length can be imported, and adds up what
/// became of them.
async fn import(common: &Common, client: &Client, path: &Path) -> anyhow::Result<Exit> {
    let reader: Box<dyn BufRead> = if path.as_os_str() == "-" {
        Box::new(std::io::stdin().lock())
    } else {
        let file = std::fs::File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
        Box::new(std::io::BufReader::with_capacity(1 << 18, file))
    };
    let mut sum =
        json!({ "created": 0, "existing": 0, "illegal": 0, "existing_names": [], "illegal_lines": [] });
    let (mut lines, mut sent) = (Vec::with_capacity(LINES_PER_REQUEST), 0u64);
    let mut source = reader.lines();
    loop {
        let line = source.next().transpose().with_context(|| format!("cannot read {}", path.display()))?;
        let over = line.is_none();
        lines.extend(line);
        if lines.len() == LINES_PER_REQUEST || (over && !lines.is_empty()) {
            let batch = NewDomains { lines: std::mem::take(&mut lines), first_line: sent + 1 };
            let count = batch.lines.len() as u64;
            let answer: Value = client.post("/domains", &batch).await?;
            add(&mut sum, &answer);
            if (sent + count) / TELL_EVERY > sent / TELL_EVERY {
                errln!("{} lines read, {} domains created", sent + count, sum["created"]);
            }
            sent += count;
        }
        if over {
            return report(common, &sum);
        }
    }
}

/// Names and lines told in the sum of all requests.
const TOLD_MAX: usize = 100;

fn add(sum: &mut Value, answer: &Value) {
    for count in ["created", "existing", "illegal"] {
        sum[count] =
            json!(sum[count].as_u64().unwrap_or_default() + answer[count].as_u64().unwrap_or_default());
    }
    for told in ["existing_names", "illegal_lines"] {
        if let (Some(all), Some(new)) = (sum[told].as_array_mut(), answer[told].as_array()) {
            let room = TOLD_MAX.saturating_sub(all.len());
            all.extend(new.iter().take(room).cloned());
        }
    }
}

fn report(common: &Common, sum: &Value) -> anyhow::Result<Exit> {
    let illegal = sum["illegal"].as_u64().unwrap_or_default();
    if common.json {
        output::json(sum)?;
    } else {
        outln!("{} created, {} were there before, {illegal} illegal", sum["created"], sum["existing"]);
        for line in sum["illegal_lines"].as_array().into_iter().flatten() {
            errln!("line {}: {}: {}", line["line"], super::text(&line["text"]), super::text(&line["reason"]));
        }
    }
    Ok(if illegal > 0 { Exit::Partial } else { Exit::Ok })
}
