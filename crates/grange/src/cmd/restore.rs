//! `grange restore`: a backup takes the database's place, the rows are completed from the replicas, every copy is read,
//! and what came back to life is listed.

use std::path::PathBuf;

use clap::Args;
use grange_model::{Actor, AuditKind};
use grange_node::restore::{CameBack, RestoredDatabase, restore_database};
use serde_json::{Value, json};

use crate::cli::Common;
use crate::cmd::archive::{audit_all, is_whole, print_audit, print_rebuilt, text};
use crate::exit::{Exit, UsageError};
use crate::{context, output};

#[derive(Args, Debug)]
pub(crate) struct RestoreArgs {
    /// A backup made by `grange db backup` or by the node
    backup: PathBuf,
    /// The data folder whose database it replaces; no node may run on it
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    /// Make the data folder if it does not exist
    #[arg(long)]
    new: bool,
}

/// Exit code 5 when something is left for a person to decide.
pub(crate) async fn run(common: &Common, args: RestoreArgs) -> anyhow::Result<Exit> {
    if common.server.is_some() {
        return Err(UsageError(
            "restore works on a data folder of this machine, without --server".to_owned(),
        )
        .into());
    }
    let data = std::path::absolute(&args.to)?;
    // The environment names the usual folder, not the one of this command.
    let given = [Some("grange-data".into()), std::env::var_os("GRANGE_DATA")]
        .iter()
        .flatten()
        .all(|usual: &std::ffi::OsString| common.data.as_os_str() != usual);
    if given && std::path::absolute(&common.data)? != data {
        let text = format!(
            "restore works on the folder of --to ({}): leave out --data {}",
            args.to.display(),
            common.data.display()
        );
        return Err(UsageError(text).into());
    }
    let common = &Common { data, ..common.clone() };
    let settings = context::load(common)?.settings;
    let actor = Actor::new(crate::person::name(), "cli");
    let restored = restore_database(&settings, &common.data, &args.backup, args.new, &actor).await?;

    // Said before the long part: whoever interrupts that must know that the database is in its place.
    if !common.json {
        print_restored(&args.backup, &restored);
    }
    let client = context::client(common).await?;
    let rebuilt: Value = client.post("/archive/rebuild", &()).await?;
    let (checks, strays) = audit_all(&client, AuditKind::Checksum).await?;
    let open = is_open(&restored, &rebuilt, &checks, &strays);
    if common.json {
        let report = json!({ "restored": restored, "rebuilt": rebuilt, "checks": checks, "strays": strays });
        output::json(&report)?;
    } else {
        print_rebuilt(&rebuilt);
        print_access_rules(&rebuilt);
        print_audit(&checks, &strays)?;
        outln!("{}", if open { "Look at what is listed above." } else { "Nothing is left to decide." });
    }
    Ok(if open { Exit::Partial } else { Exit::Ok })
}

fn is_open(restored: &RestoredDatabase, rebuilt: &Value, checks: &[Value], strays: &Value) -> bool {
    let rules = &rebuilt["access_rules"];
    let any = |value: &Value| value.as_array().is_some_and(|list| !list.is_empty());
    let wrong = |check: &Value| {
        let found = ["missing", "corrupt", "undecided"].iter().any(|field| check[*field].as_u64() > Some(0));
        found || check["state"] != "done"
    };
    !restored.came_back.is_empty()
        || !is_whole(rebuilt)
        || [&rules["returned"], &rules["damaged"], &rules["away"]].into_iter().any(any)
        || checks.iter().any(wrong)
        || strays["count"].as_u64() > Some(0)
}

fn print_restored(backup: &std::path::Path, restored: &RestoredDatabase) {
    outln!("Restored {} from {}.", restored.database.display(), backup.display());
    if let Some(replaced) = &restored.replaced {
        outln!("The database that was there is kept as {}.", replaced.display());
    }
    outln!("{} sessions ended.", restored.sessions_ended);
    let came = &restored.came_back;
    if let Some(reason) = &restored.not_compared {
        outln!("Nothing could be compared ({reason}): all that works is listed.");
    }
    print_came_back(came);
}

/// Who comes in again, and what to do about it.
pub(super) fn print_came_back(came: &CameBack) {
    for token in &came.tokens {
        let stands = match token.revoked_at {
            Some(at) => format!("revoked at {at} in the replaced database; revoked again now"),
            None if came.compared => {
                format!("unknown to the replaced database; end it with `grange users revoke {}`", token.id)
            }
            None => format!("valid; end it with `grange users revoke {}`", token.id),
        };
        outln!("  token {} of {} ({}): {stands}", token.id, token.user, token.name);
    }
    for name in &came.passwords {
        let which =
            if came.compared { "an older password works again" } else { "the password of the backup works" };
        outln!("  user {name}: {which}; change it with `grange users passwd {name}`");
    }
    for user in &came.users {
        outln!("  user {}: {}", user.name, user.change);
    }
    for name in &came.lost_users {
        outln!("  user {name}: lost; add it again with `grange users add {name}`");
    }
    if came.lost_tokens > 0 {
        outln!("  {} tokens made since the backup are lost", came.lost_tokens);
    }
}

fn print_access_rules(rebuilt: &Value) {
    let rules = &rebuilt["access_rules"];
    for (field, stands) in [
        ("reestablished", "lost, and in force again from its copy beside the bits"),
        ("returned", "removed before, and in force again; remove it with `grange access rm ID`"),
    ] {
        for rule in rules[field].as_array().into_iter().flatten() {
            outln!(
                "  access rule {} ({}, {}): {stands}",
                text(&rule["id"]),
                rule["rule"],
                text(&rule["note"])
            );
        }
    }
    for name in rules["damaged"].as_array().into_iter().flatten() {
        outln!("  access rule {}: damaged", text(name));
    }
}
