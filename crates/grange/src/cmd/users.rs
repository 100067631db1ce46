//! `grange users …`

use std::io::BufRead;

use anyhow::Context as _;
use grange_api::client::segment;
use grange_api::wire::users::{NewToken, NewUser, PasswordChange, TokenMade, UserChange, UserSaved};
use grange_model::account::{Token, User};

use crate::cli::{Common, PasswordFile, UsersCommand};
use crate::exit::{Exit, UsageError};
use crate::{context, output};

pub(super) async fn run(common: &Common, command: UsersCommand) -> anyhow::Result<Exit> {
    let client = context::client(common).await?;
    let at = |name: &str, below: &str| format!("/users/{}{below}", segment(name));
    match command {
        UsersCommand::List => list(common, client.get("/users").await?)?,
        UsersCommand::Add { name, role, password } => {
            let new = NewUser { name, role, password: read(&password)? };
            saved(common, &client.post("/users", &new).await?, "Added")?;
        }
        UsersCommand::Passwd { name, password } => {
            let change = PasswordChange { password: read(&password)? };
            saved(common, &client.post(&at(&name, "/password"), &change).await?, "Changed the password of")?;
        }
        UsersCommand::Role { name, role } => {
            let change = UserChange { role: Some(role), ..UserChange::default() };
            saved(common, &client.patch(&at(&name, ""), &change).await?, "Changed")?;
        }
        UsersCommand::Disable { name } => {
            let change = UserChange { disabled: Some(true), ..UserChange::default() };
            saved(common, &client.patch(&at(&name, ""), &change).await?, "Disabled")?;
        }
        UsersCommand::Enable { name } => {
            let change = UserChange { disabled: Some(false), ..UserChange::default() };
            saved(common, &client.patch(&at(&name, ""), &change).await?, "Enabled")?;
        }
        UsersCommand::Token { name, purpose, expires } => {
            let new = NewToken { name: purpose, lifetime_s: expires.map(|period| period.0.as_secs()) };
            let made: TokenMade = client.post(&at(&name, "/tokens"), &new).await?;
            if common.json {
                output::json(&made)?;
            } else {
                // Only the secret on standard output, so that `> file` keeps exactly the token.
                outln!("{}", made.secret);
                errln!(
                    "This token for {name} is shown only now. Use it with --token-file, or as a bearer token."
                );
            }
        }
        UsersCommand::Tokens { name } => tokens(common, client.get(&at(&name, "/tokens")).await?)?,
        UsersCommand::Revoke { id } => {
            client.delete(&format!("/tokens/{}", segment(&id))).await?;
            if !common.json {
                outln!("Revoked {id}.");
            }
        }
    }
    Ok(Exit::Ok)
}

fn list(common: &Common, users: Vec<User>) -> anyhow::Result<()> {
    if common.json {
        return output::json(&users);
    }
    let row = |user: User| {
        let state = if user.enabled() { "enabled" } else { "disabled" };
        [user.name.to_string(), user.role.to_string(), state.to_owned(), format!("{:.0}", user.created_at)]
    };
    let rows: Vec<_> = users.into_iter().map(row).collect();
    Ok(output::table(["NAME", "ROLE", "STATE", "SINCE"], &rows)?)
}

fn tokens(common: &Common, tokens: Vec<Token>) -> anyhow::Result<()> {
    if common.json {
        return output::json(&tokens);
    }
    let time = |at: Option<_>| at.map_or_else(|| "-".to_owned(), |at| format!("{at:.0}"));
    let row = |token: Token| {
        let state = if token.revoked_at.is_some() { "revoked" } else { "valid" };
        [token.id.to_string(), token.name, state.to_owned(), time(token.expires_at), time(token.last_used_at)]
    };
    let rows: Vec<_> = tokens.into_iter().map(row).collect();
    Ok(output::table(["ID", "FOR", "STATE", "EXPIRES", "LAST USED"], &rows)?)
}

fn saved(common: &Common, saved: &UserSaved, done: &str) -> anyhow::Result<()> {
    if common.json {
        return output::json(saved);
    }
    outln!("{done} {} ({}).", saved.user.name, saved.user.role);
    if let Some(password) = &saved.password {
        outln!("Password, shown only now: {password}");
    }
    Ok(())
}

/// The first line of the password file, if one was named.
fn read(option: &PasswordFile) -> anyhow::Result<Option<String>> {
    let Some(path) = &option.password_file else { return Ok(None) };
    let line = if path.as_os_str() == "-" {
        let mut line = String::new();
        std::io::stdin()
            .lock()
            .read_line(&mut line)
            .context("cannot read the password from standard input")?;
        line
    } else {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read the password file {}", path.display()))?;
        text.lines().next().unwrap_or_default().to_owned()
    };
    let password = line.trim_end_matches(['\r', '\n']);
    if password.is_empty() {
        return Err(UsageError(format!("the first line of {} is empty", path.display())).into());
    }
    Ok(Some(password.to_owned()))
}
