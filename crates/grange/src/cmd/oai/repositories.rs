//! Repositories.

use anyhow::Context as _;
use grange_api::wire::oai::{Friends, NewRepository, RulesEdit};
use grange_base::Period;
use grange_model::oai::{DeletedPolicy, RepositoryId, RepositoryRules, Slices};
use serde_json::{Value, json};

use crate::cli::Common;
use crate::cmd::harvest::{list as table, read_file, shown, told};
use crate::context;
use crate::exit::Exit;

/// How a repository is treated; what is not said stays as it is.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct RuleArgs {
    /// The folder of its records [default: its number, below the folder of all repositories]
    #[arg(long, value_name = "DIR")]
    folder: Option<String>,
    /// Whether the parts of identifiers become folders [default: true]
    #[arg(long, value_name = "BOOL")]
    parse_id: Option<bool>,
    /// The most files in one folder; 0 for any number [default: 5000]
    #[arg(long, value_name = "COUNT")]
    files_per_folder: Option<u32>,
    /// remove, keep or mark the files of deleted records [default: remove]
    #[arg(long, value_name = "POLICY")]
    deleted: Option<DeletedPolicy>,
    /// Cut long lists into windows: whole, month or day [default: whole]
    #[arg(long)]
    windows: Option<Slices>,
    /// The time between two requests, such as 3s
    #[arg(long, value_name = "PERIOD")]
    delay: Option<Period>,
    /// Whether answers are kept in WARC files, too
    #[arg(long, value_name = "BOOL")]
    keep_responses: Option<bool>,
    /// Whether it ignores from and until [found out by harvests]
    #[arg(long, value_name = "BOOL")]
    no_windows: Option<bool>,
    /// Whether tokens are sent as they came
    #[arg(long, value_name = "BOOL")]
    verbatim_tokens: Option<bool>,
    /// Whether its completeListSize is an estimate, so that a shorter list is complete [default: false]
    #[arg(long, value_name = "BOOL")]
    estimated_size: Option<bool>,
}

impl RuleArgs {
    fn on(&self, before: RepositoryRules) -> RepositoryRules {
        RepositoryRules {
            folder: self.folder.clone().unwrap_or(before.folder),
            parse_id: self.parse_id.unwrap_or(before.parse_id),
            files_per_folder: self.files_per_folder.unwrap_or(before.files_per_folder),
            deleted: self.deleted.unwrap_or(before.deleted),
            slices: self.windows.unwrap_or(before.slices),
            delay_ms: self.delay.map_or(before.delay_ms, |delay| delay.0.as_millis() as u64),
            keep_responses: self.keep_responses.unwrap_or(before.keep_responses),
            no_windows: self.no_windows.unwrap_or(before.no_windows),
            verbatim_tokens: self.verbatim_tokens.unwrap_or(before.verbatim_tokens),
            estimated_size: self.estimated_size.unwrap_or(before.estimated_size),
        }
    }
}

pub(super) async fn list(common: &Common) -> anyhow::Result<Exit> {
    let rows: Vec<Value> = context::client(common).await?.get("/oai/repositories").await?;
    let columns = [("ID", "id"), ("NAME", "name"), ("DELETED", "deleted_support"), ("BASE URL", "base_url")];
    table(common, &rows, columns)?;
    Ok(Exit::Ok)
}

pub(super) async fn show(common: &Common, id: RepositoryId) -> anyhow::Result<Exit> {
    let answer: Value = context::client(common).await?.get(&format!("/oai/repositories/{id}")).await?;
    shown(common, &answer)?;
    Ok(Exit::Ok)
}

pub(super) async fn add(common: &Common, base_url: &str, rules: &RuleArgs) -> anyhow::Result<Exit> {
    let client = context::client(common).await?;
    let new = NewRepository { base_url: base_url.to_owned(), rules: rules.on(RepositoryRules::default()) };
    let made: Value = client.post("/oai/repositories", &new).await?;
    if common.json {
        shown(common, &made)?;
        return Ok(Exit::Ok);
    }
    let names = |list: &Value, field: &str| {
        let names: Vec<_> =
            list.as_array().into_iter().flatten().filter_map(|one| one[field].as_str()).collect();
        names.join(", ")
    };
    let text = |field: &str| made[field].as_str().unwrap_or("-");
    outln!("Repository {}: {}", made["id"], text("name"));
    outln!("  base URL     {}", text("base_url"));
    outln!("  protocol     {}", text("protocol_version"));
    let emails: Vec<_> =
        made["admin_emails"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    outln!("  admin        {}", emails.join(", "));
    outln!("  granularity  {}", text("granularity"));
    outln!("  deleted      {}", text("deleted_support"));
    outln!("  earliest     {}", text("earliest"));
    outln!("  formats      {}", names(&made["formats"], "prefix"));
    outln!("  sets         {}", made["sets"].as_array().map_or(0, Vec::len));
    for remark in made["remarks"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        outln!("  note         {remark}");
    }
    Ok(Exit::Ok)
}

pub(super) async fn import(common: &Common, list: &str) -> anyhow::Result<Exit> {
    let client = context::client(common).await?;
    let web = list.starts_with("http://") || list.starts_with("https://");
    let friends = if web {
        Friends { url: Some(list.to_owned()), text: None }
    } else {
        Friends { text: Some(read_file(list.as_ref())?), url: None }
    };
    let urls: Vec<String> = client.post("/oai/friends", &friends).await?;
    let (mut added, mut failed) = (Vec::new(), Vec::new());
    for url in &urls {
        let new = NewRepository { base_url: url.clone(), rules: RepositoryRules::default() };
        match client.post::<Value>("/oai/repositories", &new).await {
            Ok(made) => added.push(made["id"].clone()),
            Err(error) => failed.push(json!({ "base_url": url, "reason": error.to_string() })),
        }
    }
    let answer = json!({ "listed": urls.len(), "added": added, "failed": failed });
    let sentence = format!("{} listed, {} added, {} not", urls.len(), added.len(), failed.len());
    told(common, &answer, &sentence)?;
    if !common.json {
        for one in &failed {
            outln!(
                "  {}: {}",
                one["base_url"].as_str().unwrap_or_default(),
                one["reason"].as_str().unwrap_or_default()
            );
        }
    }
    Ok(if failed.is_empty() { Exit::Ok } else { Exit::Partial })
}

pub(super) async fn set(common: &Common, id: RepositoryId, rules: &RuleArgs) -> anyhow::Result<Exit> {
    let client = context::client(common).await?;
    let before: Value = client.get(&format!("/oai/repositories/{id}")).await?;
    let known: RepositoryRules =
        serde_json::from_value(before["rules"].clone()).context("the node answered with other rules")?;
    let edit = RulesEdit { rules: rules.on(known), edition: before["edition"].as_i64() };
    let after: Value = client.patch(&format!("/oai/repositories/{id}"), &edit).await?;
    told(common, &after, &format!("Repository {id} is changed."))?;
    Ok(Exit::Ok)
}

pub(super) async fn refresh(common: &Common, id: RepositoryId) -> anyhow::Result<Exit> {
    let client = context::client(common).await?;
    let answer: Value = client.post(&format!("/oai/repositories/{id}/refresh"), &()).await?;
    shown(common, &answer)?;
    Ok(Exit::Ok)
}

pub(super) async fn remove(common: &Common, id: RepositoryId) -> anyhow::Result<Exit> {
    context::client(common).await?.delete(&format!("/oai/repositories/{id}")).await?;
    told(
        common,
        &json!({ "deleted": id }),
        &format!("Repository {id} is forgotten; its files are still there."),
    )?;
    Ok(Exit::Ok)
}
