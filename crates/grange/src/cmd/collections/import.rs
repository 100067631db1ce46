//! `grange collections import`: register, then see it through.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use grange_api::Client;
use grange_api::client::segment;
use grange_api::wire::collections::{ImportPaths, Imported};
use grange_node::role::indexer::{FeedError, Feeding, feeding};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use crate::cli::Common;
use crate::exit::Exit;
use crate::output::counted;
use crate::{context, output};

/// How often a node is asked how far it is.
const ASK_EVERY: Duration = Duration::from_millis(500);
/// Silence after which it is said what may be missing.
const DOUBT_AFTER: Duration = Duration::from_secs(30);
/// Files with problems that are told.
const TROUBLED_MAX: u32 = 1000;

pub(super) async fn run(
    common: &Common,
    name: &str,
    paths: Vec<PathBuf>,
    store: bool,
    no_wait: bool,
) -> anyhow::Result<Exit> {
    let paths = paths.into_iter().map(|path| {
        if path.starts_with("s3:") {
            return Ok(path);
        }
        std::path::absolute(&path).with_context(|| format!("cannot make {} absolute", path.display()))
    });
    let asked = ImportPaths { paths: paths.collect::<anyhow::Result<_>>()?, store };
    let client = context::client(common).await?;
    let at = format!("/collections/{}", segment(name));
    let registered: Imported = client.post(&format!("{at}/files"), &asked).await?;
    // A command without a node holds the data folder; the feeder takes it next.
    drop(client);
    for reason in &registered.passed_over {
        errln!("grange: passed over {reason}");
    }
    if !no_wait {
        feed(common, name, !common.json).await?;
    }
    let client = context::client(common).await?;
    let mut shown: Value = client.get(&at).await?;
    let troubled = troubled(&client, name).await?;
    let failed = shown["files"]["failed"].as_u64().unwrap_or_default();
    if common.json {
        shown["registered"] = json!(registered);
        shown["troubled"] = json!(troubled);
        output::json(&shown)?;
    } else {
        let Imported { new, known, again, .. } = registered;
        outln!("Registered {} ({known} known, {again} again).", counted(new, "file"));
        print(&shown, &troubled);
    }
    let waiting = if no_wait { 0 } else { shown["files"]["waiting"].as_u64().unwrap_or_default() };
    if waiting > 0 {
        errln!("grange: {} could not be read now: import again later", counted(waiting, "file"));
    }
    let clean = failed + waiting == 0 && troubled.is_empty() && registered.passed_over.is_empty();
    Ok(if clean { Exit::Ok } else { Exit::Partial })
}

/// Sees to it that nothing of a collection waits: does it here, or waits for the node that does.
pub(super) async fn feed(common: &Common, name: &str, bar: bool) -> anyhow::Result<()> {
    let settings = context::load(common)?.settings;
    let by_node = common.server.is_some();
    let feeding = if by_node { Feeding::ByNode } else { feeding(&settings, &common.data).await? };
    let bar = if bar { ProgressBar::new(0) } else { ProgressBar::hidden() };
    let style = "{bar:30} {pos}/{len} files {elapsed} {msg}";
    bar.set_style(ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar()));
    if let Feeding::Here(here) = feeding {
        loop {
            match here.step(name).await {
                Ok(true) => {}
                Ok(false) => {
                    bar.finish_and_clear();
                    return Ok(());
                }
                Err(FeedError::KeptElsewhere { node, .. }) => {
                    bar.println(format!("The node {node} keeps the index of {name} and reads the files."));
                    break;
                }
                Err(error) => return Err(error.into()),
            }
            bar.inc(1);
            bar.set_length(bar.length().unwrap_or_default().max(bar.position()));
        }
    }
    let client = context::client(common).await?;
    let at = format!("/collections/{}", segment(name));
    let mut silent = Duration::ZERO;
    let mut last = u64::MAX;
    loop {
        let shown: Value = match client.get(&at).await {
            Ok(shown) => shown,
            // It was removed.
            Err(error) if error.status().is_some_and(|status| status.as_u16() == 404) => break,
            Err(error) => return Err(error.into()),
        };
        let count = |state: &str| shown["files"][state].as_u64().unwrap_or_default();
        let left = count("waiting") + count("leaving");
        let all = left + count("indexed") + count("failed") + count("out");
        bar.set_length(all);
        bar.set_position(all - left);
        if left == 0 && shown["removed"] != json!(true) {
            break;
        }
        silent = if left == last { silent + ASK_EVERY } else { Duration::ZERO };
        last = left;
        if silent == DOUBT_AFTER {
            errln!("grange: nothing happens: is a node with the role indexer running? Ctrl-C loses nothing.");
        }
        tokio::time::sleep(ASK_EVERY).await;
    }
    bar.finish_and_clear();
    Ok(())
}

/// Files that failed or have problems, with what is known of them.
pub(super) async fn troubled(client: &Client, name: &str) -> anyhow::Result<Vec<Value>> {
    let mut found = Vec::new();
    for state in ["failed", "indexed"] {
        let mut after = 0;
        loop {
            let at = format!("/collections/{}/files?state={state}&after={after}", segment(name));
            let files: Vec<Value> = client.get(&at).await?;
            let Some(last) = files.last().and_then(|file| file["id"].as_i64()) else { break };
            after = last;
            let bad = |file: &Value| state == "failed" || file["problems"].as_u64().unwrap_or_default() > 0;
            found.extend(files.into_iter().filter(bad));
            if found.len() >= TROUBLED_MAX as usize {
                found.truncate(TROUBLED_MAX as usize);
                return Ok(found);
            }
        }
    }
    Ok(found)
}

pub(super) fn print(shown: &Value, troubled: &[Value]) {
    let count = |what: &str| shown["files"][what].as_u64().unwrap_or_default();
    outln!(
        "{}: {} of {}; {} waiting, {} failed, {}.",
        shown["name"].as_str().unwrap_or_default(),
        counted(count("captures"), "capture"),
        counted(count("indexed"), "file"),
        count("waiting"),
        count("failed"),
        counted(count("problems"), "problem"),
    );
    for file in troubled {
        outln!(
            "  {} ({})",
            file["name"].as_str().unwrap_or_default(),
            file["state"].as_str().unwrap_or_default()
        );
        for line in file["told"].as_array().into_iter().flatten() {
            outln!("    {}", line.as_str().unwrap_or_default());
        }
    }
}
